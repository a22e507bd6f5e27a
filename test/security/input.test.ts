/** Attacks 54 to 58: what is sent, under which names, as which type, in which encoding, how much of it and how slowly. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type Socket, connect } from 'node:net'
import Fastify, { type FastifyInstance, type InjectOptions, type LightMyRequestResponse } from 'fastify'
import SqliteDatabase from 'better-sqlite3'
import t, { type Test } from 'tap'
import authPlugin, { type AuthPluginOptions, type Identity, SqlAuthStore } from '../../lib/index.js'
import { drops, hangs } from '../fakes/lies.js'
import { startFakeOpenIdProvider } from '../fakes/openid-provider.js'
import { SESSION_SECRET, localProvider, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { deferred } from '../helpers/deferred.js'
import { listen } from '../helpers/loopback.js'
import { OwnProvider, leaveFor, signInAt } from '../helpers/own-provider.js'
import { SOME_SESSION_STORES } from '../helpers/session-stores.js'
import { SOME_STORES } from '../helpers/stores.js'
import { isThorough, some } from '../helpers/thorough.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const BOB = { email: 'bob@example.com', password: 'battery staple' }
const BASE_URL = 'https://app.example'
const JSON_TYPE = 'application/json'
const FORM_TYPE = 'application/x-www-form-urlencoded'
const MEBIBYTE = 1_048_576

/** An application with everything mounted, and Ada, who is signed in to it. */
async function start (t: Test, options: AuthPluginOptions = {}) {
  const database = new SqliteDatabase(':memory:')
  const app = await startApp(t, {
    baseUrl: BASE_URL,
    providers: [new OwnProvider('mine')],
    local: localProvider({ registration: { roles: ['member'], emailVerified: true } }),
    store: new SqlAuthStore(database),
    rateLimit: false,
    ...options
  }, {}, app => {
    app.get('/admins', { preHandler: app.auth.requireClaims({ admin: true }) }, async () => 'welcome')
    app.get('/machines', { preHandler: app.auth.requireBearer }, async request => request.token)
  })
  t.teardown(() => database.close())
  const ada = new Browser(app)
  const { userId }: { userId: string } = (await ada.post('/auth/local/register', ADA)).json()
  return { app, ada, userId, writes: () => database.prepare('SELECT total_changes()').pluck().get() }
}

/** Sends a body as it is. */
async function sendText (
  app: FastifyInstance,
  url: string,
  contentType: string,
  payload: string | Buffer,
  headers: Record<string, string> = {}
): Promise<LightMyRequestResponse> {
  return app.inject({ method: 'POST', url, headers: { accept: JSON_TYPE, 'content-type': contentType, ...headers }, payload })
}

const FORBIDDEN_NAMES = ['__proto__', 'constructor', 'prototype']

/** Asserts that no object has got a member that it did not have. */
function assertUnpolluted (t: Test, message: string): void {
  t.strictSame([Reflect.get({}, 'admin'), Reflect.get([], 'admin'), Reflect.get(() => {}, 'admin')], [undefined, undefined, undefined], message)
}

for (const [sessions, createSessions] of SOME_SESSION_STORES) {
  const withSessions = (): AuthPluginOptions => ({ session: { secret: SESSION_SECRET, store: createSessions() } })

  t.test(`attack 54: no name in a body changes a prototype or lets a request pass a guard, with ${sessions}`, async t => {
    const { app, ada, writes } = await start(t, withSessions())
    const before = writes()

    const members = [
      '"__proto__":{"admin":true}',
      '"constructor":{"prototype":{"admin":true}}',
      '"\\u005f_proto__":{"admin":true}',
      '"name":{"__proto__":{"admin":true}}',
      '"claims":[{"constructor":{"prototype":{"admin":true}}}]'
    ]
    for (const url of ['/auth/local/register', '/auth/local/login', '/auth/local/revoke', '/auth/local/verify-token']) {
      for (const member of members) {
        const answer = await sendText(app, url, JSON_TYPE, `{${member},"email":"${BOB.email}","password":"${BOB.password}","token":"x"}`)
        t.strictSame([answer.statusCode, answer.json().code], [400, 'invalid_request'], `${url} ${member}`)
      }
    }
    t.equal(writes(), before, 'nothing was written')
    assertUnpolluted(t, 'JSON')

    const fields = [
      '__proto__=admin', '__proto__[admin]=true', '__proto__.admin=true', 'constructor[prototype][admin]=true',
      'constructor.prototype.admin=true', 'constructor=x&prototype=x', '__proto__[]=a', 'hasOwnProperty=x&toString=x'
    ]
    for (const [index, field] of fields.entries()) {
      const browser = new Browser(app)
      const form = `${field}&email=form-${index}@example.com&password=${ADA.password}`
      const answer = await browser.send({
        method: 'POST',
        url: '/auth/local/register',
        headers: { accept: JSON_TYPE, 'content-type': FORM_TYPE },
        payload: form
      })
      t.strictSame([answer.statusCode, Object.keys(answer.json().claims).sort()], [201, ['email', 'sub']], `${field}: passed over`)
      t.equal((await browser.get('/admins')).statusCode, 403, field)
      t.equal((await browser.get(`/auth/mine/login?${field}`)).statusCode, 302, `${field}: in a query`)
      t.equal((await browser.get(`/auth/mine/callback?${field}`)).json().code, 'invalid_state', `${field}: in a callback`)
    }
    assertUnpolluted(t, 'forms')
    t.equal((await ada.get('/admins')).statusCode, 403)
  })

  t.test(`attack 54: claims of a provider that reach a prototype are dropped, with ${sessions}`, async t => {
    const { app } = await start(t, withSessions())
    const claims = '{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}},' +
      '"prototype":{"admin":true},"deep":[{"a":{"__proto__":{"admin":true}}}],"tier":{"gold":true}}'
    const browser = new Browser(app)
    const callback = new URL(await leaveFor(browser, '/auth/mine/login', { subject: 'mallory' }), BASE_URL)
    callback.searchParams.set('code', `{"subject":"mallory","claims":${claims},"emailVerified":false}`)

    t.equal((await browser.get(callback.pathname + callback.search)).headers.location, '/')

    const { principal } = (await browser.get('/me')).json()
    t.strictSame(principal.claims, { sub: 'mallory', tier: { gold: true } })
    t.strictSame((await app.auth.links(principal.userId))[0]?.claims, principal.claims, 'in the store too')
    t.equal((await browser.get('/admins')).statusCode, 403)
    assertUnpolluted(t, 'claims of a provider')
  })
}

