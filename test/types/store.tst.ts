import { PGlite } from '@electric-sql/pglite'
import Database from 'better-sqlite3'
import { drizzle as drizzleSqlite } from 'drizzle-orm/better-sqlite3'
import type { MySqlDatabase, MySqlQueryResultHKT, PreparedQueryHKTBase } from 'drizzle-orm/mysql-core'
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite'
import { drizzle as drizzlePostgres } from 'drizzle-orm/postgres-js'
import type { FastifyBaseLogger } from 'fastify'
import {
  type AuthorizationClaims, type AuthStore, type Block, type Credential, type DrizzlePostgres, type DrizzleSqlite,
  type EmailProof, type EmailProofs, type Endings, type EndingsListener, type ExceededLimit, type IdentityClaims, type Link, type LinkedIdentity,
  type ManagedAccounts, MemoryAuthStore, type NewPassword, type NewUser, type PasswordReset, type PostgresClient,
  type SharedCounts, type SharedEndings, SqlAuthStore, type SqlAuthStoreOptions, type SqlEngine, type SqliteConnection, type Standing,
  type Try, type TryCounts, type User, type UserQuery, isBlocked
} from 'fastify-svc-auth'
import * as postgresSchema from 'fastify-svc-auth/schema/postgres'
import * as sqliteSchema from 'fastify-svc-auth/schema/sqlite'
import pg from 'pg'
import postgres from 'postgres'
import { describe, expect, test } from 'tstyche'

test('MemoryAuthStore is an AuthStore without options', () => {
  expect<MemoryAuthStore>().type.toBeAssignableTo<AuthStore>()
  expect(MemoryAuthStore).type.toBeConstructableWith()
  expect(MemoryAuthStore).type.not.toBeConstructableWith({ createTables: true })
})

test('the stores of the package manage accounts, a store of the application need not', () => {
  expect<SqlAuthStore>().type.toBeAssignableTo<ManagedAccounts>()
  expect<MemoryAuthStore>().type.toBeAssignableTo<ManagedAccounts>()
  expect<AuthStore>().type.not.toBeAssignableTo<ManagedAccounts>()
})

test('the stores of the package redeem e-mailed links, a store of the application need not', () => {
  expect<SqlAuthStore>().type.toBeAssignableTo<EmailProofs>()
  expect<MemoryAuthStore>().type.toBeAssignableTo<EmailProofs>()
  expect<AuthStore & ManagedAccounts>().type.not.toBeAssignableTo<EmailProofs>()
  expect<EmailProof>().type.toBe<{ userId: string, email: string, generation: number }>()
  expect<PasswordReset>().type.toBe<{ user: User, wasVerified: boolean, removed: string[] }>()
  expect<Standing>().type.toBe<{ generation: number, signedOutAt: number, emailVerified: boolean }>()
  expect<NewPassword>().type.toBe<{ passwordHash: string, current?: string | null }>()
})

test('the store on SQL shares counts of tries where its database can, a store of the application need not', () => {
  expect<SqlAuthStore>().type.toBeAssignableTo<SharedCounts>()
  expect<MemoryAuthStore>().type.not.toBeAssignableTo<SharedCounts>()
  expect<SharedCounts['counts']>().type.toBe<TryCounts | null>()
  expect<TryCounts['count']>().type.toBe<(tries: readonly Try[]) => Promise<ExceededLimit | null>>()
  expect<Try>().type.toBe<{ key: string, max: number, timeWindow: number }>()
  expect<ExceededLimit>().type.toBe<{ key: string, wait: number }>()
})

test('the store on SQL shares endings of sessions where its database can, a store of the application need not', () => {
  expect<SqlAuthStore>().type.toBeAssignableTo<SharedEndings>()
  expect<MemoryAuthStore>().type.not.toBeAssignableTo<SharedEndings>()
  expect<SharedEndings['endings']>().type.toBe<Endings | null>()
  expect<Endings['record']>().type.toBe<(userId: string) => Promise<void>>()
  expect<Endings['follow']>().type.toBe<(listener: EndingsListener) => Promise<void>>()
  expect<typeof console>().type.toBeAssignableTo<EndingsListener['log']>()
  expect<FastifyBaseLogger>().type.toBeAssignableTo<EndingsListener['log']>()
})

