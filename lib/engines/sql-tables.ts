import { FEATURE_PARTS, type FeaturePart } from '../session/feature-tables.js'

/** The tables of the store by what needs them: they are made when it is first used. */
export type TablePart = typeof PARTS[number]

/** The parts in the order in which they are made: one may refer to those before it. */
export const PARTS = ['users', 'sessions', ...FEATURE_PARTS] as const

export interface Migration {
  /** By which it stands in the journal `svc_auth_migrations`. */
  readonly name: string
  readonly sql: readonly string[]
}

export type Migrations = Readonly<Record<TablePart, readonly Migration[]>>

/** How the tables of a database differ from those of this version. */
export interface TableState {
  /** The migrations that were not applied. */
  readonly missing: readonly string[]
  /** Those of them that are not of an unused feature. */
  readonly needed: readonly string[]
  /** The features that have no tables yet. */
  readonly unused: readonly FeaturePart[]
  /** The migrations of a newer version. */
  readonly unknown: readonly string[]
}

/** @param applied null where the application's own migrations make the tables */
export function tableState (migrations: Migrations, applied: readonly string[] | null): TableState {
  const namesOf = (part: TablePart): string[] => migrations[part].map(({ name }) => name)
  const known = PARTS.flatMap(namesOf)
  const done = applied ?? known
  const missing = known.filter(name => !done.includes(name))
  const unused = FEATURE_PARTS.filter(part => namesOf(part).every(name => missing.includes(name)))
  const spared = unused.flatMap(namesOf)
  return {
    missing,
    needed: missing.filter(name => !spared.includes(name)),
    unused,
    unknown: done.filter(name => !known.includes(name))
  }
}

/** The table by which it is seen whether the application's own migrations made a part. */
export function mainTable (part: TablePart): string {
  return `svc_auth_${part}`
}

export function tablesOf (migrations: readonly Migration[]): string[] {
  const statements = migrations.flatMap(({ sql }) => sql)
  return statements.flatMap(statement => /^CREATE (?:UNLOGGED )?TABLE ["`](\w+)/.exec(statement)?.[1] ?? [])
}

export function ifMissing (statement: string): string {
  return statement.replace(/^CREATE (?:UNIQUE |UNLOGGED )?(?:TABLE|INDEX)/, '$& IF NOT EXISTS')
}

export const DROPPED = 'A table of the store was missing; those that the store had made were made again, empty'

export function renamed (tables: readonly string[]): string {
  return `of ${tables.join(', ')} a table is missing, but not its indexes: give it back the name that it had`
}

export function missingPart (table: string): string {
  return `the table ${table} is missing; the other tables are not made by this package, ` +
    'so add a migration for it with drizzle-kit'
}
