import { randomUUID } from 'node:crypto'
import Fastify, { type FastifyInstance } from 'fastify'
import authPlugin, { Accounts, type AuthStore, LocalIdentityProvider, MemoryAuthStore, SqlAuthStore } from '../dist/index.js'
import { machine } from './parts/machine.js'
import { benchOptions } from './parts/options.js'
import { postgresServer } from './parts/postgres-server.js'
import { comparison, timeInTurns } from './parts/turns.js'

/** Shows whether the time that a refused login takes tells more than that it was refused: whether the e-mail has an account, above all. */

const { dialects, isShort } = benchOptions()
const LOGINS = isShort ? 10 : 200
const RESAMPLES = isShort ? 100 : 4000

const GUESS = 'not the password of anybody'

/** The addresses are of one length. The first one is what the others are compared with. */
const REFUSED = {
  'known e-mail, wrong password': { email: 'known-1@example.com', password: GUESS },
  'unknown e-mail': { email: 'nobody1@example.com', password: GUESS },
  'e-mail of an external identity': { email: 'outside@example.com', password: GUESS },
  'known e-mail, 2,000 bytes': { email: 'known-1@example.com', password: 'x'.repeat(2000) },
  'known e-mail, NUL in password': { email: 'known-1@example.com', password: `${GUESS}\0` },
  'unreadable stored hash': { email: 'damaged@example.com', password: GUESS },
  'no e-mail': { email: 'known-1 example.com', password: GUESS }
}

console.log(`${machine('@node-rs/argon2')}\n`)
await bench('Memory', new MemoryAuthStore())
if (dialects.includes('sqlite')) await bench('SQLite', new SqlAuthStore(':memory:'))
if (dialects.includes('postgres')) {
  const server = await postgresServer()
  try {
    await bench(`Postgres ${server.version}`, new SqlAuthStore(await server.createDatabase()))
  } finally {
    await server.stop()
  }
}

async function bench (title: string, store: AuthStore): Promise<void> {
  const app = await appOn(store)
  try {
    const logins = Object.values(REFUSED)
    const rounds = await timeInTurns(
      { kinds: logins.length, rounds: LOGINS, warmUp: Math.ceil(LOGINS / 10) },
      async kind => timeLogin(app, logins[kind])
    )
    console.log(`${title}: ${rounds.length} logins each, in turns\n`)
    console.log(comparison({ title: 'refused login', kinds: Object.keys(REFUSED), resamples: RESAMPLES }, rounds) + '\n')
  } finally {
    await app.close()
  }
}

/** With the default cost of passwords. */
async function appOn (store: AuthStore): Promise<FastifyInstance> {
  const local = new LocalIdentityProvider({ secret: randomUUID() })
  const app = Fastify()
  await app.register(authPlugin, { local, store, session: { secret: randomUUID() }, rateLimit: false })

  const password = await local.rehashPassword(randomUUID())
  await addUser(store, 'local', REFUSED['known e-mail, wrong password'].email, password)
  await addUser(store, 'local', REFUSED['unreadable stored hash'].email, password.slice(0, -10))
  await addUser(store, 'elsewhere', REFUSED['e-mail of an external identity'].email)
  return app
}

async function addUser (store: AuthStore, provider: string, email: string, passwordHash?: string): Promise<void> {
  const userId = randomUUID()
  const link = { provider, subject: email, claims: { sub: userId, email } }
  await new Accounts(store).createUser({ userId, email, emailVerified: true, name: null, claims: {}, link, ...(passwordHash !== undefined && { passwordHash }) })
}

async function timeLogin (app: FastifyInstance, payload: typeof REFUSED[keyof typeof REFUSED] | undefined): Promise<number> {
  const start = performance.now()
  const { statusCode, body } = await app.inject({ method: 'POST', url: '/auth/local/login', headers: { accept: 'application/json' }, payload: { ...payload } })
  const end = performance.now()
  if (statusCode !== 401) throw new Error(`expected a login to be refused, got ${statusCode} ${body}`)
  return end - start
}
