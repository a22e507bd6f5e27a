import type { FastifyRequest, Session } from 'fastify'
import { type AccountStatus, GUEST } from '../accounts/account.js'
import { type AuthenticationMethod, type Principal, type Proof, secondFactorAt } from '../authentication.js'
import { digestOf, isUserId } from '../base/values.js'
import type { Claims } from '../claims.js'
import { AuthError } from '../errors.js'
import type { Acting, SessionProofs } from '../schema/sessions.js'
import { isOver } from './lifetime.js'
import type { ListedSession, OneTimeEntries, ProviderEnd, ProviderSession, SessionUser } from './store.js'

export type { Principal } from '../authentication.js'

/** The plugin's part of a session. Everything else in the session is the application's. */
export interface SessionRecord extends Readonly<SessionProofs> {
  readonly principal: Principal
  /** As of the sign-in: a session whose generation is not the user's has ended. */
  readonly generation: number
}

/** How and when the user of a request authenticated: `request.authentication`. */
export interface AuthenticationState {
  /** The time of the last authentication. */
  at: Date
  /** The last authentication of each method. */
  methods: Array<{
    /** How the user authenticated. */
    method: AuthenticationMethod
    /** The time of the proof. */
    at: Date
  }>
  /** Whether the user authenticated by a second factor, or by a provider whose own one counts. */
  secondFactor: boolean
}

declare module 'fastify' {
  interface Session {
    /** The plugin's part of the session; the application reads `request.principal` instead. */
    svcAuth?: SessionRecord
  }
  interface FastifyRequest {
    /** The user whose verified e-mail a guard has read; see `request.principal`. */
    svcAuthVerified?: { userId: string, email: string }
  }
}

/** The principal of a request whose user is signed in: that in its session; null without one. */
export function principalOf ({ session, svcAuthVerified: verified }: FastifyRequest): Principal | null {
  const principal = principalIn(session)
  if (principal === null || principal.userId !== verified?.userId) return principal
  return { ...principal, claims: { ...principal.claims, email: verified.email, email_verified: true } }
}

/**
 * Gives the principal of a request the verified e-mail of its user until the request ends. The
 * claim `email` in the session may be another address, an unverified one, of the identity by
 * which the user signed in.
 */
export function showVerifiedEmail (request: FastifyRequest, email: string): void {
  const principal = principalIn(request.session)
  if (principal !== null) request.svcAuthVerified = { userId: principal.userId, email }
}

export function principalIn (session: Session | null | undefined): Principal | null {
  return recordIn(session)?.principal ?? null
}

/**
 * The plugin's part of a session for its present user; null when no user is signed in, as for a
 * guest. In an impersonation it is about the user who is shown, and is never written into a
 * session.
 */
export function recordIn (session: Session | null | undefined): SessionRecord | null {
  const own = ownRecordIn(session)
  if (own === null || own.principal.provider === GUEST || userless.has(Object(session))) return null
  return own.acting === undefined ? own : shownRecord(own, own.acting)
}

/** The plugin's part of the session of a guest; null for every other session. */
export function guestRecordIn (session: Session | null | undefined): SessionRecord | null {
  const own = ownRecordIn(session)
  return own?.principal.provider === GUEST ? { ...own, principal: { ...own.principal, guest: true } } : null
}

/** The principal of a request, also that of a guest: `request.principal`. */
export function shownPrincipal (request: FastifyRequest): Principal | null {
  return principalOf(request) ?? guestRecordIn(request.session)?.principal ?? null
}

/** As whom the user of the session authenticated counts for the user who is shown, too. */
function shownRecord ({ principal, at, methods }: SessionRecord, { user, generation, until }: Acting) {
  const isOver = !(until > Date.now())
  return isOver ? null : { principal: { ...user, impersonator: principal.userId }, generation, at, methods }
}

/** The sessions in which the rest of a request sees no user. */
const userless = new WeakSet<object>()

/** Shows no user to the rest of a request: it was sent for another one than the session has now. */
export function hideUser ({ session }: FastifyRequest): void {
  userless.add(session)
}

/** Keeps what {@link hideUser} did when a request has read its session again. */
export function keepHidden (request: FastifyRequest, before: Session): void {
  if (userless.has(before)) hideUser(request)
}

/** What a session has of an impersonation, also of one whose time is over. */
export function actingIn (session: Session | null | undefined): Acting | undefined {
  return ownRecordIn(session)?.acting
}

