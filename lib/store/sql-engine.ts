/**
 * An existing engine: a Drizzle database on better-sqlite3 or on any Postgres driver, a better-sqlite3 connection, or a client of the
 * package postgres. It stays open when the store is closed.
 * The types say only what tells an engine from something else, so that nobody needs the types of a driver that he does not use.
 */
export type SqlEngine = SqliteConnection | DrizzleSqlite | DrizzlePostgres | PostgresClient

/** A connection of better-sqlite3. */
export interface SqliteConnection {
  /** Compiles a statement. */
  prepare (source: string): unknown
  /** Sets or tells a setting of the database. */
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
  /** There on Postgres only. */
  refreshMaterializedView (...args: never): unknown
}

/** A client of the package postgres. */
export interface PostgresClient {
  /** Runs a statement that is given as text. */
  unsafe (...args: never): unknown
  /** Takes one connection out of the pool. */
  reserve (...args: never): unknown
}
