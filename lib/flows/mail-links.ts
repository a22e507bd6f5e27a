import { AuthError } from '../errors.js'
import type { MailTokenClaims } from '../accounts/credentials.js'
import type { Outbox } from '../mails/outbox.js'
import type { User } from '../accounts/account.js'
import type { AuthStore } from '../accounts/auth-store.js'

/** The claims of a link that is sent to a user now; null for a user without an e-mail. */
export function linkFor ({ userId, email, generation = 0 }: User): MailTokenClaims | null {
  return email === null ? null : { userId, email, generation }
}

/** A user with an e-mail. */
export type MailboxOwner = User & { email: string }

/**
 * Returns the user that a link is about.
 *
 * @throws AuthError `invalid_token` when the user is gone, has another e-mail, or when their
 * sessions were ended since the link was sent
 */
export async function userOfLink (store: AuthStore, link: MailTokenClaims): Promise<MailboxOwner> {
  const user = await store.findUser({ userId: link.userId })
  const { email, generation } = link
  if (user?.email !== email || (user.generation ?? 0) !== generation) throw new AuthError('invalid_token')
  return { ...user, email }
}

/**
 * Sends the link that confirms the address of a user.
 *
 * @param outbox null for an application that sends no mails
 */
export function sendVerification (user: User, outbox: Outbox | null): void {
  const link = linkFor(user)
  if (link === null) outbox?.none('verify-email', 'no-address')
  else outbox?.link('verify-email', link)
}

/** How the addresses of accounts with a password are confirmed. */
export interface Confirmation {
  /** Whether a user must confirm their address before they sign in by password. */
  readonly isRequired: boolean
  /** Sends the link that confirms the address of a user. */
  readonly send: (user: User) => void
}
