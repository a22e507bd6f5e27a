import type { Account, AccountStatus, Credential, Link, User } from '../accounts/account.js'
import type { AccountQuery, AuthStore, Rule, UserQuery, UsersQuery, Wanted } from '../accounts/auth-store.js'
import { Once } from '../base/once.js'
import { AuthError, OptionsError, assertKnownOptions } from '../errors.js'
import type { AttemptCounter } from './attempts.js'
import { notLoaded } from './driver.js'
import type { StoreMembers } from './members.js'
import type { OneTimeEntries } from './one-time-entries.js'
import type { Revocations } from './revocations.js'
import type { StoredSessions } from './sessions.js'
import type { SqlEngine } from './sql-engine.js'
import { type SqlTarget, sqlTarget } from './sql-target.js'

/** What {@link SqlAuthStore} takes besides the database. */
export interface SqlAuthStoreOptions {
  /**
   * Whether the store makes its tables before the first query; default true. With `false` the
   * application's own migrations make them.
   */
  createTables?: boolean
}

/** An open database: what it does for the store, by capability. */
interface OpenDatabase {
  readonly accounts: Omit<AuthStore, 'close'>
  readonly sessions: StoredSessions
  readonly entries: OneTimeEntries
  readonly attempts: AttemptCounter | null
  readonly revocations: Revocations | null
  readonly close: () => void | Promise<void>
}

/**
 * Keeps users in an SQL database. Each method rejects with AuthError `unavailable`, with the
 * failure in its `cause`, when the database does not answer, cannot be opened or is closed.
 *
 * @example
 * ```ts
 * new SqlAuthStore()                      // the setting LOCAL_AUTH_DB, else ./local-auth.db
 * new SqlAuthStore('./users.db')          // an SQLite file, sqlite: or file: URL, or :memory:
 * new SqlAuthStore('postgres://app:secret@localhost/app')
 * new SqlAuthStore(drizzle(pool))         // an existing engine
 * ```
 */
export class SqlAuthStore implements AuthStore, StoreMembers {
  /** Keeps the sessions of the plugin, in tables that are made when they are first used. */
  readonly sessions: StoredSessions
  /** Keeps what may be used once, such as the sign-ins that were started at a provider. */
  readonly entries: OneTimeEntries
  /** The counts of attempts, which processes share on Postgres; null on SQLite. */
  readonly attempts: AttemptCounter | null
  /** The revocations, which processes share on Postgres; null on SQLite. */
  readonly revocations: Revocations | null
  readonly #target: SqlTarget
  readonly #createTables: boolean
  readonly #opened = new Once(() => this.#open())
  #isClosed = false

  /**
   * Checks the target and opens nothing: the first query opens the database.
   *
   * @param target a `postgres:` URL, an SQLite file, a `sqlite:` or `file:` URL, `:memory:`, or an
   *   existing engine; default LOCAL_AUTH_DB, else `./local-auth.db`
   * @param options whether the store makes its tables
   * @throws OptionsError naming the option
   */
  constructor (
    target: string | SqlEngine = process.env.LOCAL_AUTH_DB ?? './local-auth.db',
    options: SqlAuthStoreOptions = {}
  ) {
    assertKnownOptions('SqlAuthStore', options, ['createTables'])
    const { createTables = true } = options
    if (typeof createTables !== 'boolean') throw new OptionsError('createTables must be true or false')
    this.#target = sqlTarget(target)
    this.#createTables = createTables
    const isShared = this.#target.dialect === 'postgres'
    this.sessions = this.#sessions()
    this.entries = this.#entries()
    this.attempts = isShared ? this.#attempts() : null
    this.revocations = isShared ? this.#revocations() : null
  }

  async findUser (query: UserQuery): Promise<User | null> {
    return (await this.#accounts()).findUser(query)
  }

  async links (userId: string): Promise<Link[]> {
    return (await this.#accounts()).links(userId)
  }

  async findCredential (email: string): Promise<Credential | null> {
    return (await this.#accounts()).findCredential(email)
  }

  async status (userId: string): Promise<AccountStatus | null> {
    return (await this.#accounts()).status(userId)
  }

  async users (query: UsersQuery): Promise<User[]> {
    return (await this.#accounts()).users(query)
  }

  async insert (account: Account): Promise<boolean> {
    return (await this.#accounts()).insert(account)
  }

  async change<T> (find: AccountQuery, wanted: Wanted, rule: Rule<T>): Promise<T> {
    return (await this.#accounts()).change(find, wanted, rule)
  }

  /** Loads the driver and Drizzle; the first query opens the database. */
  async preload (): Promise<void> {
    if (this.#target.dialect === 'postgres') await Promise.all([import('./postgres/open.js'), import('postgres')])
    else await import('./sqlite/open.js')
  }

  /** Closes the database if the store opened it; an engine that was passed in stays open. */
  async close (): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    // A database that could not be opened need not be closed; the query that opened it has reported
    // the failure.
    await this.#opened.attempt?.then(database => database.close(), () => {})
  }

  // Each member passes its calls on to the database.

  #sessions (): StoredSessions {
    const opened = async (): Promise<StoredSessions> => (await this.#database()).sessions
    return {
      find: async (...given) => (await opened()).find(...given),
      insert: async (...given) => (await opened()).insert(...given),
      update: async (...given) => (await opened()).update(...given),
      end: async (...given) => (await opened()).end(...given),
      ofUser: async (...given) => (await opened()).ofUser(...given)
    }
  }

  #entries (): OneTimeEntries {
    const opened = async (): Promise<OneTimeEntries> => (await this.#database()).entries
    return {
      put: async (...given) => (await opened()).put(...given),
      take: async (...given) => (await opened()).take(...given),
      attempt: async (...given) => (await opened()).attempt(...given),
      has: async (...given) => (await opened()).has(...given)
    }
  }

  #attempts (): AttemptCounter {
    return { count: async attempts => (await this.#database()).attempts?.count(attempts) ?? null }
  }

  #revocations (): Revocations {
    return {
      record: async userId => (await this.#database()).revocations?.record(userId),
      follow: async listener => (await this.#database()).revocations?.follow(listener)
    }
  }

  async #accounts (): Promise<OpenDatabase['accounts']> {
    return (await this.#database()).accounts
  }

  async #database (): Promise<OpenDatabase> {
    if (this.#isClosed) throw new AuthError('unavailable', { cause: new Error('the store is closed') })
    try {
      return await this.#opened.done()
    } catch (error) {
      throw error instanceof AuthError ? error : new AuthError('unavailable', { cause: error })
    }
  }

  async #open (): Promise<OpenDatabase> {
    const options = { createTables: this.#createTables }
    if (this.#target.dialect === 'postgres') {
      const { openPostgres } = await import('./postgres/open.js')
      return openPostgres(this.#target, options)
    }
    const { openSqlite } = await import('./sqlite/open.js').catch(notLoaded('better-sqlite3'))
    return openSqlite(this.#target, options)
  }
}
