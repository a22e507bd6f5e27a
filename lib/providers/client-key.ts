import { createPrivateKey } from 'node:crypto'
import { OptionsError } from '../errors.js'
import type { Check } from '../option-checks.js'

/** Algorithms as Web Crypto names them (RFC 7518 section 3.1, RFC 8037). */
const ALGORITHMS = {
  ES256: { name: 'ECDSA', namedCurve: 'P-256' },
  EdDSA: { name: 'Ed25519' },
  PS256: { name: 'RSA-PSS', hash: 'SHA-256' },
  RS256: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
}

/** A key, and the header of what it signs. */
export type ClientKey = ReturnType<typeof imported>

/** A private JWK, several of which the first signs, or a function that is called each time. */
export const clientKeyOption: Check<() => ClientKey> = (value, option) => {
  const present = (): ClientKey => imported(valueOf(value), option)
  present()
  return present
}

/** Returns the value of an option, or what its function returns now. */
export function valueOf (option: unknown): unknown {
  return typeof option === 'function' ? option() : option
}

/** Imports a private key. The error does not say what is wrong: that could reveal a part of it. */
export function signingKey (key: Parameters<typeof createPrivateKey>[0], alg: string, must: string) {
  try {
    return createPrivateKey(key).toCryptoKey(Reflect.get(ALGORITHMS, alg), false, ['sign'])
  } catch {
    throw new OptionsError(must)
  }
}

function imported (jwks: unknown, option: string) {
  const { alg, kid, x5t, 'x5t#S256': x5tS256, ...key } = Object([jwks].flat()[0])
  const must = `${option} must be a private JWK whose alg is one of ${Object.keys(ALGORITHMS).join(', ')}, or several`
  const header = { alg, typ: 'JWT', kid, x5t, 'x5t#S256': x5tS256 }
  return { key: signingKey({ key, format: 'jwk' }, alg, must), header }
}
