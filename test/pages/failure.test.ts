import t from 'tap'
import { AuthError } from '../../lib/errors.js'
import { type Texts, de, en } from '../../lib/pages.js'
import { failureOf } from '../../lib/core/pages/failure.js'
import { filled } from '../../lib/core/pages/elements.js'

t.test('a wait is in seconds below a minute, and in whole minutes above', async t => {
  const waitOf = (texts: Texts, retryAfter: number): string =>
    failureOf(texts, new AuthError('rate_limited', { retryAfter })).replace(`${texts.errors.rate_limited} `, '')
  t.equal(waitOf(en, 59), filled(en.common.wait, { time: '59 seconds' }))
  t.equal(waitOf(en, 61), filled(en.common.wait, { time: '2 minutes' }))
  t.equal(waitOf(de, 30), filled(de.common.wait, { time: '30 Sekunden' }))
})
