/** What setting up authenticator apps and adding passkeys have in common. */
import type { FastifyRequest } from 'fastify'
import { type User, isBlocked } from '../../accounts/account.js'
import type { FactorChange } from '../../accounts/factors.js'
import type { Proof } from '../../authentication.js'
import { announceRevoke } from '../../audit.js'
import { type AuthContext, sealerOf } from '../../core/context.js'
import { type CurrentUser, current } from '../../core/current-user.js'
import { RECENT_SECONDS, assertFactorRecent, isRecent, missingAuthentication } from '../recent.js'
import { AuthError } from '../../errors.js'
import { newMailCode, normalCode } from './codes.js'
import { isEqual } from '../../secrets.js'
import { attemptEntry, findEntry, putEntry, renewSession, takeEntry, updateRecord } from '../../session/lifecycle.js'
import { type SessionRecord, principalOf, withProof } from '../../session/record.js'
import {
  type FactorAddition, type FactorSubmission, type PendingSecondFactor, continueSignIn, noteAddition,
  pendingSecondFactor, takePendingSecondFactor
} from './sign-in.js'
import { type MethodRules, assertCanAsk, isFactorRequiredOf } from '../../core/methods.js'

/** The kind of a mailed code, for setting up the user's first factor. */
const MAIL_CODE = 'mail-code'

interface FactorOwner {
  readonly user: User
  readonly record: SessionRecord
  /** Whether it takes a code that is mailed: in place of lost passkeys, or for a first factor. */
  readonly asksMailCode: boolean
}

/** A user who sets up a factor: signed in, or in a sign-in that waits for it. */
export type EnrollingUser = FactorOwner & { readonly waiting: null } |
  Omit<FactorOwner, 'record'> & { readonly record: null, readonly waiting: PendingSecondFactor }

/** How many codes one enrolment takes, and one code in a mail. */
export const MAX_ATTEMPTS = 5

/**
 * Returns the signed-in user if they have authenticated recently, by a factor if they have any.
 *
 * @param isLost whether the user says that they have lost all their passkeys
 */
export async function requireRecentFactor (
  auth: AuthContext, request: FastifyRequest, isLost = false
): Promise<FactorOwner> {
  const { user, record } = await current(auth, request)
  assertCanAsk(auth, user)
  const asksMailCode = isLost && missingAuthentication(auth, { user, record }) !== null &&
    await maySendMailCode(auth, { user, record })
  if (!asksMailCode) assertFactorRecent(auth, { user, record })
  return { user, record, asksMailCode }
}

/**
 * Whether a mailed code stands in for the passkeys of a user who signed in by password or at a
 * provider: never where a second factor is required, because who reads the mailbox has that code.
 */
export async function maySendMailCode (
  auth: AuthContext, { user, record: { principal, methods } }: Pick<CurrentUser, 'user' | 'record'>
): Promise<boolean> {
  const { factors: kinds = [] } = user
  const replaceable = auth.methods.filter(({ factor }) => factor?.isReplaceable === true)
  const isFirst = ({ method, at }: Proof): boolean =>
    ['password', 'provider'].includes(method) && isRecent(at, RECENT_SECONDS)
  return canMailCode(auth, user) && auth.sealer !== null &&
    kinds.length > 0 && kinds.every(kind => replaceable.some(({ name }) => name === kind)) && methods.some(isFirst) &&
    !await isFactorRequiredOf(auth, principal)
}

/**
 * Returns the user who may set up a factor in the session of a request.
 *
 * @throws AuthError `invalid_state` when since the sign-in that waits began the sessions of the
 * user were ended, or the user has set up a factor
 */
export async function enrollingUser (
  auth: AuthContext, request: FastifyRequest, isLost: boolean
): Promise<EnrollingUser> {
  if (principalOf(request) !== null) return { ...await requireRecentFactor(auth, request, isLost), waiting: null }
  const waiting = await pendingSecondFactor(auth, request)
  if (waiting?.needs !== 'enrolment') throw new AuthError('unauthenticated')
  const user = await auth.accounts.findUser({ userId: waiting.userId })
  const isAsFound = user?.generation === waiting.generation && user.factors === undefined
  if (user === null || !isAsFound) throw new AuthError('invalid_state')
  if (isBlocked(user)) throw new AuthError('blocked')
  // As of now. Otherwise someone who has stolen the password could set up their own factor.
  const asksMailCode = canMailCode(auth, user) && waiting.isNew !== 'user' && waiting.proof.method === 'password'
  return { user, record: null, waiting, asksMailCode }
}

