import { setTimeout as wait } from 'node:timers/promises'
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import type { Account } from '../../accounts/account.js'
import { type CreateHook, refusalBy } from '../../accounts/auth-store.js'
import { TIMEOUT_MS, isThenable, lazily } from '../../base/concurrency.js'
import {
  type SQL, connections, credentials, domains, factors, grants, keys, oauthClients, oneTimeEntries, providerLinks,
  sessions, sql, users
} from '../../drizzle/sqlite.js'
import { AuthError, OptionsError } from '../../errors.js'
import { EngineFailures } from '../engine-failures.js'
import { FEATURE_PARTS } from '../../session/feature-tables.js'
import type { SqlDatabase, Values } from '../../session/sql-database.js'
import { given, sweeperOn } from '../sql-rows.js'
import type { SqliteDrizzle } from '../sql-target.js'
import {
  DROPPED, type Migration, PARTS, type TablePart, type TableState, ifMissing, mainTable, missingPart, renamed,
  tableState, tablesOf
} from '../sql-tables.js'
import { SQLITE_MIGRATIONS } from './migrations.js'

export interface SqliteDatabaseOptions {
  createTables: boolean
  /** Runs work without waiting for a lock inside SQLite. */
  attempt?: <T>(work: () => T) => T
  /** Asks the application, which has its connection as it set that up. */
  asGiven?: <T>(work: () => T) => T
  /** Whether the application gave a Drizzle database, and so gets a transaction of Drizzle. */
  isDrizzle?: boolean
  /** Sets whether commits wait for the disk, where the connection is the store's own. */
  sync?: (isWanted: boolean) => void
  /** Throws when what was written is in a file that is no longer at its path. */
  assertKept?: () => void
  lost: (error: unknown, message: string) => void
  notSwept?: SqlDatabase['notSwept']
}

/** Asks the application about an account that is written, and returns it with what that adds. */
type AskHook = (hook: CreateHook, account: Account) => Account

interface WriteOptions {
  /** Turns an error into the one for the caller; default as for any statement. */
  failure?: (error: unknown) => AuthError
  /**
   * Whether the commit waits for the disk; default true. Otherwise a crash of the machine may undo
   * it, one of the process not. What is committed after it reaches the disk after it: no crash
   * undoes this alone.
   */
  isSynced?: boolean
}

export class SqliteDatabase implements SqlDatabase {
  readonly tables = {
    users,
    credentials,
    providerLinks,
    factors,
    sessions,
    oneTimeEntries,
    grants,
    oauthClients,
    keys,
    connections,
    domains
  }

  readonly db: SqliteDrizzle
  readonly notSwept: SqlDatabase['notSwept']
  readonly sweeper: SqlDatabase['sweeper'] = swept => sweeperOn(this, swept)
  readonly #options: Required<SqliteDatabaseOptions>
  readonly #parts: readonly TablePart[]
  /** What the databases of all parts share: whose turn it is, and the parts that are made. */
  readonly #shared: { writeLock: WriteLock, made: Set<TablePart> }

