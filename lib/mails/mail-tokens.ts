import { createHmac, hash } from 'node:crypto'
import { uuidFromBase64url, uuidToBase64url } from '../base/uuid.js'
import { AuthError } from '../errors.js'
import { type Secrets, derivedSecrets } from '../secrets.js'
import type { EntryKey } from '../store/one-time-entries.js'
import { MAX_TOKEN_LENGTH } from '../tokens/token-claims.js'
import { type TokenKeys, keysOfSecrets } from '../tokens/token-keys.js'
import { LINK_LIFETIMES, type LinkMailKind } from './mail.js'

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
    // Loaded with the first token, because an application that starts sends no mails.
    const { signedText } = await import('../tokens/jwt.js')
    return signedText(JSON.stringify(claims), this.#keys(kind).signing.key)
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
    if (token.length > MAX_TOKEN_LENGTH) return null
    const { verifiedText } = await import('../tokens/jwt.js')
    const text = await verifiedText(token, this.#keys(kind).verifying)
    if (text === null) return null
    // Only this class signs with these keys, so the text is one of `issue`.
    const [id, generation, expiresAt, digest, to = null, hash, owner] = JSON.parse(text)
    const userId = uuidFromBase64url(id)
    const entry = hash === undefined ? {} : { entry: { hash, owner } }
    return { kind, userId, generation, digest, to, ...entry, expiresAt: new Date(expiresAt * 1000) }
  }

  #keys (kind: LinkMailKind): TokenKeys {
    return keysOfSecrets(derivedSecrets(this.#secrets, `svc-auth mail ${kind}`, this.#issuer))
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
