import { createHmac, generateKeyPairSync, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { EncryptJWT, SignJWT, UnsecuredJWT, decodeJwt, exportJWK } from 'jose'
import t, { type Test } from 'tap'
import { LocalIdentityProvider, type LocalIdentityProviderOptions, TokenVerifier } from '../../lib/index.js'
import type { ExtraClaims } from '../../lib/features/tokens/token-issuer.js'
import type { TokenUse } from '../../lib/features/tokens/token-claims.js'
import { LOCAL_SECRET, SESSION_SECRET, localProvider, startApp } from '../helpers/app.js'
import { eventsOf } from '../helpers/audit-events.js'
import { Browser } from '../helpers/browser.js'
import { setEnv } from '../helpers/environment.js'
import { listen } from '../helpers/loopback.js'
import { OwnProvider, leaveFor } from '../helpers/own-provider.js'
import { SOME_SESSION_STORES, type SessionStores } from '../helpers/session-stores.js'

const ADA = { email: 'ada@example.com', password: 'correct horse', name: 'Ada' }
const ATTACKERS_SECRET = 'a key of the attacker, 32 and more'
const OLD_SECRET = 'the local secret of last year, 32 and more'
const HEADER = { alg: 'HS256', typ: 'JWT' }
const INVITATION = { purpose: 'invitation' }
const FOR_REPORTS = { audience: 'reports' }

/** Where a token can be shown, and what comes back of it. */
type Show = (app: FastifyInstance, token: string) => Promise<LightMyRequestResponse>

const bearerOf = (url: string): Show => async (app, token) => app.inject({ url, headers: { authorization: `Bearer ${token}` } })
const verifyToken: Show = async (app, token) => app.inject({
  method: 'POST',
  url: '/auth/local/verify-token',
  headers: { accept: 'application/json' },
  payload: { token }
})

/** What takes a user's token, which is good for everything. */
const TARGETS: Record<string, Show> = { 'verify-token': verifyToken, requireBearer: bearerOf('/api') }
/** And what takes tokens that were made for one use. */
const ALL_TARGETS: Record<string, Show> = {
  ...TARGETS,
  'requireBearerFor a purpose': bearerOf('/invitation'),
  'requireBearerFor an audience': bearerOf('/reports')
}

/** An application with an API, in which Ada has an account and is signed in. */
interface TokenApp {
  app: FastifyInstance
  local: LocalIdentityProvider
  ada: Browser
  adaId: string
  /** The claims of a token of hers with nothing wrong. */
  good: () => Record<string, unknown>
}

async function start (t: Test, options: LocalIdentityProviderOptions = {}, sessions?: SessionStores): Promise<TokenApp> {
  const local = localProvider(options)
  const app = await startApp(t, {
    baseUrl: 'https://app.example',
    local,
    providers: [new OwnProvider('mine')],
    session: { secret: SESSION_SECRET, store: sessions }
  }, {}, app => {
    app.get('/api', { preHandler: app.auth.requireBearer }, async request => request.token)
    app.get('/invitation', { preHandler: app.auth.requireBearerFor(INVITATION) }, async request => request.token)
    app.get('/reports', { preHandler: app.auth.requireBearerFor(FOR_REPORTS) }, async request => request.token)
  })
  const ada = new Browser(app)
  const { userId: adaId } = (await ada.post('/auth/local/register', ADA)).json()
  return { app, local, ada, adaId, good: () => ({ iss: 'svc-auth-local', sub: adaId, iat: now(), exp: now() + 60, jti: randomUUID() }) }
}

const now = () => Math.floor(Date.now() / 1000)
const encoded = (part: unknown) => Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url')

/** Signs whatever it is given, as somebody would who has the key, or a key. */
function forge (
  payload: unknown,
  { header = HEADER, secret = LOCAL_SECRET, hash = 'sha256' }: { header?: unknown, secret?: string, hash?: string } = {}
): string {
  const input = `${encoded(header)}.${encoded(payload)}`
  return `${input}.${createHmac(hash, secret).update(input).digest('base64url')}`
}

/** All that is told, but for the time of day. */
function told ({ statusCode, headers, body }: LightMyRequestResponse): unknown {
  return { statusCode, headers: Object.entries(headers).filter(([name]) => name !== 'date'), body }
}

type Forgeries = ReadonlyArray<readonly [what: string, token: string]>

/** Asserts that every token is refused everywhere, and in the same words as one that was made up: the answer does not say what is wrong. */
async function assertRefused (t: Test, app: FastifyInstance, forgeries: Forgeries, targets: Record<string, Show> = TARGETS): Promise<void> {
  for (const [target, show] of Object.entries(targets)) {
    const madeUp = told(await show(app, 'a.b.c'))
    t.match(madeUp, { statusCode: 401, body: 'invalid_token' }, target)
    for (const [what, token] of forgeries) t.strictSame(told(await show(app, token)), madeUp, `${target}: ${what}`)
  }
}

async function assertAccepted (
  t: Test,
  app: FastifyInstance,
  token: string,
  claims: Record<string, unknown>,
  targets: Record<string, Show> = TARGETS
): Promise<void> {
  for (const [target, show] of Object.entries(targets)) {
    const response = await show(app, token)
    t.match([response.statusCode, response.json()], [200, claims], target)
  }
}

t.test('what these tests forge is refused for what is wrong with it: without a mistake it is good', async t => {
  const { app, adaId, good } = await start(t)
  await assertAccepted(t, app, forge(good()), { sub: adaId })
  await assertAccepted(t, app, await new SignJWT(good()).setProtectedHeader(HEADER).sign(Buffer.from(LOCAL_SECRET)), { sub: adaId })
})

t.test('attack 46: a token without a signature is refused, however alg is spelled', async t => {
  const { app, good } = await start(t)
  const [, , signature = ''] = forge(good()).split('.')
  const algs = ['none', 'None', 'nOnE', 'NONE', '', null, undefined, 'hs256', 'HS256 ', ['HS256'], {}, 0]

  await assertRefused(t, app, [
    ['the unsecured token of jose', new UnsecuredJWT(good()).encode()],
    ...algs.flatMap((alg): Forgeries => {
      const input = `${encoded({ alg, typ: 'JWT' })}.${encoded(good())}`
      const what = `alg ${JSON.stringify(alg)}`
      return [[`${what}, empty signature`, `${input}.`], [`${what}, two parts`, input], [`${what}, another token's signature`, `${input}.${signature}`],
        [`${what}, our signature`, forge(good(), { header: { alg, typ: 'JWT' } })],
        [`${what}, signed with nothing`, forge(good(), { header: { alg, typ: 'JWT' }, secret: '' })]]
    }),
    ['no alg', forge(good(), { header: { typ: 'JWT' } })],
    ['the right alg, empty signature', `${encoded(HEADER)}.${encoded(good())}.`],
    ['the right alg, two parts', `${encoded(HEADER)}.${encoded(good())}`],
    ['the right alg, a signature of zeros', `${encoded(HEADER)}.${encoded(good())}.${'A'.repeat(43)}`]
  ])
})

t.test('attack 47: other algorithms are refused, with the secret of the issuer and with keys of their own', async t => {
  const { app, good } = await start(t)
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  const ed = generateKeyPairSync('ed25519').privateKey
  const long = Buffer.from(`${LOCAL_SECRET}${'\0'.repeat(64)}`)
  const keys: Array<[alg: string, key: Parameters<SignJWT['sign']>[0]]> = [
    ['HS384', long], ['HS512', long], ['RS256', rsa], ['RS512', rsa], ['PS256', rsa], ['ES256', ec], ['EdDSA', ed]
  ]

  await assertRefused(t, app, [
    ...await Promise.all(keys.map(async ([alg, key]) => [
      `signed with ${alg}`,
      await new SignJWT(good()).setProtectedHeader({ alg, typ: 'JWT' }).sign(key)
    ] as const)),
    ['HS384 with our secret', forge(good(), { header: { alg: 'HS384', typ: 'JWT' }, hash: 'sha384' })],
    ['HS512 with our secret', forge(good(), { header: { alg: 'HS512', typ: 'JWT' }, hash: 'sha512' })],
    ['HS512 that says HS256', forge(good(), { hash: 'sha512' })],
    ...['HS384', 'HS512', 'RS256', 'ES256', 'PS256', 'EdDSA', 'dir', 'A128KW'].map(alg => [
      `HS256 that says ${alg}`,
      forge(good(), { header: { alg, typ: 'JWT' } })
    ] as const)
  ])
})

t.test('attack 47: a token that was signed with another secret is refused', async t => {
  const { app, good } = await start(t)
  const secrets = [
    '',
    '\0',
    '0'.repeat(64),
    'secret',
    'undefined',
    'svc-auth-local',
    LOCAL_SECRET.slice(0, 31),
    `${LOCAL_SECRET} `,
    ` ${LOCAL_SECRET}`,
    LOCAL_SECRET.toUpperCase(),
    Buffer.from(LOCAL_SECRET).toString('base64'),
    SESSION_SECRET,
    ATTACKERS_SECRET
  ]

  await assertRefused(t, app, secrets.map(secret => [`signed with ${JSON.stringify(secret)}`, forge(good(), { secret })]))
})

t.test('attack 47: a secret that was removed verifies nothing any more', async t => {
  const before = await start(t, { secret: OLD_SECRET })
  const during = await start(t, { secret: [LOCAL_SECRET, OLD_SECRET] })
  const after = await start(t)

  await assertAccepted(t, during.app, await before.local.issueIdToken(during.adaId), { sub: during.adaId })
  await assertRefused(t, after.app, [['the old secret', await before.local.issueIdToken(after.adaId)]])
  const { token } = (await during.ada.post('/auth/local/token')).json()
  await assertRefused(t, before.app, [['the new secret', token]])
})

t.test('attack 47: without a secret of 32 characters there is no provider, and the error does not show it', async t => {
  setEnv(t, { LOCAL_IDP_SECRET: undefined })
  const short = 'thirty-one characters, one less'

  for (const secret of [undefined, '', short, [], [LOCAL_SECRET, short]]) {
    const { message, stack = '' } = t.throws(() => new LocalIdentityProvider({ secret }), {
      name: 'OptionsError',
      message: /^LocalIdentityProvider: secret must be at least 32 characters/
    }) as Error
    t.notMatch([message, stack].join(), new RegExp(`${short}|${LOCAL_SECRET}`))
  }
})

/** A claim of a good token with another value; undefined for none at all. */
const WRONG_CLAIMS: Record<string, readonly unknown[]> = {
  exp: [undefined, now() - 1, now(), 1, 0, -1, 'soon', `${now() + 3600}`, null, true, [now() + 3600], {}],
  nbf: [now() + 3600, 'now', null, {}, []],
  iat: [undefined, now() + 3600, 'now', `${now()}`, null, true, [now()], {}],
  iss: [undefined, 'another', '', 'svc-auth-local/', 'SVC-AUTH-LOCAL', ['svc-auth-local'], ['svc-auth-local', 'another'], null, 1, {}],
  sub: [undefined, '', 1, 0, null, true, ['ada'], {}],
  jti: [1, null, ['a'], {}],
  aud: ['another', '', null, ['another'], {}],
  purpose: ['invitation', '', null, true, {}]
}

t.test('attack 48: a correctly signed token with wrong claims is refused', async t => {
  const { app, good } = await start(t)
  const without = (name: string) => JSON.stringify({ ...good(), [name]: undefined }).slice(0, -1)

  await assertRefused(t, app, [
    ...Object.entries(WRONG_CLAIMS).flatMap(([name, values]) => values.map(value => [
      `${name} ${JSON.stringify(value)}`,
      forge({ ...good(), [name]: value })
    ] as const)),
    ['exp 1e400', forge(`${without('exp')},"exp":1e400}`)],
    ['iat -1e400', forge(`${without('iat')},"iat":-1e400}`)],
    ['a duplicate sub', forge(JSON.stringify(good()).replace('{', '{"sub":"bob",'))],
    ['a duplicate exp', forge(JSON.stringify(good()).replace('{', '{"exp":1,'))],
    ['a duplicate claim', forge(`${without('x')},"role":"member","role":"admin"}`)],
    ...['', 'null', '1', '"ada"', '[]', '[{}]', 'true', '{', '{"iss":', 'not JSON'].map(text => [`the payload ${text}`, forge(text)] as const)
  ])
})

t.test('attack 48: the token of an unknown user is refused; one whose subject is a program is accepted', async t => {
  const { app, local, adaId, good } = await start(t)
  const hers = forge(good())
  await assertAccepted(t, app, hers, { sub: adaId })
  await app.auth.deleteUser(adaId)

  await assertRefused(
    t,
    app,
    [
      ['an unknown user', forge({ ...good(), sub: randomUUID() })],
      ['a deleted user', hers],
      ['a new token of a deleted user', await local.issueIdToken(adaId)]
    ]
  )
  await assertAccepted(t, app, await local.issueIdToken('nightly-export'), { sub: 'nightly-export' })
})

t.test('attack 49: a header that says more than its algorithm, type and key is refused, and nothing that it names is fetched', async t => {
  const { app, adaId, good } = await start(t)
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const rsa = { ...await exportJWK(publicKey), kid: '1', alg: 'RS256', use: 'sig' }
  const jwk = { kty: 'oct', k: encoded(ATTACKERS_SECRET), kid: '1' }
  const asked: Array<string | undefined> = []
  const url = `http://127.0.0.1:${await listen(t, createServer((request, response) => {
    asked.push(request.url)
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys: [rsa, jwk] }))
  }))}/keys`
  const extras = [
    { kid: null }, { kid: ['1'] }, { jwk }, { jwk, kid: '1' }, { jwk: rsa }, { jku: url }, { jku: url, kid: '1' },
    { jku: 'file:///etc/hostname' }, { x5u: url }, { x5c: ['MIIB'] }, { x5t: 'x' },
    { crit: ['x'], x: 1 }, { crit: [] }, { crit: ['exp'], exp: 1 }, { crit: 'x' }, { b64: false }, { b64: false, crit: ['b64'] }, { b64: true, crit: ['b64'] },
    { cty: 'JWT' }, { zip: 'DEF' }, { enc: 'A128GCM' }, { epk: {} }, { nonce: 'x' }, { Alg: 'none' }
  ]
  // The name of a key is nothing that is looked up.
  const kids = ['1', '../../../../../../dev/null', '/dev/null', "1' UNION SELECT 'x", '1; --', 'k'.repeat(8000), url]
  const headers: unknown[] = [
    ...extras.map(extra => ({ ...HEADER, ...extra })),
    ...['JWS', 'at+jwt', 'logout+jwt', '', null, ['JWT']].map(typ => ({ alg: 'HS256', typ })),
    { typ: 'JWT' },
    {},
    [],
    'null',
    '',
    '"HS256"',
    '{"alg":"HS256","typ":"JWT"'
  ]

  await assertRefused(t, app, [
    ...headers.flatMap((header): Forgeries => {
      const what = `the header ${JSON.stringify(header).slice(0, 60)}`
      return [[what, forge(good(), { header })], [`${what} with a key of his`, forge(good(), { header, secret: ATTACKERS_SECRET })]]
    }),
    ...await Promise.all([{ jku: url, kid: '1' }, { jwk: rsa }, { x5u: url }].map(async extra =>
      [`RS256 with ${Object.keys(extra)[0]}`, await new SignJWT(good()).setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...extra }).sign(privateKey)] as const)),
    ...kids.map((kid): [string, string] => [
      `the kid ${kid.slice(0, 60)} with a key of the attacker`,
      forge(good(), { header: { ...HEADER, kid }, secret: ATTACKERS_SECRET })
    ]),
    ['a token in a token', forge(forge(good()), { header: { ...HEADER, cty: 'JWT' } })],
    ['a token in a token that does not say so', forge(forge(good()))]
  ])
  for (const kid of kids) await assertAccepted(t, app, forge(good(), { header: { ...HEADER, kid } }), { sub: adaId })
  t.strictSame(asked, [], 'no key was fetched')
})