test('a user may have been blocked', () => {
  expect<User['blocked']>().type.toBe<Block | undefined>()
  expect<User['createdAt']>().type.toBe<Date | undefined>()
  expect(isBlocked({ blocked: { at: new Date() } })).type.toBe<boolean>()
})

describe('SqlAuthStore', () => {
  test('is an AuthStore', () => {
    expect<SqlAuthStore>().type.toBeAssignableTo<AuthStore>()
  })

  test('takes the name of a database, or none', () => {
    expect(SqlAuthStore).type.toBeConstructableWith()
    expect(SqlAuthStore).type.toBeConstructableWith('postgres://app@localhost/app')
    expect(SqlAuthStore).type.toBeConstructableWith(process.env.DATABASE_URL)
    expect(SqlAuthStore).type.not.toBeConstructableWith(new URL('file:///users.db'))
    expect(SqlAuthStore).type.not.toBeConstructableWith(null)
    expect(SqlAuthStore).type.not.toBeConstructableWith({ file: './users.db' })
  })

  test('takes the connection of a driver', () => {
    expect(SqlAuthStore).type.toBeConstructableWith(new Database(':memory:'))
    expect(SqlAuthStore).type.toBeConstructableWith(postgres())
    expect(new Database(':memory:')).type.toBeAssignableTo<SqliteConnection>()
    expect(postgres()).type.toBeAssignableTo<PostgresClient>()
  })

  test('takes a Drizzle database, with a schema or without', () => {
    expect(SqlAuthStore).type.toBeConstructableWith(drizzleSqlite({ client: new Database(':memory:') }))
    expect(SqlAuthStore).type.toBeConstructableWith(drizzleSqlite({ client: new Database(':memory:'), schema: sqliteSchema }))
    expect(SqlAuthStore).type.toBeConstructableWith(drizzlePostgres({ client: postgres() }))
    expect(SqlAuthStore).type.toBeConstructableWith(drizzlePostgres({ client: postgres(), schema: postgresSchema }))
    expect(SqlAuthStore).type.toBeConstructableWith(drizzleNodePostgres({ client: new pg.Pool(), schema: postgresSchema }))
    expect(SqlAuthStore).type.toBeConstructableWith(drizzlePglite({ client: new PGlite(), schema: postgresSchema }))
    expect(drizzleSqlite({ client: new Database(':memory:') })).type.toBeAssignableTo<DrizzleSqlite>()
    expect(drizzleNodePostgres({ client: new pg.Pool() })).type.toBeAssignableTo<DrizzlePostgres>()
  })

  test('does not take an engine that it cannot work with', () => {
    expect(SqlAuthStore).type.not.toBeConstructableWith(new pg.Pool())
    expect(SqlAuthStore).type.not.toBeConstructableWith(new PGlite())
    expect<SqlEngine>().type.not.toBeAssignableFrom<MySqlDatabase<MySqlQueryResultHKT, PreparedQueryHKTBase>>()
    expect<SqlEngine>().type.not.toBeAssignableFrom<typeof Database>()
    expect<SqlEngine>().type.not.toBeAssignableFrom<Promise<Database.Database>>()
  })

  test('takes the option createTables', () => {
    expect<SqlAuthStoreOptions>().type.toBe<{ createTables?: boolean }>()
    expect(SqlAuthStore).type.toBeConstructableWith(':memory:', { createTables: false })
    expect(SqlAuthStore).type.toBeConstructableWith(undefined, { createTables: false })
    expect(SqlAuthStore).type.not.toBeConstructableWith(':memory:', { createTables: 'no' })
    expect(SqlAuthStore).type.not.toBeConstructableWith(':memory:', { createTable: false })
    expect(SqlAuthStore).type.not.toBeConstructableWith({ createTables: false })
  })
})

