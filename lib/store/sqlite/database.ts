import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import { lazily } from '../../base/once.js'
import { sql } from '../../drizzle/sqlite.js'
import { AuthError } from '../../errors.js'
import { storeFailure } from './failures.js'
import { WriteLock, whileLocked } from './lock.js'
import type { TablePart } from '../table-parts.js'
import { createSqliteTables } from './tables.js'

/** A value that a statement is given when it runs, by name. */
export const given = sql.placeholder

interface SqliteDatabaseOptions {
  createTables: boolean
  /** Runs work on the connection, without waiting for a lock inside SQLite. */
  attempt?: <T>(work: () => T) => T
  /** Sets whether commits wait for the disk, where the connection is the store's own. */
  sync?: (isWanted: boolean) => void
}

/** An SQLite database with the tables of the store. */
export class SqliteDatabase {
  /** Builds statements. */
  readonly db: BetterSQLite3Database
  readonly #attempt: <T>(work: () => T) => T
  readonly #sync: (isWanted: boolean) => void
  readonly #createsTables: boolean
  readonly #writeLock: WriteLock
  /** The parts of the tables that are still to be made. */
  readonly #missing: TablePart[]
  /** Those of {@link make}. */
  readonly #made = new Set<TablePart>()

  constructor (
    db: BetterSQLite3Database,
    { createTables, attempt = work => work(), sync = () => {} }: SqliteDatabaseOptions,
    parts: TablePart[] = ['users'],
    writeLock = new WriteLock()
  ) {
    this.db = db
    this.#createsTables = createTables
    this.#writeLock = writeLock
    this.#missing = createTables ? parts : []
    this.#attempt = attempt
    this.#sync = sync
  }

  /** Returns the database with a further part of the tables. */
  with (part: TablePart): SqliteDatabase {
    const options = { createTables: this.#createsTables, attempt: this.#attempt, sync: this.#sync }
    return new SqliteDatabase(this.db, options, ['users', part], this.#writeLock)
  }

  /**
   * Builds a statement on its first use, when its tables exist, and keeps it: building takes longer
   * than running.
   *
   * @returns a function that returns the statement
   */
  prepared<T> (build: (db: BetterSQLite3Database) => T): () => T {
    return lazily(() => build(this.db))
  }

  /**
   * Runs statements that only read.
   *
   * @throws AuthError `unavailable` with the failure as its cause
   */
  read<T> (work: () => T): Promise<T> {
    return this.#run(attempt => whileLocked(attempt), work)
  }

  /**
   * Runs one statement that writes, when it is its turn.
   *
   * @param failure turns an error into the one for the caller
   * @param isSynced whether the commit waits for the disk: see {@link writeUnsynced}
   * @throws AuthError `unavailable` with the failure as its cause, and AuthErrors of the work as
   *   they are
   */
  write<T> (work: () => T, failure?: (error: unknown) => AuthError, isSynced = true): Promise<T> {
    return this.#run(attempt => this.#writeLock.run(attempt), () => {
      this.#sync(isSynced)
      return work()
    }, failure)
  }

  /**
   * Runs several statements like {@link write}, in a transaction that holds the write lock before
   * it reads.
   */
  transaction<T> (work: () => T, failure?: (error: unknown) => AuthError): Promise<T> {
    return this.write(() => this.db.transaction(work, { behavior: 'immediate' }), failure)
  }

  /**
   * Makes a part of the tables inside a transaction, if it is missing. As the transaction may be
   * rolled back, it counts as made when it is there before.
   */
  make (part: TablePart): void {
    if (!this.#createsTables || this.#made.has(part)) return
    if (!createSqliteTables(this.db, part)) this.#made.add(part)
  }

  /**
   * Runs work like {@link write}, without waiting for the disk: a crash of the machine may undo it,
   * one of the process not. What is committed after it reaches the disk after it: no crash undoes
   * this alone.
   */
  writeUnsynced<T> (work: () => T, failure?: (error: unknown) => AuthError): Promise<T> {
    return this.write(work, failure, false)
  }

  async #run<T> (
    inTurn: (attempt: () => T) => Promise<T>,
    work: () => T,
    failure = storeFailure
  ): Promise<T> {
    try {
      return await inTurn(() => this.#attempt(() => {
        if (this.#missing.length > 0) this.#createTables()
        return work()
      }))
    } catch (error) {
      throw error instanceof AuthError ? error : failure(error)
    }
  }

  #createTables (): void {
    for (const part of [...this.#missing]) {
      createSqliteTables(this.db, part)
      this.#missing.shift()
    }
  }
}
