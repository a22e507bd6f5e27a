import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { wantsJson } from '../http/accept.js'
import type { AuthChannel } from '../channel.js'
import { signOut } from '../flows/sign-out.js'
import type { ResolvedOptions } from '../options.js'
import { nextPath } from './answers.js'
import * as schemas from './schemas.js'

/** Mounts the route that ends a session. The local identity provider has it under a second path. */
export function mountSessionRoutes (scope: FastifyInstance, channel: AuthChannel, options: ResolvedOptions): void {
  const routes = scope.withTypeProvider<schemas.SchemaTypes>()

  const end = async (request: FastifyRequest, reply: FastifyReply, next: unknown): Promise<FastifyReply> => {
    await signOut(request, reply, channel)
    return wantsJson(request) ? reply.code(204).send() : reply.redirect(nextPath(request, options, next), 303)
  }

  routes.post('/logout', { schema: schemas.signOut }, async (request, reply) => end(request, reply, request.body.next))
  if (options.local === null) return
  routes.post('/local/revoke', { schema: schemas.revokeSession }, async (request, reply) => end(request, reply, request.body.next))
}
