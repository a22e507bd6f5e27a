import { type Credential, type User, isBlocked } from '../accounts/account.js'
import { audit, noteSubject } from '../audit.js'
import { type AuthContext, createsPasskeys, hasFactors, hasMails, hasPasswords } from '../context.js'
import { type CurrentUser, current } from '../current-user/current.js'
import { assertText, recentByPassword, verifyPassword } from '../current-user/recent.js'
import { checkedEmail } from '../email.js'
import { AuthError, invalidRequest } from '../errors.js'
import { sendVerification } from '../mails/mail-links.js'
import type { Principal } from '../session/record.js'
import { reauthenticateByPassword } from '../sign-in/reauthentication.js'
import { localIdentity, signIn, written } from '../sign-in/sign-in.js'
import { endOtherSessions } from '../sign-in/sign-out.js'
import { type Act, pathOf } from '../web/act.js'
import { type Form, type FormAnswer, type HashingForm, form, signedInAs } from '../web/form.js'
import {
  NEW_PASSWORD_REFUSALS, UNPROVEN, changed, email, newPassword, password, presentPassword
} from '../web/password-forms.js'
import { checkbox, isChecked, remember, signedIn } from '../web/schema-parts.js'
import { register, registerUnconfirmed } from './registration.js'

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
  refuses: ['invalid_state', 'invalid', 'invalid_email', 'unauthenticated', 'blocked', 'unverified'],
  hashes: true,
  isSignInAttempt: true,
  async again (auth, form) {
    const { user, record } = await current(auth, form.request)
    return signedInWith(auth, form, { user, principal: record.principal })
  }
}, async (auth, form) => {
  const { request, fields: { email, password, remember } } = form
  const { accounts, limits, local } = auth
  const address = checkedEmail(email)
  const credential = await limits.login({ request, email: address }, () => accounts.findCredential(address))
  noteSubject(request, credential?.user.userId)
  // The e-mail may be the wrong one.
  const { outdated } = await verifyPassword(form, password, credential, {})
  if (credential === null) throw new AuthError('invalid')

  const { user, link } = credential
  if (outdated) await rehash(auth, form, credential)
  // After the password was right, so that the answer tells nothing to others.
  if (local?.registration?.verify === 'required' && !user.emailVerified && !isBlocked(user)) {
    const { outbox } = form
    outbox.refuseWhenFull()
    sendVerification(user, outbox)
    throw new AuthError('unverified')
  }
  const identity = localIdentity(user, link)
  const principal = await signIn(auth, request, {
    ...written(user), identity, method: 'password', remember: isChecked(remember)
  })
  return signedInWith(auth, form, { user, principal })
})

/** Leads to the page that offers a passkey, where the browser can make one. */
function signedInWith (
  auth: AuthContext,
  { request, fields: { createPasskey, next } }: Form<{ createPasskey?: unknown, next?: string }>,
  { user, principal }: { user: User, principal: Principal }
): FormAnswer {
  const answer = signedInAs(principal)
  if (!isChecked(createPasskey) || !createsPasskeys(auth) || user.factors !== undefined) return answer
  const query = { next: auth.pages.afterSuccess(request, next) }
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
}, async (auth, form) => reauthenticateByPassword(auth, form, form.fields.password))

export const changePassword = form({
  path: '/local/change-password',
  when: auth => hasMails(auth, 'changePassword'),
  summary: 'Change the password of the signed-in user',
  user: 'signed-in',
  fields: { current: presentPassword, password: newPassword },
  required: ['password'],
  answers: { 204: changed },
  refuses: [...UNPROVEN, ...NEW_PASSWORD_REFUSALS],
  hashes: true,
  isSignInAttempt: true
}, async (auth, form) => {
  assertText(form.fields.password)
  const { credential, ...present } = await recentByPassword(auth, form, form.fields.current)
  if (credential === null) {
    throw invalidRequest('This account has no password yet; set the first one instead.')
  }
  const { link, passwordHash: current } = credential
  if (!await replacePassword(auth, form, present, { email: link.subject, current })) throw new AuthError('invalid')
})

/** Sets the first password of the signed-in user, who must have confirmed their e-mail. */
export const setFirstPassword = form({
  path: '/local/set-password',
  when: auth => hasMails(auth, 'setPassword'),
  summary: 'Set the first password of the signed-in user',
  description: 'The last sign-in must be less than ten minutes ago.',
  user: 'signed-in',
  fields: { password: newPassword },
  required: ['password'],
  answers: { 204: changed },
  refuses: ['invalid_state', 'reauthenticate', 'unverified', 'email_missing', 'exists', ...NEW_PASSWORD_REFUSALS],
  hashes: true,
  isSignInAttempt: true
}, async (auth, form) => {
  assertText(form.fields.password)
  const { credential, ...present } = await recentByPassword(auth, form, undefined)
  if (credential !== null) throw hasPassword()
  const { email, emailVerified } = present.user
  if (email === null || !emailVerified) {
    throw new AuthError(email === null ? 'email_missing' : 'unverified', {
      message: 'A password needs a confirmed e-mail address; confirm one first.'
    })
  }
  if (!await replacePassword(auth, form, present, { email, current: null })) throw hasPassword()
})

export const PASSWORD_ACTS: readonly Act[] = [register, registerUnconfirmed, login, reauthenticate]

/** Replaces an outdated hash of a correct password. A failure does not fail the sign-in. */
async function rehash (
  { accounts }: AuthContext,
  { request, fields: { password }, passwords }: HashingForm<{ password: string }>,
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
  { request, fields: { password }, passwords, outbox }: HashingForm<{ password: string }>,
  { user, record: { generation } }: CurrentUser,
  { email, current }: { email: string, current: string | null }
): Promise<boolean> {
  const { accounts } = auth
  const { userId } = user
  const passwordHash = await passwords.hashPassword(password, { email })
  if (await accounts.setPassword(userId, { passwordHash, current, generation }) === null) {
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
