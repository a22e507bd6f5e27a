import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { type AuthorizationRequest, type AuthorizationResponse, type AuthPluginOptions, OAuth2Provider } from '../../index.js'
import { type SignInUrlOptions, SignedRequests } from './signed-requests.js'
import type { SignInParameters } from '../../providers/provider.js'
import { startFakeOpenIdProvider } from '../../../test/fakes/openid-provider.js'
import { SESSION_SECRET, principalIn, startApp } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import { setEnv } from '../../../test/helpers/environment.js'
import { startOpenIdProvider } from '../../../test/helpers/openid-provider.js'
import { FROM_OWN_PAGE, OwnProvider, identityOf } from '../../../test/helpers/own-provider.js'

/** A provider that notes what it is asked. */
class Noting extends OwnProvider {
  readonly requests: AuthorizationRequest[] = []
  readonly responses: AuthorizationResponse[] = []

  override async authorizationUrl (request: AuthorizationRequest): Promise<URL> {
    this.requests.push(request)
    return super.authorizationUrl(request)
  }

  override async authenticate (response: AuthorizationResponse) {
    this.responses.push(response)
    return super.authenticate(response)
  }
}

async function withProvider (t: Test, options: AuthPluginOptions = {}) {
  const provider = new Noting('a')
  const app = await startApp(t, { baseUrl: 'https://app.example', providers: [provider, new OwnProvider('b')], ...options })
  return { app, provider, browser: new Browser(app) }
}

const ASKED = { loginHint: 'ada@example.com', prompt: 'select_account', maxAge: 60, scopes: ['calendar'] }

t.test('signInUrl asks a provider for what the application wants, on the way there and back', async t => {
  const { app, provider, browser } = await withProvider(t)

  const { headers: { location = '' } } = await browser.get(app.auth.signInUrl('a', { ...ASKED, next: '/calendar?week=1' }))
  const callback = new URLSearchParams({ state: new URL(location).searchParams.get('state') ?? '', code: JSON.stringify(identityOf({ subject: '1' })) })
  const landing = await browser.get(`/auth/a/callback?${callback}`)

  t.equal(landing.headers.location, '/calendar?week=1')
  t.match(provider.requests, [ASKED])
  t.match(provider.responses, [ASKED])
})

t.test('signInUrl without anything to ask is the plain path, under the path of baseUrl, and needs no secret', async t => {
  const { app } = await withProvider(t, { baseUrl: 'https://app.example/shop' })

  t.equal(app.auth.signInUrl('a'), '/shop/auth/a/login')
  t.equal(app.auth.signInUrl('a', { next: '/cart?a=b&c', loginHint: '', prompt: undefined }), '/shop/auth/a/login?next=%2Fcart%3Fa%3Db%26c')
  t.equal(app.auth.signInUrl('a', { loginHint: 'a'.repeat(1001) }), '/shop/auth/a/login')
})

t.test('attack 16, attack 30: a request asks a provider for nothing that the application did not sign', async t => {
  const { app, provider, browser } = await withProvider(t)
  const plain = '/auth/a/login?login_hint=eve&loginHint=eve&prompt=none&max_age=0&maxAge=0&scope=all&scopes=all&hd=evil.example'
  await browser.get(plain)
  await browser.get(app.auth.signInUrl('a', ASKED))
  await browser.get('/auth/a/login')
  t.strictSame(provider.requests.map(({ loginHint, prompt, maxAge, scopes }) => ({ loginHint, prompt, maxAge, scopes })), [
    { loginHint: undefined, prompt: undefined, maxAge: undefined, scopes: undefined }, ASKED,
    { loginHint: undefined, prompt: undefined, maxAge: undefined, scopes: undefined }
  ])

  const signed = new URL(app.auth.signInUrl('a', ASKED), 'https://app.example').searchParams.get('signed') ?? ''
  const forged = Buffer.from(JSON.stringify({ provider: 'a', expires: Date.now() + 60_000, prompt: 'none' })).toString('base64url')
  const foreign = new SignedRequests(['another secret of at least 32 characters']).sign('a', ASKED)
  const tampered = `${signed.startsWith('A') ? 'B' : 'A'}${signed.slice(1)}`
  for (const odd of ['', 'x', forged, `${forged}.`, `${forged}.${signed.split('.')[1]}`, foreign, tampered, signed.slice(0, -1)]) {
    const { headers } = await browser.get(`/auth/a/login?${new URLSearchParams({ signed: odd })}`, FROM_OWN_PAGE)
    t.equal(headers.location, '/account?error=invalid_state', odd)
  }
  t.equal((await browser.get(`/auth/b/login?${new URLSearchParams({ signed })}`)).json().code, 'invalid_state', 'one of another provider')
  t.equal((await browser.get(`/auth/a/login?${new URLSearchParams([['signed', signed], ['signed', signed]])}`)).json().code, 'invalid_request')
  t.equal(provider.requests.length, 3)
})

