/**
 * Sign-in with Google and GitHub. Register the callback URLs http://localhost:3000/auth/google/callback and
 * http://localhost:3000/auth/github/callback with them.
 *
 *     npm install fastify fastify-svc-auth
 *     export SVC_SESSION_SECRET=$(openssl rand -hex 32)
 *     export GOOGLE_CLIENT_ID=... GOOGLE_CLIENT_SECRET=... GITHUB_CLIENT_ID=... GITHUB_CLIENT_SECRET=...
 *     npx tsx 03-google-and-github.ts
 */
import Fastify from 'fastify'
import authPlugin, { GitHubProvider, GoogleProvider } from 'fastify-svc-auth'

const { GOOGLE_CLIENT_ID = '', GOOGLE_CLIENT_SECRET = '', GITHUB_CLIENT_ID = '', GITHUB_CLIENT_SECRET = '' } = process.env

export const app = Fastify({ logger: true })
await app.register(authPlugin, {
  baseUrl: 'http://localhost:3000',
  providers: [
    new GoogleProvider({ clientId: GOOGLE_CLIENT_ID, clientSecret: GOOGLE_CLIENT_SECRET }),
    new GitHubProvider({ clientId: GITHUB_CLIENT_ID, clientSecret: GITHUB_CLIENT_SECRET })
  ],
  loginPage: '/login'
})

app.get('/login', async (_request, reply) => {
  const links = app.authProviders.map(name => `<p><a href="/auth/${name}/login">Continue with ${name}</a>`)
  return reply.type('text/html').send(`<!doctype html><title>Sign in</title>${links.join('')}`)
})
app.get('/', { preHandler: app.auth.requireUser }, async request => `You are ${app.auth.user(request).claims.name}.`)

await app.listen({ port: Number(process.env.PORT ?? 3000) })
