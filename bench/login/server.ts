import { hash, verify } from '@node-rs/argon2'
import fastifyCookie from '@fastify/cookie'
import { Authenticator, Strategy } from '@fastify/passport'
import fastifySession from '@fastify/session'
import { betterAuth } from 'better-auth'
import { memoryAdapter } from 'better-auth/adapters/memory'
import { getMigrations } from 'better-auth/db/migration'
import SqliteDatabase, { type Database } from 'better-sqlite3'
import Fastify, { type FastifyRequest } from 'fastify'
import pg from 'pg'
import authPlugin, { LocalIdentityProvider, MemoryAuthStore, SqlAuthStore } from '../../dist/index.js'
import { mountBetterAuth } from '../parts/better-auth.js'
import { type Make, serve } from '../parts/serve.js'
import { ADA, COST, LOGIN_PATHS, SECRET } from './ada.js'

/**
 * Applications in which Ada can log in: over JSON, with a session afterwards. Users are kept in memory, in an SQLite file or in Postgres,
 * as the only argument of the program says after the name.
 */
const makers: Record<keyof typeof LOGIN_PATHS, Make> = {
  async 'fastify-svc-auth' (database) {
    const app = Fastify()
    await app.register(authPlugin, {
      local: new LocalIdentityProvider({ secret: SECRET, argon2: COST }),
      store: database === 'memory' ? new MemoryAuthStore() : new SqlAuthStore(database),
      session: { secret: SECRET },
      // With limits, which one client does not reach.
      rateLimit: { login: 1e9, account: 1e9 }
    })
    await app.inject({ method: 'POST', url: '/auth/local/register', body: ADA })
    return app
  },

  async '@fastify/passport and @fastify/session' (database) {
    const findUser = await usersByEmail(String(database))
    const passport = new Authenticator()
    passport.registerUserSerializer<PassportUser, string>(async user => user.id)
    passport.registerUserDeserializer<string, PassportUser>(async () => findUser(ADA.email))
    passport.use(new PasswordStrategy(findUser))

    const app = Fastify()
    await app.register(fastifyCookie)
    await app.register(fastifySession, { secret: SECRET, cookie: { secure: false }, saveUninitialized: false, rolling: false })
    await app.register(passport.initialize())
    await app.register(passport.secureSession())
    app.post('/login', { preValidation: passport.authenticate('password') }, async request => request.user)
    return app
  },

  async 'better-auth' (database) {
    const options = {
      baseURL: 'http://127.0.0.1',
      secret: SECRET,
      database: betterAuthDatabase(String(database)),
      emailAndPassword: { enabled: true, password: { hash: (password: string) => hash(password, COST), verify: async ({ hash, password }: { hash: string, password: string }) => verify(hash, password) } },
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

/** The least that keeps a user. */
async function usersByEmail (database: string): Promise<(email: string) => Promise<PassportUser>> {
  const ada = { id: '1', email: ADA.email, hash: await hash(ADA.password, COST) }
  if (database === 'memory') {
    const users = new Map([[ADA.email, ada]])
    return async email => users.get(email) ?? ada
  }
  if (database.startsWith('postgres:')) {
    const pool = new pg.Pool({ connectionString: database })
    await pool.query('create table users (id text primary key, email text unique, hash text)')
    await pool.query('insert into users values ($1, $2, $3)', Object.values(ada))
    return async email => (await pool.query({ name: 'by e-mail', text: 'select * from users where email = $1', values: [email] })).rows[0]
  }
  const connection = sqlite(database)
  connection.exec('create table users (id text primary key, email text unique, hash text)')
  connection.prepare('insert into users values (?, ?, ?)').run(Object.values(ada))
  const byEmail = connection.prepare<[string], PassportUser>('select * from users where email = ?')
  return async email => byEmail.get(email) ?? ada
}

function betterAuthDatabase (database: string) {
  if (database === 'memory') return memoryAdapter({ user: [], session: [], account: [], verification: [] })
  return database.startsWith('postgres:') ? new pg.Pool({ connectionString: database }) : sqlite(database)
}

/** With the settings that SqlAuthStore gives to a file. */
function sqlite (file: string): Database {
  const connection = new SqliteDatabase(file)
  connection.pragma('journal_mode = WAL')
  connection.pragma('synchronous = FULL')
  return connection
}

await serve(makers)
