import { type SQL, type SQLWrapper, and, count, eq, getTableColumns, isNull, ne, notExists, or, sql } from 'drizzle-orm'
import { type PgDatabase, type PgQueryResultHKT, alias } from 'drizzle-orm/pg-core'
import type { AuthorizationClaims } from '../../claims.js'
import { AuthError } from '../../errors.js'
import { PATIENCE_MS, inTime } from '../../in-time.js'
import { Once } from '../../once.js'
import { credentials, providerLinks, users } from '../../schema/postgres.js'
import { type AuthStore, type Credential, type Link, type LinkedIdentity, type NewUser, type User, type UserQuery, isUserId, linksWithout } from '../store.js'
import { causeOf, sqlState, storeFailure } from './failures.js'
import { createPostgresTables } from './tables.js'

export type PostgresDatabase = PgDatabase<PgQueryResultHKT>

const UNIQUE_VIOLATION = '23505'
const SERIALIZATION_FAILURE = '40001'
const DEADLOCK = '40P01'
const DUPLICATE_TABLE = '42P07'

/** A reference with `on delete restrict` has a code of its own since Postgres 18. */
const FOREIGN_KEY_VIOLATIONS = new Set<unknown>(['23503', '23001'])

/** By these a statement learns that another one got ahead of it. */
const DISTURBANCES = new Set<unknown>([UNIQUE_VIOLATION, SERIALIZATION_FAILURE, DEADLOCK, DUPLICATE_TABLE])
const MAX_ATTEMPTS = 5

/**
 * The statements of SqlAuthStore on Postgres. Each operation is one statement, so that it is atomic on every driver and takes one round trip.
 *
 * Whatever changes a user or his links locks the user's row first: concurrent operations then wait for each other instead of deadlocking.
 */
export class PostgresStatements implements AuthStore {
  readonly #db: PostgresDatabase
  readonly #tables: Once<void>
  readonly #close: () => Promise<void>

  constructor (db: PostgresDatabase, { createTables, close = async () => {} }: { createTables: boolean, close?: () => Promise<void> }) {
    this.#db = db
    this.#tables = new Once(async () => { if (createTables) await inTime(PATIENCE_MS, undisturbed(() => createPostgresTables(db)), 'Postgres') })
    this.#close = close
  }