t.test('what signInUrl signed is good for ten minutes', async t => {
  const { app, browser } = await withProvider(t)
  const url = app.auth.signInUrl('a', ASKED)

  advanceClock(t, 9 * 60_000)
  t.equal((await browser.get(url)).statusCode, 302)
  advanceClock(t, 2 * 60_000)
  t.equal((await browser.get(url)).json().code, 'invalid_state')
})

t.test('processes with one secret know each other\'s paths, also while it is changed', async t => {
  const next = 'the next session secret, 32 and more characters'
  const old = await withProvider(t)
  const both = await withProvider(t, { session: { secret: [next, SESSION_SECRET] } })
  const fresh = await withProvider(t, { session: { secret: next } })

  t.equal((await both.browser.get(old.app.auth.signInUrl('a', ASKED))).statusCode, 302)
  t.equal((await fresh.browser.get(both.app.auth.signInUrl('a', ASKED))).statusCode, 302)
  t.equal((await fresh.browser.get(old.app.auth.signInUrl('a', ASKED))).json().code, 'invalid_state')
})

t.test('with a session of the application signInUrl signs with SVC_SESSION_SECRET, and says so where there is none', async t => {
  const start = async () => {
    const app: FastifyInstance = Fastify()
    t.teardown(() => app.close())
    await app.register(fastifyCookie)
    await app.register(fastifySession, { secret: SESSION_SECRET, cookie: { secure: false } })
    await app.register(authPlugin, { baseUrl: 'https://app.example', providers: [new OwnProvider('a')] })
    return app
  }
  setEnv(t, { SVC_SESSION_SECRET: undefined })
  const without = await start()
  t.throws(() => without.auth.signInUrl('a', ASKED), { name: 'OptionsError', message: /set SVC_SESSION_SECRET/ })
  t.equal((await without.inject('/auth/a/login?signed=a.b')).json().code, 'invalid_state')

  setEnv(t, { SVC_SESSION_SECRET: SESSION_SECRET })
  const app = await start()
  t.equal((await app.inject(app.auth.signInUrl('a', ASKED))).statusCode, 302)
})

t.test('signInUrl refuses what it cannot ask', async t => {
  const { app } = await withProvider(t)
  t.throws(() => app.auth.signInUrl('c'), { name: 'OptionsError', message: 'signInUrl knows no provider "c"; expected one of a, b' })
  const odd: unknown[] = [
    null, 'ada', { hint: 'ada' }, { next: 5 }, { loginHint: 5 }, { prompt: '' }, { prompt: 5 }, { prompt: 'a  b' },
    { maxAge: -1 }, { maxAge: 1.5 }, { maxAge: '60' }, { scopes: 'calendar' }, { scopes: ['a b'] }, { scopes: [''] }
  ]
  for (const options of odd) {
    t.throws(
      () => app.auth.signInUrl('a', options as SignInUrlOptions),
      { name: 'OptionsError', message: /signInUrl/ },
      JSON.stringify(options)
    )
  }
})

