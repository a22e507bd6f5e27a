import { type KeyObject, createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'

/** What an authenticator and its browser say other than they should. */
export interface Lies {
  /** Members of the client data; those that are undefined are left out. */
  clientData?: Record<string, unknown>
  /** Of the authenticator data; by default all but the two about backups. */
  flags?: { up?: boolean, uv?: boolean, be?: boolean, bs?: boolean }
  rpId?: string
  counter?: number
  /** Members of the response, such as `userHandle`. */
  response?: Record<string, unknown>
  /** The id beside the response; that within stays. */
  id?: string
  /** Signs in place of the key of the passkey. */
  signer?: KeyObject
  /** The members of the public key (RFC 9053), in place of those of the passkey. */
  publicKey?: Iterable<[number, unknown]>
  /** The statement about the authenticator. */
  attestation?: { fmt: string, attStmt: Array<[string, unknown]> }
}

/** The response of an authenticator as `toJSON` returns it. */
export interface CredentialJson {
  id: string
  rawId: string
  type: 'public-key'
  response: Record<string, unknown>
  clientExtensionResults: object
}

const ALGORITHMS = { ES256: -7, EdDSA: -8, ES384: -35, RS256: -257 } as const
type Algorithm = keyof typeof ALGORITHMS

/** An authenticator with one passkey, and the browser in front of it. Both do as they are told. */
export class SoftwareAuthenticator {
  readonly id: Buffer
  counter = 0
  readonly #algorithm: Algorithm
  readonly #publicKey: KeyObject
  readonly #privateKey: KeyObject
  readonly #origin: string
  readonly #rpId: string
  /** The user that the passkey is for. */
  #userHandle = ''

  constructor ({ origin, rpId = new URL(origin).hostname, algorithm = 'ES256', id = randomBytes(32) }: {
    origin: string, rpId?: string, algorithm?: Algorithm, id?: Buffer
  }) {
    this.#origin = origin
    this.#rpId = rpId
    this.#algorithm = algorithm
    this.id = id
    const { publicKey, privateKey } = newKeys(algorithm)
    this.#publicKey = publicKey
    this.#privateKey = privateKey
  }

  /** Makes the passkey. */
  create (options: Readonly<Record<string, unknown>>, lies: Lies = {}): CredentialJson {
    const { challenge, user } = options as { challenge: string, user: { id: string } }
    this.#userHandle = user.id
    const length = Buffer.alloc(2)
    length.writeUInt16BE(this.id.length)
    const attested = Buffer.concat([Buffer.alloc(16), length, this.id, this.#coseKey(lies)])
    const { fmt, attStmt } = lies.attestation ?? { fmt: 'none', attStmt: [] }
    const attestationObject = cbor(new Map<string, unknown>([
      ['fmt', fmt], ['attStmt', new Map(attStmt)], ['authData', Buffer.concat([this.#data(0x40, lies), attested])]
    ]))
    return this.#credential({
      clientDataJSON: this.#clientData('webauthn.create', challenge, lies).toString('base64url'),
      attestationObject: attestationObject.toString('base64url'),
      transports: ['internal']
    }, lies)
  }

  /** Signs a challenge. */
  get (options: Readonly<Record<string, unknown>>, lies: Lies = {}): CredentialJson {
    const clientData = this.#clientData('webauthn.get', String(options.challenge), lies)
    const data = this.#data(0, lies)
    const signed = Buffer.concat([data, createHash('sha256').update(clientData).digest()])
    const hash = this.#algorithm === 'EdDSA' ? null : 'sha256'
    return this.#credential({
      clientDataJSON: clientData.toString('base64url'),
      authenticatorData: data.toString('base64url'),
      signature: sign(hash, signed, lies.signer ?? this.#privateKey).toString('base64url'),
      userHandle: this.#userHandle
    }, lies)
  }

  #credential (response: Record<string, unknown>, lies: Lies): CredentialJson {
    const id = lies.id ?? this.id.toString('base64url')
    return { id, rawId: id, type: 'public-key', response: { ...response, ...lies.response }, clientExtensionResults: {} }
  }

  #clientData (type: string, challenge: string, { clientData }: Lies): Buffer {
    return Buffer.from(JSON.stringify({ type, challenge, origin: this.#origin, crossOrigin: false, ...clientData }))
  }

  #data (extra: number, { rpId = this.#rpId, counter = this.counter, flags = {} }: Lies): Buffer {
    const { up = true, uv = true, be = false, bs = false } = flags
    const bytes = Buffer.alloc(5)
    bytes[0] = extra | Number(up) | Number(uv) << 2 | Number(be) << 3 | Number(bs) << 4
    bytes.writeUInt32BE(counter, 1)
    return Buffer.concat([createHash('sha256').update(rpId).digest(), bytes])
  }

  #coseKey ({ publicKey }: Lies): Buffer {
    if (publicKey !== undefined) return cbor(new Map(publicKey))
    const { x = '', y = '', n = '', e = '' } = this.#publicKey.export({ format: 'jwk' })
    const bytes = (text: string): Buffer => Buffer.from(text, 'base64url')
    const parts: Record<Algorithm, Array<[number, unknown]>> = {
      ES256: [[1, 2], [-1, 1], [-2, bytes(x)], [-3, bytes(y)]],
      ES384: [[1, 2], [-1, 2], [-2, bytes(x)], [-3, bytes(y)]],
      EdDSA: [[1, 1], [-1, 6], [-2, bytes(x)]],
      RS256: [[1, 3], [-1, bytes(n)], [-2, bytes(e)]]
    }
    return cbor(new Map<unknown, unknown>([...parts[this.#algorithm], [3, ALGORITHMS[this.#algorithm]]]))
  }
}

/** Makes keys of an algorithm. */
export function newKeys (algorithm: Algorithm): { publicKey: KeyObject, privateKey: KeyObject } {
  if (algorithm === 'EdDSA') return generateKeyPairSync('ed25519')
  if (algorithm === 'RS256') return generateKeyPairSync('rsa', { modulusLength: 2048 })
  return generateKeyPairSync('ec', { namedCurve: algorithm === 'ES256' ? 'P-256' : 'P-384' })
}

/** Encodes what attestation objects and keys hold (RFC 8949). */
export function cbor (value: unknown): Buffer {
  if (typeof value === 'boolean') return Buffer.from([value ? 0xf5 : 0xf4])
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value)
  if (typeof value === 'string') return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value])
  if (Array.isArray(value)) return Buffer.concat([head(4, value.length), ...value.map(cbor)])
  if (value instanceof Map) return Buffer.concat([head(5, value.size), ...[...value].flat().map(cbor)])
  throw new TypeError(`no CBOR for ${String(value)}`)
}

function head (type: number, length: number): Buffer {
  if (length < 24) return Buffer.from([type << 5 | length])
  return length < 256 ? Buffer.from([type << 5 | 24, length]) : Buffer.from([type << 5 | 25, length >> 8, length & 255])
}