t.test('attack 54: what is granted, withdrawn or put into a token under such a name is a typed error', async t => {
  const { app, ada, userId, writes } = await start(t)
  const before = writes()
  for (const name of FORBIDDEN_NAMES) {
    for (const text of [`{"${name}":{"admin":true}}`, `{"a":[{"${name}":{"admin":true}}]}`, `{"admin":{"${name}":1},"${name}":null}`]) {
      await t.rejects(app.auth.grant(userId, JSON.parse(text)), { code: 'invalid_claims' }, text)
      await t.rejects(Promise.resolve(app.localIdp?.issueIdToken(userId, JSON.parse(text))), { code: 'invalid_claims' }, `token ${text}`)
    }
    t.strictSame(await app.auth.withdraw(userId, [name, `${name}.admin`]), {}, 'nobody has it')
  }
  t.strictSame(await app.auth.findUser({ userId }).then(user => user?.claims), {})
  t.equal(writes(), before, 'nothing was written')
  t.equal((await ada.get('/admins')).statusCode, 403)
  assertUnpolluted(t, 'grants')
})

const WRONG_TEXTS = [1, 0, true, false, null, {}, [], ['ada@example.com'], [['a']], { length: 8 }]
const WRONG_FLAGS = [1, 0, null, {}, [], ['on'], [true]]

t.test('attack 55: a wrong type is refused, and never made into a text', async t => {
  const { app, ada, writes } = await start(t)
  const before = writes()
  const registration = { ...BOB, name: 'Bob', role: 'member', email_verified: true, next: '/', error_next: '/' }
  const cases: Array<[url: string, body: unknown]> = []
  const spoil = (url: string, body: Record<string, unknown>, names: string[], values: unknown[]) => {
    for (const name of names) for (const value of values) cases.push([url, { ...body, [name]: value }])
  }
  spoil('/auth/local/register', registration, ['email', 'password', 'name', 'role', 'next', 'error_next'], WRONG_TEXTS)
  spoil('/auth/local/register', registration, ['email_verified'], WRONG_FLAGS)
  spoil('/auth/local/login', ADA, ['email', 'password', 'next', 'error_next'], WRONG_TEXTS)
  spoil('/auth/local/revoke', {}, ['next', 'error_next'], WRONG_TEXTS)
  spoil('/auth/local/verify-token', {}, ['token'], WRONG_TEXTS)
  for (const url of ['/auth/local/register', '/auth/local/login', '/auth/local/verify-token', '/auth/local/revoke']) {
    for (const body of [[], [ADA], 'email', 1, true]) cases.push([url, body])
  }
  for (const url of ['/auth/local/register', '/auth/local/login', '/auth/local/verify-token']) {
    for (const body of [null, {}, { email: BOB.email }, { password: BOB.password }, { Email: BOB.email, PASSWORD: BOB.password }]) cases.push([url, body])
  }

  for (const [url, body] of cases) {
    const answer = await ada.post(url, body)
    t.strictSame([answer.statusCode, answer.json().code], [400, 'invalid_request'], `${url} ${JSON.stringify(body)}`)
  }

  t.equal(writes(), before, 'nothing was written')
  t.equal((await ada.get('/me')).json().principal.claims.email, ADA.email, 'nobody was signed out')
  for (const password of ['true', 'null', '', '123', '[object Object]']) {
    t.equal((await new Browser(app).post('/auth/local/login', { email: BOB.email, password })).json().code, 'invalid')
  }
})