interface VerifiedFactor extends Omit<FactorAddition, 'generation' | 'kinds'> {
  /** Whether the browser added it by itself, which proves nothing of the user. */
  isSilent?: boolean
}

/**
 * Adds a factor that was verified. The session of a signed-in user goes on, with a new id if the
 * others end; of a sign-in that waits, it is written with all else, when the application admits it.
 *
 * @throws AuthError `invalid_state` when the sessions of the user were ended since, or they have
 * another factor by now
 */
export async function addFactor (
  auth: AuthContext,
  submission: FactorSubmission,
  { user: found, record }: EnrollingUser,
  { isSilent = false, ...verified }: VerifiedFactor
): Promise<void> {
  const { request } = submission
  const { proof, endsSessions } = verified
  const { userId, generation, factors: kinds = [] } = found
  const addition = { ...verified, generation, kinds }
  if (record === null) {
    const waiting = await takePendingSecondFactor(auth, request, userId)
    await continueSignIn(auth, submission, waiting, { user: found, proof, addition })
    return
  }
  const user = await auth.accounts.changeFactors(userId, addition)
  if (user === null) throw new AuthError('invalid_state')
  noteAddition(auth, submission, user, addition)
  if (isSilent) return
  const proven = { ...record, at: proof.at, methods: withProof(record.methods, proof) }
  if (endsSessions) await renewSession(request, { ...proven, generation: user.generation })
  else await updateRecord(request, proven)
}

/** Changes the factors of the signed-in user. All other sessions end; this one gets a new id. */
export async function changeOwnFactors (
  { accounts, channel }: AuthContext, request: FastifyRequest, record: SessionRecord, change: FactorChange['change']
): Promise<void> {
  const { principal: { userId }, generation } = record
  const user = await accounts.changeFactors(userId, { generation, endsSessions: true, change })
  if (user === null) throw new AuthError('unauthenticated')
  announceRevoke(channel, userId, request)
  await renewSession(request, { ...record, generation: user.generation })
}

export async function assertNotRequired (auth: MethodRules, { principal }: SessionRecord): Promise<void> {
  if (!await isFactorRequiredOf(auth, principal)) return
  throw new AuthError('forbidden', { message: 'This application requires a second factor; add another one first.' })
}

/** Whether a code can be mailed to a user: to an address that they have confirmed. */
function canMailCode ({ mailer }: Pick<AuthContext, 'mailer'>, { email, emailVerified }: User): boolean {
  return mailer !== null && email !== null && emailVerified
}

/** Mails the code that setting up a first factor takes, or that stands in for lost passkeys. */
export async function sendMailCode (
  auth: Pick<AuthContext, 'sealer'>, { request, outbox }: FactorSubmission, user: User
): Promise<void> {
  outbox.refuseWhenFull()
  const { userId, email } = user
  const delay = await outbox.delayOf({ kind: 'enrolment', to: String(email), userId })
  if (delay !== null) return outbox.skip('enrolment', 'limit')
  const code = newMailCode()
  await putEntry(request, MAIL_CODE, { code: await sealerOf(auth).seal(code, userId) })
  outbox.code('enrolment', code, user)
}

export async function isCodeMailed (request: FastifyRequest): Promise<boolean> {
  return await findEntry(request, MAIL_CODE) !== null
}

export async function assertMailCode (
  auth: Pick<AuthContext, 'sealer'>, request: FastifyRequest, userId: string, mailCode = ''
): Promise<void> {
  // The last attempt takes the code: one without attempts does not count as mailed.
  const mailed = await attemptEntry<{ code: string }>(request, MAIL_CODE, MAX_ATTEMPTS - 1) ??
    await takeEntry<{ code: string }>(request, MAIL_CODE)
  if (mailed === null) throw new AuthError('invalid_state')
  const { text } = await sealerOf(auth).open(mailed.code, userId)
  if (!isEqual(text, normalCode(mailCode))) {
    throw new AuthError('invalid_code', { message: 'The code from the e-mail is wrong; type the six digits of it.' })
  }
}
