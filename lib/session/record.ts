import type { FastifyRequest, Session } from 'fastify'
import { isUserId } from '../base/uuid.js'
import type { AuthenticationMethod, FormerSession, Proof } from '../authentication.js'
import type { Claims } from '../claims.js'
import type { SessionUser } from '../store/sessions.js'
import type { AccountStatus } from '../accounts/account.js'
import { isOver } from './lifetime.js'

/** The signed-in user, as of the session. */
export interface Principal {
  /** The UUID of the user in the store. */
  userId: string
  /** The provider of the sign-in: `local` or the name of an external provider. */
  provider: string
  /**
   * Identity claims with the authorization claims over them, as of the sign-in or the last refresh.
   */
  claims: Claims
}

/** The plugin's part of a session. Everything else in the session is the application's. */
export interface SessionRecord {
  /** The signed-in user. */
  readonly principal: Principal
  /** The time of the last proof, in milliseconds since the epoch. */
  readonly at: number
  /** The last proof of each method. */
  readonly methods: readonly Proof[]
  /**
   * The user's generation as it was read with the credential: a session with another one than the
   * user's has ended.
   */
  readonly generation: number
  /**
   * Sessions that this one replaced in the last ten minutes: sign-ins that other tabs started in
   * them may still finish.
   */
  readonly formerly?: readonly FormerSession[]
  /**
   * The end of the session, in milliseconds since the epoch, with the option `session.remember`: no
   * user is signed in afterwards, whatever the cookie and the store say.
   */
  readonly until?: number
}

/** The plugin's part of a session as a store has it: what is missing in it is zero. */
export type StoredRecord = Pick<SessionRecord, 'principal'> & Partial<SessionRecord>

/** How and when the user of a request proved who they are: `request.authentication`. */
export interface AuthenticationState {
  /** The time of the last proof. */
  at: Date
  /** The last proof of each method. */
  methods: Array<{
    /** How the user proved who they are. */
    method: AuthenticationMethod
    /** The time of the proof. */
    at: Date
  }>
  /** Whether a proof was a second factor or a passkey. */
  secondFactor: boolean
}

declare module 'fastify' {
  interface Session {
    /** The plugin's part of the session; the application reads `request.principal` instead. */
    svcAuth?: StoredRecord
  }
}

const SECOND_FACTORS: readonly AuthenticationMethod[] = ['passkey', 'totp', 'recovery']

/** The users whose verified e-mail a request shows, see {@link showVerifiedEmail}. */
const verifiedUsers = new WeakMap<FastifyRequest, { userId: string, email: string }>()

/** The principal of a request: that in its session; null without one. */
export function principalOf (request: FastifyRequest): Principal | null {
  const principal = principalIn(request.session)
  const verified = verifiedUsers.get(request)
  if (principal === null || principal.userId !== verified?.userId) return principal
  return { ...principal, claims: { ...principal.claims, email: verified.email, email_verified: true } }
}

/**
 * Gives the principal of a request the verified e-mail of its user until the request ends. The
 * claim `email` in the session may be another address, an unverified one: that of the identity by
 * which the user signed in.
 */
export function showVerifiedEmail (request: FastifyRequest, email: string): void {
  const principal = principalIn(request.session)
  if (principal !== null) verifiedUsers.set(request, { userId: principal.userId, email })
}

/** The principal in a session; null without one. */
export function principalIn (session: Session | null | undefined): Principal | null {
  // A destroyed session is null; outside the path of its cookie it is empty; a store may hold
  // anything.
  const principal = session?.svcAuth?.principal
  return isUserId(principal?.userId) && !isOver(session) ? principal : null
}

/** The plugin's part of a session; null when no user is signed in. */
export function recordIn (session: Session | null | undefined): SessionRecord | null {
  const principal = principalIn(session)
  return principal === null ? null : { at: 0, methods: [], generation: 0, ...session?.svcAuth, principal }
}

/** How and when the user in the session of a request proved who they are; null without a user. */
export function authenticationOf (request: FastifyRequest): AuthenticationState | null {
  const record = recordIn(request.session)
  if (record === null) return null
  const { at, methods } = record
  return {
    at: new Date(at),
    methods: withDates(methods),
    secondFactor: methods.some(({ method }) => SECOND_FACTORS.includes(method))
  }
}

/** Returns proofs as the application sees them. */
export function withDates (methods: readonly Proof[]): AuthenticationState['methods'] {
  return methods.map(({ method, at }) => ({ method, at: new Date(at) }))
}

/** Adds a proof to those of a session; it replaces an earlier one of its method. */
export function withProof (methods: readonly Proof[], proof: Proof): readonly Proof[] {
  return [...methods.filter(({ method }) => method !== proof.method), proof]
}

/** How long a guard relies on what was read with the session. */
const FRESH_MS = 1000

/**
 * The plugin's part of a session as it was read together with what a guard asks about its user. It
 * is not the application's to save, so it is left out of what @fastify/session compares.
 */
export class ReadRecord implements SessionRecord {
  readonly principal: Principal
  readonly at: number
  readonly methods: SessionRecord['methods']
  readonly generation: number
  declare readonly formerly?: readonly FormerSession[]
  declare readonly until?: number
  // Private, so that no record that is made from this one has it.
  readonly #status: AccountStatus | undefined
  readonly #readAt: number

  constructor (user: SessionUser, status: AccountStatus | undefined, readAt: number) {
    const { userId, provider, claims, generation, proofs: { at, methods, formerly, until } } = user
    this.principal = { userId, provider, claims }
    this.at = at
    this.methods = methods
    this.generation = generation
    if (formerly !== undefined) this.formerly = formerly
    if (until !== undefined) this.until = until
    this.#status = status
    this.#readAt = readAt
  }

  /** What was read about the user within the last second; null without it. */
  get freshStatus (): AccountStatus | null {
    return this.#status !== undefined && Math.abs(Date.now() - this.#readAt) < FRESH_MS ? this.#status : null
  }

  toJSON (): undefined {}
}

/** Returns what was read about the user within the last second, with the session; else null. */
export function freshStatus ({ svcAuth }: Session): AccountStatus | null {
  return svcAuth instanceof ReadRecord ? svcAuth.freshStatus : null
}
