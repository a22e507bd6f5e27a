/**
 * The tables of the store by what needs them: they are made when it is first used.
 */
export type TablePart = 'users' | 'sessions'

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
  sessions: { table: 'svc_auth_sessions', migrations: ['0002_sessions'] }
}

/** Says what to do when the application's own migrations have made some parts only. */
export function missingPart (table: string): string {
  return `the table ${table} is missing; the other tables are not made by this package, ` +
    'so add a migration for it with drizzle-kit'
}
