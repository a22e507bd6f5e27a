/**
 * Attacks 9, 10, 11 and 18, and what the Basic RP conformance test plan of the OpenID Foundation asks of ID tokens and keys: a module
 * `oidcc-client-test-…` is named after what it does, in the words of its id.
 */
import { type KeyObject, KeyObject as Key, createHmac, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { json } from '../fakes/lies.js'
import { type FakeOpenIdProvider, startFakeOpenIdProvider } from '../fakes/openid-provider.js'
import { Browser } from '../helpers/browser.js'
import { listen } from '../helpers/loopback.js'
import { signInAt } from '../helpers/own-provider.js'
import { some } from '../helpers/thorough.js'
import { type AppUnderAttack, assertRefused, assertSignsIn, withEverySessionStore } from '../helpers/under-attack.js'

const OWN_RSA = generateKeyPairSync('rsa', { modulusLength: 2048 })
const SHORT_RSA = generateKeyPairSync('rsa', { modulusLength: 1024 })
const OWN_EC = generateKeyPairSync('ec', { namedCurve: 'P-256' })

type Signer = (input: string) => Buffer
const nothing: Signer = () => Buffer.alloc(0)
const rsa = (key: KeyObject, hash = 'sha256'): Signer => input => sign(hash, Buffer.from(input), key)
const hmac = (key: string | Buffer, hash = 'sha256'): Signer => input => createHmac(hash, key).update(input).digest()
const ecdsa: Signer = input => sign('sha256', Buffer.from(input), { key: OWN_EC.privateKey, dsaEncoding: 'ieee-p1363' })
const honest = ({ key }: FakeOpenIdProvider): Signer => rsa(Key.from(key))

/** A token as no library would make it. */
function jws (header: object, payload: object | string, signer: Signer): string {
  const text = typeof payload === 'string' ? payload : JSON.stringify(payload)
  const input = [JSON.stringify(header), text].map(part => Buffer.from(part).toString('base64url')).join('.')
  return `${input}.${signer(input).toString('base64url')}`
}

const now = () => Math.floor(Date.now() / 1000)
const consent = (fake: FakeOpenIdProvider) => (url: string) => fake.consent(url)

function against (name: string, test: (t: Test, fake: FakeOpenIdProvider, target: AppUnderAttack) => Promise<void>): void {
  withEverySessionStore(t, name, async (t, start) => {
    const fake = await startFakeOpenIdProvider(t)
    await test(t, fake, await start(fake.provider()))
  })
}

/** What a provider does that lies, by the end of the sentence that an ID token is refused. */
type Lies = Record<string, (fake: FakeOpenIdProvider) => void>

function refusesEach (attack: string, lies: Lies): void {
  for (const [name, lie] of Object.entries(lies)) {
    against(`${attack}: an ID token is refused ${name}`, async (t, fake, target) => {
      lie(fake)
      await assertRefused(t, target, 'fake', 'provider_error', consent(fake))
      const asked = new Set(fake.requests.map(request => request.split(' ')[1]))
      for (const path of ['/.well-known/openid-configuration', '/token', '/jwks']) asked.delete(path)
      t.strictSame([...asked], [], 'nothing else was asked for')
    })
  }
}

/** Each set of claims takes the place of the honest ones, in one application: what was refused leaves nothing behind. */
function refusesClaims (attack: string, setsOf: (fake: FakeOpenIdProvider) => Record<string, object>): void {
  against(`${attack}: an ID token is refused`, async (t, fake, target) => {
    for (const [name, claims] of Object.entries(setsOf(fake))) {
      await t.test(`an ID token ${name} is refused`, async t => {
        fake.idTokenClaims = { ...claims }
        await assertRefused(t, target, 'fake', 'provider_error', consent(fake))
      })
    }
    fake.idTokenClaims = {}
    await assertSignsIn(t, target, 'fake', consent(fake))
  })
}

refusesClaims('attack 9', () => ({
  'without a nonce': { nonce: undefined },
  'with a nonce of no sign-in (oidcc-client-test-nonce-invalid)': { nonce: 'another' },
  'with an empty nonce': { nonce: '' },
  'with null for a nonce': { nonce: null },
  'with a list of nonces': { nonce: ['another'] }
}))

refusesEach('attack 9', {
  'with a list of the right nonce': fake => { fake.forgeIdToken = async payload => fake.signedIdToken({ ...payload, nonce: [payload.nonce] }) }
})

against('attack 9: an ID token with the nonce of another sign-in signs nobody in, not even of the same browser', async (t, fake, target) => {
  const nonces: unknown[] = []
  fake.forgeIdToken = async payload => {
    nonces.push(payload.nonce)
    return fake.signedIdToken({ ...payload, nonce: nonces.at(-2) ?? 'none' })
  }
  await assertRefused(t, target, 'fake', 'provider_error', consent(fake))
  await assertRefused(t, target, 'fake', 'provider_error', consent(fake))
  t.equal(new Set(nonces).size, 4)
})

const announceAll = ({ metadata }: FakeOpenIdProvider) => {
  metadata.id_token_signing_alg_values_supported = [
    'RS256', 'RS384', 'PS256', 'ES256', 'HS256', 'HS384', 'HS512', 'none', 'None', 'nOnE', 'NONE', ''
  ]
}

/** The token is made by this; whatever the algorithm, the provider announces it. */
const token = (header: object, signerOf: (fake: FakeOpenIdProvider) => Signer) => (fake: FakeOpenIdProvider) => {
  announceAll(fake)
  fake.forgeIdToken = payload => jws({ kid: 'key-1', ...header }, payload, signerOf(fake))
}
const publicKey = ({ jwk }: FakeOpenIdProvider) => createPublicKey({ key: { ...jwk }, format: 'jwk' })

/** All that somebody could take for the key of an HMAC. */
const SECRETS: Record<string, (fake: FakeOpenIdProvider) => string | Buffer> = {
  'the client secret': ({ clientSecret }) => clientSecret,
  'the client id': ({ clientId }) => clientId,
  nothing: () => '',
  'a zero byte': () => Buffer.alloc(1),
  'the public key as PEM': fake => publicKey(fake).export({ type: 'spki', format: 'pem' }),
  'the public key as PEM without its last line break': fake => String(publicKey(fake).export({ type: 'spki', format: 'pem' })).trim(),
  'the public key as PEM of PKCS 1': fake => publicKey(fake).export({ type: 'pkcs1', format: 'pem' }),
  'the public key as DER': fake => publicKey(fake).export({ type: 'spki', format: 'der' }),
  'the public key as JWK': ({ jwk }) => JSON.stringify(jwk),
  'the text of the JWKS': ({ jwk }) => JSON.stringify({ keys: [jwk] }),
  'the modulus of the public key': ({ jwk }) => Buffer.from(String(jwk.n), 'base64url')
}
refusesEach(
  'attack 10',
  Object.fromEntries(some(Object.entries(SECRETS), 4).map(([name, secretOf]) => [
    `signed by HS256 with ${name}`,
    token({ alg: 'HS256' }, fake => hmac(secretOf(fake)))
  ]))
)

refusesEach('attack 10', {
  ...Object.fromEntries(['none', 'None', 'nOnE', 'NONE', ''].map(alg => [
    `with alg "${alg}" and no signature (oidcc-client-test-idtoken-sig-none)`,
    token({ alg }, () => nothing)
  ])),
  'with alg none, and a good signature': token({ alg: 'none' }, honest),
  'without alg': token({}, honest),
  'with a list for alg': token({ alg: ['RS256'] }, honest),
  ...Object.fromEntries(['HS384', 'HS512'].map(alg => [
    `signed by ${alg} with the client secret`,
    token({ alg }, ({ clientSecret }) => hmac(clientSecret, `sha${alg.slice(2)}`))
  ])),
  'with an HMAC under alg RS256': token({ alg: 'RS256' }, ({ clientSecret }) => hmac(clientSecret)),
  'with a signature by RS384 under alg RS256': token({ alg: 'RS256' }, ({ key }) => rsa(Key.from(key), 'sha384')),
  'with an algorithm that the provider does not announce': fake => {
    fake.forgeIdToken = payload => jws({ alg: 'RS384', kid: 'key-1' }, payload, rsa(Key.from(fake.key), 'sha384'))
  },
  'by ES256 with a key of its own (oidcc-client-test-invalid-sig-es256)': token({ alg: 'ES256', jwk: OWN_EC.publicKey.export({ format: 'jwk' }) }, () => ecdsa),
  'with no signature': token({ alg: 'RS256' }, () => nothing),
  'with half a signature': token({ alg: 'RS256' }, fake => input => honest(fake)(input).subarray(0, 128)),
  'with a bit of its signature turned (oidcc-client-test-invalid-sig-rs256)': token({ alg: 'RS256' }, fake => input => {
    const signature = honest(fake)(input)
    signature.writeUInt8(signature.readUInt8(100) ^ 1, 100)
    return signature
  }),
  'that was changed after it was signed': fake => {
    fake.forgeIdToken = async payload => {
      const [header, , signature] = (await fake.signedIdToken(payload)).split('.')
      return `${header}.${Buffer.from(JSON.stringify({ ...payload, sub: 'grace' })).toString('base64url')}.${signature}`
    }
  },
  'signed by an unknown key': token({ alg: 'RS256' }, () => rsa(OWN_RSA.privateKey)),
  'with an unknown kid': token({ alg: 'RS256', kid: 'key-2' }, honest),
  'with a number for a kid': token({ alg: 'RS256', kid: 1 }, honest),
  'with a kid that is a path': token({ alg: 'RS256', kid: '../../dev/null' }, () => hmac('')),
  'with a kid that is a statement': token({ alg: 'RS256', kid: "' UNION SELECT 'secret" }, () => hmac('secret')),
  'with a kid that names a prototype': token({ alg: 'RS256', kid: '__proto__' }, honest),
  'with a key of its own in jwk': token({ alg: 'RS256', jwk: { ...OWN_RSA.publicKey.export({ format: 'jwk' }), kid: 'key-1' } }, () => rsa(OWN_RSA.privateKey)),
  'with crit, whatever is critical': token({ alg: 'RS256', crit: ['x'], x: 1 }, honest),
  'with crit, though it is exp that is critical': token({ alg: 'RS256', crit: ['exp'], exp: now() + 600 }, honest),
  'with crit that is no list': token({ alg: 'RS256', crit: 'x' }, honest),
  'whose payload is not encoded (RFC 7797)': token({ alg: 'RS256', b64: false, crit: ['b64'] }, honest),
  'that is encrypted': fake => { fake.forgeIdToken = payload => `${jws({ alg: 'RSA-OAEP', enc: 'A256GCM' }, payload, honest(fake))}.e.f` },
  'without its last part': fake => { fake.forgeIdToken = payload => jws({ alg: 'RS256' }, payload, nothing).slice(0, -1) },
  'that is a list': fake => { fake.forgeIdToken = payload => jws({ alg: 'RS256', kid: 'key-1' }, [payload], honest(fake)) },
  'that is no JSON': fake => { fake.forgeIdToken = () => jws({ alg: 'RS256', kid: 'key-1' }, '{"sub":"ada"', honest(fake)) },
  'that is nonsense': fake => { fake.forgeIdToken = () => 'nonsense' },
  'signed with a published key that is too short': fake => {
    fake.jwk = { ...SHORT_RSA.publicKey.export({ format: 'jwk' }), kid: 'key-1' }
    fake.forgeIdToken = payload => jws({ alg: 'RS256', kid: 'key-1' }, payload, rsa(SHORT_RSA.privateKey))
  },
  'signed with a published key that is for encryption': fake => { fake.jwk = { ...fake.jwk, use: 'enc' } },
  'signed with a published key that is for another algorithm': fake => { fake.jwk = { ...fake.jwk, alg: 'PS256' } },
  'signed with a published key that may not verify': fake => { fake.jwk = { ...fake.jwk, key_ops: ['encrypt'] } },
  'with a kid that two published keys have': fake => {
    fake.lies.set(
      '/jwks',
      () => json(200, { keys: [{ ...OWN_RSA.publicKey.export({ format: 'jwk' }), kid: 'key-1' }, fake.jwk] })
    )
  },
  'without a kid where two published keys would do (oidcc-client-test-kid-absent-multiple-jwks)': fake => {
    fake.lies.set('/jwks', () => json(200, { keys: [OWN_RSA.publicKey.export({ format: 'jwk' }), fake.jwk] }))
    fake.forgeIdToken = async payload => fake.signedIdToken(payload, { alg: 'RS256' })
  },
  'where no key is published': fake => { fake.lies.set('/jwks', () => json(200, { keys: [] })) },
  'where the key that is published is none': fake => { fake.lies.set('/jwks', () => json(200, { keys: [{ kty: 'RSA', kid: 'key-1' }] })) },
  'where the key that is published is a text': fake => { fake.lies.set('/jwks', () => json(200, { keys: ['key-1'] })) }
})

against('attack 10: nothing that an ID token names is fetched', async (t, fake, target) => {
  const visitors: unknown[] = []
  const elsewhere = createServer((request, response) => {
    visitors.push(request.url)
    response.end(JSON.stringify({ keys: [{ ...OWN_RSA.publicKey.export({ format: 'jwk' }), kid: 'key-1' }] }))
  })
  const url = `http://127.0.0.1:${await listen(t, elsewhere)}/jwks`
  for (const header of [
    { jku: url },
    { x5u: url },
    { jku: url, kid: 'key-2' },
    { kid: url },
    { x5c: [OWN_RSA.publicKey.export({ type: 'spki', format: 'der' }).toString('base64')], x5u: url }
  ]) {
    token({ alg: 'RS256', ...header }, () => rsa(OWN_RSA.privateKey))(fake)
    await assertRefused(t, target, 'fake', 'provider_error', consent(fake))
  }
  t.strictSame(visitors, [])
})

against('attack 10: an ID token from an earlier sign-in signs nobody in again', async (t, fake, target) => {
  await assertSignsIn(t, target, 'fake', consent(fake))
  let earlier = ''
  fake.forgeIdToken = async payload => { earlier ||= await fake.signedIdToken(payload); return earlier }
  await assertSignsIn(t, target, 'fake', consent(fake))
  await assertRefused(t, target, 'fake', 'provider_error', consent(fake))
})

const ME = 'the-app'

refusesClaims('attack 11', ({ issuer }) => ({
  'of another issuer (oidcc-client-test-invalid-iss)': { iss: 'https://evil.example' },
  'with a slash behind its issuer': { iss: `${issuer}/` },
  'with its issuer in a list': { iss: [issuer] },
  ...Object.fromEntries(some([undefined, null, '', 7], 2).map(iss => [`with ${JSON.stringify(iss) ?? 'no'} iss`, { iss }])),
  'for another audience (oidcc-client-test-invalid-aud)': { aud: 'another-app' },
  'for a list of others': { aud: ['another-app'] },
  'for this application and another, without azp': { aud: [ME, 'another-app'] },
  'for this application and another, with the azp of that': { aud: [ME, 'another-app'], azp: 'another-app' },
  'for this application twice, without azp': { aud: [ME, ME] },
  'for another, with our azp': { aud: 'another-app', azp: ME },
  'for an audience that begins like ours': { aud: `${ME} another-app` },
  'for our audience in upper case': { aud: ME.toUpperCase() },
  ...Object.fromEntries(some(
    [undefined, null, '', [], [[ME]], { [ME]: true }, true],
    2
  ).map(aud => [`for ${JSON.stringify(aud) ?? 'no'} audience`, { aud }])),
  'with the azp of another': { azp: 'another-app' },
  ...Object.fromEntries(some(['', null, [ME], 7], 2).map(azp => [`with ${JSON.stringify(azp)} for azp`, { azp }])),
  'that has expired': { exp: now() - 31 },
  ...Object.fromEntries(some(
    [undefined, null, '9999999999', 0, -1, [9999999999]],
    2
  ).map(exp => [`with ${JSON.stringify(exp) ?? 'no'} exp`, { exp }])),
  'that is issued in an hour': { iat: now() + 3600 },
  'without iat (oidcc-client-test-missing-iat)': { iat: undefined },
  ...Object.fromEntries([null, '0', {}].map(iat => [`with ${JSON.stringify(iat)} iat`, { iat }])),
  'that is good in an hour': { nbf: now() + 3600 },
  'that is good from a day in words': { nbf: 'today' },
  'without sub (oidcc-client-test-missing-sub)': { sub: undefined },
  ...Object.fromEntries([
    '', 'ada\0', 'ada\ud800', ...some([null, 0, 7, true, ['ada'], { id: 'ada' }], 3)
  ].map(sub => [`with ${JSON.stringify(sub)} for sub`, { sub }])),
  'with 256 characters of sub': { sub: 'a'.repeat(256) },
  'with the hash of another access token': { at_hash: 'h3xmplQ9tK0b1cd2ef3gHw' },
  ...Object.fromEntries(['', null, ['h3xmplQ9tK0b1cd2ef3gHw'], true].map(hash => [`with ${JSON.stringify(hash)} for at_hash`, { at_hash: hash }]))
}))

const claims = (changes: object) => (fake: FakeOpenIdProvider) => { fake.idTokenClaims = { ...changes } }

/** What looks odd and is right: without these, a provider that refuses everything would pass. */
const RIGHT: Lies = {
  'from an honest provider (oidcc-client-test, oidcc-client-test-idtoken-sig-rs256)': () => {},
  'for a list of this application alone': claims({ aud: [ME] }),
  'for this application and another, with our azp': claims({ aud: [ME, 'another-app'], azp: ME }),
  'with 255 characters of sub': claims({ sub: 'a'.repeat(255) }),
  'by a clock that is behind': fake => { fake.idTokenClaims = { iat: now() - 600, exp: now() - 20 } },
  'by a clock that is ahead': fake => { fake.idTokenClaims = { iat: now() + 20, nbf: now() + 20 } },
  'without a kid where one key is published (oidcc-client-test-kid-absent-single-jwks)': fake => {
    fake.forgeIdToken = async payload => fake.signedIdToken(payload, { alg: 'RS256' })
  },
  'without a kid where one of several keys will do': fake => {
    fake.lies.set(
      '/jwks',
      () => json(200, {
        keys: [
          { ...OWN_RSA.publicKey.export({ format: 'jwk' }), use: 'enc' },
          OWN_EC.publicKey.export({ format: 'jwk' }),
          fake.jwk
        ]
      })
    )
    fake.forgeIdToken = async payload => fake.signedIdToken(payload, { alg: 'RS256' })
  },
  'beside published keys that are unusable yet': fake => {
    const { n, e } = OWN_RSA.publicKey.export({ format: 'jwk' })
    fake.lies.set(
      '/jwks',
      () => json(200, {
        keys: [
          { kty: 'AKP', alg: 'ML-DSA-1', pub: 'eA', kid: 'a' },
          { kty: 'made-up', kid: 'key-1' },
          { kty: 'RSA', n, e, alg: 'made-up', kid: 'c' },
          { kty: 'EC', crv: 'made-up', x: 'eA', y: 'eA', kid: 'd' },
          fake.jwk
        ]
      })
    )
  },
  'whose key is new since the discovery (oidcc-client-test-signing-key-rotation-just-before-signing)': fake => {
    fake.forgeIdToken = async payload => {
      await fake.rotateKey('key-2')
      return fake.signedIdToken(payload, { alg: 'RS256', kid: 'key-2' })
    }
  },
  'whose client authenticates in the header (oidcc-client-test-client-secret-basic)': ({ metadata }) => {
    metadata.token_endpoint_auth_methods_supported = ['client_secret_basic']
  },
  'whose claims are at userinfo (oidcc-client-test-scope-userinfo-claims)': fake => {
    fake.userinfo = fake.profile
    fake.profile = { sub: 'ada' }
  }
}
for (const [name, prepare] of Object.entries(RIGHT)) {
  against(`an ID token is accepted ${name}`, async (t, fake, target) => {
    prepare(fake)
    t.equal((await assertSignsIn(t, target, 'fake', consent(fake))).claims.email, 'ada@example.com')
  })
}

/** Grace is signed in with her address, which the honest provider vouches for; somebody else comes with it, and with this flag in the text of his token. */
function claimsAddress (fake: FakeOpenIdProvider, flag: string | null): void {
  fake.profile = { sub: 'ada', email: 'grace@example.com', name: 'Ada', picture: 'https://id.example/ada.png' }
  fake.metadata.userinfo_endpoint = undefined
  fake.forgeIdToken = payload => jws(
    { alg: 'RS256', kid: 'key-1' },
    JSON.stringify(payload).replace(/\}$/, flag === null ? '}' : `,"email_verified":${flag}}`),
    honest(fake)
  )
}

for (const flag of some([
  '"false"', '"TRUE"', '"True"', '"true "', '1', '"1"', '"yes"', '[]', '[true]', '{}', '{"valueOf":true}', 'false',
  'null', null, 'true,"email_verified":"false"'
], 2)) {
  against(`attack 18: email_verified ${flag ?? 'absent'} does not open the account that has the address`, async (t, fake, target) => {
    claimsAddress(fake, flag)
    await assertRefused(t, target, 'fake', 'account_exists', consent(fake))
  })
}

for (const flag of ['true', '"true"']) {
  against(`an address with email_verified ${flag} belongs to the account that has it`, async (t, fake, target) => {
    claimsAddress(fake, flag)
    const grace = new Browser(target.app)
    await signInAt(grace, 'honest', { subject: 'grace', email: 'grace@example.com' })
    const { userId } = await assertSignsIn(t, target, 'fake', consent(fake))
    t.equal(userId, (await grace.get('/me')).json().principal.userId)
  })
}
