import { OAuth2Server } from 'oauth2-mock-server'
import t, { type Test } from 'tap'
import { AuthError, OidcProvider } from '../../lib/index.js'
import type { ClientAuthentication } from '../../lib/providers/provider.js'
import { type Answer, html, json } from '../fakes/lies.js'
import { type FakeOpenIdProvider, startFakeOpenIdProvider } from '../fakes/openid-provider.js'
import { startOpenIdProvider } from '../helpers/openid-provider.js'

const METHODS: readonly ClientAuthentication[] = ['client_secret_basic', 'client_secret_post']
const BOTH: readonly ClientAuthentication[][] = [['client_secret_basic', 'client_secret_post'], ['client_secret_post', 'client_secret_basic']]
const CHECKS = { redirectUri: 'https://app.example/auth/any/callback', state: 'the-state', nonce: 'the-nonce', codeVerifier: 'a'.repeat(43) }

async function signIn (provider: OidcProvider, authorize: (url: string) => string | Promise<string>) {
  const { href } = await provider.authorizationUrl(CHECKS)
  const { searchParams: parameters } = new URL(await authorize(href), 'https://app.example')
  return provider.authenticate({ ...CHECKS, parameters })
}

async function subjectAt (fake: FakeOpenIdProvider, provider: OidcProvider): Promise<string> {
  return (await signIn(provider, url => fake.consent(url))).identity.subject
}

async function failureAt (t: Test, fake: FakeOpenIdProvider, provider: OidcProvider): Promise<string> {
  try {
    await subjectAt(fake, provider)
  } catch (error) {
    if (error instanceof AuthError && error.code === 'provider_error' && error.cause instanceof Error) return error.cause.message
    throw error
  }
  return t.fail('the sign-in succeeded') as never
}

