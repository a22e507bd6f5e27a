import SqliteDatabase from 'better-sqlite3'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import t from 'tap'
import { Accounts, SqlAuthStore } from '../../lib/index.js'
import { localProvider, startApp, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { ADA } from '../helpers/mail-app.js'
import { newFactor, toFactors } from './users.js'

t.test('a connection of the application may read integers as BigInt, set before the store or after', async t => {
  for (const isSetBefore of [true, false]) {
    for (const isDrizzle of [true, false]) {
      const connection = new SqliteDatabase(':memory:')
      t.teardown(() => { connection.close() })
      if (isSetBefore) connection.defaultSafeIntegers(true)
      const store = new SqlAuthStore(isDrizzle ? drizzle(connection) : connection)
      const app = await startApp(t, { local: localProvider(), store })
      connection.defaultSafeIntegers(true)
      const browser = new Browser(app)
      await browser.post('/auth/local/register', ADA)
      const userId = await userIdIn(browser) ?? ''

      const [session] = await app.auth.sessions(userId)
      t.match(session, { createdAt: Date })
      t.ok(Math.abs(Date.now() - Number(session?.createdAt)) < 60_000)
      t.equal((await browser.post('/auth/logout')).statusCode, 204)
      t.equal(await userIdIn(browser), null)
      const factor = newFactor({ counter: 57_000_000 })
      await new Accounts(store).changeFactors(userId, toFactors(factor))
      t.strictSame(await new Accounts(store).factors(userId), [factor])
      t.equal(connection.prepare('select 1').pluck().get(), 1n, "the application's statements are as they were")
      t.equal(connection.pragma('busy_timeout', { simple: true }), 5000n)
    }
  }
})
