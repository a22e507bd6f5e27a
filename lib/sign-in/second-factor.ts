import type { FastifyRequest } from 'fastify'
import { type User, isBlocked } from '../accounts/account.js'
import type { FactorChange } from '../accounts/factors.js'
import type { FoundUser } from '../accounts/identities.js'
import { audit, noteSubject } from '../audit.js'
import type { Proof } from '../authentication.js'
import { announceRevoke } from '../channel.js'
import { type AuthContext, sealerOf } from '../context.js'
import { factorsOf, isFactorRequired } from '../current-user/factors.js'
import { AuthError } from '../errors.js'
import { callHook } from '../hooks.js'
import { cookiesNamed } from '../session/request-cookies.js'
import {
  type WaitingSession, attemptEntry, findEntry, keyOf, takeEntry, startPendingSession
} from '../session/pending-steps.js'
import type { Principal } from '../session/record.js'
import { useOwner } from '../session/several-cookies.js'
import { PENDING_MS, SECOND_STEP } from '../store/one-time-entries.js'
import { type AuthenticatedUser, completeSignIn, principalFor } from './complete-sign-in.js'
import { type FactorForm, readCode, spendCode } from './factor-codes.js'
import { linkOf, writeHeld } from './linking.js'

/**
 * A sign-in that waits for a second factor: what the first one has found, which is written after
 * the second. No user is signed in.
 */
export interface PendingSecondFactor
  extends Pick<AuthenticatedUser, 'identity' | 'isNew' | 'held' | 'remember' | 'tokens' | 'kept'>, FoundUser {
  readonly proof: Proof
  /** What the user does next: authenticate by a factor that they have, or set up the first one. */
  readonly needs: 'factor' | 'enrolment'
}

/** A factor that was verified. */
export interface FactorAddition extends FactorChange {
  readonly proof: Proof & { method: 'totp' | 'passkey' }
}

/** Sealed for the user, because a session store of the application is trusted with nothing. */
interface SealedSignIn extends WaitingSession {
  readonly userId: string
  readonly sealed: string
}

const MAX_ATTEMPTS = 5

/**
 * Returns the proof of a first factor that suffices. Otherwise the sign-in waits in a new session,
 * in which it can be finished or left.
 *
 * @throws AuthError `second_factor_required`; what the application's rules throw
 */
export async function checkSecondFactor (
  auth: AuthContext, request: FastifyRequest, authenticated: AuthenticatedUser, first: Proof
): Promise<Proof> {
  const { user, identity: { provider }, signed, held, skipsFactor = false } = authenticated
  // A passkey is both factors: its authenticator has verified the user.
  if (skipsFactor || first.method === 'passkey') return first
  const { trusts, trustedBrowsers } = auth.factors.secondFactor ?? {}
  const isTrusted = signed !== undefined && trusts !== undefined &&
    await callHook(() => trusts({ provider, ...signed })) === true
  const proof: Proof = isTrusted ? { ...first, multiFactor: true } : first
  // The factors of the user decide, and not what this process can ask for: see assertCanAsk.
  const kinds = factorsOf(auth, user)
  // What joins or moves an account with factors waits for one of its own. Otherwise who has another
  // account with the address, and a factor there, would get this one.
  const changes = held === 'link' || held === 'moves' || (held === 'mail' && !user.emailVerified)
  const maySpare = kinds.length === 0 || !changes
  if (isTrusted && maySpare) return proof
  const principal = principalFor(authenticated)
  const isDue = user.factors?.includes('totp') === true ||
    await isFactorRequired(auth, { principal, method: proof.method })
  if (!isDue) return proof

  const needs = kinds.length > 0 ? 'factor' : 'enrolment'
  const cookies = trustedBrowsers == null ? [] : cookiesNamed(request, trustedBrowsers.cookieName)
  if (needs === 'factor' && maySpare && await trustedBrowsers?.trusts(cookies, user)) return proof

  const details = {
    methods: kinds, ...(needs === 'enrolment' && { enrolment: true }), expiresIn: PENDING_MS / 1000
  }
  await wait(auth, request, authenticated, { proof, needs, details })
  throw new AuthError('second_factor_required', { details })
}

async function wait (
  auth: AuthContext,
  request: FastifyRequest,
  { user, identity, isNew, held, remember, tokens, kept }: AuthenticatedUser,
  { proof, needs, details }: Pick<PendingSecondFactor, 'proof' | 'needs'> & WaitingSession
): Promise<void> {
  const { userId, generation, email, emailVerified } = user
  const waiting: PendingSecondFactor = {
    userId,
    generation,
    email,
    emailVerified,
    identity,
    isNew,
    held,
    remember,
    kept,
    proof,
    needs,
    tokens: auth.onSignIn === null ? null : tokens
  }
  const entry: SealedSignIn = { userId, details, sealed: await sealerOf(auth).seal(JSON.stringify(waiting), userId) }
  await startPendingSession(request, SECOND_STEP, entry)
}

