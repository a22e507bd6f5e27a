import { randomInt, randomUUID } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { audit } from '../audit.js'
import type { Proof } from '../authentication.js'
import { type AuthChannel, announceRevoke } from '../channel.js'
import { AuthError } from '../errors.js'
import { newRecoveryCodes, normalCode, recoveryHash } from '../factors/codes.js'
import { newTotpSecret, qrSvg, totpUri } from '../factors/totp.js'
import type { Outbox } from '../mails/outbox.js'
import { isEqual } from '../secrets.js'
import { attemptEntry, findEntry, putEntry, takeEntry } from '../session/pending-steps.js'
import { renewSession, updateRecord } from '../session/lifecycle.js'
import { type SessionRecord, principalOf, withProof } from '../session/record.js'
import { ENROLMENT, MAIL_CODE } from '../store/one-time-entries.js'
import { type Factor, type FactorKind, type User, isBlocked } from '../accounts/account.js'
import { type FactorChange, withoutFactors } from '../accounts/factors.js'
import { countAttempt, openSecret, readCode, stepOf } from './factor-codes.js'
import {
  RECENT_SECONDS, assertCanAsk, confirmedUser, isFactorRequiredOf, isRecent, missingAuthentication, reauthenticationBy
} from './methods.js'
import {
  type PendingSecondFactor, continueSignIn, sealerOf, takePendingSecondFactor, pendingSecondFactor
} from '../sign-in/second-factor.js'
import type { FactorRules, FactorSignInRules, StepRules } from './sign-in-rules.js'

/** The rules by which users change their factors, with second factors, passkeys or both. */
export interface FactorChanges extends FactorSignInRules {
  readonly channel: AuthChannel
}

/** A signed-in user who changes their factors. */
export interface FactorOwner {
  readonly user: User
  readonly record: SessionRecord
  /** Whether a code that is mailed stands in for passkeys that the user has lost. */
  readonly asksMailCode: boolean
}

/** A user who sets up a factor: signed in, or in a sign-in that waits for it. */
export type EnrollingUser = FactorOwner & { readonly waiting: null } | {
  readonly user: User
  readonly record: null
  readonly waiting: PendingSecondFactor
  /** Whether the user had the address before, so that a code is mailed to it. */
  readonly asksMailCode: boolean
}

/** What an authenticator app is given. */
export interface TotpEnrolment {
  /** The `otpauth:` URI. */
  uri: string
  /** The secret in it, in base32. */
  secret: string
  /** The URI as a QR code; null without the package uqr, and for a URI that is too long. */
  svg: string | null
}

/** An authenticator app before its first code. The secret is sealed for the id of the factor. */
interface PendingTotp {
  readonly userId: string
  readonly generation: number
  readonly id: string
  readonly secret: string
}

/** How many codes one enrolment takes, and one code in a mail. */
const MAX_ATTEMPTS = 5

/**
 * Returns the signed-in user if they have authenticated recently, by one of their factors if they
 * have any.
 *
 * @param isLost whether the user says that they have lost all their passkeys
 * @throws AuthError `unauthenticated`, `reauthenticate`, `unavailable`
 */
export async function requireRecentFactor (
  request: FastifyRequest, { store, factors }: Pick<FactorSignInRules, 'store' | 'factors'>, isLost = false
): Promise<FactorOwner> {
  const { user, record } = await confirmedUser(request, store)
  assertCanAsk(user, factors)
  const missing = missingAuthentication(user, record, factors)
  if (missing === null) return { user, record, asksMailCode: false }
  if (isLost && await maySendMailCode(user, record, factors)) return { user, record, asksMailCode: true }
  throw reauthenticationBy(missing)
}

/**
 * Whether a code that is mailed stands in for the passkeys of a user, who signed in by password or
 * at a provider: never where the application requires a second factor, because who reads the
 * mailbox has that code.
 */
