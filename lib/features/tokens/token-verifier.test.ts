import { createServer } from 'node:http'
import { SignJWT, exportJWK, generateKeyPair } from 'jose'
import t, { type Test } from 'tap'
import { LocalIdentityProvider, TokenVerifier, type TokenVerifierOptions } from '../../index.js'
import type { Jwk } from './token-keys.js'
import { startApp } from '../../../test/helpers/app.js'
import { freePort, listen } from '../../../test/helpers/loopback.js'
import { ecKey, edKey } from '../../../test/helpers/signing-key.js'

const ISSUER = 'https://app.example'
const INVALID = { name: 'AuthError', code: 'invalid_token', statusCode: 401 }
const UNAVAILABLE = {
  name: 'AuthError',
  code: 'unavailable',
  statusCode: 503,
  message: 'The keys of the issuer cannot be fetched at the moment; try again later.'
}

const issuerWith = (signingKey: Jwk | readonly Jwk[], issuer = ISSUER) => new LocalIdentityProvider({ signingKey, issuer })

/** A verifier that has the keys of an issuer itself. */
function verifierOf ({ jwks }: LocalIdentityProvider, audience?: string): TokenVerifier {
  return new TokenVerifier({ issuer: ISSUER, keys: jwks?.keys, audience })
}

/** A server that answers as it is told, and counts how often. */
async function keyServer (t: Test, answer: () => { status?: number, body: unknown }): Promise<{ url: string, asked: () => number }> {
  let times = 0
  const port = await listen(t, createServer((_request, response) => {
    times++
    const { status = 200, body } = answer()
    response.writeHead(status, { 'content-type': 'application/json', location: '/elsewhere' }).end(typeof body === 'string' ? body : JSON.stringify(body))
  }))
  return { url: `http://127.0.0.1:${port}/auth/local/jwks.json`, asked: () => times }
}

const fetching = (jwksUrl: string) => new TokenVerifier({ issuer: ISSUER, jwksUrl, allowInsecureRequests: true })

t.test('a service verifies the tokens of an application by the keys that it publishes', async t => {
  const local = issuerWith([edKey(), ecKey()])
  const app = await startApp(t, { local })
  const origin = await app.listen({ host: '127.0.0.1', port: 0 })
  const verifier = new TokenVerifier({ issuer: ISSUER, jwksUrl: `${origin}/auth/local/jwks.json`, audience: 'reports', allowInsecureRequests: true })

  const token = await local.issueIdToken('nightly-export', { role: 'robot' }, 60, { audience: 'reports' })

  t.match(await verifier.verify(token), { iss: ISSUER, sub: 'nightly-export', aud: 'reports', role: 'robot' })
  await t.rejects(verifier.verify(await local.issueIdToken('nightly-export')), INVALID)
})

t.test('attack 51: a token is good for the audience that it was made for, and one with a purpose for none', async t => {
  const local = issuerWith(ecKey())
  const token = async (use = {}) => local.issueIdToken('ada', {}, 60, use)

  t.match(await verifierOf(local).verify(await token()), { sub: 'ada' })
  t.match(await verifierOf(local, 'reports').verify(await token({ audience: 'reports' })), { sub: 'ada' })
  await t.rejects(verifierOf(local).verify(await token({ audience: 'reports' })), INVALID)
  await t.rejects(verifierOf(local, 'reports').verify(await token()), INVALID)
  await t.rejects(verifierOf(local, 'reports').verify(await token({ audience: 'billing' })), INVALID)
  await t.rejects(verifierOf(local, 'reports').verify(await token({ purpose: 'invitation', audience: 'reports' })), INVALID)
  await t.rejects(verifierOf(local).verify(await token({ purpose: 'invitation' })), INVALID)
})

t.test('attack 47: tokens of other keys, issuers and algorithms are refused', async t => {
  const key = ecKey()
  const local = issuerWith(key)
  const verifier = verifierOf(local)
  const claims = { iss: ISSUER, sub: 'ada', iat: Math.floor(Date.now() / 1000), exp: Math.floor(Date.now() / 1000) + 60 }
  const signed = async (alg: string, secret: Parameters<SignJWT['sign']>[0]) => new SignJWT(claims).setProtectedHeader({ alg, typ: 'JWT' }).sign(secret)

  const tokens: unknown[] = [
    await issuerWith(ecKey()).issueIdToken('ada'),
    await issuerWith({ ...ecKey(), kid: local.jwks?.keys[0]?.kid }).issueIdToken('ada'),
    await issuerWith(edKey()).issueIdToken('ada'),
    await issuerWith(key, 'https://other.example').issueIdToken('ada'),
    await signed('HS256', Buffer.from(JSON.stringify(local.jwks))),
    await signed('RS256', (await generateKeyPair('RS256')).privateKey),
    await signed('ES384', (await generateKeyPair('ES384')).privateKey),
    `${await local.issueIdToken('ada')}=`, 'a.b.c', '', 'x'.repeat(1_000_000), null, undefined, 1, {}
  ]

  for (const token of tokens) await t.rejects(verifier.verify(token as string), INVALID)
})

