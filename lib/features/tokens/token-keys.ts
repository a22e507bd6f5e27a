import {
  type JsonWebKey, type webcrypto, createPrivateKey, createPublicKey, createSecretKey, generateKeyPairSync, hash
} from 'node:crypto'
import type { Complete } from '../../base/values.js'
import { isPlainObject, isText } from '../../claims.js'
import { OptionsError } from '../../errors.js'
import type { Secrets } from '../../secrets.js'

/**
 * A JSON Web Key (RFC 7517) for ES256 (`kty` EC, `crv` P-256) or EdDSA (`kty` OKP, `crv` Ed25519),
 * as exported by `exportJWK` of jose. `d` is the private part; `use` is `sig` or absent, and `kid`
 * is by default the thumbprint (RFC 7638).
 */
export interface Jwk {
  /** The key type. */
  kty?: string | undefined
  /** The curve. */
  crv?: string | undefined
  /** The public part: its x coordinate, or the whole key. */
  x?: string | undefined
  /** The y coordinate; of `EC` keys. */
  y?: string | undefined
  /** The private part. */
  d?: string | undefined
  /** The algorithm. */
  alg?: string | undefined
  /** What the key is for. */
  use?: string | undefined
  /** The id of the key. */
  kid?: string | undefined
  /**
   * Of a private key: when it begins to sign, such as `2026-12-01T00:00:00Z`; default at once. It
   * is published before, so that verifiers know it by then.
   */
  notBefore?: string | undefined
}

/** A published public key, without any private member. */
export interface PublicJwk extends Readonly<Complete<Pick<Jwk, 'kty' | 'crv' | 'x' | 'alg' | 'kid'>>> {
  /** The y coordinate; of `EC` keys. */
  readonly y?: string
  /** It verifies signatures. */
  readonly use: 'sig'
}

/** The keys of an issuer, imported once. */
export interface TokenKeys {
  readonly algorithms: readonly string[]
  readonly signing: { readonly key: webcrypto.CryptoKey, readonly header: { alg: string, typ: 'JWT', kid?: string } }
  readonly verifying: readonly webcrypto.CryptoKey[]
  /** The public keys to publish; null with secrets. */
  readonly published: readonly PublicJwk[] | null
}

/** The signature algorithms of key pairs (RFC 7518 section 3.1, RFC 8037). */
export const KEY_PAIR_ALGORITHMS = ['ES256', 'EdDSA']

