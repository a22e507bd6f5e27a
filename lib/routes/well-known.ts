import type { FastifyInstance } from 'fastify'
import { documentRoutes } from './openapi.js'
import type { ResolvedOptions } from '../options.js'
import { SECURITY, refusals, tags } from './schema-parts.js'
import { setUpScope } from './scope.js'

const changePasswordSchema = {
  tags,
  summary: 'Find the page for changing the password',
  description: 'For password managers.',
  operationId: 'authChangePasswordPage',
  security: SECURITY.anyone,
  response: {
    302: {
      type: 'null',
      description: 'A redirect to the page',
      headers: { Location: { type: 'string', format: 'uri-reference' } }
    },
    ...refusals()
  }
} as const

/**
 * Mounts the route by which password managers find the application's page for changing the
 * password. It is at the root of the application, whatever the prefix of the other routes.
 *
 * @see https://www.w3.org/TR/change-password-url/
 */
export async function mountWellKnown (
  app: FastifyInstance,
  { changePasswordPage: page, ...context }: ResolvedOptions
): Promise<void> {
  if (page === null) return
  await app.register(async scope => {
    await setUpScope(scope, context)
    documentRoutes(scope)
    scope.get('/.well-known/change-password', {
      schema: changePasswordSchema,
      exposeHeadRoute: false
    }, async (_request, reply) => reply.redirect(page, 302))
  })
}