t.test('attack 50: what has not the shape of a token is refused', async t => {
  const { app, good } = await start(t)
  const token = forge(good())
  const [header = '', payload = '', signature = ''] = token.split('.')
  const encrypted = await new EncryptJWT(good()).setProtectedHeader({ alg: 'dir', enc: 'A256GCM' }).encrypt(Buffer.from(LOCAL_SECRET).subarray(0, 32))
  const shapes = [
    '', '.', '..', '...', ' ', '%', 'x', 'token', 'a.b', '.'.repeat(100_000), 'a.'.repeat(50_000),
    'x'.repeat(1_000_000), `${token}${'A'.repeat(1_000_000)}`, `${header}.${'A'.repeat(1_000_000)}.${signature}`,
    encrypted, `${header}..${payload}.${signature}.${signature}`, `${token}.`, `.${token}`, `${token}.${signature}`,
    `${token}.${token}`, `${token},${token}`, `${token} ${token}`,
    `${token}=`, `${token}==`, `${header}=.${payload}.${signature}`, `${header}.${payload}=.${signature}`, `${token}~`, `${token}+`, `${token}/`,
    `${header}.${payload}.${signature.slice(0, -1)}`, `${header}.${payload}.${signature.slice(1)}`, `${token}A`,
    `${token}AAAA`, `${payload}.${header}.${signature}`, token.toUpperCase(), token.toLowerCase(),
    `${token}é`, `ключ.${payload}.${signature}`, token.replace('.', '．'), `${token}\u0000`, `${token}\ufeff`,
    `${header}.${encoded(`{"a":${'['.repeat(5000)}${']'.repeat(5000)}}`)}.${signature}`
  ]

  await assertRefused(t, app, shapes.map(shape => [shape.slice(0, 30), shape]))
  await assertRefused(
    t,
    app,
    [
      ` ${token}`,
      `${token} `,
      `${token}\n`,
      `Bearer ${token}`
    ].map(shape => [JSON.stringify(shape.slice(0, 30)), shape]),
    { 'verify-token': verifyToken }
  )
  for (const authorization of [
    'Bearer', 'Bearer ', 'bearer x', 'Bearer %', 'Bearer %2e%2e', 'Basic YTpi', token, `Token ${token}`,
    `Bearer${token}`, `Bearer:${token}`, `Bearer\t${token}`, `Bearer "${token}"`, `Bearer token=${token}`,
    `Bearer ${token}, Bearer ${token}`, `Basic YTpi, Bearer ${token}`
  ]) {
    const response = await app.inject({ url: '/api', headers: { authorization } })
    // Under another scheme there is no token, and no error to name.
    const challenge = /^bearer\b/i.test(authorization) ? 'Bearer error="invalid_token"' : 'Bearer'
    t.strictSame([response.statusCode, response.headers['www-authenticate']], [401, challenge], authorization.slice(0, 30))
  }
})