t.test('a client of oidc-provider signs in with the method that it is registered with', async t => {
  for (const method of METHODS) {
    const client = { token_endpoint_auth_method: method }
    for (const configuration of [{}, { clientAuthMethods: [method] }]) {
      const idp = await startOpenIdProvider(t, { redirectUris: [CHECKS.redirectUri], client, configuration })
      for (const options of [{}, { clientAuthentication: method }]) {
        const { identity } = await signIn(idp.provider(options), async url => (await idp.authorize(url)).href)
        t.equal(identity.subject, 'ada', method)
      }
      const attempt = signIn(idp.provider({ clientSecret: 'not-the-secret' }), async url => (await idp.authorize(url)).href)
      await t.rejects(attempt, { code: 'provider_error', cause: { message: /check clientId.*\(invalid_client: / } })
    }
  }
})

t.test('a client of oauth2-mock-server, which announces public clients alone, sends its secret in the body', async t => {
  const server = new OAuth2Server()
  await server.issuer.keys.generate('RS256')
  await server.start(0, '127.0.0.1')
  t.teardown(() => server.stop())
  server.service.on('beforeTokenSigning', token => { Object.assign(token.payload, { aud: 'the-app' }) })
  const discoveryUrl = `${server.issuer.url}/.well-known/openid-configuration`
  const sent: Array<[header: string | null, body: string]> = []
  const notingFetch: typeof fetch = async (url, init) => {
    if (init?.method === 'POST') sent.push([new Headers(init.headers).get('authorization'), String(init.body)])
    return fetch(url, init)
  }
  const provider = new OidcProvider({
    name: 'mock',
    discoveryUrl,
    clientId: 'the-app',
    clientSecret: 'the secret',
    allowInsecureRequests: true,
    fetch: notingFetch
  })

  await signIn(provider, async url => (await fetch(url, { redirect: 'manual' })).headers.get('location') ?? '')

  t.match(sent, [[null, /client_id=the-app&client_secret=the\+secret/]])
})

t.test('the method is the one that the metadata leave as the only one', async t => {
  const cases: Array<[announced: string[], method: ClientAuthentication]> = [
    [['client_secret_basic'], 'client_secret_basic'],
    [['client_secret_post'], 'client_secret_post'],
    [['private_key_jwt', 'client_secret_post', 'none'], 'client_secret_post'],
    [['none', 'client_secret_basic'], 'client_secret_basic'],
    [['none'], 'client_secret_post'],
    [['none', 'private_key_jwt'], 'client_secret_post']
  ]
  for (const [announced, method] of cases) {
    const fake = await startFakeOpenIdProvider(t)
    fake.metadata.token_endpoint_auth_methods_supported = announced
    t.equal(await subjectAt(fake, fake.provider()), 'ada', announced.join(' '))

    fake.lies.set('/token', () => json(401, { error: 'invalid_client' }))
    await failureAt(t, fake, fake.provider())
    t.strictSame(fake.authentications, [method, method], `${announced.join(' ')}: no other method is tried`)
  }
})

t.test('where the metadata leave a choice, the other method is tried once after invalid_client, and what worked is remembered', async t => {
  for (const announced of [['client_secret_post', 'client_secret_basic'], ['private_key_jwt'], [], undefined]) {
    for (const [first, second] of BOTH) {
      const fake = await startFakeOpenIdProvider(t)
      fake.metadata.token_endpoint_auth_methods_supported = announced
      const provider = fake.provider()
      fake.registeredWith = first ?? null
      t.equal(await subjectAt(fake, provider), 'ada')
      const learning = first === 'client_secret_basic' ? [first] : [second, first]
      t.strictSame(fake.authentications, learning, 'client_secret_basic is first')
      t.equal(await subjectAt(fake, provider), 'ada')
      t.strictSame(fake.authentications, [...learning, first], 'the method that worked is remembered')

      fake.registeredWith = second ?? null
      fake.authentications.length = 0
      for (let time = 0; time < 2; time++) t.equal(await subjectAt(fake, provider), 'ada')
      t.strictSame(fake.authentications, [first, second, second], 'a new registration is noticed')
    }
  }
})

t.test('invalid_client with status 200 is one too', async t => {
  const fake = await startFakeOpenIdProvider(t)
  fake.registeredWith = 'client_secret_post'
  fake.lies.set('/token', answer => ({ ...answer, status: 200 }))
  t.equal(await subjectAt(fake, fake.provider()), 'ada')
})

t.test('where client_id is wanted in the body, the log points to the option', async t => {
  const fake = await startFakeOpenIdProvider(t)
  fake.metadata.token_endpoint_auth_methods_supported = ['client_secret_basic']
  fake.lies.set('/token', () => json(400, { error: 'invalid_request', error_description: 'client_id is missing' }))
  t.equal(await failureAt(t, fake, fake.provider()),
    'set clientAuthentication to "client_secret_post" if the provider reads client_id from the body (invalid_request: client_id is missing)')
})

t.test('after any other failure the other method is not tried', async t => {
  for (const [status, error] of [[400, 'invalid_grant'], [400, 'invalid_request'], [401, 'access_denied'], [401, undefined], [503, undefined]] as const) {
    const fake = await startFakeOpenIdProvider(t)
    fake.lies.set('/token', () => json(status, { error }))
    await t.rejects(subjectAt(fake, fake.provider()))
    t.strictSame(fake.authentications, ['client_secret_basic'], `${status} ${error}`)
  }
})

/** What providers answer that refuse a client. */
const REFUSALS: Record<string, Answer> = {
  'unauthorized_client of Keycloak': json(401, { error: 'unauthorized_client', error_description: 'Invalid client or Invalid client credentials' }),
  'unauthorized_client with status 400': json(400, { error: 'unauthorized_client' }),
  'a page with status 401': html(401, '<h1>Unauthorized</h1>'),
  'status 401 without a body': { status: 401, headers: { 'www-authenticate': 'Basic' }, body: '' }
}

for (const [name, refusal] of Object.entries(REFUSALS)) {
  t.test(`the other method is tried after ${name}, as after invalid_client`, async t => {
    const fake = await startFakeOpenIdProvider(t)
    const provider = fake.provider()
    fake.registeredWith = 'client_secret_post'
    fake.lies.set('/token', answer => answer.status === 401 ? refusal : answer)

    for (let time = 0; time < 2; time++) t.equal(await subjectAt(fake, provider), 'ada')

    t.strictSame(fake.authentications, ['client_secret_basic', 'client_secret_post', 'client_secret_post'])
  })
}

t.test('a method that has not worked is not remembered, and the log begins with id and secret', async t => {
  for (const answer of [json(400, { error: 'invalid_request' }), json(401, { error: 'access_denied' }), html(200, 'Welcome'), json(302, {}), json(200, {})]) {
    const fake = await startFakeOpenIdProvider(t)
    fake.registeredWith = 'client_secret_basic'
    const provider = fake.provider()
    // As with a wrong secret, which the provider then learns.
    fake.lies.set('/token', () => fake.authentications.length % 2 === 1 ? json(401, { error: 'invalid_client' }) : answer)
    t.match(await failureAt(t, fake, provider), /^check clientId and clientSecret/, answer.body)

    fake.lies.clear()
    fake.authentications.length = 0
    t.equal(await subjectAt(fake, provider), 'ada')
    t.strictSame(fake.authentications, ['client_secret_basic'], answer.body)
  }
})

t.test('a provider that fails at the second method is unavailable, and nothing is remembered', async t => {
  const fake = await startFakeOpenIdProvider(t)
  const provider = fake.provider()
  fake.lies.set('/token', () => fake.authentications.length === 1 ? json(401, { error: 'invalid_client' }) : json(503, {}))
  await t.rejects(subjectAt(fake, provider), { code: 'provider_unavailable' })

  fake.lies.clear()
  t.equal(await subjectAt(fake, provider), 'ada')
  t.strictSame(fake.authentications, ['client_secret_basic', 'client_secret_post', 'client_secret_basic'])
})

t.test('members of a token response that are null are absent', async t => {
  const fake = await startFakeOpenIdProvider(t)
  fake.lies.set('/token', answer => json(answer.status, {
    ...JSON.parse(answer.body), refresh_token: null, scope: null, expires_in: null, error: null, error_description: null
  }))

  const { identity, tokens } = await signIn(fake.provider(), url => fake.consent(url))

  t.equal(identity.subject, 'ada')
  t.strictSame(Object.keys(tokens).sort(), ['accessToken', 'idToken'])
})

t.test('the option decides, whatever the metadata say', async t => {
  for (const [method, other] of BOTH) {
    const fake = await startFakeOpenIdProvider(t)
    fake.metadata.token_endpoint_auth_methods_supported = [other]
    fake.registeredWith = other ?? null
    const message = await failureAt(t, fake, fake.provider(method === undefined ? {} : { clientAuthentication: method }))
    t.strictSame(fake.authentications, [method], 'no other method is tried')
    t.match(message, new RegExp(`clientAuthentication, .* \\(invalid_client: the client is registered with ${other}\\)`))
  }
})

t.test('a client that is refused with both methods is told what was said of each', async t => {
  const fake = await startFakeOpenIdProvider(t)
  fake.registeredWith = 'client_secret_post'
  const message = await failureAt(t, fake, fake.provider({ clientSecret: 'not-the-secret' }))
  t.match(message, /check clientId and clientSecret .* clientAuthentication, .* \(invalid_client: /)
  t.match(message, /client_secret_basic: the client is registered with client_secret_post; client_secret_post: wrong client id or secret\)$/)

  fake.lies.set('/token', () => json(401, { error: 'invalid_client' }))
  t.match(await failureAt(t, fake, fake.provider()), /client_secret_basic: no description; client_secret_post: no description/)
})

t.test('a provider that uses the code up with the refusal costs one sign-in, and the log has the option to set', async t => {
  const fake = await startFakeOpenIdProvider(t)
  const provider = fake.provider()
  // The code is used before the answer is changed.
  fake.lies.set('/token', () => { fake.lies.clear(); return json(401, { error: 'invalid_client' }) })

  t.match(await failureAt(t, fake, provider), /^check clientId and clientSecret .*set the option clientAuthentication to "client_secret_post"/)
  t.equal(await subjectAt(fake, provider), 'ada')
  t.strictSame(fake.authentications, ['client_secret_basic', 'client_secret_post', 'client_secret_post'])
})

t.test('id and secret are encoded as a form is, and no more than that', async t => {
  const credentials: Array<[id: string, secret: string, sent: string]> = [
    ['1234-abc.apps.example', 'it-has_.*-all', '1234-abc.apps.example:it-has_.*-all'],
    ['https://app.example/', 'a b+c%d:e~f!(g)\'é€', 'https%3A%2F%2Fapp.example%2F:a+b%2Bc%25d%3Ae%7Ef%21%28g%29%27%C3%A9%E2%82%AC']
  ]
  for (const [clientId, clientSecret, sent] of credentials) {
    const fake = await startFakeOpenIdProvider(t)
    const headers: Array<string | null> = []
    const notingFetch: typeof fetch = async (url, init) => {
      headers.push(new Headers(init?.headers).get('authorization'))
      return fetch(url, init)
    }
    await t.rejects(subjectAt(fake, fake.provider({ clientId, clientSecret, clientAuthentication: 'client_secret_basic', fetch: notingFetch })))
    t.strictSame(headers, [null, `Basic ${btoa(sent)}`])
    t.strictSame(String(new URLSearchParams([[clientId, clientSecret]])).replace('=', ':'), sent, 'as URLSearchParams encodes')
  }
})

t.test('the value of the Authorization header stays out of the log', async t => {
  const fake = await startFakeOpenIdProvider(t)
  const basic = btoa(`${fake.clientId}:${fake.clientSecret.replaceAll(' ', '+')}`)
  fake.lies.set('/token', () => json(400, { error: 'invalid_request', error_description: `you sent Basic ${basic}` }))
  t.equal(await failureAt(t, fake, fake.provider()), 'invalid_request: you sent Basic [redacted]')
})

t.test('the option is checked at construction', async t => {
  const options = { name: 'a', discoveryUrl: 'https://id.example/.well-known/openid-configuration', clientId: 'a', clientSecret: 'b' }
  for (const clientAuthentication of ['none', '', null, true]) {
    t.throws(() => new OidcProvider({ ...options, clientAuthentication: clientAuthentication as never }), {
      code: 'invalid_options',
      message: "a: clientAuthentication must be 'client_secret_basic', 'client_secret_post' or 'private_key_jwt'"
    })
  }
})
