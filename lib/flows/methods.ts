import type { FastifyRequest } from 'fastify'
import type { Credential, FactorKind, User } from '../accounts/account.js'
import { type AuthStore, wrapStoreErrors } from '../accounts/auth-store.js'
import { type AuthenticationMethod, type Principal, ownFactorAt } from '../authentication.js'
import { AuthError } from '../errors.js'
import type { Passwords } from '../local-identity-provider.js'
import type { ExternalProvider } from '../providers/provider.js'
import type { FirstFactor } from '../factors/second-factor.js'
import type { SessionRecord } from '../session/record.js'
import { confirmedRecord, presentPrincipal } from '../current-user/refresh.js'
import { type FactorRules, callHook } from './sign-in-rules.js'

/**
 * A method by which the sender of a form authenticates as a user, with what the form has for it.
 */
export interface Method {
  readonly name: AuthenticationMethod
  /**
   * Refuses what is not the user's, in the same time for a user who does not have the method.
   *
   * @param credential the user's password; null for a user without one
   * @returns whether what the store has for it should be renewed
   * @throws AuthError `invalid`, `invalid_request`, `rate_limited`, `busy`
   */
  readonly verify: (credential: Credential | null) => Promise<{ outdated: boolean }>
}

/**
 * The method of a password.
 *
 * @param count counts the attempt at the account with an e-mail, before the password is compared
 */
export function passwordMethod (
  password: string, passwords: Passwords, count: (email: string) => Promise<void> = async () => {}
): Method {
  return {
    name: 'password',
    async verify (credential) {
      assertText(password)
      await count(credential?.link.subject ?? '')
      const { matches, outdated } = await passwords.verifyPassword(credential?.passwordHash ?? null, password)
      if (!matches) throw new AuthError('invalid')
      return { outdated }
    }
  }
}

/**
 * The methods by which a user can reauthenticate: `password`, kinds of factors, and the names of
 * providers.
 */
export async function methodsOf (
  { store, factors }: UserRules, userId: string, providers: readonly ExternalProvider[]
): Promise<string[]> {
  const links = await wrapStoreErrors(() => store.links(userId))
  const user = factors && await wrapStoreErrors(() => store.findUser({ userId }))
  const kinds = user === null ? [] : factorsOf(user, factors)
  const proving = new Set(providers.filter(provider => provider.provesAuthTime === true).map(({ name }) => name))
  const names = links.map(({ provider }) => provider)
  return [...names.includes('local') ? ['password'] : [], ...kinds, ...names.filter(name => proving.has(name))]
}

/**
 * The kinds of factors by which a user can authenticate here; empty for a user without any.
 *
 * @throws AuthError `unavailable` for a user who has factors that this process cannot ask for
 */
export async function factorsOfUser (
  store: AuthStore, factors: FactorRules | null, userId: string
): Promise<FactorKind[]> {
  const user = await wrapStoreErrors(() => store.findUser({ userId }))
  if (user === null) return []
  assertCanAsk(user, factors)
  return factorsOf(user, factors)
}

/** As {@link factorsOfUser}, for a user who was read already. */
export function factorsOf ({ factors: kinds = [] }: Pick<User, 'factors'>, factors: FactorRules | null): FactorKind[] {
  if (factors === null) return []
  return kinds.filter(kind => (kind === 'passkey' ? factors.passkeys : factors.secondFactor) !== null)
}

/**
 * Refuses a user who has factors, none of which this process can ask for. Otherwise it would pass
 * over a factor that the user has, or that another process requires.
 *
 * @throws AuthError `unavailable`; its cause names the option, for the log
 */
export function assertCanAsk (user: Pick<User, 'userId' | 'factors'>, factors: FactorRules | null): void {
  const { userId, factors: kinds = [] } = user
  if (kinds.length === 0 || factorsOf(user, factors).length > 0) return
  const option = kinds.includes('passkey') ? 'passkeys' : 'secondFactor'
  throw new AuthError('unavailable', {
    cause: new Error(`the user ${userId} has a second factor (${kinds.join(', ')}) that this process cannot ask for: ` +
      `set the option ${option} in all processes before users set up factors`)
  })
}

