import t from 'tap'
import { AuthError } from '../../lib/errors.js'
import { type Texts, ar, de, en, ja } from '../../lib/pages.js'
import { failureOf } from '../../lib/core/pages/failure.js'
import { filled } from '../../lib/core/pages/elements.js'

t.test('a wait is in seconds below a minute, and in whole minutes above', async t => {
  const waitOf = (texts: Texts, retryAfter: number): string =>
    failureOf(texts, new AuthError('rate_limited', { retryAfter }))
  t.equal(waitOf(en, 59), filled(en.errors.rate_limited_wait, { time: '59 seconds' }))
  t.equal(waitOf(en, 61), filled(en.errors.rate_limited_wait, { time: '2 minutes' }))
  t.equal(waitOf(de, 30), filled(de.errors.rate_limited_wait, { time: '30 Sekunden' }))
  t.equal(waitOf(ja, 61), '試行回数が多すぎます。2 分後にもう一度お試しください。', 'no blank between sentences')
  t.match(waitOf(ar, 120), /: دقيقتان\.$/, 'a form of two, in the nominative')
})
