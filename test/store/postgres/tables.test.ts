import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { drizzle } from 'drizzle-orm/node-postgres'
import { migrate } from 'drizzle-orm/node-postgres/migrator'
import t from 'tap'
import { Accounts } from '../../../lib/accounts/accounts.js'
import { SqlAuthStore } from '../../../lib/engines/sql.js'
import { hastenTime } from '../../helpers/clock.js'
import { clientOf, poolOf } from '../../helpers/postgres.js'
import { isSoon } from '../../helpers/soon.js'
import { newUser } from '../users.js'
import { THE_TABLES, THE_THREE_TABLES, UNAVAILABLE, database, open, roleOf, tables } from './database.js'

const MIGRATIONS_FOLDER = fileURLToPath(new URL('../../../drizzle/postgres', import.meta.url))

t.test('the tables', async t => {
  t.test('the tables are three and the journal of their migrations, and nothing else is made', async t => {
    const { url, run } = await database(t)

    await open(t, url).findUser({ email: 'ada@example.com' })

    t.strictSame(await tables(run), THE_TABLES)
    t.strictSame(await run("select nspname from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'"), [{ nspname: 'public' }])
    t.strictSame(await run("select relname from pg_class where relnamespace = 'public'::regnamespace and relkind not in ('r', 'i', 'v')"), [])
    t.strictSame(await run("select proname from pg_proc where pronamespace = 'public'::regnamespace"), [])
  })

  t.test('the tables are made by the first query, not by the constructor', async t => {
    const { url, run } = await database(t)

    await new SqlAuthStore(url).close() // It would wait for what the constructor had begun.

    t.strictSame(await tables(run), [])
    await open(t, url).findUser({ email: 'ada@example.com' })
    t.strictSame(await tables(run), THE_TABLES)
  })

  t.test('the tables are made once: another store needs no right to make tables', async t => {
    const { url, run } = await database(t)
    const ada = newUser({ email: 'ada@example.com' })
    await new Accounts(open(t, url)).createUser(ada)
    const role = await roleOf(t, url)
    await run(`grant select, insert, update, delete on all tables in schema public to ${role.name}`)

    const found = await open(t, role.url).findUser({ email: 'ada@example.com' })

    t.hasStrict(found, { userId: ada.userId })
    t.hasStrict(await new Accounts(open(t, role.url)).createUser(newUser()), { name: 'Somebody' })
  })

  t.test('a role without the right to delete from the tables deletes no user', async t => {
    const { url, run } = await database(t)
    const ada = newUser({ email: 'ada@example.com' })
    await new Accounts(open(t, url)).createUser(ada)
    const role = await roleOf(t, url)
    await run(`grant select, insert, update on all tables in schema public to ${role.name}`)

    await t.rejects(new Accounts(open(t, role.url)).deleteUser(ada.userId), UNAVAILABLE)

    t.hasStrict(await open(t, role.url).findUser({ email: 'ada@example.com' }), { userId: ada.userId })
  })

  t.test('the tables are not made with createTables: false, and without them every query says what to do', async t => {
    const { url, run } = await database(t)
    const store = open(t, url, { createTables: false })

    await t.rejects(store.findUser({ email: 'ada@example.com' }), { ...UNAVAILABLE, cause: { message: /run the migrations/ } })
    await t.rejects(new Accounts(store).createUser(newUser()), { ...UNAVAILABLE, cause: { message: /run the migrations/ } })

    t.strictSame(await tables(run), [])
  })

  t.test('with createTables: false a store needs no right but those that its calls use', async t => {
    const { url, run } = await database(t)
    await open(t, url).links(randomUUID())
    const role = await roleOf(t, url)
    await run(`grant select on svc_auth_users to ${role.name}`)

    t.equal(await open(t, role.url, { createTables: false }).findUser({ email: 'ada@example.com' }), null)
    await t.rejects(open(t, role.url).findUser({ email: 'ada@example.com' }), UNAVAILABLE, 'else the journal of migrations is read')
  })

  t.test("tables that the application's own migrations made are taken as they are", async t => {
    const { url, run } = await database(t)
    const db = drizzle(poolOf(t, url))
    await migrate(db, { migrationsFolder: MIGRATIONS_FOLDER, migrationsSchema: 'app', migrationsTable: 'journal' })
    const asTheyWere = await tables(run)

    for (const options of [{ createTables: false }, { createTables: true }, {}]) {
      const ada = newUser()
      t.ok(await new Accounts(open(t, db, options)).createUser(ada))
      t.hasStrict(await open(t, url, options).findUser(ada.link), { userId: ada.userId })
    }

    const names = THE_THREE_TABLES.map(({ table }) => table)
    t.strictSame(asTheyWere.filter(({ table }) => names.includes(String(table))), THE_THREE_TABLES)
    t.strictSame(await tables(run), asTheyWere)
  })

  for (const parameter of ['options=-c%20search_path%3Dauth', 'search_path=auth']) {
    t.test(`the tables are in the schema that the URL names by ${parameter}`, async t => {
      const { url, run } = await database(t)
      await run('create schema auth')
      const ada = newUser({ email: 'ada@example.com' })

      await new Accounts(open(t, `${url}?${parameter}`)).createUser(ada)

      t.strictSame(await tables(run, 'auth'), THE_TABLES)
      t.strictSame(await tables(run, 'public'), [])
      t.strictSame(await run('select email from auth.svc_auth_users'), [{ email: 'ada@example.com' }])
    })
  }

  t.test('tables of a later schema of the search path are not used as those of the first', async t => {
    const { url, run } = await database(t)
    await run('create schema auth')
    await new Accounts(open(t, url)).createUser(newUser({ email: 'ada@example.com' }))
    const both = `${url}?search_path=auth,public`

    await t.rejects(open(t, both).findUser({ email: 'ada@example.com' }), {
      ...UNAVAILABLE,
      cause: { message: /^Postgres: svc_auth_users is in the schema public, but tables would be made in auth; let search_path begin/ }
    })
    t.strictSame(await tables(run, 'auth'), [])
    t.ok(await open(t, both, { createTables: false }).findUser({ email: 'ada@example.com' }))
    t.ok(await open(t, `${url}?search_path=public,auth`).findUser({ email: 'ada@example.com' }))
    await t.rejects(
      open(t, `${url}?search_path=missing`).findUser({ email: 'ada@example.com' }),
      { ...UNAVAILABLE, cause: { message: /; let search_path begin with the schema of the tables/ } }
    )
  })

  t.test('the tables of two schemas do not refer to each other', async t => {
    const { url, run } = await database(t)
    await run('create schema auth')
    const ada = newUser({ email: 'ada@example.com' })

    await new Accounts(open(t, url)).createUser(ada)
    const created = await new Accounts(open(t, `${url}?search_path=auth`)).createUser(ada)

    t.hasStrict(created, { userId: ada.userId })
    t.strictSame(await run(`
      select conrelid::regclass::text as table, confrelid::regclass::text as refers_to from pg_constraint where contype = 'f' order by 1`), [
      { table: 'auth.svc_auth_credentials', refers_to: 'auth.svc_auth_users' },
      { table: 'auth.svc_auth_provider_links', refers_to: 'auth.svc_auth_users' },
      { table: 'svc_auth_credentials', refers_to: 'svc_auth_users' },
      { table: 'svc_auth_provider_links', refers_to: 'svc_auth_users' }
    ])
  })

  t.test('the tables are made all or none: one that is in the way makes every query unavailable until it is gone', async t => {
    const { url, run } = await database(t)
    const store = open(t, url)
    await run('create table svc_auth_provider_links (something_else text)')

    await t.rejects(store.findUser({ email: 'ada@example.com' }), { ...UNAVAILABLE, cause: Error })
    t.strictSame(await tables(run), [{ table: 'svc_auth_provider_links', columns: 'something_else text' }])
    await run('drop table svc_auth_provider_links')

    t.ok(await new Accounts(store).createUser(newUser()))
  })

  t.test('the tables are brought up to date: a migration that the journal does not name is run', async t => {
    const { url, run } = await database(t)
    await run('create table svc_auth_migrations (name text primary key)')
    await run("insert into svc_auth_migrations values ('an earlier migration')")

    t.ok(await new Accounts(open(t, url)).createUser(newUser()))

    t.equal((await run('select name from svc_auth_migrations')).length, 2)
  })

  t.test('tables that could not be made are made by a later query', async t => {
    const { url, run } = await database(t)
    const role = await roleOf(t, url)
    const store = open(t, role.url)

    await t.rejects(new Accounts(store).createUser(newUser()), { ...UNAVAILABLE, cause: { message: /grant this role what is missing/ } })
    await run(`grant create on schema public to ${role.name}`)

    t.ok(await new Accounts(store).createUser(newUser()))
    t.strictSame(await tables(run), THE_TABLES)
  })
})

