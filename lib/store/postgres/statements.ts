import { type SQL, type SQLWrapper, and, eq, sql } from 'drizzle-orm'
import { isUserId } from '../../base/uuid.js'
import { providerLinks, users } from '../../schema/postgres.js'
import { CONFIRMED } from '../accounts.js'

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
export const isNewUser = and(isUser, sql`${users.extras} -> 'is_new' is not null`)
export const isLink = and(eq(providerLinks.provider, given('provider')), eq(providerLinks.subject, given('subject')))

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

export const IS_VERIFIED = sql`${users.extras} @> '{"email_verified": true}'`

/** What vouches for the e-mail of a user, as a JSON array. */
export const VOUCHERS = sql`coalesce(${users.extras} -> 'email_verified_by', '[]')`

/** What vouches for an e-mail that only the user has confirmed. */
export const CONFIRMATION = sql.raw(`'["${CONFIRMED}"]'::jsonb`)
export const AND_CONFIRMATION = sql`${VOUCHERS} - ${sql.raw(`'${CONFIRMED}'::text`)} || ${CONFIRMATION}`
export const IS_CONFIRMED = sql`${VOUCHERS} @> ${CONFIRMATION}`

/**
 * The notes about a user whose e-mail these providers vouch for: the rule is that of
 * `vouchersAfter`.
 */
export function vouchedBy (vouchers: SQL): SQL {
  const changes = sql`'email_verified', ${vouchers} <> '[]', 'email_verified_by', ${vouchers}`
  return sql`${users.extras} || jsonb_build_object(${changes})`
}

/** Milliseconds since the epoch, by the one clock that all processes share. */
export const NOW = sql`(extract(epoch from clock_timestamp()) * 1000)::bigint`

const BLOCK = sql`${users.extras} -> 'blocked'`

/**
 * Whether the user is blocked at a time in milliseconds. The first condition is that of the partial
 * index.
 */
export function isBlocked (now: SQLWrapper | number): SQL {
  return sql`(${BLOCK} is not null and coalesce((${BLOCK} ->> 'until')::bigint > ${now}, true))`
}

export const GENERATION = sql`coalesce((${users.extras} ->> 'generation')::int, 0)`
const SIGNED_OUT_AT = sql`greatest((${users.extras} ->> 'signed_out_at')::bigint, ${given('now')}::bigint)`

/**
 * What ends all sessions of a user, to be merged into `extras`: the rule is that of
 * `endedSessions`. The statement is given the present time `now` in seconds.
 */
export const ENDED_SESSIONS = sql`jsonb_build_object(
  'generation', ${GENERATION} + 1, 'signed_out_at', ${SIGNED_OUT_AT}
)`
