import type { User } from '../accounts/account.js'
import type { Accounts } from '../accounts/accounts.js'
import { digestOf } from '../base/values.js'
import { type AuthContext, needed } from '../core/context.js'
import { AuthError } from '../errors.js'
import { type StoreCapabilities, USED_REGISTRATION } from '../session/store.js'
import type { LinkMailKind } from '../core/mail.js'
import {
  type MailboxOwner, type MailToken, MailTokens, type Outbox, hasMailbox, userOfLink
} from '../core/mail-links.js'

/**
 * Returns the user whose account mail to an address opens; null where no user has the address, and
 * where it is disputed: its mailbox may have another owner by now.
 */
export async function findByMailbox (accounts: Accounts, email: string): Promise<MailboxOwner | null> {
  const user = await accounts.findUser({ email })
  return user !== null && hasMailbox(user) && !user.emailDisputed ? user : null
}

/** Returns a user whose verified address an unlinking has left unverified; null for others. */
export async function leftUnverified (accounts: Accounts, before: User): Promise<MailboxOwner | null> {
  const user = before.emailVerified ? await accounts.findUser({ userId: before.userId }) : null
  return user !== null && hasMailbox(user) && !user.emailVerified ? user : null
}

/** What a link to register confirms. */
export interface Registration {
  /** Of the link: no user has it yet. */
  readonly userId: string
  /** In canonical form. */
  readonly email: string
}

/** Verifies the token of a link to register, also of a used one. */
export async function readRegistration (
  { mailTokens }: Pick<AuthContext, 'mailTokens'>, token: string
): Promise<Registration> {
  const { userId, to } = await needed(mailTokens, 'sendMail').verify('register', token)
  return { userId, email: String(to) }
}

/** Verifies the token of a link to register that was not used. */
export async function openRegistration (
  auth: Pick<AuthContext, 'mailTokens' | 'capabilities'>, token: string
): Promise<Registration> {
  const link = await readRegistration(auth, token)
  await assertUnused(auth.capabilities, link)
  return link
}

/** Refuses an address that an account has, which is told to the owner of its mailbox alone. */
export async function assertFree (accounts: Accounts, email: string): Promise<void> {
  const user = await accounts.findUser({ email })
  if (user !== null) throw new AuthError(user.emailDisputed ? 'account_exists' : 'exists')
}

/** Refuses a used link to register: it makes no second account after the first one was deleted. */
export async function assertUnused (capabilities: StoreCapabilities, link: Pick<MailToken, 'userId'>): Promise<void> {
  if (await isUsed(capabilities, link)) throw new AuthError('invalid_token')
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

type LinkContext = Readonly<{ accounts: Accounts, capabilities: StoreCapabilities }>

/** Opens the token of a link without using it. */
export async function openMailToken (
  context: LinkContext, tokens: MailTokens, token: string
): Promise<OpenedMailToken> {
  const opened = await tokens.open(token)
  if (opened === null) return { valid: false, kind: null, reason: 'invalid' }
  const { kind, expiresAt, isExpired } = opened
  if (isExpired) return { valid: false, kind, reason: 'expired' }
  try {
    return { valid: true, kind, email: await emailOfLink(context, opened), expiresAt }
  } catch (error) {
    if (error instanceof AuthError && error.code === 'invalid_token') return { valid: false, kind, reason: 'used' }
    throw error
  }
}

async function emailOfLink ({ accounts, capabilities }: LinkContext, token: MailToken): Promise<string> {
  const { kind, to } = token
  // What a sign-in by mail has used is known in the session that asked for it.
  if (kind === 'sign-in') return String(to)
  if (kind !== 'register') {
    const { email } = await userOfLink(accounts, token)
    return String(to ?? email)
  }
  await assertUnused(capabilities, token)
  return String(to)
}

/** Sends the link that confirms the address of a user. */
export function sendVerification (user: User, outbox: Outbox): void {
  outbox.link('verify-email', { ...user, to: null }, user)
}
