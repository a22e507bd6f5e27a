import { randomUUID } from 'node:crypto'
import fastifyCookie from '@fastify/cookie'
import fastifyJwt from '@fastify/jwt'
import fastifySession from '@fastify/session'
import Fastify, { type FastifyInstance } from 'fastify'
import { jwtVerify } from 'jose'
import authPlugin, { Accounts, LocalIdentityProvider, MemoryAuthStore, SqlAuthStore } from '../../dist/index.js'
import { type Make, serve } from '../parts/serve.js'
import { ISSUER, SECRET, SUBJECT } from './tokens.js'

declare module 'fastify' {
  interface Session {
    subject?: string
  }
}

const SESSION = { secret: 'a secret for the sessions of the benches', cookie: { secure: false }, saveUninitialized: false, rolling: false }

/**
 * Each answers who the token of `GET /bearer` and of `POST /auth/local/verify-token` speaks for. Where `POST /sign-in` signs a user in,
 * `POST /auth/local/token` issues a token of theirs.
 */
const makers: Record<string, Make> = {
  async 'fastify-svc-auth' (database = 'memory') {
    const app = Fastify()
    const store = database === 'memory' ? new MemoryAuthStore() : new SqlAuthStore(database)
    await new Accounts(store).createUser({ userId: SUBJECT, email: null, emailVerified: false, name: null, claims: {}, link: { provider: 'dev', subject: randomUUID(), claims: { sub: SUBJECT } } })
    await app.register(authPlugin, { local: new LocalIdentityProvider({ secret: SECRET }), store, session: SESSION })
    app.get('/bearer', { preHandler: app.auth.requireBearer }, async request => ({ sub: request.token?.sub }))
    app.post('/sign-in', async request => app.auth.signIn(request, SUBJECT))
    return app
  },

  async jose (sessions) {
    const app = await application(sessions)
    const key = await crypto.subtle.importKey('raw', Buffer.from(SECRET), { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
    const verify = async (token: string) => {
      const { payload } = await jwtVerify(token, key, { algorithms: ['HS256'], issuer: ISSUER })
      return payload
    }
    app.get('/bearer', async request => ({ sub: (await verify(String(request.headers.authorization?.slice('Bearer '.length)))).sub }))
    app.post<{ Body: { token: string } }>('/auth/local/verify-token', async request => verify(request.body.token))
    return app
  },

  '@fastify/jwt': async sessions => withFastifyJwt(await application(sessions), false),

  '@fastify/jwt with its cache': async sessions => withFastifyJwt(await application(sessions), true)
}

async function application (sessions = 'without sessions'): Promise<FastifyInstance> {
  const app = Fastify()
  if (sessions === 'with sessions') {
    await app.register(fastifyCookie)
    await app.register(fastifySession, SESSION)
  }
  return app
}

async function withFastifyJwt (app: FastifyInstance, cache: boolean): Promise<FastifyInstance> {
  await app.register(fastifyJwt, { secret: SECRET, verify: { algorithms: ['HS256'], allowedIss: ISSUER, cache } })
  app.get('/bearer', async request => ({ sub: (await request.jwtVerify<{ sub: string }>()).sub }))
  app.post<{ Body: { token: string } }>('/auth/local/verify-token', async request => app.jwt.verify(request.body.token))
  if (!app.hasRequestDecorator('session')) return app
  app.post('/sign-in', async request => {
    request.session.subject = SUBJECT
    return { sub: SUBJECT }
  })
  app.post('/auth/local/token', async (request, reply) => {
    const { subject } = request.session
    if (subject === undefined) return reply.code(401).send()
    return { token: app.jwt.sign({ sub: subject, auth_time: 0, jti: randomUUID() }, { iss: ISSUER, expiresIn: '15m' }) }
  })
  return app
}

await serve(makers)