export async function maySendMailCode (
  { factors: kinds = [], email, emailVerified }: User, { principal, methods }: SessionRecord, factors: FactorRules
): Promise<boolean> {
  const isFirst = ({ method, at }: Proof): boolean =>
    ['password', 'provider'].includes(method) && isRecent(at, RECENT_SECONDS)
  return factors.sendsMails && factors.sealer !== null && email !== null && emailVerified &&
    kinds.length > 0 && kinds.every(kind => kind === 'passkey') && methods.some(isFirst) &&
    !await isFactorRequiredOf(principal, factors)
}

/**
 * Returns the user who may set up a factor in the session of a request, at the generation of the
 * session or of the sign-in that waits.
 *
 * @param isLost as for {@link requireRecentFactor}
 * @throws AuthError `unauthenticated`, `reauthenticate`, `blocked`, `unavailable`; `invalid_state`
 * when since the sign-in began the sessions of the user were ended, or the user has set up a factor
 */
export async function enrollingUser (
  request: FastifyRequest, rules: FactorSignInRules, isLost = false
): Promise<EnrollingUser> {
  if (principalOf(request) !== null) {
    return { ...await requireRecentFactor(request, rules, isLost), waiting: null }
  }
  const waiting = await pendingSecondFactor(request, rules)
  if (waiting?.needs !== 'enrolment') throw new AuthError('unauthenticated')
  const user = await rules.store.findUser({ userId: waiting.userId })
  if (user === null || (user.generation ?? 0) !== waiting.generation) throw new AuthError('invalid_state')
  if (user.factors !== undefined) throw new AuthError('invalid_state')
  if (isBlocked(user)) throw new AuthError('blocked')
  return { user, record: null, waiting, asksMailCode: waiting.asksMailCode }
}

/**
 * Begins to set up an authenticator app. Nothing of the account changes until a code confirms it.
 *
 * @throws AuthError as {@link enrollingUser}
 */
export async function beginTotp (
  request: FastifyRequest, rules: StepRules, { isLost, outbox }: { isLost: boolean, outbox: Outbox }
): Promise<TotpEnrolment> {
  const { user, asksMailCode } = await enrollingUser(request, rules, isLost)
  const { userId, generation = 0 } = user
  const [id, secret] = [randomUUID(), newTotpSecret()]
  const sealed = await rules.factors.secondFactor.sealer.seal(secret, id)
  const pending: PendingTotp = { userId, generation, id, secret: sealed }
  await putEntry(request, ENROLMENT, pending)
  if (asksMailCode) await mailCode(request, rules, user, outbox)
  return totpEnrolment(rules, user, secret)
}

/**
 * Returns what waits to be confirmed in the session of a request; null without it.
 *
 * @throws AuthError as {@link enrollingUser}
 */
export async function pendingTotp (
  request: FastifyRequest, rules: StepRules, isLost: boolean
): Promise<{ enrolling: EnrollingUser, enrolment: TotpEnrolment | null }> {
  const enrolling = await enrollingUser(request, rules, isLost)
  const { user } = enrolling
  const pending = await findEntry<PendingTotp>(request, ENROLMENT)
  if (pending?.userId !== user.userId) return { enrolling, enrolment: null }
  const { text } = await openSecret(request, rules, pending)
  return { enrolling, enrolment: await totpEnrolment(rules, user, text) }
}

/**
 * Confirms an authenticator app by its first code, which is spent. All other sessions of the user
 * end; a sign-in that waits for it is completed.
 *
 * @returns the recovery codes, which no answer contains again
 * @throws what the hook throws; AuthError `invalid_code`, `invalid_state`, `rate_limited`, and as
 * {@link enrollingUser}
 */