  constructor (
    db: SqliteDrizzle,
    options: SqliteDatabaseOptions,
    parts: readonly TablePart[] = ['users'],
    shared = { writeLock: new WriteLock(), made: new Set<TablePart>() }
  ) {
    this.db = db
    this.notSwept = options.notSwept
    this.#options = {
      attempt: work => work(),
      asGiven: work => work(),
      isDrizzle: false,
      sync: () => {},
      assertKept: () => {},
      notSwept: undefined,
      ...options
    }
    this.#parts = options.createTables ? parts : []
    this.#shared = shared
  }

  /** Null stays null; Drizzle would write the text `null`. */
  json (name: string): SQL {
    const mapToDriverValue = (value: unknown): string | null => value === null ? null : JSON.stringify(value)
    return sql`${sql.param(given(name), { mapToDriverValue })}`
  }

  with (part: TablePart): SqliteDatabase {
    return new SqliteDatabase(this.db, this.#options, ['users', part], this.#shared)
  }

  /** Compares the tables with those of this version, and makes none. */
  tableState (): Promise<TableState> {
    const { db } = this
    return new SqliteDatabase(db, { ...this.#options, createTables: false }).read(() => {
      const hasJournal = tableExists(db, 'svc_auth_migrations')
      const applied = hasJournal ? db.all<{ name: string }>(sql`select name from ${JOURNAL}`) : []
      const isOwn = !hasJournal && tableExists(db, 'svc_auth_users')
      return tableState(SQLITE_MIGRATIONS, isOwn ? null : applied.map(({ name }) => name))
    })
  }

  /** Prepares a statement on its first use, when its tables exist. */
  prepared<T> (build: (db: BetterSQLite3Database) => { prepare: () => T }): () => T {
    return lazily(() => build(this.db).prepare())
  }

  query<Row> (
    build: (db: BetterSQLite3Database) => { prepare: () => { all: (values: Values) => Row[] } }
  ): (values: Values) => Promise<Row[]> {
    const statement = this.prepared(build)
    return values => this.read(() => statement().all(values))
  }

  change<Row> (
    build: (db: BetterSQLite3Database) => { prepare: () => { all: (values: Values) => Row[] } }
  ): (values: Values) => Promise<Row[]> {
    const statement = this.prepared(build)
    return values => this.write(() => statement().all(values))
  }

  async execute (build: (db: BetterSQLite3Database) => { run: () => unknown }): Promise<void> {
    await this.write(() => { build(this.db).run() })
  }

  read<T> (work: () => T): Promise<T> {
    return this.#run(attempt => whileLocked(attempt), work)
  }

  /** Runs one statement that writes, when it is its turn. */
  write<T> (work: () => T, { failure, isSynced = true }: WriteOptions = {}): Promise<T> {
    return this.#run(attempt => this.#shared.writeLock.run(attempt), () => {
      this.#options.sync(isSynced)
      const result = work()
      if (isSynced) this.#options.assertKept()
      return result
    }, failure)
  }

  /**
   * Runs several statements like {@link write}, in a transaction that holds the write lock before
   * it reads.
   */
  transaction<T> (work: (ask: AskHook) => T, options?: WriteOptions): Promise<T> {
    return this.write(() => this.atomically(work), options)
  }

  /** Once the application is asked, a failure is of its own statements, such as at the commit. */
  atomically<T> (work: (ask: AskHook) => T): T {
    const { asGiven, isDrizzle } = this.#options
    let isAsked = false
    try {
      return this.db.transaction(tx => work((hook, account) => {
        isAsked = true
        return askNow(() => asGiven(() => hook(account, isDrizzle ? tx : this.db.$client)))
      }), { behavior: 'immediate' })
    } catch (error) {
      throw isAsked ? refusalBy(error) : error
    }
  }

  async #run<T> (
    inTurn: (attempt: () => T) => Promise<T>, work: () => T, failure = sqliteFailures.toAuthError
  ): Promise<T> {
    try {
      return await inTurn(() => this.#options.attempt(() => {
        try {
          return this.#onTables(work)
        } catch (error) {
          if (!this.#options.createTables || !sqliteFailures.isTableMissing(error)) throw error
          const isLost = makeMissingTables(this.db, this.#shared.made)
          const result = work()
          if (isLost) this.#options.lost(error, DROPPED)
          return result
        }
      }))
    } catch (error) {
      throw error instanceof AuthError ? error : failure(error)
    }
  }

  #onTables<T> (work: () => T): T {
    const { made } = this.#shared
    for (const part of this.#parts) {
      if (made.has(part)) continue
      createSqliteTables(this.db, part)
      made.add(part)
    }
    return work()
  }
}

const ASYNC_HOOK = 'onCreateUser must return no promise with SQLite, whose transactions do not wait: the user was ' +
  'refused. End queries of Drizzle with .run(), .get() or .all()'

function askNow (ask: () => ReturnType<CreateHook>): Account {
  const account = ask()
  if (!isThenable(account)) return account
  // Nothing awaits it: its failure must not end the process.
  if (account instanceof Promise) Promise.allSettled([account])
  throw new OptionsError(ASYNC_HOOK)
}

const JOURNAL = sql.identifier('svc_auth_migrations')

/**
 * Brings a part of the tables up to date. Processes that start together take turns: the transaction
 * holds the write lock from its beginning. Tables of the application's own migrations stay.
 *
 * @param isAgain whether tables are made again that are gone, though the journal names them
 * @returns whether there was something to do
 */
export function createSqliteTables (db: BetterSQLite3Database, part: TablePart, isAgain = false): boolean {
  // Tables that are there take no write lock: reads do not wait for it.
  if (missingMigrations(db, part, isAgain).length === 0) return false
  return db.transaction(tx => {
    const missing = missingMigrations(tx, part, isAgain)
    if (missing.length === 0) return false
    tx.run(sql`create table if not exists ${JOURNAL} (name text primary key)`)
    for (const migration of missing) {
      for (const statement of migration.sql) tx.run(sql.raw(ifMissing(statement)))
      tx.run(sql`insert or ignore into ${JOURNAL} values (${migration.name})`)
    }
    return true
  }, { behavior: 'immediate' })
}

function missingMigrations (db: Pick<BetterSQLite3Database, 'get'>, part: TablePart, isAgain: boolean) {
  const all = SQLITE_MIGRATIONS[part]
  if (tableExists(db, 'svc_auth_migrations')) {
    const dropped = isAgain ? tablesOf(all).filter(name => !tableExists(db, name)) : []
    const hasIndex = (name: string): boolean =>
      db.get(sql`select 1 from sqlite_master where type = 'index' and name glob ${`${name}_*`}`) !== undefined
    if (dropped.some(hasIndex)) throw new Error(renamed(dropped))
    if (dropped.length > 0) return all
    return all.filter(migration => !isApplied(db, migration))
  }
  if (!tableExists(db, 'svc_auth_users')) return all
  if (!tableExists(db, mainTable(part))) throw new Error(missingPart(mainTable(part)))
  return []
}

