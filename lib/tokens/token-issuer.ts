import { randomUUID } from 'node:crypto'
import { withoutUndefined } from '../base/defaults.js'
import { type JsonValue, plainJsonObject } from '../claims.js'
import { AuthError } from '../errors.js'
import { Once } from '../base/once.js'
import {
  MAX_TOKEN_LENGTH, type TokenClaims, type TokenUse, assertTokenText, assertUsable, assertUse
} from './token-claims.js'
import type { TokenKeys } from './token-keys.js'
import { VerifiedTokens } from './verified-tokens.js'

/** Claims that the issuer sets (RFC 7519 section 4.1) or that restrict the use of a token. */
const RESERVED = ['iss', 'sub', 'iat', 'exp', 'jti', 'nbf', 'aud', 'purpose'] as const
const RESERVED_CLAIMS: ReadonlySet<string> = new Set(RESERVED)

/**
 * Extra claims of a token: plain JSON data, without the names that the issuer sets (`iss`, `iat`,
 * `exp`, `jti`, `nbf`, `aud`, `purpose`). A `sub`, as in the claims of a principal, must equal the
 * user id that the token is issued for.
 */
export type ExtraClaims = { readonly [claim: string]: JsonValue | undefined } &
  { readonly [C in Exclude<typeof RESERVED[number], 'sub'>]?: never }

const SUB_ADVICE = ' The sub of a token is its userId; ' +
  'pass the other claims of a principal: const { sub, ...claims } = principal.claims.'

const MIN_TTL = 1
const MAX_TTL = 30 * 24 * 60 * 60

/** Loaded with the first token, because an application that starts issues none. */
const jwt = new Once(() => import('./jwt.js'))

/** Issues and verifies the JWTs of one issuer. */
export class TokenIssuer {
  readonly #issuer: string
  readonly #keys: TokenKeys
  readonly #verified = new VerifiedTokens()

  constructor (issuer: string, keys: TokenKeys) {
    this.#issuer = issuer
    this.#keys = keys
  }

  /**
   * Issues a token.
   *
   * @param ttl seconds, 1 to 2592000
   * @throws AuthError `invalid_claims`, `invalid_ttl`; OptionsError for an invalid `use`
   */
  async issue (userId: string, claims: ExtraClaims, ttl: number, use: TokenUse): Promise<string> {
    if (typeof userId !== 'string' || userId === '') {
      throw new AuthError('invalid_claims', { message: 'userId must be a non-empty string.' })
    }
    assertUse(use)
    if (typeof ttl !== 'number' || !(ttl >= MIN_TTL && ttl <= MAX_TTL)) throw new AuthError('invalid_ttl')
    const extra = checkedClaims(claims, userId)
    const iat = Math.floor(Date.now() / 1000)
    const { signedToken } = await jwt.done()
    const token = await signedToken({
      ...extra,
      ...withoutUndefined({ purpose: use.purpose, aud: use.audience }),
      iss: this.#issuer,
      sub: userId,
      iat,
      exp: iat + Math.ceil(ttl),
      jti: randomUUID()
    }, this.#keys.signing)
    if (token.length > MAX_TOKEN_LENGTH) {
      throw new AuthError('invalid_claims', {
        message: `The claims make a token of more than ${MAX_TOKEN_LENGTH} characters, too long for a header.`
      })
    }
    return token
  }

  /**
   * Verifies a token and returns its claims.
   *
   * @throws AuthError `invalid_token` for every invalid token; OptionsError for an invalid `use`
   */
  async verify (token: unknown, use: TokenUse): Promise<TokenClaims> {
    assertUse(use)
    assertTokenText(token)
    const claims = this.#verified.claimsOf(token) ?? await this.#verifiedNow(token)
    assertUsable(claims, use)
    return claims
  }

  async #verifiedNow (token: string): Promise<TokenClaims> {
    const { verifiedClaims } = await jwt.done()
    const { algorithms, verifying } = this.#keys
    const claims = await verifiedClaims(token, { issuer: this.#issuer, algorithms, keys: verifying })
    this.#verified.add(token, claims)
    return claims
  }
}

/** Removes the claims that only the issuer may set, so that a principal's can go into a token. */
export function withoutReservedClaims (claims: Record<string, JsonValue | undefined>): ExtraClaims {
  const isExtra = ([name, value]: [string, unknown]) => value !== undefined && !RESERVED_CLAIMS.has(name)
  return Object.fromEntries(Object.entries(claims).filter(isExtra))
}

function checkedClaims (claims: ExtraClaims, userId: string): Record<string, JsonValue> {
  const extra = plainJsonObject(claims)
  for (const [name, value] of Object.entries(extra)) {
    if (!RESERVED_CLAIMS.has(name) || (name === 'sub' && value === userId)) continue
    const advice = name === 'sub' ? SUB_ADVICE : ''
    const message = `"${name}" is set by the issuer and cannot be an extra claim.${advice}`
    throw new AuthError('invalid_claims', { message })
  }
  return extra
}