/**
 * Whether a second factor may be due at a sign-in of a user, or the sign-in be refused for want of
 * one: until that is known, it writes nothing.
 */
export function mayNeedFactor (user: Pick<User, 'factors'>, factors: FactorRules | null): boolean {
  const { factors: kinds = [] } = user
  const cannotAsk = kinds.length > 0 && factorsOf(user, factors).length === 0
  return cannotAsk || kinds.includes('totp') || factors?.secondFactor?.required != null
}

/** Whether the application requires a second factor of a sign-in. */
export async function isFactorRequired ({ secondFactor }: FactorRules, signIn: FirstFactor): Promise<boolean> {
  const required = secondFactor?.required ?? null
  // Any truthy answer: a rule that is not typed must not fail open.
  return required !== null && Boolean(await callHook(() => required(signIn)))
}

const FIRST_FACTORS: readonly AuthenticationMethod[] = ['password', 'provider', 'application']

/** Whether the application requires a second factor of a user, by whichever method they sign in. */
export async function isFactorRequiredOf (principal: Principal, factors: FactorRules | null): Promise<boolean> {
  if (factors === null) return false
  for (const method of FIRST_FACTORS) if (await isFactorRequired(factors, { principal, method })) return true
  return false
}

/**
 * What a user lacks to change their factors: a recent authentication, by one of their factors if
 * they have any. That of a provider does not stand in for it.
 *
 * @returns the kinds of factors to authenticate by, empty for any method; null for a user who lacks
 *   nothing
 */
export function missingAuthentication (
  user: Pick<User, 'factors'>, { at, methods }: Pick<SessionRecord, 'at' | 'methods'>, factors: FactorRules | null
): FactorKind[] | null {
  const hasFactors = user.factors !== undefined
  if (isRecent(hasFactors ? ownFactorAt(methods) ?? 0 : at, RECENT_SECONDS)) return null
  return hasFactors ? factorsOf(user, factors) : []
}

/**
 * Returns the error of a missing authentication, by one of some kinds of factors if there are any.
 */
export function reauthenticationBy (methods: readonly FactorKind[]): AuthError {
  return new AuthError('reauthenticate', { details: methods.length > 0 ? { methods } : {} })
}

/**
 * Refuses a change of an account by a user with an authenticator app, or with passkeys that the
 * application requires, unless one of their factors was used recently. A password does not replace
 * it.
 *
 * @throws AuthError `reauthenticate`, `unavailable`; what the application's rule throws
 */
async function assertFactorUsed (user: User, record: SessionRecord, factors: FactorRules | null): Promise<void> {
  if (user.factors === undefined) return
  assertCanAsk(user, factors)
  const isAsked = user.factors.includes('totp') || await isFactorRequiredOf(record.principal, factors)
  const missing = isAsked ? missingAuthentication(user, record, factors) : null
  if (missing !== null) throw reauthenticationBy(missing)
}

/** Where users are kept, and how they authenticate. */
export interface UserRules {
  readonly store: AuthStore
  readonly factors: FactorRules | null
}

/** A signed-in user who has authenticated, and their password; null for a user without one. */
export interface RecentUser {
  user: User
  record: SessionRecord
  credential: Credential | null
}

/**
 * Returns the signed-in user if the method of the form is theirs; without one, if they have
 * authenticated recently: for what an open session alone must not change. One of their factors must
 * have been used recently, if the user has an authenticator app or the application requires it.
 *
 * @param countChange counts the change for the user, with a method or without one
 * @throws AuthError `unauthenticated`, `reauthenticate`, `unavailable`, and what the method throws
 */
