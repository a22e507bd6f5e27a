/**
 * Registers the plugin: users sign in with an e-mail address and a password, and a route knows who they are.
 *
 *     npm install fastify fastify-svc-auth better-sqlite3
 *     export SVC_SESSION_SECRET=$(openssl rand -hex 32) LOCAL_IDP_SECRET=$(openssl rand -hex 32)
 *     npx tsx 01-basic.ts
 */
import Fastify from 'fastify'
import authPlugin, { LocalIdentityProvider, SqlAuthStore } from 'fastify-svc-auth'

export const app = Fastify({ logger: true })

await app.register(authPlugin, {
  baseUrl: 'http://localhost:3000',
  local: new LocalIdentityProvider(), // secret: LOCAL_IDP_SECRET
  store: new SqlAuthStore() // the SQLite file ./local-auth.db, or LOCAL_AUTH_DB
}) // session secret: SVC_SESSION_SECRET

app.get('/', async ({ principal }) => principal === null ? 'You are not signed in.' : `You are ${principal.claims.email}.`)
app.get('/me', { preHandler: app.auth.requireUser }, async request => app.auth.user(request))

await app.listen({ port: Number(process.env.PORT ?? 3000) })
