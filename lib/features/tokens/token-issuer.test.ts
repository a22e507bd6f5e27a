import { createHmac, generateKeyPairSync } from 'node:crypto'
import { SignJWT, UnsecuredJWT, decodeJwt, decodeProtectedHeader } from 'jose'
import t from 'tap'
import type { Claims } from '../../claims.js'
import { type ExtraClaims, TokenIssuer, withoutReservedClaims } from './token-issuer.js'
import type { TokenUse } from './token-claims.js'
import { keysOfSecrets } from './token-keys.js'
import { advanceClock } from '../../../test/helpers/clock.js'

const SECRET = 'the local secret of these tests, 32+'
const INVALID = { name: 'AuthError', code: 'invalid_token', statusCode: 401 }
const HEADER = { alg: 'HS256', typ: 'JWT' }

const issuer = new TokenIssuer('svc-auth-local', keysOfSecrets([SECRET]))

const now = () => Math.floor(Date.now() / 1000)
const good = () => ({ iss: 'svc-auth-local', sub: 'ada', iat: now(), exp: now() + 60, jti: 'a token' })
const encoded = (part: unknown) => Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url')

/** Signs whatever it is given, as somebody would who has the key, or a key. */
function forge (payload: unknown, { header = HEADER, secret = SECRET, hash = 'sha256' }: { header?: unknown, secret?: string, hash?: string } = {}): string {
  const input = `${encoded(header)}.${encoded(payload)}`
  return `${input}.${createHmac(hash, secret).update(input).digest('base64url')}`
}

t.test('an issued token carries the claims, and is verified', async t => {
  const before = now()
  const token = await issuer.issue('ada', { role: 'admin', scopes: ['a'], nested: { b: null } }, 900, {})

  const claims = await issuer.verify(token, {})

  t.strictSame(claims, decodeJwt(token))
  t.match(claims, { iss: 'svc-auth-local', sub: 'ada', role: 'admin', scopes: ['a'], nested: { b: null }, jti: /^[0-9a-f-]{36}$/ })
  t.ok(claims.iat >= before && claims.iat <= now())
  t.equal(claims.exp, claims.iat + 900)
  t.strictSame(Object.keys(claims).sort(), ['exp', 'iat', 'iss', 'jti', 'nested', 'role', 'scopes', 'sub'])
  t.strictSame(decodeProtectedHeader(token), HEADER)
})

t.test('whatever claims a token was issued with, it is verified', async t => {
  const claims = {
    1: 'a number as name',
    b: 1,
    0: 'and a smaller one',
    'a b': -0,
    large: 1e21,
    small: 5e-324,
    fraction: 0.1,
    text: 'ünïcödé 👩‍💻 \u2028 \ufeff " \\ / \u0001',
    '': '',
    toString: 'a',
    list: [{ 2: 'b', a: 1 }, []],
    toJSON: null
  }

  const verified = await issuer.verify(await issuer.issue('ünïcödé', claims, 900, {}), {})

  t.hasStrict(verified, { ...claims, 'a b': 0, sub: 'ünïcödé' })
})

t.test('every token has a jti of its own', async t => {
  const tokens = await Promise.all(Array.from({ length: 10 }, () => issuer.issue('ada', {}, 900, {})))

  t.equal(new Set(tokens.map(token => decodeJwt(token).jti)).size, 10)
})

t.test('what these tests forge is refused for what is wrong with it: without a mistake it is good', async t => {
  t.match(await issuer.verify(forge(good()), {}), { sub: 'ada' })
})

