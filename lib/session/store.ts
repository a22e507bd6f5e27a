import type { AccountStatus } from '../accounts/account.js'
import type { AuthStore } from '../accounts/auth-store.js'
import type { Principal } from '../authentication.js'
import { DAY_MS } from '../base/values.js'
import type { Claims } from '../claims.js'
import { OptionsError } from '../errors.js'
import { hasMethods } from '../option-checks.js'
import type { EntryContent, SessionData, SessionProofs } from '../schema/sessions.js'
import type { FeatureTables } from './feature-tables.js'

/** An attempt, as a limit counts it. */
export interface Attempt {
  /** What it is counted by, such as the name of the limit with an address. */
  key: string
  /** How many attempts the limit allows. */
  max: number
  /** Milliseconds from the first attempt, after which the count starts again. */
  timeWindow: number
}

/** A limit that an attempt is beyond. */
export interface ExceededLimit {
  /** The key of the {@link Attempt}. */
  key: string
  /** Milliseconds until the count starts again. */
  wait: number
}

/** Counts attempts for all processes that have the same database. */
export interface AttemptCounter {
  /**
   * Adds one to the counts of several limits in their order, up to the first one that the attempt
   * is beyond. Each count is exact however many calls there are at once, and all times are of one
   * clock: processes whose clocks differ must not restart each other's counts.
   *
   * @returns null when the attempt is within all limits
   */
  count (attempts: readonly Attempt[]): Promise<ExceededLimit | null>
}

/** Listens to the revocations of other processes: see {@link Revocations.follow}. */
export interface RevocationListener {
  /** Called once for each revocation. */
  revoked (userId: string): void
  /** The logger of the application. */
  log: {
    /** Notes how the store hears of revocations. */
    info (context: object, message: string): void
    /** Notes a failure that the store recovers from by itself. */
    warn (context: object, message: string): void
  }
}

/**
 * Tells all processes that have the same database when sessions end. A revocation is recorded in
 * the step that ends the sessions: a change that deletes an account or raises its `generation`, and
 * a sign-out from a session that the store keeps.
 */
export interface Revocations {
  /**
   * Records that a user signed out from a session that another store keeps. The caller has
   * announced it in this process.
   */
  record (userId: string): Promise<void>

  /**
   * Calls a listener for each revocation that another store on the database records, from a few
   * seconds ago until this store is closed: for each once, also for those that were recorded while
   * the database could not be reached. A revocation of this store is told only when its method
   * failed and the sessions have ended all the same.
   */
  follow (listener: RevocationListener): Promise<void>
}

export type { Acting, EntryContent, ProviderSession } from '../schema/sessions.js'

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
 * `used-registration`, `mail-attempts` and `ended-at-provider`, after 25 hours.
 */
export interface OneTimeEntries {
  /**
   * Writes an entry; it replaces one with the same hash, and the attempts at that one. Of more than
   * `most` of its owner and kind, the oldest are removed. An entry of the kinds that live for 25
   * hours is durable when this resolves; others may be lost when the machine crashes.
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

/** The lifetime of a record of a use: that of the link, and more than clocks may differ. */
export const RECORD_MS = DAY_MS + 60 * 60 * 1000

/** The kind of a sign-in that was started at a provider. */
export const SIGN_IN = 'sign-in'
/** The kind of a sign-in that waits for the second factor. */
export const SECOND_STEP = 'second-step'
/** The kind of a secret of TOTP that waits for the first code. */
export const ENROLMENT = 'enrolment'
export const CHALLENGE = 'passkey-challenge'
/** The kind of the record that a link to register was used. */
export const USED_REGISTRATION = 'used-registration'
/** The kind of a sign-in by a link that an operator has made, for any browser. */
export const OPERATOR_LINK = 'operator-link'
/** The kind of the record of an attempt at the code of a mail to sign in, for the address. */
export const MAIL_ATTEMPTS = 'mail-attempts'

/** The kind of the record that a session, or all of a user, have ended at a provider. */
export const ENDED_AT_PROVIDER = 'ended-at-provider'
/** The kind of the record that a logout token of a provider was used. */
export const LOGOUT_TOKEN = 'logout-token'

/** The kinds that record a use: a crash that lost one would allow a second use within the day. */
export const RECORDS_OF_USE: readonly string[] = [USED_REGISTRATION, MAIL_ATTEMPTS, ENDED_AT_PROVIDER]

/** The kind of an entry that was taken, where its row is kept. */
export const TAKEN = ' taken'

/** The number of sign-ins that may be pending in a session. */
export const MAX_PENDING = 8

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
  /** Whether the session that it replaces must be open: of several at once, one is written. */
  onlyOpen?: boolean
}

