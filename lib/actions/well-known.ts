import type { FastifyInstance } from 'fastify'
import type { AuthContext } from '../context.js'
import { OptionsError } from '../errors.js'
import { documentRoutes } from '../web/openapi.js'
import { operation, redirect } from '../web/schema-parts.js'
import { setUpScope } from '../web/scope.js'

/** Routes at the root of the application. */
export const CHANGE_PASSWORD = '/.well-known/change-password'
export const RELATED_ORIGINS = '/.well-known/webauthn'

const changePasswordSchema = operation({
  summary: 'Find the page for changing the password',
  description: 'For password managers.',
  operationId: 'authChangePasswordPage',
  user: 'anyone',
  answers: { 302: { ...redirect, description: 'A redirect to the page' } }
})

const relatedOriginsSchema = operation({
  summary: 'List the origins whose pages may use the passkeys',
  description: 'For browsers.',
  operationId: 'authRelatedOrigins',
  user: 'anyone',
  answers: {
    200: {
      type: 'object',
      description: 'The origins',
      required: ['origins'],
      properties: { origins: { type: 'array', items: { type: 'string', format: 'uri' } } }
    }
  }
})

/**
 * Mounts what password managers and browsers look for at the root of the application, whatever the
 * prefix: the page for changing the password, the origins whose pages may use the passkeys.
 *
 * @see https://www.w3.org/TR/change-password-url/
 * @see WebAuthn Level 3 section 5.11 (related origin requests)
 */
export async function mountWellKnown (app: FastifyInstance, auth: AuthContext): Promise<void> {
  const { changePasswordPage: page, factors: { passkeys } } = auth
  const isRelated = passkeys?.hasRelatedOrigins === true
  if (page === null && !isRelated) return
  await app.register(async scope => {
    await setUpScope(scope, auth)
    documentRoutes(scope)
    if (page !== null) {
      assertFree(scope, CHANGE_PASSWORD, 'pages and changePasswordPage')
      const options = { schema: changePasswordSchema, exposeHeadRoute: false }
      scope.get(CHANGE_PASSWORD, options, async (_request, reply) => reply.redirect(page, 302))
    }
    if (passkeys !== null && isRelated) {
      assertFree(scope, RELATED_ORIGINS, 'relatedOrigins of Passkeys')
      const { origin, relatedOrigins } = passkeys.relyingParty
      const options = { schema: relatedOriginsSchema, exposeHeadRoute: false }
      scope.get(RELATED_ORIGINS, options, async () => ({ origins: [origin, ...relatedOrigins] }))
    }
  })
}

function assertFree (app: FastifyInstance, url: string, options: string): void {
  if (!app.hasRoute({ method: 'GET', url })) return
  throw new OptionsError(`the application has the route ${url} already; ` +
    `give ${options} to one registration of fastify-svc-auth, and mount no such route`)
}
