/** Attack 165: a role that may not read and write every row of the tables: what the log says about it. */
import t, { type Test } from 'tap'
import { SqlAuthStore } from '../../lib/index.js'
import { emptyDatabase, query } from '../helpers/postgres.js'
import { startLogged, whenLogged } from '../helpers/start-log.js'
import { roleOf } from '../store/postgres/database.js'

const RIGHTS = 'select, insert, update, delete'

/** Tables, a role that does not own them, and a function that logs a start as this role. */
async function placeOf (t: Test, hasTables = true) {
  const url = await emptyDatabase(t)
  if (hasTables) {
    const store = new SqlAuthStore(url)
    await store.migrate()
    await store.close()
  }
  const role = await roleOf(t, url)
  await query(url, `grant usage on schema public to ${role.name}; grant ${RIGHTS} on all tables in schema public to ${role.name}`)
  const start = async (createTables = true): Promise<string[]> => {
    const store = new SqlAuthStore(role.url, { createTables })
    const { app, lines } = await startLogged(t, { store })
    await store.report(app.log)
    await store.report(app.log)
    await app.close()
    return [...new Set(lines.map(({ level, msg, err }) => `${level} ${err?.message ?? msg}`))]
  }
  return { role: role.name, run: async (statement: string) => query(url, statement), start }
}

t.test('attack 165: a role without CREATE, where tables are missing, is an error with the grant', async t => {
  const { role, run, start } = await placeOf(t, false)

  const [line = '', ...others] = await start()
  t.match(line, `50 Postgres: a right is missing: grant create on schema public to ${role}; grant this role`)
  t.strictSame(others, [])

  await run(`grant create on schema public to ${role}`)
  t.strictSame(await start(), [])
})

t.test('attack 165: a role that lacks a right on a table is an error with the grant, for each of the four', async t => {
  const { role, run, start } = await placeOf(t)
  t.strictSame(await start(), [])
  for (const right of RIGHTS.split(', ')) {
    await run(`revoke ${right} on svc_auth_credentials from ${role}`)
    const lines = await start()
    t.equal(lines.length, 1)
    t.match(lines[0], `50 Postgres: a right is missing: grant ${RIGHTS} on public.svc_auth_credentials to ${role}; `)
    await run(`grant ${RIGHTS} on public.svc_auth_credentials to ${role}`)
    t.strictSame(await start(), [])
  }
})

t.test('attack 165: a database that is read-only, and a search_path without a schema, are errors with the remedy', async t => {
  const { role, run, start } = await placeOf(t)
  await run(`alter role ${role} set default_transaction_read_only = on`)
  t.match(await start(), [/^50 Postgres: transactions are read-only; connect to the primary.*default_transaction_read_only = off/])
  await run(`alter role ${role} set default_transaction_read_only = off; alter role ${role} set search_path = missing`)
  for (const createTables of [true, false]) {
    t.match(await start(createTables), [/^50 Postgres: no schema of the search_path exists, or this role has no USAGE on it; let search_path begin/])
  }
})

t.test('attack 165: row level security that may hide rows is one warning, and a policy for every row ends it', async t => {
  const { role, run, start } = await placeOf(t)
  await run('alter table svc_auth_users enable row level security; alter table svc_auth_sessions enable row level security')
  const [line = '', ...others] = await start()
  t.match(line, `40 Row level security may hide rows of public.svc_auth_sessions, public.svc_auth_users from the role ${role}, `)
  t.match(line, `create policy svc_auth on … for all to ${role} using (true)`)
  t.strictSame(others, [])

  await run(`create policy svc_auth on svc_auth_sessions for all to ${role} using (true)`)
  const cases: Array<[policy: string, isFine: boolean]> = [
    ['for all using (true)', true],
    ['for all using (true) with check (true)', true],
    ['for all to postgres using (true)', false],
    ['for select using (true)', false],
    ['for all using (email is not null)', false],
    ['for all using (true) with check (email is not null)', false],
    ['as restrictive for all using (true)', false]
  ]
  for (const [policy, isFine] of cases) {
    await run(`create policy one on svc_auth_users ${policy}`)
    t.match(await start(), isFine ? [] : [/^40 Row level security may hide rows of public\.svc_auth_users from/], policy)
    if (isFine) t.strictSame(await start(), [], policy)
    await run('drop policy one on svc_auth_users')
  }
  await run(`alter role ${role} bypassrls`)
  t.strictSame(await start(), [])
})

t.test('attack 165: a line of the log follows when the tables are first used', async t => {
  const url = await emptyDatabase(t)
  const store = new SqlAuthStore(url)
  const { lines } = await startLogged(t, { store })
  await store.migrate()
  await query(url, 'alter table svc_auth_users enable row level security; alter table svc_auth_users force row level security')
  const role = await roleOf(t, url)
  await query(url, `grant all on all tables in schema public to ${role.name}`)
  const other = new SqlAuthStore(role.url)
  const { lines: seen } = await startLogged(t, { store: other })
  await other.findUser({ email: 'ada@example.com' })
  t.match(await whenLogged(seen, 1), [{ level: 40, msg: /^Row level security may hide rows of public\.svc_auth_users/ }])
  t.strictSame(lines, [])
})
