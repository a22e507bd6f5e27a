import type { AuthorizationClaims } from '../claims.js'
import type { UserExtras } from '../schema/extras.js'
import { firstVouchers } from './accounts.js'
import type { Block, Credential, Link, NewUser, Standing, User, UserChange } from './store.js'

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
  const { generation, blocked, created_at: createdAt } = extras
  return {
    userId,
    email,
    emailVerified: extras.email_verified === true,
    name,
    claims,
    ...(extras.is_new && { isNew: true }),
    ...(generation !== undefined && { generation }),
    ...(blocked !== undefined && { blocked: blockOf(blocked) }),
    ...(createdAt !== undefined && { createdAt: new Date(createdAt) })
  }
}

function blockOf ({ at, until, reason }: NonNullable<UserExtras['blocked']>): Block {
  return {
    at: new Date(at),
    ...(until !== undefined && { until: new Date(until) }),
    ...(reason !== undefined && { reason })
  }
}

/** Returns what a guard asks about the user with these notes. */
export function standingIn ({ generation = 0, signed_out_at: signedOutAt = 0, ...notes }: UserExtras): Standing {
  return { generation, signedOutAt, emailVerified: notes.email_verified === true }
}

/** Returns what a change notes in the column `extras`; null removes a note. */
export function notesOfChange ({ name, blocked }: UserChange) {
  return {
    ...(name !== undefined && { name_set: true as const }),
    ...(blocked !== undefined && { blocked: blocked && notedBlock(blocked) })
  }
}

function notedBlock ({ at, until, reason }: Block): NonNullable<UserExtras['blocked']> {
  return {
    at: at.getTime(),
    ...(until !== undefined && { until: until.getTime() }),
    ...(reason !== undefined && { reason })
  }
}

/** Returns a local account from its joined rows, and null for an account that was not found. */
export function credentialOf (
  row: { user: UserRow, link: Link, passwordHash: string } | undefined
): Credential | null {
  return row === undefined ? null : { ...row, user: userOf(row.user) }
}

/** Returns what the column `extras` notes about a new user. */
export function extrasOf (user: NewUser): UserExtras {
  return {
    email_verified: user.emailVerified,
    email_verified_by: firstVouchers(user),
    created_at: Date.now(),
    ...(user.isNew && { is_new: true })
  }
}
