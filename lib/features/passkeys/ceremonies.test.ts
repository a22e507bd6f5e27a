import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { generateKeyPairSync, randomBytes, randomUUID, webcrypto } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { Factor } from '../../accounts/account.js'
import { AuthError, PASSKEY_REFUSED } from '../../errors.js'
import { CounterRegression, type PasskeyResponse, passkeyName, readResponse } from './ceremonies.js'
import { Passkeys } from '../../passkeys.js'
import { type CredentialJson, type Lies, SoftwareAuthenticator, cbor, newKeys } from '../../../test/fakes/authenticator.js'
import { holds } from '../../../test/helpers/properties.js'
import type { LibraryLoaded } from '../../../test/helpers/loading-process.js'

const ORIGIN = 'https://accounts.app.example'
const RELATED = 'https://app.test'
const ADA = { userId: randomUUID(), email: 'ada@example.com', name: 'Ada' }
const MALLORY = { userId: randomUUID(), email: 'mallory@example.com', name: 'Mallory' }

const ceremonies = new Passkeys({ name: 'Shop', rpId: 'app.example', relatedOrigins: [RELATED] })
  .ceremonies({ baseUrl: ORIGIN, trustedOrigins: new Set([RELATED, 'https://admin.app.example']) })

type Authenticator = ConstructorParameters<typeof SoftwareAuthenticator>[0]

const authenticator = (options: Partial<Authenticator> = {}): SoftwareAuthenticator => {
  return new SoftwareAuthenticator({ origin: ORIGIN, rpId: 'app.example', ...options })
}

/** Reads a response that has the form of one. */
function read (response: unknown): PasskeyResponse {
  return readResponse(response) ?? assert.fail('the response does not have the expected form')
}

/** Adds a passkey of Ada. */
async function added (device: SoftwareAuthenticator, lies: Lies = {}): Promise<Factor> {
  const { challenge, options } = ceremonies.registrationOptions(ADA, [])
  return ceremonies.verifyRegistration(read(device.create(options, lies)), { challenge, name: null })
}

/** Signs Ada in, as the passkey that is named. */
async function signedIn (device: SoftwareAuthenticator, factor: Factor | null, lies: Lies = {}): Promise<Factor> {
  const { challenge, options } = ceremonies.requestOptions()
  return ceremonies.verifyAssertion(read(device.get(options, lies)), { challenge, factor, userId: ADA.userId })
}

/** Expects the refusal that all failures have in common, for a reason that only the log has. */
async function refused (t: Test, verification: Promise<Factor>, reason: RegExp, name = String(reason)): Promise<unknown> {
  const error: unknown = await verification.catch((error: unknown) => error)
  t.ok(error instanceof AuthError && error.code === 'invalid' && error.statusCode === 401, name)
  const { cause, message }: { cause?: unknown, message?: string } = Object(error)
  t.equal(message, PASSKEY_REFUSED, name)
  t.match(String(cause), reason, name)
  return cause
}

t.test('a passkey is made and signs in, of each algorithm that is offered', async t => {
  for (const algorithm of ['ES256', 'EdDSA', 'RS256'] as const) {
    const device = authenticator({ algorithm })
    const factor = await added(device, { counter: 7, flags: { be: true, bs: false } })
    t.match(factor, {
      id: device.id.toString('base64url'),
      kind: 'passkey',
      secret: null,
      counter: 7,
      usedAt: null,
      data: { publicKey: /^[\w-]{40,}$/, transports: ['internal'], backupEligible: true, backedUp: false }
    }, algorithm)
    t.strictSame(JSON.parse(JSON.stringify(factor)), factor, 'plain JSON data')

    const used = await signedIn(device, factor, { counter: 8, flags: { be: true, bs: true } })
    t.ok(used.usedAt !== null && used.usedAt >= factor.createdAt)
    t.strictSame(used, { ...factor, counter: 8, usedAt: used.usedAt, data: { ...factor.data, backedUp: true } })
  }
})

