import { hash, randomUUID } from 'node:crypto'
import { BoundedMap, withoutUndefined } from '../../base/values.js'
import { Once } from '../../base/concurrency.js'
import { type JsonValue, plainJsonObject } from '../../claims.js'
import { MAX_TOKEN_LENGTH } from '../../core/signed-text.js'
import { AuthError } from '../../errors.js'
import { type TokenClaims, type TokenUse, assertTokenText, assertUsable, assertUse } from './token-claims.js'
import type { TokenKeys } from './token-keys.js'

/** Claims that the issuer sets, or that restrict the use of a token. */
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

const MAX_REMEMBERED = 1000

/** Loaded with the first token. */
const signer = new Once(() => import('jose/jwt/sign'))
const verifier = new Once(() => import('./jwt.js'))

/** Issues and verifies the JWTs of one issuer. */
export class TokenIssuer {
  readonly #issuer: string
  readonly #keys: TokenKeys
  /** Of this issuer alone, so that no token outlives the secrets that verified it. */
  readonly #verified = new VerifiedTokens()

  constructor (issuer: string, keys: TokenKeys) {
    this.#issuer = issuer
    this.#keys = keys
  }

  async issue (userId: string, claims: ExtraClaims, ttl: number, use: TokenUse): Promise<string> {
    if (typeof userId !== 'string' || userId === '') {
      throw new AuthError('invalid_claims', { message: 'userId must be a non-empty string.' })
    }
    assertUse(use)
    if (typeof ttl !== 'number' || !(ttl >= MIN_TTL && ttl <= MAX_TTL)) throw new AuthError('invalid_ttl')
    const extra = checkedClaims(claims, userId)
    const iat = Math.floor(Date.now() / 1000)
    const { SignJWT } = await signer.done()
    const { key, header } = this.#keys.signing
    const token = await new SignJWT({
      ...extra,
      ...withoutUndefined({ purpose: use.purpose, aud: use.audience }),
      iss: this.#issuer,
      sub: userId,
      iat,
      exp: iat + Math.ceil(ttl),
      jti: randomUUID()
    }).setProtectedHeader(header).sign(key)
    if (token.length > MAX_TOKEN_LENGTH) {
      throw new AuthError('invalid_claims', {
        message: `The claims make a token of more than ${MAX_TOKEN_LENGTH} characters, too long for a header.`
      })
    }
    return token
  }

  async verify (token: unknown, use: TokenUse): Promise<TokenClaims> {
    assertUse(use)
    assertTokenText(token)
    const claims = this.#verified.claimsOf(token) ?? await this.#verifiedNow(token)
    assertUsable(claims, use)
    return claims
  }

  async #verifiedNow (token: string): Promise<TokenClaims> {
    const { verifiedClaims } = await verifier.done()
    const { algorithms, verifying } = this.#keys
    const claims = await verifiedClaims(token, { issuer: this.#issuer, algorithms, keys: verifying })
    this.#verified.add(token, claims)
    return claims
  }
}

/**
 * Remembers the claims of verified tokens, because machines send the same token again and again.
 * Keeps hashes, so that a dump of the memory contains no tokens.
 */
export class VerifiedTokens {
  readonly #claimsByHash = new BoundedMap<string>(MAX_REMEMBERED)

  claimsOf (token: string): TokenClaims | undefined {
    const key = keyOf(token)
    const json = this.#claimsByHash.get(key)
    if (json === undefined) return undefined
    this.#claimsByHash.set(key, json)
    // A new object for each call, because the application may change it.
    return JSON.parse(json)
  }

  add (token: string, claims: TokenClaims): void {
    this.#claimsByHash.set(keyOf(token), JSON.stringify(claims))
  }
}

function keyOf (token: string): string {
  return hash('sha256', token, 'base64')
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
