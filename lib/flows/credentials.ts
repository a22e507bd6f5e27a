import type { FastifyReply, FastifyRequest } from 'fastify'
import { type AuditSource, audit } from '../audit.js'
import { type AuthChannel, announceRevoke } from '../channel.js'
import { checkedEmail } from '../email.js'
import { AuthError } from '../errors.js'
import type { Passwords } from '../local-identity-provider.js'
import type { MailToken } from '../mails/mail-tokens.js'
import type { Outbox } from '../mails/outbox.js'
import { principalOf } from '../session/record.js'
import type { Accounts } from '../accounts/accounts.js'
import type { NewPassword } from '../accounts/credentials.js'
import { claimsOf, hasMailbox, linkFor, userOfLink } from '../mails/mail-links.js'
import { type Method, type UserRules, assertIsUser, assertText, credentialOf, recentUser } from './methods.js'
import { refreshPrincipal } from '../current-user/refresh.js'
import { type DeleteHook, callHook } from './sign-in-rules.js'
import { endOtherSessions, signOut } from './sign-out.js'

/** What the changes of a user's credentials use. */
export interface CredentialRules extends UserRules {
  readonly accounts: Accounts
  readonly channel: AuthChannel
  readonly onDelete: DeleteHook | null
}

/** What a signed-in user changes their credentials with. */
export interface Change {
  /** The method that the form has something for; null for a user who has authenticated recently. */
  method: Method | null
  /**
   * Counts the change for the user, with a method or without one.
   *
   * @throws AuthError `rate_limited`
   */
  countChange: () => Promise<void>
  outbox: Outbox
}

/** A change to a new password. */
export interface PasswordChange extends Change {
  password: string
  passwords: Passwords
}

/**
 * Changes the password of the signed-in user. The session gets a new id; all other sessions of the
 * user end.
 *
 * @throws AuthError `unauthenticated`, `reauthenticate`, `invalid` for a wrong password and for one
 * that was changed meanwhile, `weak_password`, `invalid_request` for a user without a password,
 * `rate_limited`, `busy`, `unavailable`
 */
export async function changePassword (
  request: FastifyRequest,
  rules: CredentialRules,
  change: PasswordChange
): Promise<void> {
  assertText(change.password)
  const { user, record: { generation }, credential } = await recentUser(request, rules, change)
  if (credential === null) {
    throw new AuthError('invalid_request', { message: 'This account has no password yet; set the first one instead.' })
  }
  const { link, passwordHash } = credential
  const next = await change.passwords.hashPassword(change.password, { email: link.subject })
  const changed = { passwordHash: next, current: passwordHash, generation }
  const isChanged = await replacePassword(request, rules, user.userId, changed)
  if (!isChanged) throw new AuthError('invalid')
  change.outbox.notice('password-changed', user)
  await endOtherSessions(request, rules.channel, user.userId)
}

/**
 * Sets the first password of the signed-in user, who must have confirmed their e-mail. The session
 * gets a new id; all other sessions of the user end.
 *
 * @throws AuthError `unauthenticated`, `reauthenticate`, `exists` for a user with a password,
 * `unverified` for a user without a verified e-mail, `weak_password`, `rate_limited`, `busy`,
 * `unavailable`
 */
export async function setFirstPassword (
  request: FastifyRequest,
  rules: CredentialRules,
  change: PasswordChange
): Promise<void> {
  assertText(change.password)
  const { user, record: { generation }, credential } = await recentUser(request, rules, change)
  const { userId } = user
  if (credential !== null) throw hasPassword()
  if (user.email === null || !user.emailVerified) {
    throw new AuthError('unverified', { message: 'A password needs a confirmed e-mail address; confirm one first.' })
  }
  const passwordHash = await change.passwords.hashPassword(change.password, { email: user.email })
  const isSet = await replacePassword(request, rules, userId, { passwordHash, current: null, generation })
  if (!isSet) throw hasPassword()
  change.outbox.notice('password-changed', user)
  await endOtherSessions(request, rules.channel, userId)
}

/**
 * Sends a link to a new address of the signed-in user, and tells the present one. Nothing is stored
 * and the new address is not looked up, so the answer is the same whether or not it is taken.
 *
 * @param countLink counts the link for the user
 * @throws AuthError `unauthenticated`, `reauthenticate`, `invalid`, `invalid_email`,
 * `invalid_request` for a user without an e-mail, `rate_limited`, `busy`, `unavailable`
 */