t.test('attack 55: a field that a form sends twice, or as a list, is refused', async t => {
  const { app, writes } = await start(t)
  const before = writes()
  const good = `email=${BOB.email}&password=battery+staple`
  const forms = [
    `${good}&email=${ADA.email}`, `email=${ADA.email}&${good}`, `${good}&password=another+one`, `email[]=${BOB.email}&password=battery+staple`,
    `email=${BOB.email}&password[]=battery+staple`, `email[0]=${BOB.email}&password=battery+staple`,
    `email=${BOB.email}`, 'password=battery+staple', '', '&&&', '=', 'email&password'
  ]
  const doubled = ['next=/a&next=/b', 'error_next=/a&error_next=/b']
  const ofRegistration = ['name=a&name=b', 'role=member&role=admin', 'email_verified=on&email_verified=off']
  const cases = [
    ...['/auth/local/register', '/auth/local/login'].flatMap(url => [
      ...forms,
      ...doubled.map(fields => `${good}&${fields}`)
    ].map(form => [url, form] as const)),
    ...ofRegistration.map(fields => ['/auth/local/register', `${good}&${fields}`] as const),
    ...doubled.map(form => ['/auth/local/revoke', form] as const)
  ]
  for (const [url, form] of cases) {
    const answer = await sendText(app, url, FORM_TYPE, form)
    // An e-mail that is there and empty is one that is not valid, or nobody's.
    const codes = form === 'email&password' ? ['invalid_email', 'invalid'] : ['invalid_request']
    t.ok([400, 401].includes(answer.statusCode) && codes.includes(answer.json().code), `${url} ${form}: ${answer.body}`)
  }
  t.equal(writes(), before, 'nothing was written')
})

t.test('attack 55: a checkbox is understood, as forms and as scripts send it', async t => {
  const { app } = await start(t)
  const values: Array<[value: unknown, claim: true | undefined]> = [
    ['on', true], ['true', true], ['1', true], [true, true], ['off', undefined], ['false', undefined], ['', undefined],
    [false, undefined], [undefined, undefined]
  ]
  for (const [index, [value, claim]] of values.entries()) {
    const script = await new Browser(app).post('/auth/local/register', { email: `script-${index}@example.com`, password: BOB.password, email_verified: value })
    t.strictSame([script.statusCode, script.json().claims?.email_verified], [201, claim], `JSON ${value}`)
    if (typeof value !== 'string') continue
    const form = await new Browser(app).submit(
      '/auth/local/register',
      { email: `form-${index}@example.com`, password: BOB.password, email_verified: value },
      { accept: JSON_TYPE }
    )
    t.strictSame([form.statusCode, form.json().claims?.email_verified], [201, claim], `form ${value}`)
  }
})

/** Sends a request as it is written here, and resolves to the status, the headers and the body of the answer. */
async function sendRaw (port: number, lines: string[], body: string | Buffer = ''): Promise<{ statusCode: number, head: string, body: string }> {
  const socket = connect(port, '127.0.0.1')
  socket.write(`${[...lines, 'host: app.example', 'connection: close', `content-length: ${Buffer.byteLength(body)}`].join('\r\n')}\r\n\r\n`)
  socket.write(body)
  return readAnswer(socket)
}

async function readAnswer (socket: Socket): Promise<{ statusCode: number, head: string, body: string }> {
  let answer = ''
  socket.on('data', chunk => { answer += chunk.toString('latin1') })
  socket.on('error', () => {})
  if (!socket.closed) await once(socket, 'close')
  const [head = '', body = ''] = answer.split('\r\n\r\n', 2)
  return { statusCode: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1]), head, body }
}

t.test('attack 56: a body is parsed and validated, or it is 415', async t => {
  const { app } = await start(t)
  const port = await listen(t, app.server)
  const json = (body: unknown) => JSON.stringify(body)
  const good = { [JSON_TYPE]: json(ADA), [FORM_TYPE]: new URLSearchParams(ADA).toString() }
  /** Would be a string, or a truth, if nobody looked. */
  const bad = { [JSON_TYPE]: json({ ...ADA, password: true }), [FORM_TYPE]: `email=${ADA.email}&email=x&password=y` }

  /** What comes of a header: the type as which the body is read, or none. */
  const types: Array<[headers: string[], readAs: typeof JSON_TYPE | typeof FORM_TYPE | null]> = [
    [['application/json'], JSON_TYPE],
    [[' application/json'], JSON_TYPE],
    [['\tapplication/json\t'], JSON_TYPE],
    [['APPLICATION/JSON'], JSON_TYPE],
    [['application/json;charset=utf-8'], JSON_TYPE],
    [['application/json ; charset="utf-8"'], JSON_TYPE],
    [['application/json;'], JSON_TYPE],
    [['application/json;charset=utf-16'], JSON_TYPE],
    [['Application/X-WWW-Form-UrlEncoded; charset=UTF-8'], FORM_TYPE],
    [['application/json, text/plain'], null],
    [['text/plain, application/json'], null],
    [['application/json garbage'], null],
    [['application/jsonx'], null],
    [['application/ json'], null],
    [['application /json'], null],
    [['application/json\u00a0'], null],
    [['application'], null],
    [['/'], null],
    [['*/*'], null],
    [['json'], null],
    [['application/vnd.api+json'], null],
    [['text/plain'], null],
    [['text/plain; application/json'], null],
    [['text/json'], null],
    [['text/html'], null],
    [['multipart/form-data; boundary=x'], null],
    [['application/octet-stream'], null],
    [[''], null],
    [[], null],
    [['application/json', 'text/plain'], JSON_TYPE],
    [['text/plain', 'application/json'], null]
  ]
  const send = async (headers: string[], body: string) => sendRaw(
    port,
    ['POST /auth/local/login HTTP/1.1', `accept: ${JSON_TYPE}`, ...headers.map(header => `content-type: ${header}`)],
    body
  )

  for (const [headers, readAs] of types) {
    const name = JSON.stringify(headers)
    for (const type of [JSON_TYPE, FORM_TYPE] as const) {
      const [right, wrong] = [await send(headers, good[type]), await send(headers, bad[type])]
      if (readAs === type) t.strictSame([right.statusCode, wrong.statusCode], [200, 400], name)
      // Not understood, or understood as something that has no e-mail.
      else {
        t.ok(
          [right, wrong].every(({ statusCode }) => statusCode === (readAs === null ? 415 : 400)),
        `${name} with a body of ${type}: ${right.statusCode}, ${wrong.statusCode}`
        )
      }
      t.ok([right, wrong].every(({ statusCode, body }) => statusCode === 200 || /"code":"invalid_request"/.test(body)), `${name}: the code`)
    }
  }
})

