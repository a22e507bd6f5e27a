import type { ServerResponse } from 'node:http'
import t from 'tap'
import { AuthError, type ExternalProvider, MemoryAuthStore, SqlAuthStore } from '../../index.js'
import { type FakeOpenIdProvider, startFakeOpenIdProvider } from '../../../test/fakes/openid-provider.js'
import { startApp } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { startOpenIdProvider } from '../../../test/helpers/openid-provider.js'

const BASE_URL = 'https://app.example'
const CALLBACK = `${BASE_URL}/auth/dev/callback`
const CLAIMS = { sub: 'ada', email: 'ada@example.com', email_verified: true, name: 'Ada', picture: 'https://id.example/ada.png' }

t.test('sign-ins at a real OpenID provider end as its answers say', async t => {
  for (const conformIdTokenClaims of [true, false]) {
    t.test(`a person signs in, the claims are ${conformIdTokenClaims ? 'at userinfo' : 'in the ID token'}`, async t => {
      const idp = await startOpenIdProvider(t, { redirectUris: [CALLBACK], configuration: { conformIdTokenClaims } })
      const app = await startApp(t, { baseUrl: BASE_URL, providers: [idp.provider()] })
      const browser = new Browser(app)

      const login = await browser.get('/auth/dev/login?next=/welcome')
      const callback = await idp.authorize(login.headers.location ?? '')
      const landing = await browser.get(callback.pathname + callback.search)

      t.equal(login.statusCode, 302)
      t.equal(callback.origin + callback.pathname, CALLBACK)
      t.equal(landing.statusCode, 302)
      t.equal(landing.headers.location, '/welcome')
      t.match((await browser.get('/me')).json().principal, { userId: /^[0-9a-f-]{36}$/, provider: 'dev', claims: CLAIMS })
      t.equal(idp.requests.includes('/me'), conformIdTokenClaims, 'userinfo is asked for what the ID token lacks')
    })
  }

  t.test('a user who does not consent returns to the page of the start with access_denied', async t => {
    const idp = await startOpenIdProvider(t, { redirectUris: [CALLBACK] })
    const app = await startApp(t, { baseUrl: BASE_URL, providers: [idp.provider()] })
    const browser = new Browser(app)
    idp.consents = false

    const login = await browser.get('/auth/dev/login', { referer: `${BASE_URL}/sign-in?lang=en#form` })
    const callback = await idp.authorize(login.headers.location ?? '')
    const landing = await browser.get(callback.pathname + callback.search)

    t.equal(landing.statusCode, 302)
    t.equal(landing.headers.location, '/sign-in?lang=en&error=access_denied#form')
    t.equal((await browser.get('/me')).json().principal, null)
  })

  for (const store of [new MemoryAuthStore(), new SqlAuthStore(':memory:')]) {
    t.test(`${store.constructor.name}: identity claims are refreshed, granted claims stay over them`, async t => {
      const idp = await startOpenIdProvider(t, { redirectUris: [CALLBACK] })
      const app = await startApp(t, { baseUrl: BASE_URL, providers: [idp.provider()], store })
      const signIn = async () => {
        const browser = new Browser(app)
        const login = await browser.get('/auth/dev/login')
        const callback = await idp.authorize(login.headers.location ?? '')
        await browser.get(callback.pathname + callback.search)
        return (await browser.get('/me')).json().principal
      }
      const before = await signIn()
      await app.auth.grant(before.userId, { role: 'admin', picture_of: { day: 1 } })
      idp.account = { sub: 'ada', email: 'ada@new.example', email_verified: true, name: 'Ada Lovelace' }

      const after = await signIn()

      t.equal(after.userId, before.userId)
      t.strictSame(after.claims, { sub: 'ada', email: 'ada@new.example', email_verified: true, name: 'Ada Lovelace', role: 'admin', picture_of: { day: 1 } })
      t.match(await app.auth.findUser({ email: 'ada@new.example' }), { userId: before.userId, name: 'Ada Lovelace', emailVerified: true })
      t.equal(await app.auth.findUser({ email: 'ada@example.com' }), null)
      t.equal((await app.auth.findUser({ provider: 'dev', subject: 'ada' }))?.userId, before.userId)
    })
  }
})

t.test('the authorization request carries state, nonce and a PKCE challenge, new ones each time', async t => {
  const fake = await startFakeOpenIdProvider(t)
  const app = await startApp(t, {
    baseUrl: `${BASE_URL}/`,
    prefix: '/id',
    providers: [fake.provider({ authorizationParams: { prompt: 'login' }, scopes: ['openid', 'email'] })]
  })
  const browser = new Browser(app)

  const [first, second] = await Promise.all(['/id/fake/login', '/id/fake/login'].map(async url => new URL(
    (await browser.get(url)).headers.location ?? ''
  ).searchParams))

  t.match(Object.fromEntries(first ?? []), {
    response_type: 'code',
    client_id: fake.clientId,
    redirect_uri: 'https://app.example/id/fake/callback',
    scope: 'openid email',
    prompt: 'login',
    code_challenge_method: 'S256',
    code_challenge: /^[\w-]{43}$/,
    state: /^[\w-]{43}$/,
    nonce: /^[\w-]{43}$/
  })
  for (const parameter of ['state', 'nonce', 'code_challenge']) t.not(first?.get(parameter), second?.get(parameter))
})

