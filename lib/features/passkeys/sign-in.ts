/** How a passkey authenticates its user. */
import type { FastifyRequest } from 'fastify'
import { type Factor, type User, isBlocked } from '../../accounts/account.js'
import { assertNoneLost, changeOf } from '../../accounts/factors.js'
import { audit, noteSubject } from '../../audit.js'
import type { Proof } from '../../authentication.js'
import { type AuthContext, type Owner, type Proven, type WithAccounts, needed } from '../../core/context.js'
import { AuthError, PASSKEY_REFUSED } from '../../errors.js'
import { CounterRegression, PASSKEY, type PasskeyResponse, UnknownPasskey, readResponse } from './ceremonies.js'
import { keyOf, takeEntry } from '../../session/lifecycle.js'
import { useOwner } from '../../session/several-cookies.js'
import { DAY_MS } from '../../base/values.js'
import { CHALLENGE, type EntryKey } from '../../session/store.js'
import type { FactorSubmission } from '../second-factor/sign-in.js'

/** With `create` the browser makes a passkey by itself, with `sign-up` it is of a new user. */
export type Ceremony = 'register' | 'create' | 'sign-up' | 'login' | 'factor'

/** A challenge in its one-time entry, which belongs to one session. */
export interface Challenge {
  readonly ceremony: Ceremony
  /** Of the user whom a sign-up creates: their user handle. */
  readonly newUserId?: string
  /** In milliseconds since the epoch. */
  readonly expiresAt: number
}

/** A response whose challenge was taken. */
type AnsweredChallenge = PasskeyResponse & { readonly challenge: string } & Pick<Challenge, 'ceremony' | 'newUserId'>

/** Authenticates a user by a passkey of theirs; `field` is the client's response. */
export async function verifyResponse (
  auth: AuthContext, submission: FactorSubmission, field: unknown, owner: Owner
): Promise<Proven> {
  const { request } = submission
  const response = await takeChallenge(request, await countedResponse(auth, request, field), 'factor')
  const { userId, generation, user = await auth.accounts.findUser({ userId }) } = await owner()
  if (user?.generation !== generation) throw new AuthError('invalid_state')
  return { ...await usePasskey(auth, submission, user, response), codesLeft: null }
}

/** Reads a response, and counts it before it is checked; null, uncounted, for another form. */
export async function countedResponse (
  { limits }: Pick<AuthContext, 'limits'>, request: FastifyRequest, field: unknown
): Promise<PasskeyResponse | null> {
  const response = readResponse(field)
  if (response !== null) await limits.factor(request)
  return response
}

/**
 * Takes the challenge that a response names, before anything of it is verified: it works once.
 *
 * @throws AuthError `invalid_request` for what does not have the form of a response;
 * `invalid_state` for a challenge of another session or ceremony, and for none
 */
export async function takeChallenge (
  request: FastifyRequest, response: PasskeyResponse | null, ...ceremonies: Ceremony[]
): Promise<AnsweredChallenge> {
  if (response === null) throw new AuthError('invalid_request')
  const { challenge } = response
  if (challenge === null) throw new AuthError('invalid_state')
  const keyIn = (sessionId: string): EntryKey => keyOf(sessionId, CHALLENGE, challenge)
  await useOwner(request, keyIn)
  const made = await takeEntry<Challenge>(request, keyIn)
  if (made === null || !ceremonies.includes(made.ceremony) || made.expiresAt < Date.now()) {
    throw new AuthError('invalid_state')
  }
  const { ceremony, newUserId } = made
  return { ...response, challenge, ceremony, ...(newUserId !== undefined && { newUserId }) }
}

/**
 * Verifies the response of a passkey and notes its use.
 *
 * @returns the user as they are now, and what the passkey proved
 * @throws AuthError `invalid`, at a sign-in `unknown_passkey`; `invalid_state` when the user's
 *   sessions were ended meanwhile
 */
export async function usePasskey (
  auth: AuthContext, submission: FactorSubmission, user: User | null, response: AnsweredChallenge
): Promise<{ user: User, proof: Proof }> {
  const { userId = '' } = user ?? {}
  noteSubject(submission.request, user?.userId)
  // For a user without passkeys too, and for none: the answer must not come sooner.
  const own = await completePasskeysOf(auth, user ?? { userId })
  const isOfUser = response.userId !== null
  const factor = own.find(({ id }) => isOfUser && id === response.id) ?? null
  // Elsewhere it may belong to another user. It tells only those who know the id, which is random.
  const isGone = factor === null && isOfUser && response.ceremony === 'login'
  const unknown = isGone ? new UnknownPasskey(response.id) : null
  const { challenge } = response
  const { ceremonies } = needed(auth.parts.passkeys, 'passkeys')
  const used = await ceremonies.verifyAssertion(response, { challenge, factor, userId })
    .catch((error: unknown) => {
      if (unknown !== null) return null
      if (user !== null && Object(error).cause instanceof CounterRegression) {
        audit('passkey-cloned', { userId }, submission.request)
        submission.outbox.notice('passkey-cloned', user)
      }
      throw error
    })
  if (used === null || user === null || factor === null) {
    throw unknown ?? new AuthError('invalid', { message: PASSKEY_REFUSED })
  }
  if (isBlocked(user)) throw new AuthError('blocked')
  const proof = { method: 'passkey', at: Date.now() } as const
  const { id, counter, usedAt, data } = used
  const isNoted = counter === factor.counter && data.backedUp === factor.data.backedUp &&
    factor.usedAt !== null && proof.at - factor.usedAt < DAY_MS
  // Most passkeys have no counter: then there is nothing to write, but for the day of their use.
  if (isNoted) return { user, proof }
  const changed = await auth.accounts.changeFactors(userId, {
    generation: user.generation,
    endsSessions: false,
    // Of two uses with one counter at a time, one is by a copy.
    change: changeOf(id, present => present.counter === factor.counter ? { ...present, counter, usedAt, data } : null)
  })
  if (changed === null) throw new AuthError('invalid_state')
  return { user: changed, proof }
}

/**
 * Returns the passkeys of a user. A list that lacks some would have password managers delete
 * them: `unavailable`.
 */
export async function completePasskeysOf (
  { accounts }: WithAccounts, user: Pick<User, 'userId' | 'factors'>
): Promise<Factor[]> {
  const factors = await accounts.factors(user.userId)
  assertNoneLost(user, factors)
  return passkeysIn(factors)
}

export function passkeysIn (factors: readonly Factor[]): Factor[] {
  return factors.filter(({ kind }) => kind === PASSKEY)
}
