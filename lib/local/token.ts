import { type KeyObject, createHmac, createSecretKey, randomUUID, timingSafeEqual } from 'node:crypto'
import { type JsonValue, isPlainObject, plainJsonObject } from '../claims.js'
import { AuthError, OptionsError } from '../errors.js'
import { VerifiedTokens } from './verified-tokens.js'

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
  /** A UUID of its own for each token. */
  jti: string
  /** The audience of its {@link TokenUse}. */
  aud?: string
  /** The purpose of its {@link TokenUse}. */
  purpose?: string
  [claim: string]: JsonValue | undefined
}

/** Claims that the issuer sets (RFC 7519 section 4.1) or that decide what a token is good for. */
const RESERVED = ['iss', 'sub', 'iat', 'exp', 'jti', 'nbf', 'aud', 'purpose'] as const
const RESERVED_CLAIMS: ReadonlySet<string> = new Set(RESERVED)

/** What a token may say besides: plain JSON data, under names that are not the issuer's (`iss`, `sub`, `iat`, `exp`, `jti`, `nbf`, `aud`, `purpose`). */
export type ExtraClaims = { readonly [claim: string]: JsonValue } & { readonly [C in typeof RESERVED[number]]?: never }

/** The only header there is: of a token with any other one, whatever it says, nothing more is looked at (RFC 8725 sections 3.1 and 3.11). */
const HEADER = encoded({ alg: 'HS256', typ: 'JWT' })

const MIN_TTL = 1
const MAX_TTL = 30 * 24 * 60 * 60

/** As much as a server takes for all headers together; what is longer is neither issued nor looked at. */
const MAX_TOKEN_LENGTH = 16_384

/**
 * Signs and verifies the JWTs of one issuer: HS256 in the compact serialization (RFC 7515) and nothing else.
 *
 * An HMAC takes two microseconds. A library of all of JOSE has the thread pool compute it, which takes ten times as long.
 */
export class TokenIssuer {
  readonly #issuer: string
  readonly #signingKey: KeyObject
  readonly #keys: readonly KeyObject[]
  readonly #verified = new VerifiedTokens()

  /** @param secrets the first signs, all verify */
  constructor (issuer: string, [secret, ...olderSecrets]: readonly [string, ...string[]]) {
    this.#issuer = issuer
    this.#signingKey = keyOf(secret)
    this.#keys = [this.#signingKey, ...olderSecrets.map(keyOf)]
  }