  async findUser (query: UserQuery): Promise<User | null> {
    if ('userId' in query && !isUserId(query.userId)) return null
    return this.#run(async db => {
      const [row] = 'provider' in query
        ? await db.select(getTableColumns(users)).from(providerLinks).innerJoin(users, eq(users.userId, providerLinks.userId)).where(isLink(query))
        : await db.select().from(users).where('userId' in query ? eq(users.userId, query.userId) : eq(users.email, query.email))
      return userOf(row)
    })
  }

  async links (userId: string): Promise<Link[]> {
    if (!isUserId(userId)) return []
    return this.#run(async db => db.select().from(providerLinks).where(eq(providerLinks.userId, userId)).orderBy(byCodePoints(providerLinks.provider)))
  }

  async findCredential (email: string): Promise<Credential | null> {
    return this.#run(async db => {
      const [row] = await db.select({ user: users, link: providerLinks, passwordHash: credentials.pwHash })
        .from(providerLinks)
        .innerJoin(users, eq(users.userId, providerLinks.userId))
        .innerJoin(credentials, eq(credentials.userId, providerLinks.userId))
        .where(isLink({ provider: 'local', subject: email }))
      const user = userOf(row?.user)
      return row === undefined || user === null ? null : { ...row, user }
    })
  }

  async refreshIdentity (identity: LinkedIdentity): Promise<User | null> {
    return this.#run(async db => {
      // A locked link is read as it is after the wait: of two sign-ins at once, the second sees the claims of the first.
      const owner = db.$with('owner').as(db.select({ userId: users.userId, claims: providerLinks.claims }).from(users)
        .innerJoin(providerLinks, eq(providerLinks.userId, users.userId))
        .where(isLink(identity))
        .for('no key update', { of: [users, providerLinks] }))
      const link = db.$with('link').as(db.update(providerLinks).set({ claims: json(identity.claims) }).from(owner)
        .where(and(isLink(identity), eq(providerLinks.userId, owner.userId)))
        .returning({
          userId: providerLinks.userId,
          hasNewEmail: sql`${providerLinks.claims} -> 'email' is distinct from ${owner.claims} -> 'email'`.as('has_new_email')
        }))
      const [row] = await db.with(owner, link).update(users).set(noted(db, identity, link.hasNewEmail)).from(link)
        .where(eq(users.userId, link.userId))
        .returning(getTableColumns(users))
      return userOf(row)
    })
  }

  async createUser ({ userId, email, emailVerified, name, claims, isNew, link, passwordHash }: NewUser): Promise<User | null> {
    return this.#run(async db => {
      const user = db.$with('new_user').as(db.insert(users)
        .values({ userId, email, name, claims: json(claims), extras: json({ email_verified: emailVerified, is_new: isNew }) })
        .returning())
      const newLink = db.$with('new_link').as(db.insert(providerLinks).values({ ...link, userId, claims: json(link.claims) }))
      const credential = db.$with('new_credential').as(db.insert(credentials).values({ userId, pwHash: passwordHash ?? '' }))
      try {
        const [row] = await db.with(user, newLink, ...passwordHash === undefined ? [] : [credential]).select().from(user)
        return userOf(row)
      } catch (error) {
        if (sqlState(error) === UNIQUE_VIOLATION) return null
        throw error
      }
    })
  }

  async addLink (userId: string, identity: LinkedIdentity): Promise<User | null> {
    if (!isUserId(userId)) return null
    const { provider, subject, claims } = identity
    return this.#run(async db => {
      const owner = lockedUser(db, userId)
      const link = db.$with('link').as(db.insert(providerLinks)
        .select(db.select({
          provider: sql`${provider}`.as('provider'),
          subject: sql`${subject}`.as('subject'),
          userId: owner.userId,
          claims: json(claims).as('claims')
        }).from(owner))
        .onConflictDoNothing()
        .returning({ userId: providerLinks.userId }))
      const [row] = await db.with(owner, link).update(users).set(noted(db, identity)).from(link)
        .where(eq(users.userId, link.userId))
        .returning(getTableColumns(users))
      return userOf(row)
    })
  }

  async removeLink (userId: string, provider: string): Promise<Link[]> {
    if (!isUserId(userId)) throw new AuthError('unknown_user')
    const links = await this.#run(async db => {
      const isOwn = eq(providerLinks.userId, userId)
      // Locked rows are counted as they are after the wait: of two removals at once, the second sees what the first has left.
      const owner = lockedUser(db, userId)
      const before = db.$with('before').as(db.select(getTableColumns(providerLinks)).from(providerLinks)
        .innerJoin(owner, eq(owner.userId, providerLinks.userId))
        .for('update', { of: providerLinks }))
      const removed = db.$with('removed').as(db.delete(providerLinks)
        .where(and(isOwn, eq(providerLinks.provider, provider), sql`(${db.select({ count: count() }).from(before)}) > 1`))
        .returning({ provider: providerLinks.provider }))
      const password = db.$with('password').as(db.delete(credentials)
        .where(and(eq(credentials.userId, userId), sql`exists (${db.select({ one: sql`1` }).from(removed).where(eq(removed.provider, 'local'))})`)))
      return db.with(owner, before, removed, password).select().from(before).orderBy(byCodePoints(before.provider))
    })
    return linksWithout(links, provider)
  }

  async deleteUser (userId: string): Promise<void> {
    const isDeleted = isUserId(userId) && await this.#delete(eq(users.userId, userId))
    if (!isDeleted) throw new AuthError('unknown_user')
  }

  async admitUser (userId: string): Promise<boolean> {
    if (!isUserId(userId)) return false
    return this.#run(async db => {
      const admitted = await db.update(users).set({ extras: sql`${users.extras} - 'is_new'` }).where(isNewUser(userId)).returning({ userId: users.userId })
      return admitted.length > 0
    })
  }

  async deleteNewUser (userId: string): Promise<void> {
    if (isUserId(userId)) await this.#delete(isNewUser(userId))
  }

  async replacePasswordHash (userId: string, current: string, next: string): Promise<void> {
    if (!isUserId(userId)) return
    await this.#run(async db => db.update(credentials).set({ pwHash: next }).where(and(eq(credentials.userId, userId), eq(credentials.pwHash, current))))
  }

  async grant (userId: string, claims: AuthorizationClaims): Promise<AuthorizationClaims> {
    return this.#changeClaims(userId, sql`${users.claims} || ${json(claims)}`)
  }

  async withdraw (userId: string, names: readonly string[]): Promise<AuthorizationClaims> {
    return this.#changeClaims(userId, sql`${users.claims} - array(select jsonb_array_elements_text(${json(names)}))`)
  }

  async close (): Promise<void> {
    await this.#close()
  }

  async #changeClaims (userId: string, claims: SQL): Promise<AuthorizationClaims> {
    if (!isUserId(userId)) throw new AuthError('unknown_user')
    return this.#run(async db => {
      const [row] = await db.update(users).set({ claims }).where(eq(users.userId, userId)).returning({ claims: users.claims })
      if (row === undefined) throw new AuthError('unknown_user')
      return row.claims
    })
  }

  /** @returns whether there was such a user */
  async #delete (condition: SQL | undefined): Promise<boolean> {
    return this.#run(async db => {
      try {
        const deleted = await db.delete(users).where(condition).returning({ userId: users.userId })
        return deleted.length > 0
      } catch (error) {
        if (FOREIGN_KEY_VIOLATIONS.has(sqlState(error))) throw new AuthError('user_in_use', { cause: causeOf(error) })
        throw error
      }
    })
  }

  /** Makes the tables before the first statement. */
  async #run<T> (statement: (db: PostgresDatabase) => Promise<T>): Promise<T> {
    try {
      return await inTime(PATIENCE_MS, this.#tables.done().then(() => undisturbed(() => statement(this.#db))), 'Postgres')
    } catch (error) {
      throw error instanceof AuthError ? error : storeFailure(error)
    }
  }
}

