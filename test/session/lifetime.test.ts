import t from 'tap'
import { SESSION_SECRET, localProvider, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { ADA } from '../helpers/shared-apps.js'
import { SHARED_SESSIONS } from '../helpers/session-stores.js'

const SEVEN_DAYS_MS = 7 * 24 * 60 * 60 * 1000

for (const [kind, keep] of SHARED_SESSIONS) {
  for (const rolling of [false, true]) {
    const rule = rolling ? 'moves the end of a session that is rolling' : 'does not move the end of a session'
    t.test(`what the application writes ${rule}, with ${kind}`, async t => {
      const { sessions, store } = await keep(t)
      const session = { secret: SESSION_SECRET, store: sessions, rolling }
      const app = await startApp(t, { local: localProvider(), store, session }, {}, app => {
        app.get('/count', async ({ session }) => Object.assign(session, { count: Number(session.get('count' as never) ?? 0) + 1 }).count)
        app.get('/private', { preHandler: app.auth.requireUser }, async () => 'private')
      })
      const browser = new Browser(app)
      await browser.post('/auth/local/register', ADA)

      for (let day = 1; day <= 6; day++) {
        advanceClock(t, SEVEN_DAYS_MS / 7)
        const { body, cookies: [set] } = await browser.get('/count')
        t.equal(body, String(day))
        const days = Math.round((Number(set?.expires?.getTime()) - Date.now()) * 7 / SEVEN_DAYS_MS)
        t.equal(days, rolling ? 7 : 7 - day, 'the browser knows the end')
      }

      advanceClock(t, SEVEN_DAYS_MS / 7 + 60_000)
      t.equal((await browser.get('/private')).statusCode, rolling ? 200 : 401)
    })
  }
}
