import fastifyCookie from '@fastify/cookie'
import { Authenticator } from '@fastify/passport'
import fastifySession, { type SessionStore } from '@fastify/session'
import { betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import { fromNodeHeaders } from 'better-auth/node'
import connectPgSimple from 'connect-pg-simple'
import { RedisStore } from 'connect-redis'
import expressSession from 'express-session'
import Fastify, { type FastifyInstance } from 'fastify'
import pg from 'pg'
import { createClient } from 'redis'
import authPlugin, { Accounts, LocalIdentityProvider, SqlAuthStore } from '../../dist/index.js'
import { mountBetterAuth } from '../parts/better-auth.js'
import { type Make, serve } from '../parts/serve.js'
import { ADA, PATHS, SECRET } from './ada.js'

const USER_ID = '3b241101-e2bb-4255-8caf-4136c566a962'

/** Applications on one database: each page asks whether the user is still there. */
const makers: Record<keyof typeof PATHS, Make> = {
  'fastify-svc-auth': async database => ours(String(database)),
  'fastify-svc-auth, sessions in Redis': async (database, redis) => {
    const { store, close } = await redisStore(redis)
    return closing(await ours(String(database), store), close)
  },
  '@fastify/passport, connect-pg-simple': async database => {
    const PgStore = connectPgSimple(expressSession)
    const store = new PgStore({ conString: String(database), createTableIfMissing: true, pruneSessionInterval: false })
    return closing(await passport(String(database), store as unknown as SessionStore), () => store.close())
  },
  '@fastify/passport, sessions in Redis': async (database, redis) => {
    const { store, close } = await redisStore(redis)
    return closing(await passport(String(database), store), close)
  },

  async 'better-auth' (database) {
    const pool = new pg.Pool({ connectionString: String(database) })
    const options = {
      baseURL: 'http://127.0.0.1',
      secret: SECRET,
      database: pool,
      emailAndPassword: { enabled: true },
      rateLimit: { enabled: false },
      telemetry: { enabled: false }
    }
    await (await getMigrations(options)).runMigrations()
    const auth = betterAuth(options)
    await auth.api.signUpEmail({ body: ADA })

    const app = Fastify()
    mountBetterAuth(app, auth)
    app.get('/me', async (request, reply) => {
      const session = await auth.api.getSession({ headers: fromNodeHeaders(request.headers) })
      return session === null ? reply.code(401).send() : { email: session.user.email, name: session.user.name }
    })
    return closing(app, () => pool.end())
  }
}

async function ours (database: string, sessions?: SessionStore): Promise<FastifyInstance> {
  const { email, name } = ADA
  const store = new SqlAuthStore(database)
  await new Accounts(store).createUser({ userId: USER_ID, email, emailVerified: false, name, claims: {}, link: { provider: 'dev', subject: USER_ID, claims: { sub: USER_ID, email, name } } })
  const app = Fastify()
  await app.register(authPlugin, {
    local: new LocalIdentityProvider({ secret: SECRET }), store, session: { secret: SECRET, store: sessions }
  })
  app.post('/sign-in', async request => app.auth.signIn(request, USER_ID))
  app.get('/me', { preHandler: app.auth.requireUser }, async request => {
    const { email, name } = app.auth.user(request).claims
    return { email, name }
  })
  return app
}

interface PassportUser {
  id: string
  email: string
  name: string
}

async function passport (database: string, store: SessionStore): Promise<FastifyInstance> {
  const pool = new pg.Pool({ connectionString: database })
  await pool.query('create table passport_users (id text primary key, email text, name text)')
  await pool.query('insert into passport_users values ($1, $2, $3)', [USER_ID, ADA.email, ADA.name])
  const text = 'select * from passport_users where id = $1'
  const findUser = async (id: string): Promise<PassportUser> =>
    (await pool.query<PassportUser>({ name: 'by id', text, values: [id] })).rows[0] ?? Promise.reject(new Error('unknown'))
  const passport = new Authenticator()
  passport.registerUserSerializer<PassportUser, string>(async user => user.id)
  passport.registerUserDeserializer<string, PassportUser>(async id => findUser(id))

  const app = Fastify()
  await app.register(fastifyCookie)
  const cookie = { path: '/', httpOnly: true, sameSite: 'lax', secure: 'auto', maxAge: 7 * 24 * 60 * 60 * 1000 } as const
  await app.register(fastifySession, { secret: SECRET, store, saveUninitialized: false, rolling: false, cookie })
  await app.register(passport.initialize())
  await app.register(passport.secureSession())
  app.post('/sign-in', async request => request.logIn(await findUser(USER_ID)))
  app.get('/me', async (request, reply) => request.user === null ? reply.code(401).send() : request.user)
  return closing(app, () => pool.end())
}

/** Ends what an application uses with the application. */
function closing (app: FastifyInstance, close: () => unknown): FastifyInstance {
  app.addHook('onClose', async () => { await close() })
  return app
}

async function redisStore (url: string | undefined): Promise<{ store: SessionStore, close: () => unknown }> {
  const client = createClient({ url: String(url), disableOfflineQueue: true })
  await client.connect()
  return { store: new RedisStore({ client }) as unknown as SessionStore, close: () => client.quit() }
}

await serve(makers)
