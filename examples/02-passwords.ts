/**
 * Passwords with a page to sign in and register, a rule of the application, and a role that users choose.
 *
 *     npm install fastify fastify-svc-auth
 *     export SVC_SESSION_SECRET=$(openssl rand -hex 32) LOCAL_IDP_SECRET=$(openssl rand -hex 32)
 *     npx tsx 02-passwords.ts
 */
import Fastify from 'fastify'
import authPlugin, { LocalIdentityProvider } from 'fastify-svc-auth'

const local = new LocalIdentityProvider({
  password: { check: password => password.length >= 12 || 'The password needs 12 characters.' },
  registration: { roles: ['reader', 'writer'] }
})

export const app = Fastify({ logger: true })
await app.register(authPlugin, { baseUrl: 'http://localhost:3000', local, loginPage: '/login' })

const fields = '<input name="email" type="email" required><input name="password" type="password" required>'
app.get('/login', async (_request, reply) => reply.type('text/html').send(`<!doctype html><title>Sign in</title>
  <form method="post" action="/auth/local/login">${fields}<button>Sign in</button></form>
  <form method="post" action="/auth/local/register">${fields}
    <select name="role"><option>reader<option>writer</select><button>Register</button></form>`))
app.get('/', { preHandler: app.auth.requireUser }, async (request, reply) => {
  return reply.type('text/html').send(`<!doctype html><title>Account</title><p>You are a ${app.auth.user(request).claims.role}.
    <form method="post" action="/auth/logout"><button>Sign out</button></form>`)
})

await app.listen({ port: Number(process.env.PORT ?? 3000) })
