import Fastify from 'fastify'
import authPlugin, { LocalIdentityProvider, SqlAuthStore } from '../../dist/index.js'
import { type Make, serve } from '../parts/serve.js'

const SECRET = 'a secret for the sessions of the benches'

/** On a database full of people: `POST /sign-in` signs anybody in, `POST /grant` grants anybody a claim, `GET /me` is for those who are signed in, `GET /users` lists. */
const makers: Record<string, Make> = {
  async application (database) {
    const app = Fastify()
    await app.register(authPlugin, { local: new LocalIdentityProvider({ secret: SECRET }), store: new SqlAuthStore(database), session: { secret: SECRET }, rateLimit: false })
    app.post<{ Body: { userId: string } }>('/sign-in', async request => app.auth.signIn(request, request.body.userId))
    app.post<{ Body: { userId: string, badge: string } }>('/grant', async ({ body: { userId, badge } }) => app.auth.grant(userId, { badge }))
    app.get<{ Querystring: { after?: string, search?: string, order?: 'newest' } }>('/users', async ({ query }) => app.auth.users(query))
    app.get<{ Querystring: { search: string } }>('/count', async ({ query }) => ({ count: await app.auth.countUsers(query) }))
    app.get('/me', { preHandler: app.auth.requireUser }, async request => request.principal)
    return app
  }
}

await serve(makers)
