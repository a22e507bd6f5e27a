import assert from 'node:assert/strict'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import type { Factor, User } from '../../accounts/account.js'
import { Once } from '../../base/concurrency.js'
import { notLoaded, uuidFromBase64url, uuidToBase64url } from '../../base/values.js'
import { checkedName } from '../../claims.js'
import { AuthError, PASSKEY_REFUSED } from '../../errors.js'

/** The kind of factor that a passkey is. */
export const PASSKEY = 'passkey'

/** The application as authenticators know it. */
export interface RelyingParty {
  readonly name: string
  readonly rpId: string
  readonly origin: string
  /** Origins of other domains whose pages may use the passkeys. */
  readonly relatedOrigins: readonly string[]
  /** Whether browsers make passkeys by themselves after a sign-in by password. */
  readonly createOnSignIn: boolean
}

/** How long a ceremony may take: milliseconds. */
export const CEREMONY_MS = 300_000

/** The longest response as text. */
const MAX_RESPONSE = 16_384
/** The most characters of the name of a passkey. */
const MAX_NAME = 64

/** An attestation object of the format `none`, up to the authenticator data (CBOR). */
const UNATTESTED = Buffer.from('a363666d74646e6f6e656761747453746d74a0686175746844617461', 'hex')

/** Has the form of a signature by each algorithm. */
const NO_SIGNATURE = Buffer.from('3006020101020101', 'hex')

/** Loaded when the application is ready, or with the first ceremony: it takes 0.3 s. */
const library = new Once(async () => {
  const failed = notLoaded('@simplewebauthn/server', 'The option passkeys')
  const ceremonies = await import('@simplewebauthn/server').catch(failed)
  const helpers = await import('@simplewebauthn/server/helpers').catch(failed)
  return { ...ceremonies, ...helpers, decoy: helpers.isoCBOR.encode(newPublicKey()) }
})

/** The cause of a refusal: the signature counter did not grow. There is a copy of the passkey. */
export class CounterRegression extends Error {}

/** The refusal of a passkey that no user has, so that password managers may hide it. */
export class UnknownPasskey extends AuthError {
  readonly id: string

  constructor (id: string) {
    super('unknown_passkey')
    this.id = id
  }
}

/** The ceremonies of passkeys (WebAuthn Level 3 section 7), for what {@link readResponse} reads. */
export class PasskeyCeremonies {
  readonly relyingParty: RelyingParty
  /** The origin is one of the options, and never that of a header. */
  readonly #expected: { expectedOrigin: string[], expectedRPID: string, requireUserVerification: true }

  constructor (relyingParty: RelyingParty) {
    const { rpId, origin, relatedOrigins } = this.relyingParty = relyingParty
    this.#expected = { expectedOrigin: [origin, ...relatedOrigins], expectedRPID: rpId, requireUserVerification: true }
  }

  /** Whether pages of other domains may use the passkeys. */
  get hasRelatedOrigins (): boolean {
    return this.relyingParty.relatedOrigins.length > 0
  }

  /** Loads the library, so that the first ceremony does not wait for it. */
  async preload (): Promise<void> {
    await library.done()
  }

  /** Returns a user as authenticators and password managers know them. */
  userDetails ({ userId, email, name }: Pick<User, 'userId' | 'email' | 'name'>) {
    const shown = email ?? name ?? userId
    return { rpId: this.relyingParty.rpId, userId: uuidToBase64url(userId), name: shown, displayName: name ?? shown }
  }

  /** Returns the options for a new passkey. For a silent one, nobody is there to be verified. */
  registrationOptions (
    user: Pick<User, 'userId' | 'email' | 'name'>, exclude: readonly Factor[], isSilent = false
  ) {
    const { userId: id, name, displayName } = this.userDetails(user)
    return ceremony({
      rp: { id: this.relyingParty.rpId, name: this.relyingParty.name },
      user: { id, name, displayName },
      pubKeyCredParams: ALGORITHMS.map(alg => ({ type: 'public-key', alg })),
      excludeCredentials: exclude.map(descriptorOf),
      authenticatorSelection: {
        residentKey: 'required', requireResidentKey: true, userVerification: isSilent ? 'preferred' : 'required'
      },
      attestation: 'none'
    })
  }

