import { generateKeyPairSync } from 'node:crypto'
import { inspect } from 'node:util'
import { SignJWT, UnsecuredJWT, calculateJwkThumbprint, createLocalJWKSet, decodeProtectedHeader, exportJWK, generateKeyPair, importJWK, jwtVerify } from 'jose'
import t from 'tap'
import { LocalIdentityProvider, type LocalIdentityProviderOptions } from '../../index.js'
import type { Jwk } from './token-keys.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import { setEnv } from '../../../test/helpers/environment.js'
import { ecKey, edKey } from '../../../test/helpers/signing-key.js'

const SECRET = 'the-local-secret-of-these-tests-32+'
const INVALID = { name: 'AuthError', code: 'invalid_token', statusCode: 401 }
const ISSUER = 'svc-auth-local'

const provider = (signingKey: Jwk | readonly Jwk[]) => new LocalIdentityProvider({ signingKey })

for (const [alg, key] of [['ES256', ecKey()], ['EdDSA', edKey()]] as const) {
  t.test(`with a signing key for ${alg} tokens are issued and verified without a secret, and any library verifies them by the published keys`, async t => {
    const local = provider(key)

    const token = await local.issueIdToken('ada', { role: 'admin' })

    t.match(await local.verifyIdToken(token), { iss: ISSUER, sub: 'ada', role: 'admin' })
    const { payload, protectedHeader } = await jwtVerify(
      token,
      createLocalJWKSet(JSON.parse(JSON.stringify(local.jwks))),
      { issuer: ISSUER, algorithms: [alg] }
    )
    t.match(payload, { sub: 'ada', role: 'admin' })
    t.strictSame(protectedHeader, { alg, typ: 'JWT', kid: await calculateJwkThumbprint(key) })
  })

  t.test(`no private part of a signing key for ${alg} is published`, async t => {
    const { jwks } = provider({ ...key, kid: 'mine' })

    const { d, ...publicMembers } = { ...key, alg, use: 'sig', kid: 'mine' }
    t.strictSame(jwks, { keys: [publicMembers] })
    t.notOk(JSON.stringify(jwks).includes(String(d)))
    t.throws(() => Object.assign(jwks?.keys[0] ?? {}, { d }), TypeError, 'and nothing can be added')
  })

  t.test(`a token that another library signed with the key for ${alg} is verified, with any kid or none`, async t => {
    const local = provider([edKey(), ecKey(), key])
    const signed = async (header: object) => new SignJWT({}).setProtectedHeader({ alg, ...header })
      .setIssuer(ISSUER).setSubject('ada').setIssuedAt().setExpirationTime('1m').sign(await importJWK({ ...key }, alg))

    for (const header of [{}, { kid: 'another' }, { typ: 'JWT' }]) t.match(await local.verifyIdToken(await signed(header)), { sub: 'ada' })
  })
}

t.test('a key that jose or Web Crypto made is taken as it is', async t => {
  for (const alg of ['ES256', 'EdDSA', 'Ed25519']) {
    const { privateKey } = await generateKeyPair(alg, { extractable: true })
    const local = provider(await exportJWK(privateKey))
    t.match(await local.verifyIdToken(await local.issueIdToken('ada')), { sub: 'ada' }, alg)
  }
  const { privateKey } = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify'])
  t.match(provider(await crypto.subtle.exportKey('jwk', privateKey)).jwks, { keys: [{ alg: 'ES256' }] })
})

t.test('the first of several keys signs and all verify, until one is removed', async t => {
  const [old, current] = [ecKey(), edKey()]
  const before = provider(old)
  const during = provider([current, old])
  const after = provider([current])

  const oldToken = await before.issueIdToken('ada')
  const newToken = await during.issueIdToken('ada')

  t.match(await during.verifyIdToken(oldToken), { sub: 'ada' })
  t.match(await after.verifyIdToken(newToken), { sub: 'ada' }, 'the first one signs')
  await t.rejects(after.verifyIdToken(oldToken), INVALID)
  await t.rejects(before.verifyIdToken(newToken), INVALID)
  t.strictSame(during.jwks?.keys.map(({ alg }) => alg), ['EdDSA', 'ES256'])
})

t.test('a key with notBefore is published at once, and signs from then on', async t => {
  const [old, coming] = [ecKey(), { ...edKey(), notBefore: new Date(Date.now() + 60_000).toISOString() }]
  const local = provider([coming, old])
  const algOf = async () => decodeProtectedHeader(await local.issueIdToken('ada')).alg

  t.strictSame(local.jwks?.keys.map(({ alg }) => alg), ['EdDSA', 'ES256'])
  t.notMatch(JSON.stringify(local.jwks), 'notBefore')
  t.equal(await algOf(), 'ES256')
  t.match(await local.verifyIdToken(await provider(edKeyOf(coming)).issueIdToken('ada')), { sub: 'ada' }, 'it verifies before')
  advanceClock(t, 60_000)
  t.equal(await algOf(), 'EdDSA')
  advanceClock(t, -120_000)
  t.equal(await algOf(), 'ES256', 'by the clock')
})

t.test('an issuer whose clock is set back to before each notBefore signs with the key that it began with', async t => {
  const local = provider({ ...ecKey(), notBefore: new Date(Date.now() - 1000).toISOString() })

  advanceClock(t, -60_000)

  t.match(await local.issueIdToken('ada'), /^ey/)
})

