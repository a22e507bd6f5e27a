import { type JsonValue, isPlainObject, isText } from '../../claims.js'
import { MAX_TOKEN_LENGTH } from '../../core/signed-text.js'
import { AuthError, OptionsError } from '../../errors.js'
import { assertKnownOptions, mustBe } from '../../option-checks.js'

/** Restricts a token to one use, which must be named again to verify it. */
export interface TokenUse {
  /** What the token is for, such as `invitation` or `pre-auth`. */
  purpose?: string
  /** The recipient, such as the name of the service that is called (RFC 7519 section 4.1.3). */
  audience?: string
}

/** The decoded claims of a verified token (RFC 7519). */
export interface TokenClaims {
  /** The option `issuer` of the provider. */
  iss: string
  /** The user id, or another subject that the token was issued for. */
  sub: string
  /** The time of issue: seconds since the epoch. */
  iat: number
  /** The time of expiry: seconds since the epoch. */
  exp: number
  /** A UUID, unique to each token of `issueIdToken`; tokens of another library may lack it. */
  jti?: string
  /** The recipient, where the token was issued for one; authorization servers may name several. */
  aud?: string | string[]
  /** What the token is for, where it was issued for one purpose. */
  purpose?: string
  [claim: string]: JsonValue | undefined
}

/** Seconds by which the issuer's clock may be ahead. */
export const CLOCK_TOLERANCE = 5

export function assertTokenText (token: unknown): asserts token is string {
  if (typeof token !== 'string' || token.length > MAX_TOKEN_LENGTH) throw new AuthError('invalid_token')
}

const checkedUse = mustBe('a non-empty string, or left out', isText)

/** A purpose that is undefined by mistake would issue, or accept, a token without restriction. */
export function assertUse (use: unknown): void {
  if (!isPlainObject(use)) {
    const expected = '{ purpose }, { audience } or both'
    throw new OptionsError(`the use of a token must be ${expected}, such as { audience: 'reports' }`)
  }
  assertKnownOptions('the use of a token', use, ['purpose', 'audience'])
  for (const [name, value] of Object.entries(use)) checkedUse(value, name)
}

/**
 * Checks what may differ each time that a token is presented: its times and its use. One that is
 * bound to a key (RFC 7800) is not a bearer token: its sender would have to prove the key.
 */
export function assertUsable ({ iat, nbf = iat, exp, purpose, aud, cnf }: TokenClaims, use: TokenUse): void {
  const now = Date.now() / 1000
  const isCurrent = Math.max(iat, Number(nbf)) <= now + CLOCK_TOLERANCE && now < exp
  const isFitting = purpose === use.purpose && isFor(aud, use.audience)
  if (!isCurrent || !isFitting || cnf !== undefined) throw new AuthError('invalid_token')
}

/** The scopes of a token, as RFC 9068 has them, or in the `scp` of some servers. */
export function scopesIn ({ scope, scp = scope }: TokenClaims): string[] {
  return Array.isArray(scp) ? scp.map(String) : String(scp ?? '').split(' ').filter(Boolean)
}

/** Whether a token is for an audience, or without one for no audience (RFC 7519 section 4.1.3). */
function isFor (aud: TokenClaims['aud'], audience: string | undefined): boolean {
  return aud === audience || (Array.isArray(aud) && audience !== undefined && aud.includes(audience))
}
