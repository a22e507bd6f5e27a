/**
 * The test vectors of WebAuthn Level 3, section 16, in base64url: all of them but those of extensions. They have no
 * user handle, and the users of many are not verified.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { verifyAuthenticationResponse } from '@simplewebauthn/server'
import { decodeAttestationObject, parseAuthenticatorData } from '@simplewebauthn/server/helpers'
import t from 'tap'
import { type PasskeyResponse, readResponse } from './ceremonies.js'
import { Passkeys } from '../../passkeys.js'

interface Vector {
  name: string
  credentialId: string
  registration: Record<'challenge' | 'clientDataJSON' | 'attestationObject', string>
  authentication: Record<'challenge' | 'clientDataJSON' | 'authenticatorData' | 'signature', string>
}

const VECTORS: readonly Vector[] = JSON.parse(readFileSync(new URL('../../../test/helpers/webauthn-vectors.json', import.meta.url), 'utf8'))

const ORIGIN = 'https://example.org'
const USER_ID = randomUUID()
const userHandle = Buffer.from(USER_ID.replaceAll('-', ''), 'hex').toString('base64url')
const ceremonies = new Passkeys({ name: 'Vectors' }).ceremonies({ baseUrl: ORIGIN, trustedOrigins: new Set() })

const UNVERIFIED = /User verification (?:was )?required/
const FRAMED = /in a frame of another origin/

/** Why a registration and a sign-in are refused; null where they are accepted, whatever the attestation. */
const REFUSED: Record<string, [registration: RegExp | null, signIn: RegExp | null]> = {
  'none-es256': [UNVERIFIED, UNVERIFIED],
  'none-es256-crossOrigin': [FRAMED, FRAMED],
  'none-es256-topOrigin': [FRAMED, FRAMED],
  'none-es256-long-credential-id': [UNVERIFIED, null],
  'packed-self-es256': [null, UNVERIFIED],
  'packed-es256': [null, null],
  'packed-es384': [UNVERIFIED, null],
  'packed-es512': [/Unexpected public key alg "-36"/, UNVERIFIED],
  'packed-rs256': [null, UNVERIFIED],
  'packed-eddsa': [UNVERIFIED, UNVERIFIED],
  'packed-ed448': [UNVERIFIED, /invalid alg -53|COSE crv/],
  'tpm-es256': [null, null],
  'android-key-es256': [null, UNVERIFIED],
  'apple-es256': [UNVERIFIED, UNVERIFIED],
  'fido-u2f-es256': [UNVERIFIED, UNVERIFIED]
}

/** Those whose algorithm is refused too, once the user need not be verified. */
const LACKING_ALGORITHM = ['packed-es384', 'packed-ed448']

const bytesOf = (text: string): Buffer<ArrayBuffer> => Buffer.from(text, 'base64url')

const read = (response: unknown): PasskeyResponse => readResponse(response) ?? assert.fail('not a response')

t.test('the vectors are those of the specification', async t => {
  t.strictSame(VECTORS.map(({ name }) => name).sort(), Object.keys(REFUSED).sort())
})

for (const { name, credentialId: id, registration, authentication } of VECTORS) {
  t.test(`the vector ${name} is accepted, or refused for what this library requires besides`, async t => {
    const [unregistered, notSignedIn] = REFUSED[name] ?? []
    const credential = { id, rawId: id, type: 'public-key', clientExtensionResults: {} } as const
    const authData = decodeAttestationObject(bytesOf(registration.attestationObject)).get('authData')
    const { credentialPublicKey: publicKey = new Uint8Array(), flags } = parseAuthenticatorData(authData)
    const data = { publicKey: Buffer.from(publicKey).toString('base64url'), transports: [], backupEligible: flags.be, backedUp: flags.bs }

    const { challenge, ...made } = registration
    const registered = ceremonies.verifyRegistration(read({ ...credential, response: made }), { challenge, name })
    if (unregistered == null) t.match(await registered, { id, kind: 'passkey', name, data, counter: 0 })
    else await t.rejects(registered, { code: 'invalid', cause: { message: unregistered } })

    // A passkey that the browser makes by itself is the one that no user need be verified for (section 7.1, step 15).
    if (unregistered === UNVERIFIED) {
      t.equal(flags.uv, false)
      const silent = await ceremonies.verifyRegistration(
        read({ ...credential, response: made }), { challenge, name, isSilent: true }
      ).catch((error: unknown) => error)
      if (LACKING_ALGORITHM.includes(name)) t.match(silent, { code: 'invalid' })
      else t.match(silent, { id, data: { ...data, userVerified: false } })
    }

    const { challenge: expectedChallenge, ...signed } = authentication
    const factor = { id, kind: 'passkey', name, secret: null, data, counter: 0, createdAt: 0, usedAt: null } as const
    const signedIn = ceremonies.verifyAssertion(
      read({ ...credential, response: { ...signed, userHandle } }), { challenge: expectedChallenge, factor, userId: USER_ID }
    )
    if (notSignedIn == null) t.equal((await signedIn).id, id)
    else await t.rejects(signedIn, { code: 'invalid', cause: { message: notSignedIn } })

    // The signature of a user who is not verified is right: nothing else is wrong with the vector.
    if (notSignedIn === UNVERIFIED) {
      t.match(await verifyAuthenticationResponse({
        response: { ...credential, response: signed },
        expectedChallenge,
        expectedOrigin: ORIGIN,
        expectedRPID: 'example.org',
        requireUserVerification: false,
        credential: { id, publicKey, counter: 0 }
      }), { verified: true })
    }
  })
}
