/**
 * One API for everyone who calls: people with a session, their programs with a token, scripts and jobs with an API key.
 *
 *     npm install fastify fastify-svc-auth @fastify/rate-limit
 *     export SVC_SESSION_SECRET=$(openssl rand -hex 32) LOCAL_IDP_SECRET=$(openssl rand -hex 32) LOCAL_AUTH_DB=users.db
 *     npx tsx 10-callers.ts
 */
import rateLimit from '@fastify/rate-limit'
import Fastify from 'fastify'
import authPlugin, { LocalIdentityProvider, SqlAuthStore } from 'fastify-svc-auth'
import { ApiKeys } from 'fastify-svc-auth/api-keys'

export const app = Fastify({ logger: true })
await app.register(authPlugin, {
  baseUrl: 'http://localhost:3000',
  local: new LocalIdentityProvider(),
  store: new SqlAuthStore(),
  apiKeys: new ApiKeys({ prefix: 'shop', scopes: { 'orders:read': 'Read your orders' } })
})
const { requireCaller, caller } = app.auth

// Each caller has a count of its own, whatever address it comes from.
await app.register(rateLimit, { global: false })
const perCaller = app.rateLimit({ max: 100, timeWindow: '1 minute', keyGenerator: request => caller(request).id })

const readers = requireCaller({ by: ['session', 'token', 'key'], scopes: ['orders:read'] })
app.get('/orders', { preHandler: [readers, perCaller] }, async request => {
  const { by, userId, owner } = caller(request)
  return { by, ordersOf: userId ?? owner }
})

// A key for a script of the signed-in user; the script of a page sends its own origin.
app.post('/keys', { preHandler: [app.auth.refuseCrossOrigin, app.auth.requireRecent({ within: 600 })] }, async request => {
  const { userId } = app.auth.user(request)
  return app.auth.createKey({ userId, name: 'Script', scopes: ['orders:read'] }, { request })
})

await app.listen({ port: Number(process.env.PORT ?? 3000) })