  /** Returns the options for a signature; without `allow`, they are the same for everybody. */
  requestOptions (allow?: readonly Factor[]) {
    const { rpId } = this.relyingParty
    return ceremony({ rpId, userVerification: 'required', ...(allow && { allowCredentials: allow.map(descriptorOf) }) })
  }

  /**
   * Verifies the response of an authenticator that made a passkey. The attestation, by which its
   * manufacturer vouches for it, is neither asked for nor read: certificates would name addresses
   * for this server to ask.
   *
   * @param expected `isSilent`: whether the browser may have made it by itself
   * @throws AuthError `invalid`, with the reason as `cause`; `invalid_request` for a name that
   *   cannot be stored
   */
  async verifyRegistration (
    response: PasskeyResponse,
    { challenge, name, isSilent = false }: { challenge: string, name: string | null, isSilent?: boolean }
  ): Promise<Factor> {
    const { verifyRegistrationResponse, verifySignature, decodeAttestationObject, isoCBOR } = await library.done()
    const now = Date.now()
    const shownName = passkeyName(name, now)
    return refusingFailures(response, async ({ id, clientDataJSON, fields }) => {
      const authData = decodeAttestationObject(bytesOf(base64urlIn(fields, 'attestationObject'))).get('authData')
      const attestationObject = base64url(Buffer.concat([UNATTESTED, isoCBOR.encode(authData)]))
      const { verified, registrationInfo } = await verifyRegistrationResponse({
        response: { ...credentialOf(id), response: { clientDataJSON, attestationObject } },
        ...this.#expected,
        ...(isSilent && { requireUserPresence: false, requireUserVerification: false }),
        expectedChallenge: challenge,
        supportedAlgorithmIDs: ALGORITHMS
      })
      assert(verified, 'the attestation object is not valid')
      const { credential, credentialDeviceType, credentialBackedUp: backedUp, userVerified } = registrationInfo
      assert(credential.id === id, 'the id is not that of the credential in the authenticator data')
      // WebAuthn Level 3 section 7.1
      assert(bytesOf(id).length <= 1023, 'the credential id has more than 1023 bytes')
      const { counter, publicKey: key } = credential
      assert(isKeyOfAlgorithm(isoCBOR.decodeFirst(key)), 'the public key is not one of its algorithm')
      // Throws for a key that a sign-in could not import, such as a point that is not on the curve.
      await verifySignature({ credentialPublicKey: key, data: key, signature: NO_SIGNATURE })
      const backupEligible = credentialDeviceType === 'multiDevice'
      const publicKey = base64url(key)
      const data = { publicKey, transports: transportsOf(fields), backupEligible, backedUp, userVerified }
      return { id, kind: 'passkey', name: shownName, secret: null, data, counter, createdAt: now, usedAt: null }
    })
  }