t.test('a token that another library signed with the same secret and issuer is verified', async t => {
  const escaped = JSON.stringify({ ...good(), name: 'Ada é' }).replace('Ada', '\\u0041da').replace('é', '\\u00e9')
  const tokens = {
    'with the header in another order': forge(good(), { header: { typ: 'JWT', alg: 'HS256' } }),
    'with a key id': forge(good(), { header: { ...HEADER, kid: '2026-11' } }),
    'with a key id that looks like a path': forge(good(), { header: { ...HEADER, kid: '../../../dev/null' } }),
    'without a type': forge(good(), { header: { alg: 'HS256' } }),
    'with a type in small letters': forge(good(), { header: { alg: 'HS256', typ: 'jwt' } }),
    'with a type in full': forge(good(), { header: { alg: 'HS256', typ: 'application/jwt' } }),
    'with escapes': forge(escaped),
    'with spaces between its claims': forge(JSON.stringify(good(), null, 2)),
    'with times that are fractions': forge({ ...good(), iat: now() + 0.25, exp: now() + 60.5 }),
    'with a time that is written as a fraction': forge(JSON.stringify(good()).replace(/"exp":(\d+)/, '"exp":$1.0')),
    'without a jti': forge({ ...good(), jti: undefined }),
    'with quotes, colons and braces in its claims': forge({ ...good(), 'a "b": {': 'c": "d', list: ['"e":', { f: '\\":' }] }),
    'of jose': await new SignJWT({})
      .setProtectedHeader({ alg: 'HS256' })
      .setIssuer('svc-auth-local')
      .setSubject('ada')
      .setIssuedAt()
      .setExpirationTime('1m')
      .sign(Buffer.from(SECRET))
  }

  for (const [what, token] of Object.entries(tokens)) {
    t.match(await issuer.verify(token, {}), { sub: 'ada' }, what)
    t.strictSame(await issuer.verify(token, {}), decodeJwt(token), `${what}, remembered`)
  }
  t.match(await issuer.verify(tokens['with escapes'], {}), { name: 'Ada é' })
})

t.test('a clock that is up to five seconds behind the one of the issuer verifies its tokens', async t => {
  for (const name of ['iat', 'nbf']) {
    t.match(await issuer.verify(forge({ ...good(), [name]: now() + 4 }), {}), { sub: 'ada' }, name)
    await t.rejects(issuer.verify(forge({ ...good(), [name]: now() + 7 }), {}), INVALID, name)
  }
})

t.test('attack 48: a token expires to the millisecond, without leeway', async t => {
  const exp = Date.now() / 1000 + 0.1
  const token = forge({ ...good(), exp })
  t.match(await issuer.verify(token, {}), { exp })

  advanceClock(t, 101)

  await t.rejects(issuer.verify(token, {}), INVALID)
  await t.rejects(issuer.verify(forge({ ...good(), exp }), {}), INVALID, 'one that was not seen before')
})

t.test('attack 46: a token without a signature of the issuer is refused, however alg is spelled', async t => {
  const signature = forge(good()).split('.')[2]
  const tokens = [
    new UnsecuredJWT(good()).encode(),
    ...['none', 'None', 'nOnE', 'NONE', '', null, undefined, 'hs256', 'HS256 ', ['HS256']].flatMap(alg => {
      const header = { alg, typ: 'JWT' }
      const input = `${encoded(header)}.${encoded(good())}`
      return [`${input}.`, input, `${input}.${signature}`, forge(good(), { header }), forge(good(), { header, secret: '' })]
    }),
    forge(good()).split('.').slice(0, 2).join('.'),
    `${forge(good()).split('.').slice(0, 2).join('.')}.`
  ]

  for (const token of tokens) await t.rejects(issuer.verify(token, {}), INVALID, token.slice(0, 60))
})

t.test('attack 47: other algorithms are refused, with the secret of the issuer and with keys of their own', async t => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  const secret = Buffer.from(SECRET)
  const sign = (alg: string, key: Parameters<SignJWT['sign']>[0]) => new SignJWT(good()).setProtectedHeader({ alg, typ: 'JWT' }).sign(key)
  const tokens = [
    forge(good(), { header: { alg: 'HS384', typ: 'JWT' }, hash: 'sha384' }),
    forge(good(), { header: { alg: 'HS512', typ: 'JWT' }, hash: 'sha512' }),
    forge(good(), { hash: 'sha512' }),
    await sign('HS512', Buffer.concat([secret, Buffer.alloc(32)])),
    await sign('RS256', rsa),
    await sign('PS256', rsa),
    await sign('ES256', ec),
    ...['HS384', 'HS512', 'RS256', 'ES256', 'PS256', 'EdDSA', 'dir'].map(alg => forge(good(), { header: { alg, typ: 'JWT' } }))
  ]

  for (const token of tokens) await t.rejects(issuer.verify(token, {}), INVALID)
})

