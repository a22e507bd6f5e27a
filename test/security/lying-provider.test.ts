/**
 * Attacks 12 and 13, and what RFC 9700 says of mix-up and of error responses: a provider that lies at one of its endpoints.
 * `oidcc-client-test-…` is a module of the OpenID Foundation's Basic RP conformance test plan. For ID tokens see id-tokens.test.ts.
 */
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { FAILURES, FLOODS, drips, hangs, json, neverEnds, stalls } from '../fakes/lies.js'
import { hashOf } from '../fakes/openid-stand-in.js'
import { type FakeOpenIdProvider, startFakeOpenIdProvider } from '../fakes/openid-provider.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { deferred } from '../helpers/deferred.js'
import { listen } from '../helpers/loopback.js'
import { signInAt } from '../helpers/own-provider.js'
import { isThorough, some } from '../helpers/thorough.js'
import { type RefusalCode, assertRefused, assertSignsIn, comeBack, withEverySessionStore } from '../helpers/under-attack.js'

const DISCOVERY = '/.well-known/openid-configuration'
const ENDPOINTS = [DISCOVERY, '/token', '/jwks', '/userinfo']
/** How many people sign in at once. */
const CROWD = isThorough ? 20 : 4
const GRACE = { subject: 'grace', email: 'grace@example.com' }

/** A provider of which a sign-in asks each endpoint. */
async function startFake (t: Test, issuer?: string): Promise<FakeOpenIdProvider> {
  const fake = await startFakeOpenIdProvider(t, issuer)
  fake.userinfo = fake.profile
  fake.profile = { sub: 'ada' }
  return fake
}

const consent = (fake: FakeOpenIdProvider, changes: Record<string, string | null> = {}) => (url: string) => fake.consent(url, changes)
const askedFor = ({ requests }: FakeOpenIdProvider, request: string) => requests.filter(other => other === request).length

