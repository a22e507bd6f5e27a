import type { Complete } from '../base/values.js'

/** The request that caused a mail. A copy, because mails are sent after the answer. */
export interface MailOrigin {
  /** Fastify's `request.id`; null where the application caused the mail, by `app.auth`. */
  requestId: string | null
  /** Fastify's `request.ip`; null on a Unix socket without a trusted proxy. */
  ip: string | null
  /**
   * The header `User-Agent`, at most 256 characters. Text of the client, who may be a stranger to
   * the recipient: escape it, and do not rely on it.
   */
  userAgent: string | null
  /** The header `Accept-Language`, at most 256 characters; text of the client, too. */
  language: string | null
}

/** The members of a mail. */
export interface MailMembers<Kind extends string, Link extends string | null, Code extends string | null> {
  /** What the mail is for. */
  kind: Kind
  /** The recipient, in canonical form. */
  to: string
  /** The user that the mail is about; null where there is none yet. */
  userId: string | null
  /** The user's name; null until they confirm `to`, because a stranger may have chosen it. */
  name: string | null
  /** The link; it begins with `baseUrl`. */
  url: Link
  /** The token in the link. */
  token: Link
  /** Six digits. */
  code: Code
  /** Seconds until the link or the code expires. */
  expiresIn: (Link | Code) extends null ? null : number
  /** The page of the account, for a notice; null without one, and for other mails. */
  accountUrl: string | null
  /** The request that caused the mail. */
  about: MailOrigin
}

/**
 * A mail with a link that its reader follows. `register`: choose a password, then the account is
 * created. `verify-email`: confirm the address of a new account, or say that another person created
 * it. `reset-password`: choose a new password. `change-email`: confirm the new address of an
 * account.
 */
export type LinkMail = MailMembers<Exclude<LinkMailKind, 'sign-in'>, string, null>

/**
 * A mail by which its reader signs in: by the link in the browser that asked for it, or by the
 * code, which they type there. The code is null after too many attempts at codes for the address;
 * the user is null for an address without an account, which the sign-in registers.
 */
export type SignInMail = MailMembers<'sign-in', string, string | null>

/**
 * A mail with a code that its reader types. `enrolment`: for a first factor, in a sign-in that
 * waits for it; in place of lost passkeys.
 */
export type CodeMail = MailMembers<CodeMailKind, null, string>

/**
 * A mail without a link that acts. `exists`: a registration with the address of an account.
 * `unknown-address`: a forgotten password, or a sign-in by mail, with an address that no account
 * has. The others are notices about an account, to its confirmed address: `email-proven` when a
 * sign-in by mail has proven the address for the first time and removed what was there before,
 * `email-changed`, by the user, a provider or the application, and `email-change-requested` to the
 * old one, `email-disputed` when the user has to confirm the address because a provider no longer
 * vouches for it, `too-many-codes` when another person has got as far as the second factor,
 * `new-browser` when the user has signed in from a browser that is not known (`notices`).
 */
export type NoticeMail = MailMembers<NoticeMailKind, null, null>

/** A mail to an administrator of a connection, one of whose domains is proven no longer. */
export type DomainMail = MailMembers<'domain-lapsed', null, null> & {
  /** The domain, an A-label. */
  domain: string
}

/** A mail to send. */
export type Mail = LinkMail | SignInMail | CodeMail | NoticeMail | DomainMail

/** What the link of a mail is for. */
export type LinkMailKind = 'register' | 'verify-email' | 'reset-password' | 'change-email' | 'sign-in'

/** The seconds that the link of a mail lives. */
export const LINK_LIFETIMES: Readonly<Record<LinkMailKind, number>> = {
  register: 24 * 60 * 60,
  'verify-email': 24 * 60 * 60,
  'reset-password': 30 * 60,
  'change-email': 30 * 60,
  'sign-in': 10 * 60
}

export type CodeMailKind = 'enrolment'

/** The seconds that the code of a mail lives. */
export const CODE_LIFETIME = 600

/** The milliseconds in which a mailbox gets one mail of a kind. */
export const MAIL_INTERVAL_MS = 60_000

/** Notices about a change of an account: option `mails.notices` turns them off. */
export type AccountNotice =
  'password-changed' | 'email-proven' | 'email-changed' | 'email-change-requested' | 'email-disputed' |
  'identity-linked' | 'identity-unlinked' |
  'factor-added' | 'factor-removed' | 'recovery-codes-renewed' | 'recovery-code-used' |
  'too-many-codes' | 'passkey-cloned' | 'application-connected' | 'token-replayed' |
  'key-created' | 'impersonated' | 'new-browser'

/** What a mail without a link tells. */
export type NoticeMailKind = AccountNotice | 'exists' | 'unknown-address'

/**
 * Sends a mail, and rejects when it could not. Called after the request was answered, which it
 * neither delays nor fails. The text of the mail is the application's.
 */
export type SendMail = (mail: Mail) => void | Promise<void>

/** Which mails are sent besides those with a link. */
export interface MailChoices {
  /**
   * Whether an unknown address gets a mail when a user asks there for a new password, or for a
   * sign-in by mail that creates no user; default false.
   */
  unknownAddress?: boolean | undefined
  /** Whether users are told about changes of their account; default true. */
  notices?: boolean | undefined
  /** Whether mails to one mailbox are limited, each kind by itself; default true. */
  limits?: boolean | undefined
}

/**
 * Pages of the application in place of the plugin's. The link in a mail redirects to them with the
 * query parameter `token`, which their forms post to the route of the link; `mailLogin` posts to
 * `mail-login/confirm`.
 */
export interface MailPages {
  /** The page that registers: name and password. */
  register?: string | undefined
  /** The page that asks for the new password. */
  resetPassword?: string | undefined
  /** The page that confirms an address. */
  verifyEmail?: string | undefined
  /** The page that confirms a new address. */
  changeEmail?: string | undefined
  /** The page that signs in by mail: with the token of the link, or, without one, by the code. */
  mailLogin?: string | undefined
}

/** The options of mails with their defaults. */
export interface MailOptions {
  readonly sendMail: SendMail
  readonly choices: Readonly<Complete<MailChoices>>
  /** Paths of the application, which the plugin checks; absent for a page of the plugin. */
  readonly pages: Readonly<MailPages>
}
