import type { FastifyRequest } from 'fastify'
import { audit } from '../audit.js'
import { type AuthChannel, announceRevoke } from '../channel.js'
import { NOT_THIS_ADDRESS, canonicalEmail } from '../email.js'
import { AuthError } from '../errors.js'
import type { Passwords } from '../local-identity-provider.js'
import { type MailTokens, emailDigest } from '../mails/mail-tokens.js'
import type { Outbox } from '../mails/outbox.js'
import { isBlocked } from '../accounts/account.js'
import type { Accounts } from '../accounts/accounts.js'
import type { AuthStore } from '../accounts/auth-store.js'
import { claimsOf, hasMailbox, linkFor, sendVerification, userOfLink } from '../mails/mail-links.js'
import { type Method, assertIsUser, assertText } from './methods.js'
import { presentPrincipal } from '../current-user/refresh.js'

/** What the flows of recovery work with. */
export interface Recovery {
  readonly store: AuthStore
  readonly accounts: Accounts
  readonly tokens: MailTokens
  readonly channel: AuthChannel
}

/**
 * Sends the link that chooses a new password. A user without a password gets one too, for their
 * first; a blocked user gets none. The answer follows the one look-up for each address, so that
 * neither the answer nor its time tells whether an account has it.
 *
 * @param email in canonical form
 * @param answersUnknown whether an address that no user has gets a mail too
 * @throws AuthError `busy`, `unavailable`
 */
export async function forgotPassword (
  store: AuthStore,
  outbox: Outbox,
  { email, answersUnknown }: { email: string, answersUnknown: boolean }
): Promise<void> {
  outbox.refuseWhenFull()
  const user = await store.findUser({ email })
  if (user === null || !hasMailbox(user)) {
    if (answersUnknown) outbox.sendTo('unknown-address', email, null)
    else outbox.skip('reset-password', 'unknown')
  } else if (isBlocked(user)) {
    outbox.skip('reset-password', 'blocked')
  } else {
    // To the stored address and not to the one that was typed.
    outbox.link('reset-password', linkFor(user), user)
  }
}

/**
 * Sets the password of the user that a link is about, and ends all their sessions. They sign in
 * afterwards, like every user. When they had never owned an address of the account, another person
 * may have made it: all other links and factors are removed.
 *
 * @throws AuthError `invalid_token`; `weak_password` and `busy`, after which the link still works;
 * `unavailable`
 * @see OWASP ASVS 6.4.3, 7.4.3
 */
export async function resetPassword (
  request: FastifyRequest,
  { store, accounts, tokens, channel }: Recovery,
  { token, password, passwords, outbox }: { token: string, password: string, passwords: Passwords, outbox: Outbox }
): Promise<void> {
  assertText(password)
  const user = await userOfLink(store, await tokens.verify('reset-password', token))
  const { userId, email } = user
  const passwordHash = await passwords.hashPassword(password, { email })

  const reset = await accounts.resetPassword(claimsOf(user), passwordHash)
  if (reset === null) throw new AuthError('invalid_token')
  audit('password', { userId }, request)
  if (!reset.wasProven) audit('recovery', { userId, removed: reset.removed, claims: reset.user.claims }, request)
  announceRevoke(channel, userId, request)
  outbox.notice('password-changed', reset.user)
}

/**
 * Sends the link that confirms the address of the signed-in user.
 *
 * @throws AuthError `unauthenticated`, `busy`, `unavailable`
 */
export async function askToVerify (request: FastifyRequest, store: AuthStore, outbox: Outbox): Promise<void> {
  outbox.refuseWhenFull()
  const principal = await presentPrincipal(request, store)
  const user = principal === null ? null : await store.findUser({ userId: principal.userId })
  if (user === null) throw new AuthError('unauthenticated')
  sendVerification(user, outbox)
}

/**
 * Confirms the address of an account by a link, together with a session of the user or their
 * password. The link alone proves who has the mailbox, not that this person made the account.
 *
 * @throws AuthError `invalid_token`; `unauthenticated` without session and password, and what the
 * method throws, after which the link still works; `unavailable`
 */
export async function verifyEmail (
  request: FastifyRequest,
  { store, accounts, tokens }: Recovery,
  { token, method }: { token: string, method: Method | null }
): Promise<void> {
  const user = await userOfLink(store, await tokens.verify('verify-email', token))
  const { userId } = user
  await assertIsUser(request, store, { userId, method })

  const outcome = await accounts.verifyEmail(claimsOf(user))
  if (outcome === null) throw new AuthError('invalid_token')
  if (outcome === 'verified') audit('verification', { userId }, request)
}

/**
 * Frees an address that another person registered: deletes the account, or removes the address from
 * it when the user has other sign-in methods. The address must be typed again, because programs
 * that examine mails send forms too.
 *
 * @throws AuthError `invalid_email` for another address; `invalid_token`, also when the user has
 * owned an address of the account; `user_in_use`, `unavailable`
 */
export async function releaseEmail (
  request: FastifyRequest,
  { accounts, tokens, channel }: Recovery,
  { token, email }: { token: string, email: string }
): Promise<void> {
  const { userId, generation, digest } = await tokens.verify('verify-email', token)
  const typed = canonicalEmail(email)
  if (typed === null || emailDigest(typed) !== digest) {
    throw new AuthError('invalid_email', { message: NOT_THIS_ADDRESS })
  }
  const outcome = await accounts.releaseEmail({ userId, email: typed, generation })
  if (outcome === null) throw new AuthError('invalid_token')
  audit('email-released', { userId, deleted: outcome === 'deleted' }, request)
  announceRevoke(channel, userId, request)
}