t.test('attack 47: a token signed with another secret is refused', async t => {
  for (const secret of [
    '', SECRET.slice(0, 31), `${SECRET} `, SECRET.toUpperCase(), 'the-session-secret-of-the-tests-32+', '0'.repeat(64),
    `${SECRET}\u0000`.repeat(2)
  ]) {
    await t.rejects(issuer.verify(forge(good(), { secret }), {}), INVALID)
  }
})

t.test('attack 47: the first of several secrets signs and all verify, until one is removed', async t => {
  const old = 'the secret of the year before last, 32+'
  const older = 'the secret of the year before that, 32+'
  const before = new TokenIssuer('svc-auth-local', keysOfSecrets([old, older]))
  const during = new TokenIssuer('svc-auth-local', keysOfSecrets([SECRET, old]))
  const after = new TokenIssuer('svc-auth-local', keysOfSecrets([SECRET]))

  const oldToken = await before.issue('ada', {}, 900, {})
  const newToken = await during.issue('ada', {}, 900, {})

  t.match(await before.verify(forge(good(), { secret: older }), {}), { sub: 'ada' })
  t.match(await during.verify(oldToken, {}), { sub: 'ada' })
  t.match(await during.verify(newToken, {}), { sub: 'ada' })
  t.match(await after.verify(newToken, {}), { sub: 'ada' }, 'the first one signs')
  await t.rejects(after.verify(oldToken, {}), INVALID)
  await t.rejects(during.verify(forge(good(), { secret: older }), {}), INVALID)
  await t.rejects(before.verify(newToken, {}), INVALID)
})

const WITHOUT = Symbol('absent')

/** A good token's claims with some of them wrong; numbers that JSON.stringify cannot write are in the text. */
const WRONG_CLAIMS: Array<[what: string, payload: () => unknown]> = [
  ...['iss', 'sub', 'iat', 'exp'].map((name): [string, () => unknown] => [`no ${name}`, () => ({ ...good(), [name]: undefined })]),
  ['exp of a second ago', () => ({ ...good(), exp: now() - 1 })],
  ['exp of this second', () => ({ ...good(), exp: now() })],
  ['exp long ago', () => ({ ...good(), exp: 1 })],
  ...[
    'soon', `${now() + 60}`, null, true, [now() + 60], {}, 0, -1
  ].map((exp): [string, () => unknown] => [`exp ${JSON.stringify(exp)}`, () => ({ ...good(), exp })]),
  ['exp 1e400', () => JSON.stringify({ ...good(), exp: WITHOUT }).replace(/}$/, ',"exp":1e400}')],
  ['iat in a minute', () => ({ ...good(), iat: now() + 60 })],
  ...['now', `${now()}`, null, true, [now()], {}].map((iat): [string, () => unknown] => [`iat ${JSON.stringify(iat)}`, () => ({ ...good(), iat })]),
  ['iat 1e400', () => JSON.stringify({ ...good(), iat: WITHOUT }).replace(/}$/, ',"iat":1e400}')],
  ['iat -1e400', () => JSON.stringify({ ...good(), iat: WITHOUT }).replace(/}$/, ',"iat":-1e400}')],
  ['nbf in a minute', () => ({ ...good(), nbf: now() + 60 })],
  ...['now', null, {}].map((nbf): [string, () => unknown] => [`nbf ${JSON.stringify(nbf)}`, () => ({ ...good(), nbf })]),
  ...[
    'another', '', 'svc-auth-local/', 'SVC-AUTH-LOCAL', ['svc-auth-local'], ['svc-auth-local', 'another'], null, {}, 1
  ].map((iss): [string, () => unknown] => [`iss ${JSON.stringify(iss)}`, () => ({ ...good(), iss })]),
  ...['', 1, 0, null, true, ['ada'], {}].map((sub): [string, () => unknown] => [`sub ${JSON.stringify(sub)}`, () => ({ ...good(), sub })]),
  ...[1, null, ['a'], {}].map((jti): [string, () => unknown] => [`jti ${JSON.stringify(jti)}`, () => ({ ...good(), jti })]),
  ...['x', '', null, ['x'], {}].map((aud): [string, () => unknown] => [`aud ${JSON.stringify(aud)}`, () => ({ ...good(), aud })]),
  ...['x', '', null, true, {}].map((purpose): [string, () => unknown] => [`purpose ${JSON.stringify(purpose)}`, () => ({ ...good(), purpose })]),
  ['a duplicate claim in a claim', () => JSON.stringify({ ...good(), a: { b: 1 } }).replace('"b":1', '"b":1,"b":2')],
  ['a duplicate claim in an escape', () => JSON.stringify({ ...good(), a: 1 }).replace('}', ',"\\u0061":2}')],
  ['a duplicate sub', () => JSON.stringify(good()).replace('{', '{"sub":"bob",')],
  ['a duplicate exp', () => JSON.stringify(good()).replace('{', '{"exp":1,')],
  ...['', 'null', '1', '"ada"', '[]', '[{}]', 'true', '{', '{"iss":', 'not JSON'].map((text): [string, () => unknown] => [`the payload ${text}`, () => text])
]

