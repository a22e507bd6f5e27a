import type { EntryContent } from '../schema/sessions.js'

export type { EntryContent } from '../schema/sessions.js'

/** What may be used once: a sign-in that was started at a provider, a second step, a challenge. */
export interface OneTimeEntry {
  /** The first 192 bits of the SHA-256 of what the client presents, as base64url. */
  hash: string
  /** What the entry is for; an entry of another kind is not found. */
  kind: string
  /** Who may use it: the hash of the id of the session that started it. */
  owner: string
  /** What is continued with: plain JSON data. */
  content: EntryContent
  /** When it was started, in milliseconds since the epoch. */
  startedAt: number
}

/** What an entry is found by. */
export type EntryKey = Pick<OneTimeEntry, 'hash' | 'kind' | 'owner'>

/**
 * The optional member `entries` of an {@link AuthStore}, beside `sessions`. Each method is atomic,
 * also between processes. Entries are removed in the background: after ten minutes; of the kinds
 * `used-registration` and `mail-attempts`, after 25 hours.
 */
export interface OneTimeEntries {
  /**
   * Writes an entry; it replaces one with the same hash, and the attempts at that one. Of more than
   * `most` of its owner and kind, the oldest are removed. An entry of the kinds
   * `used-registration` and `mail-attempts` is durable when this resolves; others may be lost when
   * the machine crashes.
   */
  put (entry: OneTimeEntry, most: number): Promise<void>

  /**
   * Removes an entry and returns its content: of several calls with one hash, one gets it.
   *
   * @param owners the sessions that may have started it
   */
  take (hash: string, kind: string, owners: readonly string[]): Promise<EntryContent | null>

  /**
   * Returns when an entry was taken, in milliseconds since the epoch; null for one that was not, or
   * more than ten minutes ago.
   */
  takenAt (entry: EntryKey): Promise<number | null>

  /** Returns the content of an entry, which stays. */
  find (entry: EntryKey): Promise<EntryContent | null>

  /**
   * Counts an attempt at an entry and returns its content. The entry stays.
   *
   * @returns null for an unknown entry, and once `most` attempts were counted
   */
  attempt (entry: EntryKey, most: number): Promise<EntryContent | null>

  /** Returns how many entries of a kind an owner has started since a time. */
  count (owner: string, kind: string, since: number): Promise<number>
}

/** The lifetime of an entry whose kind has no longer one. */
export const PENDING_MS = 10 * 60 * 1000

export const DAY_MS = 24 * 60 * 60 * 1000

/** The lifetime of a record of a use: that of the link, and more than clocks may differ. */
export const RECORD_MS = DAY_MS + 60 * 60 * 1000

/** The kind of a sign-in that was started at a provider. */
export const SIGN_IN = 'sign-in'
/** The kind of a sign-in that waits for the second factor. */
export const SECOND_STEP = 'second-step'
/** The kind of a secret of TOTP that waits for the first code. */
export const ENROLMENT = 'enrolment'
/** The kind of a mailed code, for setting up the user's first factor. */
export const MAIL_CODE = 'mail-code'
export const CHALLENGE = 'passkey-challenge'
/** The kind of the record that a link to register was used. */
export const USED_REGISTRATION = 'used-registration'
/** The kind of a sign-in by mail, for the session that asked for it. */
export const MAIL_SIGN_IN = 'mail-sign-in'
/** The kind of the note that such a mail was used, for the client that asked for it. */
export const USED_MAIL = 'used-mail'
/** The kind of the note that a request has come in a session. */
export const SEEN_SESSION = 'seen-session'
/** The kind of the note that a request with a secret has succeeded, which started no session. */
export const SENT_REQUEST = 'sent-request'
/** The kind of a sign-in by a link that an operator has made, for any browser. */
export const OPERATOR_LINK = 'operator-link'
/** The kind of the record of an attempt at the code of such a mail, for the address. */
export const MAIL_ATTEMPTS = 'mail-attempts'

/** The kinds that record a use: a crash that lost one would allow a second use within the day. */
export const RECORDS_OF_USE: readonly string[] = [USED_REGISTRATION, MAIL_ATTEMPTS]

/** The kind of an entry that was taken, where its row is kept. */
export const TAKEN = ' taken'

export function lifetimeOf (kind: string): number {
  return RECORDS_OF_USE.includes(kind) ? RECORD_MS : PENDING_MS
}

/** The number of sign-ins that may be pending in a session. */
export const MAX_PENDING = 8
