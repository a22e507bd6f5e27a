import { randomUUID } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { type AuthorizationClaims, type IdentityClaims, isText, mergeClaims } from '../claims.js'
import { canonicalEmail } from '../email.js'
import { AuthError } from '../errors.js'
import type { LocalIdentityProvider } from '../local/identity-provider.js'
import { withoutReservedClaims } from '../local/token.js'
import { type Principal, writePrincipal } from '../session/principal.js'
import type { AuthStore, Link, User } from '../store/store.js'

/** What the registration form says, cleaned of empty fields. */
export interface Registration {
  email: string
  password: string
  name: string | undefined
  role: string | undefined
  emailVerified: boolean
}

/**
 * Makes a user with a password and signs him in.
 *
 * @throws AuthError `claim_not_allowed`, `invalid_email`, `weak_password`, `busy`, `exists`, `unavailable`
 */
export async function register (request: FastifyRequest, local: LocalIdentityProvider, store: AuthStore, registration: Registration): Promise<Principal> {
  const claims = initialClaims(local, registration)
  if (registration.name !== undefined && !isText(registration.name)) {
    throw new AuthError('invalid_request', { message: 'The name holds characters that cannot be stored.' })
  }
  const email = canonicalEmail(registration.email)
  if (email === null) throw new AuthError('invalid_email')
  const passwordHash = await local.hashPassword(registration.password, { email })

  const userId = randomUUID()
  const identity: IdentityClaims = {
    sub: userId,
    email,
    ...(registration.emailVerified && { email_verified: true }),
    ...(registration.name !== undefined && { name: registration.name })
  }
  const user = await store.createUser({
    userId,
    email,
    // The form's word for it is no proof: accounts are never linked on it.
    emailVerified: false,
    name: registration.name ?? null,
    claims,
    link: { provider: 'local', subject: email, claims: identity },
    passwordHash
  })
  if (user === null) throw new AuthError('exists')
  return signIn(request, user, { claims: identity })
}

/**
 * Signs a user in by e-mail and password.
 *
 * @throws AuthError `invalid` for a wrong password and an unknown e-mail alike, `busy`, `unavailable`
 */
export async function login (request: FastifyRequest, local: LocalIdentityProvider, store: AuthStore, { email, password }: { email: string, password: string }): Promise<Principal> {
  const address = canonicalEmail(email)
  const credential = address === null ? null : await store.findCredential(address)
  const { matches, outdated } = await local.verifyPassword(credential?.passwordHash ?? null, password)
  if (credential === null || !matches) throw new AuthError('invalid')

  if (outdated) await rehash(request, local, store, credential.user, credential.passwordHash, password)
  return signIn(request, credential.user, credential.link)
}

/**
 * Issues a token for the signed-in user.
 *
 * @throws AuthError `unauthenticated` for an anonymous session and for a user who was deleted meanwhile, `unavailable`
 */
export async function issueToken (local: LocalIdentityProvider, store: AuthStore, principal: Principal | null): Promise<string> {
  if (principal === null || await store.findUser({ userId: principal.userId }) === null) throw new AuthError('unauthenticated')
  return local.issueIdToken(principal.userId, withoutReservedClaims(principal.claims))
}

/** The claims that the form asks for, as far as the application hands them out: anyone can post that form. */
function initialClaims ({ registration: policy }: LocalIdentityProvider, { role, emailVerified }: Registration): AuthorizationClaims {
  if (emailVerified && policy?.emailVerified !== true) throw new AuthError('claim_not_allowed')
  if (role === undefined) return {}
  if (policy?.roles.includes(role) !== true) throw new AuthError('claim_not_allowed')
  return { role }
}

/** The password is right, so a new hash can be made of it. A sign-in does not fail for want of that. */
async function rehash (request: FastifyRequest, local: LocalIdentityProvider, store: AuthStore, { userId }: User, current: string, password: string): Promise<void> {
  try {
    await store.replacePasswordHash(userId, current, await local.rehashPassword(password))
  } catch (error) {
    request.log.warn({ err: error, userId }, 'the password hash could not be renewed')
  }
}

async function signIn (request: FastifyRequest, user: User, link: Pick<Link, 'claims'>): Promise<Principal> {
  const principal = { userId: user.userId, provider: 'local', claims: mergeClaims(link.claims, user.claims) }
  await writePrincipal(request, principal)
  return principal
}
