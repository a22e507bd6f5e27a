import { randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setInterval as ticks, setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import SqliteDatabase, { type Database } from 'better-sqlite3'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import { migrate } from 'drizzle-orm/better-sqlite3/migrator'
import t, { type Test } from 'tap'
import { Accounts } from '../../lib/accounts/accounts.js'
import { TIMEOUT_MS } from '../../lib/base/concurrency.js'
import type { StoreCapabilities } from '../../lib/session/store.js'
import type { SqlEngine } from '../../lib/engines/sql.js'
import { SqlAuthStore, type SqlAuthStoreOptions } from '../../lib/engines/sql.js'
import { authStoreContract } from '../../lib/testing.js'
import { localProvider, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { OwnProvider, leaveFor } from '../helpers/own-provider.js'
import { isThorough, some } from '../helpers/thorough.js'
import { startProcess } from './start-process.js'
import type { Answer } from './store-process.js'
import { HASH, localUser, newFactor, newUser, toFactors } from './users.js'

const MIGRATIONS_FOLDER = fileURLToPath(new URL('../../drizzle/sqlite', import.meta.url))
const PAGE_SIZE = 4096
const UNAVAILABLE = { name: 'AuthError', code: 'unavailable', statusCode: 503, message: 'Accounts cannot be reached at the moment; try again later.' }
/** What a process with a store needs only when it is called: loaded before, many processes get to the file at the same moment. */
const LOADED_BEFORE = ['--import', new URL('../../lib/engines/sqlite/open.ts', import.meta.url).href]

/** Stores on a file, by what they are opened with. */
const ENGINES_ON_A_FILE: Record<string, (t: Test, file: string) => SqlAuthStore> = {
  'a file': (t, file) => open(t, file),
  "the application's connection, with a busy timeout of five seconds": (t, file) => open(t, walConnection(t, file)),
  "the application's Drizzle database": (t, file) => open(t, drizzle(walConnection(t, file)))
}

if (isThorough) {
  t.test('SqlAuthStore in memory', async t => {
    authStoreContract(t.test, () => new SqlAuthStore(':memory:'))
  })
}

t.test('SqlAuthStore on a file, through two connections', async t => {
  const file = join(t.testdir(), 'users.db')
  await open(t, file).links(randomUUID()) // The tables are there for what follows.
  const connection = connect(t, file)
  connection.pragma('foreign_keys = on')
  authStoreContract(t.test, () => {
    connection.exec('delete from svc_auth_users')
    return { store: open(t, file), twin: open(t, file) }
  })
})

if (isThorough) {
  t.test("SqlAuthStore on the application's Drizzle database", async t => {
    authStoreContract(t.test, () => {
      const connection = connect(t)
      return { store: open(t, drizzle(connection, { casing: 'snake_case' })), twin: open(t, connection) }
    })
  })
}

t.test('tables', async t => {
  t.test('the tables are made by the first query and by no other', async t => {
    const connection = connect(t)
    const store = open(t, connection)

    t.strictSame(tablesOf(connection), [], 'nothing is done before')
    await store.findUser({ email: 'ada@example.com' })
    t.strictSame(tablesOf(connection), ['svc_auth_credentials', 'svc_auth_migrations', 'svc_auth_provider_links', 'svc_auth_users'])
    const before = schemaVersion(connection)
    await new Accounts(store).createUser(newUser())
    t.equal(schemaVersion(connection), before)
  })

  t.test('the tables have the columns of the documentation', async t => {
    const connection = connect(t)

    await open(t, connection).findUser({ email: 'ada@example.com' })

    const columns = (table: string) => connection.prepare('select name from pragma_table_info(?)').pluck().all(table)
    t.strictSame(columns('svc_auth_users'), ['user_id', 'email', 'name', 'claims', 'extras'])
    t.strictSame(columns('svc_auth_credentials'), ['user_id', 'pw_hash'])
    t.strictSame(columns('svc_auth_provider_links'), ['provider', 'subject', 'user_id', 'claims'])
  })

  t.test('tables that another store made are found, not made again', async t => {
    const file = join(t.testdir(), 'users.db')
    await new Accounts(open(t, file)).createUser(newUser({ email: 'ada@example.com' }))
    const connection = connect(t, file)
    const before = schemaVersion(connection)

    t.ok(await open(t, connection).findUser({ email: 'ada@example.com' }))

    t.equal(schemaVersion(connection), before)
  })

  t.test('the tables are brought up to date: a migration that the journal does not name is run', async t => {
    const connection = connect(t)
    connection.exec('create table svc_auth_migrations (name text primary key)')
    connection.exec("insert into svc_auth_migrations values ('an earlier migration')")

    t.ok(await new Accounts(open(t, connection)).createUser(newUser()))

    t.equal(connection.prepare('select count(*) from svc_auth_migrations').pluck().get(), 2)
  })

  t.test('tables without the journal of this library are used as they are', async t => {
    const connection = connect(t)
    connection.exec(readFileSync(join(MIGRATIONS_FOLDER, '0000_tables.sql'), 'utf8'))

    const created = await new Accounts(open(t, connection)).createUser(newUser())

    t.ok(created)
    t.notOk(tablesOf(connection).includes('svc_auth_migrations'))
  })

  t.test("that the application's own migrations made need no createTables", async t => {
    const db = drizzle(connect(t))
    migrate(db, { migrationsFolder: MIGRATIONS_FOLDER })

    const store = open(t, db, { createTables: false })

    t.ok(await new Accounts(store).createUser(newUser({ email: 'ada@example.com' })))
    t.ok(await store.findUser({ email: 'ada@example.com' }))
  })

  t.test('the tables are not made with createTables: false, and without them every query is unavailable and says what to do', async t => {
    const connection = connect(t)
    const store = open(t, connection, { createTables: false })

    await t.rejects(
      store.findUser({ email: 'ada@example.com' }),
      unavailable('SqliteError: no such table: svc_auth_users; run the migrations that make the tables, or leave createTables at true', 'SQLITE_ERROR')
    )
    await t.rejects(new Accounts(store).createUser(newUser()), UNAVAILABLE)

    t.strictSame(tablesOf(connection), [])
  })

  t.test('the tables are made all or none: one that is in the way makes every query unavailable until it is gone', async t => {
    const connection = connect(t)
    const store = open(t, connection)
    connection.exec('create table svc_auth_provider_links (something_else)')

    await t.rejects(store.findUser({ email: 'ada@example.com' }), { ...UNAVAILABLE, cause: Error })
    t.strictSame(tablesOf(connection), ['svc_auth_provider_links'])
    connection.exec('drop table svc_auth_provider_links')

    t.ok(await new Accounts(store).createUser(newUser()))
  })

  t.test('the tables are made by one of many processes that start at once on an empty file, and all go on', async t => {
    const file = join(t.testdir(), 'users.db')
    const processes = await Promise.all(Array.from({ length: isThorough ? 20 : 2 }, () => startProcess(t, file, LOADED_BEFORE)))
    const users = processes.map((_, index) => newUser({ email: `user-${index}@example.com` }))

    const answers = await Promise.all(processes.map(async (call, index) => call(['createUser', users[index] ?? newUser()])))

    t.hasStrict(answers, users.map(({ link, ...user }) => ({ result: user })))
    const connection = connect(t, file)
    t.strictSame(connection.prepare('select email from svc_auth_users order by rowid').pluck().all().sort(), users.map(({ email }) => email).sort())
    t.equal(connection.prepare('select count(*) from svc_auth_migrations').pluck().get(), 1)
  })
})

t.test('statements', async t => {
  t.test('a sign-in that reports what the store has writes nothing, also while another process holds the lock', async t => {
    const file = join(t.testdir(), 'users.db')
    const connection = walConnection(t, file)
    const store = open(t, connection)
    const user = newUser({ emailVerified: true, link: { provider: 'dev', subject: '1', claims: { sub: '1', name: 'A user' } } })
    const identity = { ...user.link, claims: { ...user.link.claims, name: 'Ada', email: 'ada@example.com' }, verifiedEmail: 'ada@example.com' }
    await new Accounts(store).createUser({ ...user, email: 'ada@example.com' })
    const first = await new Accounts(store).refreshIdentity(identity)
    const rowsWritten = () => connection.prepare('select total_changes()').pluck().get()
    const before = rowsWritten()
    const other = connect(t, file)

    other.exec('begin immediate')
    t.strictSame(await new Accounts(store).refreshIdentity(identity), first)
    t.strictSame(await new Accounts(store).refreshIdentity({ ...identity, claims: { ...identity.claims } }), first)
    t.equal(rowsWritten(), before)
    const changed = new Accounts(store).refreshIdentity({ ...identity, claims: { sub: '1', name: 'Countess' } })
    other.exec('commit')

    t.equal((await changed)?.name, 'Countess')
    t.not(rowsWritten(), before)
  })

  t.test('statements are compiled once', async t => {
    const connection = connect(t)
    const store = open(t, connection)
    const everyCall = async () => {
      const ada = newUser({ email: `${randomUUID()}@example.com` })
      await new Accounts(store).createUser(ada)
      await store.findUser({ userId: ada.userId })
      await new Accounts(store).refreshIdentity({ ...ada.link, verifiedEmail: ada.email })
      await new Accounts(store).grant(ada.userId, { role: 'admin' })
      await new Accounts(store).deleteUser(ada.userId)
    }
    await everyCall()
    const compiled = t.capture(connection, 'prepare', connection.prepare)

    await everyCall()

    t.strictSame(compiled().map(({ args: [statement] }) => statement), [])
  })

  t.test('statements go on when another connection makes their tables anew, and fail only while those are missing', async t => {
    const file = join(t.testdir(), 'users.db')
    const [store, connection] = [open(t, file), connect(t, file)]
    const ada = newUser({ email: 'ada@example.com' })
    await new Accounts(store).createUser(ada)
    const everyCall = async () => [
      (await store.findUser({ userId: ada.userId }))?.email,
      (await store.findUser({ email: 'ada@example.com' }))?.email,
      (await new Accounts(store).refreshIdentity({ ...ada.link, verifiedEmail: null }))?.email
    ]
    await everyCall()
    connection.pragma('foreign_keys = OFF')
    connection.pragma('legacy_alter_table = ON')

    connection.exec('alter table svc_auth_users rename to old')
    await t.rejects(everyCall(), UNAVAILABLE)
    connection.exec(`
      create table svc_auth_users (note text, name text, email text, extras text not null, claims text not null, user_id text primary key);
      insert into svc_auth_users (user_id, email, name, claims, extras) select user_id, email, name, claims, extras from old;
      drop table old`)

    t.strictSame(await everyCall(), ['ada@example.com', 'ada@example.com', 'ada@example.com'])
  })
})

t.test('a grant is there after a restart', async t => {
  const file = join(t.testdir(), 'users.db')
  const user = newUser({ email: 'ada@example.com' })
  const before = await startProcess(t, file)
  await before(['createUser', user])
  await before(['grant', user.userId, { role: 'admin' }])
  await before.end()

  const after = await startProcess(t, file)

  t.match(await after(['findUser', { email: 'ada@example.com' }]), { result: { userId: user.userId, claims: { role: 'admin' } } })
})

t.test('grants of several processes at once all count', async t => {
  const file = join(t.testdir(), 'users.db')
  const user = newUser()
  const processes = await Promise.all(Array.from({ length: isThorough ? 4 : 2 }, () => startProcess(t, file)))
  const names = Array.from({ length: 20 }, (_, index) => `claim-${index}`)
  await processes[0]?.(['createUser', user])

  const answers = await Promise.all(processes.map(async (call, process) => {
    const answers: Answer[] = []
    for (const name of names) answers.push(await call(['grant', user.userId, { [`${name} of ${process}`]: 1 }]))
    return answers
  }))

  t.strictSame(answers.flat().filter(answer => 'error' in answer), [])
  const claims = (await open(t, file).findUser({ userId: user.userId }))?.claims ?? {}
  t.strictSame(Object.keys(claims).sort(), processes.flatMap((_, process) => names.map(name => `${name} of ${process}`)).sort())
})

t.test('a user is written whole or not at all, and what fails is not tried again', async t => {
  const connection = connect(t)
  const store = open(t, connection)
  await new Accounts(store).createUser(newUser({ email: 'ada@example.com' }))
  let attempts = 0
  connection.function('fails', () => {
    attempts++
    throw new Error('the disk is full')
  })
  connection.exec('create trigger full before insert on svc_auth_credentials begin select fails(); end')
  const bob = newUser({ email: 'bob@example.com', passwordHash: HASH })

  await t.rejects(new Accounts(store).createUser(bob), UNAVAILABLE)

  t.equal(attempts, 1)
  t.equal(await store.findUser({ email: 'bob@example.com' }), null)
  t.equal(await store.findUser(bob.link), null)
})

t.test('the local link is removed with its password, or not at all', async t => {
  const connection = connect(t)
  const store = open(t, connection)
  const bob = localUser('bob@example.com')
  await new Accounts(store).createUser(bob)
  await new Accounts(store).addLink(bob.userId, { provider: 'dev', subject: '1', claims: { sub: '1' }, verifiedEmail: null })
  const links = await store.links(bob.userId)
  connection.exec("create trigger full before delete on svc_auth_credentials begin select raise(abort, 'the disk is full'); end")

  await t.rejects(new Accounts(store).removeLink(bob.userId, 'local'), UNAVAILABLE)

  t.strictSame(await store.links(bob.userId), links)
  t.hasStrict(await store.findCredential('bob@example.com'), { user: { userId: bob.userId }, passwordHash: HASH })
})

t.test('the table of factors is made before the change that needs it, and stays where that is rolled back', async t => {
  const connection = connect(t)
  const accounts = new Accounts(open(t, connection))
  const [ada, factor] = [newUser(), newFactor()]
  await accounts.createUser(ada)
  await t.rejects(accounts.changeFactors(ada.userId, toFactors(factor, factor)), 'an id twice')
  t.equal(connection.prepare("select name from sqlite_master where name = 'svc_auth_factors'").pluck().get(), 'svc_auth_factors')

  await accounts.changeFactors(ada.userId, toFactors(factor))

  t.strictSame(await accounts.factors(ada.userId), [factor])
})

t.test('a user is deleted', async t => {
  const rowsOf = (connection: Database) => ['svc_auth_users', 'svc_auth_provider_links', 'svc_auth_credentials']
    .map(table => connection.prepare(`select count(*) from ${table}`).pluck().get())

  t.test('a user is deleted whole or not at all', async t => {
    for (const table of ['svc_auth_users', 'svc_auth_provider_links', 'svc_auth_credentials']) {
      const connection = connect(t)
      const store = open(t, connection)
      const bob = localUser('bob@example.com')
      await new Accounts(store).createUser(bob)
      connection.exec(`create trigger full after delete on ${table} begin select raise(abort, 'the disk is full'); end`)

      await t.rejects(new Accounts(store).deleteUser(bob.userId), { ...UNAVAILABLE, cause: { message: 'the disk is full' } })

      t.strictSame(rowsOf(connection), [1, 1, 1], table)
      t.hasStrict(await store.findCredential('bob@example.com'), { user: { userId: bob.userId }, passwordHash: HASH })
    }
  })

  t.test("without a trace on a connection of the application's whose foreign keys are switched off", async t => {
    const connection = connect(t)
    connection.pragma('foreign_keys = OFF')
    const store = open(t, connection)
    const bob = localUser('bob@example.com')
    await new Accounts(store).createUser(bob)
    await new Accounts(store).addLink(bob.userId, { provider: 'dev', subject: '1', claims: { sub: '1' }, verifiedEmail: null })
    await new Accounts(store).changeFactors(bob.userId, toFactors(newFactor()))

    await new Accounts(store).deleteUser(bob.userId)

    t.strictSame(rowsOf(connection), [0, 0, 0])
    t.equal(connection.prepare('select count(*) from svc_auth_factors').pluck().get(), 0)
  })

  for (const reference of ['', 'on delete restrict', 'on delete no action', 'deferrable initially deferred']) {
    t.test(`a user is not deleted while a table of the application refers to them: ${reference || 'a plain reference'}`, async t => {
      const connection = connect(t)
      const store = open(t, connection)
      const bob = localUser('bob@example.com')
      const carol = newUser()
      await new Accounts(store).createUser(bob)
      await new Accounts(store).createUser(carol)
      connection.exec(`create table orders (user_id text references svc_auth_users (user_id) ${reference})`)
      connection.prepare('insert into orders values (?)').run(bob.userId)

      await t.rejects(
        new Accounts(store).deleteUser(bob.userId),
        { name: 'AuthError', code: 'user_in_use', statusCode: 409, cause: { message: 'FOREIGN KEY constraint failed' } }
      )

      t.hasStrict(await store.findCredential('bob@example.com'), { user: { userId: bob.userId }, passwordHash: HASH })
      t.strictSame(await store.links(bob.userId), [{ ...bob.link, userId: bob.userId }])
      await t.resolves(new Accounts(store).deleteUser(carol.userId), 'no row refers to Carol')
      connection.exec('delete from orders')
      await t.resolves(new Accounts(store).deleteUser(bob.userId), 'no row refers to Bob any more')
      t.strictSame(rowsOf(connection), [0, 0, 0])
    })
  }

  t.test("with what the application's own tables delete or forget then", async t => {
    const connection = connect(t)
    const store = open(t, connection)
    const bob = newUser()
    await new Accounts(store).createUser(bob)
    connection.exec(`
      create table carts (user_id text references svc_auth_users (user_id) on delete cascade);
      create table reviews (user_id text references svc_auth_users (user_id) on delete set null)`)
    for (const table of ['carts', 'reviews']) connection.prepare(`insert into ${table} values (?)`).run(bob.userId)

    await new Accounts(store).deleteUser(bob.userId)

    t.strictSame(connection.prepare('select * from carts').all(), [])
    t.strictSame(connection.prepare('select * from reviews').all(), [{ user_id: null }])
  })
})

t.test('a link is added with what is noted about the user, or not at all', async t => {
  const connection = connect(t)
  const store = open(t, connection)
  const ada = newUser()
  await new Accounts(store).createUser(ada)
  connection.exec("create trigger full before update on svc_auth_users begin select raise(abort, 'the disk is full'); end")

  const other = { provider: 'other', subject: '1', claims: { sub: '1', name: 'Countess' }, verifiedEmail: null }
  await t.rejects(new Accounts(store).addLink(ada.userId, other), UNAVAILABLE)
  await t.rejects(new Accounts(store).refreshIdentity({ ...ada.link, claims: other.claims, verifiedEmail: null }), UNAVAILABLE)

  t.strictSame(await store.links(ada.userId), [{ ...ada.link, userId: ada.userId }])
})

t.test('a verified e-mail leaves the other notes about a user alone', async t => {
  const connection = connect(t)
  const store = open(t, connection)
  const ada = newUser()
  await new Accounts(store).createUser(ada)
  connection.prepare('update svc_auth_users set extras = ?').run('{"note":["kept"],"email_verified":false}')

  await new Accounts(store).refreshIdentity({ ...ada.link, verifiedEmail: 'ada@example.com' })

  t.strictSame(
    JSON.parse(String(connection.prepare('select extras from svc_auth_users').pluck().get())),
    { note: ['kept'], email_verified: true, email_verified_by: ['dev'], email_proven: true, name_key: 'somebody', email_domain: 'example.com' }
  )
})

t.test('damaged data makes a query unavailable; what is wrong is in the cause only', async t => {
  const connection = connect(t)
  const store = open(t, connection)
  const ada = newUser()
  await new Accounts(store).createUser(ada)
  connection.exec("update svc_auth_users set claims = '{damaged'")

  await t.rejects(store.findUser({ userId: ada.userId }), { ...UNAVAILABLE, cause: SyntaxError })
})

t.test('a database that the store opens is in WAL mode, flushes commits and enforces foreign keys', async t => {
  const pragmas = t.capture(SqliteDatabase.prototype, 'pragma', SqliteDatabase.prototype.pragma)
  const file = join(t.testdir(), 'users.db')

  await new Accounts(open(t, file)).createUser(newUser())

  const connection: unknown = pragmas()[0]?.receiver
  if (!(connection instanceof SqliteDatabase)) return t.fail('the connection of the store is expected')
  t.equal(connection.pragma('journal_mode', { simple: true }), 'wal')
  t.equal(connection.pragma('synchronous', { simple: true }), 2)
  t.equal(connection.pragma('foreign_keys', { simple: true }), 1)
})

t.test('one-time entries, and sessions that end none, are committed without waiting for the disk', async t => {
  const pragmas = t.capture(SqliteDatabase.prototype, 'pragma', SqliteDatabase.prototype.pragma)
  const file = join(t.testdir(), 'users.db')
  const store = open(t, file)
  const user = newUser()
  // So long ago that nothing is swept meanwhile.
  const entry = { hash: 'one', kind: 'sign-in', owner: 'a', content: {}, startedAt: 1 }
  await new Accounts(store).createUser(user)
  await store.entries.count('a', 'sign-in', 0)
  const connection: unknown = pragmas()[0]?.receiver
  if (!(connection instanceof SqliteDatabase)) return t.fail('the connection of the store is expected')
  const session = { idHash: 'a', user: null, data: null, userAgent: null, createdAt: 1, expiresAt: 2 }
  const damaged = { ...entry, content: { toJSON: () => { throw new Error('it cannot be written') } } }

  for (const [waits, name, write] of [
    [false, 'an entry', () => store.entries.put(entry, 8)],
    [true, 'an attempt', () => store.entries.attempt(entry, 3)],
    [false, 'an entry that is taken', () => store.entries.take('one', 'sign-in', ['a'])],
    [true, 'an account', () => new Accounts(store).grant(user.userId, { role: 'admin' })],
    [false, 'a failure', () => t.rejects(store.entries.put(damaged as never, 8), UNAVAILABLE)],
    [true, 'an account after a failure', () => new Accounts(store).grant(user.userId, { role: 'editor' })],
    [false, 'a session', () => store.sessions.insert(session, null)],
    [true, 'the end of a session', () => store.sessions.insert({ ...session, idHash: 'b' }, 'a')],
    [false, 'a session of a visitor', () => store.sessions.insert({ ...session, idHash: 'of a visitor' }, 'a visitor')],
    [true, 'an admission', () => store.sessions.insert({ ...session, idHash: 'c', admits: true }, null)],
    [false, 'another entry', () => store.entries.put(entry, 8)],
    [true, 'a sign-out', () => store.sessions.end('c', { now: 1, isSignOut: false })]
  ] as const) {
    await write()
    // As the last commit was.
    t.equal(connection.pragma('synchronous', { simple: true }), waits ? 2 : 1, name)
  }
})

t.test('a registration commits twice, and a sign-in at a provider once after the sign-in was taken', async t => {
  const file = join(t.testdir(), 'users.db')
  const store = open(t, file)
  const app = await startApp(t, {
    baseUrl: 'http://localhost:3000', providers: [new OwnProvider('dev')], local: localProvider(), store
  })
  const register = async (email: string): Promise<void> => {
    const { statusCode } = await new Browser(app).post('/auth/local/register', { email, password: 'correct horse' })
    t.equal(statusCode, 201)
  }
  await register('ada@example.com')
  const user = { subject: 'bob', email: 'bob@example.com' }

  t.equal(await commitsIn(file, () => register('eve@example.com')), 2, 'the account, and the session that admits it')
  const [first, second] = [new Browser(app), new Browser(app)]
  const callback = await leaveFor(first, '/auth/dev/login', user)
  t.equal(await commitsIn(file, () => first.get(callback)), 3, 'the sign-in is taken, the account, the session')
  const known = await leaveFor(second, '/auth/dev/login', user)
  t.equal(await commitsIn(file, () => second.get(known)), 2, 'the sign-in is taken, the session')
})

/** The number of commits to a file meanwhile: each ends with a frame of its log that has the size of the database. */
async function commitsIn (file: string, work: () => Promise<unknown>): Promise<number> {
  const commits = (): number => {
    const log = readFileSync(`${file}-wal`)
    const frames = Array.from({ length: Math.floor((log.length - 32) / (24 + PAGE_SIZE)) }, (_, n) => 32 + n * (24 + PAGE_SIZE))
    return frames.filter(frame => log.readUInt32BE(frame + 4) > 0).length
  }
  const before = commits()
  await work()
  return commits() - before
}

t.test('while another process holds the lock', async t => {
  t.test('a write waits, the event loop goes on, and the write is done when the lock is gone', async t => {
    const file = join(t.testdir(), 'users.db')
    const store = open(t, file)
    const ada = newUser({ claims: { role: 'member' } })
    await new Accounts(store).createUser(ada)
    const other = connect(t, file)
    let isDone = false

    other.exec('begin immediate')
    const granted = new Accounts(store).grant(ada.userId, { role: 'admin' }).finally(() => { isDone = true })
    for await (const tick of countedTicks()) if (tick === 20) break
    t.equal(isDone, false)
    other.exec('commit')

    t.strictSame(await granted, { role: 'admin' })
  })

  for (const [engine, storeOn] of some(Object.entries(ENGINES_ON_A_FILE), 3)) {
    t.test(`fifty writes wait, the process is idle meanwhile, and all are done when the lock is gone: on ${engine}`, async t => {
      const file = join(t.testdir(), 'users.db')
      const store = storeOn(t, file)
      const ada = newUser()
      await new Accounts(store).createUser(ada)
      const names = Array.from({ length: 50 }, (_, index) => `claim-${index}`)
      const other = connect(t, file)

      other.exec('begin immediate')
      const granted = Promise.all(names.map(name => new Accounts(store).grant(ada.userId, { [name]: 1 })))
      const before = performance.eventLoopUtilization()
      for await (const tick of countedTicks()) if (tick === 20) break
      const { utilization } = performance.eventLoopUtilization(before)
      other.exec('commit')
      await granted

      t.ok(utilization < 0.7, `the process was busy for ${utilization} of the time`)
      t.strictSame(Object.keys((await store.findUser({ userId: ada.userId }))?.claims ?? {}).sort(), names.sort())
    })
  }

  t.test('a connection of the application keeps its busy timeout, whether a write is done, waits or fails', async t => {
    const file = join(t.testdir(), 'users.db')
    const connection = connect(t, file)
    connection.pragma('busy_timeout = 1234')
    const store = open(t, connection)
    const ada = newUser()
    const timeout = () => connection.pragma('busy_timeout', { simple: true })
    await new Accounts(store).createUser(ada)
    t.equal(timeout(), 1234)
    const other = connect(t, file)

    other.exec('begin immediate')
    const granted = new Accounts(store).grant(ada.userId, { role: 'admin' })
    t.equal(timeout(), 1234)
    other.exec('commit')
    await granted
    await t.rejects(new Accounts(store).grant(randomUUID(), {}), { code: 'unknown_user' })

    t.equal(timeout(), 1234)
  })

  t.test('reading goes on', async t => {
    const file = join(t.testdir(), 'users.db')
    const store = open(t, file)
    const [ada, factor] = [newUser({ email: 'ada@example.com' }), newFactor()]
    await new Accounts(store).createUser(ada)
    await new Accounts(store).changeFactors(ada.userId, toFactors(factor))
    const other = connect(t, file)

    other.exec('begin immediate')

    for (const store of [open(t, file), open(t, connect(t, file))]) {
      t.ok(await store.findUser({ email: 'ada@example.com' }))
      t.strictSame(await new Accounts(store).factors(ada.userId), [factor])
      t.strictSame(await store.factors(ada.userId), [factor])
    }
  })

  t.test('the tables are made when the lock is gone', async t => {
    const file = join(t.testdir(), 'users.db')
    const other = connect(t, file)
    other.pragma('journal_mode = WAL')

    other.exec('begin immediate')
    const created = new Accounts(open(t, file)).createUser(newUser())
    for await (const tick of countedTicks()) if (tick === 10) break
    other.exec('commit')

    t.ok(await created)
  })

  t.test('a database that is not in WAL mode yet is opened when the lock is gone', async t => {
    const file = join(t.testdir(), 'users.db')
    const other = connect(t, file)
    other.exec('create table of_the_application (id)')

    other.exec('begin immediate')
    const created = new Accounts(open(t, file)).createUser(newUser()).catch((error: unknown) => error)
    for await (const tick of countedTicks()) if (tick === 20) break
    other.exec('commit')

    t.match(await created, { name: 'Somebody' })
  })

  t.test('a write gives up after five seconds, and the next one is done', async t => {
    const file = join(t.testdir(), 'users.db')
    const store = open(t, file)
    await new Accounts(store).createUser(newUser())
    const other = connect(t, file)

    other.exec('begin immediate')
    let isSettled = false
    const created = new Accounts(store).createUser(newUser()).finally(() => { isSettled = true })
    advanceClock(t, TIMEOUT_MS - 1000)
    await wait(20)
    t.notOk(isSettled)
    advanceClock(t, 1000)
    await t.rejects(
      created,
      unavailable('SqliteError: database is locked; another process has held the lock for longer than five seconds; see what it does', 'SQLITE_BUSY')
    )
    other.exec('commit')

    t.ok(await new Accounts(store).createUser(newUser()))
  })
})

t.test('what cannot be used is unavailable, with what to do in the cause, until it can be used', async t => {
  const CANNOT_OPEN = unavailable(
    'SqliteError: unable to open database file; name a file in a folder that exists and that this process may write to',
    'SQLITE_CANTOPEN'
  )
  const READ_ONLY = unavailable('SqliteError: attempt to write a readonly database; let this process write to the file and to its folder', 'SQLITE_READONLY')
  const NO_DATABASE = unavailable('SqliteError: file is not a database; name another file', 'SQLITE_NOTADB')
  const FULL = unavailable('SqliteError: database or disk is full; make room on the disk', 'SQLITE_FULL')
  const DAMAGED = unavailable('SqliteError: database disk image is malformed; restore the file from a backup', 'SQLITE_CORRUPT')

  t.test('a folder is unavailable', async t => {
    const target = join(t.testdir(), 'users.db')
    mkdirSync(target)
    const store = open(t, target)

    await t.rejects(store.findUser({ email: 'ada@example.com' }), CANNOT_OPEN)
    await t.rejects(store.links(randomUUID()), CANNOT_OPEN)
    rmdirSync(target)

    t.ok(await new Accounts(store).createUser(newUser()))
  })

  t.test('a file in a missing folder is unavailable until the folder is made', async t => {
    const folder = join(t.testdir(), 'later')
    const store = open(t, join(folder, 'users.db'))

    await t.rejects(
      store.findUser({ email: 'ada@example.com' }),
      unavailable('TypeError: Cannot open database because the directory does not exist; make the folder first')
    )
    mkdirSync(folder)

    t.ok(await new Accounts(store).createUser(newUser()))
  })

  t.test('a file on a path that cannot hold one is unavailable', async t => {
    await t.rejects(new Accounts(open(t, '/dev/null/users.db')).createUser(newUser()), CANNOT_OPEN)
  })

  t.test('a file of another format is unavailable, and stays as it is', async t => {
    const target = join(t.testdir(), 'users.db')
    const text = 'This is no database. '.repeat(1000)
    writeFileSync(target, text)
    const store = open(t, target)

    await t.rejects(store.findUser({ email: 'ada@example.com' }), NO_DATABASE)
    await t.rejects(new Accounts(store).createUser(newUser()), NO_DATABASE)
    t.equal(readFileSync(target, 'utf8'), text, 'it is left as it was')
    rmSync(target)

    t.ok(await new Accounts(store).createUser(newUser()))
  })

  t.test('a damaged file is unavailable', async t => {
    const file = join(t.testdir(), 'users.db')
    const before = new SqlAuthStore(file)
    const ada = newUser({ name: 'Ada', claims: { long: 'long '.repeat(10_000) } })
    await new Accounts(before).createUser(ada)
    await before.close()
    const whole = readFileSync(file)
    writeFileSync(file, Buffer.concat([whole.subarray(0, PAGE_SIZE), Buffer.alloc(whole.length - PAGE_SIZE, 0xff)]))

    const store = open(t, file)

    await t.rejects(store.findUser({ userId: ada.userId }), DAMAGED)
    await t.rejects(new Accounts(store).createUser(newUser()), DAMAGED)
  })

  t.test('a read-only database is unavailable for writing', async t => {
    const file = join(t.testdir(), 'users.db')
    const ada = newUser()
    await new Accounts(open(t, file)).createUser(ada)
    const connection = new SqliteDatabase(file, { readonly: true })
    t.teardown(() => { connection.close() })
    const store = open(t, connection, { createTables: false })

    await t.rejects(new Accounts(store).grant(ada.userId, { role: 'admin' }), READ_ONLY)
    await t.rejects(new Accounts(store).deleteUser(ada.userId), READ_ONLY)
    await t.rejects(new Accounts(open(t, connection)).createUser(newUser()), READ_ONLY, 'with createTables too')

    t.hasStrict(await store.findUser({ userId: ada.userId }), { claims: {} })
  })

  t.test('a full disk makes writing unavailable', async t => {
    const connection = connect(t)
    const store = open(t, connection)
    const ada = newUser()
    await new Accounts(store).createUser(ada)
    connection.pragma(`max_page_count = ${Number(connection.pragma('page_count', { simple: true }))}`)

    await t.rejects(new Accounts(store).grant(ada.userId, { long: 'long '.repeat(10_000) }), FULL)
    await t.rejects(new Accounts(store).createUser(newUser({ claims: { long: 'long '.repeat(10_000) } })), FULL)
    t.hasStrict(await store.findUser({ userId: ada.userId }), { claims: {} }, 'nothing was written')
    connection.pragma('max_page_count = 1000')

    t.ok(await new Accounts(store).grant(ada.userId, { long: 'long '.repeat(10_000) }))
  })

  t.test('a closed connection is unavailable', async t => {
    const connection = connect(t)
    const store = open(t, connection)
    connection.close()

    await t.rejects(store.findUser({ email: 'ada@example.com' }), { ...UNAVAILABLE, cause: { message: 'The database connection is not open' } })
  })
})

t.test('a failed attempt to open a database leaves no connection behind', async t => {
  const target = join(t.testdir(), 'users.db')
  writeFileSync(target, 'This is no database. '.repeat(1000))
  const pragmas = t.capture(SqliteDatabase.prototype, 'pragma', SqliteDatabase.prototype.pragma)

  await t.rejects(open(t, target).findUser({ email: 'ada@example.com' }), UNAVAILABLE)

  const connections: unknown[] = pragmas().map(({ receiver }) => receiver)
  t.ok(connections.length > 0)
  t.notOk(connections.some(connection => connection instanceof SqliteDatabase && connection.open))
})

t.test('without the package better-sqlite3 the cause says what to install', async t => {
  const hidden = `data:text/javascript,${encodeURIComponent(`
    export async function resolve (specifier, context, next) {
      if (specifier === 'better-sqlite3') {
        const missing = new Error("Cannot find package 'better-sqlite3' imported from app.js")
        throw Object.assign(missing, { code: 'ERR_MODULE_NOT_FOUND' })
      }
      return next(specifier, context)
    }`)}`
  const hide = `data:text/javascript,${encodeURIComponent(`import { register } from 'node:module'; register(${JSON.stringify(hidden)})`)}`

  const call = await startProcess(t, ':memory:', ['--import', hide])

  t.match(
    await call(['findUser', { email: 'ada@example.com' }]),
    { error: { code: 'unavailable', cause: /The store needs the package better-sqlite3; install it: npm install better-sqlite3/ } }
  )
})

t.test('a package better-sqlite3 that fails to load is not reported as missing', async t => {
  const broken = `data:text/javascript,${encodeURIComponent(`
    export async function resolve (specifier, context, next) {
      if (specifier === 'better-sqlite3') throw new Error('Could not locate the bindings file')
      return next(specifier, context)
    }`)}`
  const replace = `data:text/javascript,${encodeURIComponent(`import { register } from 'node:module'; register(${JSON.stringify(broken)})`)}`

  const call = await startProcess(t, ':memory:', ['--import', replace])

  t.match(
    await call(['findUser', { email: 'ada@example.com' }]),
    {
      error: {
        code: 'unavailable',
        cause: /The package better-sqlite3 could not be loaded: Error: Could not .*; install it again, .* \(esbuild: --external:better-sqlite3\)/
      }
    }
  )
})

t.test('a closed store', async t => {
  t.test('a closed store is unavailable, for every method', async t => {
    const store = open(t, ':memory:')
    const ada = newUser()
    await new Accounts(store).createUser(ada)

    await store.close()

    const attempts: Record<Exclude<keyof SqlAuthStore, 'close' | 'connect' | 'hookProblem' | 'report' | keyof StoreCapabilities>, () => Promise<unknown>> = {
      findUser: () => store.findUser({ userId: ada.userId }),
      links: () => store.links(ada.userId),
      factors: () => store.factors(ada.userId),
      findCredential: () => store.findCredential('ada@example.com'),
      status: () => store.status(ada.userId),
      users: () => store.users({ after: null, limit: 1, order: 'id', search: null, blocked: null }),
      countUsers: () => store.countUsers({ search: null, blocked: null }),
      abandonedGuests: () => store.abandonedGuests(0, 0, 1, ''),
      insert: () => new Accounts(store).createUser(newUser()),
      change: () => new Accounts(store).grant(ada.userId, {}),
      tables: () => store.tables(),
      migrate: () => store.migrate()
    }
    for (const attempt of Object.values(attempts)) await t.rejects(attempt, { ...UNAVAILABLE, cause: { message: 'the store is closed' } })
  })

  t.test('a store that is closed before its first query opens nothing', async t => {
    const file = join(t.testdir(), 'users.db')
    const store = new SqlAuthStore(file)

    await store.close()

    await t.rejects(store.findUser({ email: 'ada@example.com' }), UNAVAILABLE)
    t.throws(() => readFileSync(file), { code: 'ENOENT' })
  })

  t.test('a closed store has closed the database that it opened', async t => {
    const pragmas = t.capture(SqliteDatabase.prototype, 'pragma', SqliteDatabase.prototype.pragma)
    const store = open(t, ':memory:')
    await new Accounts(store).createUser(newUser())
    const connection: unknown = pragmas()[0]?.receiver

    await store.close()

    t.match(connection, { open: false })
  })

  t.test('closing a store closes a database that is being opened', async t => {
    const pragmas = t.capture(SqliteDatabase.prototype, 'pragma', SqliteDatabase.prototype.pragma)
    const store = new SqlAuthStore(':memory:')

    const query = new Accounts(store).createUser(newUser()).catch((error: unknown) => error)
    await store.close()

    const outcome = await query
    t.match(outcome, outcome instanceof Error ? UNAVAILABLE : { name: 'Somebody' })
    t.match(pragmas()[0]?.receiver, { open: false })
  })

  t.test('a store is closed even when its database cannot be opened meanwhile', async t => {
    const store = new SqlAuthStore(t.testdir())

    const query = t.rejects(store.findUser({ email: 'ada@example.com' }), UNAVAILABLE)
    await t.resolves(store.close())

    await query
  })
})

t.test('an engine that was passed in stays open', async t => {
  const connection = connect(t)
  const db = drizzle(connection)

  for (const engine of [connection, db, drizzle({ client: connection })]) {
    const store = new SqlAuthStore(engine)
    const user = newUser()
    await new Accounts(store).createUser(user)

    await store.close()

    t.equal(connection.open, true)
    await t.rejects(store.findUser({ userId: user.userId }), UNAVAILABLE, 'the store is closed all the same')
    t.equal(connection.prepare('select user_id from svc_auth_users where user_id = ?').pluck().get(user.userId), user.userId)
  }
})

function open (t: Test, target: string | SqlEngine, options: SqlAuthStoreOptions = {}): SqlAuthStore {
  const store = new SqlAuthStore(target, options)
  t.teardown(() => store.close())
  return store
}

/** A connection of the test's own. */
function connect (t: Test, file = ':memory:'): Database {
  const connection = new SqliteDatabase(file)
  t.teardown(() => { connection.close() })
  return connection
}

function walConnection (t: Test, file: string): Database {
  const connection = connect(t, file)
  connection.pragma('journal_mode = WAL')
  return connection
}

/** The error of a store that cannot be reached: its cause says in a sentence what to do, and is caused by what the driver says. */
function unavailable (sentence: string, code?: string) {
  return { ...UNAVAILABLE, cause: { name: 'Error', message: sentence, cause: code === undefined ? Error : { code } } }
}

/** Changes with each change of a table. */
function schemaVersion (connection: Database): unknown {
  return connection.pragma('schema_version', { simple: true })
}

function tablesOf (connection: Database): unknown[] {
  return connection.prepare("select name from sqlite_master where type = 'table' order by name").pluck().all()
}

/** Counts turns of a timer: it counts only while nothing blocks the process. */
async function * countedTicks (): AsyncGenerator<number> {
  let count = 0
  for await (const one of ticks(10, 1)) yield count += one
}