t.test('attack 50: a token counts nowhere but in the Authorization header', async t => {
  const { app, good } = await start(t)
  const token = forge(good())

  for (const name of ['token', 'access_token', 'authorization', 'bearer']) {
    t.equal((await app.inject({ url: '/api', query: { [name]: token } })).statusCode, 401, `query ${name}`)
    t.equal((await app.inject({ url: '/api', cookies: { [name]: token } })).statusCode, 401, `cookie ${name}`)
  }
  for (const name of ['proxy-authorization', 'x-authorization', 'x-forwarded-authorization', 'x-access-token']) {
    t.equal((await app.inject({ url: '/api', headers: { [name]: `Bearer ${token}` } })).statusCode, 401, name)
  }
  t.equal(
    (await app.inject({
      method: 'POST',
      url: '/auth/local/verify-token',
      query: { token },
      headers: { authorization: `Bearer ${token}` }
    })).statusCode,
    400
  )
})

t.test('attack 50: a body without a token is an invalid request', async t => {
  const { app, good } = await start(t)
  const deep = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
  const token = forge(good())
  const bodies = [
    '{"token":1}', '{"token":null}', '{"token":true}', `{"token":["${token}"]}`, `{"token":{"token":"${token}"}}`, '{}',
    '[]', 'null', '1', '"x"', `"${token}"`, `[{"token":"${token}"}]`, '', '{', token, `{"token":${deep(100_000)}}`,
    deep(100_000), `{"Token":"${token}"}`, `{"__proto__":{"token":"${token}"}}`
  ]

  for (const payload of bodies) {
    const response = await app.inject({ method: 'POST', url: '/auth/local/verify-token', headers: { 'content-type': 'application/json' }, payload })
    t.strictSame([response.statusCode, response.json().code], [400, 'invalid_request'], payload.slice(0, 30))
  }
})

