import type { FastifyInstance } from 'fastify'

/** A route for pages and for scripts: it answers the user of a session, and the one of an API key. */
export function mountScripts (app: FastifyInstance): void {
  const { auth } = app
  const readers = auth.requireCaller({ by: ['session', 'key'], scopes: ['profile'] })

  app.get('/api/profile', { preHandler: readers }, async request => {
    const { by, userId } = auth.caller(request)
    const user = userId === null ? null : await auth.findUser({ userId })
    return { by, name: user?.name, email: user?.email }
  })
}
