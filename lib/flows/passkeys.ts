import type { FastifyRequest } from 'fastify'
import { audit } from '../audit.js'
import type { Proof } from '../authentication.js'
import { isUserId } from '../base/uuid.js'
import { AuthError, PASSKEY_EXISTS, PASSKEY_REFUSED } from '../errors.js'
import {
  CEREMONY_MS, CounterRegression, type PasskeyCeremonies, UnknownPasskey, passkeyName, readResponse
} from '../factors/passkey-ceremonies.js'
import type { Outbox } from '../mails/outbox.js'
import { putEntry, takeEntry } from '../session/pending-steps.js'
import type { Principal } from '../session/record.js'
import { CHALLENGE, DAY_MS } from '../store/one-time-entries.js'
import type { Factor, User } from '../accounts/account.js'
import { changeOf, withoutFactors } from '../accounts/factors.js'
import {
  type FactorChanges, addFactor, assertMailCode, assertNotRequired, changeFactors, enrollingUser, isCodeMailed,
  mailCode, requireRecentFactor
} from './enrolment.js'
import { countAttempt } from './factor-codes.js'
import { recentRecord } from './methods.js'
import { prove } from './reauthentication.js'
import { confirmedRecord, presentPrincipal } from '../current-user/refresh.js'
import {
  type SecondFactorSignIn, attemptSignIn, continueSignIn, takePendingSecondFactor, pendingSecondFactor
} from '../sign-in/second-factor.js'
import { identityOfUser, signIn, written } from '../sign-in/sign-in.js'
import type { FactorRules } from './sign-in-rules.js'

/** What the flows of passkeys work with. */
export interface PasskeyRules extends FactorChanges {
  readonly factors: FactorRules & { readonly passkeys: PasskeyCeremonies }
}

/** What a challenge is for: a new passkey, a sign-in, or the second factor of a user. */
export type Ceremony = 'register' | 'login' | 'factor'

/** A challenge in its one-time entry. The session that it is of is that of one user. */
interface Challenge {
  readonly ceremony: Ceremony
  /** In milliseconds since the epoch. */
  readonly expiresAt: number
}

/** For each session. */
const MAX_CHALLENGES = 4
/** For each user. */
const MAX_PASSKEYS = 20

/**
 * Begins a ceremony: makes a challenge for this session and this purpose.
 *
 * @returns the options for the browser, as JSON
 * @throws AuthError `invalid_state` when no user is there to authenticate by a second factor;
 * `unauthenticated`, `reauthenticate` for a new passkey; `unavailable`
 */
export async function beginCeremony (
  request: FastifyRequest,
  rules: PasskeyRules,
  { ceremony, isLost, outbox }: { ceremony: Ceremony, isLost: boolean, outbox: Outbox }
): Promise<Readonly<Record<string, unknown>>> {
  const { passkeys } = rules.factors
  const user = ceremony === 'login'
    ? null
    : ceremony === 'factor' ? await provingUser(request, rules) : await addingUser(request, rules, isLost, outbox)
  const own = user === null ? [] : passkeysIn(await rules.accounts.factors(user.userId))
  const { challenge, options } = user === null
    ? passkeys.loginOptions()
    : ceremony === 'factor' ? passkeys.factorOptions(own) : passkeys.registrationOptions(user, own)
  const content: Challenge = { ceremony, expiresAt: Date.now() + CEREMONY_MS }
  await putEntry(request, CHALLENGE, content, { key: challenge, most: MAX_CHALLENGES })
  return options
}

/** Returns the user who adds a passkey: signed in, or in a sign-in that waits. */
async function addingUser (
  request: FastifyRequest, rules: PasskeyRules, isLost: boolean, outbox: Outbox
): Promise<User> {
  const { user, asksMailCode } = await enrollingUser(request, rules, isLost)
  // One that was sent stays good, so that the user can begin a second time.
  if (asksMailCode && !await isCodeMailed(request)) await mailCode(request, rules, user, outbox)
  return user
}

/** Returns the user who authenticates by a passkey: signed in, or in a sign-in that waits. */
async function provingUser (request: FastifyRequest, rules: PasskeyRules): Promise<User> {
  const signedIn = await presentPrincipal(request, rules.store)
  const { userId = null } = signedIn ?? await pendingSecondFactor(request, rules) ?? {}
  const user = userId === null ? null : await rules.store.findUser({ userId })
  if (user === null) throw new AuthError('invalid_state')
  return user
}

/**
 * Adds a passkey to the account of a user, or completes the sign-in that waits for it.
 *
 * @param form `name`: that of the user for the passkey; undefined for one with the date
 * @returns the passkey
 * @throws what the hook throws; AuthError `invalid`, `invalid_state`, `exists`, `too_many`,
 * `invalid_code`, and as {@link enrollingUser}
 */
