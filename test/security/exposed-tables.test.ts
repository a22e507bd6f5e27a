/** Tables in a schema that an API serves: what the log says about them. */
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { SqlAuthStore } from '../../lib/index.js'
import { POSTGRES_MIGRATIONS } from '../../lib/engines/postgres/migrations.js'
import { databaseName } from '../helpers/embedded-postgres.js'
import { clientOf, emptyDatabase, query } from '../helpers/postgres.js'
import { roleOf } from '../store/postgres/database.js'
import { startLogged, whenLogged } from '../helpers/start-log.js'

const ADA = { email: 'ada@example.com' }

/** What Supabase sets up: roles for its API, and rights on each table of the schema. Roles are shared by the databases of a server. */
const ROLES = `do $$ declare name text; begin
  foreach name in array array['anon', 'authenticated', 'web_anon'] loop
    begin execute format('create role %I nologin', name); exception when duplicate_object or unique_violation then null; end;
  end loop;
end $$`

/** A database with these roles, and tables of a store that were made by it. */
async function databaseWithTables (t: Test): Promise<string> {
  const url = await emptyDatabase(t)
  await query(url, ROLES)
  const store = new SqlAuthStore(url)
  await store.findUser(ADA)
  await store.sessions.find('a hash', Date.now())
  await store.close()
  return url
}

/** The warnings of an application that starts on the database. */
async function warningsOn (t: Test, url: string): Promise<string[]> {
  const store = new SqlAuthStore(url)
  const { app, lines } = await startLogged(t, { store })
  await store.report(app.log)
  await app.close()
  return lines.map(({ level, msg }) => `${level} ${msg}`)
}

t.test('attack 140: what the defaults of Supabase let a role read is a warning when the tables are made, and at each start', async t => {
  const url = await emptyDatabase(t)
  await query(url, `${ROLES}; alter default privileges in schema public grant all on tables to anon, authenticated`)
  const store = new SqlAuthStore(url)
  const { lines } = await startLogged(t, { store })
  t.strictSame(lines, [], 'there is no table yet')

  await store.findUser(ADA)
  const [made] = await whenLogged(lines, 1)
  t.match(made, {
    level: 40, msg: /^anon, authenticated may read or write public\.svc_auth_credentials, .*public\.svc_auth_users: an API that serves the schema public/
  })
  await store.sessions.find('a hash', Date.now())
  const [, later] = await whenLogged(lines, 2)
  t.match(later, { level: 40, msg: /public\.svc_auth_sessions/ }, 'and when further tables are')
  await store.findUser(ADA)

  const [atStart = '', ...others] = await warningsOn(t, url)
  t.equal(atStart, `40 ${later?.msg}`)
  t.strictSame(others, [], 'once')
  t.equal(lines.length, 2)

  await t.test('its remedies are exact', async t => {
    const [, , sql = ''] = /^(.*), or run: (.*)$/.exec(atStart) ?? []
    t.match(sql, /alter table public\.svc_auth_users enable row level security; .*revoke all on public\.svc_auth_attempts, .* from anon, authenticated;$/)
    const statements = sql.split('; ')
    const revoke = statements.pop() ?? ''
    await query(url, statements.join('; '))
    t.strictSame(await warningsOn(t, url), [])
    t.equal(await store.findUser(ADA), null, 'the store still reads')
    await query(url, statements.join('; ').replaceAll('enable', 'disable'))
    t.equal((await warningsOn(t, url)).length, 1)
    await query(url, revoke)
    t.strictSame(await warningsOn(t, url), [])
  })

  await t.test('another schema', async t => {
    await query(url, 'drop schema if exists svc_auth cascade; create schema svc_auth')
    const elsewhere = `${url}?search_path=svc_auth`
    const store = new SqlAuthStore(elsewhere)
    t.teardown(() => store.close())
    await store.findUser(ADA)
    t.strictSame(await warningsOn(t, elsewhere), [])
  })
})

