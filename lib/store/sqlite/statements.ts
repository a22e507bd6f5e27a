import { sql } from '../../drizzle/sqlite.js'

/** A value that a statement is given when it runs, by name. */
export const given = sql.placeholder
