import { randomUUID } from 'node:crypto'
import { type LookupFunction, connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { PGlite } from '@electric-sql/pglite'
import SqliteDatabase from 'better-sqlite3'
import { drizzle as drizzleSqlite } from 'drizzle-orm/better-sqlite3'
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres'
import { migrate } from 'drizzle-orm/node-postgres/migrator'
import { drizzle as drizzlePgProxy } from 'drizzle-orm/pg-proxy'
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite'
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import { AuthError } from '../../lib/errors.js'
import type { SqlEngine } from '../../lib/store/sql-engine.js'
import type { EmailProof } from '../../lib/store/email-proofs.js'
import { SqlAuthStore, type SqlAuthStoreOptions } from '../../lib/store/sql.js'
import type { AuthStore, LinkedIdentity, NewUser } from '../../lib/store/store.js'
import { TABLE_PARTS } from '../../lib/store/table-parts.js'
import { authStoreContract } from '../../lib/testing.js'
import { freePort } from '../helpers/loopback.js'
import { clientOf, emptyDatabase, poolOf } from '../helpers/postgres.js'
import { isSoon } from '../helpers/soon.js'
import { isThorough } from '../helpers/thorough.js'
import { startProcess } from './start-process.js'

type Target = string | SqlEngine

/** Runs SQL past the store; resolves to the rows of a single statement. */
type Run = (statements: string) => Promise<Array<Record<string, unknown>>>

/** An empty database. */
interface Place {
  /** What a store is opened on: an engine with connections of its own, where there can be several. */
  target (t: Test): Target
  run: Run
}

/** A database on the server, and a client of the test's own. */
interface Database {
  url: string
  client: postgres.Sql
  run: Run
}

const ENGINES: Record<string, (t: Test) => Promise<Place>> = {
  'a postgres: URL': onServer((_t, url) => url),
  'a client of the package postgres': onServer(clientOf),
  'a client of the package postgres with types and transformations of its own': onServer(unusualClientOf),
  'Drizzle on postgres-js': onServer((t, url) => drizzlePostgresJs(clientOf(t, url))),
  'Drizzle on node-postgres': onServer((t, url) => drizzleNodePostgres(poolOf(t, url))),
  'Drizzle on PGlite': onPglite
}

/**
 * The engines that differ most from each other: both drivers, with types and without. On a URL each
 * store has its own connections, which cost most; a plain client is what the other tests use.
 */
const SOME_ENGINES = [
  'a client of the package postgres with types and transformations of its own',
  'Drizzle on node-postgres'
]
const PROCESSES = isThorough ? 20 : 4
const ROUNDS = isThorough ? 20 : 4
/** What a process with a store needs only when it is called: loaded before, many processes get to the tables at the same moment. */
const LOADED_BEFORE = ['--import', new URL('../../lib/store/postgres/open.ts', import.meta.url).href]

const MIGRATIONS_FOLDER = fileURLToPath(new URL('../../drizzle/postgres', import.meta.url))
const UNAVAILABLE = { name: 'AuthError', code: 'unavailable', statusCode: 503, message: 'Accounts cannot be reached at the moment; try again later.' }
const UNSTORABLE = { name: 'AuthError', code: 'invalid_request', statusCode: 400, message: /NUL character or half a surrogate pair/ }
const PASSWORD = 'hunter2'

const THE_THREE_TABLES = [
  { table: 'svc_auth_credentials', columns: 'user_id uuid, pw_hash text' },
  { table: 'svc_auth_provider_links', columns: 'provider text, subject text, user_id uuid, claims jsonb' },
  { table: 'svc_auth_users', columns: 'user_id uuid, email text, name text, claims jsonb, extras jsonb' }
]
const THE_TABLES = [
  ...THE_THREE_TABLES.slice(0, 1),
  { table: 'svc_auth_migrations', columns: 'hash text, created_at bigint' },
  ...THE_THREE_TABLES.slice(1)
]

t.setTimeout(300_000)

for (const [name, emptyPlace] of Object.entries(ENGINES).filter(([name]) => isThorough || SOME_ENGINES.includes(name))) {
  t.test(`SqlAuthStore on ${name}`, async t => {
    const { target, run } = await emptyPlace(t)
    const [one, two] = [target(t), target(t)]
    await open(t, one).links(randomUUID()) // The tables are there for what follows.
    const emptyStore = async (t: Test, engine = one) => {
      await run('delete from svc_auth_users')
      return open(t, engine)
    }

    authStoreContract(t.test, async () => {
      return { store: await emptyStore(t), twin: open(t, two) }
    })

    t.test('a user is written whole or not at all', async t => {
      const store = await emptyStore(t)
      const bob = localUser('bob@example.com')
      await failOn(t, run, 'insert on svc_auth_credentials')

      await t.rejects(store.createUser(bob), UNAVAILABLE)

      t.strictSame(await contents(run), [[], [], []])
    })

    t.test('a link is added with what is noted about the user, or not at all', async t => {
      const store = await emptyStore(t)
      const ada = newUser()
      await store.createUser(ada)
      const before = await contents(run)
      await failOn(t, run, 'update on svc_auth_users')

      await t.rejects(store.addLink(ada.userId, identity('other', '1')), UNAVAILABLE)
      await t.rejects(store.refreshIdentity({ ...ada.link, claims: { sub: 'changed' }, verifiedEmail: null }), UNAVAILABLE)

      t.strictSame(await contents(run), before)
    })

    t.test('the local link is removed with the password, or not at all', async t => {
      const store = await emptyStore(t)
      const bob = localUser('bob@example.com')
      await store.createUser(bob)
      await store.addLink(bob.userId, identity('other', '1'))
      const before = await contents(run)
      await failOn(t, run, 'delete on svc_auth_credentials')

      await t.rejects(store.removeLink(bob.userId, 'local'), UNAVAILABLE)

      t.strictSame(await contents(run), before)
    })

    t.test('a user that a table of the application refers to stays whole, unless the table cascades', async t => {
      const store = await emptyStore(t)
      const [author, visitor] = [localUser('author@example.com'), localUser('visitor@example.com')]
      for (const { userId, ...user } of [author, visitor]) await store.createUser({ userId, ...user })
      t.teardown(() => run('drop table articles, visits'))
      await run(`
        create table articles (author uuid references svc_auth_users (user_id) on delete no action);
        create table visits (visitor uuid references svc_auth_users (user_id) on delete cascade);
        insert into articles values ('${author.userId}');
        insert into visits values ('${author.userId}'), ('${visitor.userId}')`)
      const before = await contents(run)

      await t.rejects(store.deleteUser(author.userId), { name: 'AuthError', code: 'user_in_use', statusCode: 409 })
      t.strictSame(await contents(run), before)

      await store.deleteUser(visitor.userId)
      t.equal(await store.findUser({ userId: visitor.userId }), null)
      t.strictSame(await run('select visitor from visits'), [{ visitor: author.userId }])
    })

    t.test('what Postgres cannot store is refused, and nothing is written', async t => {
      const store = await emptyStore(t)
      const ada = newUser({ email: 'ada@example.com', claims: { role: 'member' } })
      const sub = ada.link.subject
      await store.createUser(ada)
      const before = await contents(run)
      const attempts: Record<string, () => Promise<unknown>> = {
        'NUL in a name': () => store.createUser(newUser({ name: 'Bob\0' })),
        'NUL in a subject': () => store.createUser(newUser({ link: { provider: 'dev', subject: 'bob\0', claims: { sub: 'bob' } } })),
        'NUL in a claim': () => store.createUser(newUser({ claims: { role: ['a\0'] } })),
        'NUL in an identity claim': () => store.createUser(newUser({ link: { provider: 'dev', subject: 'bob', claims: { sub: 'bob\0' } } })),
        'NUL in a granted claim': () => store.grant(ada.userId, { role: 'admin\0' }),
        'NUL in the name of a granted claim': () => store.grant(ada.userId, { 'role\0': 'admin' }),
        'NUL in the name of a withdrawn claim': () => store.withdraw(ada.userId, ['role\0']),
        'NUL in a claim of a sign-in': () => store.refreshIdentity({ ...ada.link, claims: { sub, picture: '\0' }, verifiedEmail: null }),
        'NUL in the name of a sign-in': () => store.refreshIdentity({ ...ada.link, claims: { sub, name: 'Ada\0' }, verifiedEmail: null }),
        'NUL in the e-mail of a sign-in': () => store.refreshIdentity({ ...ada.link, verifiedEmail: 'ada\0@example.com' }),
        'NUL in a subject of a second way in': () => store.addLink(ada.userId, identity('other', 'ada\0')),
        'NUL in an e-mail that is looked for': () => store.findUser({ email: 'ada\0@example.com' }),
        'half a surrogate pair in a claim': () => store.createUser(newUser({ claims: { role: '\ud83d' } })),
        'half a surrogate pair in a granted claim': () => store.grant(ada.userId, { role: '\ude00' }),
        'half a surrogate pair in a claim of a sign-in': () => store.refreshIdentity({ ...ada.link, claims: { sub, picture: '\ud83d!' }, verifiedEmail: null })
      }

      for (const [what, attempt] of Object.entries(attempts)) await t.rejects(attempt(), UNSTORABLE, what)

      t.strictSame(await contents(run), before)
    })

    t.test('a sign-in that reports what the store has locks and writes no row', async t => {
      const store = await emptyStore(t)
      const claims = { sub: '1', email: 'ada@example.com', name: 'Ada' }
      const identity = { provider: 'dev', subject: '1', claims, verifiedEmail: 'ada@example.com' }
      const versions = () => run(`select users.ctid::text, users.xmax::text, links.ctid::text, links.xmax::text
        from svc_auth_users users join svc_auth_provider_links links using (user_id)`)
      await store.createUser(newUser({ link: { provider: 'dev', subject: '1', claims: { sub: '1' } } }))
      const first = await store.refreshIdentity(identity)
      const before = await versions()

      t.strictSame(await store.refreshIdentity(identity), first)

      t.strictSame(await versions(), before)
      t.hasStrict(first, { email: 'ada@example.com', emailVerified: true, name: 'Ada' })
      t.hasStrict(await store.refreshIdentity({ ...identity, verifiedEmail: null }), { emailVerified: false })
      t.notSame(await versions(), before)
    })

    t.test('a failure prints neither e-mail nor password hash', async t => {
      const store = await emptyStore(t)
      const secrets = /bob-the-secret|the-secret-hash/
      const bob = { ...localUser('bob-the-secret@example.com'), passwordHash: 'the-secret-hash' }
      const printed = async () => inspect(await store.createUser(bob).catch((error: unknown) => error), { depth: 10 })

      await failOn(t, run, 'insert on svc_auth_credentials')
      const failed = await printed()
      t.teardown(() => run('alter table svc_auth_credentials drop constraint is_argon2'))
      await run("drop trigger fails on svc_auth_credentials; alter table svc_auth_credentials add constraint is_argon2 check (pw_hash like '$argon2%')")
      const violating = await printed()

      t.match(failed, /AuthError[^]*the disk is full/)
      t.notMatch(failed, secrets)
      t.match(violating, /AuthError[^]*is_argon2/)
      t.notMatch(violating, secrets, 'the server itself tells the row that it refused')
    })

    t.test('a migration that changes the tables while the store runs does not make it fail', async t => {
      const store = await emptyStore(t)
      const ada = newUser({ email: 'ada@example.com' })
      await store.createUser(ada)
      const everyCall = async () => [
        (await store.findUser({ userId: ada.userId }))?.email,
        (await store.findUser({ email: 'ada@example.com' }))?.email,
        (await store.refreshIdentity({ ...ada.link, verifiedEmail: null }))?.email
      ]
      const before = await everyCall()
      t.teardown(() => run('alter table svc_auth_users alter email type text, drop note'))

      await run('alter table svc_auth_users alter email type varchar(254), add note text')

      t.strictSame(await everyCall(), before)
    })

    if (typeof one === 'string') return
    t.test('the engine stays open when the store is closed', async t => {
      const store = await emptyStore(t)
      const ada = newUser()
      await store.createUser(ada)

      await store.close()

      await t.rejects(store.findUser({ userId: ada.userId }), { ...UNAVAILABLE, cause: { message: 'the store is closed' } })
      t.hasStrict(await open(t, one).findUser({ userId: ada.userId }), { userId: ada.userId })
    })
  })
}

t.test('an e-mail that version 0.1.0 noted as verified stays so until a link is used or removed that does not vouch for it', async t => {
  const url = await emptyDatabase(t)
  const [store, client] = [open(t, url), clientOf(t, url)]
  const isVerified = async (userId: string) => (await store.findUser({ userId }))?.emailVerified
  const user = async () => {
    const ada = newUser({ email: `${randomUUID()}@example.com` })
    await store.createUser(ada)
    await store.addLink(ada.userId, identity('other', ada.userId))
    await client`update svc_auth_users set extras = '{"email_verified": true, "note": 1}' where user_id = ${ada.userId}`
    return ada
  }
  const [used, other, removed] = [await user(), await user(), await user()]
  t.strictSame(await Promise.all([used, other, removed].map(({ userId }) => isVerified(userId))), [true, true, true])

  await store.refreshIdentity({ ...used.link, verifiedEmail: used.email })
  await store.refreshIdentity(identity('other', other.userId))
  await store.removeLink(removed.userId, 'other')

  t.strictSame(await Promise.all([used, other, removed].map(({ userId }) => isVerified(userId))), [true, false, false])
  t.strictSame(
    [...await client`select extras from svc_auth_users where user_id = ${used.userId}`],
    [{ extras: { email_verified: true, email_verified_by: ['dev'], note: 1 } }]
  )
  await store.refreshIdentity({ ...other.link, verifiedEmail: other.email })
  t.equal(await isVerified(other.userId), true, 'the link that vouches says so at its next sign-in')
})

t.test('the tables', async t => {
  t.test('the tables are three and the journal of their migrations, and nothing else is made', async t => {
    const { url, run } = await database(t)

    await open(t, url).findUser({ email: 'ada@example.com' })

    t.strictSame(await tables(run), THE_TABLES)
    t.strictSame(await run("select nspname from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'"), [{ nspname: 'public' }])
    t.strictSame(await run("select relname from pg_class where relnamespace = 'public'::regnamespace and relkind not in ('r', 'i')"), [])
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
    await open(t, url).createUser(ada)
    const role = await roleOf(t, url)
    await run(`grant select, insert, update, delete on all tables in schema public to ${role.name}`)

    const found = await open(t, role.url).findUser({ email: 'ada@example.com' })

    t.hasStrict(found, { userId: ada.userId })
    t.hasStrict(await open(t, role.url).createUser(newUser()), { name: 'Somebody' })
  })

  t.test('a role without the right to delete from the tables deletes no user', async t => {
    const { url, run } = await database(t)
    const ada = newUser({ email: 'ada@example.com' })
    await open(t, url).createUser(ada)
    const role = await roleOf(t, url)
    await run(`grant select, insert, update on all tables in schema public to ${role.name}`)

    await t.rejects(open(t, role.url).deleteUser(ada.userId), UNAVAILABLE)

    t.hasStrict(await open(t, role.url).findUser({ email: 'ada@example.com' }), { userId: ada.userId })
  })

  t.test('the tables are made by one of many processes that start at the same moment, and all go on', async t => {
    const { url, run } = await database(t)
    const processes = await Promise.all(Array.from({ length: PROCESSES }, () => startProcess(t, url, LOADED_BEFORE)))
    t.strictSame(await tables(run), [])
    const users = processes.map((_, index) => newUser({ email: `user-${index}@example.com` }))

    const answers = await Promise.all(processes.map(async (call, index) => call(['createUser', users[index] ?? newUser()])))

    t.hasStrict(answers, users.map(({ link, ...user }) => ({ result: user })))
    t.strictSame(await tables(run), THE_TABLES)
    t.strictSame(await run('select count(*)::int from svc_auth_users'), [{ count: PROCESSES }])
    t.strictSame(await run('select count(*)::int from svc_auth_migrations'), [{ count: TABLE_PARTS.users.migrations.length }])
  })

  t.test('the tables are made by one of ten stores that are about to make them, and all go on', async t => {
    const { url, client, run } = await database(t)
    const stores = Array.from({ length: 10 }, () => open(t, url))

    const release = await hold(
      client,
      ['migrations', 'users', 'credentials', 'provider_links'].map(name => `create table svc_auth_${name} ()`).join('; ')
    )
    const created = Promise.allSettled(stores.map(store => store.createUser(newUser())))
    t.ok(await isSoon(async () => await waiting(run) === stores.length), 'all wait')
    await release()

    t.strictSame((await created).filter(({ status }) => status === 'rejected'), [])
    t.strictSame(await tables(run), THE_TABLES)
    t.strictSame(await run('select count(*)::int from svc_auth_users'), [{ count: 10 }])
  })

  t.test('the tables are not made with createTables: false, and without them every query says what to do', async t => {
    const { url, run } = await database(t)
    const store = open(t, url, { createTables: false })

    await t.rejects(store.findUser({ email: 'ada@example.com' }), { ...UNAVAILABLE, cause: { message: /run the migrations/ } })
    await t.rejects(store.createUser(newUser()), { ...UNAVAILABLE, cause: { message: /run the migrations/ } })

    t.strictSame(await tables(run), [])
  })

  t.test('with createTables: false nothing runs but the query itself', async t => {
    const { url } = await database(t)
    const statements: string[] = []
    const db = drizzleNodePostgres(poolOf(t, url), { logger: { logQuery: statement => { statements.push(statement) } } })
    await open(t, url).links(randomUUID())

    await open(t, db, { createTables: false }).findUser({ email: 'ada@example.com' })

    t.match(statements, [/^select /])
    t.equal(statements.length, 1)
  })

  t.test("that the application's own migrations made are taken as they are", async t => {
    const { url, run } = await database(t)
    const db = drizzleNodePostgres(poolOf(t, url))
    await migrate(db, { migrationsFolder: MIGRATIONS_FOLDER, migrationsSchema: 'app', migrationsTable: 'journal' })
    const asTheyWere = await tables(run)

    for (const options of [{ createTables: false }, { createTables: true }, {}]) {
      const ada = newUser()
      t.ok(await open(t, db, options).createUser(ada))
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

      await open(t, `${url}?${parameter}`).createUser(ada)

      t.strictSame(await tables(run, 'auth'), THE_TABLES)
      t.strictSame(await tables(run, 'public'), [])
      t.strictSame(await run('select email from auth.svc_auth_users'), [{ email: 'ada@example.com' }])
    })
  }

  t.test('tables of a later schema of the search path are not used as those of the first', async t => {
    const { url, run } = await database(t)
    await run('create schema auth')
    await open(t, url).createUser(newUser({ email: 'ada@example.com' }))
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

    await open(t, url).createUser(ada)
    const created = await open(t, `${url}?search_path=auth`).createUser(ada)

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

    t.ok(await store.createUser(newUser()))
  })

  t.test('the tables are brought up to date: a migration that the journal does not name is run', async t => {
    const { url, run } = await database(t)
    await run('create table svc_auth_migrations (hash text primary key, created_at bigint not null)')
    await run("insert into svc_auth_migrations values ('an earlier migration', 0)")

    t.ok(await open(t, url).createUser(newUser()))

    t.equal((await run('select hash from svc_auth_migrations')).length, 1 + TABLE_PARTS.users.migrations.length)
  })

  t.test('tables that could not be made are made by a later query', async t => {
    const { url, run } = await database(t)
    const role = await roleOf(t, url)
    const store = open(t, role.url)

    await t.rejects(store.createUser(newUser()), { ...UNAVAILABLE, cause: { message: /grant this role what is missing/ } })
    await run(`grant create on schema public to ${role.name}`)

    t.ok(await store.createUser(newUser()))
    t.strictSame(await tables(run), THE_TABLES)
  })
})

t.test('the connections of a URL', async t => {
  t.test('the connections of a URL have a name and a time limit for statements, unless the URL has others', async t => {
    const { url, run } = await database(t)
    await open(t, url).links(randomUUID())
    await run(`
      create table seen (application_name text, statement_timeout text);
      create function note() returns trigger language plpgsql as $$ begin
        insert into seen values (current_setting('application_name'), current_setting('statement_timeout'));
        return new;
      end $$;
      create trigger note before insert on svc_auth_users for each row execute function note()`)

    await open(t, url).createUser(newUser())
    await open(t, `${url}?application_name=mine&statement_timeout=7000`).createUser(newUser())

    t.strictSame(await run('select * from seen'), [
      { application_name: 'fastify-svc-auth', statement_timeout: '4s' },
      { application_name: 'mine', statement_timeout: '7s' }
    ])
  })

  for (const { parameters, size } of [{ parameters: '', size: 10 }, { parameters: '?max=3', size: 3 }, { parameters: '?max=none', size: 10 }]) {
    t.test(`there are at most ${size} connections with ${parameters === '' ? 'no parameter' : parameters}, and none when the store is closed`, async t => {
      const { url, run } = await database(t)
      const store = open(t, `${url}${parameters}`)

      await Promise.all(Array.from({ length: 100 }, () => store.findUser({ email: 'ada@example.com' })))
      t.equal((await connections(run)).length, size)

      await store.close()
      t.ok(await isSoon(async () => (await connections(run)).length === 0))
    })
  }
})

for (const [what, client] of Object.entries({
  'a client of the package postgres': clientOf,
  'a client with types and transformations of its own': unusualClientOf
})) {
  t.test(`${what} works as before when a store uses it`, async t => {
    const { url } = await database(t)
    const sql: postgres.Sql = client(t, url)
    const behaviour = () => sql`
      select ${sql.typed({ aKey: 1 } as never, 3802)} as json_out,
        '{"a_key":{"b_key":1}}'::jsonb as jsonb_in, '{"a_key":1}'::json as json_in, ${'text'}::text as text_out,
        '2026-01-02'::date as date_in, '2026-01-02 03:04Z'::timestamptz as time_in,
        ${new Date(0)}::timestamptz as time_out, array[1, 2] as list`.then(rows => [...rows])
    const before = await behaviour()
    const store = open(t, sql)
    const ada = newUser({ claims: { some_key: { other_key: 1 } } })

    await store.createUser(ada)
    t.hasStrict(await store.findUser({ userId: ada.userId }), { claims: { some_key: { other_key: 1 } } })

    t.strictSame(await behaviour(), before)
  })
}

t.test('the cause of a failure says what to do, and prints no password', async t => {
  const { url, run } = await database(t)
  const role = await roleOf(t, url)
  const admin = await roleOf(t, url)
  const nobody = await roleOf(t, url)
  const crowd = await roleOf(t, url)
  await run(`alter role ${nobody.name} nologin; alter role ${crowd.name} connection limit 0; grant create on schema public to ${admin.name}`)
  const failures: Array<[what: string, url: string, advice: RegExp, options?: SqlAuthStoreOptions]> = [
    ['a server that is not there', changed(role.url, { port: String(await freePort()) }), /ECONNREFUSED.*; start the server, or correct host and port$/],
    ['a wrong password', changed(role.url, { password: `${PASSWORD}3` }), /; correct user and password$/],
    ['an unknown user', changed(role.url, { username: 'svc_auth_test_unknown' }), /; correct user and password$/],
    ['a user who may not connect', nobody.url, /; admit this user \(pg_hba\.conf\), or name another one$/],
    [
      'a database that is not there',
      changed(role.url, { pathname: '/svc_auth_test_missing' }),
      /"svc_auth_test_missing" does not exist; create the database first: createdb$/
    ],
    ['tables that are not there', admin.url, /; run the migrations that make the tables, or leave createTables at true$/, { createTables: false }],
    [
      'a role without the rights to make tables',
      role.url,
      /; grant this role what is missing, or make the tables with a role that may and set createTables to false$/
    ],
    ['too many connections', crowd.url, /; lower the sizes of the connection pools or raise max_connections$/]
  ]

  for (const [what, url, advice, options] of failures) {
    const store = open(t, url, options)
    const error: unknown = await store.createUser(newUser()).catch((error: unknown) => error)
    t.match(error, { ...UNAVAILABLE, cause: { message: advice } }, what)
    t.notMatch(inspect(error, { depth: 10 }), PASSWORD, what)
  }
})

t.test('a Drizzle database that does not escape names, as before 0.45.2, is refused', async t => {
  const sqlite = new SqliteDatabase(':memory:')
  t.teardown(() => { sqlite.close() })

  for (const db of [drizzlePgProxy(async () => ({ rows: [] })), drizzleSqlite(sqlite)]) {
    Object.assign(Reflect.get(db, 'dialect'), { escapeName: (name: string) => `"${name}"` })
    await t.rejects(
      open(t, db).links(randomUUID()),
      { ...UNAVAILABLE, cause: { name: 'OptionsError', message: /^target is a database of a drizzle-orm before 0\.45\.2/ } }
    )
  }
})

t.test('a role that may make tables but not read them is told to get the rights', async t => {
  const { url, run } = await database(t)
  const role = await roleOf(t, url)
  await open(t, url).links(randomUUID())
  await run(`grant select on svc_auth_migrations to ${role.name}`)

  await t.rejects(
    open(t, role.url).findUser({ email: 'ada@example.com' }),
    { ...UNAVAILABLE, cause: { message: /svc_auth_users; grant this role what is missing/ } }
  )
})

t.test('a host that refuses connections at all its addresses is reported with what to do', async t => {
  const port = await freePort()
  const lookup: LookupFunction = (_host, _options, callback) => { callback(null, [{ address: '127.0.0.1', family: 4 }, { address: '::1', family: 6 }]) }
  const options = { max: 1, socket: () => connect({ port, host: 'localhost', lookup, autoSelectFamily: true }) }
  const client = postgres(options)
  t.teardown(() => client.end())

  await t.rejects(
    open(t, client).findUser({ email: 'ada@example.com' }),
    { ...UNAVAILABLE, cause: { message: /ECONNREFUSED.*; start the server, or correct host and port$/ } }
  )
})

t.test('notices of the server are not printed', async t => {
  const { url, run } = await database(t)
  const store = open(t, url)
  await store.findUser({ email: 'ada@example.com' })
  await run('create function note() returns trigger language plpgsql as $$ begin raise notice $note$noted$note$; return new; end $$')
  await run('create trigger note before insert on svc_auth_users for each row execute function note()')
  const printed = t.capture(console, 'log')

  t.ok(await store.createUser(newUser()))

  t.strictSame(printed(), [])
})

t.test('any value that a driver throws makes a call unavailable, and is the cause', async t => {
  const db = drizzlePgProxy(async () => { throw 'no error at all' }) // eslint-disable-line no-throw-literal

  await t.rejects(open(t, db).findUser({ email: 'ada@example.com' }), { ...UNAVAILABLE, cause: 'no error at all' })
})

t.test('without the package postgres the cause says what to install', async t => {
  const { url } = await database(t)
  const hidden = `data:text/javascript,${encodeURIComponent(`
    export async function resolve (specifier, context, next) {
      if (specifier === 'postgres') throw Object.assign(new Error("Cannot find package 'postgres' imported from app.js"), { code: 'ERR_MODULE_NOT_FOUND' })
      return next(specifier, context)
    }`)}`
  const hide = `data:text/javascript,${encodeURIComponent(`import { register } from 'node:module'; register(${JSON.stringify(hidden)})`)}`

  const call = await startProcess(t, url, ['--import', hide])

  t.match(
    await call(['findUser', { email: 'ada@example.com' }]),
    { error: { code: 'unavailable', cause: /The store needs the package postgres; install it: npm install postgres$/ } }
  )
})

for (const level of ['repeatable read', 'serializable']) {
  t.test(`a store works where transactions are ${level} by default`, async t => {
    const { url, run } = await database(t)
    await run(`alter database ${new URL(url).pathname.slice(1)} set default_transaction_isolation = '${level}'`)
    const stores = Array.from({ length: 5 }, () => open(t, url))

    t.test('stores that start at once make the tables', async t => {
      await t.resolves(Promise.all(stores.map(store => store.links(randomUUID()))))
    })

    // Each that fails was overtaken by another one: the last of five has had four failures at most.
    t.test('five changes of one user at once all count', async t => {
      const ada = newUser()
      await stores[0]?.createUser(ada)

      for (let round = 0; round < 10; round++) {
        await t.resolves(Promise.all(stores.map(async (store, index) => {
          if (index < 3) await store.grant(ada.userId, { [`claim ${index} of ${round}`]: true })
          else await store.refreshIdentity({ ...ada.link, claims: { sub: ada.link.subject, name: `name ${index} of ${round}` }, verifiedEmail: null })
        })))
      }

      const user = await stores[0]?.findUser({ userId: ada.userId })
      t.equal(Object.keys(user?.claims ?? {}).length, 30)
      t.match(user?.name, /^name [34] of 9$/)
    })
  })
}

t.test('operations on the same user do not deadlock', async t => {
  const { url, client, run } = await database(t)
  const proof = async (store: AuthStore, { userId, email }: NewUser): Promise<EmailProof> => {
    const user = await store.findUser({ userId })
    return { userId, email: user?.email ?? String(email), generation: user?.generation ?? 0 }
  }
  const operations: Array<(store: SqlAuthStore, user: NewUser, turn: number) => Promise<unknown>> = [
    (store, { userId }) => store.removeLink(userId, 'local'),
    (store, { link }, turn) => {
      const email = `${turn % 2}-${link.subject}`
      return store.refreshIdentity({ ...link, claims: { ...link.claims, email }, verifiedEmail: email })
    },
    (store, { userId }, turn) => store.grant(userId, { [`claim-${turn % 3}`]: turn }),
    (store, { userId }) => store.deleteUser(userId),
    (store, { userId, link }, turn) => store.addLink(userId, identity('other', userId, `${turn % 2}-${link.subject}`)),
    (store, { userId }) => store.removeLink(userId, 'other'),
    (store, { userId }) => store.addLink(userId, identity('third', userId)),
    (store, { userId, link }, turn) => store.refreshIdentity(identity('other', userId, `${turn % 2}-${link.subject}`)),
    async (store, user) => store.verifyEmail(await proof(store, user)),
    async (store, user) => store.resetPassword(await proof(store, user), 'another hash'),
    async (store, user, turn) => store.changeEmail(await proof(store, user), `new-${turn % 2}-${user.link.subject}`),
    async (store, user) => store.disownEmail(await proof(store, user))
  ]
  const isRefusal = (outcome: unknown) => outcome instanceof AuthError && (outcome.code === 'unknown_user' || outcome.code === 'last_link')
  const failures = (outcomes: unknown[]) => outcomes.filter(outcome => outcome instanceof Error && !isRefusal(outcome))

  for (const rows of ['svc_auth_credentials', "svc_auth_provider_links where provider = 'local'", "svc_auth_provider_links where provider = 'other'"]) {
    t.test(`any two operations succeed after both had to wait for ${rows}`, async t => {
      // Each operation that waits holds a connection.
      const [store, twin] = [open(t, `${url}?max=20`), open(t, `${url}?max=20`)]

      for (const operation of operations) {
        const users = await Promise.all(operations.map(async () => {
          const user = localUser(`${randomUUID()}@example.com`)
          await store.createUser(user)
          await store.addLink(user.userId, identity('other', user.userId))
          return user
        }))
        const outcomes: unknown[] = []
        const note = (outcome: unknown) => { outcomes.push(outcome) }

        const release = await hold(client, `select from ${rows} for update`)
        const first = users.map(user => operation(store, user, 0).then(note, note))
        t.ok(await isSoon(async () => outcomes.length + await waiting(run) === users.length), 'each is done or waits')
        const second = users.map((user, index) => operations[index]?.(twin, user, 1).then(note, note))
        t.ok(await isSoon(async () => outcomes.length + await waiting(run) === 2 * users.length), 'each is done or waits')
        await release()

        await Promise.all([...first, ...second])
        t.strictSame(failures(outcomes), [])
      }
    })
  }

  // Each user has different e-mails here: of two users that swap theirs one statement can be run again.
  t.test('many operations at once all succeed', async t => {
    const stores = Array.from({ length: 4 }, () => open(t, url))
    const users = ['ada', 'bob', 'carol'].map(name => localUser(`${name}@example.com`))
    const all = [(store: SqlAuthStore, user: NewUser) => store.createUser(user), ...operations]
    await Promise.all(users.map(user => stores[0]?.createUser(user)))

    const outcomes: unknown[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const turns = stores.flatMap((store, lane) => users.flatMap((user, whose) => {
        return all.map((_, turn) => ({ store, user, turn: turn * (lane + 2) + whose + round }))
      }))
      outcomes.push(...await Promise.all(turns.map(async ({ store, user, turn }) => {
        return all[turn % all.length]?.(store, user, turn).catch((error: unknown) => error)
      })))
    }

    t.strictSame(failures(outcomes), [])
    t.ok(outcomes.some(outcome => !(outcome instanceof Error)))
    t.strictSame(await run('select user_id from svc_auth_users where user_id not in (select user_id from svc_auth_provider_links)'), [])
  })

  t.test('the server has ended none of the operations for a deadlock', async t => {
    t.ok(await isSoon(async () => (await connections(run)).length === 0), 'the connections that were closed have reported what they met')
    t.strictSame(await run('select deadlocks::int from pg_stat_database where datname = current_database()'), [{ deadlocks: 0 }])
  })
})

t.test('of two removals that wait for the same user, one is done and the other one, of the last link, is refused', async t => {
  const { url, client, run } = await database(t)
  const stores = [open(t, url), open(t, url)] as const

  for (let round = 0; round < 20; round++) {
    const ada = localUser(`ada-${round}@example.com`)
    await stores[0].createUser(ada)
    await stores[1].addLink(ada.userId, identity('other', ada.userId))

    const release = await hold(client, 'select from svc_auth_users for update; select from svc_auth_provider_links for update')
    const removed = Promise.allSettled([stores[0].removeLink(ada.userId, 'local'), stores[1].removeLink(ada.userId, 'other')])
    t.ok(await isSoon(async () => await waiting(run) === 2), 'both wait')
    await release()

    const outcomes = await removed
    const links = await stores[0].links(ada.userId)
    t.equal(links.length, 1)
    t.strictSame(outcomes.flatMap(outcome => outcome.status === 'fulfilled' ? [outcome.value] : []), [links])
    t.match(outcomes.flatMap(outcome => outcome.status === 'rejected' ? [outcome.reason] : []), [{ name: 'AuthError', code: 'last_link', statusCode: 409 }])
  }
})

t.test('of two first passwords that wait for the same user, one is set', async t => {
  const { url, client, run } = await database(t)
  const [store, twin] = [open(t, url), open(t, url)]
  const user = newUser({ email: 'ada@example.com' })
  await store.createUser(user)

  const release = await hold(client, 'select from svc_auth_users for update')
  const set = [store, twin].map((store, index) =>
    store.setPassword(user.userId, { passwordHash: `hash ${index}`, current: null }))
  t.ok(await isSoon(async () => await waiting(run) === 2), 'both wait')
  await release()

  const winners = (await Promise.all(set)).flatMap((user, index) => user === null ? [] : [`hash ${index}`])
  t.equal(winners.length, 1)
  t.hasStrict(await store.findCredential('ada@example.com'), { passwordHash: winners[0], user: { generation: 1 } })
})

t.test('a link that an unverified user gets before a redemption that waits is seen by it', async t => {
  const { url, client, run } = await database(t)
  const [store, twin] = [open(t, url), open(t, url)]
  const redemptions: Record<string, (proof: EmailProof) => Promise<unknown>> = {
    resetPassword: proof => store.resetPassword(proof, 'another hash'),
    disownEmail: proof => store.disownEmail(proof)
  }
  const expected: Record<string, unknown> = {
    resetPassword: { outcome: { wasVerified: false, removed: ['other'] }, left: ['local'] },
    disownEmail: { outcome: 'freed', left: ['other'] }
  }

  for (const [name, redeem] of Object.entries(redemptions)) {
    t.test(`by ${name}`, async t => {
      const bob = localUser(`${name.toLowerCase()}@example.com`)
      await store.createUser(bob)

      const release = await hold(client, 'select from svc_auth_users for update')
      const added = twin.addLink(bob.userId, identity('other', bob.userId))
      t.ok(await isSoon(async () => await waiting(run) === 1), 'the new link waits')
      const redeemed = redeem({ userId: bob.userId, email: String(bob.email), generation: 0 })
      t.ok(await isSoon(async () => await waiting(run) === 2), 'the redemption waits')
      await release()

      t.ok(await added)
      const outcome = await redeemed
      const left = (await store.links(bob.userId)).map(({ provider }) => provider)
      t.match({ outcome, left }, expected[name])
      t.equal(left.length, 1)
    })
  }
})

function onServer (target: (t: Test, url: string) => Target) {
  return async (t: Test): Promise<Place> => {
    const { url, run } = await database(t)
    return { target: t => target(t, url), run }
  }
}

async function onPglite (t: Test): Promise<Place> {
  const client = await PGlite.create()
  t.teardown(() => client.close())
  return {
    target: () => drizzlePglite(client),
    run: async statements => (await client.exec(statements)).at(-1)?.rows ?? []
  }
}

async function database (t: Test): Promise<Database> {
  const url = await emptyDatabase(t)
  const client = clientOf(t, url)
  return { url, client, run: async statements => (await client.unsafe(statements)).map(row => ({ ...row })) }
}

function open (t: Test, target: Target, options: SqlAuthStoreOptions = {}): SqlAuthStore {
  const store = new SqlAuthStore(target, options)
  t.teardown(() => store.close())
  return store
}

/** A client that does everything to values that the package lets it do. */
function unusualClientOf (t: Test, url: string) {
  const client = postgres(url, {
    onnotice: () => {},
    prepare: false,
    transform: { ...postgres.camel, undefined: null },
    types: {
      json: { to: 3802, from: [114, 3802], serialize: (value: unknown) => JSON.stringify({ value }), parse: (text: string) => ({ text }) },
      text: { to: 25, from: [25], serialize: (value: unknown) => String(value).toUpperCase(), parse: (text: string) => [text] }
    }
  })
  t.teardown(() => client.end())
  return client
}

/** A role that may connect to the database and make nothing there. */
async function roleOf (t: Test, url: string): Promise<{ name: string, url: string }> {
  const name = `svc_auth_test_${randomUUID().replaceAll('-', '')}`
  const admin = clientOf(t, url)
  await admin.unsafe(`create role ${name} login password '${PASSWORD}'; revoke create on schema public from public`)
  t.teardown(() => admin.unsafe(`drop owned by ${name}; drop role ${name}`))
  return { name, url: changed(url, { username: name, password: PASSWORD }) }
}

function changed (url: string, parts: { username?: string, password?: string, port?: string, pathname?: string }): string {
  return Object.assign(new URL(url), parts).href
}

/** Makes a kind of statement fail for the rest of the test. */
async function failOn (t: Test, run: Run, event: string): Promise<void> {
  t.teardown(() => run('drop function fails cascade'))
  await run(`
    create function fails() returns trigger language plpgsql as $$ begin raise exception 'the disk is full'; end $$;
    create trigger fails before ${event} for each row execute function fails()`)
}

async function contents (run: Run): Promise<unknown[]> {
  const contents: unknown[] = []
  for (const table of ['users', 'credentials', 'provider_links']) contents.push(await run(`select * from svc_auth_${table} order by 1, 2`))
  return contents
}

/** Every table that is not the server's own, with its columns. */
async function tables (run: Run, schema = '%'): Promise<Array<Record<string, unknown>>> {
  return run(`
    select table_name as table, string_agg(column_name || ' ' || data_type, ', ' order by ordinal_position) as columns
    from information_schema.columns
    where table_schema not in ('pg_catalog', 'information_schema') and table_schema like '${schema}'
    group by table_schema, table_name
    order by table_name collate "C"`)
}

/** The connections that stores have opened by a URL. */
async function connections (run: Run): Promise<Array<Record<string, unknown>>> {
  return run("select wait_event_type from pg_stat_activity where application_name = 'fastify-svc-auth' and datname = current_database()")
}

/** How many of them wait for a lock. */
async function waiting (run: Run): Promise<number> {
  return (await connections(run)).filter(({ wait_event_type: type }) => type === 'Lock').length
}

/** Takes a lock that stores run into, until it is released. */
async function hold (client: postgres.Sql, lock: string): Promise<() => Promise<void>> {
  const held = await client.reserve()
  await held.unsafe(`begin; ${lock}`)
  return async () => {
    await held.unsafe('rollback')
    held.release()
  }
}

function newUser (user: Partial<NewUser> = {}): NewUser {
  const userId = randomUUID()
  return {
    userId,
    email: null,
    emailVerified: false,
    name: 'Somebody',
    claims: {},
    link: { provider: 'dev', subject: userId, claims: { sub: userId } },
    ...user
  }
}

function localUser (email: string): NewUser {
  return newUser({ email, link: { provider: 'local', subject: email, claims: { sub: email } }, passwordHash: '$argon2id$ and so on' })
}

function identity (provider: string, subject: string, verifiedEmail: string | null = null): LinkedIdentity {
  return { provider, subject, claims: { sub: subject, ...(verifiedEmail !== null && { email: verifiedEmail }) }, verifiedEmail }
}
