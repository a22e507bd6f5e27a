import { type JWK, decodeJwt, decodeProtectedHeader, exportJWK, generateKeyPair } from 'jose'
import { errors } from 'oidc-provider'
import t, { type Test } from 'tap'
import { AuthError, MicrosoftProvider, OidcProvider, type OidcProviderOptions } from '../../lib/index.js'
import { json } from '../fakes/lies.js'
import { MicrosoftStandIn } from '../fakes/microsoft.js'
import { startFakeOpenIdProvider } from '../fakes/openid-provider.js'
import { startOpenIdProvider } from '../helpers/openid-provider.js'

const CHECKS = { redirectUri: 'https://app.example/auth/any/callback', state: 'the-state', nonce: 'the-nonce', codeVerifier: 'a'.repeat(43) }
const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

async function keyPair (alg: string, kid: string): Promise<{ clientKey: JWK, publicJwk: JWK }> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  return { clientKey: { ...await exportJWK(privateKey), alg, kid }, publicJwk: { ...await exportJWK(publicKey), alg, kid, use: 'sig' } }
}

const ES256 = await keyPair('ES256', 'one')
const OTHER = await keyPair('ES256', 'two')

type Given = Partial<Omit<OidcProviderOptions, 'clientKey' | 'clientSecret'>> & { clientKey?: JWK | JWK[] | (() => JWK) }

function optionsFor (issuer: string) {
  return { name: 'bank', discoveryUrl: `${issuer}/.well-known/openid-configuration`, allowInsecureRequests: true }
}

/** A real OpenID provider that knows a client by its keys, and notes the assertions that come. */
async function start (t: Test, keys: JWK[], { client = {}, configuration = {} }: Omit<Parameters<typeof startOpenIdProvider>[1], 'redirectUris'> = {}) {
  const idp = await startOpenIdProvider(t, {
    redirectUris: [CHECKS.redirectUri],
    client: { client_secret: undefined as never, token_endpoint_auth_method: 'private_key_jwt', jwks: { keys } as never, ...client },
    configuration: {
      clientAuthMethods: ['private_key_jwt', 'client_secret_post', 'client_secret_basic'],
      enabledJWA: { clientAuthSigningAlgValues: ['ES256', 'PS256', 'RS256', 'EdDSA'] },
      ...configuration
    }
  })
  const forms: URLSearchParams[] = []
  const through: typeof fetch = async (url, init) => {
    if (init?.method === 'POST') forms.push(new URLSearchParams(String(init.body)))
    return fetch(url, init)
  }
  const provider = ({ clientKey = ES256.clientKey, ...options }: Given = {}) => new OidcProvider({
    ...optionsFor(idp.issuer), clientId: idp.clientId, fetch: through, clientKey, ...options
  })
  const signIn = async (subject: OidcProvider) => {
    const { href } = await subject.authorizationUrl(CHECKS)
    const { searchParams: parameters } = await idp.authorize(href)
    return (await subject.authenticate({ ...CHECKS, parameters })).identity.subject
  }
  const assertions = () => forms.flatMap(form => form.getAll('client_assertion'))
  return { idp, forms, provider, signIn, assertions }
}

async function causeOf (t: Test, attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt
  } catch (error) {
    if (error instanceof AuthError && error.code === 'provider_error' && error.cause instanceof Error) return error.cause.message
    throw error
  }
  return t.fail('it succeeded') as never
}

t.test('a client with a key signs in, with each algorithm, by an assertion that is new each time', async t => {
  for (const alg of ['ES256', 'PS256', 'RS256', 'EdDSA']) {
    const { clientKey, publicJwk } = await keyPair(alg, `key-${alg}`)
    const { idp, forms, provider, signIn, assertions } = await start(t, [publicJwk])
    const subject = provider({ clientKey })
    for (let time = 0; time < 2; time++) t.equal(await signIn(subject), 'ada', alg)
    t.strictSame(assertions().map(decodeProtectedHeader), Array(2).fill({ alg, typ: 'JWT', kid: `key-${alg}` }))
    const [first, second] = assertions().map(assertion => decodeJwt(assertion))
    t.match(first, { iss: 'the-app', sub: 'the-app', aud: idp.issuer })
    t.equal(Number(first?.exp) - Number(first?.iat), 60)
    t.not(first?.jti, second?.jti)
    t.match(forms.map(form => Object.fromEntries(form)), Array(2).fill({ client_id: 'the-app', client_assertion_type: JWT_BEARER }))
    t.notOk(forms.some(form => form.has('client_secret')))
  }
})

