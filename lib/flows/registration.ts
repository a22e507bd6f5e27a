import { randomUUID } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { type AuthorizationClaims, type IdentityClaims, authorizationClaims, checkedName } from '../claims.js'
import { checkedEmail } from '../email.js'
import { AuthError } from '../errors.js'
import type { LocalIdentityProvider, Passwords } from '../local-identity-provider.js'
import type { MailTokens } from '../mails/mail-tokens.js'
import type { Outbox } from '../mails/outbox.js'
import type { Principal } from '../session/record.js'
import { digestOf } from '../base/digest.js'
import { capabilitiesOf } from '../store/capabilities.js'
import { USED_REGISTRATION } from '../store/one-time-entries.js'
import type { Accounts } from '../accounts/accounts.js'
import type { AuthStore } from '../accounts/auth-store.js'
import { localIdentity } from './local.js'
import { type Confirmation, assertUnused } from '../mails/mail-links.js'
import { assertText } from './methods.js'
import type { AuthenticatedUser } from '../sign-in/complete-sign-in.js'
import { signIn, written } from '../sign-in/sign-in.js'
import type { SignInRules } from './sign-in-rules.js'

/** The fields of the registration form, without empty ones. */
export interface Registration {
  email: string
  password: string
  name: string | undefined
  role: string | undefined
  emailVerified: boolean
  remember: boolean
  passwords: Passwords
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
  const authenticated = await createAccount(local, rules.accounts, { ...registration, isConfirmed: false })
  const { user } = authenticated
  if (!confirmation.isRequired) return afterwards(signIn(request, rules, authenticated), () => confirmation.send(user))
  confirmation.send(user)
  return null
}

/** Does what follows a sign-in, also one that waits for a second factor: the user is created. */
async function afterwards (signIn: Promise<Principal>, follow: () => void | Promise<void>): Promise<Principal> {
  try {
    const principal = await signIn
    await follow()
    return principal
  } catch (error) {
    if (error instanceof AuthError && error.code === 'second_factor_required') await follow()
    throw error
  }
}

/**
 * Sends the link to the registration form to an address in canonical form; to one that an account
 * has, a mail that says so. The answer follows the one look-up for each address, so that neither
 * the answer nor its time tells whether an account has it.
 */
export async function askToRegister (store: AuthStore, outbox: Outbox, email: string): Promise<void> {
  outbox.refuseWhenFull()
  const user = await store.findUser({ email })
  if (user === null) outbox.link('register', { userId: randomUUID(), generation: 0, email, to: email }, null)
  else outbox.sendTo('exists', email, user)
}

/** A link to register, with the address that it confirms. */
export interface RegistrationLink {
  readonly userId: string
  readonly email: string
}

/**
 * Verifies the token of a link to register.
 *
 * @throws AuthError `invalid_token`, also for a link that was used
 */
export async function openRegistration (
  store: AuthStore, tokens: MailTokens, token: string
): Promise<RegistrationLink> {
  const link = await tokens.verify('register', token)
  await assertUnused(store, link)
  return { userId: link.userId, email: String(link.to) }
}

/**
 * Creates a user whose address a link has confirmed, and signs them in. The link is used then.
 *
 * @param link what {@link openRegistration} returned
 * @throws AuthError as {@link register}
 */
export async function registerConfirmed (
  request: FastifyRequest,
  local: LocalIdentityProvider,
  rules: SignInRules,
  { link, ...registration }: Omit<Registration, 'email' | 'emailVerified'> & { link: RegistrationLink }
): Promise<Principal> {
  const account = { ...registration, email: link.email, emailVerified: false, isConfirmed: true }
  const { entries } = capabilitiesOf(rules.store)
  const owner = digestOf(link.userId)
  const use = { hash: digestOf(randomUUID()), kind: USED_REGISTRATION, owner, content: {}, startedAt: Date.now() }
  const authenticated = await createAccount(local, rules.accounts, account, async () => {
    // Another request has used the link while this one hashed its password.
    if (await entries?.has(owner, USED_REGISTRATION, 0) === true) throw new AuthError('exists')
    // Before there is an account: whatever crashes from now on, the link makes no second one.
    await entries?.put(use, 1)
  })
  try {
    return await signIn(request, rules, authenticated)
  } catch (error) {
    // A user that `onSignIn` refuses is deleted, and may use the link again.
    const { userId } = authenticated.user
    if (await rules.store.findUser({ userId }) === null) await entries?.take(use.hash, use.kind, [owner])
    throw error
  }
}

/**
 * Creates a user with a password, who is new until they are signed in.
 *
 * @throws AuthError as {@link register}
 */
async function createAccount (
  local: LocalIdentityProvider,
  accounts: Accounts,
  { isConfirmed, ...registration }: Registration & { isConfirmed: boolean },
  before: () => Promise<void> = async () => {}
): Promise<AuthenticatedUser> {
  assertText(registration.password)
  const claims = initialClaims(local, registration)
  const name = registration.name === undefined ? null : checkedName(registration.name)
  const email = checkedEmail(registration.email)
  const passwordHash = await registration.passwords.hashPassword(registration.password, { email })

  const userId = randomUUID()
  const identity: IdentityClaims = {
    sub: userId,
    email,
    ...((registration.emailVerified || isConfirmed) && { email_verified: true }),
    ...(name !== null && { name })
  }
  const link = { provider: 'local', subject: email, claims: identity }
  await before()
  const user = await accounts.createUser({
    userId,
    email,
    // The form proves nothing: accounts are never linked on what it says.
    emailVerified: isConfirmed,
    name,
    claims,
    isNew: true,
    link,
    passwordHash
  })
  if (user === null) throw new AuthError('exists')
  const { remember } = registration
  return { ...written(user), isNew: 'user', identity: localIdentity(user, link), method: 'password', remember }
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
