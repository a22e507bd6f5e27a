import { writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { Accounts, SqlAuthStore } from '../../lib/index.js'
import { MIGRATIONS as POSTGRES } from '../../lib/store/postgres/migrations.js'
import { MIGRATIONS as SQLITE } from '../../lib/store/sqlite/migrations.js'
import { TABLE_PARTS } from '../../lib/store/table-parts.js'
import { localProvider, principalIn, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { OwnProvider, signInAt } from '../helpers/own-provider.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { type TestDatabase, postgresDatabase, sqliteDatabase } from './database.js'
import { newFactor, toFactors } from './users.js'

const PASSWORD = 'correct horse'

/** The users that 0.1.0 wrote, by what is known of their e-mails. */
const IDS = {
  ada: '00000000-0000-4000-8000-00000000000a',
  bob: '00000000-0000-4000-8000-00000000000b',
  carol: '00000000-0000-4000-8000-00000000000c',
  dave: '00000000-0000-4000-8000-00000000000d',
  erin: '00000000-0000-4000-8000-00000000000e'
}

/** The rows of version 0.1.0: `extras` has nothing but these two members. */
const users = [
  [IDS.ada, "'ada@example.com'", "'Ada'", '{"role":"admin"}', '{"email_verified":false}'],
  [IDS.bob, "'bob@example.com'", "'Bob'", '{}', '{"email_verified":true}'],
  [IDS.carol, "'carol@example.com'", 'null', '{}', '{"email_verified":false,"is_new":true}'],
  [IDS.dave, 'null', 'null', '{}', '{"email_verified":false}'],
  [IDS.erin, "'erin@example.com'", "'Erin'", '{}', '{"email_verified":true}']
].map(([id, email, name, claims, extras]) => `('${id}', ${email}, ${name}, '${claims}', '${extras}')`)

const links = [
  ['local', 'ada@example.com', IDS.ada, `{"sub":"${IDS.ada}","email":"ada@example.com","name":"Ada"}`],
  ['github', 'ada-1', IDS.ada, '{"sub":"ada-1","email":"ada@github.example"}'],
  ['dev', 'bob-1', IDS.bob, '{"sub":"bob-1","email":"bob@example.com","email_verified":true,"name":"Bob"}'],
  ['local', 'carol@example.com', IDS.carol, `{"sub":"${IDS.carol}","email":"carol@example.com"}`],
  ['dev', 'dave-1', IDS.dave, '{"sub":"dave-1"}'],
  ['local', 'erin@example.com', IDS.erin, `{"sub":"${IDS.erin}","email":"erin@example.com","name":"Erin"}`],
  ['dev', 'erin-1', IDS.erin, '{"sub":"erin-1","email":"erin@example.com","email_verified":true,"name":"Erin"}']
].map(([provider, subject, id, claims]) => `('${provider}', '${subject}', '${id}', '${claims}')`)

/** The migration of 0.1.0, and its hash as it stands in the journals of databases. */
const DATABASES = {
  SQLite: {
    migrations: SQLITE,
    hash: 'a5e0d1c34c29db3711b6d1cf17d4e46d61dfb9fd80e9055020c416356c9c5eca',
    create: async (t: Test) => {
      const database = sqliteDatabase(t)
      writeFileSync(database.target, '')
      return database
    }
  },
  Postgres: {
    migrations: POSTGRES,
    hash: '5de7bb30564ab1708c008369fafc02f8e0c15eeeb69ad3be441cd8ebc1d088bb',
    create: async (t: Test) => postgresDatabase(await emptyDatabase(t))
  }
}

for (const [name, { migrations, hash, create }] of Object.entries(DATABASES)) {
  t.test(`${name} with the data of 0.1.0`, async t => {
    /** A database as 0.1.0 left it, and a store of this version on it. */
    const upgraded = async (t: Test): Promise<{ store: SqlAuthStore, database: TestDatabase }> => {
      const database = await create(t)
      await fill(database, migrations.slice(0, 1).flatMap(({ sql }) => sql), hash)
      const store = new SqlAuthStore(database.target)
      t.teardown(() => store.close())
      return { store, database }
    }

    t.test('the first query runs the migrations that are missing, and keeps the rows', async t => {
      t.equal(migrations[0]?.hash, hash)
      const { store, database } = await upgraded(t)

      await store.findUser({ userId: IDS.ada })

      const journal = await database.query('select hash from svc_auth_migrations')
      const ofUsers = migrations.filter(({ name }) => TABLE_PARTS.users.migrations.includes(name))
      t.same(new Set(journal.map(({ hash }) => hash)), new Set(ofUsers.map(({ hash }) => hash)))
      t.ok(ofUsers.length > 1)
      const [kept] = await database.query('select count(*) as count from svc_auth_provider_links')
      t.equal(Number(kept?.count), links.length)
    })

    t.test('users are found and listed as they were', async t => {
      const { store } = await upgraded(t)

      const all = await store.users({ after: null, limit: 10, email: null, blocked: null })

      t.strictSame(all, [
        { userId: IDS.ada, email: 'ada@example.com', emailVerified: false, name: 'Ada', claims: { role: 'admin' } },
        { userId: IDS.bob, email: 'bob@example.com', emailVerified: true, name: 'Bob', claims: {} },
        { userId: IDS.carol, email: 'carol@example.com', emailVerified: false, name: null, claims: {}, isNew: true },
        { userId: IDS.dave, email: null, emailVerified: false, name: null, claims: {} },
        { userId: IDS.erin, email: 'erin@example.com', emailVerified: true, name: 'Erin', claims: {} }
      ])
      t.strictSame(await store.users({ after: IDS.ada, limit: 10, email: 'bo', blocked: false }), [all[1]])
      t.strictSame(await store.users({ after: null, limit: 10, email: null, blocked: true }), [])
      t.strictSame(await store.status(IDS.ada), { generation: 0, signedOutAt: 0, verifiedEmail: null })
      t.strictSame(await store.status(IDS.erin), { generation: 0, signedOutAt: 0, verifiedEmail: 'erin@example.com' })
    })

    t.test('a password that was left at another address moves to the e-mail of its user, or goes', async t => {
      const { store, database } = await upgraded(t)
      const links = 'update svc_auth_provider_links set subject'
      await database.query(`${links} = 'left@example.com' where provider = 'local' and user_id = '${IDS.ada}'`)
      await database.query(`${links} = 'bob@example.com' where provider = 'local' and user_id = '${IDS.carol}'`)
      await database.query(`${links} = 'carol@example.com' where provider = 'local' and user_id = '${IDS.erin}'`)

      t.hasStrict(await store.findCredential('ada@example.com'), { user: { userId: IDS.ada }, link: { claims: { email: 'ada@example.com' } } })
      t.equal(await store.findCredential('left@example.com'), null)
      t.equal(await store.findCredential('carol@example.com'), null, 'which Erin had')
      t.equal(await store.findCredential('bob@example.com'), null)
      t.hasStrict(await store.findCredential('erin@example.com'), { user: { userId: IDS.erin } })
      t.strictSame((await store.links(IDS.carol)).map(({ provider }) => provider), [])
      t.strictSame((await store.links(IDS.erin)).map(({ provider }) => provider), ['dev', 'local'])
    })

    t.test('users sign in by password and by provider', async t => {
      const { store } = await upgraded(t)
      const app = await startApp(t, {
        baseUrl: 'http://localhost:3000', providers: [new OwnProvider('dev')], local: localProvider(), store
      })
      const [byPassword, byProvider] = [new Browser(app), new Browser(app)]

      const login = await byPassword.post('/auth/local/login', { email: 'ada@example.com', password: PASSWORD })
      await signInAt(byProvider, 'dev', { subject: 'bob-1', email: 'bob@example.com' })

      t.equal(login.statusCode, 200)
      t.match(await principalIn(byPassword), { userId: IDS.ada, provider: 'local', claims: { role: 'admin' } })
      t.match(await principalIn(byProvider), { userId: IDS.bob, provider: 'dev' })
      t.hasStrict(await store.findUser({ userId: IDS.bob }), { emailVerified: true })
    })

    t.test('a first password is set, and one is replaced', async t => {
      const { store } = await upgraded(t)

      t.hasStrict(await new Accounts(store).setPassword(IDS.bob, { passwordHash: 'first', current: null }), { generation: 1 })
      t.equal(await new Accounts(store).setPassword(IDS.ada, { passwordHash: 'first', current: null }), null)
      t.hasStrict(await new Accounts(store).setPassword(IDS.ada, { passwordHash: 'second' }), { generation: 1, emailVerified: false })

      t.hasStrict(await store.findCredential('bob@example.com'), { passwordHash: 'first' })
      t.hasStrict(await store.findCredential('ada@example.com'), { passwordHash: 'second' })
      t.hasStrict(await store.status(IDS.ada), { generation: 1 })
    })

    t.test('e-mails are verified by their users, also those of which no voucher was noted', async t => {
      const { store } = await upgraded(t)

      for (const [userId, email] of [[IDS.ada, 'ada@example.com'], [IDS.erin, 'erin@example.com']] as const) {
        t.equal(await new Accounts(store).verifyEmail({ userId, email, generation: 0 }), 'verified')
        t.equal(await new Accounts(store).verifyEmail({ userId, email, generation: 0 }), 'unchanged')
        t.hasStrict(await store.findCredential(email), { link: { claims: { email_verified: true } } })
      }

      await new Accounts(store).removeLink(IDS.erin, 'dev')
      t.hasStrict(await store.findUser({ userId: IDS.erin }), { email: 'erin@example.com', emailVerified: true })
    })

    t.test('the table of factors is made when the first one is written, and read by a process that never wrote one', async t => {
      const { store, database } = await upgraded(t)
      const accounts = new Accounts(store)
      const another = (createTables: boolean): Accounts => {
        const store = new SqlAuthStore(database.target, { createTables })
        t.teardown(() => store.close())
        return new Accounts(store)
      }
      const rows = () => database.query('select factor_id from svc_auth_factors')
      const factor = newFactor()
      await accounts.attemptFactor(IDS.ada, 0)
      await accounts.setPassword(IDS.bob, { passwordHash: 'first' })
      t.strictSame(await accounts.factors(IDS.ada), [])
      await t.rejects(rows(), /svc_auth_factors/)

      await accounts.changeFactors(IDS.ada, toFactors(factor))

      t.strictSame(await rows(), [{ factor_id: factor.id }])
      for (const createTables of [true, false]) {
        t.strictSame(await another(createTables).factors(IDS.ada), [factor])
        t.hasStrict(await another(createTables).attemptFactor(IDS.ada, 0), { factors: [factor] })
        const identity = { provider: 'github', subject: 'ada-1', claims: { sub: 'ada-1' }, verifiedEmail: null }
        t.hasStrict(await another(createTables).refreshIdentity(identity), { factors: ['totp'] })
      }
      t.ok(await another(false).deleteUser(IDS.ada))
      t.strictSame(await rows(), [])
    })

    t.test('a user whose factors cannot be read is not one without factors', async t => {
      const { store: former, database } = await upgraded(t)
      await new Accounts(former).changeFactors(IDS.ada, toFactors(newFactor()))
      const store = new SqlAuthStore(database.target, { createTables: false })
      t.teardown(() => store.close())
      const accounts = new Accounts(store)
      await database.query('drop table svc_auth_factors')

      const attempts: Array<() => Promise<unknown>> = [
        () => accounts.factors(IDS.ada), () => accounts.attemptFactor(IDS.ada, 0), () => accounts.changeFactors(IDS.ada, toFactors())
      ]
      for (const attempt of attempts) await t.rejects(attempt, { code: 'unavailable', cause: /svc_auth_factors/ })
      t.hasStrict(await store.findUser({ userId: IDS.ada }), { factors: ['totp'] })
    })

    t.test('an e-mail is changed, and one is released', async t => {
      const { store } = await upgraded(t)

      const erin = { userId: IDS.erin, email: 'erin@example.com', generation: 0 }
      t.hasStrict(await new Accounts(store).changeEmail(erin, 'new@example.com'), { email: 'new@example.com', emailVerified: true })
      t.equal(await new Accounts(store).releaseEmail({ userId: IDS.carol, email: 'carol@example.com', generation: 0 }), 'deleted')
      t.equal(await new Accounts(store).releaseEmail({ userId: IDS.ada, email: 'ada@example.com', generation: 0 }), 'freed')

      t.hasStrict(await store.findCredential('new@example.com'), { user: { userId: IDS.erin } })
      t.strictSame((await store.links(IDS.ada)).map(({ provider }) => provider), ['github'])
    })
  })
}

/** Makes the tables as 0.1.0 made them, and writes its rows. */
async function fill ({ query }: TestDatabase, statements: readonly string[], hash: string): Promise<void> {
  for (const statement of statements) await query(statement)
  await query('create table svc_auth_migrations (hash text primary key, created_at bigint not null)')
  await query(`insert into svc_auth_migrations values ('${hash}', 0)`)
  const passwordHash = await localProvider().hashPassword(PASSWORD, { email: 'ada@example.com' })
  const credentials = [IDS.ada, IDS.carol, IDS.erin].map(id => `('${id}', '${passwordHash}')`)
  await query(`insert into svc_auth_users values ${users.join(', ')}`)
  await query(`insert into svc_auth_credentials values ${credentials.join(', ')}`)
  await query(`insert into svc_auth_provider_links values ${links.join(', ')}`)
}