t.test('a response may be the text that a form sends', async t => {
  const device = authenticator()
  const registration = ceremonies.registrationOptions(ADA, [])
  const factor = await ceremonies.verifyRegistration(
    read(JSON.stringify(device.create(registration.options))), { challenge: registration.challenge, name: 'Phone' }
  )
  const login = ceremonies.requestOptions()
  const response = read(JSON.stringify(device.get(login.options)))

  t.equal(factor.name, 'Phone')
  t.match(response, { challenge: login.challenge, userId: ADA.userId, id: factor.id })
  await t.resolves(ceremonies.verifyAssertion(response, { challenge: login.challenge, factor, userId: ADA.userId }))
})

t.test('the options require verification of the user, and a passkey that the authenticator finds by itself', async t => {
  const factor = await added(authenticator())
  const { challenge, options } = ceremonies.registrationOptions(ADA, [factor])
  const descriptor = { type: 'public-key', id: factor.id, transports: ['internal'] }

  t.match(challenge, /^[\w-]{43}$/)
  t.strictSame(options, {
    challenge,
    timeout: 300_000,
    rp: { id: 'app.example', name: 'Shop' },
    user: { id: Buffer.from(ADA.userId.replaceAll('-', ''), 'hex').toString('base64url'), name: 'ada@example.com', displayName: 'Ada' },
    pubKeyCredParams: [{ type: 'public-key', alg: -8 }, { type: 'public-key', alg: -7 }, { type: 'public-key', alg: -257 }],
    excludeCredentials: [descriptor],
    authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
    attestation: 'none'
  })
  const { challenge: another, options: asked } = ceremonies.requestOptions([factor])
  t.strictSame(asked, {
    challenge: another, timeout: 300_000, rpId: 'app.example', userVerification: 'required', allowCredentials: [descriptor]
  })
})

t.test('attack 97: the options of a sign-in are the same for everybody but for the challenge', async t => {
  const [one, other] = [ceremonies.requestOptions(), ceremonies.requestOptions()]

  t.not(one.challenge, other.challenge)
  t.strictSame(one.options, { challenge: one.challenge, timeout: 300_000, rpId: 'app.example', userVerification: 'required' })
  t.equal(JSON.stringify(one.options).replace(one.challenge, other.challenge), JSON.stringify(other.options))
})

/** What a forged or relayed response says, and why both ceremonies refuse it. */
const LIES: Array<[name: string, lies: Lies, reason: RegExp]> = [
  ['another origin', { clientData: { origin: 'https://evil.example' } }, /response origin "https:\/\/evil\.example"/],
  ['a parent of the host', { clientData: { origin: 'https://app.example' } }, /response origin/],
  ['a sibling of the host', { clientData: { origin: 'https://blog.app.example' } }, /response origin/],
  ['a trusted origin that is not a related one', { clientData: { origin: 'https://admin.app.example' } }, /response origin/],
  ['http', { clientData: { origin: 'http://accounts.app.example' } }, /response origin/],
  ['another port', { clientData: { origin: `${ORIGIN}:8443` } }, /response origin/],
  ['another domain', { rpId: 'accounts.app.example' }, /Unexpected RP ID hash/],
  ['the domain above', { rpId: 'example' }, /Unexpected RP ID hash/],
  ['another challenge', { clientData: { challenge: randomBytes(32).toString('base64url') } }, /response challenge/],
  ['no user', { flags: { up: false } }, /[Uu]ser (?:was )?not present/],
  ['no verification of the user', { flags: { uv: false } }, /User verification (?:was )?required/],
  ['a backup that is not possible', { flags: { bs: true } }, /Single-device credential indicated that it was backed up/],
  ['a frame', { clientData: { crossOrigin: true } }, /in a frame of another origin/],
  ['a frame of a page that is named', { clientData: { crossOrigin: true, topOrigin: 'https://evil.example' } }, /in a frame/],
  ['a page around it', { clientData: { topOrigin: 'https://evil.example' } }, /in a frame of another origin/],
  ['no word about frames that is one', { clientData: { crossOrigin: 'false' } }, /in a frame of another origin/]
]