export async function requestNewEmail (
  request: FastifyRequest,
  rules: CredentialRules,
  { email, countLink, ...change }: Change & { email: string, countLink: () => Promise<void> }
): Promise<void> {
  change.outbox.refuseWhenFull()
  const { user, record: { generation } } = await recentUser(request, rules, change)
  const to = checkedEmail(email)
  if (!hasMailbox(user)) {
    throw new AuthError('invalid_request', { message: 'This account has no e-mail address that could be changed.' })
  }
  await countLink()
  change.outbox.link('change-email', { ...linkFor(user), generation, to }, user)
  change.outbox.notice('email-change-requested', user)
}

/**
 * Changes the e-mail of a user who has confirmed the new one and is signed in or gives their
 * password. A session of the user that the request has gets a new id; all others end.
 *
 * @throws AuthError `invalid_token`, `unauthenticated` for a user who is not signed in and gives no
 * password, `invalid`, `exists` when another user has the new address, `rate_limited`, `busy`,
 * `unavailable`
 */
export async function confirmNewEmail (
  request: FastifyRequest,
  { store, accounts, channel }: CredentialRules,
  { link, method, outbox }: { link: MailToken & { to: string }, method: Method | null, outbox: Outbox }
): Promise<void> {
  const { userId, to } = link
  const user = await userOfLink(store, link)
  await assertIsUser(request, store, { userId, method }).catch(async (error: unknown) => {
    // A link that is used meanwhile moves the account: its password was not found then.
    await userOfLink(store, link)
    throw error
  })
  const changed = await accounts.changeEmail(claimsOf(user), to)
  if (changed === null) throw new AuthError('invalid_token')
  audit('email', { userId }, request)
  outbox.notice('email-changed', user)
  await endOtherSessions(request, channel, userId)
  if (principalOf(request)?.userId === userId) await refreshPrincipal(request, store)
}

/**
 * Deletes the signed-in user and signs them out.
 *
 * @throws what the hook throws; AuthError `unauthenticated`, `reauthenticate`, `invalid`,
 * `user_in_use`, `rate_limited`, `busy`, `unavailable`
 */
export async function deleteAccount (
  request: FastifyRequest,
  reply: FastifyReply,
  rules: CredentialRules,
  change: Omit<Change, 'outbox'>
): Promise<void> {
  const { record: { principal: { userId }, generation } } = await recentUser(request, rules, change)
  await callHook(() => rules.onDelete?.({ request, userId }))
  const isDeleted = await deleteUser(rules.accounts, { userId, generation }, request)
  if (!isDeleted) throw new AuthError('unauthenticated')
  announceRevoke(rules.channel, userId, request)
  await signOut(request, reply, rules, userId)
}

/**
 * Deletes a user with their links, claims and password.
 *
 * @param user `generation`: that of the session that asks for it
 * @returns false when the sessions of the user were ended since
 * @throws AuthError `unknown_user`, `user_in_use`, `unavailable`
 */
export async function deleteUser (
  accounts: Accounts,
  { userId, generation }: { userId: string, generation?: number },
  source: AuditSource | null
): Promise<boolean> {
  const isDeleted = await accounts.deleteUser(userId, generation)
  if (isDeleted) audit('deletion', { userId }, source)
  return isDeleted
}

/**
 * Returns whether the password of the user was still `current`, and is the new one now.
 *
 * @throws AuthError `unauthenticated` when the sessions of the user were ended since
 */
async function replacePassword (
  request: FastifyRequest,
  { store, accounts }: CredentialRules,
  userId: string,
  password: NewPassword & { current: string | null, generation: number }
): Promise<boolean> {
  if (await accounts.setPassword(userId, password) !== null) {
    audit('password', { userId }, request)
    return true
  }
  const credential = await credentialOf(store, userId)
  if ((credential?.passwordHash ?? null) === password.current) throw new AuthError('unauthenticated')
  return false
}

function hasPassword (): AuthError {
  return new AuthError('exists', { message: 'This account, or another one with its address, has a password already.' })
}
