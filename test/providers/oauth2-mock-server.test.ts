/** The generic provider against a second real server besides oidc-provider: it announces public clients alone and no userinfo claims. */
import { OAuth2Server } from 'oauth2-mock-server'
import t from 'tap'
import type { Test } from 'tap'
import { OidcProvider } from '../../lib/index.js'
import { startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'

async function startMockServer (t: Test): Promise<{ server: OAuth2Server, provider: OidcProvider }> {
  const server = new OAuth2Server()
  await server.issuer.keys.generate('RS256')
  await server.start(0, '127.0.0.1')
  t.teardown(() => server.stop())
  const discoveryUrl = `${server.issuer.url}/.well-known/openid-configuration`
  return { server, provider: new OidcProvider({ name: 'mock', discoveryUrl, clientId: 'the-app', clientSecret: 'the secret', allowInsecureRequests: true }) }
}

async function signIn (browser: Browser, onRequest = async (_nonce: string | null) => {}): Promise<string | undefined> {
  const login = await browser.get('/auth/mock/login?next=/account')
  await onRequest(new URL(login.headers.location ?? '').searchParams.get('nonce'))
  const response = await fetch(login.headers.location ?? '', { redirect: 'manual' })
  const callback = new URL(response.headers.get('location') ?? '')
  return (await browser.get(callback.pathname + callback.search)).headers.location
}

t.test('a person signs in, and again with new claims', async t => {
  const { server, provider } = await startMockServer(t)
  let name = 'Ada'
  server.service.on('beforeTokenSigning', token => {
    Object.assign(token.payload, { aud: 'the-app', email: 'ada@example.com', email_verified: true, name })
  })
  server.service.on('beforeUserinfo', response => { response.body = { sub: 'johndoe', picture: 'https://id.example/ada.png' } })
  const app = await startApp(t, { baseUrl: 'https://app.example', providers: [provider] })
  const principals = []
  for (name of ['Ada', 'Ada Lovelace']) {
    const browser = new Browser(app)
    t.equal(await signIn(browser), '/account')
    principals.push((await browser.get('/me')).json().principal)
  }

  const [first, second] = principals
  t.strictSame(first.claims, { sub: 'johndoe', email: 'ada@example.com', email_verified: true, name: 'Ada', picture: 'https://id.example/ada.png' })
  t.strictSame(second, { ...first, claims: { ...first.claims, name: 'Ada Lovelace' } })
})

t.test('a token for another audience, and one that a foreign key signed, do not sign in', async t => {
  const { server, provider } = await startMockServer(t)
  const app = await startApp(t, { baseUrl: 'https://app.example', providers: [provider] })
  const browser = new Browser(app)
  let aud = 'another-app'
  server.service.on('beforeTokenSigning', token => { Object.assign(token.payload, { aud }) })
  t.equal(await signIn(browser), undefined)

  aud = 'the-app'
  t.equal(await signIn(browser), '/account')

  const { server: { issuer: stranger } } = await startMockServer(t)
  stranger.url = server.issuer.url
  const kid = server.issuer.keys.get()?.kid
  let idToken = ''
  server.service.on('beforeResponse', response => { response.body.id_token = idToken })
  const forge = async (nonce: string | null) => {
    idToken = await stranger.buildToken({
      scopesOrTransform: (header, payload) => {
        Object.assign(header, { kid })
        Object.assign(payload, { aud: 'the-app', sub: 'johndoe', nonce })
      }
    })
  }
  const victim = new Browser(app)
  t.equal(await signIn(victim, forge), undefined)
  t.equal((await victim.get('/me')).json().principal, null)
})