t.test('attack 56: the parsers of the plugin change no other route, and no parser of the application weakens them', async t => {
  const schema = { body: { type: 'object', properties: { size: { type: 'integer' } } } }
  const addRoutes = (app: FastifyInstance) => {
    app.post('/echo', async request => ({ body: request.body }))
    app.post('/sized', { schema }, async request => ({ body: request.body }))
  }
  const plain = Fastify()
  addRoutes(plain)
  const withPlugin = await startApp(t, { local: localProvider() }, {}, addRoutes)
  const requests: InjectOptions[] = [
    { url: '/echo', headers: { 'content-type': FORM_TYPE }, payload: 'a=1' },
    { url: '/echo', headers: { 'content-type': 'text/plain' }, payload: 'a=1' },
    { url: '/echo', headers: { 'content-type': JSON_TYPE }, payload: '' },
    { url: '/echo', headers: { 'content-type': JSON_TYPE }, payload: '{"__proto__":{}}' },
    { url: '/echo', headers: { 'content-type': JSON_TYPE }, payload: '[1]' },
    { url: '/echo' },
    { url: '/sized', headers: { 'content-type': JSON_TYPE }, payload: '{"size":"5"}' },
    { url: '/sized', headers: { 'content-type': JSON_TYPE }, payload: '{"size":"x"}' }
  ]
  for (const request of requests) {
    const [as, is] = await Promise.all([plain, withPlugin].map(async app => app.inject({ method: 'POST', ...request })))
    t.strictSame([is?.statusCode, is?.body, is?.headers['content-type']], [as?.statusCode, as?.body, as?.headers['content-type']], JSON.stringify(request))
  }

  const lax: FastifyInstance = Fastify()
  t.teardown(() => lax.close())
  lax.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => { done(null, body) })
  lax.setValidatorCompiler(() => () => true)
  const seen: unknown[] = []
  lax.addHook('preHandler', async request => { seen.push(request.body) })
  await lax.register(authPlugin, { local: localProvider(), session: { secret: SESSION_SECRET } })
  for (const contentType of ['text/plain', 'application/xml', 'application/vnd.api+json']) {
    t.equal((await sendText(lax, '/auth/local/login', contentType, JSON.stringify(ADA))).statusCode, 415, contentType)
  }
  t.equal((await sendText(lax, '/auth/local/login', JSON_TYPE, '{"email":"a","password":true}')).statusCode, 400)
  t.strictSame(seen, [], 'nothing of it got as far as a handler')
})

const NUL = '\u0000'
const HALF = '\ud800'
/** What means something to a database, or can be kept by only some of them. */
const ODD_TEXTS = [
  "' OR 1=1--", "'; drop table svc_auth_users; --", '%', '_', '\\', '\\\'', '"', '$1', '?', ':a', '--', '/*', '\u2019',
  'ﬀ', '漢\u{1f600}', `a${NUL}b`, `a${HALF}b`, `a${'\udfff'}`, '\\u0000', '\ufeff', '\u202e'
]

const isStorable = (text: string) => !text.includes(NUL) && text.isWellFormed()
const DATABASE_WORDS = /sqlite|postgres|syntax|relation|column|select |insert |constraint|drizzle|jsonb|uuid:|invalid input|22P0|22021/i

/** What an application does with an id, which may come from a URL. */
const CALLS: Array<(app: FastifyInstance, userId: string) => Promise<unknown>> = [
  ({ auth }, userId) => auth.grant(userId, { a: 1 }),
  ({ auth }, userId) => auth.withdraw(userId, ['a']),
  ({ auth }, userId) => auth.links(userId),
  ({ auth }, userId) => auth.unlink(userId, 'local'),
  ({ auth }, userId) => auth.deleteUser(userId)
]