  /**
   * @param ttl seconds, 1 to 2592000
   * @throws AuthError `invalid_claims`, `invalid_ttl`; OptionsError for a use that is none
   */
  issue (userId: string, claims: ExtraClaims, ttl: number, use: TokenUse): string {
    if (typeof userId !== 'string' || userId === '') {
      throw new AuthError('invalid_claims', { message: 'userId must be a non-empty string.' })
    }
    assertUse(use)
    if (typeof ttl !== 'number' || !(ttl >= MIN_TTL && ttl <= MAX_TTL)) throw new AuthError('invalid_ttl')
    const extra = plainJsonObject(claims)
    for (const name of Object.keys(extra)) {
      if (RESERVED_CLAIMS.has(name)) {
        throw new AuthError('invalid_claims', { message: `"${name}" is set by the issuer and cannot be an extra claim.` })
      }
    }
    const issuedAt = now()
    const payload = { ...extra, ...claimsOfUse(use), iss: this.#issuer, sub: userId, iat: issuedAt, exp: issuedAt + Math.ceil(ttl), jti: randomUUID() }
    const signed = `${HEADER}.${encoded(payload)}`
    const token = `${signed}.${signatureOf(signed, this.#signingKey)}`
    if (token.length > MAX_TOKEN_LENGTH) {
      throw new AuthError('invalid_claims', { message: `The claims make a token of more than ${MAX_TOKEN_LENGTH} characters, which no header could carry.` })
    }
    return token
  }

  /** @throws AuthError `invalid_token`, whatever is wrong with the token; OptionsError for a use that is none */
  verify (token: unknown, use: TokenUse): TokenClaims {
    assertUse(use)
    if (typeof token !== 'string' || token.length > MAX_TOKEN_LENGTH) throw new AuthError('invalid_token')
    const claims = this.#verified.claimsOf(token) ?? this.#verifiedNow(token)
    if (!isCurrent(claims) || !isForUse(claims, use)) throw new AuthError('invalid_token')
    return claims
  }

  /** All of a token that stays as it is: signature, spelling, issuer, form. */
  #verifiedNow (token: string): TokenClaims {
    const [header, payload = '', signature = '', ...more] = token.split('.')
    const isSigned = header === HEADER && more.length === 0 && this.#keys.some(key => isSameText(signature, signatureOf(`${header}.${payload}`, key)))
    const claims = isSigned ? decoded(payload) : null
    if (!isTokenClaims(claims) || claims.iss !== this.#issuer) throw new AuthError('invalid_token')
    this.#verified.add(token, claims)
    return claims
  }
}

/** A token's claims without those that only its issuer may set: what of a principal can go into a token. */
export function withoutReservedClaims (claims: Record<string, JsonValue | undefined>): ExtraClaims {
  const rest: Record<string, JsonValue> = {}
  for (const [name, value] of Object.entries(claims)) {
    if (value !== undefined && !RESERVED_CLAIMS.has(name)) rest[name] = value
  }
  return rest
}

function keyOf (secret: string): KeyObject {
  return createSecretKey(Buffer.from(secret))
}

/** RFC 7518 section 3.2. */
function signatureOf (signed: string, key: KeyObject): string {
  return createHmac('sha256', key).update(signed).digest('base64url')
}

/** Takes the same time wherever two texts of one length differ. */
function isSameText (given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

function encoded (value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/**
 * What a part of a token says; null for no JSON, and for what is not spelt as we spell it: a text that names a claim twice could be read
 * in two ways.
 */
function decoded (part: string): unknown {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString())
    return encoded(value) === part ? value : null
  } catch {
    return null
  }
}

/**
 * Refuses a use that is none: a purpose that is undefined by mistake would make, or accept, a token that is good for everything.
 *
 * @throws OptionsError
 */
export function assertUse (use: unknown): void {
  if (!isPlainObject(use)) throw new OptionsError("the use of a token must be { purpose }, { audience } or both, such as { audience: 'reports' }")
  for (const [name, value] of Object.entries(use)) {
    if (name !== 'purpose' && name !== 'audience') throw new OptionsError(`the use of a token has no "${name}"; it has purpose and audience`)
    if (typeof value !== 'string' || value === '') throw new OptionsError(`${name} must be a non-empty string, or left out`)
  }
}

function claimsOfUse ({ purpose, audience }: TokenUse): { purpose?: string, aud?: string } {
  return { ...(purpose !== undefined && { purpose }), ...(audience !== undefined && { aud: audience }) }
}

/** The claims that each of our tokens has, in their form (RFC 7519 section 4.1). */
function isTokenClaims (claims: unknown): claims is TokenClaims {
  return isPlainObject(claims) && isNonEmpty(claims.sub) && typeof claims.jti === 'string' && isTime(claims.iat) && isTime(claims.exp) &&
    (claims.nbf === undefined || isTime(claims.nbf))
}

function isNonEmpty (value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

/** A NumericDate (RFC 7519 section 2). */
function isTime (value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value)
}

/** No leeway. */
function isCurrent ({ iat, nbf = iat, exp }: TokenClaims): boolean {
  const time = now()
  return iat <= time && Number(nbf) <= time && time < exp
}

/** Seconds since the epoch. */
function now (): number {
  return Math.floor(Date.now() / 1000)
}

function isForUse (claims: TokenClaims, use: TokenUse): boolean {
  return claims.purpose === use.purpose && claims.aud === use.audience
}
