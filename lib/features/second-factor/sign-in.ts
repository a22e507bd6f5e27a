import type { FastifyRequest } from 'fastify'
import { type Factor, type User, isBlocked } from '../../accounts/account.js'
import { type FactorChange, type FactorSpending, hashesIn } from '../../accounts/factors.js'
import type { FoundUser } from '../../accounts/identities.js'
import { announceRevoke, audit, noteSubject } from '../../audit.js'
import type { Proof } from '../../authentication.js'
import { type TypedCode, codeShape, recoveryHash } from './codes.js'
import { isAddedProvider } from '../../core/act.js'
import { completeSignIn, principalFor } from '../../core/complete-sign-in.js'
import { type AuthContext, type Owner, type Proven, type WithAccounts, needed, sealerOf } from '../../core/context.js'
import { linkOf, writeHeld } from '../../core/linking.js'
import type { Outbox } from '../../core/mail-links.js'
import { refuseOtherSignIn } from '../../core/required-connection.js'
import { AuthError } from '../../errors.js'
import { callHook } from '../../hooks.js'
import { cookiesNamed } from '../../session/cookies.js'
import {
  type WaitingSession, attemptEntry, findEntry, keyOf, startPendingSession, takeEntry
} from '../../session/lifecycle.js'
import type { Principal } from '../../session/record.js'
import { useOwner } from '../../session/several-cookies.js'
import { PENDING_MS, SECOND_STEP } from '../../session/store.js'
import { APP, RECOVERY, totpStep } from './totp.js'
import type { Findings } from '../../core/findings.js'
import { factorsOf, isFactorDue } from '../../core/methods.js'

/**
 * A sign-in that waits for a second factor: what the first one has found, which is written after
 * the second. No user is signed in.
 */
export interface PendingSecondFactor
  extends Pick<Findings, 'identity' | 'isNew' | 'held' | 'newUser' | 'remember' | 'tokens' | 'ofCallback'>, FoundUser {
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
  auth: AuthContext, request: FastifyRequest, authenticated: Findings, first: Proof
): Promise<Proof> {
  const { user, identity: { provider }, signed, held, skipsFactor = false } = authenticated
  // Such as a passkey, whose authenticator has verified the user.
  const isComplete = auth.methods.some(({ name, factor }) => name === first.method && factor?.signsIn === true)
  if (skipsFactor || isComplete) return first
  const { trusts, connections = false, trustedBrowsers } = auth.parts.secondFactor ?? {}
  // The application adds a connection while it runs, for a customer.
  const isJudged = connections || !isAddedProvider(provider)
  const isTrusted = signed !== undefined && trusts !== undefined && isJudged &&
    await callHook(() => trusts({ provider, ...signed })) === true
  const proof: Proof = isTrusted ? { ...first, multiFactor: true } : first
  // The factors of the user decide, and not what this process can ask for: see assertCanAsk.
  const kinds = factorsOf(auth, user)
  // What joins or moves an account with factors waits for one of its own. Otherwise who has another
  // account with the address, and a factor there, would get this one.
  const changes = held === 'link' || held === 'moves' || (held === 'confirms' && !user.emailVerified)
  const maySpare = kinds.length === 0 || !changes
  if (isTrusted && maySpare) return proof
  const principal = principalFor(authenticated)
  if (!await isFactorDue(auth, user, { principal, method: proof.method })) return proof

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
  auth: Pick<AuthContext, 'onSignIn' | 'sealer'>,
  request: FastifyRequest,
  { user, identity, isNew, held, newUser, remember, tokens, ofCallback }: Findings,
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
    newUser,
    remember,
    ofCallback,
    proof,
    needs,
    tokens: auth.onSignIn === null ? null : tokens
  }
  const entry: SealedSignIn = { userId, details, sealed: await sealerOf(auth).seal(JSON.stringify(waiting), userId) }
  await startPendingSession(request, SECOND_STEP, entry)
}

