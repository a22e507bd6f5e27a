import { fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type LookupFunction, connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import SqliteDatabase from 'better-sqlite3'
import { drizzle as drizzleSqlite } from 'drizzle-orm/better-sqlite3'
import { drizzle as drizzlePgProxy } from 'drizzle-orm/pg-proxy'
import fastify from 'fastify'
import postgres from 'postgres'
import t from 'tap'
import { Accounts } from '../../../lib/accounts/accounts.js'
import authPlugin from '../../../lib/index.js'
import type { SqlAuthStoreOptions } from '../../../lib/engines/sql.js'
import { SESSION_SECRET } from '../../helpers/app.js'
import { freePort } from '../../helpers/loopback.js'
import { isSoon } from '../../helpers/soon.js'
import { startProcess } from '../start-process.js'
import { newUser } from '../users.js'
import { PASSWORD, UNAVAILABLE, changed, connections, database, open, roleOf } from './database.js'

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

    await new Accounts(open(t, url)).createUser(newUser())
    await new Accounts(open(t, `${url}?application_name=mine&statement_timeout=7000`)).createUser(newUser())

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

t.test('a store connects while the application starts', async t => {
  t.test('the first statement of an application runs on the connection that was made while it started', async t => {
    const { url, run } = await database(t)
    const app = fastify()
    t.teardown(() => app.close())
    const store = open(t, url)

    await app.register(authPlugin, { store, session: { secret: SESSION_SECRET } })
    await app.ready()
    t.ok(await isSoon(async () => (await connections(run)).length === 1), 'before a statement')
    t.strictSame(await run("select tablename from pg_tables where schemaname = 'public'"), [], 'and makes no tables')
    const looks = "from pg_stat_activity where datname = current_database() and query like 'select current_setting(''server_encoding'')%'"
    t.ok(await isSoon(async () => (await run(`select ${looks} and state = 'idle'`)).length === 1), 'but looks into the database')

    await store.findUser({ email: 'ada@example.com' })
    t.ok(await isSoon(async () => (await connections(run)).length === 1), 'but for that which made the tables')
    await app.close()
    t.ok(await isSoon(async () => (await connections(run)).length === 0), 'which closes with the application')
  })

  t.test('statements wait for that connection, and fail with its failure', async t => {
    const { url, run } = await database(t)
    const store = open(t, url)
    store.connect()
    await store.findUser({ email: 'ada@example.com' })
    t.ok(await isSoon(async () => (await connections(run)).length === 1), 'but for that which made the tables')

    const role = await roleOf(t, url)
    const refused = open(t, changed(role.url, { password: `${PASSWORD}3` }))
    refused.connect()
    await t.rejects(refused.findUser({ email: 'ada@example.com' }), { ...UNAVAILABLE, cause: { message: /correct user and password$/ } })
  })

  t.test('a store that could not connect connects with the next statement', async t => {
    const { url, run } = await database(t)
    const role = await roleOf(t, url)
    await run(`alter role ${role.name} nologin; grant create on schema public to ${role.name}`)
    const store = open(t, role.url)
    store.connect()
    await t.rejects(store.findUser({ email: 'ada@example.com' }), UNAVAILABLE)

    await run(`alter role ${role.name} login`)
    t.equal(await store.findUser({ email: 'ada@example.com' }), null)
  })

  t.test('a connection that no statement of a request has used lets the process end', async t => {
    const { url } = await database(t)
    for (const what of ['connect', 'report']) {
      const child = fork(fileURLToPath(new URL('connecting-process.ts', import.meta.url)), [url, what], { execArgv: process.execArgv })

      const [messages, [code]] = await Promise.all([once(child, 'message'), once(child, 'exit')])

      t.strictSame(messages[0], 'connected')
      t.equal(code, 0)
    }
  })
})

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
    ['a user who may not connect', nobody.url, /; where the server demands TLS, add .*; else admit this user \(pg_hba\.conf\), or name another one$/],
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
    const error: unknown = await new Accounts(store).createUser(newUser()).catch((error: unknown) => error)
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

  t.ok(await new Accounts(store).createUser(newUser()))

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