t.test('the callback answers no-store, and its code and state reach no log', async t => {
  const lines: string[] = []
  const fake = await startFakeOpenIdProvider(t)
  const app = await startApp(t, { baseUrl: BASE_URL, providers: [fake.provider()] }, {
    logger: { level: 'trace', stream: { write: (line: string) => { lines.push(line) } } }
  })
  const browser = new Browser(app)
  const login = await browser.get('/auth/fake/login')
  const callback = fake.consent(login.headers.location ?? '')

  const landing = await browser.get(callback)
  await browser.get(callback)

  t.equal(landing.headers['cache-control'], 'no-store, no-transform')
  t.equal(landing.headers['referrer-policy'], 'no-referrer')
  const secrets = [...new URL(callback, BASE_URL).searchParams].filter(([name]) => name !== 'iss').map(([, value]) => value)
  secrets.push(fake.clientSecret, 'the-access-token', 'the-refresh-token')
  t.equal(secrets.length, 5)
  for (const secret of secrets) t.notOk(lines.join('').includes(secret))
  t.ok(lines.some(line => line.includes('/auth/fake/callback')), 'the path is logged')
})

t.test('HEAD starts nothing and uses nothing up', async t => {
  const fake = await startFakeOpenIdProvider(t)
  const app = await startApp(t, { baseUrl: BASE_URL, providers: [fake.provider()] })
  const browser = new Browser(app)
  const login = await browser.get('/auth/fake/login')
  const callback = fake.consent(login.headers.location ?? '')

  t.equal((await browser.send({ method: 'HEAD', url: '/auth/fake/login' })).statusCode, 404)
  t.equal((await browser.send({ method: 'HEAD', url: callback })).statusCode, 405)
  t.equal((await browser.get(callback)).headers.location, '/')
})

t.test('next is honoured on this origin only, and not on the callback', async t => {
  const fake = await startFakeOpenIdProvider(t)
  const app = await startApp(t, { baseUrl: BASE_URL, providers: [fake.provider()] })
  const cases = {
    '/here?a=b#c': '/here?a=b#c',
    'https://app.example/here': '/here',
    '//evil.example': '/',
    'https://evil.example/': '/',
    '/\\evil.example': '/'
  }

  for (const [next, expected] of Object.entries(cases)) {
    const browser = new Browser(app)
    const login = await browser.get(`/auth/fake/login?next=${encodeURIComponent(next)}`)
    const landing = await browser.get(`${fake.consent(login.headers.location ?? '')}&next=/elsewhere`)
    t.equal(landing.headers.location, expected)
  }
  t.equal((await new Browser(app).get('/auth/fake/login?next=/a&next=/b')).statusCode, 400)
})