t.test('attack 95: an authenticator or browser that lies is refused at each ceremony', async t => {
  const device = authenticator()
  const factor = await added(device)
  for (const [name, lies, reason] of LIES) {
    await refused(t, added(authenticator(), lies), reason, `registration: ${name}`)
    await refused(t, signedIn(device, factor, lies), reason, `sign-in: ${name}`)
  }
  await refused(t, added(authenticator(), { clientData: { type: 'webauthn.get' } }), /registration response type/)
  await refused(t, signedIn(device, factor, { clientData: { type: 'webauthn.create' } }), /authentication response type/)
  t.equal((await signedIn(device, factor, { clientData: { crossOrigin: undefined } })).id, factor.id, 'older browsers')
})

t.test('attack 95: a response that is not of the passkey, or not of the user, is refused', async t => {
  const device = authenticator()
  const factor = await added(device)
  const { privateKey } = newKeys('ES256')
  const handle = (userHandle: unknown): Lies => ({ response: { userHandle } })
  const stranger = Buffer.from(MALLORY.userId.replaceAll('-', ''), 'hex').toString('base64url')
  const own = Buffer.from(ADA.userId.replaceAll('-', ''), 'hex').toString('base64url')

  await refused(t, signedIn(device, factor, { signer: privateKey }), /signature is not that of the passkey/)
  await refused(t, signedIn(device, factor, { id: randomBytes(32).toString('base64url') }), /id is not that of the passkey/)
  await refused(t, signedIn(device, factor, handle(stranger)), /user handle is not that of the user/)
  await refused(t, signedIn(device, factor, handle(`${own}==`)), /userHandle is not base64url/)
  for (const absent of [undefined, null, '', [own], { own }, 5]) {
    await refused(t, signedIn(device, factor, handle(absent)), /userHandle is not base64url/, `${absent}`)
  }
  for (const [made, now] of [[false, true], [true, false]] as const) {
    const changed = await added(device, { flags: { be: made } })
    await refused(t, signedIn(device, changed, { flags: { be: now } }), /backup eligibility has changed/)
  }
  t.equal((await signedIn(device, factor)).id, factor.id)
})

t.test('a signature counter that does not grow is told apart, for the owner of the key alone', async t => {
  const device = authenticator()
  const factor = await added(device, { counter: 7 })
  for (const counter of [7, 6, 0]) {
    const cause = await refused(t, signedIn(device, factor, { counter }), /counter went from 7 to/)
    t.ok(cause instanceof CounterRegression)
  }
  const { privateKey } = newKeys('ES256')
  const cause = await refused(t, signedIn(device, factor, { counter: 6, signer: privateKey }), /signature/)
  t.notOk(cause instanceof CounterRegression, 'a forged response cannot report a copy')
  t.equal((await signedIn(device, { ...factor, counter: 0 }, { counter: 0 })).counter, 0, 'authenticators without a counter')
})

t.test('attack 97: a passkey that is unknown is refused after as much work as one that is known', async t => {
  const device = authenticator()
  await added(device)
  let verifications = 0
  const { verify } = webcrypto.subtle
  t.intercept(Object.getPrototypeOf(webcrypto.subtle), 'verify', {
    value: async (...args: Parameters<typeof verify>) => {
      verifications++
      return verify.apply(webcrypto.subtle, args)
    }
  })

  await refused(t, signedIn(device, null), /signature is not that of the passkey/)
  t.equal(verifications, 1)
})

