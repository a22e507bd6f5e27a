import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { inspect } from 'node:util'
import { PGlite } from '@electric-sql/pglite'
import SqliteDatabase from 'better-sqlite3'
import { drizzle as drizzleSqlite } from 'drizzle-orm/better-sqlite3'
import { drizzle as drizzleMysqlProxy } from 'drizzle-orm/mysql-proxy'
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePgProxy } from 'drizzle-orm/pg-proxy'
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite'
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js'
import { drizzle as drizzleSqliteProxy } from 'drizzle-orm/sqlite-proxy'
import pg from 'pg'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import { Accounts } from '../../lib/accounts/accounts.js'
import type { SqlEngine } from '../../lib/engines/sql.js'
import { sqlTarget } from '../../lib/engines/sql-target.js'
import { SqlAuthStore } from '../../lib/engines/sql.js'
import { setEnv } from '../helpers/environment.js'
import { listening } from '../helpers/loopback.js'
import { isThorough } from '../helpers/thorough.js'

const ADA = {
  userId: '6b1e1c9e-0c51-4c3a-9f44-2f0e8a2f5d11',
  email: 'ada@example.com',
  emailVerified: true,
  name: 'Ada',
  claims: {},
  link: { provider: 'dev', subject: '1', claims: { sub: '1' } }
}
const NO_ENGINE = {
  name: 'OptionsError',
  code: 'invalid_options',
  message: /^target must be an SQLite file, a sqlite:, file: or postgres: URL, :memory:, or an existing engine: /
}

/** An empty folder that relative paths are in for the time of a test. */
function emptyFolder (t: Test): string {
  const before = process.cwd()
  const folder = t.testdir()
  process.chdir(folder)
  t.teardown(() => { process.chdir(before) })
  return folder
}

/** Whether a store with this target keeps its users in that file. */
async function keepsUsersIn (file: string, ...target: ConstructorParameters<typeof SqlAuthStore>): Promise<boolean> {
  const store = new SqlAuthStore(...target)
  const existedBefore = existsSync(file)
  await new Accounts(store).createUser(ADA)
  await store.close()
  if (existedBefore || !existsSync(file)) return false

  const connection = new SqliteDatabase(file, { readonly: true })
  const email = connection.prepare('select email from svc_auth_users').pluck().get()
  connection.close()
  return email === ADA.email
}

const FILES: Array<[target: (folder: string) => string, file: string]> = [
  [() => 'users.db', 'users.db'],
  [() => './users.db', 'users.db'],
  [() => 'data/users.db', 'data/users.db'],
  [() => './data/../users.db', 'users.db'],
  [folder => join(folder, 'users.db'), 'users.db'],
  [folder => join(folder, 'with space & ünïcode.db'), 'with space & ünïcode.db'],
  [() => 'sqlite:users.db', 'users.db'],
  [() => 'sqlite:./users.db', 'users.db'],
  [() => 'sqlite://users.db', 'users.db'],
  [() => 'SQLite:users.db', 'users.db'],
  [folder => `sqlite:${folder}/users.db`, 'users.db'],
  [folder => `sqlite://${folder}/users.db`, 'users.db'],
  [() => 'file:users.db', 'users.db'],
  [() => 'file:./data/users.db', 'data/users.db'],
  [folder => `file:${folder}/users.db`, 'users.db'],
  [folder => `file://${folder}/users.db`, 'users.db'],
  [folder => pathToFileURL(join(folder, 'with space & ünïcode.db')).href, 'with space & ünïcode.db'],
  [() => 'ünïcode.db', 'ünïcode.db'],
  [() => './with space.db', 'with space.db'],
  [() => './users', 'users'],
  [() => 'data/users', 'data/users'],
  [() => ' users.db\r\n', 'users.db'],
  [() => '\t./users.db ', 'users.db'],
  [() => '\ufeffsqlite:users.db\n', 'users.db']
]

