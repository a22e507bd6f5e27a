/** The part that needs jose: loaded with the first token, to start an application fast. */
import type { webcrypto } from 'node:crypto'
import { createRemoteJWKSet } from 'jose/jwks/remote'
import type { JWTHeaderParameters } from 'jose'
import { type JWTVerifyGetKey, jwtVerify } from 'jose/jwt/verify'
import { JWKSMultipleMatchingKeys, JWKSNoMatchingKey } from 'jose/errors'
import { isPlainObject } from '../../claims.js'
import { isCanonical } from '../../core/signed-text.js'
import { AuthError } from '../../errors.js'
import { CLOCK_TOLERANCE, type TokenClaims, assertTokenText } from './token-claims.js'

/** The issuer whose tokens are accepted, with its algorithms and keys. */
export interface Trust {
  readonly issuer: string
  readonly algorithms: readonly string[]
  /** Whether the header may have the type of access tokens (RFC 9068), and name a certificate. */
  readonly takesAccessTokens?: boolean
  /** Each key is tried, whatever `kid` the token names. */
  readonly keys: ReadonlyArray<webcrypto.CryptoKey | JWTVerifyGetKey>
}

const JWT_TYPE = /^(?:application\/)?jwt$/i
const ACCESS_TOKEN_TYPE = /^(?:application\/)?(?:at\+)?jwt$/i

/** Matches the strings of a JSON text; a string before a colon is a name. */
const STRING = /"(?:[^"\\]|\\.)*"(\s*:)?/g

/** Checks all that cannot change: encoding, signature, header, issuer, form of the claims. */
export async function verifiedClaims (token: unknown, { keys, ...trust }: Trust): Promise<TokenClaims> {
  assertTokenText(token)
  for (const key of isCanonical(token) ? keys : []) {
    const claims = await claimsBy(key, token, trust)
    if (claims !== null) return claims
  }
  throw new AuthError('invalid_token')
}

/**
 * Finds a key in the JWK Set at a URL, which is fetched on first use, kept for ten minutes, and
 * fetched again for an unknown key, at most every thirty seconds.
 */
export function publishedKeys (url: URL): JWTVerifyGetKey {
  const keySet = createRemoteJWKSet(url)
  return async (header, token) => {
    try {
      return await keySet(header, token)
    } catch (cause) {
      if (cause instanceof JWKSNoMatchingKey || cause instanceof JWKSMultipleMatchingKeys) throw cause
      const message = 'The keys of the issuer cannot be fetched at the moment; try again later.'
      throw new AuthError('unavailable', { message, cause })
    }
  }
}

/** Returns null both for a token of another key and for an invalid one: no error says which. */
async function claimsBy (
  key: Trust['keys'][number], token: string, { issuer, algorithms, takesAccessTokens = false }: Omit<Trust, 'keys'>
): Promise<TokenClaims | null> {
  try {
    const { payload, protectedHeader } = await jwtVerify(token, key, {
      issuer,
      algorithms: [...algorithms],
      requiredClaims: ['exp', 'iat', 'sub'],
      clockTolerance: CLOCK_TOLERANCE
    })
    const { x5t, ...header } = protectedHeader
    const isExpected = takesAccessTokens
      ? isPlainHeader(header, ACCESS_TOKEN_TYPE)
      : isPlainHeader(protectedHeader, JWT_TYPE)
    return isExpected && isTokenClaims(payload) && hasUniqueNames(token, payload) ? payload : null
  } catch (error) {
    if (error instanceof AuthError) throw error
    return null
  }
}

/**
 * Another parameter of the header could change the meaning of the token, and another type means
 * another kind of token (RFC 8725 section 3.11).
 */
function isPlainHeader ({ alg, typ = 'JWT', kid = '', ...others }: JWTHeaderParameters, type: RegExp): boolean {
  return Object.keys(others).length === 0 && typeof typ === 'string' && type.test(typ) && typeof kid === 'string'
}

/** Whether no claim name appears twice: parsers differ in which they read (RFC 7519 section 4). */
function hasUniqueNames (token: string, claims: TokenClaims): boolean {
  const [, payload = ''] = token.split('.')
  const strings = Array.from(Buffer.from(payload, 'base64url').toString().matchAll(STRING))
  return strings.filter(([, colon]) => colon !== undefined).length === countOfNames(claims)
}

function countOfNames (value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const members = Object.values(value)
  const own = Array.isArray(value) ? 0 : members.length
  return members.reduce((sum: number, member) => sum + countOfNames(member), own)
}

/** Whether the claims have the form of RFC 7519 section 4.1, with the required ones. */
function isTokenClaims (claims: unknown): claims is TokenClaims {
  return isPlainObject(claims) && typeof claims.sub === 'string' && claims.sub !== '' &&
    Number.isFinite(claims.iat) && Number.isFinite(claims.exp) &&
    (claims.jti === undefined || typeof claims.jti === 'string')
}
