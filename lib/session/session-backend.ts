import type { Session } from 'fastify'
import type { OneTimeEntries } from '../store/one-time-entries.js'
import type { SessionRecord } from './record.js'

/** What happens in the step that writes a new session. */
export interface SessionReplacement {
  /** The id of the session that it replaces, which ends. */
  replaced?: string
  /** Whether the user is new: they are admitted with the session where one store keeps both. */
  admits?: boolean
}

export interface SessionToEnd {
  id: string
  /** Null when no user is signed in to it. */
  userId: string | null
}

export interface SignedOut {
  userId: string
  /** Whether the sign-out is recorded for the other processes: see `Revocations`. */
  isRecorded: boolean
}

/**
 * The plugin's part of a session that is saved: a new one, the one in the store, or none, for a
 * session of pending entries that holds something of the application now.
 */
export type SavedPart = SessionRecord | 'stored' | 'none'

/** The entries of sessions, as far as sessions use them. */
export type OwnedEntries = Omit<OneTimeEntries, 'count'>

/**
 * Keeps sessions, and the entries that they own, for one request. Every method rejects with
 * AuthError `unavailable` when sessions cannot be reached.
 */
export interface SessionBackend {
  /** What sessions own; the owner is a digest of the id of the session. */
  readonly entries: OwnedEntries

  /** Returns a session; null when it has ended or expired. */
  read (id: string): Promise<Session | null>

  /**
   * Writes a new session, and ends the one that it replaces.
   *
   * @returns whether the user was new and is admitted; never where users are kept elsewhere
   * @throws AuthError `invalid_state` when the user of that one signed out meanwhile; the caller
   *   removes the new one
   */
  create (id: string, session: Session, replacement?: SessionReplacement): Promise<boolean>

  /**
   * Saves a session that is in the store, unless it has ended meanwhile.
   *
   * @param isUnchanged compares it with what was read: whether nothing but its end may differ
   */
  save (id: string, session: Session, part: SavedPart, isUnchanged: () => boolean): Promise<void>

  /** Removes a session whose id no browser has. */
  remove (id: string): Promise<void>

  /** Returns the session that has replaced one, if it is open; null also for one that is open. */
  replacementOf (id: string): Promise<Session | null>

  /** Ends a session: no request under way, in whichever process, saves it again. */
  end (id: string): Promise<void>

  /**
   * Ends a session because its user signs out, and the sessions that have replaced it meanwhile.
   *
   * @param isRecorded whether the sign-out is recorded already
   * @returns null when this call signed out no user, also because another call did
   */
  signOut (session: SessionToEnd, isRecorded: boolean): Promise<SignedOut | null>

  /**
   * Ends the session of a sign-in that has replaced one before the sign-out could read it, or that
   * replaces one which was never written. A sign-out that came after the sign-in ends nothing:
   * knowing an old cookie gives no power over the session that replaced it.
   *
   * @param id the id of the replaced session
   * @param arrivedAt when the request to sign out came, by {@link preciseTime}
   * @returns null when this call signed out no user
   */
  signOutReplaced (id: string, arrivedAt: number): Promise<SignedOut | null>
}

/** The number of sessions that replace each other, for one request that is sent again. */
export const MAX_HOPS = 8

/** The present time, in milliseconds since the epoch, with fractions. */
export function preciseTime (): number {
  return performance.timeOrigin + performance.now()
}
