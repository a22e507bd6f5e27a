import { randomUUID } from 'node:crypto'
import t from 'tap'
import { Accounts } from '../../lib/accounts/accounts.js'
import { MAX_LISTED } from '../../lib/session/store.js'
import { SqlAuthStore } from '../../lib/engines/sql.js'
import { openSession } from '../helpers/shared-apps.js'
import { startApp } from '../helpers/app.js'
import { advanceClock } from '../helpers/clock.js'
import { OwnProvider } from '../helpers/own-provider.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { isSoon } from '../helpers/soon.js'
import { postgresDatabase, sqliteDatabase } from '../store/database.js'

t.setTimeout(600_000)

const MINUTE_MS = 60_000
const NOW = Date.now()

t.test('10,000 visits of crawlers to a login leave a short row each and no session, gone after ten minutes', async t => {
  const { target, query } = postgresDatabase(await emptyDatabase(t))
  const app = await startApp(t, {
    baseUrl: 'https://app.example', providers: [new OwnProvider('mine')], store: new SqlAuthStore(target), rateLimit: false
  })
  const visit = async (): Promise<number> => (await app.inject('/auth/mine/login')).statusCode

  const crawlers = Array.from({ length: 20 }, async () => {
    for (let visits = 0; visits < 500; visits++) if (await visit() !== 302) t.fail('a visit was refused')
  })
  await Promise.all(crawlers)

  const [{ pending, longest, sessions } = {}] = await query(`select
    (select count(*)::int from svc_auth_pending) as pending,
    (select max(pg_column_size(svc_auth_pending))::int from svc_auth_pending) as longest,
    (select count(*)::int from svc_auth_sessions) as sessions`)
  t.strictSame({ pending, sessions }, { pending: 10_000, sessions: 0 })
  t.ok(Number(longest) < 700, `the longest row has ${longest} bytes`)

  advanceClock(t, 10 * MINUTE_MS + 1)
  await visit()
  t.ok(await isSoon(async () => (await query('select from svc_auth_pending')).length === 1), 'the latest alone is there')
})

t.test('among a million sessions each is found by an index, and one sweep removes those that are over a page after the other', async t => {
  const { target, query } = postgresDatabase(await emptyDatabase(t))
  const store = new SqlAuthStore(target)
  t.teardown(() => store.close())
  const { sessions } = store
  const userId = randomUUID()
  const link = { provider: 'dev', subject: 'ada', claims: { sub: 'ada' } }
  await new Accounts(store).createUser({ userId, email: null, emailVerified: false, name: null, claims: {}, link })
  const user = { userId, provider: 'dev', claims: { sub: 'ada' }, generation: 0, proofs: { at: NOW, methods: [] } }
  const session = { idHash: 'the one', user, data: null, userAgent: null, createdAt: NOW, expiresAt: NOW + 100 * MINUTE_MS }
  await sessions.insert(session, null)
  await query(`insert into svc_auth_users (user_id, claims, extras)
    select md5(n::text)::uuid, '{}', '{}' from generate_series(1, 10000) as n`)
  // Half of them expire in five minutes.
  await query(`insert into svc_auth_sessions
    select md5(n::text), md5((1 + n % 10000)::text)::uuid, 'dev', '{"sub": "ada"}', 0, '{"at": 0, "methods": []}', null, 'a browser',
      ${NOW}, ${NOW} - n, ${NOW} + case when n % 2 = 0 then 5 else 100 end * ${MINUTE_MS}, null, false, null
    from generate_series(1, 1000000) as n`)
  await query('vacuum analyze svc_auth_sessions')
  const countRows = async (): Promise<number> => Number((await query('select count(*)::int as count from svc_auth_sessions'))[0]?.count)
  const [{ other } = {}] = await query('select user_id as other from svc_auth_sessions where id_hash = md5(7::text)')

  t.equal((await openSession(sessions, 'the one', NOW))?.user?.userId, userId)
  t.equal((await sessions.ofUser(String(other), 0, NOW)).length, MAX_LISTED)
  const plan = await query(`explain select * from svc_auth_sessions where user_id = '${userId}' and ended_at is null
    order by seen_at desc limit ${MAX_LISTED}`)
  t.match(JSON.stringify(plan), /svc_auth_sessions_user/)

  const before = await countRows()
  await sessions.insert({ ...session, idHash: 'later', createdAt: NOW + 10 * MINUTE_MS }, null)
  t.ok(await isSoon(async () => before - await countRows() > 20_000), 'half of each page, of 1,000 rows')
  t.equal((await openSession(sessions, 'later', NOW))?.user?.userId, userId, 'it is found meanwhile')
  t.equal((await openSession(sessions, 'the one', NOW))?.user?.userId, userId)
})

t.test('a sweep of an SQLite file looks at 1,000 sessions, one part after the other', async t => {
  const { target, query } = sqliteDatabase(t)
  const store = new SqlAuthStore(target)
  t.teardown(() => store.close())
  const pending = { kind: 'sign-in', owner: 'a visitor', content: {}, startedAt: NOW }
  await store.entries.put({ ...pending, hash: 'the first' }, 8)
  await query(`with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 2500)
    insert into svc_auth_sessions (id_hash, generation, created_at, seen_at, expires_at, signed_out)
    select 'session ' || n, 0, ${NOW}, ${NOW}, ${NOW + MINUTE_MS}, 0 from numbers`)

  const counts = [2500]
  await isSoon(async () => {
    pending.startedAt += 2 * MINUTE_MS
    await store.entries.put({ ...pending, hash: `at ${pending.startedAt}` }, 8)
    const left = (await query('select 1 from svc_auth_sessions')).length
    if (left !== counts.at(-1)) counts.push(left)
    return left === 0
  })

  t.equal(counts.at(-1), 0)
  // Two parts where the first one was the last of the table.
  t.ok(counts.every((left, index) => (counts[index - 1] ?? left) - left <= 2000), `${counts} are left`)
})