export async function recentUser (
  request: FastifyRequest,
  { store, factors }: UserRules,
  { method, countChange }: { method: Method | null, countChange: () => Promise<void> }
): Promise<RecentUser> {
  const record = await confirmedRecord(request, store)
  const { userId } = record.principal
  const credential = await credentialOf(store, userId)
  const user = credential?.user ?? await wrapStoreErrors(() => store.findUser({ userId }))
  assertInSession(user, record)
  await assertFactorUsed(user, record, factors)
  if (method === null) assertRecent(record)
  await countChange()
  await method?.verify(credential)
  return { user, record, credential }
}

/**
 * Refuses a session that has ended since its record was read: what was read afterwards may be that
 * of a reset.
 *
 * @throws AuthError `unauthenticated`
 */
function assertInSession (user: User | null, { generation }: SessionRecord): asserts user is User {
  if (user === null || (user.generation ?? 0) !== generation) throw new AuthError('unauthenticated')
}

/**
 * Refuses a request unless its session is that of a user, or its form authenticates as them.
 *
 * @throws AuthError `unauthenticated` without session and method, `unavailable`, and what the
 * method throws
 */
export async function assertIsUser (
  request: FastifyRequest, store: AuthStore, { userId, method }: { userId: string, method: Method | null }
): Promise<void> {
  if ((await presentPrincipal(request, store))?.userId === userId) return
  if (method === null) throw new AuthError('unauthenticated')
  await method.verify(await credentialOf(store, userId))
}

/**
 * Returns the record of the session if the user authenticated recently, as {@link recentUser}
 * requires it.
 *
 * @throws AuthError `unauthenticated`, `reauthenticate`, `unavailable`
 */
export async function recentRecord (request: FastifyRequest, { store, factors }: UserRules): Promise<SessionRecord> {
  const { user, record } = await confirmedUser(request, store)
  await assertFactorUsed(user, record, factors)
  assertRecent(record)
  return record
}

/**
 * Returns the signed-in user, with the record of their session.
 *
 * @throws AuthError `unauthenticated`, `unavailable`
 */
export async function confirmedUser (
  request: FastifyRequest, store: AuthStore
): Promise<{ user: User, record: SessionRecord }> {
  const record = await confirmedRecord(request, store)
  const user = await wrapStoreErrors(() => store.findUser({ userId: record.principal.userId }))
  assertInSession(user, record)
  return { user, record }
}

/**
 * Refuses a session whose user has not authenticated recently.
 *
 * @throws AuthError `reauthenticate`
 */
export function assertRecent ({ at }: Pick<SessionRecord, 'at'>): void {
  if (!isRecent(at, RECENT_SECONDS)) throw new AuthError('reauthenticate')
}

/** The longest time since the last authentication of a user who gives no password, in seconds. */
export const RECENT_SECONDS = 600

/** The clocks of several machines differ by no more than this. */
const CLOCK_TOLERANCE_MS = 5000

/**
 * Whether an authentication is recent. One from the future is not: the clock was set back.
 *
 * @param at milliseconds since the epoch
 * @param within seconds
 */
export function isRecent (at: number, within: number): boolean {
  const age = Date.now() - at
  return age >= -CLOCK_TOLERANCE_MS && age <= within * 1000
}

/**
 * Returns the password of a user; null for a user without one, and for one who is gone.
 *
 * @throws AuthError `unavailable`
 */
export async function credentialOf (store: AuthStore, userId: string): Promise<Credential | null> {
  const links = await wrapStoreErrors(() => store.links(userId))
  const link = links.find(({ provider }) => provider === 'local')
  const credential = link === undefined ? null : await wrapStoreErrors(() => store.findCredential(link.subject))
  return credential?.user.userId === userId ? credential : null
}

/**
 * Refuses U+FFFD, to which invalid bytes decode: different passwords would become the same.
 *
 * @throws AuthError `invalid_request`
 */
export function assertText (password: string): void {
  if (!password.includes('\ufffd')) return
  throw new AuthError('invalid_request', {
    message: 'The password is not text; send it as UTF-8, without the character U+FFFD.'
  })
}
