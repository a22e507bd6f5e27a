import type { FastifyRequest } from 'fastify'
import type { Proof } from '../authentication.js'
import { AuthError } from '../errors.js'
import type { Outbox } from '../mails/outbox.js'
import { attemptEntry, findEntry, takeEntry, waitInNewSession } from '../session/pending-steps.js'
import type { Principal } from '../session/record.js'
import { PENDING_MS, SECOND_STEP } from '../store/one-time-entries.js'
import { type User, isBlocked } from '../accounts/account.js'
import { type AuthenticatedUser, completeSignIn, principalFor } from './admission.js'
import { readCode, spendCode } from './factor-codes.js'
import type { Sealer } from '../sealed.js'
import { factorsOf } from './methods.js'
import { type SignInRules, type StepRules, answerOfApplication } from './sign-in-rules.js'

/** A sign-in that waits for a second factor, as its one-time entry has it. No user is signed in. */
export interface WaitingSignIn extends Pick<AuthenticatedUser, 'identity' | 'isNew' | 'remember'> {
  readonly userId: string
  /** As it was read with the first factor: another one ends the sign-in. */
  readonly generation: number
  /** The first factor. */
  readonly proof: Proof
  /** What the user does next: authenticate by a factor that they have, or set up the first one. */
  readonly needs: 'factor' | 'enrolment'
  /** The tokens of the provider for the hook, sealed. */
  readonly tokens: string | null
  /**
   * Whether setting up a factor takes a code that is mailed: otherwise someone who has stolen the
   * password could set up their own.
   */
  readonly asksMailCode: boolean
}

/** How many codes and passkeys one sign-in takes. */
const MAX_ATTEMPTS = 5

/**
 * Returns the proof of a first factor that suffices. Otherwise the sign-in waits in a new session,
 * in which it can be finished or left.
 *
 * @throws AuthError `second_factor_required`, `unavailable`; what the application's rules throw
 */
export async function proofOrWait (
  request: FastifyRequest, rules: StepRules, authenticated: AuthenticatedUser, proof: Proof
): Promise<Proof> {
  const { factors } = rules
  const { user, identity, signed, skipsFactor = false } = authenticated
  // A passkey is both factors: its authenticator has verified the user.
  if (skipsFactor || proof.method === 'passkey') return proof
  const { required, trusts, trustedBrowsers } = factors.secondFactor
  const kinds = factorsOf(user, factors)
  const principal = principalFor(authenticated)
  const isDue = kinds.includes('totp') ||
    await answerOfApplication(() => required({ principal, method: proof.method })) === true
  if (!isDue) return proof

  const isTrusted = signed !== undefined &&
    await answerOfApplication(() => trusts({ provider: identity.provider, ...signed })) === true
  if (isTrusted) return { ...proof, multiFactor: true }
  const needs = kinds.length > 0 ? 'factor' : 'enrolment'
  const cookie = request.cookies[trustedBrowsers.cookieName]
  if (needs === 'factor' && await trustedBrowsers.trusts(cookie, user)) return proof

  await wait(request, rules, authenticated, { proof, needs })
  throw new AuthError('second_factor_required', {
    details: { methods: kinds, ...(needs === 'enrolment' && { enrolment: true }), expiresIn: PENDING_MS / 1000 }
  })
}

async function wait (
  request: FastifyRequest,
  { factors: { secondFactor: { sealer }, sendsMails }, onSignIn }: StepRules,
  { user, identity, isNew, remember, tokens }: AuthenticatedUser,
  { proof, needs }: Pick<WaitingSignIn, 'proof' | 'needs'>
): Promise<void> {
  const { userId, generation = 0, email, emailVerified } = user
  const hasMailbox = sendsMails && email !== null && emailVerified
  const waiting: WaitingSignIn = {
    userId,
    generation,
    identity,
    isNew,
    remember,
    proof,
    needs,
    tokens: tokens === null || onSignIn === null ? null : await sealer.seal(JSON.stringify(tokens), userId),
    asksMailCode: needs === 'enrolment' && hasMailbox && user.isNew !== true && proof.method === 'password'
  }
  await waitInNewSession(request, SECOND_STEP, waiting)
}

/** Returns the sign-in that waits in the session of a request; null without one. */
export async function waitingSignIn (request: FastifyRequest): Promise<WaitingSignIn | null> {
  return findEntry(request, SECOND_STEP)
}

/** Counts an attempt at the sign-in that waits; null without one, and after five. */
export async function attemptSignIn (request: FastifyRequest): Promise<WaitingSignIn | null> {
  return attemptEntry(request, SECOND_STEP, MAX_ATTEMPTS)
}

/** A sign-in that a second factor has completed. */
export interface SecondFactorSignIn {
  principal: Principal
  /** The user as they are now. */
  user: User
  /** After a recovery code; null after another factor. */
  recoveryCodesLeft: number | null
}

/**
 * Finishes a sign-in that waits, by a code. A code that was right is spent, also when another
 * request has finished the sign-in meanwhile.
 *
 * @throws what the hook throws; AuthError `invalid_code`; `invalid_state` when no sign-in waits in
 * this session, after five codes, and when the user's sessions were ended since; `rate_limited`,
 * `blocked`, `unavailable`
 */
export async function finishByCode (
  request: FastifyRequest, rules: StepRules, text: string, outbox: Outbox
): Promise<SecondFactorSignIn> {
  const code = readCode(text)
  const waiting = await attemptSignIn(request)
  if (waiting?.needs !== 'factor') throw new AuthError('invalid_state')
  const { recoveryCodesLeft, ...spent } = await spendCode(request, rules, waiting, { code, outbox })
  const principal = await resume(request, rules, await takeWaiting(request, waiting.userId), spent)
  return { principal, user: spent.user, recoveryCodesLeft }
}

/**
 * Takes the sign-in of a user that waits in the session of a request: one request of all gets it.
 *
 * @throws AuthError `invalid_state`, `unavailable`
 */
export async function takeWaiting (request: FastifyRequest, userId: string): Promise<WaitingSignIn> {
  const waiting = await takeEntry<WaitingSignIn>(request, SECOND_STEP)
  if (waiting?.userId !== userId) throw new AuthError('invalid_state')
  return waiting
}

/**
 * Completes a sign-in that has waited.
 *
 * @param second the user as they were read with the second factor, and its proof
 * @throws what the hook throws; AuthError `blocked`, `unavailable`
 */
export async function resume (
  request: FastifyRequest,
  rules: SignInRules,
  { tokens, proof: first, ...waiting }: WaitingSignIn,
  { user, proof }: { user: User, proof: Proof }
): Promise<Principal> {
  if (isBlocked(user)) throw new AuthError('blocked')
  const opened = tokens === null ? null : JSON.parse((await sealerOf(rules).open(tokens, user.userId)).text)
  return completeSignIn(request, rules, { ...waiting, user, tokens: opened }, [first, proof])
}

/**
 * Returns what seals for second factors. A sign-in waits only with them.
 *
 * @throws AuthError `unavailable`
 */
export function sealerOf ({ factors }: Pick<SignInRules, 'factors'>): Sealer {
  if (factors?.secondFactor != null) return factors.secondFactor.sealer
  throw new AuthError('unavailable', { cause: new Error('another process has the option secondFactor') })
}
