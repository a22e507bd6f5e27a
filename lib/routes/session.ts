import type { FastifyReply, FastifyRequest } from 'fastify'
import { signOut } from '../flows/sign-out.js'
import { wantsJson } from '../http/accept.js'
import type { RouteContext } from './context.js'
import {
  FORM_OR_JSON, SESSION_OR_NOTHING, type SchemaTypes, errorNext, next, redirect, refusals, tags
} from './schema-parts.js'

const signOutSchema = {
  tags,
  summary: 'Sign out',
  security: SESSION_OR_NOTHING,
  consumes: FORM_OR_JSON,
  body: { type: 'object', properties: { next, error_next: errorNext } },
  response: {
    204: { type: 'null', description: 'Done' },
    303: redirect,
    ...refusals('invalid_request', 'cross_origin', 'unavailable')
  }
} as const

/**
 * Mounts the route that signs a user out.
 *
 * @param hasLocal whether to mount it under the path of the local identity provider too
 */
export function mountSessionRoutes ({ scope, pages, channel }: RouteContext, hasLocal: boolean): void {
  const routes = scope.withTypeProvider<SchemaTypes>()

  const end = async (request: FastifyRequest, reply: FastifyReply, next: unknown): Promise<FastifyReply> => {
    await signOut(request, reply, channel)
    return wantsJson(request) ? reply.code(204).send() : reply.redirect(pages.afterSuccess(request, next), 303)
  }

  routes.post('/logout', {
    schema: { ...signOutSchema, operationId: 'authLogout' }
  }, async (request, reply) => end(request, reply, request.body.next))

  if (!hasLocal) return
  routes.post('/local/revoke', {
    schema: { ...signOutSchema, operationId: 'authLocalRevoke' }
  }, async (request, reply) => end(request, reply, request.body.next))
}