  /**
   * Verifies the response of an authenticator that signed a challenge.
   *
   * @param ceremony its challenge, and the passkey and the user that the response names. Without a
   *   passkey of that id it is null: the answer then takes as long as for one.
   * @returns the passkey as it is to be stored
   * @throws AuthError `invalid`, with the reason as `cause`, such as {@link CounterRegression}
   */
  async verifyAssertion (
    response: PasskeyResponse,
    { challenge, factor, userId }: { challenge: string, factor: Factor | null, userId: string }
  ): Promise<Factor> {
    const { verifyAuthenticationResponse, decoy } = await library.done()
    return refusingFailures(response, async ({ id, clientDataJSON, fields }) => {
      const signed = {
        authenticatorData: base64urlIn(fields, 'authenticatorData'),
        signature: base64urlIn(fields, 'signature'),
        userHandle: base64urlIn(fields, 'userHandle')
      }
      const { verified, authenticationInfo } = await verifyAuthenticationResponse({
        response: { ...credentialOf(id), response: { clientDataJSON, ...signed } },
        ...this.#expected,
        expectedChallenge: challenge,
        // The library compares counters before it verifies the signature. With 0 it leaves them to
        // the check below, so that nobody without the key can report a copy of a passkey.
        credential: { id, publicKey: factor === null ? decoy : bytesOf(String(factor.data.publicKey)), counter: 0 }
      })
      assert(verified, 'the signature is not that of the passkey')
      assert(factor !== null && id === factor.id, 'the id is not that of the passkey')
      assert(signed.userHandle === uuidToBase64url(userId), 'the user handle is not that of the user')
      const { newCounter, credentialDeviceType, credentialBackedUp } = authenticationInfo
      const isEligible = credentialDeviceType === 'multiDevice'
      assert(isEligible === factor.data.backupEligible, 'the backup eligibility has changed')
      if ((newCounter > 0 || factor.counter > 0) && newCounter <= factor.counter) {
        throw new CounterRegression(`the signature counter went from ${factor.counter} to ${newCounter}`)
      }
      const data = { ...factor.data, backedUp: credentialBackedUp }
      return { ...factor, data, counter: newCounter, usedAt: Date.now() }
    })
  }
}

/** Returns the user's name for a passkey, as it may be shown; "Passkey, <date>" for none. */
export function passkeyName (name: string | null, now: number = Date.now()): string {
  const shown = Array.from(checkedName(name ?? '') ?? '').slice(0, MAX_NAME).join('')
  return shown === '' ? `Passkey, ${new Date(now).toISOString().slice(0, 10)}` : shown
}

/** The options as `parseCreationOptionsFromJSON` and `parseRequestOptionsFromJSON` read them. */
function ceremony (options: Readonly<Record<string, unknown>>) {
  const challenge = base64url(randomBytes(32))
  return { challenge, options: { challenge, timeout: CEREMONY_MS, ...options } }
}

function credentialOf (id: string) {
  return { id, rawId: id, type: 'public-key', clientExtensionResults: {} } as const
}

function descriptorOf ({ id, data: { transports } }: Factor): object {
  return { type: 'public-key', id, transports }
}

/** A response of the expected form. Nothing in it is verified. */
export interface PasskeyResponse {
  /** The id of the passkey. */
  readonly id: string
  /** The user that it names; null for none. */
  readonly userId: string | null
  /** The challenge that it names; null for none that was ever given out. */
  readonly challenge: string | null
  readonly clientDataJSON: string
  readonly clientData: Readonly<Record<string, unknown>>
  readonly fields: Readonly<Record<string, unknown>>
}

/** Reads what `PublicKeyCredential.toJSON` returns, or its text; null for any other form. */
export function readResponse (response: unknown): PasskeyResponse | null {
  try {
    const text = typeof response === 'string' ? response : JSON.stringify(response)
    if (text.length > MAX_RESPONSE) return null
    const { id, rawId, type, response: fields } = Object(JSON.parse(text))
    const { clientDataJSON, userHandle } = Object(fields)
    if (!isBase64url(id) || rawId !== id || type !== 'public-key' || !isBase64url(clientDataJSON)) return null
    const isWhole = [['attestationObject'], ['authenticatorData', 'signature']]
      .some(names => names.every(name => isBase64url(fields[name])))
    if (!isWhole) return null
    const clientData = Object(JSON.parse(bytesOf(clientDataJSON).toString()))
    const { challenge } = clientData
    return {
      id,
      userId: isBase64url(userHandle) && bytesOf(userHandle).length === 16 ? uuidFromBase64url(userHandle) : null,
      challenge: typeof challenge === 'string' && /^[\w-]{43}$/.test(challenge) ? challenge : null,
      clientDataJSON,
      clientData,
      fields
    }
  } catch {
    return null
  }
}

/**
 * Verifies a response that a page of this application asked for, and not a page around it. Makes
 * any failure the same refusal.
 */
