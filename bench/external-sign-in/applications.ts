import { createHash } from 'node:crypto'
import fastifyCookie from '@fastify/cookie'
import oauthPlugin, { type OAuth2Namespace } from '@fastify/oauth2'
import fastifySession from '@fastify/session'
import { betterAuth } from 'better-auth'
import { memoryAdapter } from 'better-auth/adapters/memory'
import { fromNodeHeaders } from 'better-auth/node'
import { genericOAuth } from 'better-auth/plugins'
import Fastify, { type FastifyInstance } from 'fastify'
import { decodeProtectedHeader } from 'jose'
import * as oauth from 'oauth4webapi'
import authPlugin, { MemoryAuthStore, OidcProvider, SqlAuthStore } from '../../dist/index.js'
import { MemorySessionStore } from '../parts/memory-session-store.js'
import { type Make, serve } from '../parts/serve.js'
import { BASE_URL, CLIENT } from './authorization.js'

declare module 'fastify' {
  interface FastifyInstance {
    provider: OAuth2Namespace
  }

  interface Session {
    signIn?: { state: string, nonce: string, codeVerifier: string }
    subject?: string
  }
}

const SECRET = 'a secret for the sessions of the benches'
const SCOPES = ['openid', 'email', 'profile']
const REDIRECT_URI = `${BASE_URL}/callback`
const SEVEN_DAYS_MS = 7 * 24 * 60 * 60 * 1000
const SESSION = { secret: SECRET, cookie: { secure: false, httpOnly: true, sameSite: 'lax', maxAge: SEVEN_DAYS_MS }, saveUninitialized: false, rolling: false } as const