t.test('a migration that takes longer than a request may goes on, without the limits of requests', async t => {
  const { url, run } = await database(t)
  const { name, url: limited } = await roleOf(t, url)
  // The owner of the database limits its statements too.
  await run(`grant create, usage on schema public to ${name}; alter role ${name} set statement_timeout = '1s'`)
  const migrating = clientOf(t, url)
  const lock = await migrating.reserve()
  await lock`select pg_advisory_lock(7320118454)`
  const store = open(t, limited)

  const asUsual = hastenTime(t, 10)
  await t.rejects(store.findUser({ email: 'ada@example.com' }), UNAVAILABLE)
  asUsual()
  const [statement] = await run("select 1 from pg_stat_activity where wait_event = 'advisory' and query like '%do $svc_auth$%'")
  t.ok(statement, 'the migration still waits when the request has been answered')
  await lock`select pg_advisory_unlock(7320118454)`
  lock.release()

  t.ok(await isSoon(async () => await store.findUser({ email: 'ada@example.com' }).catch(() => undefined) === null))
})

t.test('a server that takes no writes is named in the log, with what to do', async t => {
  const { url, run } = await database(t)
  await open(t, url).findUser({ email: 'ada@example.com' })
  const { name, url: readOnly } = await roleOf(t, url)
  await run(`grant select, insert on all tables in schema public to ${name}; alter role ${name} set default_transaction_read_only = on`)

  await t.rejects(new Accounts(open(t, readOnly)).createUser(newUser()), {
    ...UNAVAILABLE,
    cause: { message: /^Postgres: cannot execute .+ in a read-only transaction; connect to the primary.+target_session_attrs=read-write/ }
  })
})

