import { randomUUID } from 'node:crypto'
import t from 'tap'
import { Accounts } from '../../lib/accounts/accounts.js'
import { SqlAuthStore } from '../../lib/engines/sql.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { postgresDatabase } from './database.js'

const NOW = Date.now()
const HOUR_MS = 3_600_000
const USER_ID = '00000000-0000-4000-8000-00000000000a'
const user = { userId: USER_ID, provider: 'dev', claims: { sub: 'ada' }, generation: 0, proofs: { at: NOW, methods: [] } }
const USER = { ...user, email: null, emailVerified: false, name: null, claims: {}, link: { provider: 'dev', subject: 'ada', claims: { sub: 'ada' } } }

/** The columns that an index of the table reads: as a key, in an expression or in a condition. */
const INDEXED = `
  select distinct attname from pg_index join pg_attribute on attrelid = indrelid
    where indrelid = 'svc_auth_sessions'::regclass and (attnum = any (indkey) or exists (
      select from pg_depend where objid = indexrelid and refobjid = indrelid and refobjsubid = attnum
    ))
    order by attname`

/**
 * Postgres writes no index where an update changes none of these columns and the page has room (a heap-only
 * update). Whether a page has room depends on what else the server does; test/schema/ has the fillfactor.
 */
t.test('no update of a session on Postgres changes a column that an index reads', async t => {
  const { target, query } = postgresDatabase(await emptyDatabase(t))
  const store = new SqlAuthStore(target)
  t.teardown(() => store.close())
  await new Accounts(store).createUser(USER)
  const id = randomUUID()
  await store.sessions.insert({ idHash: id, user, data: null, userAgent: 'a browser', createdAt: NOW, expiresAt: NOW + HOUR_MS }, null)

  const updates = [
    () => store.sessions.update(id, { seenAt: NOW + 1 }),
    () => store.sessions.update(id, { data: { members: { cart: ['apples'] } }, seenAt: NOW + 2, expiresAt: NOW + 2 * HOUR_MS }),
    () => store.sessions.update(id, { user: { ...user, claims: { sub: 'ada', role: 'admin' }, generation: 1, proofs: { at: NOW + 2, methods: [] } } }),
    () => store.sessions.end(id, { now: NOW + 3, isSignOut: true })
  ]
  const changed = new Set<string>()
  for (const update of updates) {
    const [before = {}] = await query('select * from svc_auth_sessions')
    await update()
    const [after = {}] = await query('select * from svc_auth_sessions')
    for (const [column, value] of Object.entries(after)) if (JSON.stringify(value) !== JSON.stringify(before[column])) changed.add(column)
  }

  t.strictSame([...changed].sort(), ['claims', 'data', 'ended_at', 'expires_at', 'generation', 'proofs', 'seen_at', 'signed_out'])
  const indexed = (await query(INDEXED)).map(({ attname }) => String(attname))
  t.strictSame(indexed, ['id_hash', 'provider_session', 'provider_user', 'shown_user_id', 'user_id'])
  t.strictSame(indexed.filter(column => changed.has(column)), [])

  for (const index of ['(seen_at)', "((claims ->> 'sub'))", '(id_hash) where ended_at is null']) {
    await query(`create index added on svc_auth_sessions ${index}`)
    t.ok((await query(INDEXED)).some(({ attname }) => changed.has(String(attname))), `an index on ${index} would be noticed`)
    await query('drop index added')
  }
})
