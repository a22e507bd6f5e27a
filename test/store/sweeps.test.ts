import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { SqlAuthStore } from '../../lib/index.js'
import { PENDING_MS, RECORD_MS, SIGN_IN, USED_REGISTRATION, capabilitiesOf } from '../../lib/session/store.js'
import { DAY_MS } from '../../lib/base/values.js'
import { clientOf, emptyDatabase, query } from '../helpers/postgres.js'
import { isSoon } from '../helpers/soon.js'
import { STORES } from '../helpers/stores.js'
import { sqliteDatabase } from './database.js'

const NOW = Date.now()
const visitor = { user: null, data: null, userAgent: null, createdAt: NOW, expiresAt: NOW + 60_000 }

t.test('processes that sweep a part of the sessions each come to the last ones too', async t => {
  const { target, query } = sqliteDatabase(t)
  const open = (): SqlAuthStore => {
    const store = new SqlAuthStore(target)
    t.teardown(() => store.close())
    return store
  }
  await open().sessions.insert({ ...visitor, idHash: 'A' }, null)
  await query(`with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 1500)
    insert into svc_auth_sessions (id_hash, generation, created_at, seen_at, expires_at, signed_out)
    select 'B' || n, 0, ${NOW}, ${NOW}, ${NOW + 60_000}, 0 from numbers`)
  await query(`insert into svc_auth_sessions (id_hash, generation, created_at, seen_at, expires_at, signed_out)
    values ('~', 0, ${NOW}, ${NOW}, ${NOW - 1}, 0)`)
  const isThere = async (): Promise<boolean> => (await query("select 1 from svc_auth_sessions where id_hash = '~'")).length > 0

  let processes = 0
  while (await isThere() && processes < 60) {
    processes++
    const { sessions } = open()
    await sessions.insert({ ...visitor, idHash: `A${processes}` }, null)
    for (let turn = 0; turn < 20 && await isThere(); turn++) await setImmediate()
  }

  t.notOk(await isThere())
})

for (const [kind, makeStore] of Object.entries(STORES)) {
  t.test(`one-time entries with ${kind} are kept for the lifetime of their kind`, async t => {
    const { entries } = capabilitiesOf(await makeStore(t))
    const isThere = async (kind: string): Promise<boolean> => await entries?.count('owner', kind, 0) === 1
    const isSweptFrom = async (kind: string, time: number): Promise<boolean> => isSoon(async () => {
      // Sweeps are a minute apart, and none starts while another one runs.
      const startedAt = time += 60_000
      await entries?.put({ hash: `${startedAt}`, kind: 'any', owner: 'other', content: {}, startedAt }, 8)
      return await isThere(kind) === false
    })
    const entry = { owner: 'owner', content: {}, startedAt: NOW }
    await entries?.put({ ...entry, hash: 'minutes', kind: SIGN_IN }, 8)
    await entries?.put({ ...entry, hash: 'record', kind: USED_REGISTRATION }, 8)

    t.ok(await isSweptFrom(SIGN_IN, NOW + PENDING_MS))
    await entries?.put({ ...entry, hash: 'minutes', kind: SIGN_IN, startedAt: NOW + DAY_MS }, 8)
    t.ok(await isSweptFrom(SIGN_IN, NOW + DAY_MS + PENDING_MS))
    t.ok(await isThere(USED_REGISTRATION), 'the record of a use outlives the link, which lives for a day')
    t.ok(await isSweptFrom(USED_REGISTRATION, NOW + RECORD_MS))
  })
}

