/**
 * An existing engine: a Drizzle database on better-sqlite3 or on any Postgres driver, a better-sqlite3 connection, or a client of the
 * package postgres. It stays open when the store is closed.
 * The types say only what tells an engine from something else, so that nobody needs the types of a driver that he does not use.
 */
export type SqlEngine = SqliteConnection | DrizzleSqlite | DrizzlePostgres | PostgresClient

/** A connection of better-sqlite3. */
export interface SqliteConnection {
  prepare (source: string): unknown
  pragma (source: string): unknown
}

/** A Drizzle database on better-sqlite3. */
export interface DrizzleSqlite {
  readonly $client: SqliteConnection
  transaction (...args: never): unknown
}

/** A Drizzle database on a Postgres driver. */
export interface DrizzlePostgres {
  execute (...args: never): unknown
  refreshMaterializedView (...args: never): unknown
}

/** A client of the package postgres. */
export interface PostgresClient {
  unsafe (...args: never): unknown
  reserve (...args: never): unknown
}
