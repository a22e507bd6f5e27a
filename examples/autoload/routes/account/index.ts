import type { FastifyInstance } from 'fastify'

/** Below /account, the name of the folder. */
export default async function (app: FastifyInstance): Promise<void> {
  app.addHook('preHandler', app.auth.requireUser)

  app.get('/', async request => {
    const { userId, claims } = app.auth.user(request)
    return { userId, email: claims.email }
  })
}