/** A user's row, locked before anything of his is changed. */
function lockedUser (db: PostgresDatabase, userId: string) {
  return db.$with('owner').as(db.select({ userId: users.userId }).from(users).where(eq(users.userId, userId)).for('no key update'))
}

/** What an identity changes about a user: his name, and his verified e-mail if he has none, has this one or it is new at the provider, and no other user has it. */
function noted (db: PostgresDatabase, { claims: { name }, verifiedEmail }: LinkedIdentity, hasNewEmail: SQLWrapper = sql`false`) {
  const nameNow = sql`coalesce(${name ?? null}, ${users.name})`
  if (verifiedEmail === null) return { name: nameNow }
  const other = alias(users, 'other')
  const isFree = notExists(db.select({ one: sql`1` }).from(other).where(and(eq(other.email, verifiedEmail), ne(other.userId, users.userId))))
  const takesEmail = and(isFree, or(isNull(users.email), eq(users.email, verifiedEmail), hasNewEmail))
  return {
    name: nameNow,
    email: sql`case when ${takesEmail} then ${verifiedEmail} else ${users.email} end`,
    extras: sql`case when ${takesEmail} then ${users.extras} || ${json({ email_verified: true })} else ${users.extras} end`
  }
}

function isLink ({ provider, subject }: { provider: string, subject: string }): SQL | undefined {
  return and(eq(providerLinks.provider, provider), eq(providerLinks.subject, subject))
}

function isNewUser (userId: string): SQL | undefined {
  return and(eq(users.userId, userId), sql`${users.extras} -> 'is_new' is not null`)
}

function userOf (row: typeof users.$inferSelect | undefined): User | null {
  if (row === undefined) return null
  const { userId, email, name, claims, extras } = row
  return { userId, email, emailVerified: extras.email_verified === true, name, claims, ...(extras.is_new && { isNew: true }) }
}

/** JSON goes over as text: each driver has ideas of its own about parameters of the type jsonb. */
function json (value: unknown): SQL {
  return sql`${JSON.stringify(value)}::text::jsonb`
}

/** The databases' own collations differ. */
function byCodePoints (column: SQLWrapper): SQL {
  return sql`${column} collate "C"`
}

/** Runs a statement again that another one got in the way of; nothing of it was written. */
async function undisturbed<T> (run: () => Promise<T>, attempts = MAX_ATTEMPTS): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (attempts === 1 || !DISTURBANCES.has(sqlState(error))) throw error
    return undisturbed(run, attempts - 1)
  }
}
