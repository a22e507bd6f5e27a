import { randomUUID } from 'node:crypto'
import { type AuthorizationClaims, type IdentityClaims, authorizationClaims, checkedName } from '../claims.js'
import { type AuthContext, hasPasswords } from '../context.js'
import { type PasswordForm, assertText } from '../current-user/recent.js'
import { checkedEmail } from '../email.js'
import { AuthError } from '../errors.js'
import type { Passwords } from '../local-identity-provider.js'
import { sendVerification } from '../mails/mail-links.js'
import { SENT_MS } from '../session/seen-sessions.js'
import type { AuthenticatedUser } from '../sign-in/complete-sign-in.js'
import { localIdentity, signIn, written } from '../sign-in/sign-in.js'
import { ACCEPTED, form, signedInAs } from '../web/form.js'
import { NEW_PASSWORD_REFUSALS, email, newPassword } from '../web/password-forms.js'
import { checkbox, filledIn, isChecked, remember, signedIn } from '../web/schema-parts.js'

/** The form that creates a user at once. */
const route = {
  path: '/local/register',
  user: 'anyone',
  fields: {
    email,
    password: newPassword,
    name: { type: 'string', maxLength: 1000, description: 'A display name' },
    role: { type: 'string', maxLength: 1000, description: 'An initial claim, if the application allows it' },
    email_verified: { ...checkbox, description: 'A checkbox: an initial claim, if the application allows it' },
    remember
  },
  required: ['email', 'password'],
  allowsExtraFields: true,
  hashes: true,
  // A registration sends a mail, and one mailbox may have many addresses.
  limits: ['register', 'mail'],
  isSignInAttempt: true
} as const

const REFUSALS = ['invalid_email', ...NEW_PASSWORD_REFUSALS, 'claim_not_allowed', 'exists'] as const

/** Creates a user with a password and signs them in. Sends the link that confirms their address. */
export const register = form({
  ...route,
  when: auth => hasPasswords(auth) && auth.local?.registration?.verify === 'later',
  summary: 'Register with e-mail and password, and sign in',
  answers: { 201: signedIn },
  refuses: [...REFUSALS, 'invalid_state', 'unauthenticated']
}, async (auth, { request, fields, passwords, outbox }) => {
  outbox.refuseWhenFull()
  const { isKnown, ...authenticated } = await createOrFind(auth, { request, fields, passwords })
  const principal = await signIn(auth, request, authenticated).catch((error: unknown) => {
    // The user is created, although the sign-in waits.
    const waits = error instanceof AuthError && error.code === 'second_factor_required'
    if (waits && !isKnown) sendVerification(authenticated.user, outbox)
    throw error
  })
  if (!isKnown) sendVerification(authenticated.user, outbox)
  return signedInAs(principal, 201)
})

export const registerUnconfirmed = form({
  ...route,
  when: auth => hasPasswords(auth) && auth.local?.registration?.verify === 'required',
  summary: 'Register with e-mail and password; the link in a mail confirms the address',
  answers: { 202: { type: 'null', description: 'Registered: the user signs in once their address is confirmed' } },
  refuses: REFUSALS
}, async (auth, { request, fields, passwords, outbox }) => {
  outbox.refuseWhenFull()
  const { user, isKnown } = await createOrFind(auth, { request, fields, passwords })
  if (!isKnown) sendVerification(user, outbox)
  return ACCEPTED
})

/** Creates a user, or finds the one whom the same form has created. */
async function createOrFind (
  auth: AuthContext, form: PasswordForm & { readonly fields: Registration }
): Promise<AuthenticatedUser & { isKnown: boolean }> {
  try {
    return { ...await createAccount(auth, form.passwords, form.fields), isKnown: false }
  } catch (error) {
    const isTaken = error instanceof AuthError && error.code === 'exists'
    const found = isTaken ? await registeredJustNow(auth, form, form.fields) : null
    if (found === null) throw error
    return { ...found, isKnown: true }
  }
}

/**
 * Returns the user who was made in this minute with this very password, because the form was sent
 * twice, perhaps without a cookie. That counts as a sign-in.
 */
export async function registeredJustNow (
  auth: AuthContext, { request, passwords }: PasswordForm, { email: typed, password, remember }: Registration
): Promise<AuthenticatedUser | null> {
  const email = checkedEmail(typed)
  const found = await auth.accounts.findCredential(email)
  if (found === null || found.user.createdAt.getTime() < Date.now() - SENT_MS) return null
  await auth.limits.login({ request, email }, async () => null)
  const { matches } = await passwords.verifyPassword(found.passwordHash, password)
  const { user, link } = found
  const how = { method: 'password', remember: isChecked(remember) } as const
  return matches ? { ...written(user), identity: localIdentity(user, link), ...how } : null
}

interface Registration {
  readonly email: string
  readonly password: string
  readonly name?: string | undefined
  readonly role?: string | undefined
  readonly email_verified?: boolean | string
  readonly remember?: boolean | string | undefined
}

/**
 * Creates a user with a password, who is new until they are signed in.
 *
 * @param how `userId`: the id of the user; `isConfirmed`: whether a link has confirmed the address;
 *   `before`: what comes first, once the password is hashed
 */
export async function createAccount (
  auth: AuthContext,
  passwords: Passwords,
  fields: Registration,
  { userId = randomUUID(), isConfirmed = false, before }: {
    userId?: string, isConfirmed?: boolean, before?: () => Promise<void>
  } = {}
): Promise<AuthenticatedUser> {
  assertText(fields.password)
  const saysVerified = isChecked(fields.email_verified)
  const claims = initialClaims(auth, { role: filledIn(fields.role), saysVerified })
  const givenName = filledIn(fields.name?.trim())
  const name = givenName === undefined ? null : checkedName(givenName)
  const email = checkedEmail(fields.email)
  const passwordHash = await passwords.hashPassword(fields.password, { email })

  const isVerified = saysVerified || isConfirmed
  const identity: IdentityClaims = {
    sub: userId, email, ...(isVerified && { email_verified: true }), ...(name !== null && { name })
  }
  const link = { provider: 'local', subject: email, claims: identity }
  await before?.()
  const user = await auth.accounts.createUser({
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
  const remember = isChecked(fields.remember)
  return { ...written(user), isNew: 'user', identity: localIdentity(user, link), method: 'password', remember }
}

/** Returns the claims that the form asks for; the application must allow them: anyone can post. */
function initialClaims (
  { local }: AuthContext, { role, saysVerified }: { role: string | undefined, saysVerified: boolean }
): AuthorizationClaims {
  const policy = local?.registration
  if (saysVerified && policy?.emailVerified !== true) throw new AuthError('claim_not_allowed')
  if (role === undefined) return {}
  if (policy?.roles.includes(role) !== true) throw new AuthError('claim_not_allowed')
  return authorizationClaims({ role })
}
