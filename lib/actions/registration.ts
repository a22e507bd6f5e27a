import { randomUUID } from 'node:crypto'
import { digestOf } from '../base/digest.js'
import { type AuthorizationClaims, type IdentityClaims, authorizationClaims, checkedName } from '../claims.js'
import { type AuthContext, hasMails, hasPasswords, needed } from '../context.js'
import { assertText } from '../current-user/recent.js'
import { checkedEmail } from '../email.js'
import { AuthError } from '../errors.js'
import type { Passwords } from '../local-identity-provider.js'
import { assertUnused, sendVerification } from '../mails/mail-links.js'
import type { AuthenticatedUser } from '../sign-in/complete-sign-in.js'
import { localIdentity, signIn, written } from '../sign-in/sign-in.js'
import { USED_REGISTRATION } from '../store/one-time-entries.js'
import { ACCEPTED, type Form, form, signedInAs } from '../web/form.js'
import type { LimitName } from '../web/limits.js'
import { NEW_PASSWORD_REFUSALS, email, newPassword } from '../web/password-forms.js'
import { checkbox, filledIn, isChecked, remember, signedIn, token } from '../web/schema-parts.js'

/** The form that creates a user at once. */
const route = {
  path: '/local/register',
  user: 'anyone',
  fields: {
    email,
    password: newPassword,
    name: { type: 'string', maxLength: 1000, description: 'A display name' },
    role: { type: 'string', maxLength: 1000, description: 'An initial claim, if the application allows it' },
    email_verified: {
      ...checkbox,
      description: 'A checkbox: an initial claim, if the application allows it'
    },
    remember
  },
  required: ['email', 'password'],
  allowsExtraFields: true,
  hashes: true,
  // A registration sends a mail, and one mailbox may have many addresses.
  limits: ({ mailer }: AuthContext): readonly LimitName[] => mailer === null ? ['register'] : ['register', 'mail'],
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
  const authenticated = await createAccount(auth, passwords, fields)
  const principal = await signIn(auth, request, authenticated).catch((error: unknown) => {
    // The user is created, although the sign-in waits.
    const waits = error instanceof AuthError && error.code === 'second_factor_required'
    if (waits) sendVerification(authenticated.user, outbox)
    throw error
  })
  sendVerification(authenticated.user, outbox)
  return signedInAs(principal, 201)
})

/**
 * Creates a user with a password, with `registration.verify: 'required'`: they sign in once the
 * link in a mail has confirmed their address.
 */
export const registerUnconfirmed = form({
  ...route,
  when: auth => hasPasswords(auth) && auth.local?.registration?.verify === 'required',
  summary: 'Register with e-mail and password; the link in a mail confirms the address',
  answers: { 202: { type: 'null', description: 'Registered: the user signs in once their address is confirmed' } },
  refuses: REFUSALS
}, async (auth, { fields, passwords, outbox }) => {
  outbox.refuseWhenFull()
  const { user } = await createAccount(auth, passwords, fields)
  sendVerification(user, outbox)
  return ACCEPTED
})

/**
 * With `registration.verify: 'first'`, the form takes the e-mail alone, and the link in the mail
 * leads to the form for name and password: it creates a user whose address is confirmed, and signs
 * them in. The link is used then.
 */
