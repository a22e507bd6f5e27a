import type { Principal } from '../authentication.js'
import type { Claims } from '../claims.js'
import type { SessionData, SessionProofs } from '../schema/sessions.js'
import type { AccountStatus } from '../accounts/account.js'

/** The user of a session, as of the sign-in or the last refresh. */
export interface SessionUser extends Principal {
  /** The user's generation as it was read with the credential. */
  generation: number
  /** How and when the user authenticated. */
  proofs: SessionProofs
}

/** A session to write. Its id is known as a hash only: who reads the store cannot use it. */
export interface NewSession {
  /** The first 192 bits of the SHA-256 of the id, as base64url. */
  idHash: string
  /** Null for an anonymous session. */
  user: SessionUser | null
  /** The application's part; null for none. */
  data: SessionData | null
  /** The header `User-Agent`, at most 256 characters. */
  userAgent: string | null
  /** When the session was written, in milliseconds since the epoch, like all times here. */
  createdAt: number
  /** When it ends. */
  expiresAt: number
  /** Whether a new user is admitted in the same step: see `Accounts.admitUser`. */
  admits?: boolean
}

/** A session that was found. */
export interface FoundSession extends Omit<NewSession, 'idHash' | 'userAgent' | 'admits'> {
  /** The last request, to a tenth of the lifetime. */
  seenAt: number
  /** What a guard asks about the user, where it was read with the session. */
  status?: AccountStatus
  /**
   * Returns the claims that the user has now, where they were read with the session; null when the
   * link by which the user signed in is gone.
   */
  presentClaims?: () => Claims | null
}

/** Returns what is written for a session that was never written, when it ends. */
export function unwrittenRow (idHash: string, endedAt: number): NewSession {
  return { idHash, user: null, data: null, userAgent: null, createdAt: endedAt, expiresAt: endedAt }
}

/** What a save changes about a session; what is absent stays as it is. */
export interface SessionChange extends Partial<Pick<FoundSession, 'data' | 'seenAt' | 'expiresAt'>> {
  /** The plugin's part. */
  user?: SessionUser
}

/** What became of a session that was to be ended. */
export interface EndedSession {
  /** Null for an anonymous session. */
  userId: string | null
  /** Whether this call ended it; false when it had ended, or expired. */
  wasOpen: boolean
  /** The hash of the id of a session that replaced it, or that replaced the same one. */
  replacedBy: string | null
  /** Whether the sign-out is recorded for the other processes: see `Revocations`. */
  isRecorded?: boolean
}

/** A session in the list of a user's sessions. */
export interface ListedSession extends Omit<NewSession, 'user' | 'data' | 'admits'>, Pick<FoundSession, 'seenAt'> {
  /** How and when the user authenticated. */
  proofs: SessionProofs
}

/**
 * The optional member `sessions` of an {@link AuthStore}: keeps sessions beside the users, in
 * place of a session store. Each method is atomic, also between processes, and its changes are
 * durable when it resolves.
 *
 * An ended session is kept for an hour, so that a sign-in that runs in it meanwhile sees that the
 * user signed out. Expired sessions are removed in the background.
 */
export interface StoredSessions {
  /**
   * Returns a session, also with its user's status where both are read at once; `ended` when it has
   * ended or expired; `visitor` when it was never written, or is forgotten, and owns entries that
   * were started in the last ten minutes; null when it owns none.
   */
  find (idHash: string, now: number): Promise<FoundSession | 'ended' | 'visitor' | null>

  /**
   * Writes a session, and in the same step ends the one that it replaces, also when that one was
   * never written: a visitor's session is known by the entries that it owns. A session that was
   * replaced already is replaced again. An anonymous session with this id gets the data. A session
   * that ends no written one and admits no user may be lost when the machine crashes.
   *
   * @param replaced the hash of the id of that session; null for none
   * @returns false when that session was signed out; then nothing was written. `admitted` when the
   *   user was new and is admitted; a store that admits no users returns true.
   */
  insert (session: NewSession, replaced: string | null): Promise<boolean | 'admitted'>

  /** Changes a session; one that has ended is left alone. */
  update (idHash: string, change: SessionChange): Promise<void>

  /**
   * Ends a session. By a sign-out, the {@link OneTimeEntries} that it owns are removed, and no
   * sign-in that is under way replaces it, also when it was never written: a sign-in that finishes
   * in a visitor's session has taken its entries. A store that shares `Revocations` records the
   * sign-out of a user in the same step, unless it is recorded already.
   *
   * @returns null for a session that is not in the store
   */
  end (idHash: string, how: { now: number, isSignOut: boolean, isRecorded?: boolean }): Promise<EndedSession | null>

  /** Returns at most 100 open sessions of a user with a generation, the last used ones first. */
  ofUser (userId: string, generation: number, now: number): Promise<ListedSession[]>
}

/** The longest time that a request may run on after its session has ended. */
export const ENDED_MS = 60 * 60 * 1000

/** The number of sessions in a list. */
export const MAX_LISTED = 100