for (const [target, file] of FILES) {
  t.test(`${JSON.stringify(target('/folder'))} is the file ${file}`, async t => {
    const folder = emptyFolder(t)
    mkdirSync('data')

    t.ok(await keepsUsersIn(join(folder, file), target(folder)))
  })
}

t.test('the constructor opens and makes nothing', async t => {
  const folder = emptyFolder(t)

  for (const target of [undefined, './users.db', 'sqlite:users.db', join(folder, 'no', 'such', 'folder', 'users.db')]) await new SqlAuthStore(target).close()

  t.strictSame(readdirSync(folder), [])
})

for (const target of [':memory:', 'sqlite::memory:', 'file::memory:', 'sqlite://:memory:', 'file://:memory:']) {
  t.test(`${target} is memory of that store alone, and no file`, async t => {
    const folder = emptyFolder(t)
    const [store, other] = [new SqlAuthStore(target), new SqlAuthStore(target)]
    t.teardown(() => Promise.all([store.close(), other.close()]))

    await new Accounts(store).createUser(ADA)

    t.ok(await store.findUser({ userId: ADA.userId }))
    t.equal(await other.findUser({ userId: ADA.userId }), null)
    t.strictSame(readdirSync(folder), [])
  })
}

t.test('the default target is the setting LOCAL_AUTH_DB', async t => {
  const folder = emptyFolder(t)
  setEnv(t, { LOCAL_AUTH_DB: 'sqlite:of-the-setting.db' })

  t.ok(await keepsUsersIn(join(folder, 'of-the-setting.db')))
  t.ok(await keepsUsersIn(join(folder, 'of-the-option.db'), './of-the-option.db'), 'the option goes first')
})

t.test('without target and setting the target is ./local-auth.db', async t => {
  const folder = emptyFolder(t)

  t.ok(await keepsUsersIn(join(folder, 'local-auth.db')))
})

t.test('another scheme is refused by name, and nothing else of the URL is printed', async t => {
  for (const scheme of ['mysql', 'mongodb+srv', 'https', 'libsql', 'MSSQL']) {
    const refused = t.throws(
      () => new SqlAuthStore(`${scheme}://root:hunter2@db.example/users`),
      {
        name: 'OptionsError',
        code: 'invalid_options',
        message: new RegExp(`^target has the scheme "${scheme.toLowerCase().replace('+', '\\+')}:", which is not known`)
      }
    )
    t.notOk(String(refused).includes('hunter2'))
  }
})

t.test('a target that names no file is refused: users would be lost', async t => {
  for (const target of ['', ' ', 'sqlite:', 'sqlite://', 'sqlite: ', 'file:', 'file://', 'file:///', './', 'data/', '/', '\n']) {
    t.throws(() => new SqlAuthStore(target), { name: 'OptionsError', message: /^target must/ }, JSON.stringify(target))
  }
})

const MISTAKES = [
  // What a shell, a file of settings or a template leaves.
  '"./users.db"', "'./users.db'", '"users.db"', "users.db'", './users.db"', '`./users.db`', '“./users.db”', '"', "'",
  '"postgres://ada:hunter2@localhost/app"', "'postgres://ada:hunter2@localhost/app'", "psql 'postgres://ada:hunter2@localhost/app'",
  'psql postgres://ada:hunter2@localhost/app', 'psql -h db.example -U hunter2 app', 'LOCAL_AUTH_DB=./users.db',
  'DATABASE_URL=postgres://ada:hunter2@localhost/app', 'export DATABASE_URL=./users.db', '$DATABASE_URL', '$' + '{DATABASE_URL}', '%DATABASE_URL%',
  '{{ secrets.DATABASE_URL }}', '<hunter2.db>', './users.db;', './users\u0001.db', './us\ners.db', './users.db\u200b', 'sqlite:"users.db"',
  // A connection string of another kind.
  'host=db.example password=hunter2', 'host=/tmp dbname=app password=hunter2', "host = 'db.example' password = 'hunter2'",
  'Server=db.example;Database=app;Password=hunter2', 'hunter2:hunter2@db.example:5432/app', 'a:hunter2@db.example/app', 'hunter2@db.example/app',
  '//ada:hunter2@localhost/app?sslmode=require', 'db.example:5432:app:ada:hunter2',
  // A query, of which SQLite or another driver knows.
  'file:./dev.db?x=1', './dev.db?mode=ro', 'sqlite:dev.db?mode=memory&cache=shared', 'file:///dev.db?x=1', 'file:///dev.db#x',
  'file::memory:?cache=shared', ':memory:?cache=shared', 'sqlite:///dev.db?x=1',
  // What is absent, and words.
  'undefined', 'null', 'NaN', 'true', 'false', 'none', '[object Object]', 'memory', 'postgres', 'sqlite', 'hunter2', 'sqlite:undefined', 'file:null',
  'sqlite:memory', 'sqlite://undefined'
]

