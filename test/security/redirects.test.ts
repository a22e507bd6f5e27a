import { once } from 'node:events'
import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import type { FastifyInstance, FastifyServerOptions } from 'fastify'
import t, { type Test } from 'tap'
import { type AuthPluginOptions, AuthError, GitHubProvider } from '../../lib/index.js'
import { GitHubStandIn } from '../fakes/github.js'
import { type FakeOpenIdProvider, startFakeOpenIdProvider } from '../fakes/openid-provider.js'
import { SESSION_SECRET, localProvider, principalIn, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { OwnProvider, leaveFor } from '../helpers/own-provider.js'
import { foreignTargets, ownTargets } from '../helpers/redirect-targets.js'
import { SOME_SESSION_STORES, type SessionStores } from '../helpers/session-stores.js'
import { isThorough, some } from '../helpers/thorough.js'

const BASE_URL = 'https://app.example'
const ADA = { email: 'ada@example.com', password: 'correct horse' }
const WRONG = { ...ADA, password: 'wrong horse' }
/**
 * Takes some of the targets in `npm test`: here they pass through the routes; test/http/ has all of
 * them judged.
 */
const FOREIGN = some(foreignTargets(BASE_URL), 8)
const OWN = some(ownTargets(BASE_URL), 4)
/** Where a browser ends up that is sent to a target after a success. */
const DESTINATIONS = [...FOREIGN.map(target => [target, '/'] as const), ...OWN]

async function start (
  t: Test,
  store?: SessionStores,
  options: AuthPluginOptions = {},
  server: FastifyServerOptions = {},
  extend: (app: FastifyInstance) => void = () => {}
): Promise<FastifyInstance> {
  const app = await startApp(
    t,
    {
      baseUrl: BASE_URL,
      // Origins that are listed make nothing looser for the others.
      trustedOrigins: ['https://front.example', 'http://localhost:8080'],
      local: localProvider(),
      rateLimit: false,
      session: { secret: SESSION_SECRET, store },
      ...options
    },
    server,
    extend
  )
  await new Browser(app).post('/auth/local/register', ADA)
  return app
}

const AGENT = new Agent({ keepAlive: true })
t.teardown(() => { AGENT.destroy() })

interface WireResponse {
  status: number
  headers: IncomingHttpHeaders
  body: string
}

/** Sends a request as it is written, which `inject` and `fetch` would tidy up before. */
async function sendRaw (app: FastifyInstance, method: string, path: string, headers: Record<string, string> = {}, body = ''): Promise<WireResponse> {
  const [address] = app.addresses()
  if (typeof address !== 'object') throw new Error('an application that listens has an address')
  const sent = request({
    host: address.address,
    port: address.port,
    agent: AGENT,
    method,
    path,
    headers: {
      ...(body !== '' && {
        'content-type': 'application/x-www-form-urlencoded',
        'content-length': Buffer.byteLength(body)
      }),
      ...headers
    }
  })
  sent.end(body)
  const [response] = await once(sent, 'response') as [IncomingMessage]
  return { status: response.statusCode ?? 0, headers: response.headers, body: await text(response) }
}

/** Does some work for each item, several at a time. */
async function forEach<T> (items: readonly T[], work: (item: T, index: number) => Promise<void>): Promise<void> {
  const entries = items.entries()
  await Promise.all(Array.from({ length: 20 }, async () => {
    for (const [index, item] of entries) await work(item, index)
  }))
}

/** A provider that is down. */
class BrokenProvider extends OwnProvider {
  override async authorizationUrl (): Promise<URL> {
    throw new AuthError('provider_unavailable')
  }
}

for (const [storeName, createSessionStore] of SOME_SESSION_STORES) {
  t.test(`the rules hold with ${storeName}`, async t => {
    t.test('attack 26: no next of a form leads to another origin, and one that is harmless is followed', async t => {
      const app = await start(t, createSessionStore())
      const astray: unknown[] = []

      await forEach(DESTINATIONS, async ([next, path], index) => {
        const browser = new Browser(app)
        const answers = {
          register: await browser.submit('/auth/local/register', { ...ADA, email: `person-${index}@example.com`, next }),
          login: await browser.submit('/auth/local/login', { ...ADA, next }),
          revoke: await browser.submit('/auth/local/revoke', { next })
        }
        for (const [route, { statusCode, headers: { location } }] of Object.entries(answers)) {
          if (statusCode !== 303 || location !== path) astray.push([route, next, statusCode, location])
        }
      })

      t.strictSame(astray, [])
    })

    t.test('attack 26: no next of a sign-in at a provider leads to another origin, and none of the callback is looked at', async t => {
      const app = await start(t, createSessionStore(), { providers: [new OwnProvider('a')] })

      const astray = await Promise.all(DESTINATIONS.map(async ([next, path], index) => {
        const browser = new Browser(app)
        const callback = await leaveFor(browser, `/auth/a/login?${new URLSearchParams({ next })}`, { subject: `person-${index}` })
        const ignored = new URLSearchParams({ next: index % 2 === 0 ? next : '/ok', error_next: next })
        const { statusCode, headers: { location } } = await browser.get(`${callback}&${ignored}`)
        return statusCode === 302 && location === path ? [] : [[next, statusCode, location]]
      }))

      t.strictSame(astray.flat(), [])
    })

    t.test('attack 27: no Referer on which a sign-in at a provider was started leads to another origin when it fails', async t => {
      const app = await start(t, createSessionStore(), { providers: [new OwnProvider('a'), new BrokenProvider('broken')] })

      const astray = await Promise.all(DESTINATIONS.map(async ([referer, path], index) => {
        const isForeign = index < FOREIGN.length
        const browser = new Browser(app)
        const callback = await leaveFor(browser, '/auth/a/login', { subject: 'ada' }, { referer })
        const answers = [
          // Whatever page the provider sends along with the callback is none of ours.
          [
            'provider_error',
            await browser.get(
              callback.replace(/code=[^&]*/, 'code=nonsense'),
              { referer: isForeign ? `${BASE_URL}/other` : 'https://evil.test/' }
            )
          ],
          ['provider_unavailable', await browser.get('/auth/broken/login', { referer })]
        ] as const
        return answers.filter(([code, { statusCode, headers: { location } }]) => isForeign
          ? location !== undefined || statusCode < 500
          : statusCode !== 302 || !showsErrorOnce(location, path, code)).map(([code, { statusCode, headers }]) => [code, referer, statusCode, headers.location])
      }))

      t.strictSame(astray.flat(), [])
    })

    t.test('attack 27: no error_next and no Referer of a form leads to another origin, and an error is shown on the page that is harmless', async t => {
      const app = await start(t, createSessionStore())
      const astray: unknown[] = []

      await forEach(DESTINATIONS, async ([target, path], index) => {
        const browser = new Browser(app)
        const answers = [
          ['invalid', await browser.submit('/auth/local/login', { ...WRONG, error_next: target })],
          ['invalid', await browser.submit('/auth/local/login', WRONG, { referer: target })],
          ['exists', await browser.submit('/auth/local/register', { ...WRONG, error_next: target, next: target })],
          ['exists', await browser.submit('/auth/local/register', WRONG, { referer: target })]
        ] as const
        for (const [code, { statusCode, headers: { location } }] of answers) {
          const isRight = index < FOREIGN.length
            ? location === undefined && statusCode >= 400 && statusCode < 500
            : statusCode === 303 && showsErrorOnce(location, path, code)
          if (!isRight) astray.push([code, target, statusCode, location])
        }
        if (browser.cookies.size > 0) astray.push([target, 'set a cookie'])
      })

      t.strictSame(astray, [])
    })
  })
}

/** Whether a browser that follows this gets to a path of ours, with its fragment, and one `error` that says what it was. */
function showsErrorOnce (location: string | undefined, path: string, code: string): boolean {
  if (location === undefined || !location.startsWith('/')) return false
  const [page, shown] = [new URL(path, BASE_URL), new URL(location, `${BASE_URL}/auth/local/login`)]
  return shown.origin === BASE_URL && shown.pathname === page.pathname && shown.hash === page.hash && shown.searchParams.getAll('error').join() === code
}

t.test('attack 26: a next that is written twice, as a list or in another spelling is not followed', async t => {
  const app = await start(t, undefined, { providers: [new OwnProvider('a')] })
  const queries = [
    ['next=/ok&next=//evil.test', 400], ['next=//evil.test&next=/ok', 400], ['next=/ok&next=/ok', 400],
    ['next[]=//evil.test', '/'], ['next%5B%5D=//evil.test', '/'], ['next[0]=/ok', '/'], ['NEXT=//evil.test', '/'],
    ['next.x=//evil.test', '/'], ['next', '/'], ['next=', '/'], ['%6eext=//evil.test', '/'], ['%6eext=/ok', '/ok']
  ] as const

  for (const [query, expected] of queries) {
    const browser = new Browser(app)
    const login = await browser.send({
      method: 'POST',
      url: '/auth/local/login',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      payload: `email=${ADA.email}&password=${ADA.password}&${query}`
    })
    const started = await browser.get(`/auth/a/login?${query}`)
    if (expected === 400) {
      t.match([login, started], [{ statusCode: 400, headers: { location: undefined } }, { statusCode: 400, headers: { location: undefined } }], query)
      t.equal(await principalIn(browser), null, query)
    } else {
      t.equal(login.headers.location, expected, query)
      t.equal((await browser.get(await leaveFor(browser, `/auth/a/login?${query}`, { subject: 'ada' }))).headers.location, expected, query)
    }
  }
})

t.test('attack 26: a next that is not a string or is longer than 8 KiB is refused, and so is an error_next', async t => {
  const app = await start(t, undefined)

  for (const value of [[], ['/ok'], ['//evil.test'], {}, { toString: '//evil.test' }, 1, true, null, '/ok'.padEnd(8193, 'k')]) {
    for (const field of ['next', 'error_next']) {
      const browser = new Browser(app)
      for (const route of ['login', 'register', 'revoke']) {
        const response = await browser.post(`/auth/local/${route}`, { ...ADA, email: 'bob@example.com', [field]: value }, { accept: 'text/html' })
        t.match(response, { statusCode: 400, headers: { location: undefined } }, `${route} ${field} ${JSON.stringify(value).slice(0, 100)}`)
        t.equal(response.json().code, 'invalid_request')
      }
      t.equal(browser.cookies.size, 0)
    }
  }
  t.equal(await app.auth.findUser({ email: 'bob@example.com' }), null)
})

t.test('attack 26: what stands raw on the wire leads to no other origin either', async t => {
  const app = await start(t, undefined, { providers: [new OwnProvider('a')] })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const queries = [
    ['//evil.test', '/'], ['///evil.test', '/'], ['/\\evil.test', '/'], ['\\\\evil.test', '/'],
    ['https:\\\\evil.test', '/'], ['%2F%2Fevil.test', '/'], ['/%2Fevil.test', '/'], ['/%5Cevil.test', '/'],
    ['%5c%5cevil.test', '/'],
    ['/%09/evil.test', '/'], ['/%0a/evil.test', '/'], ['%09//evil.test', '/'], ['%20//evil.test', '/'],
    ['+//evil.test', '/'], ['%00//evil.test', '/'], ['/here%00', '/'], ['/here%0d%0aX-Injected:%201', '/'],
    ['%E3%80%82%2F/evil.test', '/%E3%80%82//evil.test'],
    ['%EF%BC%8F%EF%BC%8Fevil.test', '/%EF%BC%8F%EF%BC%8Fevil.test'], ['%e2%81%84%2fevil.test', '/%E2%81%84/evil.test'],
    ['//evil%E3%80%82test', '/'],
    ['/%252F%252Fevil.test', '/%2F%2Fevil.test'], ['%252F%252Fevil.test', '/%2F%2Fevil.test'],
    ['/%2e%2e%2f%2fevil.test', '/'], ['/%252e%252e//evil.test', '/'], ['/%25252e//evil.test', '/%252e//evil.test'],
    ['https://app.example@evil.test', '/'], ['https://app.example%40evil.test', '/'],
    ['https://app.example%2523@evil.test', '/'], ['https%3A%2F%2Fevil.test', '/'], ['javascript%3Aalert(1)', '/'],
    ['/here%23//evil.test', '/here#//evil.test'], ['/here%3Fa=b', '/here?a=b'], ['/%ff%fe', '/%ff%fe'], ['/%', '/%'], ['/%c0%af/evil.test', '/%c0%af/evil.test']
  ] as const

  for (const [query, path] of queries) {
    const browser = new Browser(app)
    const started = await sendRaw(app, 'GET', `/auth/a/login?next=${query}`)
    const { origin, searchParams } = new URL(started.headers.location ?? '')
    t.equal(origin, 'https://a.example', query)
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(String(started.headers['set-cookie'])) ?? []
    browser.cookies.set(name, value)
    const code = JSON.stringify({ subject: 'ada', claims: { sub: 'ada' }, emailVerified: false })
    const { statusCode, headers } = await browser.get(`/auth/a/callback?${new URLSearchParams({ state: searchParams.get('state') ?? '', code })}`)
    t.equal(statusCode, 302, query)
    t.equal(headers['x-injected'], undefined, query)
    t.equal(headers.location, path, query)
  }
})

t.test('attack 27: a Referer is of this origin or none at all, and the error takes the place of an old one in front of the fragment', async t => {
  const app = await start(t, undefined)
  const pages = [
    ['https://app.example/sign-in', '/sign-in?error=invalid'],
    ['https://app.example/sign-in?error=old#f', '/sign-in?error=invalid#f'],
    ['https://app.example/sign-in?a=b&error=old&error=older#f?error=kept', '/sign-in?a=b&error=invalid#f?error=kept'],
    ['https://app.example/sign-in?%65rror=old', '/sign-in?error=invalid'],
    ['https://app.example:443/', '/?error=invalid'],
    ['HTTPS://APP.EXAMPLE/', '/?error=invalid'],
    ['https://app.example.evil.test/', null],
    ['https://app.example@evil.test/', null],
    ['https://app.example@evil/', null],
    ['https://evil.test/https://app.example/', null],
    ['http://app.example/sign-in', null],
    ['https://app.example:444/sign-in', null],
    ['https://www.app.example/sign-in', null],
    ['https://ada:secret@app.example/sign-in', null],
    ['null', '/null?error=invalid'],
    ['about:blank', null],
    ['about:client', null],
    ['https://app.example/a\r\nSet-Cookie: a=b', null],
    ['https://app.example/a%0d%0aSet-Cookie:%20a=b', '/a%0d%0aSet-Cookie:%20a=b?error=invalid'],
    ['', null]
  ] as const

  for (const [referer, expected] of pages) {
    const response = await new Browser(app).submit('/auth/local/login', WRONG, { referer })
    if (expected === null) {
      t.match(response, { statusCode: 401, headers: { location: undefined } }, referer)
      t.equal(response.json().code, 'invalid')
    } else t.match(response, { statusCode: 303, headers: { location: expected } }, referer)
    t.equal(response.headers['set-cookie'], undefined)
  }
  t.match(await new Browser(app).submit('/auth/local/login', WRONG), { statusCode: 401, headers: { location: undefined } }, 'no Referer')
})

t.test('attack 27: a script gets a status, whatever pages it names', async t => {
  const app = await start(t, undefined)

  for (const page of ['/here', '//evil.test']) {
    const response = await new Browser(app).post('/auth/local/login', { ...WRONG, error_next: page, next: page }, { referer: new URL(page, BASE_URL).href })
    t.match(response, { statusCode: 401, headers: { location: undefined } }, page)
    t.equal(response.json().code, 'invalid')
  }
})

t.test('attack 28: an answer repeats of a callback only a code of the list, and no header is injected', async t => {
  const fake = await startFakeOpenIdProvider(t)
  const app = await start(t, undefined, { providers: [fake.provider()] })
  const responses: Array<[changes: Record<string, string | null>, code: string, status: number]> = [
    [{ error: '<script>alert("reflected")</script>' }, 'provider_error', 502],
    [{ error: 'access_denied\r\nX-Reflected: 1' }, 'provider_error', 502],
    [{ error: 'access_denied', error_description: '<img src=x onerror=alert("reflected")>' }, 'access_denied', 403],
    [{ error: 'access_denied', error_uri: 'javascript:alert("reflected")' }, 'access_denied', 403],
    [{ error: 'reflected'.repeat(12_000) }, 'provider_error', 502],
    [{ error: 'access_denied', error_description: 'reflected'.repeat(12_000) }, 'access_denied', 403],
    // Of our own list, but not theirs to say.
    [{ error: 'account_exists' }, 'provider_error', 502],
    [{ error: '__proto__' }, 'provider_error', 502],
    [{ error: '' }, 'provider_error', 502],
    [{ error: '<reflected>', state: '<reflected>' }, 'invalid_state', 400],
    [{ error: '<reflected>', iss: 'https://reflected.test/<b>' }, 'provider_error', 502],
    [{ code: '<reflected>' }, 'provider_error', 502]
  ]

  for (const [changes, code, status] of responses) {
    const message = JSON.stringify(changes).slice(0, 100)
    for (const page of ['/sign-in?lang=en#form', null]) {
      const browser = new Browser(app)
      const login = await browser.get('/auth/fake/login', page === null ? {} : { referer: BASE_URL + page })
      const response = await browser.get(fake.consent(login.headers.location ?? '', { ...('error' in changes && { code: null }), ...changes }))
      // Without a state nobody knows on which page the sign-in was started.
      if (page !== null && code !== 'invalid_state') {
        t.match(
          response,
          { statusCode: 302, headers: { location: `/sign-in?lang=en&error=${code}#form` } },
          message
        )
      } else {
        t.match(
          response,
          {
            statusCode: status,
            headers: { location: undefined, 'content-type': /^application\/json/, 'x-content-type-options': 'nosniff' }
          },
          message
        )
        t.strictSame([Object.keys(response.json()), response.json().code], [['statusCode', 'code', 'error', 'message'], code], message)
      }
      t.notMatch(JSON.stringify([response.headers, response.body]), /reflected|alert|<|__proto__/i, message)
      t.equal(await principalIn(browser), null, message)
    }
  }
})

t.test('attack 28: a path, a query or a body with HTML in it is answered with JSON, or with a page that does not repeat it', async t => {
  const app = await start(t, undefined, { providers: [new OwnProvider('a')] })
  const html = '<script>alert(1)</script>'
  const escaped = encodeURIComponent(html)
  const requests = [
    ['GET', `/auth/${html}/login`], ['GET', `/auth/${escaped}/login?next=${escaped}`],
    ['GET', `/auth/${escaped}/callback?error=${escaped}`], ['GET', `/auth/a/${escaped}`],
    ['GET', '/auth/%3Cb%zz/login'],
    ['GET', `/auth/a/login?link=${escaped}`], ['GET', `/auth/a/callback?state=${escaped}`],
    ['POST', `/auth/local/${escaped}`], ['GET', '/auth/local/login'], ['POST', '/auth/local/login'],
    ['POST', '/auth/local/verify-token']
  ] as const
  await app.listen({ host: '127.0.0.1', port: 0 })

  for (const [method, path] of requests) {
    for (const contentType of method === 'POST' ? ['application/json', 'application/x-www-form-urlencoded', `text/${html}`] : ['']) {
      const response = await sendRaw(
        app,
        method,
        path,
        { accept: 'text/html', host: 'app.example', ...(contentType !== '' && { 'content-type': contentType }) },
        method === 'POST' ? html : ''
      )
      const message = `${method} ${path} ${contentType}`
      t.ok(response.status >= 400 && response.status < 500, `${message}: ${response.status}`)
      t.match(response.headers['content-type'], path.includes('callback?state') ? /^text\/html/ : /^application\/json/, message)
      // A path that is none of ours is answered by the application.
      if (response.status !== 404 && !path.includes('%zz')) t.notMatch(response.body, /script/, message)
    }
  }
})

t.test('attack 29: a callback whose parameters come twice, or that is a success and a failure at once, is refused', async t => {
  const fake = await startFakeOpenIdProvider(t)
  const github = await new GitHubStandIn().start(t)
  const app = await start(t, undefined, {
    providers: [
      fake.provider(),
      new GitHubProvider({ clientId: github.clientId, clientSecret: github.clientSecret, fetch: github.fetch })
    ]
  })
  const tokenRequests = () => [...fake.requests, ...github.backChannelRequests()].filter(request => request.startsWith('POST'))
  const kinds = [['fake', async (url: string) => fake.consent(url)], ['github', async (url: string) => github.authorize(url)]] as const
  const twice = (name: string, other?: string) => (callback: URLSearchParams) => { callback.append(name, other ?? callback.get(name) ?? '') }
  const first = (name: string, other: string) => (callback: URLSearchParams) => {
    const own = callback.get(name) ?? ''
    callback.delete(name)
    callback.append(name, other)
    callback.append(name, own)
  }
  const pollutions: Array<[string, (callback: URLSearchParams) => void, code: string]> = [
    ['code twice', twice('code'), 'provider_error'], ['another code behind', twice('code', 'x'), 'provider_error'],
    ['another code in front', first('code', 'x'), 'provider_error'],
    ['state twice', twice('state'), 'invalid_state'], ['another state behind', twice('state', 'x'), 'invalid_state'],
    ['another state in front', first('state', 'x'), 'invalid_state'],
    ['an empty state in front', first('state', ''), 'invalid_state'],
    ['error with a code', twice('error', 'access_denied'), 'access_denied'],
    ['another error with a code', twice('error', 'server_error'), 'provider_unavailable'],
    [
      'two errors',
      callback => { for (const error of ['access_denied', 'x']) callback.append('error', error) },
      'provider_error'
    ],
    ['iss twice', callback => { callback.set('iss', fake.issuer); twice('iss')(callback) }, 'provider_error'],
    [
      'another iss behind',
      callback => { callback.set('iss', fake.issuer); twice('iss', 'https://evil.test')(callback) },
      'provider_error'
    ],
    ['another iss in front', callback => { callback.set('iss', 'https://evil.test'); twice('iss', fake.issuer)(callback) }, 'provider_error']
  ]

  for (const [name, consent] of kinds) {
    for (const [message, pollute, code] of pollutions) {
      const browser = new Browser(app)
      const login = await browser.get(`/auth/${name}/login`)
      const callback = new URL(await consent(login.headers.location ?? ''), BASE_URL)
      pollute(callback.searchParams)
      const response = await browser.get(callback.pathname + callback.search, { accept: 'application/json' })
      t.equal(response.json().code, code, `${name}: ${message}`)
      t.equal(response.headers['set-cookie'], undefined, `${name}: ${message}`)
      t.equal(await principalIn(browser), null, `${name}: ${message}`)
    }
  }
  t.strictSame(tokenRequests(), [], 'nobody was asked for a token')
  t.equal(await app.auth.findUser({ provider: 'fake', subject: 'ada' }), null)
})

const ELSEWHERE = {
  host: 'evil.test',
  'x-forwarded-host': 'evil.test',
  'x-forwarded-proto': 'http',
  'x-forwarded-port': '444',
  'x-forwarded-prefix': '//evil.test',
  'x-forwarded-for': '203.0.113.7',
  forwarded: 'for=203.0.113.7;host=evil.test;proto=http',
  'x-original-url': '//evil.test/',
  'x-rewrite-url': '//evil.test/'
}

/** Headers that name another host or scheme, one by one and all at once. */
const POISONS: Array<Record<string, string>> = [
  ...Object.entries(ELSEWHERE).map(([name, value]) => ({ [name]: value })),
  { 'x-forwarded-host': 'app.example, evil.test' }, { 'x-forwarded-host': 'evil.test, app.example' },
  { 'x-forwarded-proto': 'https, http' }, { 'x-forwarded-proto': 'javascript' },
  { 'x-forwarded-host': 'app.example@evil.test' }, { 'x-forwarded-host': '[' }, { host: 'app.example:444' },
  { host: 'evil test' },
  ELSEWHERE
]

const TRUST: Array<[string, FastifyServerOptions]> = [
  ['off', {}],
  ['on', { trustProxy: true }],
  ['a list', { trustProxy: ['10.0.0.0/8', '127.0.0.1'] }],
  ['one hop', { trustProxy: (_address, hop) => hop < 1 }],
  ['another list', { trustProxy: '192.0.2.0/24' }]
]

/** What an application says of itself in its answers to these headers. */
async function selfPortrait (app: FastifyInstance, fake: FakeOpenIdProvider, headers: Record<string, string>) {
  const browser = new Browser(app)
  const scheme = new URL(`${headers['x-forwarded-proto'] === 'http' ? 'http' : 'https'}://evil.test`).origin
  const login = await browser.get(`/auth/fake/login?next=${scheme}/page`, { ...headers, referer: `${scheme}/sign-in` })
  const { origin, pathname, searchParams } = new URL(login.headers.location ?? '')
  const landing = await browser.get(fake.consent(login.headers.location ?? ''), headers)
  const failed = await browser.get(
    fake.consent(
      (await browser.get('/auth/fake/login', { ...headers, referer: `${scheme}/sign-in` })).headers.location ?? '',
      { code: null, error: 'access_denied' }
    ),
    headers
  )
  const forms = await Promise.all([
    new Browser(app).submit('/auth/local/login', { ...ADA, next: `${scheme}/page` }, headers),
    new Browser(app).submit('/auth/local/login', { ...ADA, next: `${BASE_URL}/page` }, { ...headers, origin: BASE_URL }),
    new Browser(app).submit('/auth/local/login', { ...WRONG, error_next: `${scheme}/page` }, { ...headers, referer: `${scheme}/sign-in` }),
    new Browser(app).submit('/auth/local/login', WRONG, { ...headers, referer: `${BASE_URL}/sign-in` }),
    new Browser(app).submit('/auth/local/login', ADA, { ...headers, origin: scheme }),
    new Browser(app).submit('/auth/local/revoke', { next: `${scheme}/page` }, headers)
  ])
  const parameters = Object.fromEntries([...searchParams].filter(([name]) => !['state', 'nonce', 'code_challenge'].includes(name)))
  return {
    authorize: [origin + pathname, parameters],
    answers: [login, landing, failed, ...forms].map(({ statusCode, headers: { location }, cookies }, index) => [
      statusCode,
      index === 0 ? '' : location,
      cookies.filter(({ value }) => value !== '').map(({ value, expires, name, ...flags }) => ({ name: name.replace(/(?<=start_).*/, ''), ...flags }))
    ])
  }
}

const SESSION_COOKIE = { name: 'svc_session', path: '/', httpOnly: true, secure: true, sameSite: 'Lax' }
const START_COOKIE = { ...SESSION_COOKIE, name: '__Host-svc_start_', maxAge: 1800 }

// In `npm test` each header meets an application that trusts a proxy.
for (const [index, [trust, server]] of TRUST.entries()) {
  const poisons = [...some(POISONS.slice(0, -1), 3, index), ELSEWHERE]

  t.test(`attack 30: with trustProxy ${trust} redirect URI, Location and cookie flags come from baseUrl`, async t => {
    const fake = await startFakeOpenIdProvider(t)
    fake.profile = { sub: 'bob', email: 'bob@example.com', email_verified: true }
    const app = await start(t, undefined, { providers: [fake.provider()] }, server)

    const clean = await selfPortrait(app, fake, {})
    t.match(clean.authorize, [`${fake.issuer}/authorize`, { redirect_uri: `${BASE_URL}/auth/fake/callback`, response_type: 'code' }])
    t.strictSame(clean.answers, [
      [302, '', [START_COOKIE, SESSION_COOKIE]], [302, '/', [SESSION_COOKIE]], [403, undefined, []],
      [303, '/', [SESSION_COOKIE]], [303, '/page', [SESSION_COOKIE]], [401, undefined, []],
      [303, '/sign-in?error=invalid', []], [403, undefined, []], [303, '/', []]
    ])
    for (const headers of poisons) {
      t.strictSame(await selfPortrait(app, fake, headers), clean, JSON.stringify(headers))
      t.strictSame(await selfPortrait(app, fake, {}), clean, `a clean request after ${JSON.stringify(headers)}`)
    }
  })

  t.test(`attack 30: without baseUrl and with trustProxy ${trust} a request says where it is itself, and only for itself`, async t => {
    const app = await start(t, undefined, { baseUrl: undefined }, server)
    const clean = { host: 'app.example', accept: 'text/html' }
    const login = async (fields: Record<string, string>, headers: Record<string, string>) => new Browser(app).submit('/auth/local/login', fields, headers)

    for (const headers of poisons) {
      const poisoned = [
        await login({ ...ADA, next: 'http://evil.test/page' }, { ...clean, ...headers }),
        await login(WRONG, { ...clean, ...headers, referer: 'http://evil.test/sign-in' })
      ]
      for (const { statusCode, headers: { location = '/' } } of poisoned) {
        t.ok(statusCode < 500 && /^\/(?!\/)/.test(location), `${statusCode} ${location} after ${JSON.stringify(headers)}`)
      }
      t.match(await login({ ...ADA, next: 'http://evil.test/page' }, clean), { statusCode: 303, headers: { location: '/' } })
      t.match(await login({ ...ADA, next: 'http://app.example/page' }, clean), { statusCode: 303, headers: { location: '/page' } })
      t.match(await login(WRONG, { ...clean, referer: 'http://evil.test/sign-in' }), { statusCode: 401, headers: { location: undefined } })
      t.match(await login(ADA, { ...clean, origin: 'http://evil.test' }), { statusCode: 403 })
    }
  })
}

t.test('attack 30: a request line with a whole URL in it changes nothing', async t => {
  const fake = await startFakeOpenIdProvider(t)
  const app = await start(
    t,
    undefined,
    { providers: [fake.provider()] },
    { trustProxy: true },
    app => { app.get('/account', { preHandler: app.auth.requireUser }, async () => 'secret') }
  )
  await app.listen({ host: '127.0.0.1', port: 0 })
  const form = new URLSearchParams({ ...ADA, next: 'http://evil.test/page' }).toString()

  for (const base of [
    'http://evil.test', 'https://evil.test', 'HTTP://evil.test', 'http://app.example@evil.test', 'http://evil.test:444',
    'https://app.example', 'ftp://evil.test', ''
  ]) {
    const headers = { host: 'app.example' }
    const answers = [
      await sendRaw(app, 'GET', `${base}/auth/fake/login?next=http://evil.test/`, headers),
      await sendRaw(app, 'GET', `${base}/auth/fake/callback?state=guess&code=x`, headers),
      await sendRaw(app, 'POST', `${base}/auth/local/login`, headers, form),
      await sendRaw(app, 'POST', `${base}/auth/local/revoke`, headers, form)
    ]
    for (const { status, headers: { location = BASE_URL } } of answers) {
      const { origin, searchParams } = new URL(location, BASE_URL)
      t.ok(status < 500, `${base} ${status}`)
      t.ok(origin === BASE_URL || (origin === fake.issuer && searchParams.get('redirect_uri') === `${BASE_URL}/auth/fake/callback`), `${base} ${location}`)
    }
    const foreign = await sendRaw(app, 'POST', `${base}/auth/local/login`, { ...headers, origin: 'http://evil.test' }, form)
    t.ok([403, 404].includes(foreign.status), `${base} ${foreign.status}`)
    const guarded = await sendRaw(app, 'GET', `${base}/account`, headers)
    t.ok([401, 404].includes(guarded.status), `${base} ${guarded.status}`)
  }
})

t.test('attack 30: parameters of one request do not enter its authorization request, nor the next one', async t => {
  const fake = await startFakeOpenIdProvider(t)
  const app = await start(t, undefined, { providers: [fake.provider({ scopes: ['openid', 'email'], authorizationParams: { prompt: 'select_account' } })] })
  const polluted = new URLSearchParams({
    scope: 'openid admin',
    prompt: 'none',
    redirect_uri: 'https://evil.test/',
    client_id: 'evil',
    response_type: 'token',
    response_mode: 'fragment',
    state: 'fixed',
    nonce: 'fixed',
    code_challenge: 'fixed',
    code_challenge_method: 'plain',
    login_hint: 'victim@example.com',
    max_age: '0',
    acr_values: 'x',
    request_uri: 'https://evil.test/',
    request: 'x',
    claims: '{}',
    resource: 'https://evil.test/'
  })
  const parametersOf = async (query: string) => [...new URL((await new Browser(app).get(`/auth/fake/login${query}`)).headers.location ?? '').searchParams]
  const expected = {
    scope: 'openid email',
    prompt: 'select_account',
    client_id: fake.clientId,
    redirect_uri: `${BASE_URL}/auth/fake/callback`,
    response_type: 'code',
    code_challenge_method: 'S256'
  }
  const random = ['state', 'nonce', 'code_challenge']

  for (const queries of [[`?${polluted}`, ''], ['', `?${polluted}`, '', `?${polluted}`, '']]) {
    for (const parameters of await Promise.all(queries.map(parametersOf))) {
      t.strictSame(Object.fromEntries(parameters.filter(([name]) => !random.includes(name)).sort()), Object.fromEntries(Object.entries(expected).sort()))
      t.strictSame(parameters.map(([name]) => name).filter(name => random.includes(name)).sort(), [...random].sort())
      for (const [, value] of parameters) t.notMatch(value, /^fixed$|evil|admin/)
    }
  }
})

/** Left out of Fastify's types for `routerOptions`. */
const SEMICOLON = { useSemicolonDelimiter: true }

/** Routers, each with spellings that it takes for `/auth/local/login`. */
const ROUTERS: Array<[string, NonNullable<FastifyServerOptions['routerOptions']>, string[]]> = [
  ['default', {}, ['/auth/local/login', '/auth/local/%6cogin', '/%61uth/l%6Fcal/logi%6e']],
  ['ignoreDuplicateSlashes', { ignoreDuplicateSlashes: true }, ['//auth/local/login', '/auth//local///login', '///auth/local/%6cogin']],
  ['ignoreTrailingSlash', { ignoreTrailingSlash: true }, ['/auth/local/login/', '/auth/local/%6cogin/']],
  ['caseSensitive: false', { caseSensitive: false }, ['/AUTH/local/Login', '/auth/local/%4cOGIN']],
  [
    'useSemicolonDelimiter',
    { ...SEMICOLON, caseSensitive: true },
    ['/auth/local/login;x', '/auth/local/login;jsessionid=1?a=b', '/auth/local/login;link=true']
  ],
  [
    'all of them',
    { ...SEMICOLON, ignoreDuplicateSlashes: true, ignoreTrailingSlash: true, caseSensitive: false },
    ['//AUTH//%4cocal/LOGIN/;x=1?y', '/auth/local/login//;/']
  ]
]

/** Ways to write a path that some router takes for the same. */
function spellings (path: string): string[] {
  const [, first = '', ...others] = path.split('/')
  const rest = others.join('/')
  const last = path.slice(path.lastIndexOf('/') + 1)
  const before = path.slice(0, -last.length)
  const escaped = (text: string) => [...text].map(character => `%${character.charCodeAt(0).toString(16)}`).join('')
  return [
    path, `/${path}`, `//${path}`, path.replaceAll('/', '//'), `${before}/${last}`, `${path}/`, `${path}//`,
    `/${path}//`, path.toUpperCase(), `${before}${last.toUpperCase()}`, `/${first.toUpperCase()}/${rest}`,
    `${path};x`, `${path};x=1?y=2`, `${path};`, `${path}/;x`, `/${first};x/${rest}`, `${path}%3bx`, `${path}?`,
    `${path}?;`, `${path}#x`, `${path}?x#y`, `${path}%3f`, `${path}%23`,
    `${before}${escaped(last)}`, `/${escaped(first)}/${rest}`, `${before}${escaped(last).toUpperCase()}`,
    `${before}${escaped(last.toUpperCase())}`, `${before}${escaped(escaped(last))}`, `/${first}%2f${rest}`,
    `${before}%2f${last}`,
    `/.${path}`, `/..${path}`, `${before}./${last}`, `${before}../${before.slice(1)}${last}`, `${before}%2e/${last}`,
    `/x/..${path}`, `${path}/.`, `${path}/..;/${last}`, `/${path.slice(1).replaceAll('/', '\\')}`, `/\\${path}`,
    `${path}%20`, `${path}%00`, `${path}%09`, `${path}%0a`, `${path}.`, `${path}.json`, `${path}+`, `${path}%c0%80`,
    `${path}%`, path.replaceAll('k', '%E2%84%AA'), path.replaceAll('i', '%C4%B0'), path.replaceAll('s', '%C5%BF'),
    `http://evil.test${path}`, `HTTP://evil.test/${path}`, `https://evil.test${path};x`, `//evil.test${path}`
  ]
}

/** The path is none, or none of a route. */
const NOT_FOUND = [400, 404]

const LOCAL_ROUTES = ['register', 'login', 'token', 'verify-token', 'revoke']
const NAVIGATION = { 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'document' }

// The router with all of the settings takes most spellings.
for (const [name, routerOptions, known] of isThorough ? ROUTERS : ROUTERS.slice(-1)) {
  // The second is what no host can be called.
  for (const prefix of isThorough ? ['/auth', '/v1.0/Id~x'] : ['/auth']) {
    t.test(`attack 31: with the router's settings ${name} and the prefix ${prefix} every spelling that reaches a handler meets the same checks`, async t => {
      const app = await start(t, undefined, { prefix, providers: [new OwnProvider('a')] }, { routerOptions }, app => {
        app.post('/account', { onRequest: app.auth.refuseCrossOrigin }, async () => 'changed')
        app.get('/account', { preHandler: app.auth.requireUser }, async () => 'secret')
        app.get('/admin', { preHandler: app.auth.requireClaims({ role: 'admin' }) }, async () => 'secret')
        app.get('/api/status', { preHandler: app.auth.requireBearer }, async () => 'secret')
      })
      await app.listen({ host: '127.0.0.1', port: 0 })
      const victim = new Browser(app)
      await victim.post(`${prefix}/local/register`, ADA)
      await victim.post(`${prefix}/local/login`, ADA)
      const cookie = [...victim.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      const before = await principalIn(victim)
      t.match(before, { claims: { email: ADA.email } })
      const form = new URLSearchParams({ email: 'mallory@example.com', password: 'the password of Mallory', token: 'x' }).toString()
      // In `npm test` one route of the plugin stands for all.
      const routes = some(LOCAL_ROUTES, LOCAL_ROUTES.length).map(route => `${prefix}/local/${route}`)
      const posts = [...routes, '/account'].flatMap(spellings).concat(prefix === '/auth' ? known : [])
      const reached = new Set<string>()
      const wrong: unknown[] = []

      await forEach(posts, async path => {
        for (const foreign of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.test' }]) {
          const { status, body } = await sendRaw(app, 'POST', path, { cookie, ...foreign }, form)
          if (status === 403 && body.includes('cross_origin')) reached.add(path)
          else if (!NOT_FOUND.includes(status)) wrong.push([path, foreign, status])
        }
      })
      t.strictSame(wrong, [], 'pages of other origins are refused')
      t.strictSame(await principalIn(victim), before)
      t.equal(await app.auth.findUser({ email: 'mallory@example.com' }), null)
      if (prefix === '/auth') t.strictSame(known.filter(spelling => !reached.has(spelling)), [], 'among them those that the router is known to take')

      await forEach(posts, async path => {
        const { status } = await sendRaw(app, 'POST', path, { 'sec-fetch-site': 'same-origin', accept: 'application/json' }, form)
        if (status >= 500 || (reached.has(path) ? status === 404 : !NOT_FOUND.includes(status))) wrong.push([path, status])
      })
      t.strictSame(wrong, [], 'pages of its own get through to the same')

      await forEach(['/account', '/admin', '/api/status'].flatMap(spellings), async path => {
        const { status } = await sendRaw(app, 'GET', path)
        if (status !== 401 && !NOT_FOUND.includes(status)) wrong.push([path, status])
      })
      t.strictSame(wrong, [], 'guards let nobody pass')

      await forEach(spellings(`${prefix}/a/callback`), async path => {
        const { status } = await sendRaw(app, 'GET', `${path}${path.includes('?') ? '&' : '?'}state=guess&code=x`)
        if (!NOT_FOUND.includes(status)) wrong.push([path, status])
      })
      t.strictSame(wrong, [], 'a callback that was not asked for is refused')

      let linking = 0
      await forEach(some(spellings(`${prefix}/a/login`).flatMap(path => [
        `${path}${path.includes('?') ? '&' : '?'}link=true`,
        `${path};link=true`,
        `${path}?x=1;link=true`,
        `${path}?%6cink=true`
      ]), 3), async path => {
        const own = await sendRaw(app, 'GET', path, { ...NAVIGATION, cookie })
        const anonymous = await sendRaw(app, 'GET', path, NAVIGATION)
        if ([own, anonymous].some(({ status }) => status >= 500)) wrong.push([path, own.status, anonymous.status])
        if (own.status === 200) linking++
        // A sign-in starts for visitors too.
        if (own.status === 302 && anonymous.status !== 302) wrong.push([path, own.status, anonymous.status])
      })
      t.ok(linking > 0)
      t.strictSame(wrong, [], 'a GET shows a page where a linking is asked for, and starts a sign-in elsewhere')
    })
  }
}

for (const [name, routerOptions, known] of ROUTERS) {
  t.test(`attack 31: with the router's settings ${name} every spelling counts for the same limit`, async t => {
    const app = await start(t, undefined, { rateLimit: { login: known.length } }, { routerOptions })
    await app.listen({ host: '127.0.0.1', port: 0 })
    const form = new URLSearchParams(WRONG).toString()
    const statuses: number[] = []
    for (const path of [...known, ...known]) statuses.push((await sendRaw(app, 'POST', path, {}, form)).status)

    t.strictSame(statuses, [...known.map(() => 401), ...known.map(() => 429)])
  })
}

t.test('attack 31: a path that the session\'s cookie does not cover as it is spelled is refused', async t => {
  const app = await startApp(
    t,
    {
      local: localProvider(),
      providers: [new OwnProvider('a')],
      baseUrl: BASE_URL,
      rateLimit: false,
      session: { secret: SESSION_SECRET, cookie: { path: '/auth' } }
    },
    { routerOptions: { ignoreDuplicateSlashes: true, caseSensitive: false } }
  )
  await app.listen({ host: '127.0.0.1', port: 0 })

  for (const base of ['/%61uth', '//auth', '/AUTH', 'http://evil.test/auth']) {
    const form = new URLSearchParams(ADA).toString()
    for (const route of ['register', 'login', 'token', 'revoke']) {
      const { status, headers } = await sendRaw(app, 'POST', `${base}/local/${route}`, { accept: 'application/json' }, form)
      t.ok(status >= 400 && status < 500, `${base} ${route} ${status}`)
      t.equal(headers['set-cookie'], undefined)
    }
    for (const route of ['login', 'callback?state=x&code=y']) t.equal((await sendRaw(app, 'GET', `${base}/a/${route}`)).status, 400, `${base} ${route}`)
  }
  t.equal(await app.auth.findUser({ email: ADA.email }), null)
})
