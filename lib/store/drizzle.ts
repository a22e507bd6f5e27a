import { sql } from '../drizzle/sql.js'
import { OptionsError } from '../errors.js'

/**
 * How drizzle-orm writes {@link ODD_NAME} since 0.45.2; before, it did not escape quotation marks
 * in names.
 */
const ESCAPED = '""""'

/**
 * Refuses a Drizzle database of the application whose drizzle-orm is too old, by the SQL that it
 * makes of {@link ODD_NAME}. The version cannot be read from the database.
 */
export function assertEscapes (statement: string): void {
  if (statement.includes(ESCAPED)) return
  throw new OptionsError('target is a database of a drizzle-orm before 0.45.2, which does not escape names; ' +
    'install a later one: npm install drizzle-orm@^0.45.2')
}

/** A table whose name is a quotation mark. */
export const ODD_NAME = sql`${sql.identifier('"')}`
