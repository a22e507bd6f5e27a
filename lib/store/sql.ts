import type { AuthorizationClaims } from '../claims.js'
import { AuthError, OptionsError, assertKnownOptions } from '../errors.js'
import { Once } from '../base/once.js'
import { notLoaded } from './driver.js'
import type { SqlEngine } from './sql-engine.js'
import { type SqlTarget, sqlTarget } from './sql-target.js'
import { type AuthStore, type Credential, type Link, type LinkedIdentity, type NewUser, type User, type UserQuery, assertCanSignIn } from './store.js'

/** What {@link SqlAuthStore} takes besides the database. */
export interface SqlAuthStoreOptions {
  /** Make the tables before the first query; default true. `false` leaves that to the application's own migrations. */
  createTables?: boolean
}

/**
 * Keeps users in an SQL database. Each method rejects with AuthError `unavailable`, with what failed in its `cause`, when the database does not answer, cannot be opened or is closed.
 *
 * @example
 * ```ts
 * new SqlAuthStore()                      // the setting LOCAL_AUTH_DB, else ./local-auth.db
 * new SqlAuthStore('./users.db')          // an SQLite file; also sqlite: and file: URLs and :memory:
 * new SqlAuthStore('postgres://app:secret@localhost/app')
 * new SqlAuthStore(drizzle(pool))         // an existing engine
 * ```
 */
export class SqlAuthStore implements AuthStore {
  readonly #target: SqlTarget
  readonly #createTables: boolean
  readonly #opened = new Once(() => this.#open())
  #isClosed = false

  /**
   * Opens nothing yet: the database is opened by the first query.
   *
   * @param target a `postgres:` URL, an SQLite file, a `sqlite:` or `file:` URL, `:memory:`, or an existing engine; default LOCAL_AUTH_DB, else `./local-auth.db`
   * @param options whether the store makes its tables
   * @throws OptionsError naming the option
   */
  constructor (target: string | SqlEngine = process.env.LOCAL_AUTH_DB ?? './local-auth.db', options: SqlAuthStoreOptions = {}) {
    assertKnownOptions('SqlAuthStore', options, ['createTables'])
    const { createTables = true } = options
    if (typeof createTables !== 'boolean') throw new OptionsError('createTables must be true or false')
    this.#target = sqlTarget(target)
    this.#createTables = createTables
  }

  async findUser (query: UserQuery): Promise<User | null> {
    return (await this.#statements()).findUser(query)
  }

  async links (userId: string): Promise<Link[]> {
    return (await this.#statements()).links(userId)
  }

  async findCredential (email: string): Promise<Credential | null> {
    return (await this.#statements()).findCredential(email)
  }

  async refreshIdentity (identity: LinkedIdentity): Promise<User | null> {
    return (await this.#statements()).refreshIdentity(identity)
  }

  async createUser (user: NewUser): Promise<User | null> {
    assertCanSignIn(user)
    return (await this.#statements()).createUser(user)
  }

  async addLink (userId: string, identity: LinkedIdentity): Promise<User | null> {
    assertCanSignIn({ email: identity.verifiedEmail, link: identity })
    return (await this.#statements()).addLink(userId, identity)
  }

  async removeLink (userId: string, provider: string): Promise<Link[]> {
    return (await this.#statements()).removeLink(userId, provider)
  }

  async deleteUser (userId: string): Promise<void> {
    await (await this.#statements()).deleteUser(userId)
  }

  async admitUser (userId: string): Promise<boolean> {
    return (await this.#statements()).admitUser(userId)
  }

  async deleteNewUser (userId: string): Promise<void> {
    await (await this.#statements()).deleteNewUser(userId)
  }

  async replacePasswordHash (userId: string, current: string, next: string): Promise<void> {
    await (await this.#statements()).replacePasswordHash(userId, current, next)
  }

  async grant (userId: string, claims: AuthorizationClaims): Promise<AuthorizationClaims> {
    return (await this.#statements()).grant(userId, claims)
  }

  async withdraw (userId: string, names: readonly string[]): Promise<AuthorizationClaims> {
    return (await this.#statements()).withdraw(userId, names)
  }

  /** Loads the driver and Drizzle; the database is opened by the first query. */
  async preload (): Promise<void> {
    await (this.#target.dialect === 'postgres' ? Promise.all([import('./postgres/open.js'), import('postgres')]) : import('./sqlite/open.js'))
  }

  /** Closes the database if the store opened it; an engine that was passed in stays open. */
  async close (): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    // What could not be opened need not be closed; whoever asked for it has been told.
    await this.#opened.attempt?.then(statements => statements.close(), () => {})
  }

  async #statements (): Promise<AuthStore> {
    if (this.#isClosed) throw new AuthError('unavailable', { cause: new Error('the store is closed') })
    try {
      return await this.#opened.done()
    } catch (error) {
      throw error instanceof AuthError ? error : new AuthError('unavailable', { cause: error })
    }
  }

  async #open (): Promise<AuthStore> {
    const options = { createTables: this.#createTables }
    if (this.#target.dialect === 'postgres') {
      const { openPostgres } = await import('./postgres/open.js')
      return openPostgres(this.#target, options)
    }
    const { openSqlite } = await import('./sqlite/open.js').catch(notLoaded('better-sqlite3'))
    return openSqlite(this.#target, options)
  }
}
