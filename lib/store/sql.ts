import { isAbsolute } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Database } from 'better-sqlite3'
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import type { AuthorizationClaims } from '../claims.js'
import { AuthError, OptionsError } from '../errors.js'
import { LOCK_WAIT_MS, whileLocked } from './sqlite-lock.js'
import type { AuthStore, Credential, Link, LinkedIdentity, NewUser, User, UserQuery } from './store.js'

/**
 * An existing engine: a better-sqlite3 connection, or a Drizzle database on one. It stays open when the store is closed.
 * The types say only what tells an engine from something else, so that nobody needs the types of a driver that he does not use.
 */
export type SqlEngine = SqliteConnection | { readonly $client: SqliteConnection, transaction (...args: never): unknown }

export interface SqliteConnection {
  prepare (source: string): unknown
  pragma (source: string): unknown
}

export interface SqlAuthStoreOptions {
  /** Make the tables before the first query; default true. `false` leaves that to the application's own migrations. */
  createTables?: boolean
}

/**
 * Keeps users in an SQL database.
 *
 * @example
 * ```ts
 * new SqlAuthStore()                      // the setting LOCAL_AUTH_DB, else ./local-auth.db
 * new SqlAuthStore('./users.db')          // an SQLite file; also sqlite: and file: URLs and :memory:
 * new SqlAuthStore(drizzle(connection))   // an existing engine
 * ```
 */
export class SqlAuthStore implements AuthStore {
  readonly #target: string | Database | BetterSQLite3Database
  readonly #createTables: boolean
  #opened: Promise<AuthStore> | undefined
  #isClosed = false

  /**
   * Opens nothing yet: the database is opened by the first query.
   *
   * @param target an SQLite file, `sqlite:` or `file:` URL, `:memory:`, or an existing engine; default LOCAL_AUTH_DB, else `./local-auth.db`
   * @throws OptionsError naming the option
   */
  constructor (target: string | SqlEngine = process.env.LOCAL_AUTH_DB ?? './local-auth.db', { createTables = true, ...unknown }: SqlAuthStoreOptions = {}) {
    if (typeof createTables !== 'boolean') throw new OptionsError('createTables must be true or false')
    const [unknownOption] = Object.keys(unknown)
    if (unknownOption !== undefined) throw new OptionsError(`SqlAuthStore has no option "${unknownOption}"; it has createTables`)
    this.#target = typeof target === 'string' ? sqliteFile(target) : engine(target)
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
    return (await this.#statements()).createUser(user)
  }

  async addLink (userId: string, identity: LinkedIdentity): Promise<User | null> {
    return (await this.#statements()).addLink(userId, identity)
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

  /** Closes the database if the store opened it; an engine that was passed in stays open. */
  async close (): Promise<void> {
    this.#isClosed = true
    const opened = this.#opened
    this.#opened = undefined
    // What could not be opened need not be closed; whoever asked for it has been told.
    await opened?.then(statements => statements.close(), () => {})
  }

  /** Opened once; a failed attempt is not kept, so that the next query tries again. */
  async #statements (): Promise<AuthStore> {
    if (this.#isClosed) throw new AuthError('unavailable', { cause: new Error('the store is closed') })
    this.#opened ??= this.#open()
    try {
      return await this.#opened
    } catch (error) {
      this.#opened = undefined
      throw new AuthError('unavailable', { cause: error })
    }
  }

  async #open (): Promise<AuthStore> {
    const { drizzle } = await installed(import('drizzle-orm/better-sqlite3'))
    const { SqliteStatements } = await import('./sqlite.js')
    const createTables = this.#createTables
    if (typeof this.#target !== 'string') {
      const db = isConnection(this.#target) ? drizzle({ client: this.#target }) : this.#target
      return new SqliteStatements(db, { createTables, close: () => {} })
    }
    const connection = await openSqlite(this.#target)
    return new SqliteStatements(drizzle({ client: connection }), { createTables, close: () => { connection.close() } })
  }
}

async function openSqlite (file: string): Promise<Database> {
  const { default: SqliteDatabase } = await import('better-sqlite3')
  // Waiting for a lock inside SQLite would block the whole process; a short wait here, the long one between attempts.
  const connection = new SqliteDatabase(file, { timeout: LOCK_WAIT_MS })
  try {
    await whileLocked(() => connection.pragma('journal_mode = WAL'))
    connection.pragma('synchronous = FULL')
    connection.pragma('foreign_keys = ON')
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

/** Drizzle's driver loads better-sqlite3, which is installed by whoever uses it. */
async function installed<T> (loading: Promise<T>): Promise<T> {
  try {
    return await loading
  } catch (error) {
    throw new Error('SQLite needs the package better-sqlite3; install it: npm install better-sqlite3', { cause: error })
  }
}

/** The file that a path, `sqlite:` URL or `file:` URL names. */
function sqliteFile (target: string): string {
  if (target === '') throw new OptionsError('target must not be empty; set LOCAL_AUTH_DB to an SQLite file or leave it unset')
  const scheme = isAbsolute(target) ? undefined : /^([a-z][a-z0-9+.-]+):/i.exec(target)?.[1]?.toLowerCase()
  if (scheme !== undefined && scheme !== 'file' && scheme !== 'sqlite') {
    throw new OptionsError(`target has the scheme "${scheme}:", which is not known; expected an SQLite file, a sqlite: or file: URL, :memory: or an existing engine`)
  }
  const file = scheme === undefined ? target : pathOf(target, scheme)
  if (file.trim() === '' || file.endsWith('/')) throw new OptionsError('target must name an SQLite file, such as ./local-auth.db')
  return file
}

/** Both schemes are written with and without the two slashes of an authority. */
function pathOf (target: string, scheme: string): string {
  const rest = target.slice(scheme.length + 1)
  if (scheme === 'sqlite' || !rest.startsWith('//') || rest === '//:memory:') return rest.replace(/^\/\//, '')
  try {
    return fileURLToPath(target)
  } catch (error) {
    throw new OptionsError('target must be a file: URL of this machine, such as file:///var/lib/app/users.db', { cause: error })
  }
}

function engine (target: unknown): Database | BetterSQLite3Database {
  if (isConnection(target) || isDrizzle(target)) return target
  throw new OptionsError('target must be an SQLite file or URL, a Drizzle database on better-sqlite3, or a better-sqlite3 connection')
}

function isConnection (target: unknown): target is Database {
  return typeof target === 'object' && target !== null && 'pragma' in target && 'prepare' in target
}

function isDrizzle (target: unknown): target is BetterSQLite3Database {
  return typeof target === 'object' && target !== null && '$client' in target && isConnection(target.$client)
}
