import { randomUUID } from 'node:crypto'
import { type Credential, type User, isBlocked } from '../../accounts/account.js'
import type { NewUser } from '../../accounts/identities.js'
import { audit, noteSubject } from '../../audit.js'
import { type AuthorizationClaims, type IdentityClaims, authorizationClaims, checkedName } from '../../claims.js'
import { type Act, pathOf } from '../../core/act.js'
import { reauthenticateBy } from '../../core/complete-sign-in.js'
import type { AuthContext, WithAccounts } from '../../core/context.js'
import { type CurrentUser, current } from '../../core/current-user.js'
import { ACCEPTED, type FormAnswer, form, signedInAs } from '../../core/form.js'
import { guestOf, promotionOf } from '../../core/guests.js'
import { refuseOtherWays } from '../../core/required-connection.js'
import { checkbox, filledIn, isChecked, remember, signedIn } from '../../core/schema.js'
import { localIdentity, signIn, withoutWrites } from '../../core/sign-in.js'
import { endOtherSessions } from '../../core/sign-out.js'
import { checkedEmail } from '../../email.js'
import { AuthError, invalidRequest } from '../../errors.js'
import { creating } from '../../hooks.js'
import type { Principal } from '../../session/record.js'
import { SENT_MS } from '../../session/seen-sessions.js'
import {
  NEW_PASSWORD_REFUSALS, UNPROVEN, changed, email, newPassword, password, presentPassword, recentByPassword,
  verifyPassword
} from './forms.js'
import type { Findings } from '../../core/findings.js'
import type { HashingSubmission, Submission } from '../../core/submission.js'
import { verifyOwn } from './method.js'
import { hasFactors } from '../../core/methods.js'
import { hasPasswords } from '../local/offers.js'
import { assertText } from './hashing.js'
import { sendVerification } from '../mail-links.js'

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

const REFUSALS = ['invalid_email', 'sso_required', ...NEW_PASSWORD_REFUSALS, 'claim_not_allowed', 'exists'] as const

/** Creates a user with a password and signs them in. Sends the link that confirms their address. */
export const register = form({
  ...route,
  when: auth => hasPasswords(auth) && auth.local?.registration?.verify === 'later',
  summary: 'Register with e-mail and password, and sign in',
  answers: { 201: signedIn },
  refuses: [...REFUSALS, 'invalid_state', 'unauthenticated']
}, async (auth, submission) => {
  const { request, outbox } = submission
  outbox.refuseWhenFull()
  await refuseNewAccount(auth, submission.fields)
  const guest = await guestOf(auth, request)
  const { isKnown, ...authenticated } = await createOrFind(auth, submission, guest)
  const principal = await signIn(auth, request, authenticated).catch((error: unknown) => {
    // The user is created, although the sign-in waits.
    const waits = error instanceof AuthError && error.code === 'second_factor_required'
    if (waits && !isKnown && guest === null) sendVerification(authenticated.user, outbox)
    throw error
  })
  const user = guest === null ? authenticated.user : await auth.accounts.findUser(principal)
  if (!isKnown && user !== null) sendVerification(user, outbox)
  return signedInAs(principal, 201)
})

const registerUnconfirmed = form({
  ...route,
  when: auth => hasPasswords(auth) && auth.local?.registration?.verify === 'required',
  summary: 'Register with e-mail and password; the link in a mail confirms the address',
  answers: { 202: { type: 'null', description: 'Registered: the user signs in once their address is confirmed' } },
  refuses: REFUSALS
}, async (auth, submission) => {
  const { outbox } = submission
  outbox.refuseWhenFull()
  await refuseNewAccount(auth, submission.fields)
  const { user, isKnown } = await createOrFind(auth, submission, null)
  if (!isKnown) sendVerification(user, outbox)
  const email = checkedEmail(submission.fields.email)
  return { ...ACCEPTED, asked: { form: 'register', email } }
})

/** The answer is the same whether or not a user has the address. */
async function refuseNewAccount (
  auth: Pick<AuthContext, 'connectionRule'>, { email }: Pick<Registration, 'email'>
): Promise<void> {
  if (auth.connectionRule !== null) await refuseOtherWays(auth, { email: checkedEmail(email), userId: null })
}

/** Creates a user, or finds the one whom the same form has created. */
async function createOrFind (
  auth: Pick<AuthContext, 'accounts' | 'limits' | 'local' | 'onCreateUser'>,
  submission: HashingSubmission<Registration>,
  guest: User | null
): Promise<Findings & { isKnown: boolean }> {
  try {
    return { ...await createAccount(auth, submission, submission.fields, { guest }), isKnown: false }
  } catch (error) {
    const isTaken = error instanceof AuthError && error.code === 'exists'
    const found = isTaken ? await registeredJustNow(auth, submission, submission.fields) : null
    if (found === null) throw error
    return { ...found, isKnown: true }
  }
}

/**
 * Returns the user who was made in this minute with this very password, because the form was sent
 * twice, perhaps without a cookie. That counts as a sign-in.
 */
