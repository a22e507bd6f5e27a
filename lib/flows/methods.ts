import type { FastifyRequest } from 'fastify'
import type { Credential, FactorKind, User } from '../accounts/account.js'
import { type AuthStore, answerOfStore } from '../accounts/auth-store.js'
import { type AuthenticationMethod, secondFactorAt } from '../authentication.js'
import { AuthError } from '../errors.js'
import type { Passwords } from '../local-identity-provider.js'
import type { ExternalProvider } from '../providers/provider.js'
import type { SessionRecord } from '../session/record.js'
import { confirmedRecord, presentPrincipal } from './refresh.js'
import type { FactorRules, SignInRules } from './sign-in-rules.js'

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
  { store, factors }: Pick<SignInRules, 'store' | 'factors'>, userId: string, providers: readonly ExternalProvider[]
): Promise<string[]> {
  const links = await answerOfStore(() => store.links(userId))
  const kinds = factors === null ? [] : await factorsOfUser(store, factors, userId)
  const proving = new Set(providers.filter(provider => provider.provesAuthTime === true).map(({ name }) => name))
  const names = links.map(({ provider }) => provider)
  return [...names.includes('local') ? ['password'] : [], ...kinds, ...names.filter(name => proving.has(name))]
}

/** The kinds of factors by which a user can authenticate, of those that the application offers. */
export async function factorsOfUser (store: AuthStore, factors: FactorRules, userId: string): Promise<FactorKind[]> {
  const user = await answerOfStore(() => store.findUser({ userId }))
  return user === null ? [] : factorsOf(user, factors)
}

/** As {@link factorsOfUser}, for a user who was read already. */
export function factorsOf (
  { factors: kinds = [] }: Pick<User, 'factors'>, { secondFactor, passkeys }: FactorRules
): FactorKind[] {
  return kinds.filter(kind => (kind === 'passkey' ? passkeys : secondFactor) !== null)
}

/**
 * What a user lacks to change their factors: a recent authentication, by one of these kinds of
 * factors if there are any. Passkeys alone are not asked for: a user who has lost theirs removes it
 * after another sign-in.
 *
 * @returns null for a user who lacks nothing
 */
export function lackedProof (
  user: Pick<User, 'factors'>, { at, methods }: Pick<SessionRecord, 'at' | 'methods'>, factors: FactorRules
): FactorKind[] | null {
  const kinds = factorsOf(user, factors)
  const asked = kinds.includes('totp') ? kinds : []
  return isRecent(asked.length > 0 ? secondFactorAt(methods) ?? 0 : at, RECENT_SECONDS) ? null : asked
}

/** A signed-in user who has authenticated, and their password; null for a user without one. */
export interface RecentUser {
  record: SessionRecord
  credential: Credential | null
}

/**
 * Returns the signed-in user if the method of the form is theirs; without one, if they have
 * authenticated recently: for what an open session alone must not change.
 *
 * @param countChange counts the change for the user, with a method or without one
 * @throws AuthError `unauthenticated`, `reauthenticate`, `unavailable`, and what the method throws
 */
export async function recentUser (
  request: FastifyRequest,
  store: AuthStore,
  { method, countChange }: { method: Method | null, countChange: () => Promise<void> }
): Promise<RecentUser> {
  const record = await confirmedRecord(request, store)
  const credential = await credentialOf(store, record.principal.userId)
  const { generation = 0 } = credential?.user ?? record
  // The sessions have ended since the record was read: the hash may be that of a reset.
  if (generation !== record.generation) throw new AuthError('unauthenticated')
  if (method === null) assertRecent(record)
  await countChange()
  await method?.verify(credential)
  return { record, credential }
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
 * Returns the record of the session if the user authenticated recently.
 *
 * @throws AuthError `unauthenticated`, `reauthenticate`, `unavailable`
 */
export async function recentRecord (request: FastifyRequest, store: AuthStore): Promise<SessionRecord> {
  const record = await confirmedRecord(request, store)
  assertRecent(record)
  return record
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
  const links = await answerOfStore(() => store.links(userId))
  const link = links.find(({ provider }) => provider === 'local')
  const credential = link === undefined ? null : await answerOfStore(() => store.findCredential(link.subject))
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