t.test('attack 140: each right of each role counts, on each table and view', async t => {
  const url = await databaseWithTables(t)
  t.strictSame(await warningsOn(t, url), [], 'roles without rights are none')
  await query(url, 'create view svc_auth_accounts as select email, pw_hash from svc_auth_users natural join svc_auth_credentials')
  await query(url, 'create view svc_auth_mine with (security_invoker = true) as select * from svc_auth_users')
  await query(url, 'create schema unused; create table unused.svc_auth_users (email text)')
  const reader = databaseName('reader')
  const cases: Array<[what: string, grant: string, undo: string, warning: RegExp | null]> = [
    ...['select', 'insert', 'update', 'delete'].map((right): [string, string, string, RegExp] => [
      right, `grant ${right} on svc_auth_users to anon`, `revoke ${right} on svc_auth_users from anon`, /^40 anon may read or write public\.svc_auth_users: /
    ]),
    ['a column', 'grant select (pw_hash) on svc_auth_credentials to authenticated', 'revoke select (pw_hash) on svc_auth_credentials from authenticated',
      /^40 authenticated may read or write public\.svc_auth_credentials: /],
    ['PUBLIC', 'grant select on svc_auth_sessions to public', 'revoke select on svc_auth_sessions from public',
      /^40 .*public.* may read or write public\.svc_auth_sessions: .* revoke all on public\.svc_auth_sessions from .*public.*;$/],
    ['a role that the role is a member of', `create role ${reader}; grant select on svc_auth_users to ${reader}; grant ${reader} to anon`,
      `drop owned by ${reader}; drop role ${reader}`, /^40 anon may read or write public\.svc_auth_users: /],
    ['a view', 'grant select on svc_auth_accounts to web_anon', 'revoke select on svc_auth_accounts from web_anon',
      /^40 web_anon may read or write public\.svc_auth_accounts: (?!.*row level security)/],
    ['a view of the invoker', 'grant select on svc_auth_mine to anon', 'revoke select on svc_auth_mine from anon', null],
    ['no use of the schema', 'grant select on svc_auth_users to anon; revoke usage on schema public from public',
      'grant usage on schema public to public; revoke select on svc_auth_users from anon', null],
    ['a right that reads and writes nothing', 'grant references, trigger on svc_auth_users to anon', 'revoke all on svc_auth_users from anon', null],
    ['row level security', 'grant all on svc_auth_users to anon; alter table svc_auth_users enable row level security', '', null],
    ['a role that bypasses it', 'alter role anon bypassrls', 'alter role anon nobypassrls', /^40 anon may read or write public\.svc_auth_users: /],
    ['a policy for others', 'create policy others on svc_auth_users to postgres using (true)', 'drop policy others on svc_auth_users', null],
    ['a policy for others than PUBLIC', 'grant select on svc_auth_users to public; create policy others on svc_auth_users to postgres using (true)',
      'revoke select on svc_auth_users from public; drop policy others on svc_auth_users', null],
    ['a policy', 'create policy visible on svc_auth_users for select to anon using (true)', 'drop policy visible on svc_auth_users', /^40 anon may/],
    ['a policy for all', 'create policy visible on svc_auth_users using (true)', 'drop policy visible on svc_auth_users', /^40 anon may/],
    ['a policy that restricts', 'create policy visible on svc_auth_users as restrictive to anon using (true)', 'drop policy visible on svc_auth_users', null],
    ['a table of another schema', 'grant usage on schema unused to anon; grant all on unused.svc_auth_users to anon', '', null]
  ]
  for (const [what, grant, undo, warning] of cases) {
    await query(url, grant)
    const warnings = await warningsOn(t, url)
    if (warning === null) t.strictSame(warnings, [], what)
    else t.match(warnings, [warning], what)
    if (undo !== '') await query(url, undo)
  }
})

t.test('attack 140: a role that does not own the tables is not told to hide them from itself', async t => {
  const url = await databaseWithTables(t)
  const role = await roleOf(t, url)
  await query(url, `grant select, insert, update, delete on all tables in schema public to ${role.name}; grant select on svc_auth_users to anon`)
  const store = new SqlAuthStore(role.url, { createTables: false })
  const { lines } = await startLogged(t, { store })
  const [line] = await whenLogged(lines, 1)
  t.match(line, { level: 40, msg: /or run: revoke all on public\.svc_auth_users from anon;$/ })
})

t.test('attack 140: rights of everyone count without these roles, on an engine of the application, for tables of its own migrations', async t => {
  const url = await emptyDatabase(t)
  await query(url, Object.values(POSTGRES_MIGRATIONS).flat().flatMap(({ sql }) => sql).join('\n'))
  await query(url, 'grant select on svc_auth_credentials to public')
  for (const target of [url, clientOf(t, url)]) {
    const store = new SqlAuthStore(target, { createTables: false })
    const { lines } = await startLogged(t, { store })
    t.match(await whenLogged(lines, 1), [{ level: 40, msg: /\bpublic\b.* may read or write public\.svc_auth_credentials: / }])
    t.equal(await store.status(randomUUID()), null)
  }
})
