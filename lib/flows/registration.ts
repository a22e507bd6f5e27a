import { randomUUID } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { type AuthorizationClaims, type IdentityClaims, authorizationClaims, isText } from '../claims.js'
import { canonicalEmail } from '../email.js'
import { AuthError } from '../errors.js'
import type { Caller } from '../local/fair-queue.js'
import type { LocalIdentityProvider } from '../local/identity-provider.js'
import type { Principal } from '../session/record.js'
import type { AuthStore } from '../store/store.js'
import { assertText, localIdentity } from './local.js'
import type { Confirmation, Mails } from './mail-links.js'
import { type Arrival, signIn } from './sign-in.js'
import type { SignInRules } from './sign-in-rules.js'

/** The fields of the registration form, without empty ones. */
export interface Registration {
  email: string
  password: string
  name: string | undefined
  role: string | undefined
  emailVerified: boolean
  remember: boolean
  caller: Caller
}

/**
 * Creates a user with a password and signs them in, unless their address must be confirmed first.
 * Sends the link that confirms it.
 *
 * @returns null for a user who is not signed in
 * @throws what the hook throws; AuthError `claim_not_allowed`, `invalid_email`, `weak_password`,
 * `busy`, `exists`, `unavailable`
 */
export async function register (
  request: FastifyRequest,
  local: LocalIdentityProvider,
  rules: SignInRules,
  { confirmation, ...registration }: Registration & { confirmation: Confirmation }
): Promise<Principal | null> {
  const arrival = await createAccount(local, rules.store, { ...registration, isConfirmed: false })
  const principal = confirmation.isRequired ? null : await signIn(request, rules, arrival)
  await confirmation.send(arrival.user)
  return principal
}

/**
 * Sends the link to the registration form to an address in canonical form; to one that an account
 * has, a mail that says so. The mail is counted before the one look-up, and sent after the answer:
 * neither the answer nor its time tells whether an account has the address.
 */
export async function askToRegister (
  store: AuthStore,
  { outbox, mayMail }: Mails,
  email: string
): Promise<void> {
  if (!await mayMail(email)) return
  const user = await store.findUser({ email })
  if (user === null) outbox.link('register', { userId: randomUUID(), email, generation: 0 })
  else outbox.notice('exists', email)
}

/**
 * Creates a user whose address a link has confirmed, and signs them in.
 *
 * @throws AuthError as {@link register}
 */
export async function registerConfirmed (
  request: FastifyRequest,
  local: LocalIdentityProvider,
  rules: SignInRules,
  registration: Omit<Registration, 'emailVerified'>
): Promise<Principal> {
  const account = { ...registration, emailVerified: false, isConfirmed: true }
  return signIn(request, rules, await createAccount(local, rules.store, account))
}

/**
 * Creates a user with a password, who is new until they are signed in.
 *
 * @throws AuthError as {@link register}
 */
async function createAccount (
  local: LocalIdentityProvider,
  store: AuthStore,
  { isConfirmed, ...registration }: Registration & { isConfirmed: boolean }
): Promise<Arrival> {
  assertText(registration.password)
  const claims = initialClaims(local, registration)
  if (registration.name !== undefined && !isText(registration.name)) {
    throw new AuthError('invalid_request', { message: 'The name holds characters that cannot be stored.' })
  }
  const email = canonicalEmail(registration.email)
  if (email === null) throw new AuthError('invalid_email')
  const passwordHash = await local.hashPassword(registration.password, { email }, registration.caller)

  const userId = randomUUID()
  const identity: IdentityClaims = {
    sub: userId,
    email,
    ...((registration.emailVerified || isConfirmed) && { email_verified: true }),
    ...(registration.name !== undefined && { name: registration.name })
  }
  const link = { provider: 'local', subject: email, claims: identity }
  const user = await store.createUser({
    userId,
    email,
    // The form proves nothing: accounts are never linked on what it says.
    emailVerified: isConfirmed,
    name: registration.name ?? null,
    claims,
    isNew: true,
    link,
    passwordHash
  })
  if (user === null) throw new AuthError('exists')
  const { remember } = registration
  return { user, isNew: 'user', identity: localIdentity(user, link), method: 'password', tokens: null, remember }
}

/**
 * Returns the claims that the form asks for. The application must allow them, because any client
 * can post the form.
 */
function initialClaims (
  { registration: policy }: LocalIdentityProvider,
  { role, emailVerified }: Registration
): AuthorizationClaims {
  if (emailVerified && policy?.emailVerified !== true) throw new AuthError('claim_not_allowed')
  if (role === undefined) return {}
  if (policy?.roles.includes(role) !== true) throw new AuthError('claim_not_allowed')
  return authorizationClaims({ role })
}
