import type { FastifyReply, FastifyRequest } from 'fastify'
import { type AuditSource, audit } from '../audit.js'
import { type AuthChannel, announceRevoke } from '../channel.js'
import { canonicalEmail } from '../email.js'
import { AuthError } from '../errors.js'
import type { Caller } from '../local/fair-queue.js'
import type { LocalIdentityProvider } from '../local/identity-provider.js'
import type { NewEmailProof } from '../local/mail-token.js'
import type { Outbox } from '../local/outbox.js'
import { signOutSession } from '../session/principal.js'
import type { SessionRecord } from '../session/record.js'
import type { Credential } from '../accounts/account.js'
import type { Accounts } from '../accounts/accounts.js'
import type { AuthStore } from '../accounts/auth-store.js'
import type { NewPassword } from '../accounts/credentials.js'
import { assertText, credentialOf } from './local.js'
import { userOfLink } from './mail-links.js'
import { RECENT_SECONDS, isRecent } from './reauthentication.js'
import { confirmedRecord, presentPrincipal, refreshPrincipal } from './refresh.js'
import { endOtherSessions } from './sign-out.js'

/** What the changes of a user's credentials use. */
export interface CredentialRules {
  readonly local: LocalIdentityProvider
  readonly store: AuthStore
  readonly accounts: Accounts
  readonly channel: AuthChannel
}

/** A password by which a user proves who they are. */
export interface GivenPassword {
  /** Undefined when the form has none. */
  password: string | undefined
  caller: Caller
  /**
   * Counts the attempt at the account with an e-mail.
   *
   * @throws AuthError `rate_limited`
   */
  count: (email: string) => Promise<void>
}

/** How a signed-in user proves who they are: by their password, or by a recent sign-in. */
export interface GivenProof extends GivenPassword {
  /**
   * Counts the change for the user, with a password or without one.
   *
   * @throws AuthError `rate_limited`
   */
  countChange: () => Promise<void>
}

/** What a signed-in user changes their credentials with. */
export interface ChangeForm {
  current: GivenProof
  outbox: Outbox
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
  { password, current, outbox }: ChangeForm & { password: string }
): Promise<void> {
  assertText(password)
  const { record: { generation }, credential } = await provenUser(request, rules, current)
  if (credential === null) {
    throw new AuthError('invalid_request', { message: 'This account has no password yet; set the first one instead.' })
  }
  const { user, link, passwordHash } = credential
  const next = await rules.local.hashPassword(password, { email: link.subject }, current.caller)
  const changed = { passwordHash: next, current: passwordHash, generation }
  const isChanged = await replacePassword(request, rules, user.userId, changed)
  if (!isChanged) throw new AuthError('invalid')
  outbox.notice('password-changed', user)
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
  { password, current, outbox }: ChangeForm & { password: string }
): Promise<void> {
  assertText(password)
  const { record: { principal: { userId }, generation }, credential } = await provenUser(request, rules, current)
  if (credential !== null) throw hasPassword()
  const user = await rules.store.findUser({ userId })
  if (user?.email == null || !user.emailVerified) {
    throw new AuthError('unverified', { message: 'A password needs a confirmed e-mail address; confirm one first.' })
  }
  const passwordHash = await rules.local.hashPassword(password, { email: user.email }, current.caller)
  const isSet = await replacePassword(request, rules, userId, { passwordHash, current: null, generation })
  if (!isSet) throw hasPassword()
  outbox.notice('password-changed', user)
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
  { email, countLink, current, outbox }: ChangeForm & { email: string, countLink: () => Promise<void> }
): Promise<void> {
  const { record: { principal: { userId }, generation } } = await provenUser(request, rules, current)
  const to = canonicalEmail(email)
  if (to === null) throw new AuthError('invalid_email')
  const user = await rules.store.findUser({ userId })
  if (user?.email == null) {
    throw new AuthError('invalid_request', { message: 'This account has no e-mail address that could be changed.' })
  }
  await countLink()
  outbox.link('change-email', { userId, email: user.email, generation, to })
  outbox.notice('email-change-requested', user)
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
  { local, store, accounts, channel }: CredentialRules,
  { proof, given, outbox }: { proof: NewEmailProof, given: GivenPassword, outbox: Outbox }
): Promise<void> {
  const { userId, to } = proof
  const user = await userOfLink(store, proof)
  const principal = await presentPrincipal(request, store)
  if (principal?.userId !== userId) {
    if (given.password === undefined) throw new AuthError('unauthenticated')
    const credential = await credentialOf(store, userId)
    // A link that is redeemed meanwhile moves the account: its password was not found then.
    await userOfLink(store, proof)
    await verify(local, credential, { ...given, password: given.password })
  }
  const changed = await accounts.changeEmail(proof, to)
  if (changed === null) throw new AuthError('invalid_token')
  audit('email', { userId }, request)
  outbox.notice('email-changed', user)
  await endOtherSessions(request, channel, userId)
  if (principal?.userId === userId) await refreshPrincipal(request, store)
}

/**
 * Deletes the signed-in user and signs them out.
 *
 * @throws AuthError `unauthenticated`, `reauthenticate`, `invalid`, `user_in_use`, `rate_limited`,
 * `busy`, `unavailable`
 */
export async function deleteAccount (
  request: FastifyRequest,
  reply: FastifyReply,
  rules: CredentialRules,
  current: GivenProof
): Promise<void> {
  const { record } = await provenUser(request, rules, current)
  const { principal: { userId }, generation } = record
  const isDeleted = await deleteUser(rules.accounts, { userId, generation }, request)
  if (!isDeleted) throw new AuthError('unauthenticated')
  announceRevoke(rules.channel, userId, request)
  await signOutSession(request, reply, { isRecorded: true })
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

/** A signed-in user who has proven who they are. */
interface ProvenUser {
  record: SessionRecord
  /** Null for a user without a password. */
  credential: Credential | null
}

/** Returns the signed-in user if the password is theirs; without one, if their proof is recent. */
async function provenUser (
  request: FastifyRequest,
  { local, store }: CredentialRules,
  { password, countChange, ...given }: GivenProof
): Promise<ProvenUser> {
  const record = await confirmedRecord(request, store)
  const credential = await credentialOf(store, record.principal.userId)
  const { generation = 0 } = credential?.user ?? record
  // The sessions have ended since the record was read: the hash may be that of a reset.
  if (generation !== record.generation) throw new AuthError('unauthenticated')
  if (password === undefined && !isRecent(record.at, RECENT_SECONDS)) throw new AuthError('reauthenticate')
  await countChange()
  if (password !== undefined) await verify(local, credential, { ...given, password })
  return { record, credential }
}

/** Refuses a wrong password in the time of a login, also for a user without one. */
async function verify (
  local: LocalIdentityProvider,
  credential: Credential | null,
  { password, caller, count }: GivenPassword & { password: string }
): Promise<void> {
  assertText(password)
  await count(credential?.link.subject ?? '')
  const { matches } = await local.verifyPassword(credential?.passwordHash ?? null, password, caller)
  if (!matches) throw new AuthError('invalid')
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