export async function registerPasskey (
  request: FastifyRequest,
  rules: PasskeyRules,
  form: { response: unknown, name: string | undefined, outbox: Outbox } & LostPasskeys
): Promise<Factor> {
  const { response, name = null, isLost, mailCode, outbox } = form
  // First, so that a form whose options were refused is refused for the same reason.
  const enrolling = await enrollingUser(request, rules, isLost)
  const { user, waiting, asksMailCode } = enrolling
  if (waiting !== null && rules.factors.secondFactor === null) {
    throw new AuthError('unavailable', {
      cause: new Error('another process requires a second factor: set the option secondFactor in all processes')
    })
  }
  const challenge = await takeChallenge(request, rules, response, 'register')
  if (asksMailCode) await spendMailAttempt(request, rules, user, { mailCode, outbox })
  const passkey = await rules.factors.passkeys.verifyRegistration(response, { challenge, name })
  await addFactor(request, rules, enrolling, {
    proof: { method: 'passkey', at: Date.now() },
    outbox,
    // In place of passkeys that were lost: sessions of who has found them end.
    endsSessions: asksMailCode && waiting === null,
    change (factors) {
      if (factors.some(({ id }) => id === passkey.id)) throw new AuthError('exists', { message: PASSKEY_EXISTS })
      if (passkeysIn(factors).length >= MAX_PASSKEYS) throw new AuthError('too_many')
      return [...factors, passkey]
    }
  })
  return passkey
}

/**
 * Signs a user in by a passkey, which is both factors.
 *
 * @throws what the hook throws; AuthError `invalid`, also for a passkey that nobody has;
 * `invalid_state`, `blocked`, `unavailable`
 * @see WebAuthn Level 3 section 7.2
 */
export async function signInByPasskey (
  request: FastifyRequest,
  rules: PasskeyRules,
  { response, remember, outbox }: { response: unknown, remember: boolean, outbox: Outbox }
): Promise<Principal> {
  const challenge = await takeChallenge(request, rules, response, 'login')
  const { userId = '' } = rules.factors.passkeys.userOf(response) ?? {}
  const found = isUserId(userId) ? await rules.store.findUser({ userId }) : null
  const { user } = await usePasskey(request, rules, found, { response, challenge, outbox })
  const identity = identityOfUser(user, await rules.store.links(userId))
  return signIn(request, rules, { ...written(user), identity, method: 'passkey', remember })
}

/**
 * Finishes a sign-in that waits, by a passkey of its user.
 *
 * @throws what the hook throws; AuthError `invalid`, `invalid_state`, `blocked`, `unavailable`
 */
export async function finishByPasskey (
  request: FastifyRequest, rules: PasskeyRules, response: unknown, outbox: Outbox
): Promise<SecondFactorSignIn> {
  const challenge = await takeChallenge(request, rules, response, 'factor')
  const waiting = await attemptSignIn(request, rules)
  if (waiting === null) throw new AuthError('invalid_state')
  const { userId } = waiting
  const user = await rules.store.findUser({ userId })
  if ((user?.generation ?? 0) !== waiting.generation) throw new AuthError('invalid_state')
  const used = await usePasskey(request, rules, user, { response, challenge, outbox })
  const taken = await takePendingSecondFactor(request, rules, userId)
  const principal = await continueSignIn(request, rules, taken, { ...used, outbox })
  return { principal, user: used.user, recoveryCodesLeft: null }
}

/**
 * Authenticates the signed-in user again, by a passkey of theirs.
 *
 * @throws AuthError `unauthenticated`, `invalid`, `invalid_state`, `unavailable`
 */
export async function reauthenticateByPasskey (
  request: FastifyRequest, rules: PasskeyRules, response: unknown, outbox: Outbox
): Promise<void> {
  const record = await confirmedRecord(request, rules.store)
  const challenge = await takeChallenge(request, rules, response, 'factor')
  const user = await rules.store.findUser({ userId: record.principal.userId })
  await usePasskey(request, rules, user, { response, challenge, outbox })
  await prove(request, record, 'passkey')
}

/**
 * Verifies the response of a passkey and notes its use.
 *
 * @returns the user as they are now, and what the passkey proved
 * @throws AuthError `invalid`, `invalid_state` when the user's sessions were ended meanwhile,
 * `unavailable`
 */
async function usePasskey (
  request: FastifyRequest,
  { factors: { passkeys }, accounts, store }: PasskeyRules,
  user: User | null,
  { response, challenge, outbox }: { response: unknown, challenge: string, outbox: Outbox }
): Promise<{ user: User, proof: Proof }> {
  const named = passkeys.userOf(response)
  // For a user without passkeys too, and for none: the answer must not come sooner.
  const own = passkeysIn(await store.factors(user?.userId ?? ''))
  const factor = own.find(({ id }) => id === named?.id) ?? null
  const { userId = '', generation = 0 } = user ?? {}
  const unknown = factor === null && named !== null ? new UnknownPasskey(named.id) : null
  const used = await passkeys.verifyAssertion(response, { challenge, factor, userId }).catch((error: unknown) => {
    if (unknown !== null) return null
    if (user !== null && Object(error).cause instanceof CounterRegression) {
      audit('passkey-cloned', { userId }, request)
      outbox.notice('passkey-cloned', user)
    }
    throw error
  })
  if (used === null || user === null || factor === null) {
    throw new AuthError('invalid', { message: PASSKEY_REFUSED, cause: unknown })
  }
  const proof = { method: 'passkey', at: Date.now() } as const
  const { counter, usedAt, data } = used
  const use = { counter, usedAt, data }
  const isNoted = used.counter === factor.counter && used.data.backedUp === factor.data.backedUp &&
    factor.usedAt !== null && proof.at - factor.usedAt < DAY_MS
  // Most passkeys have no counter: then there is nothing to write, but for the day of their use.
  if (isNoted) return { user, proof }
  const changed = await accounts.changeFactors(userId, {
    generation,
    endsSessions: false,
    // Of two uses with one counter at a time, one is that of a copy.
    change: changeOf(used.id, present => present.counter === factor.counter ? { ...present, ...use } : null)
  })
  if (changed === null) throw new AuthError('invalid_state')
  return { user: changed, proof }
}

