import type { FastifyRequest } from 'fastify'
import type { Credential, FactorKind } from '../accounts/account.js'
import { noteSubject } from '../audit.js'
import { ownFactorAt } from '../authentication.js'
import type { AuthContext } from './context.js'
import { AuthError, WRONG_PASSWORD, invalidRequest } from '../errors.js'
import type { Passwords } from '../features/local/local-identity-provider.js'
import { type SessionRecord, principalOf } from '../session/record.js'
import {
  type CurrentUser, assertCanAsk, current, currentPrincipal, factorsOf, isFactorRequiredOf
} from './current-user.js'

export interface PasswordSubmission {
  readonly request: FastifyRequest
  /** Hashes and compares passwords for the sender. */
  readonly passwords: Passwords
}

export interface RecentUser extends CurrentUser {
  /** Null for a user without a password. */
  readonly credential: Credential | null
}

/** The longest time since the last authentication of a user who gives no password, in seconds. */
export const RECENT_SECONDS = 600

/** The clocks of several machines differ by no more than this. */
const CLOCK_TOLERANCE_MS = 5000

/**
 * Returns the signed-in user if they have authenticated recently: for what an open session alone
 * must not change. By one of their factors where they have an authenticator app, or the application
 * requires it.
 *
 * @throws AuthError `unauthenticated`, `reauthenticate`; what the application's rule throws
 */
export async function recent (auth: AuthContext, request: FastifyRequest): Promise<CurrentUser> {
  const present = await current(auth, request)
  await assertUserRecent(auth, present)
  return present
}

/** Refuses a user, as just read, who has not authenticated recently: see {@link recent}. */
export async function assertUserRecent (auth: AuthContext, present: CurrentUser): Promise<void> {
  await assertFactorUsed(auth, present)
  assertRecent(present.record)
}

/**
 * Returns the signed-in user if the password of a form is theirs; without one, if they have
 * authenticated recently as {@link recent} requires it. Counts the change for the user.
 *
 * @param password the field of the form; empty for none
 * @throws AuthError as {@link recent}, and `invalid`, `rate_limited`
 */
export async function recentByPassword (
  auth: AuthContext, submission: PasswordSubmission, password: string | undefined
): Promise<RecentUser> {
  const { request } = submission
  const present = await current(auth, request)
  const { user: { userId, generation }, links } = present
  const credential = await auth.accounts.credentialOf(userId, links)
  // What was read after the session may be the password of a reset.
  if (credential !== null && credential.user.generation !== generation) throw new AuthError('unauthenticated')
  await assertFactorUsed(auth, present)
  if (!password) assertRecent(present.record)
  await auth.limits.reauthenticate(request)
  if (password) await attemptPassword(auth, submission, password, credential)
  return { ...present, credential }
}

/**
 * Refuses a request unless its session, or the password in its form, belongs to a user:
 * `unauthenticated` without both, `invalid`, `rate_limited`.
 */
export async function assertIsUser (
  auth: AuthContext,
  submission: PasswordSubmission,
  { userId, password }: { userId: string, password: string | undefined }
): Promise<void> {
  if ((await currentPrincipal(auth, submission.request))?.userId === userId) return
  noteSubject(submission.request, userId)
  if (!password) throw new AuthError('unauthenticated')
  await attemptPassword(auth, submission, password, await auth.accounts.credentialOf(userId))
}

export function isSignedInAs (request: FastifyRequest, userId: string): boolean {
  return principalOf(request)?.userId === userId
}

/** Counts an attempt at the password of an account, then compares it. */
async function attemptPassword (
  { limits }: AuthContext, submission: PasswordSubmission, password: string, credential: Credential | null
): Promise<void> {
  assertText(password)
  await limits.attempt(submission.request, credential?.link.subject ?? '')
  await verifyPassword(submission, password, credential)
}

/** Refuses a wrong password of an account, in the same time for a user without a password. */
export async function verifyPassword (
  { passwords }: Pick<PasswordSubmission, 'passwords'>,
  password: string,
  credential: Credential | null,
  wrong: { message?: string } = { message: WRONG_PASSWORD }
): Promise<{ outdated: boolean }> {
  assertText(password)
  const { matches, outdated } = await passwords.verifyPassword(credential?.passwordHash ?? null, password)
  if (!matches) throw new AuthError('invalid', wrong)
  return { outdated }
}

/** Refuses U+FFFD, to which invalid bytes decode: different passwords would become the same. */
export function assertText (password: string): void {
  if (!password.includes('\ufffd')) return
  throw invalidRequest('The password is not text; send it as UTF-8, without the character U+FFFD.')
}

/**
 * What a user lacks to change their factors: a recent authentication, by one of their own factors
 * if they have any; a provider's factor does not count. Returns the kinds of factors to
 * authenticate by, empty for any method; null for a user who lacks nothing.
 */
export function missingAuthentication (
  auth: AuthContext, { user, record: { at, methods } }: Pick<CurrentUser, 'user' | 'record'>
): FactorKind[] | null {
  const hasOwn = user.factors !== undefined
  if (isRecent(hasOwn ? ownFactorAt(methods) ?? 0 : at, RECENT_SECONDS)) return null
  return hasOwn ? factorsOf(auth, user) : []
}

/** Refuses a user with {@link missingAuthentication}: `reauthenticate`, with kinds of factors. */
export function assertFactorRecent (auth: AuthContext, present: Pick<CurrentUser, 'user' | 'record'>): void {
  const methods = missingAuthentication(auth, present)
  if (methods !== null) throw new AuthError('reauthenticate', { details: methods.length > 0 ? { methods } : {} })
}

/**
 * Refuses a change of an account by a user with an authenticator app, or with passkeys that the
 * application requires, unless one of their factors was used recently. A password does not replace
 * it.
 */
async function assertFactorUsed (auth: AuthContext, present: CurrentUser): Promise<void> {
  const { user, record: { principal } } = present
  if (user.factors === undefined) return
  assertCanAsk(auth, user)
  if (user.factors.includes('totp') || await isFactorRequiredOf(auth, principal)) assertFactorRecent(auth, present)
}

/** Refuses a session whose user has not authenticated recently: `reauthenticate`. */
export function assertRecent ({ at }: Pick<SessionRecord, 'at'>): void {
  if (!isRecent(at, RECENT_SECONDS)) throw new AuthError('reauthenticate')
}

/**
 * Whether an authentication is so many seconds old at most. One from the future is not: the clock
 * was set back.
 */
export function isRecent (at: number, within: number): boolean {
  const age = Date.now() - at
  return age >= -CLOCK_TOLERANCE_MS && age <= within * 1000
}