t.test('attack 174: a backlog that no statement removes in its time is removed all the same, and nothing else', async t => {
  const { url, client, entries, sweeps, warnings } = await onPostgres(t)
  await query(url, `insert into svc_auth_pending (hash, kind, owner, content, attempts, started_at)
    select md5(n::text), '${SIGN_IN}', 'other', '{}', 0, ${NOW - PENDING_MS} from generate_series(1, 30000) n`)
  // Slow on each machine.
  await query(url, 'create function slow() returns trigger language plpgsql as \'begin perform pg_sleep(0.001); return old; end\'')
  await query(url, 'create trigger slow before delete on svc_auth_pending for each row when (right(old.hash, 2) < \'04\') execute function slow()')
  await query(url, `insert into svc_auth_sessions (id_hash, generation, created_at, seen_at, expires_at, signed_out)
    select md5(n::text), 0, 0, 0, ${NOW} + n % 2 * ${DAY_MS}, false from generate_series(1, 1000) n`)
  await entries.put({ hash: 'record', kind: USED_REGISTRATION, owner: 'owner', content: {}, startedAt: NOW }, 8)
  await t.rejects(client`
    delete from svc_auth_pending where started_at <= ${NOW - PENDING_MS}`, { code: '57014' })
  const left = async () => (await query(url, `select (select count(*)::int from svc_auth_pending where owner = 'other') as entries,
    (select count(*)::int from svc_auth_sessions where expires_at <= ${NOW}) as sessions`))[0]
  const isSwept = async (): Promise<boolean> => {
    await sweeps.start()
    const { entries, sessions } = { ...await left() }
    return entries === 0 && sessions === 0
  }

  t.ok(await isSoon(isSwept), JSON.stringify({ ...await left(), warnings: warnings.length }))
  t.equal(await entries.count('owner', USED_REGISTRATION, 0), 1)
  t.equal((await query(url, 'select from svc_auth_sessions')).length, 500)
})

/** Follows the random hash at which a first sweep begins. */
const LAST = 'z'.repeat(40)

t.test('a sweep that does not get through is one warning, and that of another table goes on', async t => {
  const { url, sweeps, warnings, store } = await onPostgres(t)
  await query(url, `insert into svc_auth_pending (hash, kind, owner, content, attempts, started_at)
    values ('${LAST}', '${SIGN_IN}', 'other', '{}', 0, 0)`)
  await query(url, `insert into svc_auth_sessions (id_hash, generation, created_at, seen_at, expires_at, signed_out)
    values ('${LAST}', 0, 0, 0, 0, false)`)
  const holder = clientOf(t, url)

  await holder.begin(async holding => {
    await holding`select from svc_auth_pending where hash = ${LAST} for update`
    await sweeps.start()
    t.ok(await isSoon(async () => warnings.length > 0))
    t.match(warnings, [[{ err: { message: /statement timeout/ } }, /^Rows that are over could not be removed/]])
    t.equal(warnings.length, 1)
    t.ok(await isSoon(async () => (await query(url, `select from svc_auth_sessions where id_hash = '${LAST}'`)).length === 0))

    await sweeps.start()
    t.ok(await isSoon(async () => isWaiting(url)))
    await store.close()
    t.ok(await isSoon(async () => !await isWaiting(url)))
  })

  t.equal((await query(url, `select from svc_auth_pending where hash = '${LAST}'`)).length, 1)
  t.equal(warnings.length, 1, 'one that the end of the store interrupts is none')
})

/** A store whose statements may take a tenth of a second. */
async function onPostgres (t: Test) {
  const url = await emptyDatabase(t)
  const maker = new SqlAuthStore(url)
  await maker.migrate()
  await maker.close()
  const warnings: unknown[][] = []
  const client = clientOf(t, url, { connection: { statement_timeout: 100 } })
  const store = new SqlAuthStore(client)
  t.teardown(() => store.close())
  await store.report({ warn: (...line: unknown[]) => { warnings.push(line) }, error: () => {} })
  const { entries } = store
  let startedAt = NOW
  const sweeps = {
    /** Sweeps are a minute apart, and none starts while another one runs. */
    async start (): Promise<void> {
      await entries.put({ hash: 'sweep', kind: SIGN_IN, owner: 'sweep', content: {}, startedAt: startedAt += 60_000 }, 8)
    }
  }
  return { url, client, store, entries, sweeps, warnings }
}

async function isWaiting (url: string): Promise<boolean> {
  return (await query(url, "select from pg_stat_activity where wait_event_type = 'Lock'")).length > 0
}
