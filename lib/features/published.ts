import type { FastifyInstance } from 'fastify'
import type { AuthContext } from '../core/context.js'
import { CHANGE_PASSWORD, RELATED_ORIGINS } from '../core/site.js'
import { type PublicDocument, assertFree, mountDocument } from '../core/published-documents.js'
import { operation, redirect } from '../core/schema.js'

const PASSKEY_ENDPOINTS = '/.well-known/passkey-endpoints'

const uri = { type: 'string', format: 'uri' }

const changePasswordSchema = operation({
  summary: 'Find the page for changing the password',
  description: 'For password managers.',
  operationId: 'authChangePasswordPage',
  user: 'anyone',
  answers: { 302: { ...redirect, description: 'A redirect to the page' } }
})

const RELATED_ORIGINS_DOCUMENT: PublicDocument = {
  summary: 'List the origins whose pages may use the passkeys',
  description: 'For browsers.',
  operationId: 'authRelatedOrigins',
  members: { origins: { type: 'array', items: uri } }
}

const PASSKEY_ENDPOINTS_DOCUMENT: PublicDocument = {
  summary: 'Find the page on which users add and remove passkeys',
  description: 'For password managers.',
  operationId: 'authPasskeyEndpoints',
  members: { enroll: uri, manage: uri }
}

/**
 * Mounts what password managers and browsers look for at the root of the application, whatever the
 * prefix.
 *
 * @see https://www.w3.org/TR/change-password-url/
 * @see https://www.w3.org/TR/passkey-endpoints/
 * @see WebAuthn Level 3 section 5.11 (related origin requests)
 */
export function mountWellKnown (
  scope: FastifyInstance,
  { changePasswordPage: page, parts: { passkeys }, site: { baseUrl } }: AuthContext
): void {
  if (page !== null) {
    assertFree(scope, CHANGE_PASSWORD, 'pages and changePasswordPage')
    const options = { schema: changePasswordSchema, exposeHeadRoute: false }
    scope.get(CHANGE_PASSWORD, options, async (_request, reply) => reply.redirect(page, 302))
  }
  if (passkeys?.ceremonies.hasRelatedOrigins === true) {
    assertFree(scope, RELATED_ORIGINS, 'relatedOrigins of Passkeys')
    const { origin, relatedOrigins } = passkeys.ceremonies.relyingParty
    mountDocument(scope, RELATED_ORIGINS, RELATED_ORIGINS_DOCUMENT, () => ({ origins: [origin, ...relatedOrigins] }))
  }
  if (passkeys?.managePage != null && baseUrl !== null) {
    assertFree(scope, PASSKEY_ENDPOINTS, 'passkeys')
    const { href } = new URL(passkeys.managePage, baseUrl)
    mountDocument(scope, PASSKEY_ENDPOINTS, PASSKEY_ENDPOINTS_DOCUMENT, () => ({ enroll: href, manage: href }))
  }
}
