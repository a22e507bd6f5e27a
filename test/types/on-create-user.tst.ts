import Database from 'better-sqlite3'
import { drizzle as drizzleSqlite } from 'drizzle-orm/better-sqlite3'
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePostgres } from 'drizzle-orm/postgres-js'
import Fastify from 'fastify'
import authPlugin, {
  type AuthPluginOptions, type AuthStore, type CreatedClaims, type CreateUserHook, MemoryAuthStore, SqlAuthStore,
  type TransactionOf, type User
} from 'fastify-svc-auth'
import pg from 'pg'
import postgres, { type Sql, type TransactionSql } from 'postgres'
import { expect, test } from 'tstyche'

const app = Fastify()
const connection = new Database(':memory:')
const onSqlite = drizzleSqlite({ client: connection })
const onPostgres = drizzlePostgres({ client: postgres() })
const onPg = drizzleNodePostgres({ client: new pg.Pool() })

test('tx is what the engine of the store makes', () => {
  expect<TransactionOf<Database.Database>>().type.toBe<Database.Database>()
  expect<TransactionOf<Sql>>().type.toBe<TransactionSql<{}>>()
  expect<TransactionOf<typeof onSqlite>>().type.toBe<Parameters<Parameters<typeof onSqlite.transaction>[0]>[0]>()
  expect<TransactionOf<typeof onPostgres>>().type.toBe<Parameters<Parameters<typeof onPostgres.transaction>[0]>[0]>()
  expect<TransactionOf<typeof onPg>>().type.toBe<Parameters<Parameters<typeof onPg.transaction>[0]>[0]>()
})

test('the hook knows tx by the store that is given beside it', () => {
  app.register(authPlugin, {
    store: new SqlAuthStore(onPostgres),
    async onCreateUser ({ tx, user, identity, request }) {
      expect(tx).type.toBe<TransactionOf<typeof onPostgres>>()
      expect(user).type.toBe<User>()
      expect(identity?.emailVerified).type.toBe<boolean | undefined>()
      expect(request?.id).type.toBe<string | undefined>()
      return { claims: { role: 'member' } }
    }
  })
  app.register(authPlugin, {
    store: new SqlAuthStore(connection),
    onCreateUser ({ tx }) { expect(tx).type.toBe<Database.Database>() }
  })
  app.register(authPlugin, {
    store: new SqlAuthStore(onSqlite),
    onCreateUser ({ tx }) { expect(tx).type.toBe<TransactionOf<typeof onSqlite>>() }
  })
  app.register(authPlugin, {
    store: new SqlAuthStore<Sql>('postgres://localhost/app'),
    async onCreateUser ({ tx }) { expect(tx).type.toBe<TransactionSql<{}>>() }
  })
  app.register(authPlugin, {
    store: new SqlAuthStore('./users.db'),
    onCreateUser ({ tx }) { expect(tx).type.toBe<unknown>() }
  })
  app.register(authPlugin, {
    store: new MemoryAuthStore(),
    async onCreateUser ({ tx }) { expect(tx).type.toBe<null>() }
  })
})

test('options in a module of their own name the store', () => {
  const options = {
    store: new SqlAuthStore(onPg),
    async onCreateUser ({ tx }) { expect(tx).type.toBe<TransactionOf<typeof onPg>>() }
  } satisfies AuthPluginOptions<TransactionOf<typeof onPg>>
  app.register(authPlugin, options)
  expect<SqlAuthStore<typeof onPg>>().type.toBeAssignableTo<AuthStore>()
})

test('a hook returns claims or nothing', () => {
  expect<() => void>().type.toBeAssignableTo<CreateUserHook>()
  expect<() => Promise<CreatedClaims>>().type.toBeAssignableTo<CreateUserHook>()
  expect<() => { role: string }>().type.not.toBeAssignableTo<CreateUserHook>()
})
