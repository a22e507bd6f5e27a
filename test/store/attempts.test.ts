import { PGlite } from '@electric-sql/pglite'
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite'
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import { MemoryAuthStore, type SqlEngine, SqlAuthStore, type SqlAuthStoreOptions, type AttemptCounter } from '../../lib/index.js'
import { type Attempt, capabilitiesOf } from '../../lib/session/store.js'
import { advanceClock } from '../helpers/clock.js'
import { clientOf, emptyDatabase, poolOf } from '../helpers/postgres.js'
import { isSoon } from '../helpers/soon.js'
import { some } from '../helpers/thorough.js'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

const BY_ADDRESS: Attempt = { key: 'login:203.0.113.7', max: 2, timeWindow: HOUR_MS }
const BY_ACCOUNT: Attempt = { key: 'account:203.0.113.7 ada@example.com', max: 20, timeWindow: MINUTE_MS }

t.test('a try is within its limit until the limit is used up, and then hears when the count starts again', async t => {
  const engines: Record<string, (t: Test, url: string) => Promise<string | SqlEngine>> = {
    'a URL': async (_t, url) => url,
    'a client of the package postgres': async (t, url) => clientOf(t, url),
    'Drizzle on postgres-js': async (t, url) => drizzlePostgresJs(clientOf(t, url)),
    'Drizzle on node-postgres': async (t, url) => drizzleNodePostgres(poolOf(t, url)),
    'Drizzle on PGlite': async t => drizzlePglite(await pgliteOf(t))
  }
  const url = await emptyDatabase(t)
  for (const [name, engine] of some(Object.entries(engines), 3)) {
    t.test(`on ${name}`, async t => {
      const { count } = counted(t, await engine(t, url))
      const limit = { ...BY_ADDRESS, key: name }

      t.strictSame([await count([limit]), await count([limit])], [null, null])

      const exceeded = await count([limit])
      t.equal(exceeded?.key, name)
      t.ok(Number(exceeded?.wait) > HOUR_MS - MINUTE_MS && Number(exceeded?.wait) <= HOUR_MS, String(exceeded?.wait))
    })
  }
})

t.test('of many attempts at once by several stores exactly as many are within a limit as it allows', async t => {
  const url = await emptyDatabase(t)
  const stores = Array.from({ length: 3 }, () => counted(t, url))

  const outcomes = await Promise.all(Array.from({ length: 90 }, (_, index) => stores[index % 3]?.count([BY_ACCOUNT])))

  t.equal(outcomes.filter(outcome => outcome === null).length, BY_ACCOUNT.max)
})

t.test('a try that is beyond a limit does not count for the limits after it', async t => {
  const { count, client } = await onDatabase(t)

  const outcomes = [await count([BY_ADDRESS, BY_ACCOUNT]), await count([BY_ADDRESS, BY_ACCOUNT]), await count([BY_ADDRESS, BY_ACCOUNT])]

  t.match(outcomes, [null, null, { key: BY_ADDRESS.key }])
  t.strictSame(await countsIn(client), [2, 3])
  t.match(await count([{ ...BY_ACCOUNT, max: 1 }, BY_ADDRESS]), { key: BY_ACCOUNT.key })
})

t.test('tries at once by limits that they share in part all end', async t => {
  const { count } = await onDatabase(t)
  const limits = (index: number): Attempt[] => ['address', 'network', 'account', 'accounts of the network']
    .map((name, level) => ({ key: `${name} ${level % 2 === 0 ? index % 5 : ''}`, max: 1000, timeWindow: HOUR_MS }))

  const outcomes = await Promise.all(Array.from({ length: 100 }, (_, index) => count(limits(index))))

  t.strictSame(outcomes, Array(100).fill(null))
})

t.test('a count starts again when its time is over by the clock of the server, whatever the clock of a process says', async t => {
  const { count, client } = await onDatabase(t)
  await count([BY_ADDRESS])
  await count([BY_ADDRESS])

  advanceClock(t, 2 * HOUR_MS)
  t.match(await count([BY_ADDRESS]), { key: BY_ADDRESS.key })
  await client`update svc_auth_attempts set resets_at = resets_at - ${HOUR_MS} where count > 1`

  t.equal(await count([BY_ADDRESS]), null)
  t.strictSame(await countsIn(client), [1, 1], 'beside the count of sweeps')
})

t.test('addresses and e-mails are not in the table', async t => {
  const { count, client } = await onDatabase(t)
  await count([BY_ADDRESS, BY_ACCOUNT])

  const keys = (await client`select key_hash from svc_auth_attempts`).map(row => String(row.key_hash))

  t.match(keys, [/^[\w-]{43}$/, /^[\w-]{43}$/])
})