for (const [kind, newStore] of Object.entries(SOME_STORES)) {
  t.test(`attack 57: texts are stored verbatim or refused, and never mean anything, on ${kind}`, async t => {
    const { app, ada, userId } = await start(t, { store: await newStore(t) })
    const bodies: string[] = []
    const post = async (url: string, body: unknown) => {
      const answer = await new Browser(app).post(url, body)
      bodies.push(answer.statusCode >= 400 ? answer.body : '')
      return answer
    }
    let people = 0

    for (const [index, text] of ODD_TEXTS.entries()) {
      const name = JSON.stringify(text)
      const refusal = isStorable(text) ? 201 : 400

      const registered = await post('/auth/local/register', { email: `person-${people++}@example.com`, password: BOB.password, name: text })
      t.equal(registered.statusCode, refusal, `${name}: a name`)
      if (refusal === 201) {
        // A form's surrounding blanks are cut, and what changes the direction of text or breaks the line.
        const shown = text.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, '').trim()
        t.equal(
          (await app.auth.findUser({ userId: registered.json().userId }))?.name,
          shown === '' ? null : shown,
          `${name}: the name that is kept`
        )
      }

      const emails = [text, `${text}@example.com`, `ada${text}@example.com`, `ada@${text}example.com`]
      for (const email of some(emails, 2, index)) {
        const nobodys = (await post('/auth/local/login', { email, password: ADA.password })).json().code
        const mine = await post('/auth/local/register', { email, password: BOB.password })
        t.equal(nobodys, mine.statusCode === 201 ? 'invalid' : 'invalid_email', `${name}: nobody's e-mail`)
        t.ok(mine.statusCode === 201 ? isStorable(text) : mine.json().code === 'invalid_email', `${name}: an e-mail: ${mine.body}`)
        if (mine.statusCode === 201) {
          const { userId, claims } = mine.json()
          t.strictSame((await app.auth.findUser({ email: claims.email }))?.userId, userId, `${name}: found under its e-mail`)
          await app.auth.deleteUser(userId)
        }
      }
      t.equal((await post('/auth/local/login', { email: ADA.email, password: text })).json().code, 'invalid', `${name}: a wrong password`)
      t.equal(
        (await post('/auth/local/register', {
          email: `role-${people++}@example.com`,
          password: BOB.password,
          role: text
        })).json().code,
        'claim_not_allowed',
        `${name}: a role`
      )

      // V8 since 13 confuses a name that begins with an escape with the name \ of an earlier object of the same shape, so that
      // each object here has a shape of its own.
      const own = { [`shape of ${name}`]: true }
      const person: Partial<Identity> = { subject: text, claims: { sub: text, note: text, ...own, [text]: text, list: [{ ...own, [text]: text }] } }
      const browser = new Browser(app)
      const callback = new URL(await leaveFor(browser, '/auth/mine/login', { subject: 'x' }), BASE_URL)
      callback.searchParams.set('code', JSON.stringify(person))
      const back = await browser.get(callback.pathname + callback.search, { accept: JSON_TYPE })
      bodies.push(back.body)
      if (isStorable(text)) {
        t.equal(back.headers.location, '/', `${name}: a subject`)
        const { principal } = (await browser.get('/me')).json()
        t.strictSame(principal?.claims, person.claims, `${name}: claims`)
        t.equal((await app.auth.findUser({ provider: 'mine', subject: text }))?.userId, principal?.userId, `${name}: found by its subject`)
        t.strictSame((await app.auth.links(principal.userId))[0]?.claims, person.claims, `${name}: claims in the store`)
        t.strictSame(
          await app.auth.grant(userId, { [`c${text}`]: { ...own, [text]: [text] } }),
          { [`c${text}`]: { ...own, [text]: [text] } },
          `${name}: a grant`
        )
        t.strictSame(await app.auth.withdraw(userId, [`c${text}`, text]), {}, `${name}: a withdrawal`)
      } else {
        t.equal(back.json().code, 'provider_error', `${name}: a subject`)
        t.equal((await browser.get('/me')).json().principal, null)
        t.equal(await app.auth.findUser({ provider: 'mine', subject: text }), null)
        await t.rejects(app.auth.grant(userId, { [text]: 1 }), { code: 'invalid_claims' })
        await t.rejects(app.auth.grant(userId, { a: [text] }), { code: 'invalid_claims' })
        t.strictSame(await app.auth.withdraw(userId, [text]), {})
      }
      t.equal(await app.auth.findUser({ provider: text, subject: ADA.email }), null, `${name}: a provider`)
      t.equal(await app.auth.findUser({ email: text }), null, `${name}: an e-mail to look for`)

      const otherIds = [text, `${userId}${text}`, `${userId.slice(0, -1)}${text.slice(0, 1)}`, userId.toUpperCase()].filter(id => id !== userId)
      for (const id of otherIds) {
        t.equal(await app.auth.findUser({ userId: id }), null, `${name}: an id to look for`)
        for (const call of CALLS) await t.rejects(call(app, id), { code: 'unknown_user' }, `${name}: an id`)
      }
      const token = await app.localIdp?.issueIdToken(`${userId}${text}`)
      const bearer = await app.inject({ url: '/machines', headers: { authorization: `Bearer ${token}` } })
      bodies.push(bearer.statusCode >= 400 ? bearer.body : '')
      t.ok(bearer.statusCode < 500, `${name}: the subject of a token: ${bearer.body}`)
      const missing = await (isStorable(text) ? app.auth.unlink(userId, text) : app.auth.unlink(userId, text).catch(error => error.code))
      t.strictSame(isStorable(text) ? missing.length : missing, isStorable(text) ? 1 : 'invalid_request', `${name}: a provider to unlink`)
    }

    t.strictSame(bodies.filter(body => DATABASE_WORDS.test(body)), [], 'no word of a database')
    t.equal((await ada.get('/me')).json().principal.userId, userId, 'Ada is still there')
    t.equal((await new Browser(app).post('/auth/local/login', ADA)).statusCode, 200, 'and comes in')
  })

  t.test(`attack 57: bytes that are not UTF-8 are never an error of the server, on ${kind}`, async t => {
    const { app } = await start(t, { store: await newStore(t) })
    const sequences = ['%ff%fe', '%c0%af', '%c0%80', '%e0%80%80', '%ed%a0%80', '%f8%88%80%80%80', '%80', '%', '%zz', '%u0000', '%00']
    for (const [index, sequence] of sequences.entries()) {
      const bytes = Buffer.from(sequence.replace(/%([0-9a-f]{2})/gi, (_escape, hex: string) => String.fromCharCode(parseInt(hex, 16))), 'latin1')
      const around = (before: string, after: string) => Buffer.concat([Buffer.from(before), bytes, Buffer.from(after)])
      const answers = [
        await sendText(app, '/auth/local/register', FORM_TYPE, `email=form-${index}@example.com&password=battery+staple&name=a${sequence}`),
        await sendText(app, '/auth/local/register', FORM_TYPE, `email=${sequence}@example.com&password=battery+staple`),
        await sendText(app, '/auth/local/login', FORM_TYPE, `email=${ADA.email}&password=${sequence}`),
        await sendText(app, '/auth/local/register', FORM_TYPE, around(`email=raw-${index}@example.com&password=battery+staple&name=`, '')),
        await sendText(app, '/auth/local/register', JSON_TYPE, around(`{"email":"json-${index}@example.com","password":"battery staple","name":"a`, '"}')),
        await sendText(app, '/auth/local/login', JSON_TYPE, around('{"email":"', '@example.com","password":"x"}')),
        await app.inject(`/auth/mine/callback?state=${sequence}&code=${sequence}`),
        await app.inject(`/auth/mine/login?next=/${sequence}`)
      ]
      for (const answer of answers) {
        t.ok(answer.statusCode < 500 && !DATABASE_WORDS.test(answer.body), `${sequence}: ${answer.statusCode} ${answer.body}`)
        if (answer.statusCode !== 201) continue
        const user = await app.auth.findUser({ userId: answer.json().userId })
        t.equal(user?.name ?? undefined, answer.json().claims.name, `${sequence}: the same in the store as in the answer`)
      }
    }
  })
}

