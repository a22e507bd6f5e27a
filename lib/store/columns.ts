import { type Column, sql } from '../drizzle/sql.js'

type Columns = Readonly<Record<string, Column>>

/** Returns values that a statement is given when it runs, by the names of columns. */
export const givenAll = <Some extends Columns>(columns: Some) => mapped(columns, (_, name) => sql.placeholder(name))

/** Returns what an update takes from the row that was to be inserted. */
export const excluded = <Some extends Columns>(columns: Some) =>
  mapped(columns, ({ name }) => sql`excluded.${sql.identifier(name)}`)

function mapped<Some extends Columns, Value> (columns: Some, valueOf: (column: Column, name: string) => Value) {
  const values = Object.entries(columns).map(([name, column]) => [name, valueOf(column, name)])
  return Object.fromEntries(values) as Record<keyof Some, Value>
}
