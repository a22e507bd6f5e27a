import type { FastifyRequest } from 'fastify'
import { amrOf, secondFactorAt } from '../authentication.js'
import { canonicalEmail } from '../email.js'
import { AuthError } from '../errors.js'
import type { LocalIdentityProvider, Passwords } from '../local-identity-provider.js'
import { withoutReservedClaims } from '../tokens/token-issuer.js'
import type { TokenClaims } from '../tokens/token-claims.js'
import type { Principal } from '../session/record.js'
import { type AccountLink, type Credential, type User, isBlocked } from '../accounts/account.js'
import { Accounts } from '../accounts/accounts.js'
import type { AuthStore } from '../accounts/auth-store.js'
import { isUserId } from '../base/uuid.js'
import type { Confirmation } from '../mails/mail-links.js'
import { passwordMethod } from './methods.js'
import { presentRecord } from '../current-user/refresh.js'
import { signIn, written } from '../sign-in/sign-in.js'
import type { ProviderIdentity, SignInRules } from './sign-in-rules.js'

/** The fields of the login form. */
export interface Login {
  email: string
  password: string
  remember: boolean
  passwords: Passwords
  /** Counts the attempt, and refuses it beyond its limits, while the account is looked up. */
  count: (lookUp: () => Promise<Credential | null>) => Promise<Credential | null>
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
  rules: SignInRules,
  { email, password, passwords, remember, count, confirmation }: Login
): Promise<Principal> {
  // An invalid e-mail is looked up too, as one that no user has, so that the answer takes the same
  // time.
  const credential = await count(() => rules.store.findCredential(canonicalEmail(email) ?? ''))
  const { outdated } = await passwordMethod(password, passwords).verify(credential)
  if (credential === null) throw new AuthError('invalid')

  const { user, link, passwordHash } = credential
  if (outdated) {
    const current = { userId: user.userId, passwordHash }
    await rehash(request, rules.accounts, current, () => passwords.rehashPassword(password))
  }
  // After the password was right, so that the answer tells nothing to others.
  if (confirmation.isRequired && !user.emailVerified && !isBlocked(user)) {
    confirmation.send(user)
    throw new AuthError('unverified')
  }
  const identity = localIdentity(user, link)
  return signIn(request, rules, { ...written(user), identity, method: 'password', remember })
}

/**
 * The claim of a token with the generation of the user that was read with its session: it is over
 * exactly if that session is, whatever the clocks of processes say.
 */
const GENERATION = 'svc_generation'

/** The claim of a token with the time of the last second factor, as `auth_time` has that of any. */
const FACTOR_TIME = 'svc_factor_time'

/** Returns when the user of a token authenticated, in seconds since the epoch; null if unknown. */
export function authTimeOf (token: TokenClaims, how: { secondFactor: boolean }): number | null {
  const { auth_time: authTime, amr, [FACTOR_TIME]: factorTime = authTime } = token
  const isMultiFactor = Array.isArray(amr) && amr.includes('mfa')
  const time = how.secondFactor ? isMultiFactor ? factorTime : null : authTime
  return typeof time === 'number' ? time : null
}

/**
 * Issues a token for the signed-in user, with the claims that the store has now and, as
 * `auth_time`, when the user last authenticated.
 *
 * @throws AuthError `unauthenticated` for an anonymous session and for one that a refresh would
 * end, `unavailable`
 */
export async function issueToken (
  request: FastifyRequest,
  local: LocalIdentityProvider,
  store: AuthStore
): Promise<string> {
  const { principal: { userId, claims }, generation, at, methods } = await presentRecord(request, store)
  // The provider or the application may have given claims of these names.
  const { amr: _amr, [FACTOR_TIME]: _factorTime, ...others } = withoutReservedClaims(claims)
  const amr = amrOf(methods)
  const factorAt = secondFactorAt(methods)
  return local.issueIdToken(userId, {
    ...others,
    auth_time: Math.floor(at / 1000),
    ...(amr.length > 0 && { amr }),
    ...(factorAt !== null && { [FACTOR_TIME]: Math.floor(factorAt / 1000) }),
    [GENERATION]: generation
  })
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
  const status = await new Accounts(store).status(sub)
  if (status === null) throw new AuthError('invalid_token')
  // A token of another library need not say when it was issued.
  const isOver = typeof generation === 'number'
    ? generation !== status.generation
    : (iat ?? 0) <= status.signedOutAt
  if (isOver) throw new AuthError('invalid_token')
  return claims
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
