import { type SQL, and, eq, sql } from 'drizzle-orm'
import { type BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import type { AuthorizationClaims } from '../../claims.js'
import { AuthError } from '../../errors.js'
import { credentials, providerLinks, users } from '../../schema/sqlite.js'
import { isForeignKeyViolation, storeFailure } from './failures.js'
import { whileLocked } from './lock.js'
import { createSqliteTables } from './tables.js'
import { type AuthStore, type Credential, type Link, type LinkedIdentity, type NewUser, type User, type UserQuery, linksWithout } from '../store.js'

type Row = typeof users.$inferSelect

/**
 * The statements of SqlAuthStore on SQLite. better-sqlite3 runs them without a pause; what must be atomic between processes
 * too runs in an immediate transaction, which takes the write lock before it reads.
 */
export class SqliteStatements implements AuthStore {
  readonly #db: BetterSQLite3Database
  readonly #close: () => void
  #tablesExist: boolean

  constructor (db: BetterSQLite3Database, { createTables, close }: { createTables: boolean, close: () => void }) {
    this.#db = db
    this.#close = close
    this.#tablesExist = !createTables
  }

  async findUser (query: UserQuery): Promise<User | null> {
    return this.#run(() => {
      if ('userId' in query) return this.#userWhere(eq(users.userId, query.userId))
      if ('email' in query) return this.#userWhere(eq(users.email, query.email))
      const link = this.#db.select({ userId: providerLinks.userId }).from(providerLinks).where(isLink(query)).get()
      return link === undefined ? null : this.#userWhere(eq(users.userId, link.userId))
    })
  }

  async links (userId: string): Promise<Link[]> {
    return this.#run(() => this.#linksOf(userId))
  }

  async findCredential (email: string): Promise<Credential | null> {
    return this.#run(() => {
      const row = this.#db.select({ user: users, link: providerLinks, passwordHash: credentials.pwHash })
        .from(providerLinks)
        .innerJoin(users, eq(users.userId, providerLinks.userId))
        .innerJoin(credentials, eq(credentials.userId, providerLinks.userId))
        .where(isLink({ provider: 'local', subject: email }))
        .get()
      return row === undefined ? null : { ...row, user: userOf(row.user) }
    })
  }

  async refreshIdentity (identity: LinkedIdentity): Promise<User | null> {
    return this.#transaction(() => {
      const known = this.#db.select({ user: users, claims: providerLinks.claims })
        .from(providerLinks)
        .innerJoin(users, eq(users.userId, providerLinks.userId))
        .where(isLink(identity))
        .get()
      if (known === undefined) return null
      this.#db.update(providerLinks).set({ claims: identity.claims }).where(isLink(identity)).run()
      return this.#noteIdentity(known.user, identity, known.claims)
    })
  }

  async createUser ({ userId, email, emailVerified, name, claims, isNew, link, passwordHash }: NewUser): Promise<User | null> {
    return this.#transaction(() => {
      if (email !== null && this.#userWhere(eq(users.email, email)) !== null) return null
      if (this.#linkExists(link)) return null
      const row = this.#db.insert(users).values({ userId, email, name, claims, extras: { email_verified: emailVerified, ...(isNew && { is_new: isNew }) } }).returning().get()
      this.#db.insert(providerLinks).values({ ...link, userId }).run()
      if (passwordHash !== undefined) this.#db.insert(credentials).values({ userId, pwHash: passwordHash }).run()
      return userOf(row)
    })
  }

  async addLink (userId: string, identity: LinkedIdentity): Promise<User | null> {
    const { provider, subject, claims } = identity
    return this.#transaction(() => {
      const user = this.#userWhere(eq(users.userId, userId))
      if (user === null || this.#linkExists(identity)) return null
      const inserted = this.#db.insert(providerLinks).values({ provider, subject, userId, claims })
        .onConflictDoNothing({ target: [providerLinks.userId, providerLinks.provider] }).returning().get()
      return inserted === undefined ? null : this.#noteIdentity(user, identity)
    })
  }

  async removeLink (userId: string, provider: string): Promise<Link[]> {
    return this.#transaction(() => {
      const left = linksWithout(this.#linksOf(userId), provider)
      this.#db.delete(providerLinks).where(and(eq(providerLinks.userId, userId), eq(providerLinks.provider, provider))).run()
      if (provider === 'local') this.#db.delete(credentials).where(eq(credentials.userId, userId)).run()
      return left
    })
  }

  async deleteUser (userId: string): Promise<void> {
    await this.#delete(userId, user => {
      if (user === null) throw new AuthError('unknown_user')
      return true
    })
  }

  async admitUser (userId: string): Promise<boolean> {
    return this.#run(() => {
      const { changes } = this.#db.update(users).set({ extras: sql`json_remove(${users.extras}, '$.is_new')` })
        .where(and(eq(users.userId, userId), sql`json_type(${users.extras}, '$.is_new') is not null`)).run()
      return changes > 0
    })
  }

  async deleteNewUser (userId: string): Promise<void> {
    await this.#delete(userId, user => user?.isNew === true)
  }

  async replacePasswordHash (userId: string, current: string, next: string): Promise<void> {
    await this.#run(() => {
      this.#db.update(credentials).set({ pwHash: next }).where(and(eq(credentials.userId, userId), eq(credentials.pwHash, current))).run()
    })
  }

  async grant (userId: string, claims: AuthorizationClaims): Promise<AuthorizationClaims> {
    return this.#changeClaims(userId, granted => ({ ...granted, ...claims }))
  }

  async withdraw (userId: string, names: readonly string[]): Promise<AuthorizationClaims> {
    return this.#changeClaims(userId, granted => Object.fromEntries(Object.entries(granted).filter(([name]) => !names.includes(name))))
  }

  async close (): Promise<void> {
    this.#close()
  }

  #changeClaims (userId: string, change: (granted: AuthorizationClaims) => AuthorizationClaims): Promise<AuthorizationClaims> {
    return this.#transaction(() => {
      const user = this.#userWhere(eq(users.userId, userId))
      if (user === null) throw new AuthError('unknown_user')
      const claims = change(user.claims)
      this.#db.update(users).set({ claims }).where(eq(users.userId, userId)).run()
      return claims
    })
  }

  #delete (userId: string, isDue: (user: User | null) => boolean): Promise<void> {
    return this.#transaction(() => {
      if (!isDue(this.#userWhere(eq(users.userId, userId)))) return
      // An application's connection may have foreign keys switched off.
      this.#db.delete(providerLinks).where(eq(providerLinks.userId, userId)).run()
      this.#db.delete(credentials).where(eq(credentials.userId, userId)).run()
      this.#db.delete(users).where(eq(users.userId, userId)).run()
    }, error => isForeignKeyViolation(error) ? new AuthError('user_in_use', { cause: error }) : storeFailure(error))
  }

  /** A link that is new has no earlier claims: nothing in them has changed. */
  #noteIdentity ({ userId, email }: Pick<User, 'userId' | 'email'>, { claims, verifiedEmail }: LinkedIdentity, earlier = claims): User {
    const owner = verifiedEmail === null ? null : this.#userWhere(eq(users.email, verifiedEmail))
    const isDue = email === null || email === verifiedEmail || earlier.email !== claims.email
    const takesEmail = verifiedEmail !== null && isDue && (owner === null || owner.userId === userId)
    const row = this.#db.update(users).set({
      name: claims.name ?? sql`${users.name}`,
      ...(takesEmail && { email: verifiedEmail, extras: sql`json_set(${users.extras}, '$.email_verified', json('true'))` })
    }).where(eq(users.userId, userId)).returning().get()
    return userOf(row)
  }

  #linksOf (userId: string): Link[] {
    return this.#db.select().from(providerLinks).where(eq(providerLinks.userId, userId)).orderBy(providerLinks.provider).all()
  }

  #userWhere (condition: SQL): User | null {
    const row = this.#db.select().from(users).where(condition).get()
    return row === undefined ? null : userOf(row)
  }

  #linkExists (link: { provider: string, subject: string }): boolean {
    return this.#db.select().from(providerLinks).where(isLink(link)).get() !== undefined
  }

  #transaction<T> (work: () => T, failure?: (error: unknown) => AuthError): Promise<T> {
    return this.#run(() => this.#db.transaction(work, { behavior: 'immediate' }), failure)
  }

  /** Makes the tables before the first statement. */
  async #run<T> (work: () => T, failure = storeFailure): Promise<T> {
    try {
      return await whileLocked(() => {
        if (!this.#tablesExist) createSqliteTables(this.#db)
        this.#tablesExist = true
        return work()
      })
    } catch (error) {
      throw error instanceof AuthError ? error : failure(error)
    }
  }
}

function isLink ({ provider, subject }: { provider: string, subject: string }): SQL | undefined {
  return and(eq(providerLinks.provider, provider), eq(providerLinks.subject, subject))
}

function userOf ({ userId, email, name, claims, extras }: Row): User {
  return { userId, email, emailVerified: extras.email_verified === true, name, claims, ...(extras.is_new && { isNew: true }) }
}