async function opened (
  auth: Pick<AuthContext, 'sealer'>, request: FastifyRequest, entry: SealedSignIn | null
): Promise<PendingSecondFactor | null> {
  if (entry === null) return null
  noteSubject(request, entry.userId)
  const waiting: PendingSecondFactor = JSON.parse((await sealerOf(auth).open(entry.sealed, entry.userId)).text)
  return waiting.proof.at > Date.now() - PENDING_MS ? waiting : null
}

/** Returns the sign-in that waits in the session of a request; null without one. */
export async function pendingSecondFactor (
  auth: Pick<AuthContext, 'sealer'>, request: FastifyRequest
): Promise<PendingSecondFactor | null> {
  await useOwner(request, sessionId => keyOf(sessionId, SECOND_STEP))
  return opened(auth, request, await findEntry<SealedSignIn>(request, SECOND_STEP))
}

/** Counts an attempt at the sign-in that waits; null without one, and after five. */
export async function attemptSignIn (
  auth: Pick<AuthContext, 'sealer'>, request: FastifyRequest
): Promise<PendingSecondFactor | null> {
  await useOwner(request, sessionId => keyOf(sessionId, SECOND_STEP))
  return opened(auth, request, await attemptEntry<SealedSignIn>(request, SECOND_STEP, MAX_ATTEMPTS))
}

/** Takes the sign-in of a user that waits in the session: one request of all gets it. */
export async function takePendingSecondFactor (
  auth: Pick<AuthContext, 'sealer'>, request: FastifyRequest, userId: string
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
  submission: FactorSubmission,
  { proof: first, ...waiting }: PendingSecondFactor,
  { user, proof, addition }: { user: User, proof: Proof, addition?: FactorAddition }
): Promise<Principal> {
  const { request, outbox } = submission
  const { identity, held, newUser } = waiting
  if (isBlocked(user)) throw new AuthError('blocked')
  await refuseOtherSignIn(auth, { ...waiting, user }, first.method)
  const isAsFound = user.email === waiting.email && user.emailVerified === waiting.emailVerified
  const change = { identity: linkOf(identity), held, newUser, factors: addition }
  const writes = held !== null || addition !== undefined
  const isRefused = !isAsFound || (writes && await auth.accounts.signIn(waiting, change, { isTrial: true }) === null)
  if (isRefused) throw new AuthError('invalid_state')
  const found = { ...waiting, user, outbox, method: first.method }
  const write = async (): Promise<User> => {
    const written = await writeHeld(auth, request, found, addition)
    if (addition !== undefined) noteAddition(auth, submission, written, addition)
    return written
  }
  return completeSignIn(auth, request, { ...found, write }, [first, proof])
}

/** Tells of a factor that was added. */
export function noteAddition (
  { channel }: AuthContext, { request, outbox }: FactorSubmission, user: User, { proof, endsSessions }: FactorAddition
): void {
  const { userId } = user
  audit('factor-added', { userId, method: proof.method }, request)
  outbox.notice('factor-added', user)
  if (endsSessions) announceRevoke(channel, userId, request)
}

/** A form by which a user may authenticate with one of their factors. */
export interface FactorSubmission {
  readonly request: FastifyRequest
  readonly outbox: Outbox
}

/** A proof by a factor of the account. */
export type FactorProven = Proven & { readonly user: User }

/** The user whose code is checked, with the generation that they must still have. */
type CodeOwner = Pick<User, 'userId' | 'generation'>

/** Reads what the user typed: text that is no code is `invalid_code` before anything is counted. */
export function readCode (text: string): TypedCode {
  const code = codeShape(text)
  if (code === null) throw new AuthError('invalid_code')
  return code
}

/** Authenticates a user by a code, which counts for the client, and for the user. */
export async function verifyCode (
  auth: AuthContext, submission: FactorSubmission, text: string, owner: Owner
): Promise<FactorProven> {
  await auth.limits.factor(submission.request)
  const code = readCode(text)
  return spendCode(auth, submission, await owner(), code)
}

/**
 * Checks a code of a user and spends it: each works once, in all processes. The attempt counts for
 * the user, whether or not the code is right.
 *
 * @see RFC 6238 section 5.2
 */
