import t, { type Test } from 'tap'
import { Auth0Provider, FacebookProvider, GitHubProvider, GoogleProvider, MicrosoftProvider, OidcProvider } from '../../lib/index.js'
import { Auth0StandIn } from '../fakes/auth0.js'
import { FacebookStandIn } from '../fakes/facebook.js'
import { GitHubStandIn } from '../fakes/github.js'
import { GoogleStandIn } from '../fakes/google.js'
import { drops } from '../fakes/lies.js'
import { MicrosoftStandIn } from '../fakes/microsoft.js'
import type { StandIn } from '../fakes/stand-in.js'
import { startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { startOpenIdProvider } from '../helpers/openid-provider.js'
import { BASE_URL, failurePage, signIn } from './contract.js'

/** All five services, with one application that takes people from each. */
async function startAll (t: Test) {
  const google = await new GoogleStandIn().start(t)
  const github = await new GitHubStandIn().start(t)
  const microsoft = await new MicrosoftStandIn().start(t)
  const facebook = await new FacebookStandIn().start(t)
  const auth0 = await new Auth0StandIn().start(t)
  // Another person than at GitHub; the address alone would not make her the same one.
  facebook.user = { ...facebook.user, name: 'Emmy Example', email: 'emmy@example.com' }
  const app = await startApp(t, {
    baseUrl: BASE_URL,
    providers: [
      new GoogleProvider(clientOf(google)),
      new GitHubProvider(clientOf(github)),
      new MicrosoftProvider(clientOf(microsoft)),
      new FacebookProvider(clientOf(facebook)),
      new Auth0Provider({ ...clientOf(auth0), domain: 'tenant.eu.auth0.com' })
    ]
  })
  return { app, google, standIns: Object.entries({ google, github, microsoft, facebook, auth0 }) }
}

function clientOf ({ clientId, clientSecret, fetch }: StandIn) {
  return { clientId, clientSecret, fetch }
}

t.test('people of five providers sign in to one application, in any order and at once', async t => {
  const { app, standIns } = await startAll(t)
  t.strictSame(app.authProviders, ['google', 'github', 'microsoft', 'facebook', 'auth0'])

  const signIns = standIns.map(async ([name, standIn]) => {
    const browser = new Browser(app)
    t.equal((await signIn(browser, standIn, name)).headers.location, '/', name)
    return (await browser.get('/me')).json().principal
  })
  const principals = await Promise.all(signIns)

  t.strictSame(principals.map(({ provider }) => provider), app.authProviders)
  t.equal(new Set(principals.map(({ userId }) => userId)).size, 5)
})

t.test('one browser goes from provider to provider, each time as another user', async t => {
  const { app, standIns } = await startAll(t)
  const browser = new Browser(app)
  for (const [name, standIn] of standIns) {
    await signIn(browser, standIn, name)
    t.equal((await browser.get('/me')).json().principal.provider, name)
  }
})

t.test('a provider that is down takes no other down with it', async t => {
  const { app, google, standIns } = await startAll(t)
  google.lies.set('GET accounts.google.com/.well-known/openid-configuration', drops)
  for (const [name, standIn] of standIns) {
    t.equal((await signIn(new Browser(app), standIn, name)).headers.location, name === 'google' ? failurePage('provider_unavailable') : '/')
  }
})

t.test('a response of one provider is refused by another', async t => {
  const { app, google, standIns } = await startAll(t)
  for (const [name, standIn] of standIns.filter(([name]) => name !== 'google')) {
    const browser = new Browser(app)
    const login = await browser.get('/auth/google/login')
    const callback = await google.authorize(login.headers.location ?? '')
    const answer = await browser.get(callback.replace('/auth/google/', `/auth/${name}/`))
    t.match(answer, { statusCode: 400, body: /invalid_state/ }, name)
    t.strictSame(standIn.backChannelRequests(), [], name)
  }
})

t.test('two instances of OidcProvider with different names keep their people apart', async t => {
  const redirectUris = ['one', 'two'].map(name => `${BASE_URL}/auth/${name}/callback`)
  const [one, two] = await Promise.all([startOpenIdProvider(t, { redirectUris }), startOpenIdProvider(t, { redirectUris })])
  two.account = { sub: 'ada', email: 'another@example.com', email_verified: true, name: 'Another Ada' }
  const app = await startApp(t, { baseUrl: BASE_URL, providers: [one.provider({ name: 'one' }), two.provider({ name: 'two' })] })

  const principals = []
  for (const [name, idp] of Object.entries({ one, two })) {
    const browser = new Browser(app)
    const login = await browser.get(`/auth/${name}/login`)
    const callback = await idp.authorize(login.headers.location ?? '')
    await browser.get(callback.pathname + callback.search)
    principals.push((await browser.get('/me')).json().principal)
  }

  const [first, second] = principals
  t.match([first, second], [{ provider: 'one', claims: { sub: 'ada', name: 'Ada' } }, { provider: 'two', claims: { sub: 'ada', name: 'Another Ada' } }])
  t.not(first.userId, second.userId)
})

t.test('two providers of one name, and names that are not a segment of a URL, are refused at register', async t => {
  const client = { clientId: 'a', clientSecret: 'b' }
  const generic = (name: string) => new OidcProvider({ ...client, name, discoveryUrl: 'https://id.example/.well-known/openid-configuration' })
  const twice = [[new GitHubProvider(client), new GitHubProvider(client)], [new GoogleProvider(client), generic('google')], [generic('a'), generic('a')]]
  for (const providers of twice) {
    await t.rejects(startApp(t, { baseUrl: BASE_URL, providers }), { code: 'invalid_options', message: /different names/ })
  }
  for (const name of ['local', 'login', '..', 'a/b', ':x', 'A B', 'Google', '', '__proto__', 'constructor']) {
    t.throws(() => generic(name), { code: 'invalid_options', message: /name of a provider/ }, name)
    const own = { name, authorizationUrl: async () => new URL(BASE_URL), authenticate: async () => { throw new Error('nobody signs in here') } }
    await t.rejects(startApp(t, { baseUrl: BASE_URL, providers: [own] }), { code: 'invalid_options', message: /name of a provider/ }, name)
  }
})
