import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { Accounts, SqlAuthStore } from '../../lib/index.js'
import { createSqliteTables } from '../../lib/engines/sqlite/database.js'
import { localProvider, startApp, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { enrolAda, startFactorApp } from '../helpers/factor-app.js'
import { ADA, NEW_PASSWORD } from '../helpers/mail-app.js'
import { OwnProvider, signInAt } from '../helpers/own-provider.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { type TestDatabase, postgresDatabase, sqliteDatabase } from './database.js'
import { newFactor, newUser, toFactors } from './users.js'

const DATABASES = {
  SQLite: {
    create: async (t: Test) => sqliteDatabase(t),
    tables: ['users', 'credentials', 'provider_links', 'sessions', 'pending', 'factors'],
    names: "select name from sqlite_master where name like 'svc_auth_%' order by name",
    drop: (table: string) => `drop table ${table}`
  },
  Postgres: {
    create: async (t: Test) => postgresDatabase(await emptyDatabase(t)),
    tables: ['users', 'credentials', 'provider_links', 'sessions', 'pending', 'factors', 'attempts', 'revocations'],
    names: `select relname as name from pg_class where relname like 'svc_auth_%'
      union all select conrelid::regclass || ' ' || conname from pg_constraint where contype = 'f' order by name`,
    drop: (table: string) => `drop table ${table} cascade`
  }
}

const MADE_AGAIN = 'A table of the store was missing; those that the store had made were made again, empty'

const EVE = { email: 'eve@example.com', password: 'staple battery' }

for (const [name, { create, tables, names, drop }] of Object.entries(DATABASES)) {
  t.test(`${name}, tables that are dropped while an application runs`, async t => {
    for (const table of tables) {
      t.test(`${table} is made again, with its indexes and foreign keys, and one error line says so`, async t => {
        const made = await start(t, await create(t))
        const { database, errors } = made
        await useAll(t, made)
        const before = await database.query(names)

        await database.query(drop(`svc_auth_${table}`))
        await useAll(t, made)

        t.strictSame(await database.query(names), before)
        t.strictSame(errors, [MADE_AGAIN])
      })
    }

    t.test('all of them are made again by requests at once, with one error line', async t => {
      const made = await start(t, await create(t))
      const { app, database, errors } = made
      await useAll(t, made)
      const before = await database.query(names)
      // Those that refer to others first.
      for (const table of [...tables.slice(1), 'users', 'migrations']) await database.query(drop(`svc_auth_${table}`))

      const answers = await Promise.all(Array.from({ length: 10 }, async (_, index) =>
        new Browser(app).post('/auth/local/register', { ...EVE, email: `eve${index}@example.com` })))

      t.strictSame(answers.map(({ statusCode }) => statusCode), answers.map(() => 201))
      await useAll(t, made)
      t.strictSame(await database.query(names), before)
      t.strictSame(errors, [MADE_AGAIN])
    })

    t.test('with createTables: false they stay away, and each request says what to do', async t => {
      const database = await create(t)
      await new Accounts(openStore(t, database)).createUser(newUser())
      const { app, errors } = await start(t, database, false)
      await database.query(drop('svc_auth_users'))

      for (let round = 0; round < 2; round++) {
        t.equal((await new Browser(app).post('/auth/local/register', ADA)).statusCode, 503)
      }

      t.match(errors, [/run the migrations/, /run the migrations/])
    })

    t.test('a table that was renamed is not made again: requests are unavailable until it has its name back', async t => {
      const database = await create(t)
      const { app, errors } = await start(t, database)
      const browser = new Browser(app)
      await browser.post('/auth/local/register', ADA)

      for (const table of ['users', 'provider_links', 'sessions']) {
        await database.query(`alter table svc_auth_${table} rename to hidden`)
        t.equal((await new Browser(app).post('/auth/local/register', { ...EVE, email: `${table}@example.com` })).statusCode, 503)
        await database.query(`alter table hidden rename to svc_auth_${table}`)
      }

      t.type(await userIdIn(browser), 'string')
      t.match(new Set(errors), new Set([/a table is missing, but not its indexes: give it back the name that it had/]))
    })

    t.test('a user whose factors were dropped is still asked for one, and gets no other one', async t => {
      const database = await create(t)
      const made = await startFactorApp(t, {}, { store: openStore(t, database) })
      const { userId } = await enrolAda(t, made)
      await database.query(drop('svc_auth_factors'))

      const login = await new Browser(made.app).post('/auth/local/login', ADA)
      t.match([login.statusCode, login.json()], [401, { code: 'second_factor_required' }])
      const accounts = new Accounts(openStore(t, database))
      t.strictSame(await accounts.factors(userId), [], 'the table is there')
      await t.rejects(accounts.changeFactors(userId, toFactors(newFactor())), {
        code: 'unavailable', cause: { message: 'the table of factors lacks one that the user has' }
      })
      t.match(await made.app.auth.findUser({ userId }), { factors: ['recovery', 'totp'] })
    })
  })
}

t.test('the first factor is written also where no session is kept beside the users', async t => {
  for (const database of [sqliteDatabase(t), postgresDatabase(await emptyDatabase(t))]) {
    const lost: unknown[] = []
    const open = (createTables = true) => {
      const store = openStore(t, database, createTables)
      store.connect({ warn: () => {}, error: (error: unknown) => { lost.push(error) } })
      return new Accounts(store)
    }
    const [ada, factor] = [newUser(), newFactor()]
    await open().createUser(ada)
    await open().attemptFactor(ada.userId, 0)
    await t.rejects(database.query('select 1 from svc_auth_factors'), /svc_auth_factors/)

    await open().changeFactors(ada.userId, toFactors(factor))

    for (const createTables of [true, false]) {
      t.strictSame(await open(createTables).factors(ada.userId), [factor])
      t.hasStrict(await open(createTables).refreshIdentity({ ...ada.link, verifiedEmail: null }), { factors: ['totp'] })
    }
    t.ok(await open(false).deleteUser(ada.userId))
    t.strictSame(await database.query('select 1 from svc_auth_factors'), [])
    t.strictSame(lost, [])
  }
})

t.test('a user whose factors cannot be read is not one without factors', async t => {
  for (const database of [sqliteDatabase(t), postgresDatabase(await emptyDatabase(t))]) {
    const ada = newUser()
    const made = new Accounts(openStore(t, database))
    await made.createUser(ada)
    await made.changeFactors(ada.userId, toFactors(newFactor()))
    const store = openStore(t, database, false)
    const accounts = new Accounts(store)
    await database.query('drop table svc_auth_factors')

    const attempts: Array<() => Promise<unknown>> = [
      () => accounts.factors(ada.userId), () => accounts.attemptFactor(ada.userId, 0), () => accounts.changeFactors(ada.userId, toFactors())
    ]
    for (const attempt of attempts) await t.rejects(attempt, { code: 'unavailable', cause: /svc_auth_factors/ })
    t.hasStrict(await store.findUser({ userId: ada.userId }), { factors: ['totp'] })
  }
})

t.test("tables of the application's own migrations are left to them", async t => {
  for (const database of [sqliteDatabase(t), postgresDatabase(await emptyDatabase(t))]) {
    const made = await start(t, database)
    await useAll(t, made)
    await database.query('drop table svc_auth_migrations')
    await database.query('drop table svc_auth_sessions')

    const refused = await new Browser(made.app).post('/auth/local/register', EVE)

    t.equal(refused.statusCode, 503)
    await t.rejects(database.query('select * from svc_auth_sessions'))
  }
})

t.test('rows of users who are gone do not keep an e-mail from being registered', async t => {
  const database = postgresDatabase(await emptyDatabase(t))
  const { app } = await start(t, database)
  await new Browser(app).post('/auth/local/register', ADA)

  await database.query('drop table svc_auth_users cascade')

  t.equal((await new Browser(app).post('/auth/local/register', { ...ADA, password: NEW_PASSWORD })).statusCode, 201)
  t.equal((await new Browser(app).post('/auth/local/login', ADA)).statusCode, 401)
})

/** An application on a database, and the errors in its log. */
async function start (t: Test, database: TestDatabase, createTables = true) {
  const errors: string[] = []
  const stream = {
    write: (line: string) => {
      const { msg, err } = JSON.parse(line)
      errors.push(msg.startsWith('A table') ? msg : err.message)
    }
  }
  const store = new SqlAuthStore(database.target, { createTables })
  const app = await startApp(t, {
    baseUrl: 'http://app.example', local: localProvider(), providers: [new OwnProvider('dev')], rateLimit: {}, store
  }, { logger: { level: 'error', stream } })
  return { app, store, database, errors }
}

/** Uses each table. */
async function useAll (t: Test, { app, store }: { app: FastifyInstance, store: SqlAuthStore }): Promise<void> {
  const [browser, other] = [new Browser(app), new Browser(app)]
  const user = { ...ADA, email: `${randomUUID()}@example.com` }
  t.equal((await browser.post('/auth/local/register', user)).statusCode, 201)
  t.equal((await browser.post('/auth/local/login', user)).statusCode, 200)
  const userId = await userIdIn(browser) ?? ''
  await signInAt(other, 'dev', { subject: randomUUID(), claims: {} })
  t.type(await userIdIn(other), 'string')
  t.match(await new Accounts(store).changeFactors(userId, toFactors(newFactor())), { userId })
  t.equal((await browser.post('/auth/logout')).statusCode, 204)
}

function openStore (t: Test, { target }: TestDatabase, createTables = true): SqlAuthStore {
  const store = new SqlAuthStore(target, { createTables })
  t.teardown(() => store.close())
  return store
}

t.test('tables are made again in a database of the application, which has no log for it', async t => {
  const connection = new SqliteDatabase(':memory:')
  t.teardown(() => connection.close())
  const store = new SqlAuthStore(connection)
  const accounts = new Accounts(store)
  await accounts.createUser(newUser())
  connection.exec('drop table svc_auth_credentials; drop table svc_auth_provider_links; drop table svc_auth_users')

  t.equal(await store.findUser({ email: EVE.email }), null)
  t.ok(await accounts.createUser(newUser()))
})

t.test('a process whose tables another one has made meanwhile makes none', async t => {
  const file = join(t.testdir(), 'users.db')
  const [one, other] = [drizzle(new SqliteDatabase(file)), drizzle(new SqliteDatabase(file))]
  t.teardown(() => { for (const { $client } of [one, other]) $client.close() })
  const late = new Proxy(one, {
    get (db, name) {
      // Between the look at the tables and the lock.
      if (name === 'transaction') t.equal(createSqliteTables(other, 'users'), true)
      return Reflect.get(db, name, db)
    }
  })

  t.equal(createSqliteTables(late, 'users'), false)
})