t.test('attack 139: what is taken for a file by mistake is refused, and is not printed', async t => {
  const folder = emptyFolder(t)
  for (const target of MISTAKES) {
    setEnv(t, { LOCAL_AUTH_DB: target })
    for (const make of [() => new SqlAuthStore(target), () => new SqlAuthStore()]) {
      const refused = t.throws(make, { name: 'OptionsError', message: /^target (?:must|has)/ }, JSON.stringify(target))
      t.notMatch(inspect(refused, { depth: null, showHidden: true }), /hunter2/)
    }
  }
  t.strictSame(readdirSync(folder), [])
})

t.test('an empty setting is refused, and is named', async t => {
  setEnv(t, { LOCAL_AUTH_DB: '' })

  t.throws(
    () => new SqlAuthStore(),
    { name: 'OptionsError', message: 'target must not be empty; set LOCAL_AUTH_DB to an SQLite file or a postgres: URL, or leave it unset' }
  )
})

t.test('a file URL that no file can have is refused', async t => {
  for (const target of ['file://another-host/users.db', 'file://users.db', 'file:///a%2Fb.db']) {
    t.throws(() => new SqlAuthStore(target), { name: 'OptionsError', message: /^target/ }, target)
  }
})

t.test('a path of Windows is a file: its drive is not a scheme', async t => {
  const files = ['C:\\users.db', 'C:\\My files\\users.db', 'c:/app/users.db', 'D:users.db', 'data\\users.db']
  for (const file of files) t.strictSame(sqlTarget(file), { dialect: 'sqlite', file })
})

const POSTGRES_URLS = [
  'postgres://localhost/app',
  'postgresql://localhost/app',
  'POSTGRES://localhost/app',
  'PostgreSQL://localhost/app',
  'postgres://ada@db.example/app',
  'postgres://ada:secret@db.example:6543/app',
  'postgres://ada:p%40s%2Fs%23%3F%25@db.example/app',
  'postgres://ada:p@ss@db.example/app',
  'postgres://ada:p,ss@db.example:5432/app',
  'postgres://ada:p,ss@one.example:5432,two.example:5432/app',
  'postgres://ada:secret@127.0.0.1:5432/app',
  'postgres://ada:secret@[::1]/app',
  'postgres://ada:secret@[2001:db8::1]:5432/app',
  'postgres://ada:secret@one.example,two.example/app',
  'postgres://ada:secret@one.example:5432,two.example:5433,three.example:5434/app?target_session_attrs=read-write',
  'postgres://ada:secret@db.example/app?sslmode=require&options=-c%20search_path%3Dauth',
  'postgres://db.example?user=ada@example.com',
  'postgres://ada:secret@db.example',
  'postgres://ada@/app?host=/tmp',
  'postgres:///app',
  'postgres://'
]