t.test('attack 48: an expired token is refused, and one without exp', async t => {
  const key = { ...ecKey(), kid: '1' }
  const verifier = verifierOf(issuerWith(key))
  const now = Math.floor(Date.now() / 1000)
  const signed = async (claims: object) => new SignJWT({ iss: ISSUER, sub: 'ada', iat: now, ...claims }).setProtectedHeader({ alg: 'ES256' }).sign({ ...key })

  t.match(await verifier.verify(await signed({ exp: now + 60 })), { sub: 'ada' })
  for (const claims of [{}, { exp: now }, { exp: now - 1 }, { exp: now + 60, iat: now + 60 }, { exp: now + 60, sub: 1 }]) {
    await t.rejects(verifier.verify(await signed(claims)), INVALID, JSON.stringify(claims))
  }
})

t.test('keys are fetched once for many tokens, and again for a key that was not there', async t => {
  const [old, current] = [ecKey(), ecKey()]
  let local = issuerWith(old)
  const server = await keyServer(t, () => ({ body: local.jwks }))
  const verifier = fetching(server.url)

  await Promise.all(Array.from({ length: 5 }, async () => verifier.verify(await local.issueIdToken('ada'))))
  t.equal(server.asked(), 1)

  local = issuerWith([current, old])
  await t.rejects(verifier.verify(await local.issueIdToken('ada')), INVALID, 'in the thirty seconds after a fetch keys are not asked for again')
  t.equal(server.asked(), 1)
  const { now } = Date
  t.intercept(Date, 'now', { value: () => now() + 31_000 })
  t.match(await verifier.verify(await local.issueIdToken('ada')), { sub: 'ada' })
  t.equal(server.asked(), 2)
})

t.test('keys that cannot be fetched are unavailable, and the next token asks again', async t => {
  const local = issuerWith(ecKey())
  const token = await local.issueIdToken('ada')
  let answer: { status?: number, body: unknown } = { body: local.jwks }
  const server = await keyServer(t, () => answer)
  const verifier = fetching(server.url)

  for (const wrong of [{ status: 500, body: {} }, { status: 302, body: local.jwks }, { body: 'no JSON' }, { body: {} }, { body: [] }]) {
    answer = wrong
    await t.rejects(verifier.verify(token), UNAVAILABLE)
  }
  answer = { body: local.jwks }
  t.match(await verifier.verify(token), { sub: 'ada' })
  await t.rejects(fetching(`http://127.0.0.1:${await freePort()}/jwks.json`).verify(token), UNAVAILABLE)
})

t.test('a token that names none of several published keys is refused', async t => {
  const key = { ...ecKey(), kid: '1' }
  const server = await keyServer(t, () => ({ body: issuerWith([key, ecKey()]).jwks }))
  const token = await new SignJWT({ iss: ISSUER, sub: 'ada' }).setProtectedHeader({ alg: 'ES256' }).setIssuedAt().setExpirationTime('1m').sign({ ...key })

  await t.rejects(fetching(server.url).verify(token), INVALID)
})

t.test('a text that is not a token fetches nothing', async t => {
  const server = await keyServer(t, () => ({ body: {} }))

  for (const token of ['', 'a.b.c', 'x'.repeat(20_000)]) await t.rejects(fetching(server.url).verify(token), INVALID)
  t.equal(server.asked(), 0)
})

