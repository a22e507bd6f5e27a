import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import { lazily } from '../../base/once.js'
import { credentials, factors, oneTimeEntries, providerLinks, sessions, users } from '../../drizzle/sqlite.js'
import { AuthError } from '../../errors.js'
import { isTableMissing, storeFailure } from './failures.js'
import { WriteLock, whileLocked } from './lock.js'
import type { SqlDatabase, Values } from '../sql-database.js'
import { DROPPED, type TablePart } from '../table-parts.js'
import { createSqliteTables, makeMissingTables } from './tables.js'

export interface SqliteDatabaseOptions {
  createTables: boolean
  /** Runs work without waiting for a lock inside SQLite. */
  attempt?: <T>(work: () => T) => T
  /** Sets whether commits wait for the disk, where the connection is the store's own. */
  sync?: (isWanted: boolean) => void
  /** Throws when what was written is in a file that is no longer at its path. */
  assertKept?: () => void
  lost: (error: unknown, message: string) => void
  notSwept?: SqlDatabase['notSwept']
}

interface WriteOptions {
  /** Turns an error into the one for the caller; default {@link storeFailure}. */
  failure?: (error: unknown) => AuthError
  /**
   * Whether the commit waits for the disk; default true. Otherwise a crash of the machine may undo
   * it, one of the process not. What is committed after it reaches the disk after it: no crash
   * undoes this alone.
   */
  isSynced?: boolean
}

export class SqliteDatabase implements SqlDatabase {
  readonly tables = { users, credentials, providerLinks, factors, sessions, oneTimeEntries }
  readonly db: BetterSQLite3Database
  readonly notSwept: SqlDatabase['notSwept']
  readonly #options: Required<SqliteDatabaseOptions>
  readonly #parts: readonly TablePart[]
  /** What the databases of all parts share: whose turn it is, and the parts that are made. */
  readonly #shared: { writeLock: WriteLock, made: Set<TablePart> }

  constructor (
    db: BetterSQLite3Database,
    options: SqliteDatabaseOptions,
    parts: readonly TablePart[] = ['users'],
    shared = { writeLock: new WriteLock(), made: new Set<TablePart>() }
  ) {
    this.db = db
    this.notSwept = options.notSwept
    this.#options = { attempt: work => work(), sync: () => {}, assertKept: () => {}, notSwept: undefined, ...options }
    this.#parts = options.createTables ? parts : []
    this.#shared = shared
  }

  with (part: TablePart): SqliteDatabase {
    return new SqliteDatabase(this.db, this.#options, ['users', part], this.#shared)
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
  transaction<T> (work: () => T, options?: WriteOptions): Promise<T> {
    return this.write(() => this.db.transaction(work, { behavior: 'immediate' }), options)
  }

  async #run<T> (inTurn: (attempt: () => T) => Promise<T>, work: () => T, failure = storeFailure): Promise<T> {
    try {
      return await inTurn(() => this.#options.attempt(() => {
        try {
          return this.#onTables(work)
        } catch (error) {
          if (!this.#options.createTables || !isTableMissing(error)) throw error
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