/**
 * Renames a passkey of the signed-in user.
 *
 * @throws AuthError `not_found`, and as {@link recentRecord}
 */
export async function renamePasskey (
  request: FastifyRequest, rules: PasskeyRules, { id, name }: { id: string, name: string }
): Promise<void> {
  const { principal: { userId }, generation } = await recentRecord(request, rules)
  const shown = passkeyName(name)
  const renamed = await rules.accounts.changeFactors(userId, {
    generation,
    endsSessions: false,
    change: changeOf(id, present => present.kind === 'passkey' ? { ...present, name: shown } : null)
  })
  if (renamed === null) throw noPasskey()
}

/**
 * Removes a passkey of the signed-in user. All other sessions of the user end.
 *
 * @returns the ids of the passkeys that are left; null when the code was mailed that stands in for
 * lost passkeys
 * @throws AuthError `not_found`, `last_link` for the only sign-in method of the user, `forbidden`
 * where the application requires a second factor, `invalid_code`, and as
 * {@link requireRecentFactor}
 */
export async function removePasskey (
  request: FastifyRequest, rules: PasskeyRules, form: { id: string, outbox: Outbox } & LostPasskeys
): Promise<{ userId: string, accepted: string[] } | null> {
  const { id, isLost, mailCode: typed, outbox } = form
  const { user, record, asksMailCode } = await requireRecentFactor(request, rules, isLost)
  const { userId, factors: kinds = [] } = user
  if (asksMailCode && typed === undefined) {
    await mailCode(request, rules, user, outbox)
    return null
  }
  if (asksMailCode) await spendMailAttempt(request, rules, user, { mailCode: typed, outbox })
  const others = passkeysIn(await rules.accounts.factors(userId)).filter(factor => factor.id !== id)
  if (others.length === 0 && !kinds.includes('totp')) await assertNotRequired(rules, record)
  await changeFactors(request, rules, record, (factors, { links }) => {
    const passkeys = passkeysIn(factors)
    if (!passkeys.some(factor => factor.id === id)) throw noPasskey()
    // A user whom the application alone can sign in would be left without a sign-in method.
    const hasOther = passkeys.length > 1 || links.some(({ provider }) => provider !== 'application')
    if (!hasOther) throw new AuthError('last_link')
    return withoutFactors(factors, factor => factor.id === id)
  })
  audit('factor-removed', { userId, method: 'passkey', by: 'user' }, request)
  outbox.notice('factor-removed', user)
  return { userId, accepted: others.map(({ id }) => id) }
}

/** What a form has of a user who has lost all their passkeys. */
interface LostPasskeys {
  isLost: boolean
  /** The code that was mailed. */
  mailCode: string | undefined
}

/** Checks the code that was mailed, and counts the attempt for the user. */
async function spendMailAttempt (
  request: FastifyRequest,
  rules: PasskeyRules,
  { userId, generation = 0 }: User,
  { mailCode, outbox }: { mailCode: string | undefined, outbox: Outbox }
): Promise<void> {
  await countAttempt(request, rules, { userId, generation }, outbox)
  await assertMailCode(request, rules, userId, mailCode)
}

/**
 * Takes the challenge that a response names, before anything of it is verified: it works once.
 *
 * @throws AuthError `invalid_request` for what does not have the form of a response;
 * `invalid_state` for a challenge of another session or ceremony, and for none
 */
async function takeChallenge (
  request: FastifyRequest, { factors: { passkeys } }: PasskeyRules, response: unknown, ceremony: Ceremony
): Promise<string> {
  if (readResponse(response) === null) throw new AuthError('invalid_request')
  const challenge = passkeys.challengeIn(response)
  const made = challenge === null ? null : await takeEntry<Challenge>(request, CHALLENGE, challenge)
  if (challenge === null || made?.ceremony !== ceremony || made.expiresAt < Date.now()) {
    throw new AuthError('invalid_state')
  }
  return challenge
}

function passkeysIn (factors: readonly Factor[]): Factor[] {
  return factors.filter(({ kind }) => kind === 'passkey')
}

function noPasskey (): AuthError {
  return new AuthError('not_found', { message: 'The user has no such passkey.' })
}
