import { setImmediate } from 'node:timers/promises'
import type { Account, AccountStatus, Credential, Factor, Link, User } from '../accounts/account.js'
import {
  type AccountQuery, type AuthStore, type CreateHook, type Rule, type UniqueKeys, type UserQuery, type UsersFilter,
  type UsersQuery, wrapStoreErrors
} from '../accounts/auth-store.js'
import { brand, notLoaded } from '../base/values.js'
import { Once, TIMEOUT_MS, withTimeout } from '../base/concurrency.js'
import { AuthError, OptionsError } from '../errors.js'
import { type ChecksOf, boolean, checkedOptions, optional } from '../option-checks.js'
import type {
  AttemptCounter, OneTimeEntries, Revocations, SessionRows, StoreCapabilities, StoredSessions
} from '../session/store.js'
import type { FeaturePart, FeatureTables } from '../session/feature-tables.js'
import type { SqlDatabase } from '../session/sql-database.js'
import type { Pool } from './postgres/pool.js'
import type { StoredAccounts } from './apply-rule.js'
import type { TableState } from './sql-tables.js'
import { type PostgresEngine, type SqliteTarget, sqlTarget } from './sql-target.js'

/**
 * An existing engine: a Drizzle database on better-sqlite3 or on any Postgres driver, a
 * better-sqlite3 connection, or a client of the package postgres. It stays open when the store is
 * closed. The types name only the members that tell an engine from other values, so that an
 * application needs the types of its own driver alone.
 */
export type SqlEngine = SqliteConnection | DrizzleSqlite | DrizzlePostgres | PostgresClient

/** A connection of better-sqlite3. */
export interface SqliteConnection {
  /** Compiles a statement. */
  prepare (source: string): unknown
  /** Reads or changes a setting of the database. */
  pragma (source: string): unknown
}

/** A Drizzle database on better-sqlite3. */
export interface DrizzleSqlite {
  /** The connection that Drizzle was given. */
  readonly $client: SqliteConnection
  /** Runs statements that take effect together. */
  transaction (...args: never): unknown
}

/** A Drizzle database on a Postgres driver. */
export interface DrizzlePostgres {
  /** Runs a statement. */
  execute (...args: never): unknown
  /** Exists on Postgres only. */
  refreshMaterializedView (...args: never): unknown
}

/** A client of the package postgres. */
export interface PostgresClient {
  /** Runs a statement that is given as text. */
  unsafe (...args: never): unknown
  /** Reserves one connection of the pool. */
  reserve (...args: never): unknown
}

/**
 * What the hook `onCreateUser` gets as `tx`, by the engine that the store was given: a connection
 * of better-sqlite3 as it is, else a transaction of Drizzle or of a client of postgres. For a URL
 * or a file, name the driver: `new SqlAuthStore<Sql>(url)`, `new SqlAuthStore<Database>(file)`.
 */
export type TransactionOf<Engine> =
  Engine extends SqliteConnection ? Engine
    : Engine extends {
      /** Of the package postgres. */
      begin: (options: string, work: (tx: infer Tx) => never) => unknown
    } ? Tx
      : Engine extends {
        /** Of Drizzle. */
        transaction: (work: (tx: infer Tx) => never) => unknown
      } ? Tx : unknown

const ASYNC_HOOK = 'must not be an async function with SQLite, whose transactions do not wait: use .run(), .get() or ' +
  '.all() of better-sqlite3 or Drizzle without await'

const NO_TRANSACTIONS = 'needs transactions in several steps, which this driver of the store lacks; use one that ' +
  'connects, such as postgres, pg or @neondatabase/serverless with WebSockets'

/** What {@link SqlAuthStore} takes besides the database. */
export interface SqlAuthStoreOptions {
  /**
   * Whether the store makes its tables before it first uses them; default true. With `false` the
   * application's own migrations make them.
   */
  createTables?: boolean | undefined
}

const UNUSABLE = 'The store cannot use its database; until it can, requests that need it are answered 503'

const NOT_SWEPT = 'Rows that are over could not be removed; their table grows until a later attempt succeeds'

/** When tables are looked at that are used for the first time: the request goes first. */
const LATER_MS = 1000

interface OpenDatabase extends SessionRows, Pick<StoreCapabilities, 'attempts' | 'revocations'> {
  readonly accounts: StoredAccounts
  readonly tables: () => Promise<TableState>
  readonly migrate: () => Promise<void>
  readonly featureTables: (part: FeaturePart) => SqlDatabase
  readonly inspect?: () => Promise<string[]>
  /** Whether its file was deleted or replaced: then it is opened anew. */
  readonly isOver?: () => boolean
  readonly close: () => void | Promise<void>
}

