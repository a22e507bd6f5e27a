import { AuthError } from '../errors.js'
import type { MailProof } from '../local/mail-token.js'
import type { Outbox } from '../local/outbox.js'
import { holds } from '../store/accounts.js'
import type { AuthStore, User } from '../store/store.js'

/** What a link proves that is sent to a user now; null for a user without an e-mail. */
export function proofOf ({ userId, email, generation = 0 }: User): MailProof | null {
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
export async function userOfLink (store: AuthStore, proof: MailProof): Promise<MailboxOwner> {
  const user = await store.findUser({ userId: proof.userId })
  if (user === null || !holds(proof, user)) throw new AuthError('invalid_token')
  return { ...user, email: proof.email }
}

/** What a request may send. */
export interface Mails {
  readonly outbox: Outbox
  /** Counts a mail to an address that the client chose; false when the mailbox has had enough. */
  readonly mayMail: (email: string) => Promise<boolean>
}

/**
 * Sends the link that confirms the address of a user, unless their mailbox has had enough mails.
 *
 * @param mails null for an application that sends no mails
 */
export async function sendVerification (user: User, mails: Mails | null): Promise<void> {
  const proof = proofOf(user)
  if (proof !== null && await mails?.mayMail(proof.email)) mails?.outbox.link('verify-email', proof)
}

/** How the addresses of accounts with a password are confirmed. */
export interface Confirmation {
  /** Whether a user must confirm their address before they sign in by password. */
  readonly isRequired: boolean
  /** Sends the link that confirms the address of a user. */
  readonly send: (user: User) => Promise<void>
}
