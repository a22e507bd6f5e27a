import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import { signOut, signOutEverywhere } from '../flows/sign-out.js'
import { wantsJson } from '../http/accept.js'
import type { RouteContext } from './context.js'
import {
  FORM_OR_JSON, SESSION_OR_NOTHING, type SchemaTypes, checkbox, done, errorNext, isChecked, next, redirect, refusals,
  tags
} from './schema-parts.js'

const everywhere = { ...checkbox, description: 'A checkbox: ends all sessions of the user' } as const

const signOutSchema = {
  tags,
  summary: 'Sign out',
  security: SESSION_OR_NOTHING,
  consumes: FORM_OR_JSON,
  body: { type: 'object', properties: { everywhere, next, error_next: errorNext } },
  response: {
    204: done,
    303: redirect,
    ...refusals('invalid_request', 'cross_origin', 'unsupported', 'unavailable')
  }
} as const

type SignOutForm = Static<typeof signOutSchema['body']>

/**
 * Mounts the route that signs a user out.
 *
 * @param hasLocal whether to mount it under the path of the local identity provider too
 */
export function mountSessionRoutes ({ scope, rules, pages, channel }: RouteContext, hasLocal: boolean): void {
  const routes = scope.withTypeProvider<SchemaTypes>()

  const end = async (request: FastifyRequest, reply: FastifyReply, form: SignOutForm): Promise<FastifyReply> => {
    const { everywhere, next } = form
    if (isChecked(everywhere)) await signOutEverywhere(request, reply, { store: rules.store, channel })
    else await signOut(request, reply, channel)
    return wantsJson(request) ? reply.code(204).send() : reply.redirect(pages.afterSuccess(request, next), 303)
  }

  routes.post('/logout', {
    schema: { ...signOutSchema, operationId: 'authLogout' }
  }, async (request, reply) => end(request, reply, request.body))

  if (!hasLocal) return
  routes.post('/local/revoke', {
    schema: { ...signOutSchema, operationId: 'authLocalRevoke' }
  }, async (request, reply) => end(request, reply, request.body))
}
