/**
 * The tables of the store by the capability that needs them: they are made when it is first used.
 */
export type TablePart = 'users' | 'sessions' | 'counts' | 'endings'

interface PartOfTables {
  /** The table by which it is seen whether the migrations of the application made the part. */
  readonly table: string
  /** The names of the migrations. */
  readonly migrations: readonly string[]
}

/** A part is made after those before it. */
export const TABLE_PARTS: Readonly<Record<TablePart, PartOfTables>> = {
  users: { table: 'svc_auth_users', migrations: ['0000_tables', '0001_user_indexes'] },
  sessions: { table: 'svc_auth_sessions', migrations: ['0002_sessions'] },
  counts: { table: 'svc_auth_counts', migrations: ['0003_counts'] },
  endings: { table: 'svc_auth_endings', migrations: ['0004_endings'] }
}

/** Says what to do when the application's own migrations have made some parts only. */
export function missingPart (table: string): string {
  return `the table ${table} is missing; the other tables are not made by this package, ` +
    'so add a migration for it with drizzle-kit'
}
