import fastifyCookie from '@fastify/cookie'
import fastifySession, { type FastifySessionOptions } from '@fastify/session'
import Fastify from 'fastify'
import authPlugin, { LocalIdentityProvider, MemoryAuthStore, SqlAuthStore } from '../../dist/index.js'
import { MemorySessionStore } from '../../dist/session/memory-session-store.js'
import { type Make, serve } from '../parts/serve.js'

const SECRET = 'a secret for the sessions of the benches'
const ADA = { userId: '3b241101-e2bb-4255-8caf-4136c566a962', email: 'ada@example.com', name: 'Ada', role: 'admin' }

/** Applications in which `POST /sign-in` signs Ada in, `GET /me` tells who is signed in, and nobody else, and `GET /public` is for everybody. */
const makers: Record<string, Make> = {
  async 'fastify-svc-auth' (database = 'memory') {
    const { userId, email, name, role } = ADA
    const store = database === 'memory' ? new MemoryAuthStore() : new SqlAuthStore(database)
    await store.createUser({ userId, email, emailVerified: false, name, claims: { role }, link: { provider: 'dev', subject: userId, claims: { sub: userId, email, name } } })

    const app = Fastify()
    await app.register(authPlugin, { local: new LocalIdentityProvider({ secret: SECRET }), store, session: { secret: SECRET } })
    app.post('/sign-in', async request => app.auth.signIn(request, userId))
    app.get('/me', { preHandler: app.auth.requireUser }, async request => request.principal)
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
      request.session.svcAuth = { principal: { userId, provider: 'local', claims: { sub: userId, email, name, role } } }
      return request.session.svcAuth.principal
    })
    app.get('/me', async (request, reply) => request.session.svcAuth?.principal ?? reply.code(401).send())
    app.get('/public', async () => ({ isOpen: true }))
    return app
  }
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