/** Makes missing tables. Returns whether tables were gone that had been made before. */
function makeMissingTables (db: BetterSQLite3Database, made: ReadonlySet<TablePart>): boolean {
  const isNoted = (part: TablePart): boolean =>
    tableExists(db, 'svc_auth_migrations') && SQLITE_MIGRATIONS[part].some(migration => isApplied(db, migration))
  return PARTS.filter(part => {
    const wasMade = made.has(part) || isNoted(part)
    // Those of a feature are made when it first uses them.
    const isDue = wasMade || !FEATURE_PARTS.some(ofFeature => ofFeature === part)
    return isDue && createSqliteTables(db, part, true) && wasMade
  }).length > 0
}

function isApplied (db: Pick<BetterSQLite3Database, 'get'>, { name }: Migration): boolean {
  return db.get(sql`select 1 from ${JOURNAL} where name = ${name}`) !== undefined
}

function tableExists (db: Pick<BetterSQLite3Database, 'get'>, name: string): boolean {
  return db.get(sql`select 1 from sqlite_master where type = 'table' and name = ${name}`) !== undefined
}

const PAUSE_MS = 5

/** Tries work for five seconds, until no other process holds the lock that it needs. */
export async function whileLocked<T> (work: () => T, deadline = Date.now() + TIMEOUT_MS): Promise<T> {
  for (;;) {
    try {
      return work()
    } catch (error) {
      if (!sqliteFailures.isLocked(error) || Date.now() > deadline) throw error
    }
    await wait(PAUSE_MS)
  }
}

/** While another process holds the lock, one writer of this process tries, and the others wait. */
export class WriteLock {
  readonly #waiting: Array<() => void> = []
  #isTried = false

  /** Does work at once if the lock is free, else when it becomes free, within five seconds. */
  async run<T> (work: () => T): Promise<T> {
    const deadline = Date.now() + TIMEOUT_MS
    if (this.#isTried) await new Promise<void>(resolve => { this.#waiting.push(resolve) })
    else {
      try {
        return work()
      } catch (error) {
        if (!sqliteFailures.isLocked(error)) throw error
      }
      this.#isTried = true
    }
    try {
      return await whileLocked(work, deadline)
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#isTried = false
      else setImmediate(next)
    }
  }
}

/** What to do about a failure, by its code, or by SQLite's sentence where it has none. */
const ADVICE: ReadonlyArray<readonly [RegExp, string]> = [
  [/ the file does not exist/, 'name one that does, or make it: npx fastify-svc-auth migrate'],
  [/^SQLITE_CANTOPEN/, 'name a file in a folder that exists and that this process may write to'],
  [/^SQLITE_READONLY/, 'let this process write to the file and to its folder'],
  [/^SQLITE_NOTADB/, 'name another file; this one is left as it is'],
  [/^SQLITE_CORRUPT/, 'restore the file from a backup'],
  [/^SQLITE_FULL/, 'make room on the disk'],
  [/^SQLITE_IOERR/, 'make room on the disk, or use another one: this one is full, broken or a network drive'],
  [/^SQLITE_BUSY/, 'another process has held the lock for longer than five seconds; see what it does'],
  [/^ERR_DLOPEN_FAILED| bindings file/, 'build it for this version of Node.js: npm rebuild better-sqlite3'],
  [/ no such table/, 'run the migrations that make the tables, or leave createTables at true'],
  [/ the directory does not exist/, 'make the folder first']
]

class SqliteFailures extends EngineFailures {
  codeOf (error: unknown): string {
    return error instanceof Error && 'code' in error ? String(error.code) : ''
  }

  isLocked (error: unknown): boolean {
    return this.codeOf(error).startsWith('SQLITE_BUSY')
  }

  isTableMissing (error: unknown): boolean {
    return !(error instanceof AuthError) && String(error).includes(' no such table')
  }

  readonly isUniqueViolation = (error: unknown): boolean =>
    ['SQLITE_CONSTRAINT_UNIQUE', 'SQLITE_CONSTRAINT_PRIMARYKEY'].includes(this.codeOf(error))

  readonly isFactorTaken = (error: unknown): boolean =>
    this.isUniqueViolation(error) && String(error).includes('svc_auth_factors.')

  /** Only the sentence tells: with `on delete restrict` the code is that of a trigger. */
  readonly isForeignKeyViolation = (error: unknown): boolean =>
    error instanceof Error && error.message === 'FOREIGN KEY constraint failed'

  readonly toAuthError = (error: unknown): AuthError => {
    const said = String(error)
    const advice = ADVICE.find(([beginning]) => beginning.test(`${this.codeOf(error)} ${said}`))?.[1]
    const cause = advice === undefined ? error : new Error(`${said}; ${advice}`, { cause: error })
    return new AuthError('unavailable', { cause })
  }
}

export const sqliteFailures = new SqliteFailures()
