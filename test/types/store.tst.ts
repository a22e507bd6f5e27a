import { PGlite } from '@electric-sql/pglite'
import Database from 'better-sqlite3'
import { drizzle as drizzleSqlite } from 'drizzle-orm/better-sqlite3'
import type { MySqlDatabase, MySqlQueryResultHKT, PreparedQueryHKTBase } from 'drizzle-orm/mysql-core'
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite'
import { drizzle as drizzlePostgres } from 'drizzle-orm/postgres-js'
import type { FastifyBaseLogger } from 'fastify'
import {
  type Account, type AccountQuery, type AccountStatus, Accounts, type AttemptCounter, type AuthorizationClaims,
  type AuthStore, type Credential, type Factor, type IdentityClaims, type Link, MemoryAuthStore, type NewUser,
  type OnCreate, type OneTimeEntries, type Revocations, type Rule, SqlAuthStore, type SqlAuthStoreOptions, type SqlEngine,
  type StoredSessions, type StoreCapabilities, type User, type UserQuery, type UsersFilter,
  type UsersQuery, type UniqueKeys, isBlocked, linksOf, statusOf, userOf
} from 'fastify-svc-auth'
import * as postgresSchema from 'fastify-svc-auth/schema/postgres'
import * as sqliteSchema from 'fastify-svc-auth/schema/sqlite'
import pg from 'pg'
import postgres from 'postgres'
import { describe, expect, test } from 'tstyche'
import type { AccountLink, Block, Subject } from '../../lib/accounts/account.js'
import type { Decision, Holders } from '../../lib/accounts/auth-store.js'
import type { ConfirmedEmail, MailTokenClaims, NewPassword } from '../../lib/accounts/credentials.js'
import type { FactorAttempt, FactorChange, FactorSpending } from '../../lib/accounts/factors.js'
import type { LinkedIdentity } from '../../lib/accounts/identities.js'
import type { FactorKind, UserExtras } from '../../lib/schema/extras.js'
import type { EntryContent } from '../../lib/schema/sessions.js'
import type { Attempt, ExceededLimit } from '../../lib/session/store.js'
import type { EntryKey, OneTimeEntry } from '../../lib/session/store.js'
import type { RevocationListener } from '../../lib/session/store.js'
import type { DrizzlePostgres, DrizzleSqlite, PostgresClient, SqliteConnection } from '../../lib/engines/sql.js'

test('MemoryAuthStore is an AuthStore without options', () => {
  expect<MemoryAuthStore>().type.toBeAssignableTo<AuthStore>()
  expect(MemoryAuthStore).type.toBeConstructableWith()
  expect(MemoryAuthStore).type.not.toBeConstructableWith({ createTables: true })
})

test('accounts are those of any store', () => {
  expect(Accounts).type.toBeConstructableWith(new MemoryAuthStore())
  expect(Accounts).type.toBeConstructableWith(new SqlAuthStore())
  expect(Accounts).type.not.toBeConstructableWith()
  expect<Accounts>().type.not.toBeAssignableTo<AuthStore>()
  expect<Accounts['createUser']>().type.toBe<(user: NewUser, onCreate?: OnCreate) => Promise<User | null>>()
  expect<Accounts['resetPassword']>().type.toBe<
    (token: MailTokenClaims, passwordHash: string, existing?: string) => Promise<ConfirmedEmail | null>
  >()
  expect<MailTokenClaims>().type.toBe<{ userId: string, email: string, generation: number }>()
  expect<ConfirmedEmail>().type.toBe<{ user: User, wasProven: boolean, removed: readonly string[] }>()
  expect<AccountStatus>().type.toBe<{ generation: number, signedOutAt: number, verifiedEmail: string | null }>()
  expect<NewPassword>().type.toBe<{ passwordHash: string, current?: string | null, generation?: number, endsKeys?: boolean }>()
})

test('a rule decides about an account', () => {
  expect<Rule<string>>().type.toBe<(account: Account | null, owners: Holders) => Decision<string>>()
  expect<Decision<string>>().type.toBe<{ result: string, account?: Account | null }>()
  expect<Holders>().type.toBe<{ ofEmail: Account | null, ofLink: Account | null }>()
  expect<AccountQuery>().type.toBe<{ userId: string } | Subject>()
  expect<UniqueKeys>().type.toBe<{ email?: string | null, link?: Subject | null }>()
  expect<Account>().type.toBe<{
    readonly userId: string
    readonly email: string | null
    readonly name: string | null
    readonly claims: AuthorizationClaims
    readonly extras: UserExtras
    readonly links: readonly AccountLink[]
    readonly passwordHash: string | null
    readonly factors: readonly Factor[]
  }>()
  expect<Factor['kind']>().type.toBe<FactorKind>()
  expect<FactorKind>().type.toBe<'totp' | 'recovery' | 'passkey'>()
  expect<Accounts['changeFactors']>().type.toBe<(userId: string, change: FactorChange) => Promise<User | null>>()
  expect<Accounts['attemptFactor']>().type.toBe<(
    userId: string, generation: number, spend?: FactorSpending
  ) => Promise<FactorAttempt | null>>()
  expect(userOf).type.toBeCallableWith({} as Account)
  expect(linksOf).type.toBeCallableWith({} as Account)
  expect(statusOf).type.toBeCallableWith({} as Account)
})

