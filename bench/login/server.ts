import { randomUUID } from 'node:crypto'
import { hash, verify } from '@node-rs/argon2'
import fastifyCookie from '@fastify/cookie'
import { Authenticator, Strategy } from '@fastify/passport'
import fastifySession, { type SessionStore } from '@fastify/session'
import { betterAuth } from 'better-auth'
import { memoryAdapter } from 'better-auth/adapters/memory'
import { getMigrations } from 'better-auth/db/migration'
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import pg from 'pg'
import authPlugin, { LocalIdentityProvider, MemoryAuthStore, SqlAuthStore } from '../../dist/index.js'
import { mountBetterAuth } from '../parts/better-auth.js'
import { MemorySessionStore } from '../parts/memory-session-store.js'
import { type Make, serve } from '../parts/serve.js'
import { sessionRows } from '../parts/session-rows.js'
import { openSqlite } from '../parts/sqlite.js'
import { ADA, COST, LEAST_COST, PATHS, SECRET } from './ada.js'

/**
 * Applications in which Ada can log in, and others register: over JSON, with a session afterwards. Users are kept in memory, in an SQLite
 * file or in Postgres, as the argument after the name says; after it, `least` is for hashes that cost next to nothing.
 */
const cost = process.argv[4] === 'least' ? LEAST_COST : COST

const makers: Record<keyof typeof PATHS, Make> = {
  async 'fastify-svc-auth' (database) {
    const app = Fastify()
    await app.register(authPlugin, {
      local: new LocalIdentityProvider({ secret: SECRET, argon2: cost }),
      store: database === 'memory' ? new MemoryAuthStore() : new SqlAuthStore(database),
      session: { secret: SECRET },
      // With limits, which one client does not reach.
      rateLimit: { login: 1e9, account: 1e9, register: 1e9, network: 1e6 }
    })
    await app.inject({ method: 'POST', url: '/auth/local/register', body: ADA })
    return app
  },

  '@fastify/passport and @fastify/session': async database => withPassport(String(database)),

  async '@fastify/passport, sessions by hand in the database' (database) {
    const { store, close } = await sessionRows(String(database))
    const app = await withPassport(String(database), store)
    app.addHook('onClose', async () => { await close() })
    return app
  },

  async 'better-auth' (database) {
    const options = {
      baseURL: 'http://127.0.0.1',
      secret: SECRET,
      database: betterAuthDatabase(String(database)),
      emailAndPassword: { enabled: true, password: { hash: (password: string) => hash(password, cost), verify: async ({ hash, password }: { hash: string, password: string }) => verify(hash, password) } },
      rateLimit: { enabled: false },
      telemetry: { enabled: false }
    }
    if (database !== 'memory') await (await getMigrations(options)).runMigrations()
    const auth = betterAuth(options)
    await auth.api.signUpEmail({ body: ADA })

    const app = Fastify()
    mountBetterAuth(app, auth)
    return app
  }
}

async function withPassport (database: string, store: SessionStore = new MemorySessionStore()): Promise<FastifyInstance> {
  const users = await usersIn(database)
  const passport = new Authenticator()
  passport.registerUserSerializer<PassportUser, string>(async user => user.id)
  passport.registerUserDeserializer<string, PassportUser>(async () => users.find(ADA.email))
  passport.use(new PasswordStrategy(users.find))

  const app = Fastify()
  await app.register(fastifyCookie)
  await app.register(fastifySession, { secret: SECRET, store, cookie: { secure: false }, saveUninitialized: false, rolling: false })
  await app.register(passport.initialize())
  await app.register(passport.secureSession())
  app.post('/login', { preValidation: passport.authenticate('password') }, async request => request.user)
  app.post('/register', async request => {
    const { email, password } = request.body as typeof ADA
    const user = { id: randomUUID(), email, hash: await hash(password, cost) }
    await users.add(user)
    await request.logIn(user)
    return { id: user.id, email }
  })
  return app
}

interface PassportUser {
  id: string
  email: string
  hash: string
}

/** What a strategy for passwords is: passport-local has no more. Passport calls it on copies, which have no private members. */
class PasswordStrategy extends Strategy {
  readonly findUser: (email: string) => Promise<PassportUser>

  constructor (findUser: (email: string) => Promise<PassportUser>) {
    super('password')
    this.findUser = findUser
  }

  override async authenticate (request: FastifyRequest): Promise<void> {
    const { email, password } = request.body as typeof ADA
    const user = await this.findUser(email)
    if (await verify(user.hash, password)) this.success({ id: user.id, email: user.email })
    else this.fail()
  }
}

/** The least that keeps users. */
interface Users {
  find (email: string): Promise<PassportUser>
  add (user: PassportUser): Promise<void>
}

async function usersIn (database: string): Promise<Users> {
  const users = await emptyUsersIn(database)
  await users.add({ id: '1', email: ADA.email, hash: await hash(ADA.password, cost) })
  return users
}

async function emptyUsersIn (database: string): Promise<Users> {
  if (database === 'memory') {
    const users = new Map<string, PassportUser>()
    return { find: async email => found(users.get(email)), add: async user => { users.set(user.email, user) } }
  }
  if (database.startsWith('postgres:')) {
    const pool = new pg.Pool({ connectionString: database })
    await pool.query('create table users (id text primary key, email text unique, hash text)')
    return {
      find: async email => found((await pool.query({ name: 'by e-mail', text: 'select * from users where email = $1', values: [email] })).rows[0]),
      add: async user => { await pool.query({ name: 'add', text: 'insert into users values ($1, $2, $3)', values: Object.values(user) }) }
    }
  }
  const connection = openSqlite(database)
  connection.exec('create table users (id text primary key, email text unique, hash text)')
  const byEmail = connection.prepare<[string], PassportUser>('select * from users where email = ?')
  const insert = connection.prepare('insert into users values (?, ?, ?)')
  return { find: async email => found(byEmail.get(email)), add: async user => { insert.run(Object.values(user)) } }
}

function found (user: PassportUser | undefined): PassportUser {
  if (user === undefined) throw new Error('there is no such user')
  return user
}

function betterAuthDatabase (database: string) {
  if (database === 'memory') return memoryAdapter({ user: [], session: [], account: [], verification: [] })
  return database.startsWith('postgres:') ? new pg.Pool({ connectionString: database }) : openSqlite(database)
}

await serve(makers)