for (const [what, payload] of WRONG_CLAIMS) {
  t.test(`attack 48: a token of the issuer with ${what} is refused`, async t => {
    await t.rejects(issuer.verify(forge(payload()), {}), INVALID)
  })
}

t.test('attack 48: bytes that are not UTF-8 are refused', async t => {
  const claims = `${JSON.stringify(good()).slice(0, -1)},"a":"`
  const payload = Buffer.concat([Buffer.from(claims), Buffer.from([0xff, 0xfe]), Buffer.from('"}')])
  const input = `${encoded(HEADER)}.${payload.toString('base64url')}`

  await t.rejects(issuer.verify(`${input}.${createHmac('sha256', SECRET).update(input).digest('base64url')}`, {}), INVALID)
})

t.test('attack 49: a header that says more than its algorithm, type and key is refused', async t => {
  const jwk = { kty: 'oct', k: Buffer.from('a key of the attacker, 32 and more').toString('base64url') }
  const extras = [
    { kid: null }, { kid: ['1'] }, { kid: {} }, { kid: '1', jwk }, { jwk }, { jku: 'http://127.0.0.1:9/keys' }, { x5u: 'http://127.0.0.1:9/cert' },
    { x5c: ['MIIB'] }, { x5t: 'x' }, { crit: ['x'], x: 1 }, { crit: [] }, { b64: false }, { b64: false, crit: ['b64'] },
    { b64: true }, { cty: 'JWT' }, { zip: 'DEF' }, { enc: 'A128GCM' }, { epk: {} }, { nonce: 'x' }
  ]
  const headers = [
    ...extras.map(extra => ({ ...HEADER, ...extra })),
    ...['JWS', 'at+jwt', 'jwt ', 'logout+jwt', '', null, ['JWT'], {}].map(typ => ({ alg: 'HS256', typ })),
    { typ: 'JWT' },
    { ...HEADER, Alg: 'none' },
    {},
    [],
    'null',
    '',
    '"HS256"',
    '{"alg":"HS256","typ":"JWT"'
  ]

  for (const header of headers) {
    await t.rejects(issuer.verify(forge(good(), { header }), {}), INVALID, JSON.stringify(header).slice(0, 80))
    await t.rejects(issuer.verify(forge(good(), { header, secret: 'a key of the attacker, 32 and more' }), {}), INVALID)
  }
})

t.test('attack 49: a token inside a token is refused', async t => {
  await t.rejects(issuer.verify(forge(forge(good()), { header: { ...HEADER, cty: 'JWT' } }), {}), INVALID)
  await t.rejects(issuer.verify(forge(forge(good())), {}), INVALID)
})

