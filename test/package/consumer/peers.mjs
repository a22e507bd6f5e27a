/** What the package does with the optional peers that are installed, which the arguments name, and what it does without the others. */
import assert from 'node:assert/strict'
import Fastify from 'fastify'
import authPlugin, { Accounts, LocalIdentityProvider, SqlAuthStore } from 'fastify-svc-auth'
import { Passkeys } from 'fastify-svc-auth/passkeys'
import { SecondFactor } from 'fastify-svc-auth/second-factor'

const SECRET = 'a secret of more than 32 characters'
const ADA = { email: 'ada@example.com', password: 'correct horse' }

/** For each peer: what needs it, and the failure without it; null where the package does without. */
const PEERS = {
  'better-sqlite3': [async () => findUser(':memory:'), /npm install better-sqlite3/],
  // Nothing listens at this port, which only the driver finds out.
  postgres: [async () => findUser('postgres://ada@127.0.0.1:1/none').catch(isRefused), /npm install postgres/],
  '@simplewebauthn/server': [usePasskey, /npm install @simplewebauthn\/server/],
  'drizzle-orm': [async () => Promise.all(['postgres', 'sqlite'].map(name => import(`fastify-svc-auth/schema/${name}`))), /'drizzle-orm'/],
  uqr: [async () => assert.notEqual(await qrCode(), null), null]
}

for (const [name, [use, failure]] of Object.entries(PEERS)) {
  if (process.argv.includes(name)) await use()
  else if (failure === null) assert.equal(await qrCode(), null)
  else await assert.rejects(use(), failure)
}
console.log(`Node.js ${process.versions.node}, peers: ${process.argv.slice(2).join(', ') || 'none'}`)
process.exit()

/** Looks for a user of a database. */
async function findUser (database) {
  const store = new SqlAuthStore(database)
  return new Accounts(store).findUser({ email: ADA.email }).catch(({ cause }) => { throw cause }).finally(async () => store.close())
}

/** Passes over the failure to connect. */
function isRefused (error) {
  if (!error.message.includes('ECONNREFUSED')) throw error
}

/** Signs in with a passkey of no user, which is refused once it is verified; fails with what the log says. */
async function usePasskey () {
  const lines = []
  const app = await register({ passkeys: new Passkeys({ name: 'Shop' }) }, { level: 'error', stream: { write: line => lines.push(line) } })
  const post = async (url, payload, cookies) => app.inject({ method: 'POST', url: `/auth/local/passkeys/${url}`, payload, cookies })
  const options = await post('options', { for: 'login' })
  const [{ name, value }] = options.cookies
  const clientData = { type: 'webauthn.get', challenge: options.json().challenge, origin: 'http://localhost:3000' }
  const clientDataJSON = Buffer.from(JSON.stringify(clientData)).toString('base64url')
  const parts = { clientDataJSON, authenticatorData: 'AA', signature: 'AA' }
  const { body } = await post('login', { response: { id: 'AA', rawId: 'AA', type: 'public-key', response: parts } }, { [name]: value })
  assert.equal(JSON.parse(body).code, 'invalid', `${body}${lines.join('')}`)
}

/** Registers the plugin and a user. */
async function register (options, logger = false) {
  const app = Fastify({ logger })
  const local = new LocalIdentityProvider({ secret: SECRET })
  await app.register(authPlugin, { baseUrl: 'http://localhost:3000', local, session: { secret: SECRET }, dataSecret: SECRET, ...options })
  await app.ready()
  const { statusCode, body } = await app.inject({ method: 'POST', url: '/auth/local/register', payload: ADA })
  assert.equal(statusCode, 201, body)
  return app
}

/** The QR code for the authenticator app of a new user. */
async function qrCode () {
  const app = await register({ secondFactor: new SecondFactor({ issuer: 'Shop' }) })
  const { cookies: [{ name, value }] } = await app.inject({ method: 'POST', url: '/auth/local/login', payload: ADA })
  const enrolment = await app.inject({ method: 'POST', url: '/auth/local/totp/enroll', payload: {}, cookies: { [name]: value } })
  return enrolment.json().svg
}
