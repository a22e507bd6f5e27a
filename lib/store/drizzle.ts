import { type Column, sql } from '../drizzle/sql.js'
import { OptionsError } from '../errors.js'

/**
 * Refuses a Drizzle database of the application whose drizzle-orm does not escape quotation marks
 * in names, by the SQL that it makes of {@link ODD_NAME}: a database does not tell its version.
 */
export function assertEscapes (statement: string): void {
  if (statement.includes('""""')) return
  throw new OptionsError('target is a database of a drizzle-orm before 0.45.2, which does not escape names; ' +
    'install a later one: npm install drizzle-orm@^0.45.2')
}

export const ODD_NAME = sql`${sql.identifier('"')}`

/** A value that a statement is given when it runs, by name. */
export const given = sql.placeholder

type Columns = Readonly<Record<string, Column>>

/** Returns values that a statement is given when it runs, by the names of columns. */
export const givenAll = <Some extends Columns>(columns: Some) => mapped(columns, (_, name) => given(name))

/** Returns what an update takes from the row that was to be inserted. */
export const excluded = <Some extends Columns>(columns: Some) =>
  mapped(columns, ({ name }) => sql`excluded.${sql.identifier(name)}`)

function mapped<Some extends Columns, Value> (columns: Some, valueOf: (column: Column, name: string) => Value) {
  const values = Object.entries(columns).map(([name, column]) => [name, valueOf(column, name)])
  return Object.fromEntries(values) as Record<keyof Some, Value>
}