describe('a store of one\'s own', () => {
  test('implements AuthStore', () => {
    class ReadOnlyStore implements AuthStore {
      readonly #store: AuthStore = new MemoryAuthStore()

      async findUser (query: UserQuery): Promise<User | null> { return this.#store.findUser(query) }
      async links (userId: string): Promise<Link[]> { return this.#store.links(userId) }
      async findCredential (email: string): Promise<Credential | null> { return this.#store.findCredential(email) }
      async refreshIdentity ({ provider, subject }: LinkedIdentity): Promise<User | null> { return this.#store.findUser({ provider, subject }) }
      async createUser (_user: NewUser): Promise<null> { return null }
      async addLink (_userId: string, _identity: LinkedIdentity): Promise<null> { return null }
      async removeLink (userId: string, _provider: string): Promise<Link[]> { return this.#store.links(userId) }
      async deleteUser (_userId: string): Promise<void> {}
      async admitUser (_userId: string): Promise<boolean> { return false }
      async deleteNewUser (_userId: string): Promise<void> {}
      async replacePasswordHash (_userId: string, _current: string, _next: string): Promise<void> {}
      async grant (_userId: string, claims: AuthorizationClaims): Promise<AuthorizationClaims> { return claims }
      async withdraw (_userId: string, _names: readonly string[]): Promise<AuthorizationClaims> { return {} }
      async close (): Promise<void> {}
    }
    expect<ReadOnlyStore>().type.toBeAssignableTo<AuthStore>()
  })

  test('can be a store of the library that does one thing differently', () => {
    class LoudStore extends SqlAuthStore {
      override async deleteUser (userId: string): Promise<void> {
        console.log(userId)
        await super.deleteUser(userId)
      }
    }
    expect(LoudStore).type.toBeConstructableWith(':memory:')
  })

  test('has every method, with what each is given and resolves to', () => {
    expect<AuthStore>().type.not.toBeAssignableFrom<Omit<AuthStore, 'close'>>()
    expect<AuthStore>().type.not.toBeAssignableFrom<Omit<AuthStore, 'findUser'> & { findUser: () => User | null }>()
    expect<AuthStore>().type.not.toBeAssignableFrom<Omit<AuthStore, 'createUser'> & { createUser: () => Promise<void> }>()
    expect<AuthStore>().type.not.toBeAssignableFrom<Omit<AuthStore, 'grant'> & { grant: () => Promise<void> }>()
    expect<AuthStore>().type.not.toBeAssignableFrom<Omit<AuthStore, 'links'> & { links: (user: User) => Promise<Link[]> }>()
  })
})

describe('the store\'s words', () => {
  test('a user has an e-mail and a name, or null', () => {
    expect<User>().type.toBe<{
      userId: string
      email: string | null
      emailVerified: boolean
      name: string | null
      claims: AuthorizationClaims
      isNew?: true
      generation?: number
      blocked?: Block
      createdAt?: Date
    }>()
  })

  test('a link says which subject at which provider is which user', () => {
    expect<Link>().type.toBe<{ provider: string, subject: string, userId: string, claims: IdentityClaims }>()
    expect<LinkedIdentity>().type.toBe<{ provider: string, subject: string, claims: IdentityClaims, verifiedEmail: string | null }>()
  })

  test('a new user comes with a link, and with a password hash or without', () => {
    expect<NewUser['link']>().type.toBe<Omit<Link, 'userId'>>()
    expect<Pick<NewUser, 'passwordHash'>>().type.toBe<{ passwordHash?: string }>()
    expect<NewUser>().type.not.toBeAssignableFrom<User>()
    expect<NewUser>().type.not.toBeAssignableFrom<User & { link: Omit<Link, 'userId'>, passwordHash: undefined }>()
    expect<NewUser>().type.toBeAssignableFrom<User & { link: Omit<Link, 'userId'> }>()
  })

  test('a credential has all three parts', () => {
    expect<Credential>().type.toBe<{ user: User, link: Link, passwordHash: string }>()
  })

  test('a query is one of three', () => {
    expect<UserQuery>().type.toBe<{ userId: string } | { email: string } | { provider: string, subject: string }>()
  })
})