t.test('attack 107: a related origin is accepted, and the domain stays that of the options', async t => {
  const device = authenticator({ origin: RELATED })
  const factor = await added(device)

  t.equal((await signedIn(device, factor)).id, factor.id)
  await refused(t, signedIn(device, factor, { rpId: 'app.test' }), /Unexpected RP ID hash/)
})

t.test('attack 96: the statement of an authenticator about itself is not read', async t => {
  const certificates: Lies = { attestation: { fmt: 'packed', attStmt: [['alg', -7], ['sig', randomBytes(70)], ['x5c', [randomBytes(300)]]] } }
  const device = authenticator()

  const factor = await added(device, certificates)
  const other = await added(device, { attestation: { fmt: 'unheard-of', attStmt: [] } })
  t.strictSame({ ...other, createdAt: factor.createdAt }, factor)
  t.equal((await signedIn(device, factor)).id, factor.id)
})

t.test('attack 96: a hostile registration is refused', async t => {
  await refused(t, added(authenticator({ algorithm: 'ES384' })), /Unexpected public key alg "-35"/)
  await refused(t, added(authenticator(), { id: randomBytes(32).toString('base64url') }), /id is not that of the credential/)
  await refused(t, added(authenticator({ id: randomBytes(1024) })), /more than 1023 bytes/)
  t.equal((await added(authenticator({ id: randomBytes(1023) }))).id.length, 1364)
  const { transports } = (await added(authenticator(), {
    response: { transports: ['usb', 'internal', 5, '<b>', null, 'x'.repeat(30), ...Array.from({ length: 20 }, () => 'ble')] }
  })).data
  t.strictSame(transports, ['usb', 'internal', ...Array.from({ length: 6 }, () => 'ble')])
  t.strictSame((await added(authenticator(), { response: { transports: 'usb' } })).data.transports, [])
})

/** What an authenticator says of the public key, and why it is refused. */
const FALSE_KEYS: Record<string, Iterable<[number, unknown]>> = (() => {
  const bytes = (text = ''): Buffer => Buffer.from(text, 'base64url')
  const ec = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve }).publicKey.export({ format: 'jwk' })
  const rsa = (modulusLength: number) => bytes(generateKeyPairSync('rsa', { modulusLength }).publicKey.export({ format: 'jwk' }).n)
  const [p256, p384, secp256k1] = [ec('P-256'), ec('P-384'), ec('secp256k1')]
  const ed25519 = bytes(generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }).x)
  const [x, y, n, e] = [bytes(p256.x), bytes(p256.y), rsa(2048), Buffer.from([1, 0, 1])]
  const es256 = (crv: unknown, x: unknown, y: unknown, kty = 2): Array<[number, unknown]> => [[1, kty], [3, -7], [-1, crv], [-2, x], [-3, y]]
  const eddsa = (crv: unknown, x: unknown, kty = 1): Array<[number, unknown]> => [[1, kty], [3, -8], [-1, crv], [-2, x]]
  const rs256 = (n: unknown, e: unknown, kty = 3): Array<[number, unknown]> => [[1, kty], [3, -257], [-1, n], [-2, e]]
  return {
    'P-384 as ES256': es256(2, bytes(p384.x), bytes(p384.y)),
    'P-384 as P-256': es256(1, bytes(p384.x), bytes(p384.y)),
    'secp256k1 as ES256': es256(8, bytes(secp256k1.x), bytes(secp256k1.y)),
    'a curve as text': es256('P-256', x, y),
    'a point of another curve': es256(1, bytes(secp256k1.x), bytes(secp256k1.y)),
    'a point that is not on the curve': es256(1, x, Buffer.alloc(32, 1)),
    'half a point': es256(1, x, Buffer.alloc(0)),
    'a compressed point': es256(1, x, true),
    'a coordinate as text': es256(1, p256.x, p256.y),
    'a coordinate that is too short': es256(1, x.subarray(1), y),
    'a coordinate that is too long': es256(1, Buffer.concat([Buffer.alloc(1), x]), y),
    'another coordinate that is too long': es256(1, x, Buffer.concat([Buffer.alloc(1), y])),
    'another type with the members of ES256': es256(1, x, y, 1),
    'another type with the members of EdDSA': eddsa(6, ed25519, 2),
    'another type with the members of RS256': rs256(n, e, 2),
    'a key for EdDSA as ES256': es256(6, ed25519, undefined, 1).slice(0, 4),
    'a key for RS256 as ES256': es256(n, e, y, 3),
    'X25519 as EdDSA': eddsa(4, ed25519),
    'Ed448 as EdDSA': eddsa(7, Buffer.alloc(57, 1)),
    'Ed25519, too short': eddsa(6, ed25519.subarray(1)),
    'Ed25519, a point that is not on the curve': eddsa(6, Buffer.from('02'.padEnd(64, '0'), 'hex')),
    'a key for ES256 as EdDSA': eddsa(1, x, 2),
    '512 bits as RS256': rs256(rsa(512), e),
    '1024 bits as RS256': rs256(rsa(1024), e),
    '2047 bits as RS256': rs256(Buffer.concat([Buffer.from([0x7f]), n.subarray(1)]), e),
    '512 bits and zeros as RS256': rs256(Buffer.concat([Buffer.alloc(192), rsa(512)]), e),
    'more than 16384 bits as RS256': rs256(Buffer.concat([...Array.from({ length: 8 }, () => n), e]), e),
    'an even modulus': rs256(Buffer.concat([n.subarray(0, 255), Buffer.from([2])]), e),
    'no modulus': rs256(Buffer.alloc(0), e),
    ...Object.fromEntries([[], [0], [1], [2], [1, 0, 0], [1, 0, 0, 0, 1]].map(e => [`the exponent ${e.join('.')}`, rs256(n, Buffer.from(e))])),
    'the point of ES256 as RS256': rs256(1, x, 2),
    'a key without members': [[1, 2], [3, -7]]
  }
})()

