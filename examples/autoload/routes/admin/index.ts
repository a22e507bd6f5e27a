import type { FastifyInstance } from 'fastify'

export default async function (app: FastifyInstance): Promise<void> {
  app.get('/users', { preHandler: app.requireAdmin }, async () => app.auth.users())
}
