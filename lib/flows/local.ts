import type { FastifyRequest } from 'fastify'
import { canonicalEmail } from '../email.js'
import { AuthError } from '../errors.js'
import type { Caller } from '../local/fair-queue.js'
import type { LocalIdentityProvider } from '../local/identity-provider.js'
import { withoutReservedClaims } from '../local/token.js'
import type { TokenClaims } from '../local/token-claims.js'
import type { Principal } from '../session/record.js'
import { type AccountLink, type Credential, type User, isBlocked } from '../accounts/account.js'
import type { Accounts } from '../accounts/accounts.js'
import { type AuthStore, answerOfStore } from '../accounts/auth-store.js'
import { isUserId } from '../base/uuid.js'
import type { Confirmation } from './mail-links.js'
import { confirmedRecord, statusOfUser } from './refresh.js'
import { signIn } from './sign-in.js'
import type { ProviderIdentity, SignInRules } from './sign-in-rules.js'

/** The fields of the login form. */
export interface Login {
  email: string
  password: string
  remember: boolean
  caller: Caller
  confirmation: Confirmation
}

/**
 * Signs a user in by e-mail and password.
 *
 * @throws what the hook throws; AuthError `invalid` for a wrong password and an unknown e-mail
 * alike, `blocked`; `unverified` for an address that must be confirmed first, after which the link
 * is sent again; `busy`, `unavailable`
 */
export async function login (
  request: FastifyRequest,
  local: LocalIdentityProvider,
  rules: SignInRules,
  { email, password, remember, caller, confirmation }: Login
): Promise<Principal> {
  assertText(password)
  // An invalid e-mail is looked up too, as one that no user has, so that the answer takes the same
  // time.
  const credential = await rules.store.findCredential(canonicalEmail(email) ?? '')
  const { matches, outdated } = await local.verifyPassword(credential?.passwordHash ?? null, password, caller)
  if (credential === null || !matches) throw new AuthError('invalid')

  const { user, link, passwordHash } = credential
  if (outdated) {
    const current = { userId: user.userId, passwordHash }
    await rehash(request, rules.accounts, current, () => local.rehashPassword(password, caller))
  }
  // After the password was right, so that the answer tells nothing to others.
  if (confirmation.isRequired && !user.emailVerified && !isBlocked(user)) {
    confirmation.send(user)
    throw new AuthError('unverified')
  }
  const identity = localIdentity(user, link)
  return signIn(request, rules, { user, isNew: false, identity, method: 'password', tokens: null, remember })
}

/** A password of a user who is known otherwise than by their e-mail. */
export interface KnownUsersPassword {
  local: LocalIdentityProvider
  store: AuthStore
  password: string
  caller?: Caller | undefined
}

/**
 * Compares a password with that of a user, in the time of a login.
 *
 * @returns false for a wrong password, for a user without one, and for one who is gone
 * @throws AuthError `invalid_request`, `busy`, `unavailable`
 */
export async function verifyPasswordOf (
  userId: string,
  { local, store, password, caller }: KnownUsersPassword
): Promise<boolean> {
  assertText(password)
  const credential = await credentialOf(store, userId)
  const { matches } = await local.verifyPassword(credential?.passwordHash ?? null, password, caller)
  return matches
}

/**
 * Returns the local account of a user; null for a user without a password, and for one who is gone.
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
 * The claim of a token with the generation of the user that was read with its session: it is over
 * exactly if that session is, whatever the clocks of processes say.
 */
const GENERATION = 'svc_generation'

/**
 * Issues a token for the signed-in user, with the claims that the store has now and, as
 * `auth_time`, when the user last proved who they are.
 *
 * @throws AuthError `unauthenticated` for an anonymous session and for one that a refresh would
 * end, `unavailable`
 */
export async function issueToken (
  request: FastifyRequest,
  local: LocalIdentityProvider,
  store: AuthStore
): Promise<string> {
  const { principal: { userId, claims }, generation, at } = await confirmedRecord(request, store)
  const authTime = Math.floor(at / 1000)
  return local.issueIdToken(userId, { ...withoutReservedClaims(claims), auth_time: authTime, [GENERATION]: generation })
}

/**
 * Verifies a token without a purpose or audience and refuses that of a user who was deleted, or
 * whose sessions were ended since it was issued. A subject that is not a user id, such as the name
 * of a program, is not looked up.
 *
 * @throws AuthError `invalid_token`, `unavailable`
 */
export async function verifyToken (
  local: LocalIdentityProvider,
  store: AuthStore,
  token: string
): Promise<TokenClaims> {
  const claims = await local.verifyIdToken(token)
  const { sub, iat, [GENERATION]: generation } = claims
  if (!isUserId(sub)) return claims
  const status = await statusOfUser(store, sub)
  if (status === null) throw new AuthError('invalid_token')
  // A token of another library need not say when it was issued.
  const isOver = typeof generation === 'number'
    ? generation !== status.generation
    : (iat ?? 0) <= status.signedOutAt
  if (isOver) throw new AuthError('invalid_token')
  return claims
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

/** Replaces an outdated hash of a correct password. A failure does not fail the sign-in. */
async function rehash (
  request: FastifyRequest,
  accounts: Accounts,
  { userId, passwordHash }: { userId: string, passwordHash: string },
  renew: () => Promise<string>
): Promise<void> {
  try {
    await accounts.replacePasswordHash(userId, passwordHash, await renew())
  } catch (error) {
    request.log.warn({ err: error, userId }, 'the password hash could not be renewed')
  }
}

/** Returns the identity of a local account: its e-mail is verified once the user confirmed it. */
export function localIdentity (user: User, { subject, claims }: AccountLink): ProviderIdentity {
  return { provider: 'local', subject, claims, emailVerified: user.emailVerified && user.email === subject }
}
