import { isUserId } from '../../base/uuid.js'
import { type SQL, type SQLWrapper, eq, fillPlaceholders, sql, users } from '../../drizzle/postgres.js'
import { given } from '../drizzle.js'
import type { Columns, Decoder, Values } from '../sql-database.js'

/** A named statement stays on the server: it fails behind a pooler, and after a migration. */
export const UNNAMED = ''

/** Text that is not an id becomes null, which no row has: Postgres would refuse to compare it. */
export const USER_ID = sql.param(given('userId'), { mapToDriverValue: (id: unknown) => isUserId(id) ? id : null })

export const isUser = eq(users.userId, USER_ID)

/** JSON is sent as text: drivers differ in what they make of a parameter of the type jsonb. */
export function json (name: string): SQL {
  return sql`${sql.param(given(name), { mapToDriverValue: JSON.stringify })}::text::jsonb`
}

export function jsonOrNull (name: string): SQL {
  return sql`nullif(${json(name)}, 'null')`
}

/** A boolean that is read as one: drivers differ in what they make of the type. */
export function isTrue (value: SQLWrapper): SQL<boolean> {
  return sql`(${value})::int`.mapWith(value => Number(value) === 1)
}

/** Orders by code points: the databases' own collations differ. */
export function byCodePoints (column: SQLWrapper): SQL {
  return sql`${column} collate "C"`
}

/** Milliseconds since the epoch, by the one clock that all processes share. */
export const NOW = sql`(extract(epoch from clock_timestamp()) * 1000)::bigint`

/** The start of the statement by that clock: one time for all its parts. */
export const STATEMENT_START = sql`(extract(epoch from statement_timestamp()) * 1000)::bigint`

const BLOCK = sql`${users.extras} -> 'blocked'`

/** The first condition is that of the partial index. */
export function isBlocked (now: number): SQL {
  return sql`(${BLOCK} is not null and coalesce((${BLOCK} ->> 'until')::bigint > ${now}, true))`
}

/** Sends a statement with its values. The rows have the columns as the server's text. */
export type Query = (text: string, values: readonly unknown[]) => Promise<Array<Array<string | null>>>

export interface BuiltStatement<Row> {
  toSQL (): { sql: string, params: unknown[] }
  prepare (name: string): { execute (values: Values): Promise<Row[]> }
}

export const TEXT: Decoder = { mapFromDriverValue: text => text }

export const NUMBER: Decoder = { mapFromDriverValue: Number }

export const BOOLEAN: Decoder = { mapFromDriverValue: text => text === '1' }

/**
 * Prepares a statement. What Drizzle does each time it runs one takes a third of the CPU time: what
 * many requests run is sent without.
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
