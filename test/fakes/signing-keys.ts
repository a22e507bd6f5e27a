import { type CryptoKey, type JWK, type JWTPayload, SignJWT, exportJWK, generateKeyPair } from 'jose'

/** A pair of keys with which a stand-in signs ID tokens. */
export interface SigningKey {
  privateKey: CryptoKey
  /** The public half, as a JWKS has it: with `kid` and `use`. */
  jwk: JWK & { kid: string }
}

const pairs = new Map<string, Promise<SigningKey>>()

/** The RSA pair of this name; made once for all tests of a file, since that takes longer than most of them. */
export async function signingKey (kid: string): Promise<SigningKey> {
  const pair = pairs.get(kid) ?? makeKey(kid)
  pairs.set(kid, pair)
  return pair
}

/** @param header members besides `alg` and `kid`, or others in their place */
export async function signed (payload: JWTPayload, { privateKey, jwk }: SigningKey, header: Record<string, unknown> = {}): Promise<string> {
  return new SignJWT(payload).setProtectedHeader({ alg: 'RS256', kid: jwk.kid, ...header }).sign(privateKey)
}

async function makeKey (kid: string): Promise<SigningKey> {
  const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true })
  return { privateKey, jwk: { ...await exportJWK(publicKey), kid, use: 'sig' } }
}