export async function registeredJustNow (
  auth: Pick<AuthContext, 'accounts' | 'limits'>, { request, passwords }: HashingSubmission<unknown>,
  { email: typed, password, remember }: Registration
): Promise<Findings | null> {
  const email = checkedEmail(typed)
  const found = await auth.accounts.findCredential(email)
  if (found === null || found.user.createdAt.getTime() < Date.now() - SENT_MS) return null
  await auth.limits.login({ request, email }, async () => null)
  const { matches } = await passwords.verifyPassword(found.passwordHash, password)
  const { user, link } = found
  const how = { method: 'password', remember: isChecked(remember) } as const
  return matches ? { ...withoutWrites(user), identity: localIdentity(user, link), ...how } : null
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
 *   `before`: what comes first, once the password is hashed; `guest`: who becomes the user
 */
export async function createAccount (
  auth: Pick<AuthContext, 'accounts' | 'local' | 'onCreateUser'>,
  { request, passwords }: Pick<HashingSubmission<unknown>, 'request' | 'passwords'>,
  fields: Registration,
  { userId: newId = randomUUID(), isConfirmed = false, before, guest = null }: {
    userId?: string, isConfirmed?: boolean, before?: () => Promise<void>, guest?: User | null
  } = {}
): Promise<Findings> {
  assertText(fields.password)
  const userId = guest?.userId ?? newId
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
  const newUser: NewUser = {
    userId,
    email,
    // The form proves nothing: accounts are never linked on what it says.
    emailVerified: isConfirmed,
    name,
    claims,
    isNew: true,
    link,
    passwordHash
  }
  const how = { method: 'password', remember: isChecked(fields.remember) } as const
  if (guest !== null) {
    if (await auth.accounts.findUser({ email }) !== null) throw new AuthError('exists')
    return { ...withoutWrites(guest), ...promotionOf(request, guest, newUser), ...how }
  }
  const user = await auth.accounts.createUser(newUser, creating(auth, { method: 'password', request }))
  if (user === null) throw new AuthError('exists')
  return { ...withoutWrites(user), isNew: 'user', identity: localIdentity(user, link), ...how }
}

/** Returns the claims that the form asks for; the application must allow them: anyone can post. */
export function initialClaims (
  { local }: Pick<AuthContext, 'local'>, { role, saysVerified }: { role: string | undefined, saysVerified: boolean }
): AuthorizationClaims {
  const policy = local?.registration
  if (saysVerified && policy?.emailVerified !== true) throw new AuthError('claim_not_allowed')
  if (role === undefined) return {}
  if (policy?.roles.includes(role) !== true) throw new AuthError('claim_not_allowed')
  return authorizationClaims({ role })
}

const createPasskey = {
  ...checkbox,
  description: 'Whether the browser can make a passkey by itself: the script of the sign-in page says so'
} as const

/**
 * Signs a user in by e-mail and password. A wrong password and an unknown e-mail are refused alike;
 * a user whose address must be confirmed first gets the link again.
 */
export const login = form({
  path: '/local/login',
  when: hasPasswords,
  summary: 'Sign in with e-mail and password',
  user: 'anyone',
  fields: { email, password, remember, createPasskey },
  required: ['email', 'password'],
  allowsExtraFields: true,
  answers: { 200: signedIn },
  refuses: ['invalid_state', 'invalid', 'invalid_email', 'unauthenticated', 'blocked', 'sso_required', 'unverified'],
  hashes: true,
  isSignInAttempt: true,
  whileImpersonating: true,
  async again (auth, submission) {
    const { user, record } = await current(auth, submission.request)
    return signedInWith(auth, submission, { user, principal: record.principal })
  }
}, async (auth, submission) => {
  const { request, fields: { email, password, remember } } = submission
  const { accounts, limits, local } = auth
  const address = checkedEmail(email)
  const credential = await limits.login({ request, email: address }, () => accounts.findCredential(address))
  noteSubject(request, credential?.user.userId)
  // The e-mail may be the wrong one.
  const { outdated } = await verifyPassword(submission, password, credential, {})
  if (credential === null) throw new AuthError('invalid')

  const { user, link } = credential
  if (outdated) await rehash(auth, submission, credential)
  // After the password was right, so that the answer tells nothing to others.
  if (local?.registration?.verify === 'required' && !user.emailVerified && !isBlocked(user)) {
    const { outbox } = submission
    outbox.refuseWhenFull()
    await refuseOtherWays(auth, user)
    sendVerification(user, outbox)
    throw new AuthError('unverified')
  }
  const identity = localIdentity(user, link)
  const principal = await signIn(auth, request, {
    ...withoutWrites(user), identity, method: 'password', remember: isChecked(remember)
  })
  return signedInWith(auth, submission, { user, principal })
})

/** Leads to the page that offers a passkey, where the browser can make one. */
function signedInWith (
  auth: AuthContext,
  { request, fields: { createPasskey, next } }: Submission<{ createPasskey?: unknown, next?: string }>,
  { user, principal }: { user: User, principal: Principal }
): FormAnswer {
  const answer = signedInAs(principal)
  const isOffered = auth.parts.passkeys?.createsOnPages === true && user.factors === undefined
  if (!isChecked(createPasskey) || !isOffered) return answer
  const query = { next: auth.redirects.afterSuccess(request, next) }
  return { ...answer, page: pathOf(auth, 'pages/create-passkey'), query }
}

/** Authenticates the signed-in user again, by their password; with factors, another act does. */
export const reauthenticate = form({
  path: '/local/reauthenticate',
  when: auth => hasPasswords(auth) && !hasFactors(auth),
  summary: 'Authenticate the signed-in user again',
  user: 'signed-in',
  fields: { password },
  required: ['password'],
  answers: { 204: { type: 'null', description: 'Done: the session has a new id' } },
  refuses: ['invalid_state', 'invalid'],
  hashes: true,
  limits: ['reauthenticate'],
  isSignInAttempt: true
}, async (auth, submission) => reauthenticateBy(auth, submission.request, async owner =>
  verifyOwn(auth, submission, submission.fields.password, owner)))

const change = {
  user: 'signed-in', required: ['password'], answers: { 204: changed }, hashes: true, isSignInAttempt: true
} as const

export const changePassword = form({
  ...change,
  path: '/local/change-password',
  when: ({ local }) => local?.accountRoutes.changePassword === true,
  summary: 'Change the password of the signed-in user',
  fields: {
    current: presentPassword,
    password: newPassword,
    keys: { ...checkbox, description: 'A checkbox: all API keys of the user end, too' }
  },
  refuses: [...UNPROVEN, 'sso_required', ...NEW_PASSWORD_REFUSALS]
}, async (auth, submission) => {
  assertText(submission.fields.password)
  const { credential, ...present } = await recentByPassword(auth, submission, submission.fields.current)
  await refuseOtherWays(auth, present.user)
  if (credential === null) {
    throw invalidRequest('This account has no password yet; set the first one instead.')
  }
  const { link, passwordHash: current } = credential
  const isReplaced = await replacePassword(auth, submission, present, {
    email: link.subject, current, endsKeys: isChecked(submission.fields.keys)
  })
  if (!isReplaced) throw new AuthError('invalid')
})

/** Sets the first password of the signed-in user, who must have confirmed their e-mail. */
export const setFirstPassword = form({
  ...change,
  path: '/local/set-password',
  when: ({ local }) => local?.accountRoutes.setPassword === true,
  summary: 'Set the first password of the signed-in user',
  description: 'The last sign-in must be less than ten minutes ago.',
  fields: { password: newPassword },
  refuses: [
    'invalid_state', 'reauthenticate', 'sso_required', 'unverified', 'email_missing', 'exists', ...NEW_PASSWORD_REFUSALS
  ]
}, async (auth, submission) => {
  assertText(submission.fields.password)
  const { credential, ...present } = await recentByPassword(auth, submission, undefined)
  await refuseOtherWays(auth, present.user)
  if (credential !== null) throw hasPassword()
  const { email, emailVerified } = present.user
  if (email === null || !emailVerified) {
    throw new AuthError(email === null ? 'email_missing' : 'unverified', {
      message: 'A password needs a confirmed e-mail address; confirm one first.'
    })
  }
  if (!await replacePassword(auth, submission, present, { email, current: null })) throw hasPassword()
})

export const PASSWORD_ACTS: readonly Act[] = [register, registerUnconfirmed, login, reauthenticate]

/** Replaces an outdated hash of a correct password. A failure does not fail the sign-in. */
async function rehash (
  { accounts }: WithAccounts,
  { request, fields: { password }, passwords }: HashingSubmission<{ password: string }>,
  { user: { userId }, passwordHash }: Credential
): Promise<void> {
  try {
    await accounts.replacePasswordHash(userId, passwordHash, await passwords.rehashPassword(password))
  } catch (error) {
    request.log.warn({ err: error, userId }, 'the password hash could not be renewed')
  }
}

/**
 * Sets the password in a form in place of `current`, null for none. The session gets a new id.
 *
 * @returns false when the password of the user is another one by now
 */
async function replacePassword (
  auth: AuthContext,
  { request, fields: { password }, passwords, outbox }: HashingSubmission<{ password: string }>,
  { user, record: { generation } }: CurrentUser,
  { email, current, endsKeys = false }: { email: string, current: string | null, endsKeys?: boolean }
): Promise<boolean> {
  const { accounts } = auth
  const { userId } = user
  const passwordHash = await passwords.hashPassword(password, { email })
  if (await accounts.setPassword(userId, { passwordHash, current, generation, endsKeys }) === null) {
    const credential = await accounts.credentialOf(userId)
    if ((credential?.passwordHash ?? null) === current) throw new AuthError('unauthenticated')
    return false
  }
  audit('password', { userId }, request)
  outbox.notice('password-changed', user)
  await endOtherSessions(auth, request, userId)
  return true
}

function hasPassword (): AuthError {
  return new AuthError('exists', { message: 'This account, or another one with its address, has a password already.' })
}
