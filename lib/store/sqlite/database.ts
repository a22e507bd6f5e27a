import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import { AuthError } from '../../errors.js'
import { storeFailure } from './failures.js'
import { WriteLock, whileLocked } from './lock.js'
import { createSqliteTables } from './tables.js'

interface SqliteDatabaseOptions {
  createTables: boolean
  /** Runs work on the connection, without waiting for a lock inside SQLite. */
  attempt?: <T>(work: () => T) => T
}

/** An SQLite database with the tables of the store. */
export class SqliteDatabase {
  /** Builds statements. */
  readonly db: BetterSQLite3Database
  readonly #attempt: <T>(work: () => T) => T
  readonly #writeLock = new WriteLock()
  #needsTables: boolean

  constructor (db: BetterSQLite3Database, { createTables, attempt = work => work() }: SqliteDatabaseOptions) {
    this.db = db
    this.#needsTables = createTables
    this.#attempt = attempt
  }

  /**
   * Builds a statement on its first use, when its tables exist, and keeps it: building takes longer
   * than running.
   *
   * @returns a function that returns the statement
   */
  prepared<T> (build: (db: BetterSQLite3Database) => T): () => T {
    let statement: T | undefined
    return () => {
      statement ??= build(this.db)
      return statement
    }
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
   * @throws AuthError `unavailable` with the failure as its cause, and AuthErrors of the work as
   *   they are
   */
  write<T> (work: () => T, failure?: (error: unknown) => AuthError): Promise<T> {
    return this.#run(attempt => this.#writeLock.run(attempt), work, failure)
  }

  /**
   * Runs several statements like {@link write}, in a transaction that holds the write lock before
   * it reads.
   */
  transaction<T> (work: () => T, failure?: (error: unknown) => AuthError): Promise<T> {
    return this.write(() => this.db.transaction(work, { behavior: 'immediate' }), failure)
  }

  async #run<T> (
    inTurn: (attempt: () => T) => Promise<T>,
    work: () => T,
    failure = storeFailure
  ): Promise<T> {
    try {
      return await inTurn(() => this.#attempt(() => {
        this.#createTables()
        return work()
      }))
    } catch (error) {
      throw error instanceof AuthError ? error : failure(error)
    }
  }

  #createTables (): void {
    if (this.#needsTables) createSqliteTables(this.db)
    this.#needsTables = false
  }
}