/** Sends a request as these very bytes; what comes back until the server hangs up. */
async function exchange (port: number, lines: readonly string[], body = ''): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.setEncoding('latin1').on('data', text => { answer += String(text) })
  // A server that has seen enough does not wait for the rest.
  socket.on('error', () => {})
  socket.write([...lines, 'host: app.example', 'connection: close', '', body].join('\r\n'), 'latin1')
  await new Promise(resolve => { socket.on('close', resolve) })
  return answer
}

t.test('attack 50: on the wire, two Authorization headers, odd bytes and a token of a megabyte are refused, and the next request is answered', async t => {
  const { app, adaId, good } = await start(t)
  const port = Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port)
  const header = `authorization: Bearer ${forge(good())}`
  const forged = `authorization: Bearer ${forge(good(), { secret: ATTACKERS_SECRET })}`
  const ask = async (...headers: string[]) => exchange(port, ['GET /api HTTP/1.1', ...headers])
  t.match(await ask(header), new RegExp(`^HTTP/1.1 200 [^]*${adaId}`))

  const attempts: Record<string, string[]> = {
    'the good one last': [forged, header],
    'the good one first': [header, forged],
    'the same one twice': [header, header],
    'another scheme first': ['authorization: Basic YTpi', header],
    'another scheme last': [header, 'authorization: Basic YTpi'],
    'an empty one last': [header, 'Authorization:'],
    'odd bytes': [`${header}\xe9\xff`],
    'a percent sign': ['authorization: Bearer %'],
    'no token': ['authorization: Bearer']
  }
  for (const [what, headers] of Object.entries(attempts)) t.match(await ask(...headers), /^HTTP\/1.1 40[01] /, what)

  const megabyte = 'x'.repeat(1_000_000)
  // Its answer may be lost with the connection, for the server does not read all of that.
  t.match(await ask(`authorization: Bearer ${megabyte}`), /^($|HTTP\/1.1 431 )/)
  const body = JSON.stringify({ token: megabyte })
  t.match(
    await exchange(
      port,
      ['POST /auth/local/verify-token HTTP/1.1', 'content-type: application/json', `content-length: ${body.length}`],
      body
    ),
    /^HTTP\/1.1 401 [^]*invalid_token/
  )
  t.match(await ask(header), /^HTTP\/1.1 200 /)
})

