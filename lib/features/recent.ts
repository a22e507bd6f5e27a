import type { FastifyRequest } from 'fastify'
import type { FactorKind } from '../accounts/account.js'
import { ownFactorAt } from '../authentication.js'
import type { AuthContext, WithAccounts } from '../core/context.js'
import { AuthError } from '../errors.js'
import type { SessionRecord } from '../session/record.js'
import { type CurrentUser, current } from '../core/current-user.js'
import { type MethodRules, assertCanAsk, factorsOf, hasFactorThat, isFactorRequiredOf } from '../core/methods.js'

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
export async function recent (auth: MethodRules & WithAccounts, request: FastifyRequest): Promise<CurrentUser> {
  const present = await current(auth, request)
  await assertUserRecent(auth, present)
  return present
}

/** Refuses a user, as just read, who has not authenticated recently: see {@link recent}. */
export async function assertUserRecent (auth: MethodRules, present: CurrentUser): Promise<void> {
  await assertFactorUsed(auth, present)
  assertRecent(present.record)
}

/**
 * What a user lacks to change their factors: a recent authentication, by one of their own factors
 * if they have any; a provider's factor does not count. Returns the kinds of factors to
 * authenticate by, empty for any method; null for a user who lacks nothing.
 */
export function missingAuthentication (
  auth: Pick<AuthContext, 'offered'>, { user, record: { at, methods } }: Pick<CurrentUser, 'user' | 'record'>
): FactorKind[] | null {
  const hasOwn = user.factors !== undefined
  if (isRecent(hasOwn ? ownFactorAt(methods) ?? 0 : at, RECENT_SECONDS)) return null
  return hasOwn ? factorsOf(auth, user) : []
}

/** Refuses a user with {@link missingAuthentication}: `reauthenticate`, with kinds of factors. */
export function assertFactorRecent (auth: MethodRules, present: Pick<CurrentUser, 'user' | 'record'>): void {
  const methods = missingAuthentication(auth, present)
  if (methods !== null) throw new AuthError('reauthenticate', { details: methods.length > 0 ? { methods } : {} })
}

/**
 * Refuses a change of an account by a user with an authenticator app, or with passkeys that the
 * application requires, unless one of their factors was used recently. A password does not replace
 * it.
 */
export async function assertFactorUsed (auth: MethodRules, present: CurrentUser): Promise<void> {
  const { user, record: { principal } } = present
  if (user.factors === undefined) return
  assertCanAsk(auth, user)
  const isDue = hasFactorThat(auth, user, 'isAlwaysDue') || await isFactorRequiredOf(auth, principal)
  if (isDue) assertFactorRecent(auth, present)
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
