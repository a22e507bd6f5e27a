import Fastify, { type FastifyInstance } from 'fastify'
import * as oauth from 'oauth4webapi'
import t, { type Test } from 'tap'
import authPlugin, { type AuthPluginOptions, TokenVerifier } from '../../index.js'
import type { BearerUse } from './bearer.js'
import { SESSION_SECRET, localProvider, startApp } from '../../../test/helpers/app.js'
import { startOpenIdProvider } from '../../../test/helpers/openid-provider.js'

const BASE = 'https://app.example'
const RESOURCE = `${BASE}/mcp`
const METADATA_URL = `${BASE}/.well-known/oauth-protected-resource/mcp`
const SERVERS = { authorization_servers: ['https://login.example'] }

/** An application whose route `/mcp` takes tokens of an authorization server, and `/write` those of another scope. */
async function startResource (t: Test, { verifier, issuer = 'https://login.example' }: { verifier?: TokenVerifier, issuer?: string } = {}) {
  const metadata = { authorization_servers: [issuer], resource_name: 'Tools' }
  return startApp(t, { baseUrl: BASE, local: localProvider() }, {}, app => {
    const guardOf = (...scopes: string[]) => app.auth.requireBearerFor({ audience: RESOURCE, scopes, metadata, ...(verifier !== undefined && { verifier }) })
    app.get('/mcp', { preHandler: guardOf('tools:read') }, async ({ token }) => token?.sub)
    app.get('/write', { preHandler: guardOf('tools:write') }, async ({ token }) => token?.sub)
  })
}

/** Sends requests of a client to the application. */
function fetchIn (app: FastifyInstance) {
  return async (url: string, { headers }: { headers: Record<string, string> }): Promise<Response> => {
    const { statusCode, headers: sent, body } = await app.inject({ url, headers: { ...headers, host: 'app.example' } })
    return new Response(body, { status: statusCode, headers: Object.entries(sent).map(([name, value]) => [name, String(value)] as [string, string]) })
  }
}

t.test('a client without a token finds the authorization server, gets a token there and passes', async t => {
  const resources = {
    enabled: true,
    getResourceServerInfo: (_context: unknown, audience: string) => ({ scope: 'tools:read tools:write', audience, accessTokenFormat: 'jwt' as const })
  }
  const idp = await startOpenIdProvider(t, {
    redirectUris: [],
    client: { grant_types: ['client_credentials'], response_types: [] },
    configuration: {
      scopes: ['openid', 'tools:read', 'tools:write'],
      features: { devInteractions: { enabled: false }, clientCredentials: { enabled: true }, resourceIndicators: resources }
    }
  })
  const verifier = new TokenVerifier({
    issuer: idp.issuer, jwksUrl: `${idp.issuer}/jwks`, audience: RESOURCE, algorithms: ['RS256'], allowInsecureRequests: true
  })
  const app = await startResource(t, { verifier, issuer: idp.issuer })

  const refused = await app.inject('/mcp')
  t.equal(refused.statusCode, 401)
  t.equal(refused.headers['www-authenticate'], `Bearer scope="tools:read", resource_metadata="${METADATA_URL}"`)
  t.equal(refused.headers['cache-control'], 'no-store')

  const resource = new URL(RESOURCE)
  const asked = await oauth.resourceDiscoveryRequest(resource, { [oauth.customFetch]: fetchIn(app) })
  t.match(Object.fromEntries(asked.headers), { 'access-control-allow-origin': '*', 'cache-control': 'public, max-age=300', 'set-cookie': undefined })
  const metadata = await oauth.processResourceDiscoveryResponse(resource, asked)
  t.strictSame(metadata, {
    resource: RESOURCE,
    authorization_servers: [idp.issuer],
    resource_name: 'Tools',
    scopes_supported: ['tools:read', 'tools:write'],
    bearer_methods_supported: ['header']
  })

  const insecure = { [oauth.allowInsecureRequests]: true }
  const issuer = new URL(String(metadata.authorization_servers?.[0]))
  const server = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, insecure))
  const client = { client_id: idp.clientId }
  const tokenFor = async (resource: string, scope: string): Promise<string> => {
    const grant = await oauth.clientCredentialsGrantRequest(server, client, oauth.ClientSecretPost(idp.clientSecret), { resource, scope }, insecure)
    return (await oauth.processClientCredentialsResponse(server, client, grant)).access_token
  }
  const send = async (url: string, token: string) => app.inject({ url, headers: { authorization: `Bearer ${token}` } })

  const reading = await tokenFor(RESOURCE, 'tools:read')
  const passed = await send('/mcp', reading)
  t.match([passed.statusCode, passed.body, passed.headers['www-authenticate']], [200, idp.clientId, undefined])
  const lacking = await send('/write', reading)
  t.match([lacking.statusCode, lacking.json().code], [403, 'insufficient_scope'])
  t.equal(lacking.headers['www-authenticate'], `Bearer error="insufficient_scope", scope="tools:write", resource_metadata="${METADATA_URL}"`)
  t.equal((await send('/write', await tokenFor(RESOURCE, 'tools:read tools:write'))).statusCode, 200)

  for (const [token, what] of [
    [await tokenFor(`${BASE}/other`, 'tools:read'), 'for another resource'],
    [await localProvider().issueIdToken('service', { scope: 'tools:read' }, 60, { audience: RESOURCE }), 'of the application itself'],
    [`${reading.slice(0, -8)}AAAAAAAA`, 'with another signature']
  ] as const) t.match(await send('/mcp', token), { statusCode: 401, headers: { 'www-authenticate': /^Bearer error="invalid_token"/ } }, what)
})

