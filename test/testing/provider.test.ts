import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { OidcProvider } from '../../lib/index.js'
import { type TestProvider, signedIn, startProvider } from '../../lib/testing.js'
import type { ProviderFault } from '../../lib/testing/provider.js'
import { startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'

const BASE_URL = 'https://app.example'

async function started (t: Test, timeout = 5000): Promise<{ google: TestProvider, app: FastifyInstance }> {
  const google = await startProvider({ name: 'google' })
  t.teardown(() => google.close())
  const app = await startApp(t, { baseUrl: BASE_URL, providers: [google.provider({ timeout })], loginPage: '/login' })
  return { google, app }
}

t.test('the user of the provider signs in, and ends on the page', async t => {
  const { google, app } = await started(t)

  const { response, headers } = await google.signIn(app, { next: '/notes' })
  const me = await app.inject({ url: '/me', headers })

  t.equal(response.headers.location, '/notes#', 'without a fragment of the provider')
  t.match(me.json(), { principal: { provider: 'google', claims: { sub: '1', email: 'ada@example.com', email_verified: true, name: 'Ada' } } })
})

t.test('applications in other processes sign users in at one provider, by its settings as data', async t => {
  const google = await startProvider({ name: 'google' })
  t.teardown(() => google.close())
  for (const sub of ['1', '2']) {
    const provider = new OidcProvider(JSON.parse(JSON.stringify(google.settings)))
    const app = await startApp(t, { baseUrl: BASE_URL, providers: [provider] })
    google.user = { sub }
    const { headers } = await google.signIn(app)
    t.match((await app.inject({ url: '/me', headers })).json(), { principal: { provider: 'google', claims: { sub } } })
  }
})

t.test('another user signs in as soon as the test says so', async t => {
  const { google, app } = await started(t)
  await google.signIn(app)

  google.user = { sub: '2', name: 'Bob' }
  const { headers } = await google.signIn(app)

  t.strictSame((await app.inject({ url: '/me', headers })).json().principal.claims, { sub: '2', name: 'Bob' })
})

t.test('a provider has the user and the name that it was started with', async t => {
  const provider = await startProvider({ user: { sub: '3', email: 'carol@example.com', email_verified: false } })
  t.teardown(() => provider.close())
  const app = await startApp(t, { baseUrl: BASE_URL, providers: [provider.provider()] })

  const { headers } = await provider.signIn(app)

  t.match((await app.inject({ url: '/me', headers })).json(), { principal: { provider: 'test', claims: { email_verified: false } } })
  t.match(await app.auth.findUser({ provider: 'test', subject: '3' }), { email: null })
})

const FAULTS: Array<[fault: ProviderFault, code: string]> = [
  ['access_denied', 'access_denied'],
  ['down', 'provider_unavailable'],
  ['slow', 'provider_unavailable'],
  ['server_error', 'provider_unavailable'],
  ['wrong_signature', 'provider_error'],
  ['wrong_nonce', 'provider_error'],
  ['expired', 'provider_error']
]

for (const [fault, code] of FAULTS) {
  t.test(`with the fault ${fault} the sign-in ends with ${code}, before and after one that went well`, async t => {
    const { google, app } = await started(t, fault === 'slow' ? 1000 : 5000)

    google.fault = fault
    const first = await google.signIn(app)
    google.fault = null
    const good = await google.signIn(app)
    google.fault = fault
    const last = await google.signIn(app)

    t.strictSame([first, good, last].map(({ response }) => response.headers.location?.replace(/#$/, '')), [`/login?error=${code}`, '/', `/login?error=${code}`])
    t.strictSame((await app.inject({ url: '/me', headers: first.headers })).json(), { principal: null })
  })
}

t.test('a browser comes straight back from it', async t => {
  const { google, app } = await started(t)
  const browser = new Browser(app)
  const { headers: { location = '' } } = await browser.get('/auth/google/login')

  const answer = await fetch(location, { redirect: 'manual' })
  const callback = new URL(answer.headers.get('location') ?? '')
  await browser.get(callback.pathname + callback.search)

  t.equal(callback.origin, BASE_URL)
  t.match((await browser.get('/me')).json(), { principal: { provider: 'google' } })
  t.ok(location.startsWith(`${google.issuer}/authorize?`))
})

t.test('a signed-in user links the identity of the provider', async t => {
  const { google, app } = await started(t)
  const headers = { ...await signedIn(app, { provider: 'github' }), accept: 'text/html', 'sec-fetch-site': 'same-origin' }
  const { userId } = (await app.inject({ url: '/me', headers })).json().principal

  const start = await app.inject({ method: 'POST', url: '/auth/google/login', headers: { ...headers, accept: 'application/json' }, payload: { link: 'true' } })
  const { pathname, search } = google.authorize(start.json().url)
  await app.inject({ url: pathname + search, headers })

  t.strictSame((await app.auth.links(userId)).map(({ provider, subject }) => [provider, subject]), [['github', userId], ['google', '1']])
})

t.test('a client that does not keep to the protocol gets nothing', async t => {
  const { google, app } = await started(t)
  const { headers: { location = '' } } = await app.inject('/auth/google/login')
  const authorization = new URL(location)
  const code = google.authorize(location).searchParams.get('code') ?? ''
  const post = async (form: Record<string, string>) => {
    const response = await fetch(`${google.issuer}/token`, { method: 'POST', body: new URLSearchParams(form) })
    return [response.status, await response.json()]
  }

  t.strictSame(await post({}), [401, { error: 'invalid_client' }])
  const wrongSecret = { client_id: authorization.searchParams.get('client_id') ?? '', client_secret: 'wrong', code }
  t.strictSame(await post(wrongSecret), [401, { error: 'invalid_client' }])
  t.equal((await fetch(`${google.issuer}/userinfo`)).status, 401)
  t.equal((await fetch(`${google.issuer}/nothing`)).status, 404)
  authorization.searchParams.delete('state')
  t.equal(google.authorize(authorization.href).searchParams.get('state'), '')
})

t.test('a code is good once, and for its verifier alone', async t => {
  const google = await startProvider({ name: 'google' })
  t.teardown(() => google.close())
  const provider = google.provider()
  const request = { state: 'state', nonce: 'nonce', codeVerifier: 'v'.repeat(43), redirectUri: `${BASE_URL}/auth/google/callback` }
  const consent = async () => google.authorize(String(await provider.authorizationUrl(request))).searchParams
  const response = { ...request, parameters: await consent() }

  t.match(await provider.authenticate(response), { identity: { subject: '1' } })
  await t.rejects(provider.authenticate(response), { code: 'provider_error' })
  await t.rejects(provider.authenticate({ ...request, codeVerifier: 'w'.repeat(43), parameters: await consent() }), { code: 'provider_error' })
})

t.test('an application that does not know the provider is told so', async t => {
  const { app } = await started(t)
  const other = await startProvider()
  t.teardown(() => other.close())

  await t.rejects(other.signIn(app), { code: 'invalid_options', message: 'signInUrl knows no provider "test"; expected one of google' })
})

t.test('a provider that was closed is down', async t => {
  const { google, app } = await started(t)
  const other = await startProvider()
  await other.close()
  await t.rejects(fetch(other.discoveryUrl))
  t.equal((await google.signIn(app)).response.headers.location, '/#')
})