for (const url of POSTGRES_URLS) {
  t.test(`${url} is a Postgres database`, async t => {
    const folder = emptyFolder(t)

    t.strictSame(sqlTarget(url), { dialect: 'postgres', url })
    t.strictSame(sqlTarget(` ${url}\n`), { dialect: 'postgres', url }, 'with white space around it')
    await t.resolves(new SqlAuthStore(url).close())

    t.strictSame(readdirSync(folder), [], 'and no file')
  })
}

const BROKEN_POSTGRES_URLS = [
  'postgres:',
  'postgresql:',
  'postgres:/',
  'postgres:hunter2',
  'postgres:localhost/hunter2',
  'postgres:/localhost/hunter2',
  'postgres:\\\\localhost\\hunter2',
  'postgres://[',
  'postgres://ada:hunter2@[::1/app',
  'postgres://ada:hunter2@[not-an-address]/app',
  'postgres://localhost:port/app',
  'postgres://localhost:99999/app',
  'postgres://ada:hunter2@localhost:port/app',
  'postgres://ada:hunter2@local host/app',
  'postgres://ada:hunter2@local^host/app',
  'postgres://ada:hunter2@:5432/app',
  'postgres://ada:hun/ter2@localhost/app',
  'postgres://ada:hun#ter2@localhost/app',
  'postgres://ada:hun?ter2@localhost/app',
  'postgres://ada:12/ter2@localhost/app',
  'postgres://ada:12#ter2@localhost/app',
  'postgres://ada:12#te?r2@localhost/app',
  'postgres://ada:hunter2%@localhost/app',
  'postgres://ada@localhost/app?password=hunter2%',
  'postgres://ada:hunter2@localhost:5432,localhost:port/app',
  'PostgreSQL://ada:hunter2/@localhost:5432/app'
]