async function spendCode (
  auth: Pick<AuthContext, 'accounts' | 'mayAct' | 'parts' | 'sealer'>,
  submission: FactorSubmission,
  owner: CodeOwner,
  { kind, code }: TypedCode
): Promise<FactorProven> {
  const { request, outbox } = submission
  const { userId } = owner
  const spend = kind === APP ? await totpSpending(auth, request, userId, code) : recoverySpending(code)
  const { user, spent } = await countAttempt(auth, submission, owner, spend)
  // It is wrong, or another request has spent it.
  if (spent === null) throw new AuthError('invalid_code')
  const proof = { method: kind, at: Date.now() }
  if (kind === APP) return { proof, user, codesLeft: null }
  const left = hashesIn(spent.data).length
  audit('recovery-code', { userId, left }, request)
  outbox.notice('recovery-code-used', user)
  return { proof, user, codesLeft: left }
}

/**
 * Counts an attempt at a code of a user, and spends the code if it is right; without `spend` the
 * code is checked afterwards.
 *
 * @throws AuthError `invalid_state` when the user's sessions were ended since; `rate_limited`, the
 * first time with a notice to the user
 */
export async function countAttempt (
  { accounts }: WithAccounts,
  { request, outbox }: FactorSubmission,
  { userId, generation }: CodeOwner,
  spend?: FactorSpending
): Promise<{ user: User, spent: Factor | null }> {
  const attempt = await accounts.attemptFactor(userId, generation, spend)
  if (attempt === null) throw new AuthError('invalid_state')
  if (!attempt.isRefused) return attempt
  if (attempt.isFirst) {
    audit('too-many-codes', { userId }, request)
    outbox.notice('too-many-codes', attempt.user)
  }
  throw new AuthError('rate_limited', { retryAfter: attempt.retryAfter })
}

/** Checks a code of an app before the rule of the account, which does not wait for the secret. */
async function totpSpending (
  auth: Pick<AuthContext, 'accounts' | 'parts' | 'sealer'>, request: FastifyRequest, userId: string, code: string
): Promise<FactorSpending> {
  const factor = (await auth.accounts.factors(userId)).find(({ kind }) => kind === APP)
  if (factor === undefined) return () => null
  const { text, isOld } = await openSecret(auth, request, { ...factor, userId })
  const step = stepOf(auth, text, code)
  if (step === null) return () => null
  const secret = isOld ? await sealerOf(auth).seal(text, factor.id) : factor.secret
  return factors => {
    const present = factors.find(({ id }) => id === factor.id)
    // A code of a step is good once, and after it no code of an earlier step.
    if (present === undefined || present.counter >= step) return null
    return { ...present, secret, counter: step, usedAt: Date.now() }
  }
}

function recoverySpending (code: string): FactorSpending {
  const hash = recoveryHash(code)
  return factors => {
    const present = factors.find(({ kind, data }) => kind === RECOVERY && hashesIn(data).includes(hash))
    if (present === undefined) return null
    const data = { ...present.data, hashes: hashesIn(present.data).filter(other => other !== hash) }
    return { ...present, data, usedAt: Date.now() }
  }
}

/** Returns the time step of a code; null for none within the tolerance. */
export function stepOf ({ parts }: Pick<AuthContext, 'parts'>, secret: string, code: string): number | null {
  const { tolerance } = needed(parts.secondFactor, 'secondFactor')
  return totpStep(secret, code, { now: Date.now(), tolerance })
}

/** Opens a secret of a user; one that cannot be opened is `unavailable`, and never "no factor". */
export async function openSecret (
  auth: Pick<AuthContext, 'sealer'>,
  request: FastifyRequest,
  { userId, id, secret }: { userId: string, id: string, secret: string | null }
): Promise<{ text: string, isOld: boolean }> {
  try {
    return await sealerOf(auth).open(secret ?? '', id)
  } catch (error) {
    audit('secret-unreadable', { userId }, request)
    throw error
  }
}