t.test('a verifier that was made for another audience lets no token pass', async t => {
  const local = localProvider()
  const other = await local.issueIdToken('service', { scope: 'tools:read' }, 60, { audience: `${BASE}/other` })
  const verifier = { verify: async (token: string) => local.verifyIdToken(token, { audience: `${BASE}/other` }) }
  const app = await startApp(t, { baseUrl: BASE, local }, {}, app => {
    app.get('/mcp', { preHandler: app.auth.requireBearerFor({ audience: RESOURCE, verifier }) }, async () => 'passed')
  })

  t.equal((await app.inject({ url: '/mcp', headers: { authorization: `Bearer ${other}` } })).statusCode, 401)
})

t.test('scopes are those of the claim scope, or of scp, each one whole', async t => {
  const local = localProvider()
  const app = await startResource(t)
  const cases: Array<[Record<string, string | string[]>, number]> = [
    [{ scope: 'tools:read' }, 200],
    [{ scope: 'other tools:read' }, 200],
    [{ scp: 'tools:read other' }, 200],
    [{ scp: ['other', 'tools:read'] }, 200],
    [{ scope: ['tools:read'] }, 200],
    [{}, 403],
    [{ scope: '' }, 403],
    [{ scope: 'tools:reading' }, 403],
    [{ scope: 'tools:read\ttools:write' }, 403],
    [{ scp: [], scope: 'tools:read' }, 403]
  ]
  for (const [claims, status] of cases) {
    const token = await local.issueIdToken('service', claims, 60, { audience: RESOURCE })
    t.equal((await app.inject({ url: '/mcp', headers: { authorization: `Bearer ${token}` } })).statusCode, status, JSON.stringify(claims))
  }
})

t.test('what lacks a scope may pass another guard', async t => {
  const local = localProvider()
  const app = await startApp(t, { local }, {}, app => {
    const guard = app.auth.anyOf(app.auth.requireBearerFor({ audience: 'reports', scopes: ['all'] }), app.auth.requireBearerFor({ audience: 'reports' }))
    app.get('/', { preHandler: guard }, async () => 'passed')
  })
  const token = await local.issueIdToken('service', {}, 60, { audience: 'reports' })

  const response = await app.inject({ url: '/', headers: { authorization: `Bearer ${token}` } })
  t.match([response.statusCode, response.headers['www-authenticate']], [200, undefined])
})

