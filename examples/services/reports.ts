/**
 * A service that other services call with a token for it. Start it and its caller in two terminals:
 *
 *     export LOCAL_IDP_SECRET=...   # the same in both, 32 characters or more, such as `openssl rand -hex 32` prints
 *     npx tsx examples/services/reports.ts
 *     npx tsx examples/services/dashboard.ts
 *
 * and open http://localhost:4000. PORT is the port of a service, REPORTS_URL the URL of the reports for the dashboard.
 */
import { randomBytes } from 'node:crypto'
import Fastify from 'fastify'
import authPlugin, { LocalIdentityProvider } from 'fastify-svc-auth'

const port = Number(process.env.PORT ?? 4001)

const app = Fastify({ logger: { level: 'warn' } })
await app.register(authPlugin, {
  local: new LocalIdentityProvider({ registration: false }), // secret: LOCAL_IDP_SECRET
  session: { secret: randomBytes(32).toString('hex') } // no user signs in here
})

// Refuses the tokens of users and those for another service.
app.get('/report', { preHandler: app.auth.requireBearerFor({ audience: 'reports' }) }, async ({ token }) => {
  return { title: 'Sign-ins', total: 42, calledBy: token?.sub }
})

await app.listen({ host: 'localhost', port }) // on this machine only: a token that goes further needs https
console.log(`Ready: http://localhost:${port}/report`)
