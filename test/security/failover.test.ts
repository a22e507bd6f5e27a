import t from 'tap'
import { TIMEOUT_MS } from '../../lib/base/concurrency.js'
import { SqlAuthStore } from '../../lib/index.js'
import { localProvider, startApp, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { hastenTime } from '../helpers/clock.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { startProxy } from '../helpers/tcp-proxy.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }

t.test('attack 128: with two hosts, the first of which is frozen, the second serves within the time limit', async t => {
  const url = await emptyDatabase(t)
  const [frozen, working] = [await startProxy(t, url), await startProxy(t, url)]
  const hosts = [frozen, working].map(({ url }) => new URL(url).host)
  const store = new SqlAuthStore(url.replace(new URL(url).host, hosts.join()))
  // The application connects while it starts.
  frozen.fate = 'is silent'
  const browser = new Browser(await startApp(t, { local: localProvider(), store }))

  await t.test('from the start', async t => {
    const start = performance.now()
    const { statusCode } = await browser.post('/auth/local/register', ADA)
    t.equal(statusCode, 201)
    t.ok(performance.now() - start < TIMEOUT_MS)
  })

  await t.test('when it freezes later', async t => {
    // Others than the one on which what has expired is removed in the background.
    await Promise.all(Array.from({ length: 3 }, () => store.findUser({ email: ADA.email })))
    frozen.fate = 'works'
    working.fate = 'is silent'
    working.silence()
    const asUsual = hastenTime(t, 10)
    t.equal((await browser.post('/auth/local/token')).statusCode, 503, 'what was sent to the frozen host may have been done there')
    asUsual()

    const start = performance.now()
    t.ok(await userIdIn(browser))
    t.equal((await new Browser(browser.app).post('/auth/local/login', ADA)).statusCode, 200)
    t.ok(performance.now() - start < TIMEOUT_MS)
  })

  hastenTime(t, 10)
  await browser.app.close()
})
