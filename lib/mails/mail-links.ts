import { AuthError } from '../errors.js'
import type { Outbox } from './outbox.js'
import type { LinkMailKind } from './mail.js'
import { type MailToken, type MailTokens, emailDigest } from './mail-tokens.js'
import { digestOf } from '../base/digest.js'
import type { User } from '../accounts/account.js'
import type { Accounts } from '../accounts/accounts.js'
import type { StoreCapabilities } from '../store/capabilities.js'
import { USED_REGISTRATION } from '../store/one-time-entries.js'

/** Where the links of mails lead, below the prefix of the routes. */
export const LINK_PATHS: Readonly<Record<LinkMailKind, string>> = {
  register: 'local/register',
  'verify-email': 'local/verify-email',
  'reset-password': 'local/reset-password',
  'change-email': 'local/change-email/confirm',
  'sign-in': 'local/mail-login'
}

/** @param base the public URL in front of the routes, with a slash at the end */
export function linkWith (token: string, kind: LinkMailKind, base: URL): string {
  const url = new URL(LINK_PATHS[kind], base)
  url.searchParams.set('token', token)
  return url.href
}

export type MailboxOwner = User & { email: string }

export function hasMailbox (user: User): user is MailboxOwner {
  return user.email !== null
}

/**
 * Returns the user whose account mail to an address opens; null where no user has the address, and
 * where it is disputed: its mailbox may have another owner by now.
 */
export async function findByMailbox (accounts: Accounts, email: string): Promise<MailboxOwner | null> {
  const user = await accounts.findUser({ email })
  return user !== null && hasMailbox(user) && !user.emailDisputed ? user : null
}

/**
 * Returns the user of a link, who has an address unless it is a link to their first one; throws
 * `invalid_token` once they are gone or have changed.
 */
export async function userOfLink (
  accounts: Accounts, { userId, generation, digest, kind }: MailToken
): Promise<User> {
  const user = await accounts.findUser({ userId })
  const isUnchanged = user !== null && emailDigest(user.email) === digest && user.generation === generation
  // The other links need a session of the user, or their password.
  if (!isUnchanged || (kind === 'reset-password' && user.emailDisputed)) throw new AuthError('invalid_token')
  return user
}

/** Returns a user whose verified address an unlinking has left unverified; null for others. */
export async function leftUnverified (accounts: Accounts, before: User): Promise<MailboxOwner | null> {
  const user = before.emailVerified ? await accounts.findUser({ userId: before.userId }) : null
  return user !== null && hasMailbox(user) && !user.emailVerified ? user : null
}

/** Refuses a used link to register: it makes no second account after the first one was deleted. */
export async function assertUnused (kept: StoreCapabilities, link: Pick<MailToken, 'userId'>): Promise<void> {
  if (await isUsed(kept, link)) throw new AuthError('invalid_token')
}

export async function isUsed ({ entries }: StoreCapabilities, { userId }: Pick<MailToken, 'userId'>): Promise<boolean> {
  return Number(await entries?.count(digestOf(userId), USED_REGISTRATION, 0)) > 0
}

/** A link that can be used. */
export interface UsableMailToken {
  /** It can be used. */
  valid: true
  /** What the link is for. */
  kind: LinkMailKind
  /** The address that the link is about: the new one for `change-email`. */
  email: string
  /** When it stops working. */
  expiresAt: Date
}

/** A link that cannot be used. */
export interface UnusableMailToken {
  /** It cannot be used. */
  valid: false
  /** What the link was for; null for `invalid`. */
  kind: LinkMailKind | null
  /** `used`: or the account has changed since. `invalid`: not a link of this application. */
  reason: 'expired' | 'used' | 'invalid'
}

/** What a page of the application learns about a link: whether it can be used, or why not. */
export type OpenedMailToken = UsableMailToken | UnusableMailToken

type KeptOfLinks = Readonly<{ accounts: Accounts, kept: StoreCapabilities }>

/** Opens the token of a link without using it. */
export async function openMailToken (kept: KeptOfLinks, tokens: MailTokens, token: string): Promise<OpenedMailToken> {
  const opened = await tokens.open(token)
  if (opened === null) return { valid: false, kind: null, reason: 'invalid' }
  const { kind, expiresAt, isExpired } = opened
  if (isExpired) return { valid: false, kind, reason: 'expired' }
  try {
    return { valid: true, kind, email: await emailOfLink(kept, opened), expiresAt }
  } catch (error) {
    if (error instanceof AuthError && error.code === 'invalid_token') return { valid: false, kind, reason: 'used' }
    throw error
  }
}

async function emailOfLink ({ accounts, kept }: KeptOfLinks, token: MailToken): Promise<string> {
  const { kind, to } = token
  // What a sign-in by mail has used is known in the session that asked for it.
  if (kind === 'sign-in') return String(to)
  if (kind !== 'register') {
    const { email } = await userOfLink(accounts, token)
    return String(to ?? email)
  }
  await assertUnused(kept, token)
  return String(to)
}

/** Sends the link that confirms the address of a user. */
export function sendVerification (user: User, outbox: Outbox): void {
  outbox.link('verify-email', { ...user, to: null }, user)
}
