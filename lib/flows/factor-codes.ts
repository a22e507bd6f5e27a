import type { FastifyRequest } from 'fastify'
import { audit } from '../audit.js'
import type { Proof } from '../authentication.js'
import { AuthError } from '../errors.js'
import { type TypedCode, codeShape, recoveryHash } from '../factors/codes.js'
import { totpStep } from '../factors/totp.js'
import type { Outbox } from '../mails/outbox.js'
import type { Factor, User } from '../accounts/account.js'
import { changeOf } from '../accounts/factors.js'
import { hashesIn } from './factor-list.js'
import { prove } from './reauthentication.js'
import { confirmedRecord } from '../current-user/refresh.js'
import type { StepRules } from './sign-in-rules.js'

/** The user whose code is checked, with the generation that they must still have. */
interface CodeOwner {
  readonly userId: string
  readonly generation: number
}

/**
 * Reads a code as the user typed it: that of an authenticator app, or a recovery code.
 *
 * @throws AuthError `invalid_code` for text that is not a code, before anything is counted
 */
export function readCode (text: string): TypedCode {
  const code = codeShape(text)
  if (code === null) throw new AuthError('invalid_code')
  return code
}

/**
 * Authenticates the signed-in user again, by a code.
 *
 * @throws AuthError `unauthenticated`, and as {@link readCode} and {@link spendCode}
 */
export async function reauthenticateByCode (
  request: FastifyRequest, rules: StepRules, text: string, outbox: Outbox
): Promise<void> {
  const code = readCode(text)
  const record = await confirmedRecord(request, rules.store)
  const { principal: { userId }, generation } = record
  const { proof } = await spendCode(request, rules, { userId, generation }, { code, outbox })
  await prove(request, record, proof.method)
}

/**
 * Checks a code of a user and spends it: each works once, in all processes. The attempt counts for
 * the user before the code is looked at.
 *
 * @returns the user as they are now; after a recovery code, how many are left
 * @throws AuthError `invalid_code`, `invalid_state` when the user's sessions were ended since,
 * `rate_limited`, `unavailable`
 * @see RFC 6238 section 5.2
 */
export async function spendCode (
  request: FastifyRequest,
  rules: StepRules,
  owner: CodeOwner,
  { code: { kind, code }, outbox }: { code: TypedCode, outbox: Outbox }
): Promise<{ proof: Proof, user: User, recoveryCodesLeft: number | null }> {
  const { userId, generation } = owner
  const { user: { factors: kinds = [] }, factors } = await countAttempt(request, rules, owner, outbox)
  const factor = factors.find(factor => factor.kind === kind)
  if (factor === undefined) {
    if (!kinds.includes(kind)) throw new AuthError('invalid_code')
    throw new AuthError('unavailable', { cause: new Error(`the factor ${kind} of the user ${userId} is missing`) })
  }
  const spend = kind === 'totp' ? await totpSpending(request, rules, owner, { factor, code }) : recoverySpending(code)
  const change = changeOf(factor.id, spend)
  const user = await rules.accounts.changeFactors(userId, { generation, endsSessions: false, change })
  // It is wrong, another request has spent it, or the user's sessions were ended.
  if (user === null) throw new AuthError('invalid_code')
  const proof = { method: kind, at: Date.now() }
  if (kind === 'totp') return { proof, user, recoveryCodesLeft: null }
  const left = hashesIn(factor.data).length - 1
  audit('recovery-code', { userId, left }, request)
  outbox.notice('recovery-code-used', user)
  return { proof, user, recoveryCodesLeft: left }
}

/**
 * Counts an attempt at a code of a user, and returns their factors.
 *
 * @throws AuthError `invalid_state`, `rate_limited` with a notice to the user
 */
export async function countAttempt (
  request: FastifyRequest, { accounts }: Pick<StepRules, 'accounts'>, { userId, generation }: CodeOwner, outbox: Outbox
): Promise<{ user: User, factors: readonly Factor[] }> {
  const attempt = await accounts.attemptFactor(userId, generation)
  if (attempt === null) throw new AuthError('invalid_state')
  if (!attempt.isRefused) return attempt
  if (attempt.isFirst) {
    audit('too-many-codes', { userId }, request)
    outbox.notice('too-many-codes', attempt.user)
  }
  throw new AuthError('rate_limited', { retryAfter: attempt.retryAfter })
}

/** What becomes of a factor by a code; null where the code is not good. */
type Spending = (present: Factor) => Factor | null

async function totpSpending (
  request: FastifyRequest, rules: StepRules, { userId }: CodeOwner, { factor, code }: { factor: Factor, code: string }
): Promise<Spending> {
  const { text, isOld } = await openSecret(request, rules, { ...factor, userId })
  const step = stepOf(rules, text, code)
  if (step === null) throw new AuthError('invalid_code')
  const secret = isOld ? await rules.factors.secondFactor.sealer.seal(text, factor.id) : factor.secret
  // A code of a step is good once, and after it no code of an earlier step.
  return present => present.counter < step ? { ...present, secret, counter: step, usedAt: Date.now() } : null
}

function recoverySpending (code: string): Spending {
  const hash = recoveryHash(code)
  return present => {
    const hashes = hashesIn(present.data)
    if (!hashes.includes(hash)) return null
    const data = { ...present.data, hashes: hashes.filter(other => other !== hash) }
    return { ...present, data, usedAt: Date.now() }
  }
}

/** Returns the time step of a code; null for a code of no step within the tolerance. */
export function stepOf ({ factors: { secondFactor } }: StepRules, secret: string, code: string): number | null {
  return totpStep(secret, code, { now: Date.now(), tolerance: secondFactor.tolerance })
}

/**
 * Opens a sealed secret of a user.
 *
 * @throws AuthError `unavailable` for one that cannot be opened: that is never "no factor"
 */
export async function openSecret (
  request: FastifyRequest,
  { factors: { secondFactor: { sealer } } }: StepRules,
  { userId, id, secret }: { userId: string, id: string, secret: string | null }
): Promise<{ text: string, isOld: boolean }> {
  try {
    return await sealer.open(secret ?? '', id)
  } catch (error) {
    audit('secret-unreadable', { userId }, request)
    throw error
  }
}
