import type { User } from '../accounts/account.js'
import type { AccountNotice, CodeMailKind, LinkMailKind, NoticeMailKind } from './mail.js'
import type { MailLink } from './mail-tokens.js'

/** A user whom a mail is about. */
export type Addressee = Readonly<Pick<User, 'userId' | 'email' | 'emailVerified' | 'name'>>

/** Why a request for a mail causes none. */
export type NoMail = 'unknown' | 'blocked' | 'no-address' | 'limit'

/**
 * The mails that one request causes. They are counted and sent after its answer, so that neither
 * the answer nor its time tells whether there are any. The log notes what is not sent.
 */
export interface Outbox {
  /** Throws `busy` when too many mails wait: for what is of no use without its mail. */
  refuseWhenFull (): void
  /**
   * Counts a mail that takes the place of an earlier one, and returns null if it may be sent: it is
   * not counted then. Else the earlier one must stay good; returns the milliseconds until this
   * client may ask again, at the earliest; Infinity where others have used up the limit.
   */
  delayOf (mail: { kind: 'sign-in' | CodeMailKind, to: string, userId?: string, uses?: number }): Promise<number | null>
  /** Sends a link to the address that it brings, or to the user's; to sign in, with a code. */
  link (kind: LinkMailKind, link: MailLink, user: Addressee | null, code?: string | null): void
  /** Sends a code to the address of a user. */
  code (kind: CodeMailKind, code: string, user: Addressee): void
  /** Tells the owner of an address what became of a request in which it was given. */
  sendTo (kind: Exclude<NoticeMailKind, AccountNotice>, to: string, user: Addressee | null): void
  /**
   * Tells a user about a change of their account, at the address that they have confirmed: another
   * one may be a stranger's. Not sent when too many mails wait.
   */
  notice (kind: AccountNotice, user: Addressee): void
  /** Sends nothing where a link or a code was asked for, and notes why. */
  skip (kind: LinkMailKind | CodeMailKind, reason: NoMail): void
}
