import type { FastifyRequest } from 'fastify'
import type { Factor, User } from '../accounts/account.js'
import type { FactorSpending } from '../accounts/factors.js'
import { audit } from '../audit.js'
import type { Proof } from '../authentication.js'
import { type AuthContext, needed, sealerOf } from '../context.js'
import { current } from '../current-user/current.js'
import { AuthError } from '../errors.js'
import { type TypedCode, codeShape, recoveryHash } from '../factors/codes.js'
import { hashesIn } from '../factors/factor-list.js'
import { totpStep } from '../factors/totp.js'
import type { Outbox } from '../mails/outbox.js'
import { prove } from './reauthentication.js'

/** A form by which a user may authenticate with one of their factors. */
export interface FactorForm {
  readonly request: FastifyRequest
  readonly outbox: Outbox
}

/** The user whose code is checked, with the generation that they must still have. */
type CodeOwner = Pick<User, 'userId' | 'generation'>

/** Reads what the user typed: text that is no code is `invalid_code` before anything is counted. */
export function readCode (text: string): TypedCode {
  const code = codeShape(text)
  if (code === null) throw new AuthError('invalid_code')
  return code
}

export async function reauthenticateByCode (auth: AuthContext, form: FactorForm, text: string): Promise<void> {
  const code = readCode(text)
  const { user, record } = await current(auth, form.request)
  await spendCode(auth, form, user, code)
  await prove(form.request, record, code.kind)
}

/**
 * Checks a code of a user and spends it: each works once, in all processes. The attempt counts for
 * the user, whether or not the code is right.
 *
 * @returns the user as they are now; after a recovery code, how many are left
 * @see RFC 6238 section 5.2
 */
export async function spendCode (
  auth: AuthContext, form: FactorForm, owner: CodeOwner, { kind, code }: TypedCode
): Promise<{ proof: Proof, user: User, recoveryCodesLeft: number | null }> {
  const { request, outbox } = form
  const { userId } = owner
  const spend = kind === 'totp' ? await totpSpending(auth, request, userId, code) : recoverySpending(code)
  const { user, spent } = await countAttempt(auth, form, owner, spend)
  // It is wrong, or another request has spent it.
  if (spent === null) throw new AuthError('invalid_code')
  const proof = { method: kind, at: Date.now() }
  if (kind === 'totp') return { proof, user, recoveryCodesLeft: null }
  const left = hashesIn(spent.data).length
  audit('recovery-code', { userId, left }, request)
  outbox.notice('recovery-code-used', user)
  return { proof, user, recoveryCodesLeft: left }
}

/**
 * Counts an attempt at a code of a user, and spends the code if it is right; without `spend` the
 * code is checked afterwards.
 *
 * @throws AuthError `invalid_state` when the user's sessions were ended since; `rate_limited`, the
 * first time with a notice to the user
 */
export async function countAttempt (
  { accounts }: AuthContext, { request, outbox }: FactorForm, { userId, generation }: CodeOwner, spend?: FactorSpending
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
  auth: AuthContext, request: FastifyRequest, userId: string, code: string
): Promise<FactorSpending> {
  const factor = (await auth.accounts.factors(userId)).find(({ kind }) => kind === 'totp')
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
    const present = factors.find(({ kind, data }) => kind === 'recovery' && hashesIn(data).includes(hash))
    if (present === undefined) return null
    const data = { ...present.data, hashes: hashesIn(present.data).filter(other => other !== hash) }
    return { ...present, data, usedAt: Date.now() }
  }
}

/** Returns the time step of a code; null for none within the tolerance. */
export function stepOf ({ factors: { secondFactor } }: AuthContext, secret: string, code: string): number | null {
  const { tolerance } = needed(secondFactor, 'secondFactor')
  return totpStep(secret, code, { now: Date.now(), tolerance })
}

/** Opens a secret of a user; one that cannot be opened is `unavailable`, and never "no factor". */
export async function openSecret (
  auth: AuthContext,
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
