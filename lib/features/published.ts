import type { FastifyInstance } from 'fastify'
import type { AuthContext } from '../core/context.js'
import { OptionsError } from '../errors.js'
import { CHANGE_PASSWORD, RELATED_ORIGINS } from '../core/site.js'
import { type PublicDocument, mountDocument } from '../core/published-documents.js'
import { operation, redirect } from '../core/schema.js'

const PASSKEY_ENDPOINTS = '/.well-known/passkey-endpoints'
const METADATA = '/.well-known/openid-configuration'

const uri = { type: 'string', format: 'uri' }

/** What is no pattern of a route. */
const PLAIN_PATH = /^[\w./~-]+$/

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

const METADATA_DOCUMENT: PublicDocument = {
  summary: 'The issuer of tokens, and where its public keys are',
  description: 'Of OpenID Connect Discovery 1.0 what verifiers read: there is no authorization server.',
  operationId: 'authIssuerMetadata',
  maxAge: 300
}

/**
 * Mounts what password managers and browsers look for at the root of the application, whatever the
 * prefix; and below the issuer of tokens its metadata.
 *
 * @see OpenID Connect Discovery 1.0 section 4
 * @see https://www.w3.org/TR/change-password-url/
 * @see https://www.w3.org/TR/passkey-endpoints/
 * @see WebAuthn Level 3 section 5.11 (related origin requests)
 */
export function mountWellKnown (scope: FastifyInstance, auth: AuthContext): void {
  const { changePasswordPage: page, parts: { passkeys }, site: { baseUrl } } = auth
  const context = scope.prefix.replace(/\/$/, '')
  const issued = issuerMetadata(auth, context)
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
  if (issued !== null) {
    assertFree(scope, issued.url, 'a signingKey with this issuer')
    mountDocument(scope, issued.url.slice(context.length), METADATA_DOCUMENT, () => issued.metadata)
  }
}

/** Returns null unless the issuer signs with a key and is a URL of the routes in the context. */
function issuerMetadata ({ local, prefix, site: { baseUrl } }: AuthContext, context: string) {
  if (local?.jwks == null || baseUrl === null || !`${local.issuer}/`.startsWith(`${baseUrl}/`)) return null
  const { issuer, jwks: { keys } } = local
  const url = issuer.slice(baseUrl.length).replace(/\/$/, '') + METADATA
  if (!PLAIN_PATH.test(url) || !url.startsWith(`${context}/`)) return null
  const metadata = {
    issuer,
    jwks_uri: `${baseUrl}${prefix}/local/jwks.json`,
    // Clients insist on these three; no endpoint gives a token away.
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [...new Set(keys.map(({ alg }) => alg))]
  }
  return { url, metadata }
}

function assertFree (app: FastifyInstance, url: string, options: string): void {
  if (!app.hasRoute({ method: 'GET', url })) return
  throw new OptionsError(`the application has the route ${url} already; ` +
    `give ${options} to one registration of fastify-svc-auth, and mount no such route`)
}
