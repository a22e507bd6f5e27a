import { hkdfSync } from 'node:crypto'
import { LINK_LIFETIMES, type LinkMailKind } from './mail.js'
import { TokenIssuer } from './token.js'
import { keysOfSecrets } from './token-keys.js'

/** What the reader of a mail proves with its link. */
export interface MailProof {
  /** The user; in a registration, an id that no user has. */
  userId: string
  /** The address of the user, or the one that is registered. */
  email: string
  /**
   * The user's generation when the link was made: whatever ends all sessions ends the link too.
   */
  generation: number
}

/** The proof of a new address. */
export interface NewEmailProof extends MailProof {
  /** The new address. */
  to: string
}

/**
 * Issues and verifies the tokens in mails. Their keys are derived from the secrets and sign nothing
 * else, so that no token of the application is one of a mail and no token of a mail signs in.
 */
export class MailTokens {
  readonly #tokens: TokenIssuer

  /** @param secrets the first one signs, all verify */
  constructor (issuer: string, [newest, ...older]: readonly [string, ...string[]]) {
    this.#tokens = new TokenIssuer(issuer, keysOfSecrets([mailSecret(newest), ...older.map(mailSecret)]))
  }

  /** Issues the token of a link, which lives as long as the link. */
  async issue (kind: 'change-email', proof: NewEmailProof): Promise<string>
  async issue (kind: LinkMailKind, proof: MailProof): Promise<string>
  async issue (kind: LinkMailKind, { userId, ...claims }: MailProof): Promise<string> {
    return this.#tokens.issue(userId, claims, LINK_LIFETIMES[kind], { purpose: kind })
  }

  /**
   * Verifies the token of a link and returns its proof. The proof must still be compared with the
   * user, whose generation may be another one by now.
   *
   * @throws AuthError `invalid_token`
   */
  async verify (kind: 'change-email', token: string): Promise<NewEmailProof>
  async verify (kind: LinkMailKind, token: string): Promise<MailProof>
  async verify (kind: LinkMailKind, token: string): Promise<NewEmailProof> {
    const { sub, email, generation, to } = await this.#tokens.verify(token, { purpose: kind })
    // Only this class signs with these keys, so the claims are those of `issue`.
    return { userId: sub, email: String(email), generation: Number(generation), to: String(to) }
  }
}

/** Derives the secret of mail tokens (HKDF, RFC 5869). */
function mailSecret (secret: string): string {
  return Buffer.from(hkdfSync('sha256', secret, '', 'svc-auth mail', 32)).toString('base64url')
}
