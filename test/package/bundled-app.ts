import Fastify from 'fastify'
import authPlugin, { LocalIdentityProvider, SqlAuthStore } from '../../lib/index.js'

const SECRET = 'a secret of the bundled application'
const ADA = { email: 'ada@example.com', password: 'correct horse' }

/** Registers a user, signs the user in, and prints how that went. The database is the first argument; without it, there is none. */
export async function main (): Promise<void> {
  const [,, database] = process.argv
  const app = Fastify()
  await app.register(authPlugin, {
    local: new LocalIdentityProvider({ secret: SECRET }),
    store: database === undefined ? undefined : new SqlAuthStore(database),
    session: { secret: SECRET }
  })
  const registration = await app.inject({ method: 'POST', url: '/auth/local/register', payload: ADA })
  const login = await app.inject({ method: 'POST', url: '/auth/local/login', payload: ADA })
  await app.close()
  console.log(JSON.stringify({ registered: registration.statusCode, signedIn: login.statusCode, email: login.json().claims.email }))
}