const CLOSED = 'the store is closed'

type StoreLog = Pick<Console, 'warn' | 'error'>

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
export class SqlAuthStore<Engine extends SqlEngine = SqlEngine>
implements AuthStore<TransactionOf<Engine>>, StoreCapabilities {
  static { brand(this, 'SqlAuthStore') }
  /** Keeps the sessions of the plugin, in tables that are made when they are first used. */
  readonly sessions: StoredSessions = {
    find: async (...given) => (await this.#database()).sessions.find(...given),
    insert: async (...given) => (await this.#database()).sessions.insert(...given),
    update: async (...given) => (await this.#database()).sessions.update(...given),
    end: async (...given) => (await this.#database()).sessions.end(...given),
    ofUser: async (...given) => (await this.#database()).sessions.ofUser(...given),
    showing: async (...given) => await (await this.#database()).sessions.showing?.(...given) ?? [],
    endAtProvider: async (...given) => await (await this.#database()).sessions.endAtProvider?.(...given) ?? []
  }

  /** Keeps what may be used once, such as the sign-ins that were started at a provider. */
  readonly entries: OneTimeEntries = {
    put: async (...given) => (await this.#database()).entries.put(...given),
    find: async (...given) => (await this.#database()).entries.find(...given),
    take: async (...given) => (await this.#database()).entries.take(...given),
    takenAt: async entry => (await this.#database()).entries.takenAt(entry),
    attempt: async (...given) => (await this.#database()).entries.attempt(...given),
    count: async (...given) => (await this.#database()).entries.count(...given)
  }

  /** The counts of attempts, which processes share on Postgres; null on SQLite. */
  readonly attempts: AttemptCounter | null
  /** The revocations, which processes share on Postgres; null on SQLite. */
  readonly revocations: Revocations | null
  readonly #target: SqliteTarget | PostgresEngine | { dialect: 'postgres', pool: Once<Pool> }
  #createTables: boolean
  #opened = new Once(() => this.#open())
  #log: StoreLog | undefined
  #warnings: readonly string[] = []
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
    target: string | Engine = process.env.LOCAL_AUTH_DB ?? './local-auth.db',
    options: SqlAuthStoreOptions = {}
  ) {
    const checks = { createTables: optional(boolean, true) } satisfies ChecksOf<SqlAuthStoreOptions>
    const { createTables } = checkedOptions('SqlAuthStore', options, checks, '{ createTables: false }')
    const named = sqlTarget(target)
    this.#target = 'url' in named ? { dialect: named.dialect, pool: new Once(() => openPool(named.url)) } : named
    this.#createTables = createTables
    const isShared = this.#target.dialect === 'postgres'
    this.attempts = isShared
      ? { count: async attempts => (await this.#database()).attempts?.count(attempts) ?? null }
      : null
    this.revocations = isShared
      ? {
          record: async userId => (await this.#database()).revocations?.record(userId),
          follow: async listener => (await this.#database()).revocations?.follow(listener)
        }
      : null
  }

  async findUser (query: UserQuery): Promise<User | null> {
    return (await this.#database()).accounts.findUser(query)
  }

  async links (userId: string): Promise<Link[]> {
    return (await this.#database()).accounts.links(userId)
  }

  async factors (userId: string): Promise<Factor[]> {
    return (await this.#database()).accounts.factors(userId)
  }

  async findCredential (email: string): Promise<Credential | null> {
    return (await this.#database()).accounts.findCredential(email)
  }

  async status (userId: string): Promise<AccountStatus | null> {
    return (await this.#database()).accounts.status(userId)
  }

  async users (query: UsersQuery): Promise<User[]> {
    return (await this.#database()).accounts.users(query)
  }

  async countUsers (filter: UsersFilter): Promise<number> {
    return (await this.#database()).accounts.countUsers(filter)
  }

  async abandonedGuests (createdBefore: number, now: number, limit: number, after: string): Promise<string[]> {
    return await (await this.#database()).accounts.abandonedGuests?.(createdBefore, now, limit, after) ?? []
  }

  async insert (account: Account, hook?: CreateHook<TransactionOf<Engine>>): Promise<boolean> {
    return (await this.#database()).accounts.insert(account, hook)
  }

  async change<T> (
    find: AccountQuery, keys: UniqueKeys, rule: Rule<T>, hook?: CreateHook<TransactionOf<Engine>>
  ): Promise<T> {
    return (await this.#database()).accounts.change(find, keys, rule, hook)
  }

  async hookProblem (isAsync: boolean): Promise<string | null> {
    if (this.#target.dialect === 'sqlite') return isAsync ? ASYNC_HOOK : null
    if (!('db' in this.#target)) return null
    try {
      await withTimeout(TIMEOUT_MS, this.#target.db.transaction(async () => {}), 'Postgres')
      return null
    } catch (error) {
      // Drizzle's own sentence: a database that cannot be reached now may be, later.
      return /transactions? .*support|support.* transactions?/i.test(String(error)) ? NO_TRANSACTIONS : null
    }
  }

  /** @hidden for features, whose tables are made when they are first used */
  readonly featureTables: FeatureTables = async part => (await this.#database()).featureTables(part)

  /** @hidden for the command line: compares the tables with those of this version */
  async tables (createTables = this.#createTables): Promise<TableState> {
    this.#createTables = createTables
    return (await this.#database()).tables()
  }

  /** @hidden for the command line: makes all tables, however long that takes */
  async migrate (): Promise<void> {
    return (await this.#database()).migrate()
  }

  /**
   * Connects to a Postgres URL in the background. Until a query uses the connection, it does not
   * keep the process alive. A query that waits for it fails with it; a later one connects anew.
   *
   * @param log is told what was lost: tables that were dropped, a file that was replaced
   * @throws OptionsError for a closed store
   */
  connect (log?: StoreLog): void {
    if (this.#isClosed) throw new OptionsError(`${CLOSED}; make a new one for an application that starts later`)
    this.#log = log ?? this.#log
    if ('pool' in this.#target) Promise.allSettled([this.#target.pool.done()])
  }

  /**
   * Opens the database, and tells a log why it cannot be used, or what is wrong with it: now, and
   * when tables are first used.
   */
  async report (log: StoreLog): Promise<void> {
    this.#log = log
    try {
      const { inspect } = await this.#database()
      const warnings = await inspect?.() ?? []
      for (const warning of warnings) if (!this.#warnings.includes(warning)) log.warn(warning)
      this.#warnings = warnings
    } catch (error) {
      if (!this.#isClosed) log.error({ err: Object(error).cause }, UNUSABLE)
    }
  }

  /** Closes the database if the store opened it; an engine that was passed in stays open. */
  async close (): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    // The query that could not open a database has reported the failure.
    const pool = 'pool' in this.#target ? this.#target.pool.attempt : undefined
    for (const attempt of [this.#opened.attempt, pool]) await attempt?.then(opened => opened.close(), () => {})
  }

  async #database (): Promise<OpenDatabase> {
    if (this.#isClosed) throw new AuthError('unavailable', { cause: new Error(CLOSED) })
    return wrapStoreErrors(async () => {
      const opened = this.#opened
      const database = await opened.done()
      if (database.isOver?.() !== true) return database
      if (this.#opened === opened) this.#opened = new Once(() => this.#open())
      return this.#database()
    })
  }

  async #open (): Promise<OpenDatabase> {
    const target = this.#target
    const report = (): unknown => this.#log && this.report(this.#log)
    const ready = (): void => { if (this.#log !== undefined) setTimeout(report, LATER_MS).unref() }
    const lost = (err: unknown, message: string): void => { this.#log?.error({ err }, message) }
    const notSwept = (error: unknown): void => {
      if (!this.#isClosed) this.#log?.warn({ err: Object(error).cause }, NOT_SWEPT)
    }
    const options = { createTables: this.#createTables, ready, lost, notSwept }
    if (target.dialect === 'postgres') {
      // It connects while Drizzle is loaded.
      const engine = 'pool' in target ? await target.pool.done() : target
      const { openPostgres } =
        await loadInTurns(() => import('../drizzle/postgres.js'), () => import('./postgres/open.js'))
      return openPostgres(engine, options)
    }
    const { openSqlite } = await loadInTurns(() => import('../drizzle/sqlite.js'), () => import('./sqlite/open.js'))
      .catch(notLoaded('better-sqlite3', 'The store'))
    return openSqlite(target, options)
  }
}

const openPool = async (url: string) => (await import('./postgres/pool.js')).Pool.open(url)

/** Lets other requests take turns: loading at once would hold up the event loop. */
async function loadInTurns<Engine> (loadDialect: () => Promise<unknown>, loadEngine: () => Promise<Engine>) {
  await loadDialect()
  await setImmediate()
  const engine = await loadEngine()
  await setImmediate()
  return engine
}