t.test('attack 51: a token is taken where it was made for, and nowhere else', async t => {
  const { app, local, ada, adaId } = await start(t)
  const made = async (use: TokenUse) => local.issueIdToken(adaId, {}, 60, use)
  const tokens: Array<[what: string, token: string, good: string[]]> = [
    ['the one of a user', (await ada.post('/auth/local/token')).json().token, ['verify-token', 'requireBearer']],
    ['an invitation', await made(INVITATION), ['requireBearerFor a purpose']],
    ["a machine's", await made(FOR_REPORTS), ['requireBearerFor an audience']],
    ['an invitation to reports', await made({ ...INVITATION, ...FOR_REPORTS }), []],
    ['one of another purpose', await made({ purpose: 'pre-auth' }), []],
    ['one for another service', await made({ audience: 'billing' }), []],
    ['one with both mixed up', await made({ purpose: 'reports', audience: 'invitation' }), []]
  ]

  for (const [what, token, good] of tokens) {
    const here = Object.fromEntries(Object.entries(ALL_TARGETS).filter(([target]) => good.includes(target)))
    const elsewhere = Object.fromEntries(Object.entries(ALL_TARGETS).filter(([target]) => !good.includes(target)))
    await assertAccepted(t, app, token, { sub: adaId }, here)
    await assertRefused(t, app, [[what, token]], elsewhere)
  }
})

