import { Once } from '../base/once.js'
import { AuthError, OptionsError, assertKnownOptions } from '../errors.js'
import { assertCanSignIn, assertCanonical } from './accounts.js'
import { notLoaded } from './driver.js'
import { EMAIL_PROOF_METHODS, type EmailProof, type EmailProofs } from './email-proofs.js'
import type { Endings, SharedEndings } from './endings.js'
import { STORED_SESSION_METHODS, type StoredSessions } from './sessions.js'
import type { SqlEngine } from './sql-engine.js'
import { type SqlTarget, sqlTarget } from './sql-target.js'
import {
  ACCOUNT_METHODS, type Accounts, type AuthStore, type LinkedIdentity, MANAGED_ACCOUNT_METHODS, type ManagedAccounts,
  type NewUser, type User
} from './store.js'
import type { SharedCounts, TryCounts } from './try-counts.js'

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
  readonly accounts: Accounts & ManagedAccounts & EmailProofs
  readonly counts: TryCounts | null
  readonly endings: Endings | null
  readonly sessions: StoredSessions
  readonly close: () => void | Promise<void>
}

// The methods that the static block below defines.
interface SqlSessions extends StoredSessions {}

/** Passes each call on to the database. */
class SqlSessions {
  readonly #sessions: () => Promise<StoredSessions>

  constructor (sessions: () => Promise<StoredSessions>) {
    this.#sessions = sessions
  }

  static {
    for (const name of STORED_SESSION_METHODS) {
      this.prototype[name] = async function (this: SqlSessions, ...given: unknown[]) {
        const sessions = await this.#sessions()
        return Reflect.apply(sessions[name], sessions, given)
      }
    }
  }
}

// The methods that the static block below defines.
export interface SqlAuthStore extends AuthStore, ManagedAccounts, EmailProofs {}

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
export class SqlAuthStore implements AuthStore, ManagedAccounts, EmailProofs, SharedCounts, SharedEndings {
  /** The counts of tries, which processes share on Postgres; null on SQLite. */
  readonly counts: TryCounts | null
  /** The endings of sessions, which processes share on Postgres; null on SQLite. */
  readonly endings: Endings | null
  /** Keeps the sessions of the plugin, in tables that are made when they are first used. */
  readonly sessions: StoredSessions
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
    this.counts = this.#target.dialect === 'postgres' ? this.#sharedCounts() : null
    this.endings = this.#target.dialect === 'postgres' ? this.#sharedEndings() : null
    this.sessions = new SqlSessions(async () => (await this.#database()).sessions)
  }

  // Each method passes its call on to the database; those that check something first are below.
  static {
    for (const name of [...ACCOUNT_METHODS, ...MANAGED_ACCOUNT_METHODS, ...EMAIL_PROOF_METHODS]) {
      if (name in this.prototype) continue
      this.prototype[name] = async function (this: SqlAuthStore, ...given: unknown[]) {
        const { accounts } = await this.#database()
        return Reflect.apply(accounts[name], accounts, given)
      }
    }
  }

  async createUser (user: NewUser): Promise<User | null> {
    assertCanSignIn(user)
    const { accounts } = await this.#database()
    return accounts.createUser(user)
  }

  async addLink (userId: string, identity: LinkedIdentity, generation?: number): Promise<User | null> {
    assertCanSignIn({ email: identity.verifiedEmail, link: identity })
    const { accounts } = await this.#database()
    return accounts.addLink(userId, identity, generation)
  }

  async changeEmail (proof: EmailProof, to: string): Promise<User | null> {
    assertCanonical(to)
    const { accounts } = await this.#database()
    return accounts.changeEmail(proof, to)
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

  #sharedCounts (): TryCounts {
    return {
      count: async tries => {
        const { counts } = await this.#database()
        return counts === null ? null : counts.count(tries)
      }
    }
  }

  #sharedEndings (): Endings {
    return {
      record: async userId => (await this.#database()).endings?.record(userId),
      follow: async listener => (await this.#database()).endings?.follow(listener)
    }
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
