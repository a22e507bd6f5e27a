import { toNodeHandler } from 'better-auth/node'
import type { FastifyInstance } from 'fastify'

/** Mounts better-auth as its manual has it for Fastify: the body is left to it. */
export function mountBetterAuth (app: FastifyInstance, auth: Parameters<typeof toNodeHandler>[0]): void {
  const handle = toNodeHandler(auth)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', (_request, _payload, done) => { done(null) })
  app.all('/api/auth/*', async (request, reply) => {
    reply.hijack()
    await handle(request.raw, reply.raw)
  })
}