t.test('attack 51: a purpose that a client writes into a token is refused', async t => {
  const { app, good } = await start(t)
  const uses = [
    { purpose: ['invitation'] },
    { aud: ['others', 'reports/'] },
    { purpose: 'invitation', aud: 'reports' },
    { purpose: 'Invitation' },
    { purpose: 'invitation ' },
    { audience: 'reports' },
    { aud: 'reports/' }
  ]
  const own = [INVITATION, { aud: 'reports' }, {}]

  await assertRefused(t, app, [
    ...uses.map(use => [JSON.stringify(use), forge({ ...good(), ...use, ...('audience' in use && { purpose: 'x' }) })] as const),
    ...own.map(use => [`his own ${JSON.stringify(use)}`, forge({ ...good(), ...use }, { secret: ATTACKERS_SECRET })] as const)
  ], ALL_TARGETS)
})

t.test('attack 51: a user of another application with the same secret is unknown, and with another issuer no token counts', async t => {
  const { app } = await start(t)
  const twin = await start(t)
  const other = await start(t, { issuer: 'another' })
  const tokenOf = async ({ ada }: TokenApp): Promise<string> => (await ada.post('/auth/local/token')).json().token

  await assertRefused(t, app, [
    ['a user of the other application', await tokenOf(twin)],
    ['a user of an application with another issuer', await tokenOf(other)],
    ['a program of an application with another issuer', await other.local.issueIdToken('nightly-export')]
  ])
})

const CONFIRMATIONS = [{ jkt: 'the thumbprint of a key' }, { 'x5t#S256': 'that of a certificate' }, {}, null, true]

t.test('attack 156: a token that is bound to a key is not taken as that of its bearer', async t => {
  const { app, good } = await start(t)
  for (const [target, show] of Object.entries(ALL_TARGETS)) {
    const use = { 'requireBearerFor a purpose': INVITATION, 'requireBearerFor an audience': { aud: 'reports' } }[target]
    await assertAccepted(t, app, forge({ ...good(), ...use }), {}, { [target]: show })
    await assertRefused(
      t, app, CONFIRMATIONS.map(cnf => [JSON.stringify(cnf), forge({ ...good(), ...use, cnf })] as const), { [target]: show }
    )
  }
})