t.test('attack 143: a weak or false public key is refused, and so is one by which no signature can be verified', async t => {
  for (const [name, publicKey] of Object.entries(FALSE_KEYS)) {
    await refused(t, added(authenticator(), { publicKey }), /public key is not one of its algorithm|Invalid keyData/, name)
  }
  const n = Buffer.from(String(newKeys('RS256').publicKey.export({ format: 'jwk' }).n), 'base64url')
  await t.resolves(added(authenticator(), { publicKey: [[1, 3], [3, -257], [-1, n], [-2, Buffer.from([3])]] }))
  for (const algorithm of ['ES256', 'EdDSA'] as const) {
    for (let i = 0; i < 20; i++) await t.resolves(added(authenticator({ algorithm })), 'keys that are random')
  }
})

t.test('the name of a passkey is text, and cut', async t => {
  const { challenge, options } = ceremonies.registrationOptions(ADA, [])
  const response = read(authenticator().create(options))
  const nameOf = async (name: string | null): Promise<string | null> => {
    return (await ceremonies.verifyRegistration(response, { challenge, name })).name
  }
  t.equal(await nameOf(' <b>Phone</b>\n'), '<b>Phone</b>')
  t.equal(await nameOf('🔑'.repeat(5000)), '🔑'.repeat(64))
  t.match(await nameOf(null), /^Passkey, \d{4}-\d\d-\d\d$/)
  t.match(await nameOf(' \n'), /^Passkey, \d{4}-\d\d-\d\d$/)
  t.equal(passkeyName(null, Date.UTC(2026, 0, 31)), 'Passkey, 2026-01-31')
  await t.rejects(nameOf('a\0'), { code: 'invalid_request' })
})