/** A server that nobody should come to: what came. */
async function startElsewhere (t: Test): Promise<{ origin: string, visits: string[] }> {
  const visits: string[] = []
  const server = createServer((request, response) => {
    visits.push(`${request.method} ${request.url} ${request.headers.authorization}`)
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  return { origin: `http://127.0.0.1:${await listen(t, server)}`, visits }
}

// Before the rest: the clock is everybody's.
// oidcc-client-test-signing-key-rotation
withEverySessionStore(t, 'attack 59, attack 170: new keys are fetched at once, once, and no more often than once a minute', async (t, start) => {
  const fake = await startFake(t)
  const target = await start(fake.provider())
  await assertSignsIn(t, target, 'fake', consent(fake))
  await fake.rotateKey('key-2')
  await Promise.all(Array.from(
    { length: CROWD },
    async (_, index) => assertSignsIn(t, target, 'fake', consent(fake), `number ${index}`)
  ))
  t.equal(askedFor(fake, 'GET /jwks'), 2, 'at once, by one download for all of them')
  await fake.rotateKey('key-3')
  for (let attempt = 0; attempt < 5; attempt++) await assertRefused(t, target, 'fake', 'provider_error', consent(fake))
  t.equal(askedFor(fake, 'GET /jwks'), 2, 'not within a minute of that')
  advanceClock(t, 61_000)
  await assertSignsIn(t, target, 'fake', consent(fake))
  t.equal(askedFor(fake, 'GET /jwks'), 3, 'but after it')

  advanceClock(t, 61_000)
  let number = 0
  fake.forgeIdToken = async payload => fake.signedIdToken(payload, { alg: 'RS256', kid: `unknown-${number++}` })
  await Promise.all(Array.from(
    { length: CROWD / 2 },
    async () => assertRefused(t, target, 'fake', 'provider_error', consent(fake))
  ))
  t.strictSame([number, askedFor(fake, 'GET /jwks')], [CROWD, 4], 'one download for all unknown keys')
  fake.forgeIdToken = null
  await assertSignsIn(t, target, 'fake', consent(fake))
})

const KEEP_WAITING = [hangs, stalls, drips]

// In `npm test` each endpoint has some of the failures, and half of them are that of one endpoint.
for (const [number, path] of ENDPOINTS.entries()) {
  const attack = path === '/token' || path === '/userinfo' ? 'attack 12' : 'attack 13'
  for (const [name, [code, lie]] of some(Object.entries({ ...FAILURES, ...FLOODS }), 2 * ENDPOINTS.length, number)) {
    withEverySessionStore(t, `${attack}: ${name} at ${path} is ${code}, and the next sign-in works`, async (t, start) => {
      const fake = await startFake(t)
      fake.lies.set(path, lie)
      const target = await start(fake.provider({ timeout: KEEP_WAITING.includes(lie) ? 2000 : 30_000 }))
      await assertRefused(t, target, 'fake', code, consent(fake))
      fake.lies.clear()
      await assertSignsIn(t, target, 'fake', consent(fake))
    })
  }

  withEverySessionStore(t, `${attack}: a redirect of ${path} is not followed, and takes no token anywhere`, async (t, start) => {
    const { origin, visits } = await startElsewhere(t)
    for (const status of some([301, 302, 303, 307, 308], ENDPOINTS.length, number)) {
      const fake = await startFake(t)
      fake.lies.set(path, () => ({ status, headers: { location: `${origin}/${status}` }, body: '' }))
      await assertRefused(t, await start(fake.provider()), 'fake', 'provider_error', consent(fake))
    }
    t.strictSame(visits, [])
  })

  withEverySessionStore(t, `${attack}: little is read of an answer of ${path} without an end`, async (t, start) => {
    const fake = await startFake(t)
    const sockets = new Set<Socket | null>()
    fake.lies.set(path, (answer, response) => { sockets.add(response.socket); return neverEnds(answer, response) })
    await assertRefused(t, await start(fake.provider()), 'fake', 'provider_error', consent(fake))
    const written = [...sockets].map(socket => socket?.bytesWritten ?? 0)
    // Beyond the megabyte that is read, the rest is what the sockets of both sides hold.
    t.ok(written.length > 0 && written.every(bytes => bytes < 20 * 1_048_576), written.join(' and '))
  })

  withEverySessionStore(t, `${attack}: while ${path} hangs, other requests go on`, async (t, start) => {
    const fake = await startFake(t)
    const [asked, released] = [deferred(), deferred()]
    fake.lies.set(path, async answer => {
      asked.resolve()
      await released.promise
      return answer
    })
    const { app } = await start(fake.provider())
    const [waiting, grace] = [new Browser(app), new Browser(app)]
    let hasEnded = false
    const landing = comeBack(waiting, 'fake', consent(fake)).finally(() => { hasEnded = true })
    await asked.promise
    t.equal((await signInAt(grace, 'honest', GRACE)).headers.location, '/')
    t.equal((await grace.get('/me')).json().principal.provider, 'honest')
    t.equal((await new Browser(app).get('/me')).statusCode, 200)
    t.equal(hasEnded, false)
    released.resolve()
    t.equal((await landing).headers.location, '/')
  })
}

/** Changes members of the answer of an endpoint; `undefined` leaves one out. */
type Change = Record<string, unknown>

const TOKEN_ANSWERS: Record<string, Change> = {
  'an error beside the tokens': { error: 'access_denied' },
  'an error that is an object': { error: { message: 'no' } },
  'an error that is true': { error: true },
  'no access token': { access_token: undefined },
  'an empty access token': { access_token: '' },
  'a number for an access token': { access_token: 7 },
  'no token type': { token_type: undefined },
  'the token type mac': { token_type: 'mac' },
  'the token type DPoP, which was not asked for': { token_type: 'DPoP' },
  'the token type N_A': { token_type: 'N_A' },
  'no ID token': { id_token: undefined },
  'null for an ID token': { id_token: null },
  'a list of ID tokens': { id_token: ['a.b.c'] },
  'a lifetime that is no number': { expires_in: 'soon' },
  'a refresh token that is no text': { refresh_token: { token: 'x' } },
  'a scope that is neither text nor a list': { scope: { openid: true } }
}
const USERINFO_ANSWERS: Record<string, Change> = {
  'another subject (oidcc-client-test-userinfo-invalid-sub)': { sub: 'grace' },
  'a subject that differs in case': { sub: 'Ada' },
  'no subject': { sub: undefined },
  'an empty subject': { sub: '' },
  'a list of the subject': { sub: ['ada'] },
  'null for a subject': { sub: null }
}
for (const [path, answers] of Object.entries({ '/token': TOKEN_ANSWERS, '/userinfo': USERINFO_ANSWERS })) {
  withEverySessionStore(t, `attack 12: an answer of ${path} is refused`, async (t, start) => {
    const fake = await startFake(t)
    const target = await start(fake.provider())
    for (const [name, change] of some(Object.entries(answers), 6)) {
      await t.test(`the rules hold with ${name}`, async t => {
        fake.lies.set(path, ({ body }) => json(200, { ...JSON.parse(body), ...change }))
        await assertRefused(t, target, 'fake', 'provider_error', consent(fake))
      })
    }
  })
}

withEverySessionStore(t, 'attack 12: the access token of another user is not used where the ID token has the hash of the right one', async (t, start) => {
  const fake = await startFake(t)
  fake.idTokenClaims = { at_hash: hashOf('the-access-token') }
  const target = await start(fake.provider())
  await assertSignsIn(t, target, 'fake', consent(fake))
  fake.requests.length = 0
  fake.lies.set('/token', ({ body }) => json(200, { ...JSON.parse(body), access_token: 'a-token-of-another-app' }))
  await assertRefused(t, target, 'fake', 'provider_error', consent(fake))
  t.equal(askedFor(fake, 'GET /userinfo'), 0)
})

const NO_URLS = [
  'http://id.example/x', 'file:///etc/passwd', 'javascript:alert(1)', 'data:application/json,{}', '//id.example/x',
  '/x', 'https://user:password@id.example/x', 'https://id.example/x#y', '', 7, null, ['https://id.example/x']
]
const URLS = ['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'userinfo_endpoint']
const METADATA: Array<[member: string, values: readonly unknown[]]> = [
  [
    'issuer',
    [
      'https://evil.example', 'http://id.example', 'https://id.example/x', 'https://id.example.evil.example',
      'https://ID.example/../y', '', 7, null, undefined
    ]
  ],
  ...URLS.map((member, number): [string, readonly unknown[]] => [member, some(NO_URLS, URLS.length, number)]),
  ...['authorization_endpoint', 'token_endpoint', 'jwks_uri'].map((member): [string, readonly unknown[]] => [member, [undefined]]),
  ['id_token_signing_alg_values_supported', ['RS256', null, { RS256: true }]],
  ['token_endpoint_auth_methods_supported', ['client_secret_post', null, 7]]
]
for (const [member, values] of METADATA) {
  const wrong = values[0] === undefined ? 'no' : 'a wrong'
  withEverySessionStore(t, `attack 13: a discovery document with ${wrong} ${member} is refused, not kept, and leads nowhere`, async (t, start) => {
    const { origin, visits } = await startElsewhere(t)
    const fake = await startFake(t, 'https://id.example')
    const { metadata } = fake
    const target = await start(fake.provider({ allowInsecureRequests: false, fetch: fake.fetch }))
    for (const value of URLS.includes(member) && wrong !== 'no' ? [...values, `${origin}/x`] : values) {
      fake.metadata = { ...metadata, [member]: value }
      await assertRefused(t, target, 'fake', 'provider_error', consent(fake))
      t.strictSame(new Set(fake.requests), new Set([`GET ${DISCOVERY}`]), `${member} ${String(value)}`)
    }
    fake.metadata = metadata
    await assertSignsIn(t, target, 'fake', consent(fake), 'once it is mended')
    t.strictSame(visits, [])
  })
}

withEverySessionStore(t, 'attack 13: parameters in an authorization endpoint replace none of the plugin', async (t, start) => {
  const fake = await startFake(t)
  const ours = ['client_id', 'redirect_uri', 'response_type', 'scope', 'state', 'nonce', 'code_challenge', 'code_challenge_method']
  fake.metadata.authorization_endpoint = `${fake.issuer}/authorize?tenant=a&${ours.map(name => `${name}=evil&${name}=evil`).join('&')}`
  const { app } = await start(fake.provider())
  const { searchParams } = new URL((await new Browser(app).get('/auth/fake/login')).headers.location ?? '')
  for (const name of ours) t.strictSame(searchParams.getAll(name).map(value => value === 'evil'), [false], name)
  t.equal(searchParams.get('tenant'), 'a')
})

/** The authorization response of an error, and what the browser is told. */
const ERRORS: Array<[error: string, code: RefusalCode]> = [
  ...[
    'access_denied', 'interaction_required', 'login_required', 'consent_required', 'account_selection_required'
  ].map((error): [string, RefusalCode] => [error, 'access_denied']),
  ['server_error', 'provider_unavailable'],
  ['temporarily_unavailable', 'provider_unavailable'],
  ...some([
    'invalid_request', 'unauthorized_client', 'unsupported_response_type', 'invalid_scope',
    'registration_not_supported', 'account_exists', 'made_up', 'ACCESS_DENIED', 'access_denied ',
    'access_denied\r\nx-evil: 1', '<script>alert(1)</script>', '__proto__', 'constructor', 'x'.repeat(4000), '\0'
  ], 4).map((error): [string, RefusalCode] => [error, 'provider_error'])
]
withEverySessionStore(t, 'RFC 9700: an error of the authorization endpoint tells no more than a known code, and redeems no code', async (t, start) => {
  const fake = await startFake(t)
  const target = await start(fake.provider())
  for (const [error, expected] of ERRORS) {
    await t.test(`${JSON.stringify(error.slice(0, 40))} is ${expected}`, async t => {
      const words = { error, error_description: '<img src=x>\r\nx-evil: 1', error_uri: 'https://evil.example/' }
      for (const code of [{ code: null }, {}]) await assertRefused(t, target, 'fake', expected, consent(fake, { ...words, ...code }))
      const page = await comeBack(new Browser(target.app), 'fake', consent(fake, words))
      t.notMatch(JSON.stringify([page.headers, page.body]), /img|evil|script/)
    })
  }
  t.equal(askedFor(fake, 'POST /token'), 0)
})

withEverySessionStore(t, 'RFC 9207 2.4: an error with a wrong iss, an unknown state or another error is not believed', async (t, start) => {
  const fake = await startFake(t)
  const target = await start(fake.provider())
  const denial = { code: null, error: 'access_denied' }
  await assertRefused(t, target, 'fake', 'access_denied', consent(fake, denial))
  await assertRefused(t, target, 'fake', 'provider_error', consent(fake, { ...denial, iss: null }))
  await assertRefused(t, target, 'fake', 'provider_error', consent(fake, { ...denial, iss: 'https://evil.example' }))
  await assertRefused(t, target, 'fake', 'invalid_state', consent(fake, { ...denial, state: 'guess' }))
  await assertRefused(t, target, 'fake', 'provider_error', url => `${fake.consent(url, denial)}&error=server_error`)
})

for (const isAnnounced of [true, false]) {
  const announcement = isAnnounced ? 'announces iss' : 'announces nothing'
  withEverySessionStore(t, `RFC 9207: a response of a provider that ${announcement} is refused with the iss of another`, async (t, start) => {
    const fake = await startFake(t)
    fake.metadata.authorization_response_iss_parameter_supported = isAnnounced
    const target = await start(fake.provider())
    for (const iss of ['https://evil.example', `${fake.issuer}/`, fake.issuer.toUpperCase(), `${fake.issuer} `, '']) {
      await assertRefused(t, target, 'fake', 'provider_error', consent(fake, { iss }))
    }
    for (const iss of [fake.issuer, 'https://evil.example', '']) {
      await assertRefused(t, target, 'fake', 'provider_error', url => `${fake.consent(url)}&iss=${encodeURIComponent(iss)}`)
    }
    if (isAnnounced) await assertRefused(t, target, 'fake', 'provider_error', consent(fake, { iss: null }))
    t.equal(askedFor(fake, 'POST /token'), 0)
    if (!isAnnounced) await assertSignsIn(t, target, 'fake', consent(fake, { iss: null }))
  })

  withEverySessionStore(t, `RFC 9700 4.4: a provider that ${announcement} and sends people on to another gets no code of that one`, async (t, start) => {
    const [fake, evil] = [await startFake(t), await startFake(t)]
    evil.metadata.authorization_response_iss_parameter_supported = isAnnounced
    const target = await start(fake.provider(), evil.provider({ name: 'evil' }))
    await assertRefused(t, target, 'evil', 'provider_error', consent(fake))
    await assertRefused(t, target, 'evil', 'invalid_state', url => fake.consent(url).replace('/auth/evil/', '/auth/fake/'))
    t.strictSame([askedFor(fake, 'POST /token'), askedFor(evil, 'POST /token')], [0, 0])
  })
}
