/**
 * Claims say what a user may do, guards ask for them. FIRST_ADMIN is the e-mail address of the first administrator, who
 * registers with it, opens the link that is sent there and signs in once more.
 *
 *     npm install fastify fastify-svc-auth
 *     export SVC_SESSION_SECRET=$(openssl rand -hex 32) LOCAL_IDP_SECRET=$(openssl rand -hex 32)
 *     FIRST_ADMIN=ada@example.com npx tsx 04-claims-and-guards.ts
 */
import Fastify from 'fastify'
import authPlugin, { LocalIdentityProvider } from 'fastify-svc-auth'

declare module 'fastify-svc-auth' {
  interface AuthorizationClaims {
    role?: 'admin' | 'editor' | 'member'
  }
}

export const app = Fastify({ logger: true })
await app.register(authPlugin, {
  baseUrl: 'http://localhost:3000',
  local: new LocalIdentityProvider({
    sendMail: ({ to, url }) => { console.log(`A mail to ${to} with the link ${url}`) } // here a mail server sends it
  }),
  onSignIn: async ({ principal: { userId }, identity: { claims, emailVerified } }) => {
    // Without emailVerified, the first visitor who registers with the address would be the administrator.
    if (emailVerified && claims.email === process.env.FIRST_ADMIN) await app.auth.grant(userId, { role: 'admin' })
  }
})

// refresh reads the claims from the store, so that a granted role counts with the next request.
const admins = { preHandler: [app.auth.refresh, app.auth.requireClaims({ role: 'admin' })] }
app.post<{ Params: { userId: string } }>('/users/:userId/editor', admins, async ({ params: { userId } }) => {
  return app.auth.grant(userId, { role: 'editor' })
})
app.delete<{ Params: { userId: string } }>('/users/:userId/editor', admins, async ({ params: { userId } }) => {
  return app.auth.withdraw(userId, ['role'])
})
const editors = { preHandler: [app.auth.refresh, app.auth.requireClaims({ role: 'editor' })] }
app.get('/drafts', editors, async () => ['a draft'])

await app.listen({ port: Number(process.env.PORT ?? 3000) })