t.test('attack 50: what has not the shape of a token is refused', async t => {
  const token = forge(good())
  const [header, payload, signature = ''] = token.split('.')
  const shapes: unknown[] = [
    undefined, null, 1, true, {}, [], [token], { token }, { toString: () => token }, Buffer.from(token),
    '', '.', '..', '...', ' ', 'token', 'a.b', 'a.b.c', '.'.repeat(100_000), 'a.'.repeat(50_000), 'x'.repeat(1_000_000), `${token}${'A'.repeat(1_000_000)}`,
    `${token}.`, `.${token}`, `${token}.${signature}`, `${token}.${header}.${payload}`,
    `${header}..${payload}.${signature}.${signature}`, `${header}.${payload}.${signature}.${payload}.${signature}`,
    `${token}=`, `${token}==`, `${header}=.${payload}.${signature}`, `${header}.${payload}=.${signature}`,
    ` ${token}`, `${token} `, `${token}\n`, `${token}\u0000`, `Bearer ${token}`, `${header}.${payload}. ${signature}`,
    `${header}.${payload}.${signature.slice(0, 10)} ${signature.slice(10)}`,
    token.replace('.', '．'), `${token}é`, `${token}\ud800`, `${header}.${payload}.${signature}+`, `${header}.${payload}.${signature}/`,
    `${header}.${payload}.${signature.slice(0, -1)}`, `${header}.${payload}.${signature.slice(1)}`,
    `${header}.${payload}.${signature}A`, `${header}.${payload}.${signature}AAAA`, `${payload}.${header}.${signature}`,
    `${header}.${encoded({ ...good(), sub: 'bob' })}.${signature}`, `${encoded({ typ: 'JWT', alg: 'HS256', kid: '1' })}.${payload}.${signature}`,
    `${encoded(HEADER)}.${encoded(`{"a":${'['.repeat(4000)}${']'.repeat(4000)}}`)}.${signature}`
  ]

  for (const shape of shapes) await t.rejects(issuer.verify(shape, {}), INVALID)
})

t.test('attack 50: a token of 16384 characters is looked at, a longer one is not', async t => {
  const withPadding = (length: number) => forge({ ...good(), padding: 'a'.repeat(length) })
  const around = Array.from({ length: 400 }, (_, index) => withPadding(12_000 + index)).sort((a, b) => a.length - b.length)
  const longest = around.findLast(token => token.length <= 16_384)
  const next = around.find(token => token.length > 16_384)

  t.match(await issuer.verify(longest, {}), { sub: 'ada' })
  await t.rejects(issuer.verify(next, {}), INVALID)
})

t.test('claims that make a token too long to be verified make no token', async t => {
  await t.rejects(issuer.issue('ada', { text: 'a'.repeat(20_000) }, 900, {}), { name: 'AuthError', code: 'invalid_claims' })
})

t.test('attack 51: a token is good for the use that it was made for, and for no other', async t => {
  const uses: TokenUse[] = [
    {},
    { purpose: 'invitation' },
    { purpose: 'pre-auth' },
    { audience: 'reports' },
    { audience: 'invitation' },
    { purpose: 'invitation', audience: 'reports' },
    { purpose: 'invitation', audience: 'billing' }
  ]

  for (const [made, use] of uses.entries()) {
    const token = await issuer.issue('ada', {}, 900, use)
    for (const [named, other] of uses.entries()) {
      if (made === named) {
        t.match(await issuer.verify(token, other), {
          sub: 'ada',
          ...(use.purpose && { purpose: use.purpose }),
          ...(use.audience && { aud: use.audience })
        })
      } else await t.rejects(issuer.verify(token, other), INVALID, `${JSON.stringify(use)} is not ${JSON.stringify(other)}`)
    }
  }
})

t.test('attack 51: a token of another application with the same secret and another issuer is refused', async t => {
  const other = new TokenIssuer('another', keysOfSecrets([SECRET]))

  await t.rejects(issuer.verify(await other.issue('ada', {}, 900, {}), {}), INVALID)
  await t.rejects(other.verify(await issuer.issue('ada', {}, 900, {}), {}), INVALID)
})

t.test('attack 51: a use that says nothing makes no token', async t => {
  const token = await issuer.issue('ada', {}, 900, {})
  for (const use of [
    { purpose: undefined },
    { purpose: 'export', audience: undefined },
    { purpose: '' },
    { audience: '' },
    { purpose: 1 },
    { audience: ['reports'] },
    { purpose: null },
    { audience: {} }
  ]) {
    await t.rejects(issuer.issue('ada', {}, 900, use as TokenUse), {
      name: 'OptionsError',
      message: /^(purpose|audience) must be a non-empty string, or left out$/
    })
    await t.rejects(issuer.verify(token, use as TokenUse), { name: 'OptionsError' })
  }
  for (const use of [null, 'export', ['export'], { purpos: 'export' }, { purpose: 'export', aud: 'reports' }]) {
    await t.rejects(issuer.issue('ada', {}, 900, use as TokenUse), { name: 'OptionsError', message: /^the use of a token/ })
    await t.rejects(issuer.verify(token, use as TokenUse), { name: 'OptionsError', message: /^the use of a token/ })
  }
})

