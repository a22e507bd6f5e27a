import { type JsonValue, isPlainObject } from '../claims.js'
import { AuthError, OptionsError } from '../errors.js'

/** What a token is for, when it is not a user's general credential. Both must be named again to verify it. */
export interface TokenUse {
  /** For example `invitation` or `pre-auth`. */
  purpose?: string
  /** For example the name of the service that is called (RFC 7519 section 4.1.3). */
  audience?: string
}

/** The decoded claims of a verified token (RFC 7519). */
export interface TokenClaims {
  /** The option `issuer` of the provider. */
  iss: string
  /** The user id, or what else the token was issued for. */
  sub: string
  /** When it was issued: seconds since the epoch. */
  iat: number
  /** When it expires: seconds since the epoch. */
  exp: number
  /** A UUID of its own for each token that `issueIdToken` makes; tokens of another library may lack it. */
  jti?: string
  /** The audience of its {@link TokenUse}. */
  aud?: string
  /** The purpose of its {@link TokenUse}. */
  purpose?: string
  [claim: string]: JsonValue | undefined
}

/** As much as a server takes for all headers together; a longer token is neither issued nor verified. */
export const MAX_TOKEN_LENGTH = 16_384

/** Seconds by which the clock of the machine that issued a token may be ahead. */
export const CLOCK_TOLERANCE = 5

/** @throws AuthError `invalid_token` for anything but a text of at most 16384 characters */
export function assertTokenText (token: unknown): asserts token is string {
  if (typeof token !== 'string' || token.length > MAX_TOKEN_LENGTH) throw new AuthError('invalid_token')
}

/**
 * Refuses a use that is not one: a purpose that is undefined by mistake would make, or accept, a token
 * that is good for everything.
 *
 * @throws OptionsError
 */
export function assertUse (use: unknown): void {
  if (!isPlainObject(use)) {
    const expected = '{ purpose }, { audience } or both'
    throw new OptionsError(`the use of a token must be ${expected}, such as { audience: 'reports' }`)
  }
  for (const [name, value] of Object.entries(use)) {
    if (name !== 'purpose' && name !== 'audience') {
      throw new OptionsError(`the use of a token has no "${name}"; it has purpose and audience`)
    }
    if (!isNonEmpty(value)) throw new OptionsError(`${name} must be a non-empty string, or left out`)
  }
}

/** Whether claims have the form of RFC 7519 section 4.1, and include those that are checked. */
export function isTokenClaims (claims: unknown): claims is TokenClaims {
  return isPlainObject(claims) && isNonEmpty(claims.sub) && isTime(claims.iat) && isTime(claims.exp) &&
    (claims.jti === undefined || typeof claims.jti === 'string')
}

/**
 * Checks what can change between two uses of a token: its times, and what it is used for.
 *
 * @throws AuthError `invalid_token`
 */
export function assertUsable ({ iat, nbf = iat, exp, purpose, aud }: TokenClaims, use: TokenUse): void {
  const now = Date.now() / 1000
  const isCurrent = Math.max(iat, Number(nbf)) <= now + CLOCK_TOLERANCE && now < exp
  if (!isCurrent || purpose !== use.purpose || aud !== use.audience) throw new AuthError('invalid_token')
}

function isNonEmpty (value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

/** A NumericDate (RFC 7519 section 2). */
function isTime (value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value)
}
