import { fillPlaceholders } from '../../drizzle/postgres.js'
import type { Columns, Decoder, Values } from '../sql-database.js'
import { UNNAMED } from './statements.js'

/**
 * Sends the text of a statement with its values. The rows have the columns as the text that the
 * server sends.
 */
export type Query = (text: string, values: readonly unknown[]) => Promise<Array<Array<string | null>>>

/** A statement that Drizzle builds. */
export interface BuiltStatement<Row> {
  toSQL (): { sql: string, params: unknown[] }
  prepare (name: string): { execute (values: Values): Promise<Row[]> }
}

/** A column that is read as the text that it is. */
export const TEXT: Decoder = { mapFromDriverValue: text => text }

export const NUMBER: Decoder = { mapFromDriverValue: Number }

/** A boolean of `isTrue`. */
export const BOOLEAN: Decoder = { mapFromDriverValue: text => text === '1' }

/**
 * Prepares a statement. Drizzle has built its text from the tables; what Drizzle does each time it
 * runs one takes a third of its CPU time, so that what many requests run is sent without.
 *
 * @param columns those that the statement returns; null for one that Drizzle runs
 * @param query null for a driver of the application, on which Drizzle runs all statements
 */
export function prepared<Row> (
  statement: BuiltStatement<Row>,
  columns: Columns | null,
  query: Query | null
): (values: Values) => Promise<Row[]> {
  if (query === null || columns === null) {
    const ofDrizzle = statement.prepare(UNNAMED)
    return values => ofDrizzle.execute(values)
  }
  const { sql, params } = statement.toSQL()
  const read = readerOf(columns)
  return async values => {
    const rows = await query(sql, fillPlaceholders(params, values))
    return rows.map(row => read(row.values()) as Row)
  }
}

/** Returns what reads a column, or several into one object. */
function readerOf (column: Decoder | Columns): (texts: Iterator<string | null>) => unknown {
  if (isDecoder(column)) {
    return texts => {
      const { value } = texts.next()
      return value === null ? null : column.mapFromDriverValue(value)
    }
  }
  const readers = Object.entries(column).map(([name, part]) => [name, readerOf(part)] as const)
  return texts => {
    const row: Values = {}
    for (const [name, read] of readers) row[name] = read(texts)
    return row
  }
}

function isDecoder (column: Decoder | Columns): column is Decoder {
  return typeof column.mapFromDriverValue === 'function'
}
