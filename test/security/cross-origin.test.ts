import type { FastifyInstance, LightMyRequestResponse, Session } from 'fastify'
import t, { type Test } from 'tap'
import { type AuthPluginOptions, MemoryAuthStore } from '../../lib/index.js'
import { SESSION_SECRET, localProvider, startApp, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { OwnProvider, leaveFor } from '../helpers/own-provider.js'
import { SOME_SESSION_STORES, type SessionStores } from '../helpers/session-stores.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'
import { some } from '../helpers/thorough.js'

const BASE_URL = 'https://app.example'
const ADA = { email: 'ada@example.com', password: 'correct horse' }
const MALLORY = { email: 'mallory@example.com', password: 'the password of the attacker' }
const EVE = { email: 'eve@example.com', password: 'somebody who is new' }

const POST_ROUTES: ReadonlyArray<readonly [path: string, fields: Record<string, string>]> = [
  ['/auth/local/register', EVE],
  ['/auth/local/login', MALLORY],
  ['/auth/local/token', {}],
  ['/auth/local/verify-token', { token: 'a.b.c' }],
  ['/auth/local/revoke', {}]
]

/** What browsers say of a request from a page that is not of this application. */
const FOREIGN: ReadonlyArray<Record<string, string>> = [
  { origin: 'https://evil.example' },
  { origin: 'null' },
  { origin: 'https://www.app.example' },
  { origin: 'https://app.example.evil.example' },
  { origin: 'https://evil-app.example' },
  { origin: 'http://app.example' },
  { origin: 'https://app.example:444' },
  { origin: 'https://app.example@evil.example' },
  { origin: 'https://app.example, https://evil.example' },
  { origin: '' },
  { 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'same-site' },
  { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
  { 'sec-fetch-site': 'cross-site', origin: 'null', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', 'sec-fetch-user': '?1' },
  { 'sec-fetch-site': 'same-site', origin: 'https://www.app.example', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
  { 'sec-fetch-site': 'same-site', origin: 'https://app.example:444' },
  { 'sec-fetch-site': 'cross-site', origin: 'http://app.example' },
  { 'sec-fetch-site': 'cross-site', origin: BASE_URL },
  { 'sec-fetch-site': 'SAME-ORIGIN' },
  { 'sec-fetch-site': '' }
]

/** What browsers say of a request from the application's own pages; what is typed; and what is no browser. */
const OWN: ReadonlyArray<Record<string, string>> = [
  {},
  { origin: BASE_URL },
  { 'sec-fetch-site': 'same-origin' },
  { 'sec-fetch-site': 'same-origin', origin: BASE_URL },
  // A page with Referrer-Policy: no-referrer, which the answers of this plugin have themselves.
  { 'sec-fetch-site': 'same-origin', origin: 'null' },
  { 'sec-fetch-site': 'none' }
]

const FORM = 'application/x-www-form-urlencoded'

/** The ways in which a page can send a form or, without asking first, a script's request. */
const ENCODINGS: ReadonlyArray<readonly [type: string, encode: (fields: Record<string, string>) => string]> = [
  [FORM, fields => new URLSearchParams(fields).toString()],
  ['text/plain', fields => JSON.stringify(fields)],
  [
    'multipart/form-data; boundary=x',
    fields => Object.entries(fields).map(
      ([name, value]) => `--x\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
    ).join('') + '--x--\r\n'
  ],
  ['application/json', fields => JSON.stringify(fields)]
]

interface Setup {
  app: FastifyInstance
  store: MemoryAuthStore
  /** Who signed out. */
  revoked: string[]
  /** Nobody is signed in; Ada is. */
  victims: readonly [anonymous: Browser, ada: Browser]
}

async function start (t: Test, sessions?: SessionStores, options: AuthPluginOptions = {}): Promise<Setup> {
  const store = new MemoryAuthStore()
  const app = await startApp(t, {
    baseUrl: BASE_URL,
    providers: [new OwnProvider('a')],
    local: localProvider(),
    store,
    rateLimit: false,
    session: { secret: SESSION_SECRET, store: sessions },
    ...options
  })
  const revoked: string[] = []
  app.auth.channel.on('revoke', userId => { revoked.push(userId) })
  const victims = [new Browser(app), new Browser(app)] as const
  await new Browser(app).post('/auth/local/register', MALLORY)
  await victims[1].post('/auth/local/register', ADA)
  await victims[0].get('/auth/a/login')
  return { app, store, revoked, victims }
}

/** Asserts that nothing has become of some requests: everybody is who he was, nobody new is there, nobody has signed out. */
async function assertUnchanged (t: Test, { store, revoked, victims }: Setup, requests: () => Promise<void>): Promise<void> {
  const state = async () => [
    await Promise.all(victims.map(userIdIn)),
    victims.map(({ cookies }) => [...cookies]),
    (await store.findUser({ email: EVE.email })),
    [...revoked]
  ]
  const before = await state()
  await requests()
  t.strictSame(await state(), before)
}

for (const [kind, createSessions] of SOME_SESSION_STORES) {
  t.test(`the rules hold with ${kind}`, async t => {
    t.test('attack 22, attack 38: no POST route takes anything from a page of another origin, nor signs its visitor in', async t => {
      const setup = await start(t, createSessions())
      await assertUnchanged(t, setup, async () => {
        for (const [route, [url, fields]] of POST_ROUTES.entries()) {
          for (const [index, headers] of FOREIGN.entries()) {
            for (const [type, encode] of some(ENCODINGS, ENCODINGS.length, route + index)) {
              for (const browser of setup.victims) {
                const response = await browser.send({
                  method: 'POST',
                  url,
                  headers: {
                    accept: 'text/html',
                    'content-type': type,
                    referer: 'https://evil.example/form',
                    ...headers
                  },
                  payload: encode(fields)
                })
                const what = `${url} ${type} ${JSON.stringify(headers)}`
                t.strictSame([response.statusCode, response.json().code], [403, 'cross_origin'], what)
                t.strictSame([response.headers['set-cookie'], response.headers['access-control-allow-origin']], [undefined, undefined], what)
              }
            }
          }
        }
      })
    })

    t.test('attack 38: pages of the application and clients that are not browsers pass', async t => {
      for (const headers of OWN) {
        const { app, revoked } = await start(t, createSessions())
        const what = JSON.stringify(headers)
        const browser = new Browser(app)
        t.equal((await browser.submit('/auth/local/register', EVE, headers)).statusCode, 303, what)
        t.equal((await browser.post('/auth/local/login', EVE, headers)).statusCode, 200, what)
        const { token }: { token: string } = (await browser.post('/auth/local/token', undefined, headers)).json()
        t.equal((await browser.post('/auth/local/verify-token', { token }, headers)).statusCode, 200, what)
        const userId = await userIdIn(browser)
        t.equal((await browser.submit('/auth/local/revoke', {}, headers)).statusCode, 303, what)
        t.strictSame([await userIdIn(browser), revoked], [null, [userId]], what)
      }
    })

    t.test('attack 38: a body that a page can send without a preflight and that is not a form is refused from every origin', async t => {
      const setup = await start(t, createSessions())
      await assertUnchanged(t, setup, async () => {
        for (const [url, fields] of POST_ROUTES) {
          for (const type of [
            'text/plain', 'text/plain; charset=utf-8', 'text/plain;application/json', 'text/json', 'application/jsonp',
            'multipart/form-data; boundary=x', 'application/octet-stream'
          ]) {
            for (const browser of setup.victims) {
              const response = await browser.send({
                method: 'POST',
                url,
                headers: { 'content-type': type, 'sec-fetch-site': 'same-origin' },
                payload: JSON.stringify(fields)
              })
              t.strictSame([response.statusCode, response.json().code, response.headers['set-cookie']], [415, 'invalid_request', undefined], `${url} ${type}`)
            }
          }
        }
      })
    })

    t.test('attack 38: a POST route answers no other method, by whatever name it is called', async t => {
      const setup = await start(t, createSessions())
      await assertUnchanged(t, setup, async () => {
        for (const [url, fields] of POST_ROUTES) {
          for (const browser of setup.victims) {
            for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const) {
              for (const headers of [{}, { 'x-http-method-override': 'POST', 'x-http-method': 'POST', 'x-method-override': 'POST' }]) {
                const response = await browser.send({ method, url: `${url}?${new URLSearchParams({ _method: 'POST', ...fields })}`, headers })
                t.strictSame([response.statusCode, response.headers['set-cookie']], [404, undefined], `${method} ${url}`)
              }
            }
            const overriding = { origin: 'https://evil.example', 'x-http-method-override': 'GET', 'content-type': FORM }
            const response = await browser.send({
              method: 'POST',
              url: `${url}?_method=GET`,
              headers: overriding,
              payload: new URLSearchParams({ ...fields, _method: 'GET' }).toString()
            })
            t.equal(response.statusCode, 403, `${url} that says it is a GET`)
          }
        }
      })
    })
  })
}

t.test('attack 38: without a baseUrl the own origin is that of the request', async t => {
  const setup = await start(t, undefined, { baseUrl: undefined, providers: [] })
  const send = async (headers: Record<string, string>) => setup.app.inject({
    method: 'POST',
    url: '/auth/local/revoke',
    headers: { host: 'app.example:3000', accept: 'application/json', ...headers }
  })

  t.equal((await send({ origin: 'http://app.example:3000' })).statusCode, 204)
  for (const origin of [
    'https://app.example:3000', 'http://app.example', 'http://app.example:3001', 'http://www.app.example:3000',
    'https://evil.example', 'null'
  ]) {
    t.match((await send({ origin, 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' })).json(), { code: 'cross_origin' }, origin)
  }
  t.equal((await send({ host: 'a b', origin: 'http://a b' })).statusCode, 400, 'a Host that is none')
})

t.test('attack 38: trustedOrigins admits the pages of these origins and of no others', async t => {
  const trusted = ['https://admin.app.example', 'http://localhost:8080']
  for (const origin of trusted) {
    for (const site of [{}, { 'sec-fetch-site': 'same-site' }, { 'sec-fetch-site': 'cross-site' }]) {
      const { app } = await start(t, undefined, { trustedOrigins: trusted })
      const browser = new Browser(app)
      const headers = { origin, ...site }
      t.equal((await browser.submit('/auth/local/register', EVE, headers)).statusCode, 303)
      t.equal((await browser.post('/auth/local/login', EVE, headers)).statusCode, 200)
      t.equal((await browser.post('/auth/local/token', undefined, headers)).statusCode, 200)
      t.equal((await browser.post('/auth/local/verify-token', { token: 'a.b.c' }, headers)).statusCode, 401)
      const response = await browser.submit('/auth/local/revoke', {}, headers)
      t.strictSame([response.statusCode, response.headers['access-control-allow-origin']], [303, undefined])
    }
  }

  const setup = await start(t, undefined, { trustedOrigins: trusted })
  await assertUnchanged(t, setup, async () => {
    for (const headers of [
      ...FOREIGN,
      { origin: 'http://admin.app.example' },
      { origin: 'https://admin.app.example:444' },
      { origin: 'https://a.admin.app.example' },
      { origin: 'https://admin.app.example.evil.example' },
      { origin: 'https://localhost:8080' }
    ]) {
      for (const browser of setup.victims) t.equal((await browser.submit('/auth/local/revoke', {}, headers)).statusCode, 403, JSON.stringify(headers))
    }
  })
})

t.test('attack 38: the cookie goes with no form of another site, to no script, over no plain http, and to no other host', async t => {
  for (const [baseUrl, attributes] of [[BASE_URL, 'HttpOnly; Secure; SameSite=Lax'], ['http://localhost:3000', 'HttpOnly; SameSite=Lax']] as const) {
    const { app } = await start(t, undefined, { baseUrl })
    const browser = new Browser(app)
    const leaves = await browser.get('/auth/a/login')
    const state = new URL(leaves.headers.location ?? '').searchParams.get('state') ?? ''
    const responses = {
      leaves,
      lands: await browser.get(
        `/auth/a/callback?${new URLSearchParams({ state, code: JSON.stringify({ subject: '1', claims: { sub: '1' }, emailVerified: false }) })}`
      ),
      registers: await browser.submit('/auth/local/register', EVE),
      'signs in': await browser.submit('/auth/local/login', EVE)
    }
    for (const [what, { headers }] of Object.entries(responses)) {
      // That of a start has the same flags: see start-cookies.test.ts.
      const set = [headers['set-cookie']].flat().filter(cookie => !/^svc_session=;|svc_start_/.test(cookie ?? ''))
      t.equal(set.length, 1, what)
      t.match(set[0], new RegExp(`^svc_session=[^;]+; Path=/; Expires=[^;]+; ${attributes}$`), `${baseUrl}: ${what}`)
    }
  }
})

const CACHED_NOWHERE = { 'cache-control': 'no-store, no-transform', 'referrer-policy': 'no-referrer', 'x-content-type-options': 'nosniff' }

/** Every route (attack 22: a linking too), with what it answers to somebody who succeeds and to those who do not. */
const ANSWERS: ReadonlyArray<readonly [what: string, status: number, send: (browser: Browser) => Promise<LightMyRequestResponse>]> = [
  ['GET login', 302, browser => browser.get('/auth/a/login')],
  ['GET login, of the wrong form', 400, browser => browser.get('/auth/a/login?next=a&next=b')],
  ['GET login, for what needs a user', 401, browser => browser.get('/auth/a/login?link=true', { accept: 'application/json' })],
  ['POST login', 200, browser => browser.post('/auth/a/login', {})],
  ['POST login, a form from elsewhere', 403, browser => browser.post('/auth/a/login', {}, { 'sec-fetch-site': 'cross-site' })],
  [
    'GET login, on the page that it came from',
    302,
    browser => browser.get('/auth/a/login?link=true', {
      referer: `${BASE_URL}/account`,
      'sec-fetch-site': 'cross-site'
    })
  ],
  ['GET callback', 302, async browser => browser.get(await leaveFor(browser, '/auth/a/login', { subject: '1' }, {}))],
  ['GET callback, without a state', 400, browser => browser.get('/auth/a/callback?code=x')],
  [
    'GET callback, without a state, on the page that it came from',
    302,
    browser => browser.get('/auth/a/callback?code=x&state=y', { referer: `${BASE_URL}/account` })
  ],
  [
    'GET callback, an answer that cannot be read',
    502,
    async browser => browser.get((await leaveFor(
      browser,
      '/auth/a/login',
      { subject: '1' },
      {}
    )).replace(/code=.*/, 'code=x'))
  ],
  [
    'GET callback, the same on the page that it came from',
    302,
    async browser => browser.get((await leaveFor(
      browser,
      '/auth/a/login',
      { subject: '1' },
      { referer: `${BASE_URL}/account` }
    )).replace(/code=.*/, 'code=x'))
  ],
  ['POST register', 201, browser => browser.post('/auth/local/register', EVE)],
  ['POST register, a form', 303, browser => browser.submit('/auth/local/register', EVE)],
  ['POST register, of the wrong form', 400, browser => browser.post('/auth/local/register', {})],
  ['POST register, a password that is too short', 400, browser => browser.post('/auth/local/register', { ...EVE, password: 'short' })],
  ['POST register, an e-mail that is taken', 409, browser => browser.post('/auth/local/register', { ...ADA, password: 'another one' })],
  ['POST login', 200, browser => browser.post('/auth/local/login', ADA)],
  ['POST login, a form', 303, browser => browser.submit('/auth/local/login', ADA)],
  ['POST login, a wrong password', 401, browser => browser.post('/auth/local/login', { ...ADA, password: 'wrong horse' })],
  [
    'POST login, a wrong password in a form',
    303,
    browser => browser.submit(
      '/auth/local/login',
      { ...ADA, password: 'wrong horse' },
      { referer: `${BASE_URL}/sign-in` }
    )
  ],
  ['POST login, from elsewhere', 403, browser => browser.post('/auth/local/login', ADA, { origin: 'https://evil.example' })],
  [
    'POST login, what is no JSON',
    400,
    browser => browser.send({
      method: 'POST',
      url: '/auth/local/login',
      headers: { 'content-type': 'application/json' },
      payload: '{'
    })
  ],
  [
    'POST login, of a type that is none',
    415,
    browser => browser.send({
      method: 'POST',
      url: '/auth/local/login',
      headers: { 'content-type': 'text/plain' },
      payload: 'a'
    })
  ],
  ['POST login, more than the server takes', 413, browser => browser.post('/auth/local/login', { ...ADA, more: 'x'.repeat(1_100_000) })],
  ['POST token', 200, async browser => {
    await browser.post('/auth/local/login', ADA)
    return browser.post('/auth/local/token')
  }],
  ['POST token, anonymous', 401, browser => browser.post('/auth/local/token')],
  ['POST token, from elsewhere', 403, browser => browser.post('/auth/local/token', undefined, { 'sec-fetch-site': 'cross-site' })],
  ['POST verify-token', 200, async browser => browser.post('/auth/local/verify-token', { token: await localProvider().issueIdToken('a-service') })],
  ['POST verify-token, a token that is none', 401, browser => browser.post('/auth/local/verify-token', { token: 'a.b.c' })],
  ['POST verify-token, of the wrong form', 400, browser => browser.post('/auth/local/verify-token', {})],
  ['POST revoke', 204, async browser => {
    await browser.post('/auth/local/login', ADA)
    return browser.post('/auth/local/revoke')
  }],
  ['POST revoke, a form', 303, browser => browser.submit('/auth/local/revoke', {})],
  ['POST revoke, from elsewhere', 403, browser => browser.submit('/auth/local/revoke', {}, { origin: 'null' })]
]

for (const [kind, createSessions] of SOME_SESSION_STORES) {
  t.test(`nothing that a route answers is kept in a cache or told to the next page, success or failure, with ${kind}`, async t => {
    for (const [what, status, send] of ANSWERS) {
      const { app } = await start(t, createSessions())
      const response = await send(new Browser(app))
      t.equal(response.statusCode, status, what)
      t.match(response.headers, CACHED_NOWHERE, what)
    }
  })
}

t.test('over plain http a browser that hides the page it comes from is refused, and told what to set', async t => {
  const app = await startApp(t, { local: localProvider(), baseUrl: 'http://app.test', providers: [new OwnProvider('a')] })
  const hidden = await app.inject({ method: 'POST', url: '/auth/local/revoke', headers: { origin: 'null' } })
  const link = await app.inject({ method: 'POST', url: '/auth/a/login', headers: { origin: 'null' }, payload: { link: 'true' } })

  for (const response of [hidden, link]) {
    t.match(
      [response.statusCode, response.json()],
      [403, { code: 'cross_origin', message: 'Referrer-Policy: same-origin' }]
    )
  }
  const known = await app.inject({ method: 'POST', url: '/auth/local/revoke', headers: { origin: 'null', 'sec-fetch-site': 'same-origin' } })
  t.equal(known.statusCode, 303, 'over https: Fetch Metadata says it')
  const foreign = await app.inject({ method: 'POST', url: '/auth/local/revoke', headers: { origin: 'null', 'sec-fetch-site': 'cross-site' } })
  t.notMatch(foreign.json().message, 'Referrer-Policy')
})

t.test('what is answered to one attempt too many is kept in no cache', async t => {
  const { app } = await start(t, undefined, { rateLimit: { login: 1, start: 1, register: 2, callback: 1 } })
  const browser = new Browser(app)
  for (const send of [
    () => browser.get('/auth/a/login'),
    () => browser.post('/auth/local/login', ADA),
    () => browser.post('/auth/local/register', EVE),
    () => browser.get('/auth/a/callback?code=x')
  ]) {
    await send()
    const response = await send()
    t.equal(response.statusCode, 429)
    t.match(response.headers, CACHED_NOWHERE, String(response.raw.req.url))
  }
})

t.test('what is answered when sessions cannot be reached is kept in no cache', async t => {
  const sessions = new SlowSessionStore()
  const { app, victims: [, ada] } = await start(t, sessions)
  for (const [method, url, payload] of [
    ['GET', '/auth/a/login'],
    ['GET', '/auth/a/callback?code=x&state=y'],
    ...POST_ROUTES.map(([url, fields]) => ['POST', url, fields] as const)
  ] as const) {
    sessions.failure = new Error('the network is down')
    for (const browser of [new Browser(app), ada]) {
      const response = await browser.send({ method, url, headers: { accept: 'application/json' }, ...(payload !== undefined && { payload }) })
      if (response.statusCode < 400) continue
      t.match(response.json(), { code: /^(unavailable|invalid_state|invalid|unauthenticated|invalid_token)$/ }, `${method} ${url}`)
      t.match(response.headers, CACHED_NOWHERE, `${method} ${url}: ${response.statusCode}`)
    }
  }
  sessions.failure = null
})

t.test('attack 59: an answer whose session cannot be saved is unavailable, with the headers of any other', async t => {
  class FullStore extends SlowSessionStore {
    isFull = false

    override set (id: string, session: Session, callback: (error?: unknown) => void): void {
      if (this.isFull) callback(new Error('OOM command not allowed at 10.0.0.5'))
      else super.set(id, session, callback)
    }
  }
  const store = new FullStore()
  const app = await startApp(t, { local: localProvider(), session: { secret: SESSION_SECRET, store, rolling: true } })
  const browser = new Browser(app)
  await browser.post('/auth/local/register', { email: 'ada@example.com', password: 'correct horse' })
  store.isFull = true

  const response = await browser.post('/auth/local/token')

  t.equal(response.statusCode, 503)
  t.match(response.json(), { code: 'unavailable', message: /Sessions cannot be reached/ })
  t.match(response.headers, { 'cache-control': 'no-store, no-transform', 'referrer-policy': 'no-referrer', 'x-content-type-options': 'nosniff' })
})