t.test('each failure of a sign-in has its code', async t => {
  const PAGE = `${BASE_URL}/sign-in?lang=en`
  const down = (_answer: unknown, response: ServerResponse) => { response.destroy(); return 'handled' as const }

  t.test('a provider that fails at the start sends the user back to the page, and the application goes on', async t => {
    const [fake, healthy] = [await startFakeOpenIdProvider(t), await startFakeOpenIdProvider(t)]
    fake.lies.set('/.well-known/openid-configuration', down)
    const app = await startApp(t, { baseUrl: BASE_URL, providers: [fake.provider(), healthy.provider({ name: 'healthy' })] })
    const browser = new Browser(app)

    t.equal((await browser.get('/auth/fake/login', { referer: PAGE })).headers.location, '/sign-in?lang=en&error=provider_unavailable')
    t.match((await browser.get('/auth/fake/login')).json(), { code: 'provider_unavailable' })
    t.equal((await browser.get('/auth/fake/login', { referer: 'https://evil.example/' })).statusCode, 503)
    t.equal((await browser.get('/auth/healthy/login')).statusCode, 302)
    fake.lies.clear()
    t.equal((await browser.get('/auth/fake/login')).statusCode, 302)
  })

  for (const [name, code, status, lie] of [
    ['a bad token', 'provider_error', 502, (fake: FakeOpenIdProvider) => { fake.idTokenClaims = { nonce: 'another' } }],
    ['a provider that is down', 'provider_unavailable', 503, (fake: FakeOpenIdProvider) => { fake.lies.set('/token', down) }],
    ['a provider that never answers', 'provider_unavailable', 503, (fake: FakeOpenIdProvider) => { fake.lies.set('/token', () => 'handled') }],
    ['a subject that cannot be stored', 'provider_error', 502, (fake: FakeOpenIdProvider) => { fake.idTokenClaims = { sub: 'ada\0' } }],
    [
      'a store that is down',
      'unavailable',
      503,
      (_fake: FakeOpenIdProvider, store: MemoryAuthStore) => {
        store.change = async () => { throw new Error('on fire') }
      }
    ]
  ] as const) {
    t.test(`${name} ends the sign-in with ${code} and no session`, async t => {
      const fake = await startFakeOpenIdProvider(t)
      const store = new MemoryAuthStore()
      const app = await startApp(t, { baseUrl: BASE_URL, providers: [fake.provider({ timeout: 1000 })], store })
      const browser = new Browser(app)
      const callbacks: string[] = []
      for (const referer of [PAGE, PAGE, '']) {
        const login = await browser.get('/auth/fake/login', referer === '' ? {} : { referer })
        callbacks.push(fake.consent(login.headers.location ?? ''))
      }
      lie(fake, store)

      const [onPage, asJson, withoutPage] = callbacks
      t.equal((await browser.get(onPage ?? '')).headers.location, `/sign-in?lang=en&error=${code}`)
      t.strictSame(Object.keys((await browser.get(asJson ?? '', { accept: 'application/json' })).json()), ['statusCode', 'code', 'error', 'message'])
      t.match(await browser.get(withoutPage ?? ''), { statusCode: status, body: new RegExp(`"code":"${code}"`) })
      t.equal((await browser.get('/me')).json().principal, null)
    })
  }

  t.test('whatever a provider of the application throws is a failure of that provider', async t => {
    const failures: Array<[unknown, string, RegExp]> = [
      [Object.assign(new Error('no such team'), { statusCode: 401 }), 'provider_error', /no such team/],
      [Object.assign(new Error('slow down'), { statusCode: 429 }), 'provider_error', /slow down/],
      [new TypeError('x is not a function'), 'provider_error', /x is not a function/],
      ['a string', 'provider_error', /unknown failure/],
      ...(['access_denied', 'not_allowed'] as const).map((code): [unknown, string, RegExp] =>
        [new AuthError(code, { cause: new Error('not in the team') }), code, /"reason":"not in the team"/]),
      [new AuthError('provider_unavailable'), 'provider_unavailable', /provider_unavailable/]
    ]
    for (const [failure, code, logged] of failures) {
      for (const isAsync of [true, false]) {
        const lines: string[] = []
        const own: ExternalProvider = {
          name: 'own',
          authorizationUrl: async ({ state }) => new URL(`https://own.example/?state=${state}`),
          authenticate: isAsync ? async () => { throw failure } : () => { throw failure }
        }
        const app = await startApp(t, { baseUrl: BASE_URL, providers: [own] }, {
          logger: { level: 'info', stream: { write: (line: string) => { lines.push(line) } } }
        })
        const browser = new Browser(app)
        const login = await browser.get('/auth/own/login', { referer: PAGE })
        const { searchParams } = new URL(login.headers.location ?? '')
        t.equal((await browser.get(`/auth/own/callback?code=c&state=${searchParams.get('state')}`)).headers.location, `/sign-in?lang=en&error=${code}`)
        t.match(lines.join(''), logged)
      }
    }
  })

  t.test('no failure reflects the words of the provider', async t => {
    const fake = await startFakeOpenIdProvider(t)
    const app = await startApp(t, { baseUrl: BASE_URL, providers: [fake.provider()] })
    const browser = new Browser(app)
    const login = await browser.get('/auth/fake/login', { referer: PAGE })
    const response = await browser.get(fake.consent(login.headers.location ?? '', { code: null, error: '<script>', error_description: 'x\r\nSet-Cookie: a=b' }))
    t.equal(response.headers.location, '/sign-in?lang=en&error=provider_error')
    t.notMatch(JSON.stringify([response.headers, response.body]), /script|a=b/)
  })
})

t.test('attack 26: a redirect behind a callback ends what the provider has sent as fragment', async t => {
  const idp = await startOpenIdProvider(t, { redirectUris: [CALLBACK] })
  const app = await startApp(t, { baseUrl: BASE_URL, providers: [idp.provider()] })
  const landingOf = async (next: string, more = '') => {
    const browser = new Browser(app)
    const login = await browser.get(`/auth/dev/login?next=${encodeURIComponent(next)}`, { referer: `${BASE_URL}/sign-in` })
    const callback = await idp.authorize(login.headers.location ?? '')
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    return (await app.inject({ url: callback.pathname + callback.search + more, headers: { cookie, accept: 'text/html' } })).headers.location
  }

  t.equal(await landingOf('/'), '/#', 'else `#_=_` of Facebook stays in the URL')
  t.equal(await landingOf('/cart?a=b'), '/cart?a=b#')
  t.equal(await landingOf('/cart#top'), '/cart#top')
  idp.consents = false
  t.equal(await landingOf('/cart'), '/sign-in?error=access_denied#')
})
