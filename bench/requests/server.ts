import { createHash } from 'node:crypto'
import fastifyCookie from '@fastify/cookie'
import { Authenticator } from '@fastify/passport'
import fastifySession, { type FastifySessionOptions } from '@fastify/session'
import SqliteDatabase from 'better-sqlite3'
import Fastify from 'fastify'
import pg from 'pg'
import { ApiKeys } from '../../dist/api-keys.js'
import authPlugin, { Accounts, LocalIdentityProvider, MemoryAuthStore, SqlAuthStore } from '../../dist/index.js'
import { OAuthServer } from '../../dist/oauth-server.js'
import { MemorySessionStore } from '../parts/memory-session-store.js'
import { type Make, serve } from '../parts/serve.js'

const ISSUER = 'http://localhost'
const RESOURCE = `${ISSUER}/mcp`
const CLIENT = { client_id: 'own', client_name: 'Own', redirect_uris: ['https://own.example/callback'] as const, firstParty: true }
const SECRET = 'a secret for the sessions of the benches'
const ADA = { userId: '3b241101-e2bb-4255-8caf-4136c566a962', email: 'ada@example.com', name: 'Ada', role: 'admin' }

/** Applications in which `POST /sign-in` signs Ada in, `GET /me` tells who is signed in, and nobody else, and `GET /public` is for everybody. */
const makers: Record<string, Make> = {
  async 'fastify-svc-auth' (database = 'memory', sessions?: string) {
    const { userId, email, name, role } = ADA
    const store = database === 'memory' ? new MemoryAuthStore() : new SqlAuthStore(database)
    if (await store.findUser({ userId }) === null) {
      await new Accounts(store).createUser({ userId, email, emailVerified: false, name, claims: { role }, link: { provider: 'dev', subject: userId, claims: { sub: userId, email, name } } })
    }

    const app = Fastify()
    const oauthServer = database === 'memory' ? undefined : new OAuthServer({ resources: { [RESOURCE]: { scopes: { read: 'Read' } } }, clients: [CLIENT] })
    await app.register(authPlugin, {
      baseUrl: ISSUER,
      local: new LocalIdentityProvider({ secret: SECRET }),
      store,
      session: { secret: SECRET, ...sessions === 'memory' && { store: sessions } },
      ...oauthServer && { oauthServer, apiKeys: new ApiKeys({ prefix: 'bench', scopes: { read: 'Read' } }) }
    })
    app.post('/sign-in', async request => app.auth.signIn(request, userId))
    app.get('/me', { preHandler: app.auth.requireUser }, async request => page(app.auth.user(request).claims))
    app.get('/public', async () => ({ isOpen: true }))
    if (oauthServer === undefined) return app
    app.get('/mcp', { preHandler: app.auth.requireBearerFor({ audience: RESOURCE, scopes: ['read'] }) }, async () => page(ADA))
    const { requireCaller, caller } = app.auth
    app.get('/caller', { preHandler: requireCaller({ by: ['session', 'key'], scopes: ['read'] }) }, async request => page(caller(request).claims))
    app.post('/key', async () => app.auth.createKey({ userId, name: 'Bench', scopes: ['read'] }, { actor: 'bench' }))
    // Connects the client of the owner, whom it does not ask.
    app.post('/connect', async request => {
      const verifier = 'v'.repeat(43)
      const { body } = await app.inject({
        url: `/auth/oauth/authorize?${new URLSearchParams({
          response_type: 'code',
          client_id: CLIENT.client_id,
          redirect_uri: CLIENT.redirect_uris[0],
          code_challenge: createHash('sha256').update(verifier).digest('base64url'),
          code_challenge_method: 'S256'
        })}`,
        headers: { cookie: request.headers.cookie, accept: 'text/html' }
      })
      const [code] = /sac_[\w-]+/.exec(body) ?? []
      const payload = { grant_type: 'authorization_code', client_id: CLIENT.client_id, code, code_verifier: verifier }
      return (await app.inject({ method: 'POST', url: '/auth/oauth/token', payload })).json()
    })
    return app
  },

  async '@fastify/passport and @fastify/session' (database = 'memory') {
    const { userId, email, name, role } = ADA
    const findUser = await usersById(database, { id: userId, email, name, role })
    const passport = new Authenticator()
    passport.registerUserSerializer<PassportUser, string>(async user => user.id)
    passport.registerUserDeserializer<string, PassportUser>(async id => findUser(id))

    const app = Fastify()
    await app.register(fastifyCookie)
    await app.register(fastifySession, SAME_SESSION)
    await app.register(passport.initialize())
    await app.register(passport.secureSession())
    app.post('/sign-in', async request => request.logIn(await findUser(userId)))
    app.get('/me', async (request, reply) => request.user === null ? reply.code(401).send() : page(request.user as PassportUser))
    app.get('/public', async () => ({ isOpen: true }))
    return app
  },

  async '@fastify/session alone' () {
    const { userId, email, name, role } = ADA
    const app = Fastify()
    await app.register(fastifyCookie)
    await app.register(fastifySession, SAME_SESSION)
    app.post('/sign-in', async request => {
      await request.session.regenerate()
      const principal = { userId, provider: 'local', claims: { sub: userId, email, name, role } }
      request.session.svcAuth = { principal, generation: 0, at: Date.now(), methods: [] }
      return principal
    })
    app.get('/me', async (request, reply) => {
      const { principal } = request.session.svcAuth ?? {}
      return principal === undefined ? reply.code(401).send() : page(principal.claims)
    })
    app.get('/public', async () => ({ isOpen: true }))
    return app
  }
}

/** What each application answers: the same, so that only what leads there differs. */
function page ({ email, role }: { email?: unknown, role?: unknown }): object {
  return { email, role }
}

interface PassportUser {
  id: string
  email: string
  name: string
  role: string
}

/** The least that keeps a user, in a table of its own in the same database. */
async function usersById (database: string, user: PassportUser): Promise<(id: string) => Promise<PassportUser>> {
  const create = 'create table passport_users (id text primary key, email text, name text, role text)'
  if (database === 'memory') {
    const users = new Map([[user.id, user]])
    return async id => users.get(id) ?? user
  }
  if (database.startsWith('postgres:')) {
    const pool = new pg.Pool({ connectionString: database })
    await pool.query(create)
    await pool.query('insert into passport_users values ($1, $2, $3, $4)', Object.values(user))
    const text = 'select * from passport_users where id = $1'
    return async id => (await pool.query({ name: 'by id', text, values: [id] })).rows[0]
  }
  const connection = new SqliteDatabase(database)
  connection.exec(create)
  connection.prepare('insert into passport_users values (?, ?, ?, ?)').run(Object.values(user))
  const byId = connection.prepare<[string], PassportUser>('select * from passport_users where id = ?')
  return async id => byId.get(id) ?? user
}

/** As the plugin sets it up. */
const SAME_SESSION: FastifySessionOptions = {
  secret: SECRET,
  cookieName: 'svc_session',
  store: new MemorySessionStore(),
  saveUninitialized: false,
  rolling: false,
  cookie: { path: '/', httpOnly: true, sameSite: 'lax', secure: 'auto', maxAge: 7 * 24 * 60 * 60 * 1000 }
}

await serve(makers)