const KEYS = [{ ...issuerWith(ecKey()).jwks?.keys[0] }]
const JWKS_URL = 'https://app.example/auth/local/jwks.json'
const MISTAKES: Array<[what: string, options: unknown, message: RegExp]> = [
  ['no object', 'https://app.example', /^TokenVerifier takes an object of options/],
  ['no issuer', { jwksUrl: JWKS_URL }, /^TokenVerifier: issuer must be the issuer of the tokens, a non-empty string$/],
  ['an issuer that is a list', { issuer: [ISSUER], jwksUrl: JWKS_URL }, /^TokenVerifier: issuer must be the issuer of the tokens/],
  ['neither URL nor keys', { issuer: ISSUER }, /^TokenVerifier takes either jwksUrl, .*, or keys$/],
  ['both URL and keys', { issuer: ISSUER, jwksUrl: JWKS_URL, keys: KEYS }, /^TokenVerifier takes either jwksUrl/],
  ['a URL with plain http', { issuer: ISSUER, jwksUrl: 'http://app.example/jwks.json' }, /^TokenVerifier: jwksUrl must be an https: URL/],
  ['something else than a URL', { issuer: ISSUER, jwksUrl: 'jwks.json' }, /^TokenVerifier: jwksUrl must be an https: URL/],
  ['an empty audience', { issuer: ISSUER, jwksUrl: JWKS_URL, audience: '' }, /^TokenVerifier: audience must be a non-empty string$/],
  ['a list of audiences', { issuer: ISSUER, jwksUrl: JWKS_URL, audience: ['reports'] }, /^TokenVerifier: audience must be/],
  [
    'a secret',
    { issuer: ISSUER, secret: 'the secret of the issuer, 32 and more' },
    /^TokenVerifier has no option "secret"; expected one of issuer, jwksUrl, keys, audience, algorithms, allowInsecureRequests$/
  ],
  [
    'a permission that is a text',
    { issuer: ISSUER, jwksUrl: JWKS_URL, allowInsecureRequests: 'yes' },
    /^TokenVerifier: allowInsecureRequests must be true or false$/
  ],
  [
    'an algorithm of secrets',
    { issuer: ISSUER, keys: KEYS, algorithms: ['HS256'] },
    /^TokenVerifier: algorithms must be a list of ES256, EdDSA, RS256, PS256$/
  ],
  ['no key', { issuer: ISSUER, keys: [] }, /^TokenVerifier: keys must be a list of public JWKs/],
  ['a JWK Set', { issuer: ISSUER, keys: { keys: KEYS } }, /^TokenVerifier: keys must be a list of public JWKs/],
  [
    'a private key',
    { issuer: ISSUER, keys: [...KEYS, ecKey()] },
    /^TokenVerifier: keys\[1\] is a private key, which only the issuer may have; remove its member d$/
  ],
  [
    'a key on another curve',
    { issuer: ISSUER, keys: [{ ...ecKey('P-384'), d: undefined }].map(({ d, ...key }) => key) },
    /^TokenVerifier: keys\[0\] must be a public JWK for ES256/
  ],
  ['a point that is not on the curve', { issuer: ISSUER, keys: [{ ...KEYS[0], y: KEYS[0]?.x }] }, /^TokenVerifier: keys\[0\] must be a public JWK for ES256/],
  ['null for a key', { issuer: ISSUER, keys: [null] }, /^TokenVerifier: keys\[0\] must be a public JWK for ES256/]
]

for (const [what, options, message] of MISTAKES) {
  t.test(`a verifier with ${what} is refused with a sentence that names the option`, async t => {
    t.throws(() => new TokenVerifier(options as TokenVerifierOptions), { name: 'OptionsError', message })
  })
}

t.test('access tokens of an authorization server are verified with the algorithms that are named', async t => {
  const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true })
  const { url } = await keyServer(t, () => ({ body: { keys: [{ ...jwk, kid: 'k' }] } }))
  const jwk = await exportJWK(publicKey)
  const now = Math.floor(Date.now() / 1000)
  const tokenOf = async (claims = {}, header = {}) => new SignJWT({ iss: ISSUER, sub: 'ada', iat: now, exp: now + 60, aud: 'reports', ...claims })
    .setProtectedHeader({ alg: 'RS256', kid: 'k', ...header }).sign(privateKey)
  const options = { issuer: ISSUER, jwksUrl: url, audience: 'reports', allowInsecureRequests: true }
  const verifier = new TokenVerifier({ ...options, algorithms: ['RS256'] })

  t.match(await verifier.verify(await tokenOf({ scope: 'all' }, { typ: 'at+jwt' })), { sub: 'ada', scope: 'all' })
  const aud = ['others', 'reports']
  t.match(await verifier.verify(await tokenOf({ aud }, { typ: 'application/at+jwt', x5t: 'thumbprint' })), { aud })
  t.match(await verifier.verify(await tokenOf()), { sub: 'ada' }, 'some servers give no type')

  for (const [claims, header] of [
    [{ aud: ['others'] }, {}], [{ aud: 'others' }, {}], [{ aud: [] }, {}], [{ aud: undefined }, {}], [{ iss: 'https://other.example' }, {}],
    [{ exp: now - 1 }, {}], [{ sub: undefined }, {}], [{}, { typ: 'logout+jwt' }], [{}, { typ: 'at' }], [{}, { jku: url }], [{}, { x5c: ['MIIB'] }]
  ]) await t.rejects(verifier.verify(await tokenOf(claims, header)), INVALID, JSON.stringify([claims, header]))
  for (const other of [new TokenVerifier(options), new TokenVerifier({ ...options, algorithms: ['PS256', 'ES256'] })]) {
    await t.rejects(other.verify(await tokenOf()), INVALID)
  }
})
