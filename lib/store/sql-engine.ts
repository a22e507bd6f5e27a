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