t.test('a count writes its row alone, and no index', async t => {
  const client = clientOf(t, await emptyDatabase(t), { max: 1 })
  const { count } = counted(t, client)
  for (let index = 0; index < 50; index++) await count([BY_ACCOUNT])

  await client`select pg_stat_force_next_flush()`
  const [statistics] = await client`
    select n_tup_ins::int as inserted, n_tup_upd::int as updated, n_tup_hot_upd::int as hot from pg_stat_user_tables where relname = 'svc_auth_attempts'`
  t.match(statistics, { inserted: 1, updated: 49, hot: 49 })
})

t.test('counts that have expired are deleted in the background, once a minute for all processes', async t => {
  const { count, client, url } = await onDatabase(t)
  await count([BY_ADDRESS])
  const expire = async (keys: number): Promise<void> => {
    await client`insert into svc_auth_attempts select 'expired ' || n, 1, 0 from generate_series(1, ${keys}::int) as n`
  }
  const expired = async (): Promise<number> => {
    const [row] = await client`select count(*)::int as count from svc_auth_attempts where resets_at = 0`
    return Number(row?.count)
  }
  const other = new SqlAuthStore(url)
  await other.attempts?.count([BY_ACCOUNT])

  await expire(4100)
  await count([BY_ACCOUNT])
  t.equal(await expired(), 4100, 'not before a minute is over')

  advanceClock(t, MINUTE_MS)
  t.equal(await count([BY_ACCOUNT]), null)
  t.ok(await isSoon(async () => await expired() === 0))
  t.match(await countsIn(client), [1, 1, 3], 'those that are in use stay, beside the count of sweeps')

  await expire(1)
  await other.attempts?.count([BY_ACCOUNT])
  t.ok(await isSoon(async () => (await countsIn(client)).includes(2)), 'another process asks whether a sweep is due')
  await other.close()
  t.equal(await expired(), 1)
})

t.test('a sweep that fails fails no count', async t => {
  const { count, client } = await onDatabase(t)
  await count([BY_ADDRESS])
  await client`create function fails() returns trigger language plpgsql as $$ begin raise exception 'no deletion'; end $$`
  await client`create trigger fails before delete on svc_auth_attempts for each row execute function fails()`
  await client`insert into svc_auth_attempts values ('expired', 1, 0)`

  advanceClock(t, MINUTE_MS)

  t.equal(await count([BY_ADDRESS]), null)
  t.match(await count([BY_ADDRESS]), { key: BY_ADDRESS.key })
})

t.test('counts are unavailable without their table, and the failure says what to do', async t => {
  const { count, client, url } = await onDatabase(t)
  await count([BY_ADDRESS])
  await client`drop table svc_auth_attempts`

  await t.rejects(counted(t, url, { createTables: false }).count([BY_ADDRESS]), {
    code: 'unavailable', cause: { message: /"svc_auth_attempts" does not exist; run the migrations/ }
  })
})

t.test('counts are unavailable when the store is closed', async t => {
  const store = new SqlAuthStore(await emptyDatabase(t))
  await store.close()

  await t.rejects(async () => store.attempts?.count([BY_ADDRESS]), { code: 'unavailable', cause: { message: 'the store is closed' } })
})

t.test('a store on SQLite or in memory has no counts that processes share', async t => {
  t.equal(capabilitiesOf(new SqlAuthStore(':memory:')).attempts, null)
  t.equal(capabilitiesOf(new MemoryAuthStore()).attempts, null)
})

/** The counts of a store. */
function counted (t: Test, target: string | SqlEngine, options: SqlAuthStoreOptions = {}): AttemptCounter {
  const store = new SqlAuthStore(target, options)
  t.teardown(() => store.close())
  if (store.attempts === null) throw new Error('the store has no counts')
  return store.attempts
}

/** The counts of a store in an empty database, and a client beside it. */
async function onDatabase (t: Test) {
  const url = await emptyDatabase(t)
  const { count } = counted(t, url)
  return { url, count, client: clientOf(t, url) }
}

/** All counts in the table, in their order. */
async function countsIn (client: postgres.Sql): Promise<number[]> {
  return (await client`select count from svc_auth_attempts order by 1`).map(row => Number(row.count))
}

async function pgliteOf (t: Test): Promise<PGlite> {
  const client = await PGlite.create()
  t.teardown(() => client.close())
  return client
}
