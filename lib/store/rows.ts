import type { AuthorizationClaims } from '../claims.js'
import type { UserExtras } from '../schema/extras.js'
import type { Credential, Link, NewUser, User } from './store.js'

/** A row of `svc_auth_users`, which is the same on every database. */
export interface UserRow {
  userId: string
  email: string | null
  name: string | null
  claims: AuthorizationClaims
  extras: UserExtras
}

/** Returns the user that a row holds, and null for a row that was not found. */
export function userOf (row: UserRow): User
export function userOf (row: UserRow | undefined): User | null
export function userOf (row: UserRow | undefined): User | null {
  if (row === undefined) return null
  const { userId, email, name, claims, extras } = row
  const emailVerified = extras.email_verified === true
  return { userId, email, emailVerified, name, claims, ...(extras.is_new && { isNew: true }) }
}

/** Returns a local account from its joined rows, and null for an account that was not found. */
export function credentialOf (
  row: { user: UserRow, link: Link, passwordHash: string } | undefined
): Credential | null {
  return row === undefined ? null : { ...row, user: userOf(row.user) }
}

/** Returns what the column `extras` notes about a new user. */
export function extrasOf ({ emailVerified, isNew, link }: NewUser): UserExtras {
  return {
    email_verified: emailVerified,
    email_verified_by: emailVerified ? [link.provider] : [],
    ...(isNew && { is_new: true })
  }
}
