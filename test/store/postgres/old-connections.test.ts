/** Attack 166: what a connection took over when it was opened, and when it is replaced. */
import { randomUUID } from 'node:crypto'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import { Accounts } from '../../../lib/accounts/accounts.js'
import { Connection, Hosts } from '../../../lib/engines/postgres/connection.js'
import { Pool } from '../../../lib/engines/postgres/pool.js'
import { advanceClock, hastenTime } from '../../helpers/clock.js'
import { clientOf } from '../../helpers/postgres.js'
import { Ear, openStore, settled, whenListening } from '../../helpers/revocations.js'
import { isSoon } from '../../helpers/soon.js'
import { startProxy } from '../../helpers/tcp-proxy.js'
import { newUser } from '../users.js'
import { type Run, THE_TABLES, UNAVAILABLE, database, open, roleOf, tables } from './database.js'

const HOUR_MS = 3_600_000
/** For so long a new connection is kept, whatever it answers. */
const YOUNG_MS = 1000
const READ_ONLY = 'default_transaction_read_only'

/** A database with tables, and a role that may use them and make others; `setting` changes what its new connections begin with. */
async function placeOf (t: Test) {
  const { url, run } = await database(t)
  const first = open(t, url)
  await first.links(randomUUID())
  await first.close()
  const role = await roleOf(t, url)
  await run(`create schema elsewhere; grant all on schema public, elsewhere to ${role.name}; grant all on all tables in schema public to ${role.name}`)
  const setting = async (name: string, value: string) => run(`alter role ${role.name} set ${name} = ${value}`)
  return { url, run, role, setting }
}

async function pidsOf (run: Run): Promise<unknown[]> {
  const rows = await run("select pid from pg_stat_activity where application_name = 'fastify-svc-auth' and datname = current_database()")
  return rows.map(({ pid }) => pid)
}

t.test('attack 166: a database that was read-only for a while is written to again, by each connection, without a restart', async t => {
  const { role, setting } = await placeOf(t)
  await setting(READ_ONLY, 'on')
  const store = open(t, role.url)
  const createUsers = async () => Promise.allSettled(Array.from({ length: 5 }, () => new Accounts(store).createUser(newUser())))

  t.match(await createUsers(), Array(5).fill({ status: 'rejected', reason: { ...UNAVAILABLE, cause: { message: /default_transaction_read_only = off$/ } } }))
  await setting(READ_ONLY, 'off')
  advanceClock(t, YOUNG_MS)

  t.match(await createUsers(), Array(5).fill({ status: 'fulfilled' }))
})

t.test('attack 166: a write that such a connection refuses is served by a new one, and the idle ones are ended', async t => {
  const { run, role, setting } = await placeOf(t)
  await setting(READ_ONLY, 'on')
  const store = open(t, role.url)
  await Promise.all(Array.from({ length: 5 }, () => store.users({ after: null, limit: 1, order: 'id', search: null, blocked: null })))
  const before = await pidsOf(run)
  t.equal(before.length, 5)
  await setting(READ_ONLY, 'off')
  advanceClock(t, YOUNG_MS)

  t.ok(await new Accounts(store).createUser(newUser()))

  t.ok(await isSoon(async () => !(await pidsOf(run)).some(pid => before.includes(pid))))
})

t.test('attack 166: of writes that are sent together, only those that are refused are sent once more', async t => {
  const { run, role } = await placeOf(t)
  await run(`create table public.written (); grant all on public.written to ${role.name}; create table public.refused ()`)
  const pool = await Pool.open(role.url)
  t.teardown(() => pool.close())
  const insert = async (table: string) => pool.batched('entries', async client => client.unsafe(`insert into ${table} default values`))
  await insert('written')
  const before = await pidsOf(run)
  advanceClock(t, YOUNG_MS)

  const [one, other, last] = await Promise.allSettled(['written', 'refused', 'written'].map(insert))

  t.match([one, other, last], [{ status: 'fulfilled' }, { status: 'rejected', reason: { code: '42501' } }, { status: 'fulfilled' }])
  t.strictSame(await run('select count(*)::int from written'), [{ count: 3 }])
  t.notSame(await pidsOf(run), before)
})

t.test('attack 166: a request that is sent together with others is served too', async t => {
  const { role, setting } = await placeOf(t)
  await setting(READ_ONLY, 'on')
  const store = open(t, `${role.url}?max=1`)
  const count = async () => store.attempts?.count([{ key: 'a key', max: 5, timeWindow: 60_000 }])
  await t.rejects(count(), UNAVAILABLE)
  await setting(READ_ONLY, 'off')
  advanceClock(t, YOUNG_MS)

  t.equal(await count(), null)
})

t.test('attack 166: while the database stays read-only, requests open no connection each', async t => {
  const { run, role, setting } = await placeOf(t)
  await setting(READ_ONLY, 'on')
  const store = open(t, `${role.url}?max=1`)
  const refused = async () => t.rejects(new Accounts(store).createUser(newUser()), UNAVAILABLE)
  await refused()
  const before = await pidsOf(run)

  for (let round = 0; round < 5; round++) await refused()
  t.strictSame(await pidsOf(run), before)

  advanceClock(t, YOUNG_MS)
  await refused()
  t.notSame(await pidsOf(run), before)
})