t.test('an OpenID provider gets what is asked, and max_age is checked on the way back', async t => {
  const idp = await startOpenIdProvider(t, { redirectUris: ['https://app.example/auth/dev/callback'] })
  const app = await startApp(t, { baseUrl: 'https://app.example', providers: [idp.provider()] })
  const browser = new Browser(app)

  const { headers: { location = '' } } = await browser.get(app.auth.signInUrl('dev', { ...ASKED, prompt: 'consent', scopes: ['email', 'offline_access'] }))
  const { searchParams } = new URL(location)
  t.strictSame(
    ['login_hint', 'prompt', 'max_age', 'scope'].map(name => searchParams.get(name)),
    ['ada@example.com', 'consent', '60', 'openid email profile offline_access']
  )
  const callback = await idp.authorize(location)
  t.equal((await browser.get(callback.pathname + callback.search)).headers.location, '/')
  t.match(await principalIn(browser), { provider: 'dev' })

  // The provider says when the user signed in only where it is asked to.
  const again = new URL((await browser.get(app.auth.signInUrl('dev', { maxAge: 60 }))).headers.location ?? '')
  again.searchParams.delete('max_age')
  const unproven = await idp.authorize(again.href)
  t.equal((await browser.get(unproven.pathname + unproven.search)).json().code, 'provider_error')
})

t.test('attack 159: signInUrl asks for more than authorizationParams of every sign-in, and never for less', async t => {
  const fake = await startFakeOpenIdProvider(t)
  const seconds = (ago: number) => Math.floor(Date.now() / 1000) - ago
  const attempt = async (authorizationParams: Record<string, string>, asked: SignInParameters, ago = 0) => {
    const app = await startApp(t, { baseUrl: 'https://app.example', providers: [fake.provider({ authorizationParams })] })
    const browser = new Browser(app)
    const { headers: { location = '' } } = await browser.get(app.auth.signInUrl('fake', asked))
    fake.idTokenClaims = { auth_time: seconds(ago) }
    const answer = await browser.get(fake.consent(location), { accept: 'application/json' })
    const sent = new URL(location).searchParams
    return [sent.get('max_age'), sent.get('prompt'), answer.headers.location ?? answer.json().code]
  }
  const [hour, login] = [{ max_age: '3600' }, { prompt: 'login' }]

  t.strictSame(await attempt(hour, { maxAge: 86_400 }, 7200), ['3600', null, 'provider_error'])
  t.strictSame(await attempt(hour, { maxAge: 86_400 }, 1800), ['3600', null, '/'])
  t.strictSame(await attempt(hour, { maxAge: 60 }, 1800), ['60', null, 'provider_error'])
  t.strictSame(await attempt(hour, { loginHint: 'ada' }, 7200), ['3600', null, 'provider_error'])
  t.strictSame(await attempt({}, { maxAge: 60 }, 1800), ['60', null, 'provider_error'])
  t.strictSame(await attempt(login, {}), [null, 'login', '/'])
  t.strictSame(await attempt(login, { prompt: 'none' }), [null, 'login', '/'])
  t.strictSame(await attempt(login, { prompt: 'consent' }), [null, 'login consent', '/'])
  t.strictSame(await attempt(login, { prompt: 'login consent' }), [null, 'login consent', '/'])
  const choice = { prompt: 'select_account' }
  t.strictSame(await attempt(choice, { prompt: 'none' }), [null, 'select_account', '/'])
  t.strictSame(await attempt(choice, { prompt: 'consent' }), [null, 'consent', '/'], 'another page takes its place')
  t.strictSame(await attempt({}, { prompt: 'none' }), [null, 'none', '/'])
})

t.test('a provider without ID tokens refuses maxAge, which could not be checked', async t => {
  class Plain extends OAuth2Provider {
    constructor () {
      super({
        name: 'plain',
        authorizationEndpoint: 'https://plain.example/authorize',
        tokenEndpoint: 'https://plain.example/token',
        clientId: 'id',
        clientSecret: 'secret'
      })
    }

    protected override async identify (): Promise<never> { throw new Error('not asked') }
  }
  const app = await startApp(t, { baseUrl: 'https://app.example', providers: [new Plain()] })

  const { headers: { location = '' } } = await app.inject(app.auth.signInUrl('plain', { loginHint: 'ada', scopes: ['read'] }))
  t.match(Object.fromEntries(new URL(location).searchParams), { login_hint: 'ada', scope: 'read' })
  t.equal((await app.inject(app.auth.signInUrl('plain', { maxAge: 60 }))).json().code, 'provider_error')
})