export async function confirmTotp (
  request: FastifyRequest,
  rules: FactorChanges & StepRules,
  { code, isLost, mailCode, outbox }: { code: string, isLost: boolean, mailCode: string | undefined, outbox: Outbox }
): Promise<string[]> {
  const typed = readCode(code)
  const enrolling = await enrollingUser(request, rules, isLost)
  const { user: { userId, generation = 0 }, asksMailCode } = enrolling
  const pending = await attemptEntry<PendingTotp>(request, ENROLMENT, MAX_ATTEMPTS)
  if (pending?.userId !== userId || pending.generation !== generation) throw new AuthError('invalid_state')
  await countAttempt(request, rules, { userId, generation }, outbox)
  if (asksMailCode) await assertMailCode(request, rules, userId, mailCode)
  const { id, secret } = pending
  const { text } = await openSecret(request, rules, pending)
  const step = typed.kind === 'totp' ? stepOf(rules, text, typed.code) : null
  if (step === null) throw new AuthError('invalid_code')
  if (await takeEntry(request, ENROLMENT) === null) throw new AuthError('invalid_state')

  const recoveryCodes = newRecoveryCodes()
  const totp = newFactor('totp', { id, secret, counter: step, usedAt: Date.now() })
  await addFactor(request, rules, enrolling, {
    proof: { method: 'totp', at: Date.now() },
    outbox,
    endsSessions: true,
    change: factors => [...factors.filter(({ kind }) => kind === 'passkey'), totp, recoveryFactor(recoveryCodes)]
  })
  return recoveryCodes
}

/** A factor that a user adds, and what adding it proved. */
export interface FactorAddition extends Omit<FactorChange, 'generation'> {
  proof: Proof & { method: 'totp' | 'passkey' }
  outbox: Outbox
}

/**
 * Adds a factor that was verified to the account of a user. The session of a signed-in user goes
 * on, with a new id if the others end; the sign-in of another one is completed.
 *
 * @throws what the hook throws; AuthError `invalid_state` when the user's sessions were ended
 * since, or they have another factor by now; `exists`, `blocked`, `unavailable`
 */
export async function addFactor (
  request: FastifyRequest,
  rules: FactorChanges,
  { user: { userId, generation = 0, factors: kinds = [] }, record }: EnrollingUser,
  { proof, outbox, endsSessions, change }: FactorAddition
): Promise<void> {
  // Before the change: only the request that completes the sign-in adds the factor.
  const waiting = record === null ? await takePendingSecondFactor(request, rules, userId) : null
  const user = await rules.accounts.changeFactors(userId, { generation, kinds, endsSessions, change })
  if (user === null) throw new AuthError('invalid_state')
  audit('factor-added', { userId, method: proof.method }, request)
  outbox.notice('factor-added', user)
  if (endsSessions) announceRevoke(rules.channel, userId, request)
  if (waiting !== null) await continueSignIn(request, rules, waiting, { user, proof, outbox })
  if (record === null) return
  const proven = { ...record, at: proof.at, methods: withProof(record.methods, proof) }
  if (endsSessions) await keepSession(request, proven, user)
  else await updateRecord(request, proven)
}

/**
 * Removes the authenticator app of the signed-in user, and the recovery codes with the last factor.
 *
 * @throws AuthError `not_found` without one, `forbidden` where the application requires a second
 * factor, and as {@link requireRecentFactor}
 */
export async function removeTotp (request: FastifyRequest, rules: FactorChanges, outbox: Outbox): Promise<void> {
  const { user, record } = await requireRecentFactor(request, rules)
  const { factors: kinds = [] } = user
  if (!kinds.includes('totp')) {
    throw new AuthError('not_found', { message: 'This account has no authenticator app.' })
  }
  if (!kinds.includes('passkey')) await assertNotRequired(rules, record)
  await changeFactors(request, rules, record, factors => withoutFactors(factors, ({ kind }) => kind === 'totp'))
  audit('factor-removed', { userId: user.userId, method: 'totp', by: 'user' }, request)
  outbox.notice('factor-removed', user)
}

/**
 * Replaces the recovery codes of the signed-in user.
 *
 * @returns the new ones, which no answer contains again
 * @throws AuthError `second_factor_missing`, and as {@link requireRecentFactor}
 */
