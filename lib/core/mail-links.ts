import { createHmac, hash, randomUUID } from 'node:crypto'
import type { User } from '../accounts/account.js'
import type { Accounts } from '../accounts/accounts.js'
import { digestOf, uuidFromBase64url, uuidToBase64url } from '../base/values.js'
import { AuthError } from '../errors.js'
import { type Secrets, derivedSecrets } from '../secrets.js'
import { type EntryKey, type OneTimeEntries, OPERATOR_LINK } from '../session/store.js'
import {
  type AccountNotice, type CodeMailKind, LINK_LIFETIMES, type LinkMailKind, type NoticeMailKind
} from './mail.js'
import { signedText, verifiedText } from './signed-text.js'

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

/** What the link of a mail is about. */
export interface MailLink {
  /** A UUID in lower case. */
  readonly userId: string
  /** `User.generation` when the mail was sent. */
  readonly generation: number
  /** The address of the user when the mail was sent, in canonical form; null for none. */
  readonly email: string | null
  /** The address that the link brings, in canonical form; null for the one that the user has. */
  readonly to: string | null
  /** The entry of a sign-in that any browser may finish; absent for one that only its own may. */
  readonly entry?: Pick<EntryKey, 'hash' | 'owner'> | undefined
}

/** What the token of a link says about it: a digest of the user's address keeps the token short. */
export interface MailToken extends Omit<MailLink, 'email'> {
  readonly kind: LinkMailKind
  /** {@link emailDigest} of the address of the user. */
  readonly digest: string
  readonly expiresAt: Date
}

/** Seconds by which the clocks of the processes that send and open a link may differ. */
const CLOCK_DIFFERENCE = 60

/**
 * Issues and verifies the tokens in mails, so short that a link fits in one line of a text mail.
 * The keys are derived from the secrets, one for each kind, and sign nothing else: a token of one
 * kind is not one of another, none of the application is one of a mail. The token of a sign-in is
 * worth nothing without the session that asked for it.
 */
export class MailTokens {
  readonly #issuer: string
  readonly #secrets: Secrets

  /** @param secrets the first one signs, all verify */
  constructor (issuer: string, secrets: Secrets) {
    this.#issuer = issuer
    this.#secrets = secrets
  }

  /** Issues a token of at most 150 characters, and more where the address has to be in it. */
  async issue (kind: LinkMailKind, { userId, generation, email, to, entry }: MailLink): Promise<string> {
    const expiresAt = Math.floor(Date.now() / 1000) + LINK_LIFETIMES[kind]
    const more = entry === undefined ? to === null ? [] : [to] : [to, entry.hash, entry.owner]
    const claims = [uuidToBase64url(userId), generation, expiresAt, emailDigest(email), ...more]
    return signedText(JSON.stringify(claims), this.#keys(kind)[0])
  }

  /** Verifies a token. Address and generation of the user may be others by now. */
  async verify (kind: LinkMailKind, token: string): Promise<MailToken> {
    const opened = await this.#open(kind, token)
    if (opened === null || isExpired(opened)) throw new AuthError('invalid_token')
    return opened
  }

  /** Returns what a token of any kind says, also after it has expired; null for one of no kind. */
  async open (token: string): Promise<MailToken & { isExpired: boolean } | null> {
    for (const kind of Object.keys(LINK_LIFETIMES) as LinkMailKind[]) {
      const opened = await this.#open(kind, token)
      if (opened !== null) return { ...opened, isExpired: isExpired(opened) }
    }
    return null
  }

  /** Returns keyed digests of a text, by which stores keep it; the newest secret's is first. */
  digestsOf (text: string): [string, ...string[]] {
    const digest = (key: string): string => createHmac('sha256', key).update(text).digest('base64url').slice(0, 32)
    const [newest, ...older] = derivedSecrets(this.#secrets, 'svc-auth mail digest', this.#issuer)
    return [digest(newest), ...older.map(digest)]
  }

  async #open (kind: LinkMailKind, token: string): Promise<MailToken | null> {
    const text = await verifiedText(token, this.#keys(kind))
    if (text === null) return null
    // Only this class signs with these keys, so the text is one of `issue`.
    const [id, generation, expiresAt, digest, to = null, hash, owner] = JSON.parse(text)
    const userId = uuidFromBase64url(id)
    const entry = hash === undefined ? {} : { entry: { hash, owner } }
    return { kind, userId, generation, digest, to, ...entry, expiresAt: new Date(expiresAt * 1000) }
  }

  #keys (kind: LinkMailKind): Secrets {
    return derivedSecrets(this.#secrets, `svc-auth mail ${kind}`, this.#issuer)
  }
}

/**
 * The first 96 bits of SHA-256 of an address, empty for none: no other address with this digest is
 * found.
 */
export function emailDigest (email: string | null): string {
  return hash('sha256', email ?? '', 'buffer').subarray(0, 12).toString('base64url')
}

function isExpired ({ expiresAt }: MailToken): boolean {
  return Date.now() >= expiresAt.getTime() + CLOCK_DIFFERENCE * 1000
}

/** A sign-in that waits for the link of an operator. */
export interface OperatorSignIn extends Pick<User, 'userId' | 'generation'> {
  /** What the token in the link names. */
  readonly id: string
  readonly email: string
}

/**
 * Writes the sign-in of a user that a link of kind `sign-in` finishes once, in any browser, until
 * all their sessions end. It replaces the last one. Unlike a mailed link it proves no address.
 */
export async function putOperatorSignIn (
  entries: OneTimeEntries, { userId, generation, email }: Pick<User, 'userId' | 'generation'> & { email: string }
): Promise<MailLink> {
  const [id, startedAt] = [randomUUID(), Date.now()]
  const content: OperatorSignIn = { id, userId, generation, email }
  const key = { hash: digestOf(id), owner: digestOf(userId) }
  await entries.put({ ...key, kind: OPERATOR_LINK, content: { content, startedAt }, startedAt }, 1)
  return { userId: id, generation: 0, email, to: email, entry: key }
}

/** A user whom a mail is about. */
export type Addressee = Readonly<Pick<User, 'userId' | 'email' | 'emailVerified' | 'name'>>

/** Why a request for a mail causes none. */
export type NoMail = 'unknown' | 'blocked' | 'no-address' | 'limit' | 'sso-required'

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
   *
   * @param row the row of the account page that the mail leads to; default none
   */
  notice (kind: AccountNotice, user: Addressee, row?: string): void
  /** Sends nothing where a link or a code was asked for, and notes why. */
  skip (kind: LinkMailKind | CodeMailKind, reason: NoMail): void
}
