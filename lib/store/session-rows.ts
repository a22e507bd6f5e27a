import type { UserExtras } from '../schema/extras.js'
import type { sessions } from '../schema/sqlite.js'
import { statusOf } from '../accounts/account.js'
import { type Claims, mergeClaims } from '../claims.js'
import type { FoundSession, NewSession, SessionUser } from './sessions.js'

/** What the columns of `svc_auth_sessions` hold; the same on every database. */
type Columns = typeof sessions.$inferSelect

type UserColumns = Pick<Columns, 'userId' | 'provider' | 'claims' | 'generation' | 'proofs'>

type ReadColumn = keyof UserColumns | 'data' | 'createdAt' | 'seenAt' | 'expiresAt' | 'endedAt'

/** A row of `svc_auth_sessions`, joined with what is asked about the user. */
interface SessionRow extends Pick<Columns, ReadColumn> {
  /** The user's e-mail. */
  email: string | null
  /** The notes about the user; null for an anonymous session. */
  extras: UserExtras | null
  /** The claims of the user as JSON, which few requests read. */
  userClaims: string | null
  /** Those of the link by which the user signed in; null when it is gone. */
  linkClaims: string | null
}

type Joined<Row> = { [Name in keyof Row]: Row[Name] | null }

const ANONYMOUS: UserColumns = { userId: null, provider: null, claims: null, generation: 0, proofs: null }

/** Returns the columns that are read with a session, of the table of one database. */
export function readColumns<Table extends Record<ReadColumn, unknown>> (table: Table): Pick<Table, ReadColumn> {
  const { userId, provider, claims, generation, proofs, data, createdAt, seenAt, expiresAt, endedAt } = table
  return { userId, provider, claims, generation, proofs, data, createdAt, seenAt, expiresAt, endedAt }
}

/** Returns the columns of a session to write. */
export function columnsOf ({ user, admits: _, ...session }: NewSession) {
  return { ...session, ...(user ?? ANONYMOUS), seenAt: session.createdAt, signedOut: false }
}

/**
 * Returns the session that a row holds; null for a row that was not found, or whose columns are
 * null because it was joined.
 */
export function foundSession (row: Joined<SessionRow> | undefined, now: number): FoundSession | 'ended' | null {
  if (row === undefined) return null
  const { data, generation, createdAt, seenAt, expiresAt, endedAt, email, extras } = row
  if (generation === null || createdAt === null || seenAt === null || expiresAt === null) return null
  if (endedAt !== null || expiresAt <= now) return 'ended'
  const session = { user: userIn({ ...row, generation }), data, createdAt, seenAt, expiresAt }
  if (extras === null) return session
  return { ...session, status: statusOf({ email, extras }), presentClaims: () => presentClaims(row) }
}

function presentClaims ({ userClaims, linkClaims }: Pick<SessionRow, 'userClaims' | 'linkClaims'>): Claims | null {
  return userClaims === null || linkClaims === null ? null : mergeClaims(JSON.parse(linkClaims), JSON.parse(userClaims))
}

function userIn ({ userId, provider, claims, generation, proofs }: UserColumns): SessionUser | null {
  if (userId === null || provider === null || claims === null || proofs === null) return null
  return { userId, provider, claims, generation, proofs }
}