/** A session that was found. */
export interface FoundSession extends Omit<NewSession, 'idHash' | 'userAgent' | 'admits' | 'onlyOpen'> {
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

/** What ends at a provider: one session there, or all of a user. */
export interface ProviderEnd {
  /** The member of {@link ProviderSession} that has the hash. */
  by: 'session' | 'user'
  /** The hash. */
  hash: string
}

/** A session in the list of a user's sessions. */
export interface ListedSession
  extends Omit<NewSession, 'user' | 'data' | 'admits' | 'onlyOpen'>, Pick<FoundSession, 'seenAt'> {
  /** How and when the user authenticated. */
  proofs: SessionProofs
}

/** A session in which an impersonation shows another user. */
export interface ShowingSession extends ListedSession {
  /** The user who has started it, whose session it is. */
  userId: string | null
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
   * replaced already is replaced again, unless `onlyOpen` says otherwise. An anonymous session with
   * this id gets the data. A session that ends no written one and admits no user may be lost when
   * the machine crashes.
   *
   * @param replaced the hash of the id of that session; null for none
   * @returns false when that session was signed out, or had ended with `onlyOpen`; then nothing was
   *   written. `admitted` when the user was new and is admitted; a store that admits no users
   *   returns true.
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

  /**
   * Returns at most 100 open sessions in which an impersonation shows a user, whose id is
   * `proofs.acting.user.userId` as of the insertion, the last used ones first. Without it lists
   * have none of them.
   */
  showing? (userId: string, now: number): Promise<ShowingSession[]>

  /**
   * Ends the open sessions whose `proofs.atProvider`, as of the insertion, has this hash. Without
   * it no provider can have `backChannelLogout`.
   *
   * @returns the users, each once
   */
  endAtProvider? (end: ProviderEnd, now: number): Promise<Array<{
    /** A user whose sessions ended. */
    userId: string
    /** Whether the end is recorded for the other processes: see `Revocations`. */
    isRecorded: boolean
  }>>
}

/** The longest time that a request may run on after its session has ended. */
export const ENDED_MS = 60 * 60 * 1000

/** The number of sessions in a list. */
export const MAX_LISTED = 100

/**
 * What an {@link AuthStore} may keep besides accounts: null or absent where it does not. Methods
 * reject with AuthError `unavailable` when the store cannot be reached.
 */
export interface StoreCapabilities {
  /** Sessions beside the users, in place of a session store. It needs `entries`. */
  readonly sessions: StoredSessions | null
  /** What may be used once. */
  readonly entries: OneTimeEntries | null
  /** The counts of attempts, which processes share. */
  readonly attempts: AttemptCounter | null
  /** Revocations, by which `revoke` reaches every process. */
  readonly revocations: Revocations | null
  /** @hidden the tables of features, which `SqlAuthStore` alone has */
  readonly featureTables?: FeatureTables
}

/** Sessions beside the users, and what they own. */
export type SessionRows = { readonly [Name in 'sessions' | 'entries']: NonNullable<StoreCapabilities[Name]> }

export function capabilitiesOf (store: AuthStore & Partial<StoreCapabilities>): StoreCapabilities {
  const { sessions = null, entries = null, attempts = null, revocations = null, featureTables } = store
  return { sessions, entries, attempts, revocations, ...(featureTables && { featureTables }) }
}

export function assertCapabilities ({ sessions, entries, attempts, revocations }: StoreCapabilities): void {
  assertCapability('sessions', sessions, ['find', 'insert', 'update', 'end', 'ofUser'])
  assertCapability('entries', entries, ['put', 'find', 'take', 'attempt', 'count'])
  assertCapability('attempts', attempts, ['count'])
  assertCapability('revocations', revocations, ['record', 'follow'])
  if (sessions !== null && entries === null) {
    throw new OptionsError('store.sessions needs store.entries, which keeps the sign-ins that sessions start')
  }
}

function assertCapability<T> (name: string, member: T | null, methods: ReadonlyArray<keyof T>): void {
  if (member === null || hasMethods<T>(...methods)(member)) return
  throw new OptionsError(`store.${name} must be null or have the methods ${methods.join(', ')}`)
}
