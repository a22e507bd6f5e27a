import { hkdfSync } from 'node:crypto'
import type { MailTokenClaims } from '../accounts/credentials.js'
import { LINK_LIFETIMES, type LinkMailKind } from './mail.js'
import { TokenIssuer } from '../tokens/token-issuer.js'
import { keysOfSecrets } from '../tokens/token-keys.js'

/** The claims of a link to a new address. */
export interface NewEmailTokenClaims extends MailTokenClaims {
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
  async issue (kind: 'change-email', claims: NewEmailTokenClaims): Promise<string>
  async issue (kind: LinkMailKind, claims: MailTokenClaims): Promise<string>
  async issue (kind: LinkMailKind, { userId, ...claims }: MailTokenClaims): Promise<string> {
    return this.#tokens.issue(userId, claims, LINK_LIFETIMES[kind], { purpose: kind })
  }

  /**
   * Verifies the token of a link and returns its claims. They must still be compared with the user,
   * whose generation may be another one by now.
   *
   * @throws AuthError `invalid_token`
   */
  async verify (kind: 'change-email', token: string): Promise<NewEmailTokenClaims>
  async verify (kind: LinkMailKind, token: string): Promise<MailTokenClaims>
  async verify (kind: LinkMailKind, token: string): Promise<NewEmailTokenClaims> {
    const { sub, email, generation, to } = await this.#tokens.verify(token, { purpose: kind })
    // Only this class signs with these keys, so the claims are those of `issue`.
    return { userId: sub, email: String(email), generation: Number(generation), to: String(to) }
  }
}

/** Derives the secret of mail tokens (HKDF, RFC 5869). */
function mailSecret (secret: string): string {
  return Buffer.from(hkdfSync('sha256', secret, '', 'svc-auth mail', 32)).toString('base64url')
}