t.test('of several keys the first signs, and a function rolls the key without a restart', async t => {
  const { provider, signIn, assertions } = await start(t, [ES256.publicJwk, OTHER.publicJwk])
  t.equal(await signIn(provider({ clientKey: [OTHER.clientKey, ES256.clientKey] })), 'ada')
  let { clientKey } = ES256
  const rolled = provider({ clientKey: () => clientKey })
  t.equal(await signIn(rolled), 'ada')
  clientKey = OTHER.clientKey
  t.equal(await signIn(rolled), 'ada')
  t.strictSame(assertions().map(assertion => decodeProtectedHeader(assertion).kid), ['two', 'one', 'two'])
})

t.test('a wrong key, a wrong audience and a wrong clock each have their sentence in the log', async t => {
  t.test('a key that the provider does not have', async t => {
    const { provider, signIn, assertions } = await start(t, [ES256.publicJwk])
    const cause = await causeOf(t, signIn(provider({ clientKey: { ...OTHER.clientKey, kid: 'one' } })))
    t.match(cause, /^register the public key of clientKey; if it is, set assertionAudience to "token_endpoint" \(client authentication failed/)
    t.notOk(cause.includes(assertions()[0] ?? ''))
  })

  t.test('an audience that the provider does not accept, and the option for the other one', async t => {
    const configuration = {
      async assertJwtClientAuthClaimsAndHeader (context: { oidc: { urlFor: (name: string) => string } }, { aud }: { aud?: unknown }) {
        if (aud === context.oidc.urlFor('token')) return
        throw Object.assign(new errors.InvalidClientAuth('audience'), { error_description: 'aud must be the token endpoint' })
      }
    }
    const { idp, provider, signIn, assertions } = await start(t, [ES256.publicJwk], { configuration: configuration as never })
    t.equal(await causeOf(t, signIn(provider())), 'set assertionAudience to "token_endpoint" (aud must be the token endpoint)')
    t.equal(await signIn(provider({ assertionAudience: 'token_endpoint' })), 'ada')
    t.strictSame(assertions().map(assertion => decodeJwt(assertion).aud), [idp.issuer, `${idp.issuer}/token`])
  })

  t.test('a clock that is wrong when the assertion is made', async t => {
    const { idp, provider, signIn, assertions } = await start(t, [ES256.publicJwk])
    const { now } = Date
    const late = provider({
      async fetch (url, init) {
        const isToken = init?.method === 'POST'
        // The provider looks at the right clock.
        if (isToken) Date.now = now
        const response = await fetch(url, init)
        if (isToken) Date.now = () => now() - 3_600_000
        return response
      }
    })
    t.teardown(() => { Date.now = now })
    const { href } = await late.authorizationUrl(CHECKS)
    const { searchParams: parameters } = await idp.authorize(href)
    Date.now = () => now() - 3_600_000
    const cause = await causeOf(t, late.authenticate({ ...CHECKS, parameters }))
    Date.now = now
    t.match(cause, /^set the clock of this machine, which differs by 3(?:600|599|601) seconds; else /)
    t.equal(await signIn(provider()), 'ada')
    t.equal(assertions().length, 1, 'the late one is not among those that were noted')
  })

  t.test('a clock that the provider tolerates no more, and one that it names', async t => {
    const fake = await startFakeOpenIdProvider(t)
    fake.metadata.token_endpoint_auth_methods_supported = ['private_key_jwt']
    const subject = new OidcProvider({
      name: 'bank',
      discoveryUrl: `${fake.issuer}/.well-known/openid-configuration`,
      clientId: fake.clientId,
      clientKey: ES256.clientKey,
      allowInsecureRequests: true
    })
    const reasonAt = async (seconds: number, description: string): Promise<string> => {
      const date = new Date(Date.now() + seconds * 1000).toUTCString()
      fake.lies.set('/token', () => json(401, { error: 'invalid_client', error_description: description }, { date }))
      const { searchParams: parameters } = new URL(fake.consent((await subject.authorizationUrl(CHECKS)).href), 'https://app.example')
      return causeOf(t, subject.authenticate({ ...CHECKS, parameters }))
    }
    t.match(await reasonAt(-10, 'no'), /^set the clock of this machine, which differs by \d+ seconds; else /)
    for (const description of ['exp is past', 'the assertion has expired', 'iat is in the future', 'JWT not active yet']) {
      t.equal(await reasonAt(0, description), `check the clock of this machine (${description})`)
    }
    t.match(await reasonAt(0, 'unknown key'), /^register the public key of clientKey/)
  })
})

t.test('an assertion that a provider quotes stays out of the log', async t => {
  const fake = await startFakeOpenIdProvider(t)
  let sent = ''
  const subject = new OidcProvider({
    name: 'bank',
    discoveryUrl: `${fake.issuer}/.well-known/openid-configuration`,
    clientId: 'a',
    clientKey: ES256.clientKey,
    allowInsecureRequests: true,
    async fetch (url, init) {
      if (init?.method === 'POST') sent = new URLSearchParams(String(init.body)).get('client_assertion') ?? ''
      return fetch(url, init)
    }
  })
  for (const error of ['invalid_client', 'invalid_request']) {
    fake.lies.set('/token', () => json(400, { error, error_description: `you sent ${sent}` }))
    const { searchParams: parameters } = new URL(fake.consent((await subject.authorizationUrl(CHECKS)).href), 'https://app.example')
    const cause = await causeOf(t, subject.authenticate({ ...CHECKS, parameters }))
    t.match(cause, /you sent \[redacted\]/)
    t.not(sent, '')
  }
})

t.test('the thumbprint of a certificate is in the header, and Entra is named by its token endpoint', async t => {
  const entra = await new MicrosoftStandIn().start(t)
  let assertion = ''
  const provider = new MicrosoftProvider({
    clientId: entra.clientId,
    clientKey: { ...ES256.clientKey, 'x5t#S256': 'thumbprint' } as JWK,
    async fetch (url, init) {
      if (init?.method === 'POST') assertion = new URLSearchParams(String(init.body)).get('client_assertion') ?? ''
      return entra.fetch(url, init)
    }
  })
  const checks = { ...CHECKS, redirectUri: 'https://app.example/auth/microsoft/callback' }
  const { href } = await provider.authorizationUrl(checks)
  const { searchParams: parameters } = new URL(await entra.authorize(href), 'https://app.example')
  await t.rejects(provider.authenticate({ ...checks, parameters }), { code: 'provider_error' }, 'the stand-in knows secrets alone')
  t.strictSame(decodeProtectedHeader(assertion), { alg: 'ES256', typ: 'JWT', kid: 'one', 'x5t#S256': 'thumbprint' })
  t.equal(decodeJwt(assertion).aud, 'https://login.microsoftonline.com/common/oauth2/v2.0/token')
})

t.test('a request is pushed where the metadata require it, by a secret and by a key, and by no other', async t => {
  for (const method of ['private_key_jwt', 'client_secret_basic', 'client_secret_post']) {
    const client = method === 'private_key_jwt' ? {} : { client_secret: 'the-client-secret-of-the-tests', token_endpoint_auth_method: method }
    const features = { devInteractions: { enabled: false }, pushedAuthorizationRequests: { enabled: true, requirePushedAuthorizationRequests: true } }
    const { idp, forms, provider, signIn } = await start(t, method === 'private_key_jwt' ? [ES256.publicJwk] : [], {
      client: client as never, configuration: { features }
    })
    const subject = method === 'private_key_jwt'
      ? provider()
      : idp.provider({ name: 'bank' })
    const { searchParams } = await subject.authorizationUrl(CHECKS)
    t.strictSame([...searchParams.keys()], ['client_id', 'request_uri'], method)
    t.equal(await signIn(subject), 'ada', method)
    t.equal(idp.requests.filter(path => path === '/request').length >= 2, true)
    if (method === 'private_key_jwt') {
      const [pushed] = forms
      t.match(Object.fromEntries(pushed ?? []), {
        state: CHECKS.state, nonce: CHECKS.nonce, code_challenge_method: 'S256', redirect_uri: CHECKS.redirectUri, client_assertion: /./
      })
    }
  }
  const { idp, provider, signIn } = await start(t, [ES256.publicJwk])
  await signIn(provider())
  t.notOk(idp.requests.includes('/request'), 'a provider that only offers it is asked as others')
})

t.test('attack 160: a push that is refused ends the login, and repeats no secret in the log', async t => {
  const fake = await startFakeOpenIdProvider(t)
  Object.assign(fake.metadata, { require_pushed_authorization_requests: true, pushed_authorization_request_endpoint: `${fake.issuer}/par` })
  const answers = [
    [json(400, { error: 'invalid_request', error_description: `you sent ${fake.clientSecret}` }), 'provider_error'],
    [json(401, { error: 'invalid_client' }), 'provider_error'], [json(200, { request_uri: 'urn:x', expires_in: 60 }), 'provider_error'],
    ...['server_says_no', true, { message: 'no' }].map(error =>
      [json(201, { request_uri: 'urn:x', expires_in: 60, error, error_description: `you sent ${fake.clientSecret}` }), 'provider_error'] as const),
    [json(201, { expires_in: 60 }), 'provider_error'], [json(201, { request_uri: 'urn:x' }), 'provider_error'], [json(503, {}), 'provider_unavailable']
  ] as const
  for (const [answer, code] of answers) {
    fake.lies.set('/par', () => answer)
    try {
      await fake.provider().authorizationUrl(CHECKS)
      t.fail(answer.body)
    } catch (error) {
      t.match(error, { code })
      t.notOk(String((error as Error).cause).includes(fake.clientSecret))
    }
  }
  fake.lies.set('/par', () => json(201, { request_uri: 'urn:x:1', expires_in: 60 }))
  t.equal((await fake.provider().authorizationUrl(CHECKS)).search, '?client_id=the-app&request_uri=urn%3Ax%3A1')
  Object.assign(fake.metadata, { pushed_authorization_request_endpoint: undefined })
  await t.rejects(fake.provider().authorizationUrl(CHECKS), { code: 'provider_error' })
})

t.test('a client that is registered with another method is pushed for by that, which is remembered', async t => {
  const fake = await startFakeOpenIdProvider(t)
  Object.assign(fake.metadata, { require_pushed_authorization_requests: true, pushed_authorization_request_endpoint: `${fake.issuer}/par` })
  const tried: string[] = []
  const subject = fake.provider({
    async fetch (url, init) {
      if (!String(url).endsWith('/par')) return fetch(url, init)
      tried.push(new Headers(init?.headers).has('authorization') ? 'basic' : 'post')
      const isBasic = tried.at(-1) === 'basic'
      return Response.json(isBasic ? { error: 'invalid_client' } : { request_uri: 'urn:x', expires_in: 60 }, { status: isBasic ? 401 : 201 })
    }
  })
  for (let time = 0; time < 2; time++) await subject.authorizationUrl(CHECKS)
  t.strictSame(tried, ['basic', 'post', 'post'])
})

t.test('a secret that a function returns is asked for each time', async t => {
  const fake = await startFakeOpenIdProvider(t)
  let secret: unknown = 'an-old-secret'
  const subject = new OidcProvider({
    ...optionsFor(fake.issuer), clientId: fake.clientId, clientSecret: async () => secret as string
  })
  const signIn = async () => {
    const { searchParams: parameters } = new URL(fake.consent((await subject.authorizationUrl(CHECKS)).href), 'https://app.example')
    return (await subject.authenticate({ ...CHECKS, parameters })).identity.subject
  }
  t.match(await causeOf(t, signIn()), /^check clientId and clientSecret/)
  secret = fake.clientSecret
  t.equal(await signIn(), 'ada')
  for (const none of [undefined, '', 7, `${fake.clientSecret}\n`]) {
    secret = none
    t.equal(await causeOf(t, signIn()), 'the function clientSecret did not return the secret alone')
  }
})

t.test('the key is checked at construction, and not shown', async t => {
  const options = { name: 'a', discoveryUrl: 'https://id.example/.well-known/openid-configuration', clientId: 'a' }
  const { clientKey, publicJwk } = ES256
  const { alg: _, ...noAlg } = clientKey
  const wrong = [
    publicJwk, noAlg, { ...clientKey, alg: 'RS256' }, { ...clientKey, alg: 'none' }, { ...clientKey, alg: 'constructor' },
    { ...clientKey, d: 'x' }, {}, [], null, 'a text', 7,
    [publicJwk, clientKey], { kty: 'oct', k: 'c2VjcmV0', alg: 'HS256' }
  ]
  for (const key of wrong) {
    for (const given of [key, () => key]) {
      t.throws(() => new OidcProvider({ ...options, clientKey: given as never }), {
        code: 'invalid_options', message: 'a: clientKey must be a private JWK whose alg is one of ES256, EdDSA, PS256, RS256, or several'
      }, JSON.stringify(key))
    }
  }
  t.throws(() => new OidcProvider({ ...options, clientAuthentication: 'private_key_jwt' } as never), { message: /^a: clientKey must be a private JWK/ })
  t.throws(() => new OidcProvider(options as never), { message: /^a: clientSecret must be/ })
  t.throws(() => new OidcProvider({ ...options, clientKey, assertionAudience: 'https://id.example' } as never), {
    message: "a: assertionAudience must be 'issuer' or 'token_endpoint'"
  })
  t.throws(() => new OidcProvider({ ...options, clientKey, responseMode: 'query' } as never), { message: "a: responseMode must be 'form_post'" })
  t.doesNotThrow(() => new OidcProvider({ ...options, clientKey, clientAuthentication: 'private_key_jwt' }))
})