t.test('attack 156: the subject of a token of another server is not a user here, and a key that it is bound to counts', async t => {
  const events = eventsOf(t, 'grant')
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const issuer = 'https://login.example'
  const keys = [{ ...await exportJWK(publicKey), alg: 'ES256' }]
  const verifier = new TokenVerifier({ issuer, keys, audience: 'reports', algorithms: ['ES256'] })
  const local = localProvider()
  const app = await startApp(t, { baseUrl: 'https://app.example', local }, {}, app => {
    const { requireBearer, requireBearerFor, requireVerified } = app.auth
    for (const [path, guard] of Object.entries({
      plain: requireBearer, local: requireBearerFor(FOR_REPORTS), foreign: requireBearerFor({ ...FOR_REPORTS, verifier })
    })) {
      app.post<{ Params: { userId: string } }>(`/${path}/:userId`, { preHandler: guard }, async request =>
        app.auth.grant(request.params.userId, { role: 'member' }, { request }))
      app.post(`/${path}/verified`, { preHandler: [guard, requireVerified] }, async ({ token }) => token)
      app.post(`/${path}/either`, { preHandler: app.auth.anyOf(requireBearerFor({ purpose: 'none' }), guard) }, async request =>
        app.auth.grant(request.token?.sub ?? '', { role: 'member' }, { request }))
    }
  })
  const { userId } = await app.auth.createUser({ ...ADA, emailVerified: true })
  const browser = new Browser(app)
  await browser.post('/auth/local/login', ADA)
  const foreign = async (claims: object): Promise<string> =>
    new SignJWT({ iss: issuer, aud: 'reports', sub: userId, iat: now(), exp: now() + 60, ...claims }).setProtectedHeader({ alg: 'ES256' }).sign(privateKey)
  const tokens = {
    plain: await local.issueIdToken(userId), local: await local.issueIdToken(userId, {}, 60, FOR_REPORTS), foreign: await foreign({})
  }

  for (const [path, token] of Object.entries(tokens)) {
    // The cookie of the user beside it changes nothing: the token counts.
    const ask = async (what: string): Promise<LightMyRequestResponse> =>
      browser.post(`/${path}/${what}`, undefined, { authorization: `Bearer ${token}` })
    const actor = path === 'foreign' ? undefined : userId
    events.length = 0
    t.equal((await ask(userId)).statusCode, 200, path)
    t.equal((await ask('either')).statusCode, 200, path)
    t.strictSame(events.map(event => event.actor), [actor, actor], path)
    t.equal((await ask('verified')).statusCode, path === 'foreign' ? 403 : 200, path)
  }
  for (const cnf of CONFIRMATIONS) {
    const bound = await foreign({ cnf })
    const refused = await app.inject({ method: 'POST', url: `/foreign/${userId}`, headers: { authorization: `Bearer ${bound}` } })
    t.match([refused.statusCode, refused.headers['www-authenticate']], [401, /^Bearer error="invalid_token"/])
    await t.rejects(verifier.verify(bound), { code: 'invalid_token' })
  }
})

t.test('attack 52: claims that only the issuer may set, or that are not data, make no token', async t => {
  const { local, adaId } = await start(t)
  const cycle: Record<string, unknown> = {}
  cycle.self = cycle
  const odd: unknown[] = [
    ...['sub', 'iss', 'exp', 'iat', 'nbf', 'jti', 'aud', 'purpose'].map(name => ({ [name]: 'x' })),
    JSON.parse('{"__proto__":{"admin":true}}'), JSON.parse('{"a":{"__proto__":{"admin":true}}}'), { constructor: 1 }, { prototype: 1 },
    { toJSON: () => ({ sub: 'bob' }) }, { a: { toJSON: () => 'b' } }, { a: 1n }, cycle, { a: new Date() }, { a: NaN },
    { a: undefined }, { a: '\0' }, [], 'role', null, new Map(), { a: 'x'.repeat(20_000) }
  ]

  for (const claims of odd) await t.rejects(local.issueIdToken(adaId, claims as ExtraClaims), { name: 'AuthError', code: 'invalid_claims', statusCode: 400 })
  t.notOk('admin' in {})
})

t.test('attack 52: a lifetime that is out of bounds makes no token', async t => {
  const { local, adaId } = await start(t)
  for (const ttl of [0, -1, 0.5, NaN, Infinity, '900', 1e12, null, 900n, [900]] as number[]) {
    await t.rejects(local.issueIdToken(adaId, {}, ttl), { name: 'AuthError', code: 'invalid_ttl', statusCode: 400 })
  }
})

t.test('attack 52: claims that were granted never stand for what the issuer says', async t => {
  const { app, ada, adaId, good } = await start(t)
  const granted = { iss: 'another', iat: 1, exp: now() + 1e9, nbf: now() + 3600, jti: 'x', aud: 'reports', purpose: 'invitation', role: 'admin' }
  await app.auth.grant(adaId, granted)

  const { token } = (await ada.post('/auth/local/token')).json()

  const { iat = 0, exp, ...claims } = decodeJwt(token)
  t.equal(exp, iat + 900)
  const { auth_time: authTime } = claims
  t.type(authTime, 'number')
  t.strictSame(claims, {
    iss: good().iss, sub: adaId, jti: claims.jti, email: ADA.email, name: 'Ada', role: 'admin', auth_time: authTime, amr: ['pwd'], svc_generation: 0
  })
  t.not(claims.jti, 'x')
  await assertAccepted(t, app, token, { sub: adaId })
})

