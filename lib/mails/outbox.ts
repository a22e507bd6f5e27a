import type { User } from '../accounts/account.js'
import type { AccountNotice, CodeMailKind, LinkMailKind, NoticeMailKind } from './mail.js'
import type { MailLink } from './mail-tokens.js'

/** A user whom a mail is about. */
export type Addressee = Readonly<Pick<User, 'userId' | 'email' | 'emailVerified' | 'name'>>

/** Why a request for a mail causes none: nothing is known of the address, or the user has none. */
export type NoMail = 'unknown' | 'blocked' | 'no-address'

/**
 * The mails that one request causes. They are counted and sent after its answer, so that neither
 * the answer nor its time tells whether there are any. What is not sent is noted in the log.
 */
export interface Outbox {
  /**
   * Called before what is of no use without its mail. It looks at no address, so that it tells
   * nothing.
   *
   * @throws AuthError `busy` when too many mails wait
   */
  refuseWhenFull (): void
  /**
   * Sends a link: to the address that it brings, or else to that of the user.
   *
   * @param user null where the link makes the user
   * @param code that of a sign-in by mail, beside the link; null for none
   */
  link (kind: LinkMailKind, link: MailLink, user: Addressee | null, code?: string | null): void
  /** Sends a code to the address of a user. */
  code (kind: CodeMailKind, code: string, user: Addressee): void
  /** Tells the owner of an address what became of a request in which it was given. */
  sendTo (kind: Exclude<NoticeMailKind, AccountNotice>, to: string, user: Addressee | null): void
  /**
   * Tells a user about a change of their account, at the address that they have confirmed: another
   * one may be that of a stranger. Not sent if the option says so, and when too many mails wait.
   */
  notice (kind: AccountNotice, user: Addressee): void
  /** Sends nothing where a link was asked for, and notes why. */
  skip (kind: LinkMailKind, reason: NoMail): void
}