/** The supported kinds of keys, with values of `alg` in a JWK: Web Crypto writes `Ed25519`. */
const KINDS = [
  { kty: 'EC', crv: 'P-256', alg: 'ES256', names: ['ES256'], algorithm: { name: 'ECDSA', namedCurve: 'P-256' } },
  { kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', names: ['EdDSA', 'Ed25519'], algorithm: { name: 'Ed25519' } }
]

type Kind = typeof KINDS[number]
type NamedKey = JsonWebKey & { kid?: string }

const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/

const EXPECTED = 'for ES256 (kty EC, crv P-256) or EdDSA (kty OKP, crv Ed25519); ' +
  'its kid, if it has one, must be a non-empty string and its use "sig"'

/** Imports secrets for HS256: the first one signs, all verify. */
export function keysOfSecrets ([secret, ...olderSecrets]: Secrets): TokenKeys {
  const key = keyOfSecret(secret)
  return {
    algorithms: ['HS256'],
    signing: { key, header: { alg: 'HS256', typ: 'JWT' } },
    verifying: [key, ...olderSecrets.map(keyOfSecret)],
    published: null
  }
}

/** Imports one or several private JWKs: the first one that may sign by now does, all verify. */
export function keysOfSigningKey (signingKey: unknown, option: string): TokenKeys {
  const pairs = Array.isArray(signingKey)
    ? signingKey.map((jwk: unknown, index) => keyPairOf(jwk, `${option}[${index}]`))
    : [keyPairOf(signingKey, option)]
  if (pairs.length === 0) throw new OptionsError(`${option} must contain at least one private JWK`)
  const signingNow = () => pairs.find(({ notBefore }) => notBefore <= Date.now())
  const first = signingNow()
  if (first === undefined) {
    throw new OptionsError(`${option} needs a key that signs until the notBefore of the others: one without it`)
  }
  const published = Object.freeze(pairs.map(({ jwk }) => jwk))
  if (new Set(published.map(({ kid }) => kid)).size < published.length) {
    throw new OptionsError(`${option} must contain different keys, each with its own kid`)
  }
  return {
    algorithms: KEY_PAIR_ALGORITHMS,
    get signing () {
      // A clock that was set back leaves no issuer without a key.
      const { signing: key, jwk: { alg, kid } } = signingNow() ?? first
      return { key, header: { alg, typ: 'JWT' as const, kid } }
    },
    verifying: pairs.map(({ verifying }) => verifying),
    published
  }
}

/** Makes a private key that signs from `notBefore` on. */
export function newKey (alg = 'ES256', notBefore?: string): Jwk {
  const kind = KINDS.find(kind => kind.alg === alg)
  if (kind === undefined) throw new OptionsError('alg must be ES256 or EdDSA')
  timeOf(notBefore, 'notBefore')
  const { privateKey } = kind.kty === 'EC'
    ? generateKeyPairSync('ec', { namedCurve: kind.crv })
    : generateKeyPairSync('ed25519')
  return { ...privateKey.export({ format: 'jwk' }), alg, ...(notBefore !== undefined && { notBefore }) }
}

/** Imports public JWKs, which only verify. */
export function verifyingKeysOf (keys: unknown, option: string): readonly webcrypto.CryptoKey[] {
  if (!Array.isArray(keys) || keys.length === 0) {
    throw new OptionsError(`${option} must be a list of public JWKs, such as the keys of /auth/local/jwks.json`)
  }
  return keys.map((jwk: unknown, index) => {
    if (isPlainObject(jwk) && 'd' in jwk) {
      throw new OptionsError(
        `${option}[${index}] is a private key, which only the issuer may have; remove its member d`)
    }
    return imported(jwk, `${option}[${index}] must be a public JWK`, (key, { algorithm }) =>
      createPublicKey({ key, format: 'jwk' }).toCryptoKey(algorithm, true, ['verify']))
  })
}

function keyOfSecret (secret: string): webcrypto.CryptoKey {
  return createSecretKey(Buffer.from(secret)).toCryptoKey({ name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify'])
}

function keyPairOf (jwk: unknown, option: string) {
  const notBefore = timeOf(Object(jwk).notBefore, `${option}: notBefore`)
  return imported(jwk, `${option} must be a private JWK`, (key, { kty, crv, alg, algorithm }) => {
    const privateKey = createPrivateKey({ key, format: 'jwk' })
    // Derived instead of copied from the JWK, so that no private member can be published.
    const publicKey = createPublicKey(privateKey)
    const { x = '', y } = publicKey.export({ format: 'jwk' })
    // The order of members that the thumbprint prescribes (RFC 7638 section 3.2).
    const point = { crv, kty, x, ...(y !== undefined && { y }) }
    const { kid = hash('sha256', JSON.stringify(point), 'base64url') } = key
    return {
      notBefore,
      signing: privateKey.toCryptoKey(algorithm, false, ['sign']),
      verifying: publicKey.toCryptoKey(algorithm, true, ['verify']),
      jwk: Object.freeze<PublicJwk>({ ...point, alg, use: 'sig', kid })
    }
  })
}

function timeOf (value: unknown, option: string): number {
  if (value === undefined) return 0
  const time = typeof value === 'string' && TIME.test(value) ? Date.parse(value) : NaN
  if (!Number.isNaN(time)) return time
  throw new OptionsError(`${option} must be a time with its zone, such as 2026-12-01T00:00:00Z`)
}

/** The error does not say what is wrong with the JWK: that could reveal a part of the key. */
function imported<Key> (jwk: unknown, must: string, importKey: (jwk: NamedKey, kind: Kind) => Key): Key {
  try {
    const kind = isNamedKey(jwk) ? KINDS.find(kind => isOfKind(jwk, kind)) : undefined
    if (isNamedKey(jwk) && kind !== undefined) return importKey(jwk, kind)
  } catch {}
  throw new OptionsError(`${must} ${EXPECTED}`)
}

function isNamedKey (jwk: unknown): jwk is NamedKey {
  const { use = 'sig', kid = 'absent' }: Record<string, unknown> = isPlainObject(jwk) ? jwk : { use: 'nothing' }
  return use === 'sig' && isText(kid)
}

function isOfKind (jwk: NamedKey, { kty, crv, names }: Kind): boolean {
  return jwk.kty === kty && jwk.crv === crv && (jwk.alg === undefined || names.includes(String(jwk.alg)))
}