/** The plugin's part of a session as it is stored, about the user who has signed in to it. */
export function ownRecordIn (session: Session | null | undefined): SessionRecord | null {
  // A destroyed session is null; outside the path of its cookie it is empty; a store may hold
  // anything.
  const record: unknown = session?.svcAuth
  return isRecord(record) && !isOver(session) ? record : null
}

/**
 * Names the session of a signed-in user, so that what was made for it is good in it alone.
 *
 * @throws AuthError `unauthenticated` without a user
 */
export function sessionBinding ({ session }: Pick<FastifyRequest, 'session'>): string {
  const record = recordIn(session)
  if (record === null) throw new AuthError('unauthenticated')
  return digestOf(`${session.sessionId} ${record.principal.userId} ${record.generation}`)
}

function isRecord (value: unknown): value is SessionRecord {
  // Made of checked columns.
  if (value instanceof ReadRecord) return true
  const { principal, generation, at, methods, acting }: Partial<SessionRecord> = Object(value)
  return isUserId(principal?.userId) && Number.isInteger(generation) && Number.isFinite(at) && Array.isArray(methods) &&
    (acting === undefined || (isUserId(Object(acting).user?.userId) && Number.isInteger(acting.generation)))
}

export function authenticationOf (request: FastifyRequest): AuthenticationState | null {
  const record = recordIn(request.session)
  return record && {
    at: new Date(record.at),
    methods: withDates(record.methods),
    secondFactor: secondFactorAt(record.methods) !== null
  }
}

function withDates (methods: readonly Proof[]): AuthenticationState['methods'] {
  return methods.map(({ method, at }) => ({ method, at: new Date(at) }))
}

/** Returns what a list shows of a session. */
export function shownSession ({ userAgent, createdAt, seenAt, proofs: { methods } }: ListedSession) {
  return { userAgent, createdAt: new Date(createdAt), lastSeenAt: new Date(seenAt), methods: withDates(methods) }
}

/** Adds a proof to a session's proofs; it replaces an earlier one of its method. */
export function withProof (methods: readonly Proof[], proof: Proof): readonly Proof[] {
  return [...methods.filter(({ method }) => method !== proof.method), proof]
}

interface ReadOfUser {
  status?: AccountStatus | undefined
  /** Null when the link by which the user signed in is gone. */
  presentClaims?: (() => Claims | null) | undefined
}

/** How long a guard relies on what was read with the session. */
const FRESH_MS = 1000

/**
 * The plugin's part of a session as it was read together with what a guard asks about its user. It
 * is not the application's to save, so it is left out of what @fastify/session compares.
 */
export class ReadRecord implements SessionRecord {
  readonly principal: Principal
  declare readonly generation: number
  declare readonly at: number
  declare readonly methods: readonly Proof[]
  // Private, so that no record that is made from this one has it.
  readonly #ofUser: ReadOfUser
  readonly #readAt: number

  constructor (user: SessionUser, ofUser: ReadOfUser, readAt: number) {
    const { userId, provider, claims, generation, proofs } = user
    this.principal = { userId, provider, claims }
    Object.assign(this, { ...proofs, generation })
    this.#ofUser = ofUser
    this.#readAt = readAt
  }

  /** Returns what was read with the session within the last second; else nothing. */
  static fresh ({ svcAuth }: Session): ReadOfUser {
    const isFresh = svcAuth instanceof ReadRecord && Math.abs(Date.now() - svcAuth.#readAt) < FRESH_MS
    return isFresh ? svcAuth.#ofUser : {}
  }

  toJSON (): undefined {}
}

/** What happens in the step that writes a new session. */
export interface SessionReplacement {
  /** The id of the session that it replaces, which ends. */
  replaced?: string
  /** Whether the user is new: they are admitted with the session where one store keeps both. */
  admits?: boolean
  /** Whether it is written only if that session is open: no other request has replaced it. */
  onlyOpen?: boolean
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
   * @throws AuthError `invalid_state` when the user of that one signed out meanwhile, or it ended
   *   with `onlyOpen`; the caller removes the new one
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

  /**
   * Ends the sessions that began at a provider, also one whose sign-in is under way.
   *
   * @param lifetime milliseconds that a session can live, where a note is all that ends them
   * @returns the users whose sessions ended; null where that is not known
   */
  endAtProvider (end: ProviderEnd, lifetime: number): Promise<SignedOut[] | null>

  /** Whether a session has ended at the provider in which one here began. */
  hasEndedAtProvider (began: ProviderSession): Promise<boolean>
}

/** The number of sessions that replace each other, for one request that is sent again. */
export const MAX_HOPS = 8

/** The present time, in milliseconds since the epoch, with fractions. */
export function preciseTime (): number {
  return performance.timeOrigin + performance.now()
}