for (const [name, createSessions] of SOME_SESSION_STORES) {
  t.test(`the rules hold with ${name}`, async t => {
    t.test('attack 53: the token route issues the same token whatever the body asks for', async t => {
      const { ada, adaId } = await start(t, {}, createSessions())
      const wishes = {
        sub: 'eve',
        ttl: 1e6,
        exp: now() + 1e9,
        role: 'admin',
        purpose: 'invitation',
        audience: 'reports',
        aud: 'x',
        claims: { role: 'admin' },
        email: 'eve@example.com',
        userId: randomUUID()
      }
      const responses = [await ada.post('/auth/local/token'), await ada.post('/auth/local/token', wishes), await ada.submit(
        '/auth/local/token',
        { sub: 'eve', ttl: '1000000', role: 'admin' }
      ),
      await ada.post(`/auth/local/token?${new URLSearchParams({ sub: 'eve', ttl: '1000000', role: 'admin' })}`)]

      for (const response of responses) {
        t.equal(response.statusCode, 200)
        t.equal(response.json().expires_in, 900)
        const { iat = 0, exp, jti, ...claims } = decodeJwt(response.json().token)
        t.equal(exp, iat + 900)
        const { auth_time: authTime } = claims
        t.type(authTime, 'number')
        t.strictSame(claims, { iss: 'svc-auth-local', sub: adaId, email: ADA.email, name: 'Ada', auth_time: authTime, amr: ['pwd'], svc_generation: 0 })
      }
    })

    t.test('attack 53: a user who is anonymous, signed out or deleted gets no token', async t => {
      const { app, ada, adaId } = await start(t, {}, createSessions())
      const stolen = new Browser(app, ada.cookies)
      const { token } = (await ada.post('/auth/local/token')).json()
      const refused = async (browser: Browser, what: string) => {
        const response = await browser.post('/auth/local/token', { sub: adaId })
        t.strictSame([response.statusCode, response.json().code, response.headers['cache-control']], [401, 'unauthenticated', 'no-store, no-transform'], what)
      }

      await refused(new Browser(app), 'anonymous')
      await refused(new Browser(app, new Map([['svc_session', 'made-up.signature']])), 'a made-up cookie')
      await ada.post('/auth/local/revoke')
      await refused(stolen, 'the cookie of before')
      const again = new Browser(app)
      await again.post('/auth/local/login', ADA)
      await app.auth.deleteUser(adaId)
      await refused(again, 'deleted')
      await assertRefused(t, app, [['a token of before', token]])
    })

    t.test('attack 53: a page of another origin gets no token, and no GET does', async t => {
      const { ada } = await start(t, {}, createSessions())
      const foreign: Array<Record<string, string>> = [
        { origin: 'https://evil.test' },
        { origin: 'null' },
        { origin: 'http://app.example' },
        { origin: 'https://blog.app.example' },
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site' }
      ]

      for (const headers of foreign) {
        const response = await ada.post('/auth/local/token', undefined, headers)
        t.strictSame([response.statusCode, response.json().code], [403, 'cross_origin'], JSON.stringify(headers))
        t.notMatch(Object.keys(response.headers).join(), 'access-control-')
      }
      t.equal((await ada.get('/auth/local/token')).statusCode, 404)
      t.equal((await ada.send({ method: 'HEAD', url: '/auth/local/token' })).statusCode, 404)
    })

    t.test('attack 53: caches keep no answer of the plugin', async t => {
      const { app, ada } = await start(t, {}, createSessions())
      const { token } = (await ada.post('/auth/local/token')).json()
      const callback = await leaveFor(ada, '/auth/mine/login', { subject: 'ada-1' })
      const responses = {
        'a token': await ada.post('/auth/local/token'),
        'no token': await new Browser(app).post('/auth/local/token'),
        'a token that is verified': await verifyToken(app, token),
        'a token that is not': await verifyToken(app, 'a.b.c'),
        'a login': await ada.post('/auth/local/login', ADA),
        'a login by form': await ada.submit('/auth/local/login', ADA),
        'a failed login': await ada.post('/auth/local/login', { ...ADA, password: 'wrong horse' }),
        'a failed registration': await ada.post('/auth/local/register', ADA),
        'a start': await ada.get('/auth/mine/login'),
        'a callback': await ada.get(callback),
        'a callback again': await ada.get(callback),
        'a sign-out': await ada.post('/auth/local/revoke')
      }

      for (const [what, { statusCode, headers }] of Object.entries(responses)) {
        t.equal(headers['cache-control'], 'no-store, no-transform', `${what}: ${statusCode}`)
      }
    })
  })
}
