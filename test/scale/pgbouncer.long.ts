/** Applications that reach one Postgres through PgBouncer, which lends each transaction one of a few connections. */
import { randomUUID } from 'node:crypto'
import { on } from 'node:events'
import t from 'tap'
import { SqlAuthStore } from '../../lib/index.js'
import { localProvider, startApp, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { Ear, endingsIn, openStore } from '../helpers/revocations.js'
import { hasPgBouncer, startPgBouncer } from '../helpers/pgbouncer.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { startProxy } from '../helpers/tcp-proxy.js'

const skip = hasPgBouncer() ? {} : { skip: 'PgBouncer is not installed: apt-get install pgbouncer' }

t.test('behind PgBouncer in transaction mode', skip, async t => {
  const url = `${await startPgBouncer(t, await emptyDatabase(t), { connections: 3 })}?prepare=false`
  const start = () => startApp(t, { local: localProvider(), store: new SqlAuthStore(url), rateLimit: false })
  const [one, other] = [await start(), await start()]

  await t.test('users who sign in at one process are signed in at another', async t => {
    await Promise.all(Array.from({ length: 30 }, async (_, index) => {
      const browser = new Browser(index % 2 === 0 ? one : other)
      const user = { email: `user-${index}@example.com`, password: 'a good password' }
      const { statusCode, body } = await browser.post('/auth/local/register', user)
      if (statusCode !== 201) t.fail(body)
      const elsewhere = new Browser(index % 2 === 0 ? other : one, browser.cookies)
      t.equal(await userIdIn(elsewhere), await userIdIn(browser))
      t.equal((await elsewhere.post('/auth/logout')).statusCode, 204)
      t.equal(await userIdIn(browser), null)
    }))
  })

  await t.test('a process hears within ten seconds that another one has ended the sessions of a user', async t => {
    const browser = new Browser(one)
    const { userId } = (await browser.post('/auth/local/register', { email: 'ada@example.com', password: 'a good password' })).json()
    const revoked = on(other.auth.channel, 'revoke')

    await one.auth.signOutEverywhere(userId)

    for await (const [endedId] of revoked) if (endedId === userId) break
    t.pass()
  })

  await t.test('a store listens once, and says what to do when it misses an ending', async t => {
    const network = await startProxy(t, await emptyDatabase(t))
    const listens: string[] = []
    network.hear = data => { listens.push(...String(data).match(/listen svc_auth_revocations/g) ?? []) }
    const url = `${await startPgBouncer(t, network.url, { connections: 3 })}?prepare=false`
    const [store, other] = [openStore(t, url), openStore(t, url)]
    const ear = await Ear.of(store)

    for (let round = 0; round < 3; round++) {
      const userId = randomUUID()
      await endingsIn(other).record(userId)
      await ear.hears(userId)
    }

    t.match(ear.notes, [{ message: /within ten seconds and not at once.*without a pooler or through one in session mode/ }])
    t.equal(ear.notes.length, 1)
    t.equal(listens.length, 1)
  })
})
