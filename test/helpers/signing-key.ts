import { generateKeyPairSync } from 'node:crypto'
import type { JWK } from 'jose'

/** As each library and option takes it. */
export type PrivateKey = JWK & Record<'crv' | 'x' | 'd', string>

/** A new private key for ES256. */
export function ecKey (namedCurve = 'P-256'): PrivateKey {
  const { x = '', y = '', d = '' } = generateKeyPairSync('ec', { namedCurve }).privateKey.export({ format: 'jwk' })
  return { kty: 'EC', crv: namedCurve, x, y, d }
}

/** A new private key for EdDSA. */
export function edKey (): PrivateKey {
  const { x = '', d = '' } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })
  return { kty: 'OKP', crv: 'Ed25519', x, d }
}
