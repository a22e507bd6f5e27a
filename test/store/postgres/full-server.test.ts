/** A server that admits fewer connections than a store may have. */
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { Accounts } from '../../../lib/accounts/accounts.js'
import { advanceClock } from '../../helpers/clock.js'
import { isSoon } from '../../helpers/soon.js'
import { startProxy } from '../../helpers/tcp-proxy.js'
import { newUser } from '../users.js'
import { UNAVAILABLE, database, hold, open, roleOf, waiting } from './database.js'

/** A store as a role with so many connections, without tables. */
async function placeOf (t: Test, limit: number) {
  const { url, client, run } = await database(t)
  const role = await roleOf(t, url)
  const admit = async (limit: number) => run(`alter role ${role.name} connection limit ${limit}`)
  await run(`grant all on schema public to ${role.name}`)
  await admit(limit)
  const proxy = await startProxy(t, role.url)
  return { client, run, admit, proxy, store: open(t, proxy.url) }
}

t.test('the first start takes no connection more than the pool has, also where that is one', async t => {
  const { store } = await placeOf(t, 1)
  store.connect()

  t.ok(await new Accounts(store).createUser(newUser()))
  t.equal(await store.attempts?.count([{ key: 'a key', max: 1, timeWindow: 60_000 }]), null)
})

t.test('where the server admits three connections, other statements wait for one of them, and open none', async t => {
  const { client, run, proxy, store } = await placeOf(t, 3)
  await store.links(randomUUID())
  const release = await hold(client, 'lock table svc_auth_users')

  const created = Promise.all(Array.from({ length: 40 }, () => new Accounts(store).createUser(newUser())))
  t.ok(await isSoon(async () => await waiting(run) === 3))
  await release()

  t.equal((await created).length, 40)
  t.ok(proxy.connections <= 10)
})

t.test('the pool grows again when the server admits more', async t => {
  const { client, run, admit, store } = await placeOf(t, 2)
  await store.links(randomUUID())
  const create = async () => Promise.all(Array.from({ length: 5 }, () => new Accounts(store).createUser(newUser())))
  for (const connections of [2, 5]) {
    const release = await hold(client, 'lock table svc_auth_users')
    const created = create()
    t.ok(await isSoon(async () => await waiting(run) === connections))
    await release()
    await created
    await admit(10)
    advanceClock(t, 1000)
  }
})

t.test('where the server admits none, a call is unavailable at once, and served when there is room', async t => {
  const { admit, store } = await placeOf(t, 0)

  await t.rejects(store.links(randomUUID()), { ...UNAVAILABLE, cause: { message: /; lower the sizes of the connection pools/ } })
  await admit(1)

  t.strictSame(await store.links(randomUUID()), [])
})