t.test('attack 58: what is too much is 413 or 400, whatever it is, and the application goes on', async t => {
  const { app, ada, writes } = await start(t)
  const before = writes()
  const login = JSON.stringify(ADA)
  const deep = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  const nested = (depth: number) => '{"a":'.repeat(depth) + '1' + '}'.repeat(depth)
  const fill = (start: string, end: string) => start + 'a'.repeat(MEBIBYTE + 1 - start.length - end.length) + end
  const cases: Array<[name: string, type: string, body: string, statuses: number[]]> = [
    ['a body of a mebibyte and a byte', JSON_TYPE, fill('{"email":"', '"}'), [413]],
    ['a form of a mebibyte and a byte', FORM_TYPE, fill('email=', ''), [413]],
    ['a body of a mebibyte and a byte of no known type', 'text/plain', fill('', ''), [415]],
    ['250,000 fields of one name', FORM_TYPE, 'a&'.repeat(250_000), [400]],
    ['250,000 e-mails', FORM_TYPE, `password=x${'&email'.repeat(170_000)}`, [400]],
    ['100,000 fields of different names', FORM_TYPE, Array.from({ length: 100_000 }, (_, index) => `a${index}`).join('&'), [400]],
    ['100,000 names in JSON', JSON_TYPE, `{${Array.from({ length: 80_000 }, (_, index) => `"a${index}":0`).join(',')}}`, [400]],
    ['lists 400,000 deep', JSON_TYPE, deep(400_000), [400]],
    ['a member 400,000 deep', JSON_TYPE, `{"email":${deep(400_000)},"password":"x"}`, [400]],
    ['an unknown member 150,000 deep', JSON_TYPE, `{"email":"x@example.com","password":"x","more":${nested(150_000)}}`, [400, 401]],
    ['an e-mail of a mebibyte', JSON_TYPE, `{"email":"${'a'.repeat(MEBIBYTE - 40)}","password":"x"}`, [400, 401]],
    ['an e-mail of a million signs', FORM_TYPE, `email=${'@'.repeat(1_000_000)}&password=x`, [400, 401]],
    ['a password of a mebibyte', JSON_TYPE, `{"email":"${ADA.email}","password":"${'a'.repeat(MEBIBYTE - 60)}"}`, [400, 401]],
    ['a token of a mebibyte', JSON_TYPE, `{"token":"${'a.'.repeat(MEBIBYTE / 2 - 10)}"}`, [400, 401]],
    ['a name of 1,001 characters', JSON_TYPE, JSON.stringify({ ...BOB, name: 'a'.repeat(1001) }), [400, 401]]
  ]
  for (const [index, [name, type, body, statuses]] of cases.entries()) {
    for (const url of some(['/auth/local/register', '/auth/local/login', '/auth/local/verify-token'], 3, index)) {
      const answer = await sendText(app, url, type, body)
      t.ok(statuses.includes(answer.statusCode), `${name} at ${url}: ${answer.statusCode} ${answer.body.slice(0, 200)}`)
      t.ok(answer.body.length < 1000, `${name}: what was sent does not come back`)
    }
    t.equal((await ada.get('/me')).json().principal.claims.email, ADA.email, `${name}: /me answers`)
  }
  t.equal(writes(), before, 'nothing was written')
  t.equal((await sendText(app, '/auth/local/login', JSON_TYPE, login + ' '.repeat(MEBIBYTE - login.length))).statusCode, 200, 'a mebibyte is not too much')
})