/** Each signs people in by the provider with this issuer, and says at `GET /me` who it is. Sessions are kept in the plugin's own store, which is none of live objects. */
const makers: Record<string, Make> = {
  async 'fastify-svc-auth' (issuer, database = 'memory') {
    const app = Fastify()
    const store = database === 'memory' ? new MemoryAuthStore() : new SqlAuthStore(database)
    const provider = new OidcProvider({
      name: 'bench',
      discoveryUrl: `${issuer}/.well-known/openid-configuration`,
      clientId: CLIENT.id,
      clientSecret: CLIENT.secret,
      scopes: SCOPES,
      allowInsecureRequests: true
    })
    await app.register(authPlugin, { baseUrl: BASE_URL, providers: [provider], store, session: { secret: SECRET }, rateLimit: false })
    app.get('/me', async request => request.principal?.claims)
    return app
  },

  /** As the examples of oauth4webapi have it, with the checks that it leaves to its caller. */
  async oauth4webapi (issuer = '') {
    const app = await applicationWithSession()
    const users = new Map<string, oauth.IDToken>()
    const client: oauth.Client = { client_id: CLIENT.id }
    const authentication = oauth.ClientSecretPost(CLIENT.secret)
    // Not on the examples' https:. By the metadata oauth4webapi finds the keys that it has fetched.
    const http = { [oauth.allowInsecureRequests]: true, signal: () => AbortSignal.timeout(5000) }
    const server = await oauth.processDiscoveryResponse(new URL(issuer), await oauth.discoveryRequest(new URL(issuer), http))

    app.get('/login', async (request, reply) => {
      const signIn = { state: oauth.generateRandomState(), nonce: oauth.generateRandomNonce(), codeVerifier: oauth.generateRandomCodeVerifier() }
      request.session.signIn = signIn
      const url = new URL(String(server.authorization_endpoint))
      url.searchParams.set('client_id', client.client_id)
      url.searchParams.set('redirect_uri', REDIRECT_URI)
      url.searchParams.set('response_type', 'code')
      url.searchParams.set('scope', SCOPES.join(' '))
      url.searchParams.set('code_challenge', await oauth.calculatePKCECodeChallenge(signIn.codeVerifier))
      url.searchParams.set('code_challenge_method', 'S256')
      url.searchParams.set('state', signIn.state)
      url.searchParams.set('nonce', signIn.nonce)
      return reply.redirect(url.href)
    })

    app.get('/callback', async (request, reply) => {
      const { signIn } = request.session
      if (signIn === undefined) return reply.code(400).send()
      // It is good for one try.
      delete request.session.signIn
      await request.session.save()
      const parameters = oauth.validateAuthResponse(server, client, new URL(request.url, BASE_URL), signIn.state)
      const response = await oauth.authorizationCodeGrantRequest(server, client, authentication, parameters, REDIRECT_URI, signIn.codeVerifier, http)
      const tokens = await oauth.processAuthorizationCodeResponse(server, client, response, { expectedNonce: signIn.nonce, requireIdToken: true })
      await oauth.validateApplicationLevelSignature(server, response, http)
      const claims = oauth.getValidatedIdTokenClaims(tokens)
      if (claims === undefined || !isOurs(claims, tokens)) return reply.code(502).send()
      users.set(claims.sub, claims)
      await request.session.regenerate()
      request.session.subject = claims.sub
      return reply.redirect('/')
    })

    app.get('/me', async request => users.get(request.session.subject ?? ''))
    return app
  },

  /** It verifies no ID tokens: who it is has to be asked. */
  async '@fastify/oauth2' (issuer = '') {
    const app = await applicationWithSession()
    const users = new Map<string, unknown>()
    await app.register(oauthPlugin, {
      name: 'provider',
      scope: SCOPES,
      credentials: { client: CLIENT },
      discovery: { issuer },
      pkce: 'S256',
      cookie: { secure: false },
      startRedirectPath: '/login',
      callbackUri: REDIRECT_URI
    })

    app.get('/callback', async (request, reply) => {
      const { token } = await app.provider.getAccessTokenFromAuthorizationCodeFlow(request, reply)
      const claims = await app.provider.userinfo(token.access_token)
      if (!('sub' in claims) || typeof claims.sub !== 'string') return reply.code(502).send()
      users.set(claims.sub, claims)
      await request.session.regenerate()
      request.session.subject = claims.sub
      return reply.redirect('/')
    })

    app.get('/me', async request => users.get(request.session.subject ?? ''))
    return app
  },

  async 'better-auth' (issuer) {
    const app = Fastify()
    const auth = betterAuth({
      baseURL: BASE_URL,
      secret: SECRET,
      database: memoryAdapter({ user: [], session: [], account: [], verification: [] }),
      rateLimit: { enabled: false },
      telemetry: { enabled: false },
      plugins: [genericOAuth({
        config: [{ providerId: 'bench', discoveryUrl: `${issuer}/.well-known/openid-configuration`, clientId: CLIENT.id, clientSecret: CLIENT.secret, scopes: SCOPES, pkce: true }]
      })]
    })

    app.route({
      method: ['GET', 'POST'],
      url: '/api/auth/*',
      async handler (request, reply) {
        const { method, headers, body } = request
        const response = await auth.handler(new Request(new URL(request.url, BASE_URL), { method, headers: fromNodeHeaders(headers), ...(body ? { body: JSON.stringify(body) } : {}) }))
        response.headers.forEach((value, name) => { reply.header(name, value) })
        return reply.code(response.status).send(response.body ? await response.text() : null)
      }
    })

    app.get('/me', async request => auth.api.listUserAccounts({ headers: fromNodeHeaders(request.headers) }))
    return app
  }
}

/** What OpenID Connect Core 3.1.3.7 and 3.1.3.8 ask for besides. */
function isOurs ({ azp, iat, at_hash: accessTokenHash }: oauth.IDToken, { access_token: accessToken, id_token: idToken = '' }: oauth.TokenEndpointResponse): boolean {
  const { alg } = decodeProtectedHeader(idToken)
  const digest = createHash(`sha${alg?.slice(-3)}`).update(accessToken).digest()
  const expectedHash = digest.subarray(0, digest.length / 2).toString('base64url')
  return (azp === undefined || azp === CLIENT.id) && iat <= Date.now() / 1000 + 30 && (accessTokenHash === undefined || accessTokenHash === expectedHash)
}

async function applicationWithSession (): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(fastifyCookie)
  await app.register(fastifySession, { ...SESSION, store: new MemorySessionStore() })
  return app
}

await serve(makers)
