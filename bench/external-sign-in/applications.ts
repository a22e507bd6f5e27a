import { randomBytes } from 'node:crypto'
import fastifyCookie from '@fastify/cookie'
import oauthPlugin, { type OAuth2Namespace } from '@fastify/oauth2'
import fastifySession, { type SessionStore } from '@fastify/session'
import { betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import { fromNodeHeaders } from 'better-auth/node'
import { genericOAuth } from 'better-auth/plugins'
import Fastify, { type FastifyInstance } from 'fastify'
import authPlugin, { MemoryAuthStore, OidcProvider, SqlAuthStore } from '../../dist/index.js'
import { MemorySessionStore } from '../parts/memory-session-store.js'
import { type Make, serve } from '../parts/serve.js'
import { openSqlite } from '../parts/sqlite.js'
import { BASE_URL, CLIENT, REDIRECT_URI, SCOPES } from './authorization.js'
import { rowsIn } from './rows.js'
import { type PendingSignIn, mountScript } from './script.js'

declare module 'fastify' {
  interface FastifyInstance {
    provider: OAuth2Namespace
  }

  interface Session {
    signIn?: PendingSignIn
    subject?: string
  }
}

const SECRET = 'a secret for the sessions of the benches'
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

  /** With everything in memory: its pending sign-in is in the session. */
  async oauth4webapi (issuer = '') {
    const app = await applicationWithSession(new MemorySessionStore())
    const users = new Map<string, unknown>()
    await mountScript(app, issuer, {
      async put (signIn, { session }) { session.signIn = signIn },
      async take ({ session }) {
        const { signIn } = session
        delete session.signIn
        await session.save()
        return signIn
      },
      async keep (claims) {
        users.set(claims.sub, claims)
        return claims.sub
      },
      find: async userId => users.get(userId)
    })
    return app
  },

  /** With rows by hand: its pending sign-in is found by a cookie. */
  async 'oauth4webapi with rows' (issuer = '', database = '') {
    const rows = await rowsIn(database)
    const app = await applicationWithSession(rows.sessions)
    app.addHook('onClose', rows.close)
    await mountScript(app, issuer, {
      ...rows,
      async put (signIn, _request, reply) {
        const id = randomBytes(24).toString('base64url')
        await rows.put(id, signIn)
        reply.setCookie('pending', id, { path: '/', httpOnly: true, sameSite: 'lax' })
      },
      take: async ({ cookies }) => rows.take(cookies.pending ?? '')
    })
    return app
  },

  /** It verifies no ID tokens: who it is has to be asked. */
  async '@fastify/oauth2' (issuer = '') {
    const app = await applicationWithSession(new MemorySessionStore())
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

  async 'better-auth' (issuer, database = '') {
    const app = Fastify()
    const options = {
      baseURL: BASE_URL,
      secret: SECRET,
      database: openSqlite(database),
      rateLimit: { enabled: false },
      telemetry: { enabled: false },
      plugins: [genericOAuth({
        config: [{ providerId: 'bench', discoveryUrl: `${issuer}/.well-known/openid-configuration`, clientId: CLIENT.id, clientSecret: CLIENT.secret, scopes: SCOPES, pkce: true }]
      })]
    }
    await (await getMigrations(options)).runMigrations()
    const auth = betterAuth(options)

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

async function applicationWithSession (store: SessionStore): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(fastifyCookie)
  await app.register(fastifySession, { ...SESSION, store })
  return app
}

await serve(makers)