t.test('attack 58: claims of a provider that are too deep are dropped, and too many of them refused', async t => {
  const { app } = await start(t)
  const signIn = async (claims: string) => {
    const browser = new Browser(app)
    const callback = new URL(await leaveFor(browser, '/auth/mine/login', { subject: 'x' }), BASE_URL)
    callback.searchParams.set('code', `{"subject":"x","claims":${claims}}`)
    const { statusCode, headers } = await browser.get(callback.pathname + callback.search, { accept: JSON_TYPE })
    return { statusCode, location: headers.location, claims: (await browser.get('/me')).json().principal?.claims }
  }
  for (const depth of [40, 10_000]) {
    t.strictSame(
      await signIn(`{"deep":${'['.repeat(depth)}${']'.repeat(depth)},"tier":1}`),
      { statusCode: 302, location: '/', claims: { sub: 'x', tier: 1 } },
      `${depth} deep`
    )
  }
  t.strictSame(await signIn(`{"long":"${'a'.repeat(20_000)}"}`), { statusCode: 502, location: undefined, claims: undefined })
})

t.test('attack 58: headers of eight kilobytes do not fail, and larger ones are refused', async t => {
  const { app, ada } = await start(t)
  const port = await listen(t, app.server)
  const [cookie] = [...ada.cookies].map(([name, value]) => `${name}=${value}`)
  const KILOBYTES_8 = 8192
  const values = [
    'a'.repeat(KILOBYTES_8), 'a;'.repeat(KILOBYTES_8 / 2), 'a,'.repeat(KILOBYTES_8 / 2),
    '/,;q=;'.repeat(KILOBYTES_8 / 6), '%'.repeat(KILOBYTES_8), '\u00ff'.repeat(KILOBYTES_8 / 2),
    'svc_session='.repeat(KILOBYTES_8 / 12)
  ]
  const headers = ['cookie', 'authorization', 'accept', 'referer', 'origin', 'sec-fetch-site', 'content-type', 'x-forwarded-for', 'user-agent']
  for (const [index, header] of headers.entries()) {
    for (const value of some(values, 3, index)) {
      const prefix = header === 'authorization' ? 'Bearer ' : ''
      for (const request of ['GET /auth/mine/login', 'GET /auth/mine/callback?state=x', 'POST /auth/local/login', 'GET /machines', 'GET /me']) {
        const answer = await sendRaw(port, [`${request} HTTP/1.1`, `${header}: ${prefix}${value}`])
        t.ok(answer.statusCode < 500, `${request} with ${header}: ${value.slice(0, 12)}: ${answer.statusCode}`)
        t.ok(answer.head.length < 6000, `${request} with ${header}: it does not come back`)
      }
    }
  }
  t.equal((await sendRaw(port, ['GET /me HTTP/1.1', `x-large: ${'a'.repeat(40_000)}`])).statusCode, 431)
  t.match((await sendRaw(port, ['GET /me HTTP/1.1', `cookie: ${cookie}`])).body, ADA.email, 'Ada is served as before')
})