t.test('attack 52: claims that the issuer sets cannot be given', async t => {
  for (const name of ['iss', 'sub', 'iat', 'exp', 'jti', 'nbf', 'aud', 'purpose']) {
    for (const value of ['x', 1, null]) {
      await t.rejects(issuer.issue('ada', { role: 'member', [name]: value }, 900, {}), {
        name: 'AuthError',
        code: 'invalid_claims',
        message: `"${name}" is set by the issuer and cannot be an extra claim.`
      })
    }
  }
})

t.test("the claims of a principal make a token when their sub is the user id, and are refused with advice when it is a provider's", async t => {
  const claims: Claims = { sub: 'ada', email: 'ada@example.com', role: 'admin' }

  t.match(await issuer.verify(await issuer.issue('ada', claims, 900, {}), {}), { sub: 'ada', email: 'ada@example.com', role: 'admin' })
  for (const sub of ['google-123', '', 'Ada']) {
    await t.rejects(issuer.issue('ada', { ...claims, sub }, 900, {}), {
      code: 'invalid_claims',
      message: 'pass the other claims of a principal: const { sub, ...claims } = principal.claims.'
    })
  }
})

t.test('attack 52: claims that are not plain JSON data make no token', async t => {
  const cycle: Record<string, unknown> = {}
  cycle.self = cycle
  const odd: unknown[] = [
    JSON.parse('{"__proto__":{"admin":true}}'), JSON.parse('{"constructor":{"prototype":{"admin":true}}}'), { prototype: 1 },
    { a: 1n }, cycle, { toJSON: () => ({ sub: 'bob' }) }, { a: { toJSON: () => 'b' } }, { a: new Date() },
    { a: undefined }, { a: NaN }, { a: Infinity }, { a: () => {} }, { a: Symbol('a') }, { a: '\ud800' },
    { a: '\u0000' },
    [], 'role', null, 1, new Map(), new (class { role = 'admin' })()
  ]

  for (const claims of odd) await t.rejects(issuer.issue('ada', claims as ExtraClaims, 900, {}), { name: 'AuthError', code: 'invalid_claims', statusCode: 400 })
  t.notOk('admin' in {})
})

t.test('attack 52: a lifetime is a number of seconds from one to thirty days', async t => {
  for (const ttl of [0, -1, 0.5, NaN, Infinity, -Infinity, '900', 1e12, 2_592_001, null, undefined, 900n, [900], {}]) {
    await t.rejects(issuer.issue('ada', {}, ttl as number, {}), { name: 'AuthError', code: 'invalid_ttl', statusCode: 400 })
  }
  for (const [ttl, lifetime] of [[1, 1], [2_592_000, 2_592_000], [1.5, 2], [59.2, 60]] as const) {
    const { exp = 0, iat = 0 } = decodeJwt(await issuer.issue('ada', {}, ttl, {}))
    t.equal(exp - iat, lifetime)
  }
})

t.test('a token needs a subject', async t => {
  for (const userId of ['', undefined, null, 1, {}, ['ada']]) {
    await t.rejects(issuer.issue(userId as string, {}, 900, {}), { name: 'AuthError', code: 'invalid_claims', message: 'userId must be a non-empty string.' })
  }
})

t.test('claims of a principal that only the issuer may set are left out', async t => {
  const claims = {
    sub: 'x',
    iss: 'x',
    iat: 1,
    exp: 1,
    jti: 'x',
    nbf: 1,
    aud: 'x',
    purpose: 'x',
    email: 'ada@example.com',
    role: 'admin',
    nothing: null,
    absent: undefined,
    flag: false
  }

  t.strictSame(withoutReservedClaims(claims), { email: 'ada@example.com', role: 'admin', nothing: null, flag: false })
})
