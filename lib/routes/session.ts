import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import { endOwnSession } from '../flows/sessions.js'
import { signOut, signOutEverywhere } from '../flows/sign-out.js'
import { wantsJson } from '../http/accept.js'
import { answerFailure } from './answers.js'
import type { RouteContext } from './context.js'
import { missingProof } from './missing-proof.js'
import {
  FORM_OR_JSON, SESSION, SESSION_OR_NOTHING, type SchemaTypes, checkbox, done, errorNext, isChecked, next, redirect,
  refusals, tags
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
    ...refusals('invalid_request', 'cross_origin', 'unavailable')
  }
} as const

const endSessionSchema = {
  tags,
  summary: 'End one session of the signed-in user',
  description: 'The last proof must be less than ten minutes old. The present session ends as by a sign-out.',
  operationId: 'authLocalEndSession',
  security: SESSION,
  consumes: FORM_OR_JSON,
  body: {
    type: 'object',
    required: ['id'],
    properties: {
      id: { type: 'string', pattern: '^[A-Za-z0-9_-]{32}$', description: 'From the list of `app.auth.sessions`' },
      next,
      error_next: errorNext
    }
  },
  response: {
    204: done,
    303: redirect,
    ...refusals(
      'invalid_request', 'unauthenticated', 'cross_origin', 'reauthenticate', 'not_found', 'unsupported', 'unavailable'
    )
  }
} as const

/**
 * A sign-out compares when it came with the end of a sign-in beside it. Fastify measures that
 * (`reply.elapsedTime`) for routes that have this hook, and where there is a log.
 */
const measured = { onResponse: (_request: FastifyRequest, _reply: FastifyReply, done: () => void) => { done() } }

type SignOutForm = Static<typeof signOutSchema['body']>

/**
 * Mounts the route that signs a user out.
 *
 * @param hasLocal whether to mount it under the path of the local identity provider too, and there
 *   the one that ends another session
 */
export function mountSessionRoutes (context: RouteContext, hasLocal: boolean): void {
  const { scope, rules, pages, channel, listedSessions } = context
  const routes = scope.withTypeProvider<SchemaTypes>()

  const leave = (request: FastifyRequest, reply: FastifyReply, next: unknown): FastifyReply =>
    wantsJson(request) ? reply.code(204).send() : reply.redirect(pages.afterSuccess(request, next), 303)

  const answer = async (request: FastifyRequest, reply: FastifyReply, form: SignOutForm): Promise<FastifyReply> => {
    const { everywhere, next } = form
    const end = isChecked(everywhere) ? signOutEverywhere : signOut
    await end(request, reply, { store: rules.store, channel })
    return leave(request, reply, next)
  }

  routes.post('/logout', {
    ...measured,
    schema: { ...signOutSchema, operationId: 'authLogout' }
  }, async (request, reply) => answer(request, reply, request.body))

  if (!hasLocal) return
  routes.post('/local/revoke', {
    ...measured,
    schema: { ...signOutSchema, operationId: 'authLocalRevoke' }
  }, async (request, reply) => answer(request, reply, request.body))

  routes.post('/local/sessions/end', {
    schema: endSessionSchema,
    async errorHandler (error: FastifyError, request, reply) {
      const page = pages.forError(request, Object(request.body).error_next)
      return answerFailure(request, reply, error, { page, details: await missingProof(error, request, context) })
    }
  }, async (request, reply) => {
    const { id, next } = request.body
    await endOwnSession(request, reply, { store: rules.store, channel, listedSessions }, id)
    return leave(request, reply, next)
  })
}