t.test('the metadata of a resource without a path, and of two resources, are beside each other', async t => {
  const app = await startApp(t, { baseUrl: `${BASE}/shop`, local: localProvider() }, {}, app => {
    for (const audience of [BASE, `${BASE}/shop/api`]) app.auth.requireBearerFor({ audience, metadata: SERVERS })
  })

  const root = await app.inject('/.well-known/oauth-protected-resource')
  t.strictSame(root.json(), { resource: BASE, ...SERVERS, bearer_methods_supported: ['header'] })
  t.equal((await app.inject('/.well-known/oauth-protected-resource/shop/api')).json().resource, `${BASE}/shop/api`)
})

t.test('wrong options of a resource are refused by a sentence', async t => {
  const app = await startApp(t, { baseUrl: BASE, local: localProvider() })
  const refuse = (use: unknown, message: RegExp) => {
    t.throws(() => app.auth.requireBearerFor(use as BearerUse), { name: 'OptionsError', message }, JSON.stringify(use))
  }
  refuse({ audience: 'reports', scopes: 'all' }, /^requireBearerFor: scopes must be a list of scopes/)
  for (const scope of ['a b', '', '"', '\\', 'ä', 5]) refuse({ audience: 'reports', scopes: [scope] }, /^requireBearerFor: scopes must be a list of scopes/)
  refuse({ audience: 'reports', verifier: 'https://login.example' }, /^requireBearerFor: verifier must be a TokenVerifier/)
  refuse({ audience: 'reports', scope: 'all' }, /^requireBearerFor has no option "scope"; it is called scopes/)
  for (const metadata of [null, 'https://login.example', {}, { authorization_servers: [] }, { authorization_servers: ['http://login.example'] }]) {
    refuse({ audience: RESOURCE, metadata }, /^metadata of requireBearerFor/)
  }
  for (const audience of [
    'reports', `${BASE}/`, `${BASE}/a?b`, `${BASE}/a#b`, `${BASE}/a/../b`, `${BASE}/:id`, `${BASE}//a`, `${BASE}.evil.example`,
    'https://other.example/mcp'
  ]) {
    refuse({ audience, metadata: SERVERS }, /^metadata of requireBearerFor needs the option baseUrl .* as audience, the URL of the resource/)
  }
  refuse({ purpose: 'export', metadata: SERVERS }, /^metadata of requireBearerFor needs/)
})

t.test('all guards of a resource name the same authorization servers', async t => {
  const start = async (...servers: string[]) => startApp(t, { baseUrl: BASE, local: localProvider() }, {}, app => {
    for (const server of servers) app.auth.requireBearerFor({ audience: RESOURCE, metadata: { authorization_servers: [server] } })
  })

  await t.resolves(start('https://login.example', 'https://login.example'))
  await t.rejects(start('https://login.example', 'https://other.example'), {
    message: `metadata of requireBearerFor must be the same for all guards of ${RESOURCE}`
  })
})

t.test('metadata need baseUrl, and the root of the application', async t => {
  const guard = async (options: AuthPluginOptions, prefix: string) => {
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(async app => {
      await app.register(authPlugin, { session: { secret: SESSION_SECRET }, ...options })
      app.auth.requireBearerFor({ audience: RESOURCE, metadata: SERVERS })
    }, { prefix })
    await app.ready()
  }

  await t.resolves(guard({ baseUrl: BASE }, '/'))
  await t.rejects(guard({ baseUrl: BASE }, '/v1'), { name: 'OptionsError', message: /^metadata of requireBearerFor needs the route .* at the root/ })
  await t.rejects(guard({}, '/'), { name: 'OptionsError', message: /^metadata of requireBearerFor needs the option baseUrl/ })
})
