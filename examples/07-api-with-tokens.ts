/**
 * An API for pages, which send the session cookie, and for programs, which send a token. POST /auth/local/token
 * makes a token for the signed-in user.
 *
 *     npm install fastify fastify-svc-auth
 *     export SVC_SESSION_SECRET=$(openssl rand -hex 32) LOCAL_IDP_SECRET=$(openssl rand -hex 32)
 *     npx tsx 07-api-with-tokens.ts
 */
import Fastify from 'fastify'
import authPlugin, { LocalIdentityProvider } from 'fastify-svc-auth'

const local = new LocalIdentityProvider({ ttl: 300 }) // tokens are valid for five minutes

export const app = Fastify({ logger: true })
await app.register(authPlugin, { baseUrl: 'http://localhost:3000', local })

const cookieOrToken = app.auth.anyOf(app.auth.requireBearer, app.auth.requireUser)
app.get('/api/me', { preHandler: cookieOrToken }, async ({ token, principal }) => {
  return { userId: token?.sub ?? principal?.userId }
})

// A token for one service: POST /auth/local/verify-token and requireBearer refuse it.
app.post('/api/report-token', { preHandler: app.auth.requireUser }, async request => {
  return { token: await local.issueIdToken(app.auth.user(request).userId, {}, 60, { audience: 'reports' }) }
})
app.get('/reports', { preHandler: app.auth.requireBearerFor({ audience: 'reports' }) }, async ({ token }) => {
  return { report: `for ${token?.sub}` }
})

await app.listen({ port: Number(process.env.PORT ?? 3000) })
