/** What needs jose, and is loaded with the first token. */
import type { webcrypto } from 'node:crypto'
import { createRemoteJWKSet } from 'jose/jwks/remote'
import type { JWTHeaderParameters } from 'jose'
import { SignJWT } from 'jose/jwt/sign'
import { type JWTVerifyGetKey, jwtVerify } from 'jose/jwt/verify'
import { JWKSMultipleMatchingKeys, JWKSNoMatchingKey } from 'jose/errors'
import { AuthError } from '../errors.js'
import { CLOCK_TOLERANCE, type TokenClaims, assertTokenText, isTokenClaims } from './token-claims.js'
import type { TokenKeys } from './token-keys.js'

/** Whose tokens are good, and by which keys. */
export interface Trust {
  readonly issuer: string
  readonly algorithms: readonly string[]
  /** Any of them, whatever `kid` a token names. */
  readonly keys: ReadonlyArray<webcrypto.CryptoKey | JWTVerifyGetKey>
}

const JWT_TYPE = /^(?:application\/)?jwt$/i

/** The strings of a JSON text; one with a colon behind it is a name. */
const STRING = /"(?:[^"\\]|\\.)*"(\s*:)?/g

/** A JWT in the compact serialization. */
export async function signedToken (claims: TokenClaims, { key, header }: TokenKeys['signing']): Promise<string> {
  return new SignJWT(claims).setProtectedHeader(header).sign(key)
}

/**
 * Checks all of a token that stays as it is: spelling, signature, header, issuer and the form of its claims.
 *
 * @throws AuthError `invalid_token`; `unavailable` when the keys cannot be fetched
 */
export async function verifiedClaims (token: unknown, { keys, ...trust }: Trust): Promise<TokenClaims> {
  assertTokenText(token)
  for (const key of isSpeltAsUsual(token) ? keys : []) {
    const claims = await claimsBy(key, token, trust)
    if (claims !== null) return claims
  }
  throw new AuthError('invalid_token')
}

/**
 * The keys that an issuer publishes. They are fetched when first needed, kept for ten minutes, and fetched
 * again for a key that is not among them, at most every thirty seconds.
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

/** Null for a token that another key signed, or that has something wrong: what it is, is not told. */
async function claimsBy (
  key: Trust['keys'][number], token: string, { issuer, algorithms }: Omit<Trust, 'keys'>
): Promise<TokenClaims | null> {
  try {
    const { payload, protectedHeader } = await jwtVerify(token, key, {
      issuer,
      algorithms: [...algorithms],
      requiredClaims: ['exp', 'iat', 'sub'],
      clockTolerance: CLOCK_TOLERANCE
    })
    return isUsualHeader(protectedHeader) && isTokenClaims(payload) && hasUniqueNames(token, payload) ? payload : null
  } catch (error) {
    if (error instanceof AuthError) throw error
    return null
  }
}

/**
 * Another parameter could say something about the token that is not looked at, another type that the token
 * is not for this (RFC 8725 section 3.11).
 */
function isUsualHeader ({ alg, typ = 'JWT', kid = '', ...others }: JWTHeaderParameters): boolean {
  return Object.keys(others).length === 0 && typeof typ === 'string' && JWT_TYPE.test(typ) && typeof kid === 'string'
}

/** jose passes over padding, and Base64 over the last bits: of one token there would be several texts. */
function isSpeltAsUsual (token: string): boolean {
  return token.split('.').every(part => Buffer.from(part, 'base64url').toString('base64url') === part)
}

/** A text that names a claim twice can be read in two ways (RFC 7519 section 4). */
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
