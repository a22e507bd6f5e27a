import type { SQL } from 'drizzle-orm'
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Sweeper } from '../base/concurrency.js'
import type * as tables from '../schema/sqlite.js'

/** The values that a statement is given when it runs, by name. */
export type Values = Record<string, unknown>

/** What reads the columns of a row, in their order: a column of a table, or what reads its text. */
export interface Columns {
  readonly [name: string]: Decoder | Columns
}

export interface Decoder {
  mapFromDriverValue (text: string): unknown
}

/**
 * What is sent together on Postgres: statements that wait for no lock, those of sign-ins by
 * password, which wait for each other's counts alone, and those of one-time entries, which wait for
 * the same entry.
 */
export type Batch = 'reads' | 'sign-ins' | 'entries'

/** A table whose rows have an end, in milliseconds since the epoch. */
export interface Swept {
  readonly table: SQLiteTable
  readonly hash: SQLiteColumn
  readonly end: SQL
}

/**
 * What statements need that SQLite and Postgres run alike. Drizzle builds them for the database
 * whose tables they name. The types of SQLite stand for both: rows have the same.
 */
export interface SqlDatabase {
  readonly tables: typeof tables

  /** A JSON value that a statement is given when it runs. */
  json (name: string): SQL

  /**
   * Prepares a statement that reads, on its first use, and keeps it: building takes longer than
   * running.
   *
   * @param columns those that Postgres returns, for a statement that many requests run
   */
  query<Row> (
    build: (db: BetterSQLite3Database) => { prepare: () => { all: (values: Values) => Row[] } },
    columns?: Columns,
    how?: Batch
  ): (values: Values) => Promise<Row[]>

  /** Prepares a statement that writes one row and returns it, on its first use, and keeps it. */
  change<Row>(
    build: (db: BetterSQLite3Database) => { prepare: () => { all: (values: Values) => Row[] } }
  ): (values: Values) => Promise<Row[]>

  /** Runs a statement that writes. */
  execute (build: (db: BetterSQLite3Database) => { run: () => unknown }): Promise<void>

  /** Returns what removes the rows that are over, a page at a time, when it is started. */
  sweeper (swept: Swept): Pick<Sweeper, 'start'>

  /** Is told, for the log, why rows that are over were not removed. */
  readonly notSwept: ((error: unknown) => void) | undefined
}

/** Makes the statements of a feature once for each database that its tables are in. */
export function onceForEach<T> (make: (database: SqlDatabase) => T): (database: object) => T {
  const made = new WeakMap<object, T>()
  return database => {
    const known = made.get(database) ?? make(database as SqlDatabase)
    made.set(database, known)
    return known
  }
}