test('a store may keep more than accounts, and need not', () => {
  expect<SqlAuthStore>().type.toBeAssignableTo<StoreCapabilities>()
  expect<MemoryAuthStore>().type.toBeAssignableTo<Pick<StoreCapabilities, 'sessions' | 'entries'>>()
  expect<AuthStore>().type.not.toBeAssignableTo<StoreCapabilities>()
  expect<StoreCapabilities['sessions']>().type.toBe<StoredSessions | null>()
  expect<StoreCapabilities['entries']>().type.toBe<OneTimeEntries | null>()
  expect<StoreCapabilities['attempts']>().type.toBe<AttemptCounter | null>()
  expect<StoreCapabilities['revocations']>().type.toBe<Revocations | null>()
})

test('attempts are counted, what may be used once is taken, and revocations are followed', () => {
  expect<AttemptCounter['count']>().type.toBe<(attempts: readonly Attempt[]) => Promise<ExceededLimit | null>>()
  expect<Attempt>().type.toBe<{ key: string, max: number, timeWindow: number }>()
  expect<ExceededLimit>().type.toBe<{ key: string, wait: number }>()
  expect<OneTimeEntries['put']>().type.toBe<(entry: OneTimeEntry, most: number) => Promise<void>>()
  expect<OneTimeEntries['find']>().type.toBe<(entry: EntryKey) => Promise<EntryContent | null>>()
  expect<EntryKey>().type.toBe<{ hash: string, kind: string, owner: string }>()
  expect<OneTimeEntry>().type.toBe<{ hash: string, kind: string, owner: string, content: EntryContent, startedAt: number }>()
  expect<Revocations['record']>().type.toBe<(userId: string) => Promise<void>>()
  expect<Revocations['follow']>().type.toBe<(listener: RevocationListener) => Promise<void>>()
  expect<typeof console>().type.toBeAssignableTo<RevocationListener['log']>()
  expect<FastifyBaseLogger>().type.toBeAssignableTo<RevocationListener['log']>()
})

test('a user may have been blocked', () => {
  expect<User['blocked']>().type.toBe<Block | undefined>()
  expect<User['createdAt']>().type.toBe<Date>()
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
    expect<SqlAuthStoreOptions>().type.toBe<{ createTables?: boolean | undefined }>()
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
      async factors (userId: string): Promise<Factor[]> { return this.#store.factors(userId) }
      async findCredential (email: string): Promise<Credential | null> { return this.#store.findCredential(email) }
      async status (userId: string): Promise<AccountStatus | null> { return this.#store.status(userId) }
      async users (query: UsersQuery): Promise<User[]> { return this.#store.users(query) }
      async countUsers (filter: UsersFilter): Promise<number> { return this.#store.countUsers(filter) }
      async insert (_account: Account): Promise<boolean> { return false }
      async change<T> (find: AccountQuery, keys: UniqueKeys, rule: Rule<T>): Promise<T> {
        return this.#store.change(find, keys, (account, holders) => ({ result: rule(account, holders).result }))
      }

      async close (): Promise<void> {}
    }
    expect<ReadOnlyStore>().type.toBeAssignableTo<AuthStore>()
  })

  test('can be a store of the library that does one thing differently', () => {
    class LoudStore extends SqlAuthStore {
      override async insert (account: Account): Promise<boolean> {
        console.log(account.userId)
        return super.insert(account)
      }
    }
    expect(LoudStore).type.toBeConstructableWith(':memory:')
  })

  test('has every method, with what each is given and resolves to', () => {
    expect<AuthStore>().type.not.toBeAssignableFrom<Omit<AuthStore, 'close'>>()
    expect<AuthStore>().type.not.toBeAssignableFrom<Omit<AuthStore, 'factors'>>()
    expect<AuthStore['factors']>().type.toBe<(userId: string) => Promise<Factor[]>>()
    expect<AuthStore>().type.not.toBeAssignableFrom<Omit<AuthStore, 'findUser'> & { findUser: () => User | null }>()
    expect<AuthStore>().type.not.toBeAssignableFrom<Omit<AuthStore, 'insert'> & { insert: () => Promise<void> }>()
    expect<AuthStore>().type.not.toBeAssignableFrom<Omit<AuthStore, 'change'> & { change: () => Promise<void> }>()
    expect<AuthStore>().type.not.toBeAssignableFrom<Omit<AuthStore, 'links'> & { links: (user: User) => Promise<Link[]> }>()
  })
})

describe('the store\'s words', () => {
  test('a user has an e-mail and a name, or null', () => {
    expect<User>().type.toBe<{
      userId: string
      email: string | null
      emailVerified: boolean
      emailDisputed?: true
      name: string | null
      claims: AuthorizationClaims
      isNew?: true
      guest?: true
      generation: number
      blocked?: Block
      factors?: readonly FactorKind[]
      connection?: { provider: string, at: Date }
      createdAt: Date
    }>()
  })

  test('a link says which subject at which provider is which user', () => {
    expect<Link>().type.toBe<{ provider: string, subject: string, userId: string, claims: IdentityClaims }>()
    expect<LinkedIdentity>().type.toBe<{
      provider: string, subject: string, claims: IdentityClaims, verifiedEmail: string | null, connectionAt?: number | undefined
    }>()
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