t.test('attack 58: while bodies arrive slowly, other requests are answered', async t => {
  const { app, ada } = await start(t)
  const port = await listen(t, app.server)
  const body = JSON.stringify(ADA)
  const [order, arrived] = [new Array<string>(), deferred()]
  let heads = 0
  // Before bodies are read.
  app.server.prependListener('request', () => { if (++heads === 50) arrived.resolve() })

  const slow = Array.from({ length: 50 }, () => {
    const socket = connect(port, '127.0.0.1')
    socket.write(
      `POST /auth/local/login HTTP/1.1\r\nhost: app.example\r\naccept: ${JSON_TYPE}\r\ncontent-type: ${JSON_TYPE}\r\n` +
        `connection: close\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 5)}`
    )
    return { socket, answer: readAnswer(socket).finally(() => { order.push('slow') }) }
  })
  await arrived.promise

  const quick = await Promise.all([
    sendRaw(port, ['GET /me HTTP/1.1']),
    sendRaw(port, ['POST /auth/local/login HTTP/1.1', `accept: ${JSON_TYPE}`, `content-type: ${JSON_TYPE}`], body),
    sendRaw(port, ['GET /auth/mine/login HTTP/1.1'])
  ])
  order.push('quick')
  t.strictSame(quick.map(({ statusCode }) => statusCode), [200, 200, 302])
  t.equal((await ada.get('/me')).statusCode, 200)

  const [gone, ...others] = slow
  gone?.socket.destroy() // Not everybody who is slow comes to an end.
  for (const { socket } of others) socket.write(body.slice(5))
  const answers = await Promise.all(others.map(({ answer }) => answer))
  t.ok(answers.every(({ statusCode }) => statusCode === 200), 'and in the end so are they')
  t.equal(order[0], 'quick', 'first those who were quick')
})

/** So many browsers, each with a good callback for a provider. */
async function callbacksFor (
  app: FastifyInstance,
  login: string,
  consent: (url: string) => string,
  number: number
): Promise<Array<() => Promise<LightMyRequestResponse>>> {
  return Promise.all(Array.from({ length: number }, async () => {
    const browser = new Browser(app)
    const { headers: { location = '' } } = await browser.get(login)
    const callback = consent(location)
    return async () => browser.get(callback, { accept: JSON_TYPE })
  }))
}

/** How many callbacks wait for a provider. */
const CROWD = isThorough ? 200 : 20

t.test('attack 58: while a provider hangs with many callbacks, other providers and routes answer', async t => {
  const [hanging, working] = [await startFakeOpenIdProvider(t), await startFakeOpenIdProvider(t)]
  const { app, ada } = await start(t, {
    providers: [
      hanging.provider({ name: 'hanging', timeout: 60_000 }),
      working.provider({ name: 'working', timeout: 60_000 }),
      new OwnProvider('mine')
    ]
  })
  const [allAsked, mayAnswer] = [deferred(), deferred()]
  for (const fake of [hanging, working]) fake.profile = { sub: 'grace' }
  let asked = 0
  hanging.lies.set('/token', async (answer, response) => {
    if (++asked === CROWD) allAsked.resolve()
    await mayAnswer.promise
    return drops(answer, response)
  })
  const callbacks = await callbacksFor(app, '/auth/hanging/login', url => hanging.consent(url), CROWD)
  let settled = 0
  const hung = callbacks.map(async callback => callback().finally(() => { settled++ }))
  await allAsked.promise

  t.equal((await ada.get('/me')).statusCode, 200)
  t.equal((await new Browser(app).post('/auth/local/login', ADA)).statusCode, 200)
  t.equal((await signInAt(new Browser(app), 'mine', { subject: 'grace' })).headers.location, '/')
  const [callback] = await callbacksFor(app, '/auth/working/login', url => working.consent(url), 1)
  t.equal((await callback?.())?.headers.location, '/')
  t.equal((await new Browser(app).get('/auth/hanging/login')).statusCode, 302, 'starts at it need no answer of its')
  t.equal(settled, 0, 'all of that while the provider has answered nobody')

  mayAnswer.resolve()
  t.strictSame([...new Set((await Promise.all(hung)).map(answer => answer.json().code))], ['provider_unavailable'])
  hanging.lies.clear()
  const [next] = await callbacksFor(app, '/auth/hanging/login', url => hanging.consent(url), 1)
  t.equal((await next?.())?.headers.location, '/', 'and afterwards it is as before')
})

t.test('attack 58: a provider that never answers is given up after its timeout', async t => {
  const hanging = await startFakeOpenIdProvider(t)
  const { app } = await start(t, { providers: [hanging.provider({ timeout: 200 })] })
  const warmUp = await callbacksFor(app, '/auth/fake/login', url => hanging.consent(url), 200)
  hanging.lies.set('/token', hangs)

  const answers = await Promise.all(warmUp.map(async callback => callback()))

  t.strictSame([...new Set(answers.map(answer => `${answer.statusCode} ${answer.json().code}`))], ['503 provider_unavailable'])
  t.strictSame([...new Set(answers.map(({ headers }) => headers['set-cookie']))], [undefined])
})

t.test('attack 57: an unknown user id does not make a guard fail', async t => {
  const { app } = await start(t)
  for (const sub of [randomUUID(), 'worker-1', '%']) {
    const { statusCode } = await app.inject({ url: '/machines', headers: { authorization: `Bearer ${await app.localIdp?.issueIdToken(sub)}` } })
    t.equal(statusCode, sub.length === 36 ? 401 : 200, sub)
  }
})