t.test('attack 166: with a wrong search_path no table is made, and reads are answered as soon as it is mended', async t => {
  const { url, run, role, setting } = await placeOf(t)
  const proxy = await startProxy(t, url)
  const store = open(t, role.url.replace(new URL(url).host, new URL(proxy.url).host))
  const ada = newUser({ email: 'ada@example.com' })
  await new Accounts(store).createUser(ada)
  await setting('search_path', 'elsewhere')
  proxy.reset()

  const wrong = { ...UNAVAILABLE, cause: { message: /svc_auth_users is in the schema public, but tables would be made in elsewhere; let search_path begin/ } }
  for (let round = 0; round < 2; round++) await t.rejects(store.findUser({ userId: ada.userId }), wrong)
  await t.rejects(new Accounts(store).createUser(newUser()), wrong)
  await t.rejects(store.sessions.find('a hash', Date.now()), UNAVAILABLE, 'nor tables that are used for the first time')
  await setting('search_path', 'missing')
  proxy.reset()
  await t.rejects(store.findUser({ userId: ada.userId }), UNAVAILABLE)
  t.strictSame(await tables(run, 'elsewhere'), [])

  // The connections that there are have the wrong one still.
  await setting('search_path', 'public')
  advanceClock(t, YOUNG_MS)
  t.hasStrict(await store.findUser({ userId: ada.userId }), { userId: ada.userId })
  t.ok(await new Accounts(store).createUser(newUser()))
  t.strictSame((await tables(run)), THE_TABLES)
})

t.test('attack 166: a read that finds no table is asked once more, on a new connection, before tables are made', async t => {
  const { url, role, setting } = await placeOf(t)
  const proxy = await startProxy(t, url)
  const store = open(t, role.url.replace(new URL(url).host, new URL(proxy.url).host))
  await store.links(randomUUID())
  await setting('search_path', 'elsewhere')
  proxy.reset()
  await t.rejects(store.links(randomUUID()), UNAVAILABLE)
  // Connects with the wrong one, and is idle.
  await store.tables().catch(() => {})
  await setting('search_path', 'public')
  advanceClock(t, YOUNG_MS)
  let migrations = 0
  proxy.hear = data => { if (data.includes('do $svc_auth$')) migrations++ }

  t.strictSame(await store.links(randomUUID()), [])

  t.equal(migrations, 0)
})

t.test('attack 166: a connection is used for an hour at most, those of several processes for different times', async t => {
  const { url, run } = await database(t)
  const store = open(t, `${url}?max=1`)
  await store.links(randomUUID())
  const before = await pidsOf(run)
  t.equal(before.length, 1)
  const hosts = new Hosts(postgres, url)
  const others = Array.from({ length: 100 }, () => new Connection(hosts, { hasTimeLimit: true }))
  const old = () => others.filter(({ isOld }) => isOld).length

  advanceClock(t, HOUR_MS / 2 - 60_000)
  await store.links(randomUUID())
  t.strictSame(await pidsOf(run), before)
  t.equal(old(), 0)
  advanceClock(t, HOUR_MS / 4)
  t.ok(old() > 0 && old() < 100)
  advanceClock(t, HOUR_MS / 4 + 60_000)
  t.equal(old(), 100)

  await store.links(randomUUID())
  t.ok(await isSoon(async () => (await pidsOf(run)).length === 1))
  t.not((await pidsOf(run))[0], before[0])
})

t.test('attack 166: the connection that listens is replaced too, and what it missed is heard', async t => {
  const { url, run } = await database(t)
  const store = openStore(t, url)
  await store.findUser({ email: 'ada@example.com' })
  await settled(t, url)
  hastenTime(t, 5)
  const ear = await Ear.of(store)
  await whenListening(url, 1)
  await settled(t, url, ear)
  ear.heard.splice(0)
  const listening = async () => (await run("select pid from pg_stat_activity where query ~ '^(listen|select) .?svc_auth_revocations.?$'"))[0]?.pid
  const before = await listening()

  advanceClock(t, HOUR_MS)
  const userId = randomUUID()
  await run(`insert into svc_auth_revocations values (gen_random_uuid(), '${userId}', extract(epoch from clock_timestamp()) * 1000 - 2000)`)
  await ear.hears(userId)
  t.ok(await isSoon(async () => ![before, undefined].includes(await listening())))

  t.strictSame(ear.heard.splice(0), [userId])
  await settled(t, url, ear)
  t.strictSame(ear.notes, [])
})

t.test('attack 166: a client of the application is its own, and is not ended', async t => {
  const { run, role, setting } = await placeOf(t)
  await setting(READ_ONLY, 'on')
  const client = clientOf(t, role.url, { max: 1 })
  const store = open(t, client)
  const [{ pid } = {}] = await client`select pg_backend_pid() as pid`
  await t.rejects(new Accounts(store).createUser(newUser()), UNAVAILABLE)

  advanceClock(t, HOUR_MS)
  t.equal(await store.findUser({ userId: randomUUID() }), null)
  t.strictSame([...await client`select pg_backend_pid() as pid`], [{ pid }])
  t.strictSame(await run(`select count(*)::int as count from pg_stat_activity where pid = ${Number(pid)}`), [{ count: 1 }])
})
