import { randomUUID } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { audit } from '../audit.js'
import type { Proof } from '../authentication.js'
import { AuthError } from '../errors.js'
import { type TypedCode, codeShape } from '../factors/code-shape.js'
import { recoveryHash } from '../factors/recovery-codes.js'
import { totpStep } from '../factors/totp.js'
import type { Outbox } from '../mails/outbox.js'
import type { Factor, User } from '../accounts/account.js'
import { hashesIn } from './factor-list.js'
import type { StepRules } from './sign-in-rules.js'

/** The user whose code is checked, with the generation that they must still have. */
export interface CodeOwner {
  readonly userId: string
  readonly generation: number
}

/** A code that was right, and is spent now. */
export interface SpentCode {
  proof: Proof
  /** The user as they are now. */
  user: User
  /** After a recovery code; null after another code. */
  recoveryCodesLeft: number | null
}

/** What changes the factors of a user, and how many recovery codes are left. */
interface Spending {
  change: (factors: readonly Factor[]) => readonly Factor[] | null
  left: number | null
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
 * Checks a code of a user and spends it: each works once, in all processes. The attempt counts for
 * the user before the code is looked at.
 *
 * @throws AuthError `invalid_code`, `invalid_state` when the user's sessions were ended since,
 * `rate_limited`, `unavailable`
 * @see RFC 6238 section 5.2
 */
export async function spendCode (
  request: FastifyRequest,
  rules: StepRules,
  { userId, generation }: CodeOwner,
  { code: { kind, code }, outbox }: { code: TypedCode, outbox: Outbox }
): Promise<SpentCode> {
  const { user: { factors: kinds = [] }, factors } = await countAttempt(request, rules, { userId, generation }, outbox)
  const factor = factors.find(factor => factor.kind === kind)
  if (factor === undefined) {
    if (!kinds.includes(kind)) throw new AuthError('invalid_code')
    throw new AuthError('unavailable', { cause: new Error(`the factor ${kind} of the user ${userId} is missing`) })
  }
  const { change, left } = kind === 'totp'
    ? await spendTotp(request, rules, { userId, factor, code })
    : spendRecoveryCode(factor, code)
  const user = await rules.accounts.changeFactors(userId, { generation, endsSessions: false, change })
  // Another request has spent it, or the user's sessions were ended.
  if (user === null) throw new AuthError('invalid_code')
  if (left !== null) {
    audit('recovery-code', { userId, left }, request)
    outbox.notice('recovery-code-used', user)
  }
  return { proof: { method: kind, at: Date.now() }, user, recoveryCodesLeft: left }
}

/**
 * Counts an attempt at a code of a user, and returns their factors.
 *
 * @throws AuthError `invalid_state`, `rate_limited` with a notice to the user
 */
export async function countAttempt (
  request: FastifyRequest,
  { accounts }: Pick<StepRules, 'accounts'>,
  { userId, generation }: CodeOwner,
  outbox: Outbox
): Promise<{ user: User, factors: readonly Factor[] }> {
  const attempt = await accounts.attemptFactor(userId, generation)
  if (attempt === null) throw new AuthError('invalid_state')
  if (!attempt.isRefused) return attempt
  const { user, retryAfter, isFirst } = attempt
  if (isFirst) {
    audit('factor-guessing', { userId }, request)
    outbox.notice('factor-guessing', user)
  }
  throw new AuthError('rate_limited', { retryAfter })
}

async function spendTotp (
  request: FastifyRequest,
  rules: StepRules,
  { userId, factor, code }: { userId: string, factor: Factor, code: string }
): Promise<Spending> {
  const { sealer } = rules.factors.secondFactor
  const { text, isOld } = await openSecret(request, rules, { userId, id: factor.id, secret: factor.secret })
  const step = stepOf(rules, text, code)
  if (step === null) throw new AuthError('invalid_code')
  const secret = isOld ? await sealer.seal(text, factor.id) : factor.secret
  const spent = { secret, counter: step, usedAt: Date.now() }
  return {
    left: null,
    // A code of a step is good once, and after it no code of an earlier step.
    change: factors => factors.some(({ id, counter }) => id === factor.id && counter < step)
      ? factors.map(present => present.id === factor.id ? { ...present, ...spent } : present)
      : null
  }
}

function spendRecoveryCode (factor: Factor, code: string): Spending {
  const hash = recoveryHash(code)
  const left = hashesIn(factor.data).filter(other => other !== hash)
  if (left.length === hashesIn(factor.data).length) throw new AuthError('invalid_code')
  return {
    left: left.length,
    change: factors => factors.some(present => present.id === factor.id && hashesIn(present.data).includes(hash))
      ? factors.map(present => present.id === factor.id ? withoutHash(present, hash) : present)
      : null
  }
}

function withoutHash (factor: Factor, hash: string): Factor {
  const hashes = hashesIn(factor.data).filter(other => other !== hash)
  return { ...factor, data: { ...factor.data, hashes }, usedAt: Date.now() }
}

/** Makes a factor that has not been used. */
export function newFactor (kind: Factor['kind'], content: Partial<Factor>): Factor {
  const id = randomUUID()
  return { id, kind, name: null, secret: null, data: {}, counter: 0, createdAt: Date.now(), usedAt: null, ...content }
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
    audit('sealed-unreadable', { userId }, request)
    throw error
  }
}