const edKeyOf = ({ notBefore: _, ...key }: Jwk): Jwk => key

t.test('attack 46, attack 47: with a signing key no token is good without a signature or signed by its public key as if that were a secret', async t => {
  const key = ecKey()
  const local = provider(key)
  const { d, ...publicKey } = key
  const hs256 = async (secret: Uint8Array) => new SignJWT({}).setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setIssuer(ISSUER).setSubject('ada').setIssuedAt().setExpirationTime('1m').sign(secret)

  for (const secret of [JSON.stringify(publicKey), JSON.stringify(local.jwks), publicKey.x ?? '', SECRET]) {
    await t.rejects(local.verifyIdToken(await hs256(Buffer.from(secret))), INVALID)
  }
  const unsecured = new UnsecuredJWT({ role: 'admin' }).setIssuer(ISSUER).setSubject('ada').setIssuedAt().setExpirationTime('1m')
  await t.rejects(local.verifyIdToken(unsecured.encode()), INVALID)
  await t.rejects(local.verifyIdToken(await new LocalIdentityProvider({ secret: SECRET }).issueIdToken('ada')), INVALID)
  await t.rejects(new LocalIdentityProvider({ secret: SECRET }).verifyIdToken(await local.issueIdToken('ada')), INVALID)
})

t.test('a setting LOCAL_IDP_SECRET counts for nothing beside a signing key', async t => {
  setEnv(t, { LOCAL_IDP_SECRET: SECRET })

  await t.rejects(provider(ecKey()).verifyIdToken(await new LocalIdentityProvider().issueIdToken('ada')), INVALID)
})

t.test('a secret publishes nothing', async t => {
  t.equal(new LocalIdentityProvider({ secret: SECRET }).jwks, null)
})

const good = ecKey()
const { d: _d, ...withoutPrivate } = good
const MISTAKES: Array<[what: string, options: object, message: RegExp]> = [
  ['a secret beside a signing key', { secret: SECRET, signingKey: good }, /^LocalIdentityProvider: signingKey replaces secret: set only one of them$/],
  ['no key in the list', { signingKey: [] }, /^LocalIdentityProvider: signingKey must contain at least one private JWK$/],
  ['one key twice', { signingKey: [good, good] }, /^LocalIdentityProvider: signingKey must contain different keys, each with its own kid$/],
  ['one kid twice', { signingKey: [{ ...good, kid: '1' }, { ...edKey(), kid: '1' }] }, /^LocalIdentityProvider: signingKey must contain different keys/],
  ['a wrong key in a list', { signingKey: [good, withoutPrivate] }, /^LocalIdentityProvider: signingKey\[1\] must be a private JWK for ES256/],
  ['a key that signs later alone', { signingKey: { ...good, notBefore: '2999-01-01T00:00:00Z' } },
    /^LocalIdentityProvider: signingKey needs a key that signs until/],
  ...['2026-12-01', '2026-12-01T00:00:00', '2026-13-01T00:00:00Z', 1_764_547_200, null, new Date()].map((notBefore): [string, object, RegExp] => [
    `a notBefore of ${String(notBefore)}`,
    { signingKey: [{ ...good, notBefore }] },
    /^LocalIdentityProvider: signingKey\[0\]: notBefore must be a time with its zone, such as 2026-12-01T00:00:00Z$/
  ]),
  ...Object.entries({
    'a public key': withoutPrivate,
    'the private part of another key': { ...good, d: ecKey().d },
    'a private part that is too short': { ...good, d: 'AA' },
    'a key on another curve': ecKey('P-384'),
    'a key for RSA': generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }),
    'a key for agreement': generateKeyPairSync('x25519').privateKey.export({ format: 'jwk' }),
    'a secret as a JWK': { kty: 'oct', k: 'c2VjcmV0' },
    'another algorithm': { ...good, alg: 'ES384' },
    'the algorithm of the other kind': { ...good, alg: 'EdDSA' },
    'a key for encryption': { ...good, use: 'enc' },
    'a kid that is empty': { ...good, kid: '' },
    'a kid that is a number': { ...good, kid: 1 },
    'a PEM text': generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'pem', type: 'pkcs8' }),
    'a key object': generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
    null: null
  }).map(([what, signingKey]): [string, object, RegExp] => [
    what,
    { signingKey },
    /^LocalIdentityProvider: signingKey must be a private JWK for ES256 \(kty EC, crv P-256\) or EdDSA \(kty OKP, crv Ed25519\); its kid/
  ])
]

for (const [what, options, message] of MISTAKES) {
  t.test(`${what} is refused with a sentence that names the option and shows no key`, async t => {
    const refused = t.throws(() => new LocalIdentityProvider(options as LocalIdentityProviderOptions), { name: 'OptionsError', message })
    t.notOk([good.d, good.x, SECRET].some(part => inspect(refused, { depth: null }).includes(String(part))))
  })
}

t.test('attack 60: neither inspect nor JSON shows the private key', async t => {
  const local = provider(good)

  for (const text of [
    inspect(local, { depth: null, showHidden: true, customInspect: false }),
    inspect(local),
    JSON.stringify(local)
  ]) t.notOk(text.includes(String(good.d)), text)
})
