import { type JsonWebKey, type webcrypto, createPrivateKey, createPublicKey, createSecretKey, hash } from 'node:crypto'
import { isPlainObject, isText } from '../claims.js'
import { OptionsError } from '../errors.js'

/**
 * A JSON Web Key (RFC 7517) for ES256 (`kty` EC, `crv` P-256) or EdDSA (`kty` OKP, `crv` Ed25519), such
 * as `exportJWK` of jose makes.
 */
export interface Jwk {
  /** `EC` or `OKP`. */
  kty?: string | undefined
  /** `P-256` or `Ed25519`. */
  crv?: string | undefined
  /** The public key, or its x coordinate. */
  x?: string | undefined
  /** The y coordinate of an EC key. */
  y?: string | undefined
  /** The private key. */
  d?: string | undefined
  /** `ES256` or `EdDSA`; default what `crv` says. */
  alg?: string | undefined
  /** `sig`, or absent. */
  use?: string | undefined
  /** The name of the key; default its thumbprint (RFC 7638). */
  kid?: string | undefined
}

/** A public key as it is published: never with a private member. */
export interface PublicJwk {
  /** `EC` or `OKP`. */
  readonly kty: string
  /** `P-256` or `Ed25519`. */
  readonly crv: string
  /** The public key, or its x coordinate. */
  readonly x: string
  /** The y coordinate of an EC key. */
  readonly y?: string
  /** `ES256` or `EdDSA`. */
  readonly alg: string
  /** Nothing but signatures. */
  readonly use: 'sig'
  /** What the header of a token names its key by. */
  readonly kid: string
}

/** The keys of an issuer, imported once. */
export interface TokenKeys {
  readonly algorithms: readonly string[]
  readonly signing: { readonly key: webcrypto.CryptoKey, readonly header: { alg: string, typ: 'JWT', kid?: string } }
  readonly verifying: readonly webcrypto.CryptoKey[]
  /** What verifies tokens and can be told to everyone; null for secrets. */
  readonly published: readonly PublicJwk[] | null
}

/** What tokens of a key pair may be signed with (RFC 7518 section 3.1, RFC 8037). */
export const KEY_PAIR_ALGORITHMS = ['ES256', 'EdDSA']

/** With the names that JWKs give the algorithm: Web Crypto says `Ed25519` for EdDSA. */
const KINDS = [
  { kty: 'EC', crv: 'P-256', alg: 'ES256', names: ['ES256'], algorithm: { name: 'ECDSA', namedCurve: 'P-256' } },
  { kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', names: ['EdDSA', 'Ed25519'], algorithm: { name: 'Ed25519' } }
]

type Kind = typeof KINDS[number]
type NamedKey = JsonWebKey & { kid?: string }

const EXPECTED = 'for ES256 (kty EC, crv P-256) or EdDSA (kty OKP, crv Ed25519); ' +
  'its kid, if it has one, must be a non-empty string and its use "sig"'

/** @param secrets the first signs, all verify */
export function keysOfSecrets ([secret, ...olderSecrets]: readonly [string, ...string[]]): TokenKeys {
  const key = keyOfSecret(secret)
  return {
    algorithms: ['HS256'],
    signing: { key, header: { alg: 'HS256', typ: 'JWT' } },
    verifying: [key, ...olderSecrets.map(keyOfSecret)],
    published: null
  }
}

/**
 * @param signingKey a private JWK or several: the first signs, all verify
 * @throws OptionsError naming the option and never the key
 */
export function keysOfSigningKey (signingKey: unknown): TokenKeys {
  const pairs = Array.isArray(signingKey)
    ? signingKey.map((jwk: unknown, index) => keyPairOf(jwk, `signingKey[${index}]`))
    : [keyPairOf(signingKey, 'signingKey')]
  const [first] = pairs
  if (first === undefined) throw new OptionsError('signingKey must hold at least one private JWK')
  const published = Object.freeze(pairs.map(({ jwk }) => jwk))
  if (new Set(published.map(({ kid }) => kid)).size < published.length) {
    throw new OptionsError('signingKey must hold different keys, each with a kid of its own')
  }
  return {
    algorithms: KEY_PAIR_ALGORITHMS,
    signing: { key: first.signing, header: { alg: first.jwk.alg, typ: 'JWT', kid: first.jwk.kid } },
    verifying: pairs.map(({ verifying }) => verifying),
    published
  }
}

/**
 * @param keys public JWKs, of which each verifies
 * @throws OptionsError naming the option
 */
export function verifyingKeysOf (keys: unknown): readonly webcrypto.CryptoKey[] {
  if (!Array.isArray(keys) || keys.length === 0) {
    throw new OptionsError('keys must be a list of public JWKs, such as the keys of /auth/local/jwks.json')
  }
  return keys.map((jwk: unknown, index) => {
    if (isPlainObject(jwk) && 'd' in jwk) {
      throw new OptionsError(`keys[${index}] is a private key, which only the issuer may have; leave out its member d`)
    }
    return imported(jwk, `keys[${index}] must be a public JWK`, (key, { algorithm }) =>
      createPublicKey({ key, format: 'jwk' }).toCryptoKey(algorithm, true, ['verify']))
  })
}

function keyOfSecret (secret: string): webcrypto.CryptoKey {
  return createSecretKey(Buffer.from(secret)).toCryptoKey({ name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify'])
}

interface KeyPair {
  signing: webcrypto.CryptoKey
  verifying: webcrypto.CryptoKey
  jwk: PublicJwk
}

function keyPairOf (jwk: unknown, option: string): KeyPair {
  return imported(jwk, `${option} must be a private JWK`, (key, { kty, crv, alg, algorithm }) => {
    const privateKey = createPrivateKey({ key, format: 'jwk' })
    // Made from the private key and not copied from its JWK: nothing private can be among its members.
    const publicKey = createPublicKey(privateKey)
    const { x = '', y } = publicKey.export({ format: 'jwk' })
    // In the order of the thumbprint (RFC 7638 section 3.2).
    const point = { crv, kty, x, ...(y !== undefined && { y }) }
    const { kid = hash('sha256', JSON.stringify(point), 'base64url') } = key
    return {
      signing: privateKey.toCryptoKey(algorithm, false, ['sign']),
      verifying: publicKey.toCryptoKey(algorithm, true, ['verify']),
      jwk: Object.freeze({ ...point, alg, use: 'sig', kid })
    }
  })
}

/**
 * What `importKey` makes of a JWK. The error does not say what is wrong with it, for that could be a part of the key.
 *
 * @throws OptionsError
 */
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