async function refusingFailures<T> (
  response: PasskeyResponse, verify: (response: PasskeyResponse) => Promise<T>
): Promise<T> {
  try {
    const { crossOrigin = false, topOrigin } = response.clientData
    assert(crossOrigin === false && topOrigin === undefined, 'the page was in a frame of another origin')
    return await verify(response)
  } catch (cause) {
    throw new AuthError('invalid', { message: PASSKEY_REFUSED, cause })
  }
}

/** How the browser may reach the authenticator, such as `internal` or `usb`. */
function transportsOf ({ transports }: PasskeyResponse['fields']): string[] {
  if (!Array.isArray(transports)) return []
  return transports.filter(transport => typeof transport === 'string' && /^[a-z-]{1,20}$/.test(transport)).slice(0, 8)
}

function base64urlIn (fields: PasskeyResponse['fields'], name: string): string {
  const value = fields[name]
  assert(isBase64url(value), `${name} is not base64url`)
  return value
}

function isBase64url (value: unknown): value is string {
  return typeof value === 'string' && /^[\w-]+$/.test(value)
}

function bytesOf (text: string): Buffer<ArrayBuffer> {
  return Buffer.from(text, 'base64url')
}

function base64url (bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url')
}

/** Makes an ES256 public key whose private key nobody has, as COSE key (RFC 9053 section 7.1.1). */
function newPublicKey () {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
  return new Map<number, number | Uint8Array>([[1, 2], [3, -7], [-1, 1], [-2, bytesOf(x)], [-3, bytesOf(y)]])
}

/** EdDSA, ES256 and RS256; not ML-DSA, which the library adds and Node.js calls experimental. */
const ALGORITHMS = [-8, -7, -257]

/**
 * Whether a public key of one of these algorithms has the type, the curve and the size of it, which
 * the library does not compare. Whether a point is on P-256 is seen when the key is imported.
 *
 * @see RFC 9053 section 7, RFC 8230 section 4, RFC 8812 section 2
 */
function isKeyOfAlgorithm (key: ReadonlyMap<number, unknown>): boolean {
  const [type, algorithm, first, second, third] = [1, 3, -1, -2, -3].map(label => key.get(label))
  if (algorithm === -7) return type === 2 && first === 1 && isCoordinate(second) && isCoordinate(third)
  if (algorithm === -8) return type === 1 && first === 6 && isCoordinate(second) && isOnEdwards25519(second)
  const [modulus, exponent] = [numberIn(first), numberIn(second)]
  // OpenSSL verifies no signature by a larger modulus, or by an even one.
  return type === 3 && modulus >= 2n ** 2047n && modulus < 2n ** 16_384n && modulus % 2n === 1n &&
    exponent > 1n && exponent < 2n ** 32n && exponent % 2n === 1n
}

/** Whether bytes encode a point. OpenSSL imports others too, and verifies no signature by them. */
function isOnEdwards25519 (bytes: Uint8Array): boolean {
  const prime = 2n ** 255n - 19n
  // The last bit is the sign of x.
  const y2 = (numberIn(bytes.toReversed()) & (2n ** 255n - 1n)) ** 2n
  // Euler's criterion for x² = (y² - 1) / (d y² + 1), where d = -121665/121666; the product is a
  // square where the quotient is (RFC 8032 section 5.1.3).
  let [base, power] = [(y2 - 1n + prime) * 121666n * (121666n - 121665n * y2 % prime + prime) % prime, 1n]
  for (let exponent = (prime - 1n) / 2n; exponent > 0n; exponent /= 2n) {
    if (exponent % 2n === 1n) power = power * base % prime
    base = base * base % prime
  }
  return power !== prime - 1n
}

function isCoordinate (value: unknown): value is Uint8Array {
  return value instanceof Uint8Array && value.length === 32
}

function numberIn (bytes: unknown): bigint {
  return bytes instanceof Uint8Array ? BigInt(`0x0${Buffer.from(bytes).toString('hex')}`) : 0n
}
