/** Sign-out at the provider, and attack 99: what is sent there, and what the providers make of it. */
import t, { type Test } from 'tap'
import {
  type AuthPluginOptions, Auth0Provider, type EndSessionRequest, type ExternalProvider, FacebookProvider, GitHubProvider, GoogleProvider,
  MicrosoftProvider, OidcProvider
} from '../../lib/index.js'
import { Auth0StandIn } from '../fakes/auth0.js'
import { json } from '../fakes/lies.js'
import { type LogoutAnswer, auth0, cognito, entra, keycloak } from '../fakes/logout-endpoints.js'
import { MicrosoftStandIn } from '../fakes/microsoft.js'
import { type FakeOpenIdProvider, startFakeOpenIdProvider } from '../fakes/openid-provider.js'
import { principalIn, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { DATA_SECRET } from '../helpers/factor-app.js'

const BASE_URL = 'https://app.example'
const REQUEST: EndSessionRequest = { redirectUri: `${BASE_URL}/auth/fake/signed-out`, state: 'the-state' }
const DISCOVERY = 'GET tenant.eu.auth0.com/.well-known/openid-configuration'

/** A provider, what a browser meets there, and what it shows. */
interface Case {
  provider: ExternalProvider
  clientId: string
  authorize: (url: string) => string | Promise<string>
  endpoint: typeof keycloak
}

async function start (t: Test, provider: ExternalProvider, options: AuthPluginOptions = {}): Promise<Browser> {
  return new Browser(await startApp(t, { baseUrl: BASE_URL, providers: [provider], dataSecret: DATA_SECRET, ...options }))
}

/** Signs in, then out here and there; the page on which the user ends, or what the provider shows. */
async function signOut (t: Test, { provider, clientId, authorize, endpoint }: Case): Promise<{ url: URL, end: string }> {
  const browser = await start(t, provider)
  const { headers: { location = '' } } = await browser.get(`/auth/${provider.name}/login`)
  t.equal((await browser.get(await authorize(location))).headers.location, '/')
  t.not(await principalIn(browser), null)
  const url = new URL((await browser.post('/auth/logout', { provider: true, next: '/bye' })).json().url)
  t.equal(await principalIn(browser), null)
  const answer: LogoutAnswer = endpoint(url, { clientId, signOutUrls: [`${BASE_URL}/auth/${provider.name}/signed-out`] })
  if ('shows' in answer) return { url, end: answer.shows }
  const back = await browser.get(answer.location.replace(BASE_URL, ''))
  return { url, end: String(back.headers.location) }
}

function oidcCase (fake: FakeOpenIdProvider, endpoint: typeof keycloak, Class = OidcProvider): Case {
  const { clientId, clientSecret, fetch, issuer } = fake
  fake.metadata.end_session_endpoint = `${issuer}/logout`
  const discoveryUrl = `${issuer}/.well-known/openid-configuration`
  const provider = new Class({ name: 'fake', discoveryUrl, clientId, clientSecret, fetch, signOut: true })
  return { provider, clientId, authorize: url => fake.consent(url), endpoint }
}

async function auth0Case (t: Test, changes: Record<string, unknown> = {}): Promise<Case & { standIn: Auth0StandIn }> {
  const standIn = await new Auth0StandIn().start(t)
  standIn.lies.set(DISCOVERY, ({ body }) => json(200, { ...JSON.parse(body), ...changes }))
  const { clientId, clientSecret, fetch } = standIn
  const provider = new Auth0Provider({ domain: 'tenant.eu.auth0.com', clientId, clientSecret, fetch, signOut: true })
  return { provider, clientId, authorize: async url => standIn.authorize(url), endpoint: auth0, standIn }
}

async function entraCase (t: Test, idTokenClaims: Record<string, unknown>): Promise<Case> {
  const standIn = await new MicrosoftStandIn().start(t)
  standIn.idTokenClaims = idTokenClaims
  const { clientId, clientSecret, fetch } = standIn
  const provider = new MicrosoftProvider({ clientId, clientSecret, fetch, signOut: true })
  return { provider, clientId, authorize: async url => standIn.authorize(url), endpoint: entra }
}

t.test('Keycloak signs the user out by the ID token without asking, and asks without one', async t => {
  const fake = await startFakeOpenIdProvider(t, 'https://id.example')
  const { end } = await signOut(t, oidcCase(fake, keycloak))
  t.equal(end, '/bye')

  fake.idTokenClaims = { groups: 'g'.repeat(4000) }
  const long = await signOut(t, oidcCase(fake, keycloak))
  t.strictSame([long.url.searchParams.get('id_token_hint'), long.end], [null, 'Do you want to log out?'])
})

t.test('Cognito signs the user out by a subclass with its parameters, and leads to the default page', async t => {
  const fake = await startFakeOpenIdProvider(t, 'https://id.example')
  const { clientId } = fake
  class CognitoProvider extends OidcProvider {
    override async endSessionUrl (request: EndSessionRequest): Promise<URL | null> {
      const url = await super.endSessionUrl(request)
      if (url !== null) url.search = String(new URLSearchParams({ client_id: clientId, logout_uri: request.redirectUri }))
      return url
    }
  }
  t.equal((await signOut(t, oidcCase(fake, cognito, CognitoProvider))).end, '/')
  t.match((await signOut(t, oidcCase(fake, cognito))).end, /redirect_uri/, 'the class for any provider does not')
})

t.test('Auth0 signs the user out by its endpoint, and where none is announced by the older one', async t => {
  const announced = await signOut(t, await auth0Case(t))
  t.strictSame([announced.url.pathname, announced.url.searchParams.get('logout_hint'), announced.end], ['/oidc/logout', 'Zt5StandIn-session-id', '/bye'])

  const older = await signOut(t, await auth0Case(t, { end_session_endpoint: undefined }))
  t.strictSame([older.url.host, older.url.pathname, older.end], ['tenant.eu.auth0.com', '/v2/logout', '/bye'])
  t.strictSame([...older.url.searchParams.keys()], ['client_id', 'returnTo'])

  const long = await auth0Case(t)
  long.standIn.customClaims = { groups: 'g'.repeat(4000) }
  const { url, end } = await signOut(t, long)
  t.strictSame([url.searchParams.get('id_token_hint'), end], [null, '/bye'], 'without the ID token the session id does')
})

t.test('Entra signs out the account that the optional claim login_hint names, and asks without it', async t => {
  const named = await signOut(t, await entraCase(t, { login_hint: 'O.CiQ-hint' }))
  t.strictSame([named.url.pathname, named.end], ['/common/oauth2/v2.0/logout', '/bye'])
  const unnamed = await signOut(t, await entraCase(t, {}))
  t.strictSame([unnamed.url.searchParams.get('logout_hint'), unnamed.end], [null, 'Pick an account to sign out of'])
  t.not(unnamed.url.searchParams.get('id_token_hint'), null)
})

t.test('a logout hint is sent only if it is a text of up to 512 characters', async t => {
  for (const loginHint of ['h'.repeat(513), '', 1, null, { a: 1 }, 'h'.repeat(512)]) {
    const { url } = await signOut(t, await entraCase(t, { login_hint: loginHint }))
    t.equal(url.searchParams.get('logout_hint'), typeof loginHint === 'string' && loginHint.length === 512 ? loginHint : null)
  }
})

t.test('attack 99: an OidcProvider has no URL for a sign-out without an endpoint, and refuses one that is not https:', async t => {
  const fake = await startFakeOpenIdProvider(t, 'https://id.example')
  const urlWith = async (endpoint: unknown, options: object = {}) => {
    fake.metadata.end_session_endpoint = endpoint
    return fake.provider({ allowInsecureRequests: false, fetch: fake.fetch, ...options }).endSessionUrl(REQUEST)
  }
  t.equal(await urlWith(undefined), null)
  for (const endpoint of ['http://id.example/end', 'javascript:alert(1)', '/end', '', null, 1, 'https://a@id.example/end']) {
    await t.rejects(urlWith(endpoint), { code: 'provider_error', cause: { message: /end_session_endpoint that is not an https: URL/ } })
  }
  t.equal((await urlWith('https://id.example/end?tenant=1'))?.href,
    `https://id.example/end?tenant=1&client_id=the-app&post_logout_redirect_uri=${encodeURIComponent(REQUEST.redirectUri)}&state=the-state`)
  t.equal((await urlWith('http://id.example/end', { allowInsecureRequests: true }))?.protocol, 'http:')
  t.equal((await urlWith('https://else.example/end'))?.host, 'else.example', 'on the host that the document names')
})

t.test('Google, GitHub and Facebook have no sign-out there', async t => {
  const options = { clientId: 'a', clientSecret: 'b', signOut: true }
  for (const Class of [GoogleProvider, GitHubProvider, FacebookProvider]) {
    t.throws(() => new Class(options), { name: 'OptionsError', message: /signOut/ })
  }
  t.equal(new GoogleProvider({ clientId: 'a', clientSecret: 'b' }).signOut, false)
})