async function opened (
  auth: AuthContext, request: FastifyRequest, entry: SealedSignIn | null
): Promise<PendingSecondFactor | null> {
  if (entry === null) return null
  noteSubject(request, entry.userId)
  const waiting: PendingSecondFactor = JSON.parse((await sealerOf(auth).open(entry.sealed, entry.userId)).text)
  return waiting.proof.at > Date.now() - PENDING_MS ? waiting : null
}

/** Returns the sign-in that waits in the session of a request; null without one. */
export async function pendingSecondFactor (
  auth: AuthContext, request: FastifyRequest
): Promise<PendingSecondFactor | null> {
  await useOwner(request, sessionId => keyOf(sessionId, SECOND_STEP))
  return opened(auth, request, await findEntry<SealedSignIn>(request, SECOND_STEP))
}

/** Counts an attempt at the sign-in that waits; null without one, and after five. */
export async function attemptSignIn (auth: AuthContext, request: FastifyRequest): Promise<PendingSecondFactor | null> {
  await useOwner(request, sessionId => keyOf(sessionId, SECOND_STEP))
  return opened(auth, request, await attemptEntry<SealedSignIn>(request, SECOND_STEP, MAX_ATTEMPTS))
}

export interface SecondFactorSignIn {
  principal: Principal
  user: User
  /** After a recovery code; null after another factor. */
  recoveryCodesLeft: number | null
}

/**
 * Finishes a sign-in that waits, by a code. A code that was right is spent, also when another
 * request has finished the sign-in meanwhile.
 *
 * @throws AuthError `invalid_state` when no sign-in waits in this session, and after five codes
 */
export async function finishByCode (auth: AuthContext, form: FactorForm, text: string): Promise<SecondFactorSignIn> {
  const code = readCode(text)
  const { request } = form
  const waiting = await attemptSignIn(auth, request)
  if (waiting?.needs !== 'factor') throw new AuthError('invalid_state')
  const { recoveryCodesLeft, ...spent } = await spendCode(auth, form, waiting, code)
  const taken = await takePendingSecondFactor(auth, request, waiting.userId)
  const principal = await continueSignIn(auth, form, taken, spent)
  return { principal, user: spent.user, recoveryCodesLeft }
}

/** Takes the sign-in of a user that waits in the session: one request of all gets it. */
export async function takePendingSecondFactor (
  auth: AuthContext, request: FastifyRequest, userId: string
): Promise<PendingSecondFactor> {
  const waiting = await opened(auth, request, await takeEntry<SealedSignIn>(request, SECOND_STEP))
  if (waiting?.userId !== userId) throw new AuthError('invalid_state')
  return waiting
}

/**
 * Completes a sign-in that has waited: all that was found is compared, `onSignIn` is asked, and
 * what was held is written, together with the factor that the sign-in sets up.
 *
 * @param second the proof of the second factor, the user as they were read with it, and the factor
 * if the sign-in sets it up
 * @throws AuthError `blocked`; `invalid_state` when what the first factor has found has changed;
 * what the hook throws. Then nothing was written.
 */
export async function continueSignIn (
  auth: AuthContext,
  form: FactorForm,
  { proof: first, ...waiting }: PendingSecondFactor,
  { user, proof, addition }: { user: User, proof: Proof, addition?: FactorAddition }
): Promise<Principal> {
  const { request, outbox } = form
  const { identity, held } = waiting
  if (isBlocked(user)) throw new AuthError('blocked')
  const isAsFound = user.email === waiting.email && user.emailVerified === waiting.emailVerified
  const change = { identity: linkOf(identity), held, factors: addition }
  const writes = held !== null || addition !== undefined
  const isRefused = !isAsFound || (writes && await auth.accounts.signIn(waiting, change, true) === null)
  if (isRefused) throw new AuthError('invalid_state')
  const found = { ...waiting, user, outbox }
  const write = async (): Promise<User> => {
    const written = await writeHeld(auth, request, found, addition)
    if (addition !== undefined) noteAddition(auth, form, written, addition)
    return written
  }
  return completeSignIn(auth, request, { ...found, write }, [first, proof])
}

/** Tells of a factor that was added. */
export function noteAddition (
  { channel }: AuthContext, { request, outbox }: FactorForm, user: User, { proof, endsSessions }: FactorAddition
): void {
  const { userId } = user
  audit('factor-added', { userId, method: proof.method }, request)
  outbox.notice('factor-added', user)
  if (endsSessions) announceRevoke(channel, userId, request)
}