for (const url of BROKEN_POSTGRES_URLS) {
  t.test(`${url} is refused, and is not printed`, async t => {
    const expected = {
      name: 'OptionsError',
      code: 'invalid_options',
      message: /^target must be a whole postgres: URL, such as postgres:\/\/user:password@localhost:5432\/app; /
    }
    setEnv(t, { LOCAL_AUTH_DB: url })

    const refused = [t.throws(() => new SqlAuthStore(url), expected), t.throws(() => new SqlAuthStore(), expected, 'as the setting too')]

    for (const error of refused) t.notMatch(inspect(error, { depth: null, showHidden: true }), /hunter2|hun[/#?]?ter2|r2@/)
  })
}

t.test('the setting LOCAL_AUTH_DB may be a postgres: URL', async t => {
  const folder = emptyFolder(t)
  // It may be asked twice: the store connects while it still loads what makes its statements.
  const greetings: string[] = []
  const server = createServer(socket => {
    socket.once('data', greeting => {
      greetings.push(greeting.toString())
      socket.end(refusal('28P01', 'nobody is let in'))
    })
  })
  t.teardown(() => { server.close() })
  setEnv(t, { LOCAL_AUTH_DB: `postgres://ada:secret@127.0.0.1:${await listening(server)}/app` })
  const store = new SqlAuthStore()
  t.teardown(() => store.close())

  await t.rejects(
    store.findUser({ userId: ADA.userId }),
    { code: 'unavailable', cause: { message: 'Postgres: nobody is let in; correct user and password' } }
  )

  t.match(greetings[0], /\0user\0ada\0database\0app\0/)
  t.strictSame(readdirSync(folder), [])
})

t.test('an existing engine is recognised by its methods', async t => {
  const connection = new SqliteDatabase(':memory:')
  const client = postgres('postgres://localhost/app')
  const pool = new pg.Pool({ connectionString: 'postgres://localhost/app' })
  // In `npm test` without its database, which takes seconds to start: what is looked at are its methods.
  const pglite: PGlite = isThorough ? await PGlite.create() : Object.create(PGlite.prototype)
  t.teardown(async () => {
    connection.close()
    await Promise.all([client.end(), pool.end(), isThorough && pglite.close()])
  })

  t.test('better-sqlite3 and Drizzle on better-sqlite3 are SQLite engines', async t => {
    t.strictSame(sqlTarget(connection), { dialect: 'sqlite', connection })
    for (const db of [drizzleSqlite(connection), drizzleSqlite({ client: connection, schema: {} })]) t.equal(propertyOf(sqlTarget(db), 'db'), db)
    t.equal(sqlTarget(drizzleSqlite(connection)).dialect, 'sqlite')
  })

  t.test('a client of the package postgres is a Postgres engine', async t => {
    const target = sqlTarget(client)

    t.equal(target.dialect, 'postgres')
    t.equal(propertyOf(target, 'client'), client)
  })

  t.test('Drizzle on any Postgres driver is a Postgres engine', async t => {
    const databases = [
      drizzlePostgresJs(postgres('postgres://localhost/app')),
      drizzleNodePostgres(pool),
      drizzlePglite(pglite),
      drizzlePgProxy(async () => ({ rows: [] }))
    ]

    for (const db of databases) {
      const target = sqlTarget(db)
      t.equal(target.dialect, 'postgres')
      t.equal(propertyOf(target, 'db'), db)
    }
  })

  t.test('the type of a target accepts each engine', async t => {
    const engines: SqlEngine[] = [connection, drizzleSqlite(connection), client, drizzleNodePostgres(pool), drizzlePglite(pglite)]

    for (const engine of engines) await t.resolves(new SqlAuthStore(engine).close())
  })

  t.test('drivers below an engine, and databases of other dialects, are refused', async t => {
    const others = [
      pool,
      pglite,
      new pg.Client(),
      postgres,
      SqliteDatabase,
      PGlite,
      drizzleSqlite,
      drizzleMysqlProxy(async () => ({ rows: [] })),
      drizzleSqliteProxy(async () => ({ rows: [] })),
      { execute () {}, transaction () {}, $client: { execute () {}, query () {} } }, // MySQL
      { run () {}, all () {}, transaction () {}, $client: { execute () {}, batch () {} } }, // libSQL
      { exec () {}, prepare () {}, close () {} }, // node:sqlite
      Promise.resolve(connection),
      Promise.resolve(drizzlePglite(pglite)),
      () => client
    ]

    for (const other of others) t.throws(() => new SqlAuthStore(other as never), NO_ENGINE)
  })
})

t.test('a value that is not an engine is refused', async t => {
  const nonsense = [
    null, 0, 5, true, 1n, {}, [], () => {}, class {}, Symbol('a'), new Map(),
    new URL('file:///users.db'), new URL('postgres://localhost/app'), Buffer.from('users.db'), ['users.db'],
    { prepare () {} }, { pragma () {} }, { prepare: true, pragma: true }, { $client: {} }, { $client: null }, { $client: () => {} },
    { execute () {} }, { refreshMaterializedView () {} }, { unsafe () {}, reserve () {} },
    Object.assign(() => {}, { unsafe () {} }),
    Object.assign(() => {}, { execute () {}, refreshMaterializedView () {} })
  ]

  for (const target of nonsense) t.throws(() => new SqlAuthStore(target as never), NO_ENGINE)
})

t.test('createTables must be true or false, and an option of another name is refused', async t => {
  for (const createTables of [null, 0, 1, 'false', 'no', {}]) {
    t.throws(() => new SqlAuthStore(':memory:', { createTables } as object), {
      name: 'OptionsError', message: 'SqlAuthStore: createTables must be true or false'
    })
  }
  t.throws(() => new SqlAuthStore(':memory:', { createTable: false } as object), { name: 'OptionsError', message: /createTable\b/ })
})

function propertyOf (target: object, name: string): unknown {
  return Reflect.get(target, name)
}

/** An ErrorResponse of Postgres (Protocol, message formats). */
function refusal (code: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0C${code}\0M${message}\0\0`)
  const head = Buffer.from('E\0\0\0\0')
  head.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
}