t.test('a full disk of the server is named in the log, with what to do', async t => {
  const { url, run } = await database(t)
  await open(t, url).findUser({ email: 'ada@example.com' })
  await run(`create function full_disk() returns trigger language plpgsql as $$
    begin raise exception 'could not extend file' using errcode = '53100'; end $$`)
  await run('create trigger full_disk before insert on svc_auth_users execute function full_disk()')

  await t.rejects(new Accounts(open(t, url)).createUser(newUser()), {
    ...UNAVAILABLE,
    cause: { message: 'Postgres: could not extend file; make room on the disk of the server' }
  })
})

t.test('a store that is closed while its tables are made waits for them no longer', async t => {
  const { url, run } = await database(t)
  const lock = await clientOf(t, url).reserve()
  await lock`select pg_advisory_lock(7320118454)`
  const store = new SqlAuthStore(url)
  const refused = t.rejects(store.findUser({ email: 'ada@example.com' }), UNAVAILABLE)
  const isMigrating = async () => (await run(`
    select 1 from pg_stat_activity where wait_event = 'advisory' and datname = current_database()`)).length === 1
  t.ok(await isSoon(isMigrating))

  await store.close()
  await refused

  t.ok(await isMigrating(), 'the server goes on: it looks for its client when it has an answer')
  await lock`select pg_advisory_unlock(7320118454)`
  lock.release()
})
