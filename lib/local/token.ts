import { randomUUID, webcrypto } from 'node:crypto'
import { type JWTPayload, SignJWT, decodeProtectedHeader, jwtVerify } from 'jose'
import { type JsonValue, isPlainObject, plainJsonObject } from '../claims.js'
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
  iss: string
  sub: string
  /** Seconds since the epoch. */
  iat: number
  /** Seconds since the epoch. */
  exp: number
  jti: string
  aud?: string
  purpose?: string
  [claim: string]: JsonValue | undefined
}

/** Claims that the issuer sets (RFC 7519 section 4.1) or that decide what a token is good for. */
const RESERVED = ['iss', 'sub', 'iat', 'exp', 'jti', 'nbf', 'aud', 'purpose'] as const
const RESERVED_CLAIMS: ReadonlySet<string> = new Set(RESERVED)

/** What a token may say besides: plain JSON data, under names that are not the issuer's. */
export type ExtraClaims = { readonly [claim: string]: JsonValue } & { readonly [C in typeof RESERVED[number]]?: never }

const HEADER = { alg: 'HS256', typ: 'JWT' } as const
const MIN_TTL = 1
const MAX_TTL = 30 * 24 * 60 * 60

/** As much as a server takes for all headers together; what is longer is neither issued nor looked at. */
const MAX_TOKEN_LENGTH = 16_384
const COMPACT_JWS = /^[\w-]+\.[\w-]+\.[\w-]+$/

/** Signs and verifies the JWTs of one issuer: HS256 and nothing else (RFC 7515, RFC 8725). */
export class TokenIssuer {
  readonly #issuer: string
  readonly #signingKey: Promise<webcrypto.CryptoKey>
  readonly #olderKeys: ReadonlyArray<Promise<webcrypto.CryptoKey>>

  /** @param secrets the first signs, all verify */
  constructor (issuer: string, [secret, ...olderSecrets]: readonly [string, ...string[]]) {
    this.#issuer = issuer
    this.#signingKey = importKey(secret)
    this.#olderKeys = olderSecrets.map(importKey)
  }

  /**
   * @param ttl seconds, 1 to 2592000
   * @throws AuthError `invalid_claims`, `invalid_ttl`; OptionsError for a use that is none
   */
  async issue (userId: string, claims: ExtraClaims, ttl: number, use: TokenUse): Promise<string> {
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
    const issuedAt = Math.floor(Date.now() / 1000)
    const payload = { ...extra, ...claimsOfUse(use), iss: this.#issuer, sub: userId, iat: issuedAt, exp: issuedAt + Math.ceil(ttl), jti: randomUUID() }
    const token = await new SignJWT(payload).setProtectedHeader(HEADER).sign(await this.#signingKey)
    if (token.length > MAX_TOKEN_LENGTH) {
      throw new AuthError('invalid_claims', { message: `The claims make a token of more than ${MAX_TOKEN_LENGTH} characters, which no header could carry.` })
    }
    return token
  }

  /** @throws AuthError `invalid_token`, whatever is wrong with the token; OptionsError for a use that is none */
  async verify (token: unknown, use: TokenUse): Promise<TokenClaims> {
    assertUse(use)
    if (typeof token !== 'string' || token.length > MAX_TOKEN_LENGTH || !COMPACT_JWS.test(token)) throw new AuthError('invalid_token')
    try {
      // Tokens of ours carry two header parameters. Any other (jwk, jku, kid, crit, cty, zip) was put there by somebody else.
      if (!sameMembers(decodeProtectedHeader(token), HEADER)) throw new AuthError('invalid_token')
      const payload = await this.#verifySignature(token)
      if (!isWrittenByUs(token, payload) || !isTokenPayload(payload) || !isForUse(payload, use)) throw new AuthError('invalid_token')
      return payload
    } catch (error) {
      throw error instanceof AuthError ? error : new AuthError('invalid_token', { cause: error })
    }
  }

  async #verifySignature (token: string): Promise<JWTPayload> {
    let failure: unknown
    for (const key of [this.#signingKey, ...this.#olderKeys]) {
      try {
        const { payload } = await jwtVerify(token, await key, { algorithms: [HEADER.alg], issuer: this.#issuer })
        return payload
      } catch (error) {
        failure = error
      }
    }
    throw failure
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

async function importKey (secret: string): Promise<webcrypto.CryptoKey> {
  return webcrypto.subtle.importKey('raw', Buffer.from(secret), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify'])
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

/** jose checks the signature, `iss`, `exp` and `nbf` where they are present; that they are, and the rest, is checked here. No leeway. */
function isTokenPayload (payload: JWTPayload): payload is TokenClaims {
  const now = Math.floor(Date.now() / 1000)
  return typeof payload.sub === 'string' && payload.sub !== '' &&
    typeof payload.jti === 'string' && Number.isFinite(payload.exp) &&
    typeof payload.iat === 'number' && Number.isFinite(payload.iat) && payload.iat <= now
}

/** Our payloads are what JSON.stringify writes. Another spelling, such as one that names a claim twice, could be read in two ways. */
function isWrittenByUs (token: string, payload: JWTPayload): boolean {
  const [, encoded = ''] = token.split('.')
  return Buffer.from(encoded, 'base64url').toString() === JSON.stringify(payload)
}

function isForUse (payload: TokenClaims, use: TokenUse): boolean {
  return payload.purpose === use.purpose && payload.aud === use.audience
}

function sameMembers (a: object, b: object): boolean {
  const entries = Object.entries(a)
  return entries.length === Object.keys(b).length && entries.every(([name, value]) => Reflect.get(b, name) === value)
}
