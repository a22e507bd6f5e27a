import fp from 'fastify-plugin'
import type { Guard } from 'fastify-svc-auth'

declare module 'fastify' {
  interface FastifyInstance {
    requireAdmin: Guard
  }
}

// Its file comes before auth.ts: the dependency decides the order.
export default fp(async app => {
  app.decorate('requireAdmin', app.auth.requireClaims({ role: 'admin' }))
}, { name: 'administrators', dependencies: ['auth'] })
