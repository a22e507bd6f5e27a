import type { FastifyRequest, Session } from 'fastify'
import { isUserId } from '../base/uuid.js'
import type { AuthenticationMethod, FormerSession, Proof } from '../authentication.js'
import type { Claims } from '../claims.js'
import type { Standing } from '../store/store.js'
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

/** The principal in the session of a request; null without one. */
export function principalOf (request: FastifyRequest): Principal | null {
  return principalIn(request.session)
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
    methods: methods.map(({ method, at }) => ({ method, at: new Date(at) })),
    secondFactor: methods.some(({ method }) => SECOND_FACTORS.includes(method))
  }
}

/** Adds a proof to those of a session; it replaces an earlier one of its method. */
export function withProof (methods: readonly Proof[], proof: Proof): readonly Proof[] {
  return [...methods.filter(({ method }) => method !== proof.method), proof]
}

/** How long a guard relies on what was read with the session. */
const FRESH_MS = 1000

/** What was read with sessions about their users, by the plugin's part of the session. */
const standings = new WeakMap<object, { standing: Standing, readAt: number }>()

/** Notes what a guard asks about the user of a session, when it was read with the session. */
export function noteStanding (record: SessionRecord, standing: Standing, readAt: number): void {
  standings.set(record, { standing, readAt })
}

/** Returns what was read with the session within the last second; null without it. */
export function freshStanding ({ svcAuth }: Session): Standing | null {
  const noted = standings.get(Object(svcAuth))
  return noted !== undefined && Math.abs(Date.now() - noted.readAt) < FRESH_MS ? noted.standing : null
}