export const registerConfirmed = form({
  path: '/local/register',
  when: auth => hasMails(auth) && hasPasswords(auth) && auth.local?.registration?.verify === 'first',
  summary: 'Ask for the link to register, or register with its token',
  description: 'With the e-mail alone: sends a link to it; the answer is the same for each address, whether or not ' +
    'an account has it. With the token of the link and a password: registers the user and signs them in. ' +
    'A password without a token is refused.',
  user: 'anyone',
  fields: {
    email: { ...email, description: `${email.description}; without a token` },
    token,
    password: { type: 'string', description: '8 to 1024 bytes; with a token' },
    name: { type: 'string', maxLength: 1000, description: 'A display name; with a token' },
    role: {
      type: 'string',
      maxLength: 1000,
      description: 'An initial claim, if the application allows it; with a token'
    },
    remember: { ...remember, description: `${remember.description}; with a token` }
  },
  allowsExtraFields: true,
  answers: { 201: signedIn, 202: { type: 'null', description: 'Accepted: a mail follows' } },
  refuses: [
    'invalid_email', ...NEW_PASSWORD_REFUSALS, 'invalid_state', 'invalid_token', 'unauthenticated',
    'claim_not_allowed', 'exists'
  ],
  hashes: 'password',
  async bodyLimit (request, { limits }) {
    await limits.register(request)
    await limits.mailOrCode(request)
  },
  isSignInAttempt: true,
  linkPage: {
    kind: 'register',
    summary: 'The page that registers a user whose address is confirmed',
    operationId: 'authLocalRegisterPage',
    user: 'anyone',
    customPage: 'register',
    async open (auth, { token, action }) {
      const { email } = await openRegistration(auth, token)
      const { minPasswordLength: minLength, registration } = needed(auth.local, 'local')
      const { roles = [] } = registration ?? {}
      // Loaded with the first link, because most applications register users without one.
      const { registrationPage } = await import('../pages/link-pages.js')
      return texts => registrationPage(texts, {
        token, action, email, minLength, roles, asksToRemember: auth.remember !== null
      })
    }
  }
}, async (auth, form) => {
  const { request, fields: { email, token, name, role, remember } } = form
  const password = filledIn(form.fields.password)
  if (token === undefined) {
    // Not ignored: a page that asks for a password here would let users believe that they have set
    // it.
    if (email === undefined || password !== undefined) {
      throw invalid('A registration begins with the e-mail alone; the password goes with the token of the mail.')
    }
    await sendLink(auth, form, checkedEmail(email))
    return ACCEPTED
  }
  if (password === undefined) throw invalid('A registration needs a password beside the token of the mail.')

  const link = await openRegistration(auth, token)
  const { accounts, kept: { entries } } = auth
  const owner = digestOf(link.userId)
  const use = { hash: digestOf(randomUUID()), kind: USED_REGISTRATION, owner, content: {}, startedAt: Date.now() }
  const fields = { email: link.email, password, name, role, remember }
  const authenticated = await createAccount(auth, form.passwords, fields, {
    isConfirmed: true,
    async before () {
      // Another request has used the link while this one hashed its password.
      const uses = await entries?.count(owner, USED_REGISTRATION, 0) ?? 0
      if (uses > 0) throw new AuthError('exists')
      // Before there is an account: whatever crashes from now on, the link makes no second one.
      await entries?.put(use, 1)
    }
  })
  try {
    return signedInAs(await signIn(auth, request, authenticated), 201)
  } catch (error) {
    // A user that `onSignIn` refuses is deleted, and may use the link again.
    const { userId } = authenticated.user
    if (await accounts.findUser({ userId }) === null) await entries?.take(use.hash, use.kind, [owner])
    throw error
  }
})

/**
 * Sends the link to the registration form to an address in canonical form; to one that an account
 * has, a mail that says so. The answer follows the one look-up for each address, so that neither
 * the answer nor its time tells whether an account has it.
 */
async function sendLink ({ accounts }: AuthContext, { outbox }: Form<unknown>, email: string): Promise<void> {
  outbox.refuseWhenFull()
  const user = await accounts.findUser({ email })
  if (user === null) outbox.link('register', { userId: randomUUID(), generation: 0, email, to: email }, null)
  else outbox.sendTo('exists', email, user)
}

/**
 * Verifies the token of a link to register, which says what address it confirms.
 *
 * @throws AuthError `invalid_token`, also for a link that was used
 */
async function openRegistration (
  { kept, mailTokens }: AuthContext, token: string
): Promise<{ userId: string, email: string }> {
  const link = await needed(mailTokens, 'sendMail').verify('register', token)
  await assertUnused(kept, link)
  return { userId: link.userId, email: String(link.to) }
}

/** The fields of a registration, as the form sends them. */
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
 * @param how `isConfirmed`: whether a link has confirmed the address; `before`: what comes first,
 *   once the password is hashed
 */
async function createAccount (
  auth: AuthContext,
  passwords: Passwords,
  fields: Registration,
  { isConfirmed = false, before }: { isConfirmed?: boolean, before?: () => Promise<void> } = {}
): Promise<AuthenticatedUser> {
  assertText(fields.password)
  const saysVerified = isChecked(fields.email_verified)
  const claims = initialClaims(auth, { role: filledIn(fields.role), saysVerified })
  const givenName = filledIn(fields.name?.trim())
  const name = givenName === undefined ? null : checkedName(givenName)
  const email = checkedEmail(fields.email)
  const passwordHash = await passwords.hashPassword(fields.password, { email })

  const userId = randomUUID()
  const identity: IdentityClaims = {
    sub: userId,
    email,
    ...((saysVerified || isConfirmed) && { email_verified: true }),
    ...(name !== null && { name })
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

/**
 * Returns the claims that the form asks for. The application must allow them, because any client
 * can post the form.
 */
function initialClaims (
  { local }: AuthContext, { role, saysVerified }: { role: string | undefined, saysVerified: boolean }
): AuthorizationClaims {
  const policy = local?.registration
  if (saysVerified && policy?.emailVerified !== true) throw new AuthError('claim_not_allowed')
  if (role === undefined) return {}
  if (policy?.roles.includes(role) !== true) throw new AuthError('claim_not_allowed')
  return authorizationClaims({ role })
}

function invalid (message: string): AuthError {
  return new AuthError('invalid_request', { message })
}
