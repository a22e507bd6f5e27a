import { isUserId } from '../../base/uuid.js'
import { type SQL, type SQLWrapper, eq, sql, users } from '../../drizzle/postgres.js'

/**
 * Some drivers leave a named statement on the server: then it fails behind a pooler, and after a
 * migration.
 */
export const UNNAMED = ''

/** A value that a statement is given when it runs, by name. */
export const given = sql.placeholder

/**
 * The id of a user. Text that is not an id becomes null, which no row has: Postgres would refuse to
 * compare it.
 */
export const USER_ID = sql.param(given('userId'), { mapToDriverValue: (id: unknown) => isUserId(id) ? id : null })

export const isUser = eq(users.userId, USER_ID)

/** JSON is sent as text: drivers differ in what they make of a parameter of the type jsonb. */
export function json (name: string): SQL {
  return sql`${sql.param(given(name), { mapToDriverValue: JSON.stringify })}::text::jsonb`
}

/** JSON that may be absent. */
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

/**
 * Whether the user is blocked at a time in milliseconds. The first condition is that of the partial
 * index.
 */
export function isBlocked (now: number): SQL {
  return sql`(${BLOCK} is not null and coalesce((${BLOCK} ->> 'until')::bigint > ${now}, true))`
}
