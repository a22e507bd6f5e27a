/**
 * The tables of the store by what needs them: they are made when it is first used, that of factors
 * when the first one is written.
 */
export type TablePart = 'users' | 'sessions' | 'factors'

interface PartOfTables {
  /** The table by which it is seen whether the migrations of the application made the part. */
  readonly table: string
  /** The names of the migrations. */
  readonly migrations: readonly string[]
}

/** A part is made after those before it. */
export const TABLE_PARTS: Readonly<Record<TablePart, PartOfTables>> = {
  users: { table: 'svc_auth_users', migrations: ['0000_tables', '0001_users'] },
  // With what may be used once, and on Postgres attempts and revocations.
  sessions: { table: 'svc_auth_sessions', migrations: ['0002_sessions'] },
  factors: { table: 'svc_auth_factors', migrations: ['0003_factors'] }
}

/** The parts in the order in which they are made. */
export const PARTS = ['users', 'sessions', 'factors'] as const satisfies TablePart[]

/** Returns the tables that migrations make. */
export function tablesOf (migrations: ReadonlyArray<{ sql: readonly string[] }>): string[] {
  const statements = migrations.flatMap(({ sql }) => sql)
  return statements.flatMap(statement => /^CREATE (?:UNLOGGED )?TABLE ["`](\w+)/.exec(statement)?.[1] ?? [])
}

/** Returns a statement that leaves what it would make as it is where that exists. */
export function ifMissing (statement: string): string {
  return statement.replace(/^CREATE (?:UNIQUE |UNLOGGED )?(?:TABLE|INDEX)/, '$& IF NOT EXISTS')
}

/** Says for the log that tables were dropped while the application runs. */
export const DROPPED = 'A table of the store was missing; those that the store had made were made again, empty'

/** Says what is wrong when indexes are there without their table. */
export function renamed (tables: readonly string[]): string {
  return `of ${tables.join(', ')} a table is missing, but not its indexes: give it back the name that it had`
}

/** Says what to do when the application's own migrations have made some parts only. */
export function missingPart (table: string): string {
  return `the table ${table} is missing; the other tables are not made by this package, ` +
    'so add a migration for it with drizzle-kit'
}