t.test('attack 106: what does not have the form of a response is not read, and names neither challenge nor user', async t => {
  const device = authenticator()
  const right = device.get(ceremonies.requestOptions().options)
  const cyclic: Record<string, unknown> = {}
  cyclic.cyclic = cyclic
  const wrong: unknown[] = [
    undefined, null, '', '{', '5', '[]', '{}', 'null', 5, [], {}, cyclic, 5n, Symbol('a'), () => {},
    { ...right, type: 'password' }, { ...right, rawId: 'AAAA' }, { ...right, id: '', rawId: '' }, { ...right, id: [right.id] },
    { ...right, response: null }, { ...right, response: 'AAAA' },
    ...['', 'AAAA', '%', `${right.response.clientDataJSON}==`, 5, [right.response.clientDataJSON]].map(clientDataJSON => {
      return { ...right, response: { ...right.response, clientDataJSON } }
    }),
    { ...right, more: 'x'.repeat(16_384) }, JSON.stringify({ ...right, more: 'x'.repeat(1_000_000) })
  ]
  for (const response of wrong) t.equal(readResponse(response), null)
  const saying = (challenge: unknown): CredentialJson => device.get({ challenge: '' }, { clientData: { challenge } })
  for (const challenge of ['', 'a'.repeat(42), 'a'.repeat(44), '+'.repeat(43), undefined, null, 5, ['a'.repeat(43)]]) {
    t.equal(read(saying(challenge)).challenge, null)
  }
  t.equal(read(saying('a'.repeat(43))).challenge, 'a'.repeat(43))
  for (const userHandle of [undefined, '', 'AAAA', 'A'.repeat(43), []]) {
    t.equal(read({ ...right, response: { ...right.response, userHandle } }).userId, null)
  }
})

t.test('attack 106: garbage in place of CBOR is refused, whatever it is', async t => {
  const device = authenticator()
  const factor = await added(device)
  const bytes = fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 300 }),
    // A part is right, and what follows is not.
    fc.uint8Array({ maxLength: 300 }).map(authData => cbor(new Map<string, unknown>([
      ['fmt', 'none'], ['attStmt', new Map()], ['authData', Buffer.from(authData)]
    ]))),
    // Lists in lists, and a map that is announced and does not come.
    fc.integer({ min: 1, max: 9000 }).map(depth => Buffer.alloc(depth, 0x81)),
    fc.constant(Buffer.from('bb7fffffffffffffff', 'hex'))
  ).map(garbage => Buffer.from(garbage).toString('base64url'))

  await holds(t, fc.asyncProperty(bytes, async garbage => {
    const { challenge, options } = ceremonies.registrationOptions(ADA, [])
    const made = device.create(options, { response: { attestationObject: garbage } })
    const signed = { ...device.get(options, { response: { authenticatorData: garbage } }) }
    const broken = { ...factor, data: { ...factor.data, publicKey: garbage } }
    const verifications = await Promise.allSettled([
      ceremonies.verifyRegistration(read(made), { challenge, name: null }),
      ceremonies.verifyAssertion(read(signed), { challenge, factor, userId: ADA.userId }),
      ceremonies.verifyAssertion(read(device.get(options)), { challenge, factor: broken, userId: ADA.userId })
    ])
    for (const verification of verifications) {
      const { reason = 'it was accepted' }: { reason?: unknown } = Object(verification)
      if (!(reason instanceof AuthError) || reason.code !== 'invalid') throw new Error(String(reason))
    }
  }), 3000)
})

t.test('the library is loaded when it is told to be, and prints nothing', async t => {
  const child = fork(fileURLToPath(new URL('../../../test/helpers/loading-process.ts', import.meta.url)), { execArgv: process.execArgv, silent: true })
  const printed: string[] = []
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', text => printed.push(text))
  const told: unknown[] = []
  child.on('message', message => told.push(message))

  t.strictSame(await once(child, 'close'), [0, null], printed.join(''))
  t.strictSame(told, [{ before: false, after: true } satisfies LibraryLoaded])
  t.strictSame(printed, [], 'such as a warning about an algorithm that is experimental')
})