export async function renewRecoveryCodes (
  request: FastifyRequest, rules: FactorChanges, outbox: Outbox
): Promise<string[]> {
  const { user, record } = await requireRecentFactor(request, rules)
  if (user.factors === undefined) throw new AuthError('second_factor_missing')
  const codes = newRecoveryCodes()
  await changeFactors(request, rules, record, factors => [
    ...factors.filter(({ kind }) => kind !== 'recovery'), recoveryFactor(codes)
  ])
  audit('recovery-codes', { userId: user.userId }, request)
  outbox.notice('recovery-codes-renewed', user)
  return codes
}

/**
 * Changes the factors of the signed-in user. All other sessions of the user end; this one gets a
 * new id.
 *
 * @throws AuthError `unauthenticated` when it has ended since, `invalid_state`, `unavailable`; what
 * the change throws
 */
export async function changeFactors (
  request: FastifyRequest, { accounts, channel }: FactorChanges, record: SessionRecord, change: FactorChange['change']
): Promise<void> {
  const { principal: { userId }, generation } = record
  const user = await accounts.changeFactors(userId, { generation, endsSessions: true, change })
  if (user === null) throw new AuthError('unauthenticated')
  announceRevoke(channel, userId, request)
  await keepSession(request, record, user)
}

/** Lets the session of a request go on, with a new id, after a change that ended the others. */
async function keepSession (request: FastifyRequest, record: SessionRecord, { generation = 0 }: User): Promise<void> {
  await renewSession(request, { ...record, generation })
}

/**
 * Refuses to remove the last factor of a user who needs one.
 *
 * @throws AuthError `forbidden`
 */
export async function assertNotRequired ({ factors }: FactorChanges, { principal }: SessionRecord): Promise<void> {
  if (!await isFactorRequiredOf(principal, factors)) return
  throw new AuthError('forbidden', { message: 'This application requires a second factor; add another one first.' })
}

/** Mails the code that setting up a first factor takes, or that stands in for lost passkeys. */
export async function mailCode (
  request: FastifyRequest, { factors }: FactorSignInRules, user: User, outbox: Outbox
): Promise<void> {
  outbox.refuseWhenFull()
  const code = String(randomInt(1_000_000)).padStart(6, '0')
  await putEntry(request, MAIL_CODE, { code: await sealerOf(factors).seal(code, user.userId) })
  outbox.code('enrolment', code, user)
}

/** Whether the code was mailed in this session. */
export async function isCodeMailed (request: FastifyRequest): Promise<boolean> {
  return await findEntry(request, MAIL_CODE) !== null
}

/**
 * Checks the code that was mailed.
 *
 * @throws AuthError `invalid_code`; `invalid_state` after five attempts
 */
export async function assertMailCode (
  request: FastifyRequest, { factors }: FactorSignInRules, userId: string, mailCode = ''
): Promise<void> {
  const mailed = await attemptEntry<{ code: string }>(request, MAIL_CODE, MAX_ATTEMPTS)
  if (mailed === null) throw new AuthError('invalid_state')
  const { text } = await sealerOf(factors).open(mailed.code, userId)
  if (!isEqual(text, normalCode(mailCode))) {
    throw new AuthError('invalid_code', { message: 'The code from the e-mail is wrong; type the six digits of it.' })
  }
}

async function totpEnrolment (
  { factors: { secondFactor: { issuer } } }: StepRules, { email, name, userId }: User, secret: string
): Promise<TotpEnrolment> {
  const uri = totpUri({ issuer, account: email ?? name ?? userId, secret })
  return { uri, secret, svg: await qrSvg(uri) }
}

function newFactor (kind: FactorKind, content: Partial<Factor>): Factor {
  const id = randomUUID()
  return { id, kind, name: null, secret: null, data: {}, counter: 0, createdAt: Date.now(), usedAt: null, ...content }
}

function recoveryFactor (codes: readonly string[]): Factor {
  return newFactor('recovery', { data: { hashes: codes.map(recoveryHash) } })
}
