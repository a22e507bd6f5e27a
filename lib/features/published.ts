import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AuthContext } from '../core/context.js'
import { type Operation, objectOf, operation, redirect, undocumented } from '../core/schema.js'
import { CHANGE_PASSWORD, RELATED_ORIGINS } from '../core/site.js'
import { OptionsError } from '../errors.js'

/** Lets caches keep an answer, but no error and no response that sets the cookie of a session. */
export function allowCaching (reply: FastifyReply, cacheControl: string): void {
  if (reply.statusCode === 200 && !reply.hasHeader('Set-Cookie')) reply.header('Cache-Control', cacheControl)
}

/** A JSON document that programs of anyone read. */
export interface PublicDocument extends Pick<Operation, 'summary' | 'description' | 'operationId'> {
  /** Its members, which are all required: JSON Schemas by name; default any. */
  members?: Readonly<Record<string, object>>
  /** How long caches may keep it, in seconds; default not at all. */
  maxAge?: number
  /** Whether scripts of any origin may read it; default false. */
  isOpen?: boolean
}

export function mountDocument (
  scope: FastifyInstance, path: string, { members, maxAge, isOpen = false, ...described }: PublicDocument,
  read: () => object
): void {
  const document = members === undefined
    ? { type: 'object', description: 'The document', additionalProperties: true }
    : objectOf('The document', members)
  scope.get(path, {
    schema: operation({ ...described, user: 'anyone', answers: { 200: document } }),
    onSend: async (_request, reply) => maxAge && allowCaching(reply, `public, max-age=${maxAge}`),
    exposeHeadRoute: false
  }, async (_request, reply) => {
    if (isOpen) reply.header('Access-Control-Allow-Origin', '*')
    return read()
  })
  if (isOpen) mountPreflight(scope, path)
}

/** Answers what browsers ask before a script of another origin sends its own headers. */
export function mountPreflight (scope: FastifyInstance, url: string): void {
  scope.options(url, { schema: undocumented }, async (_request, reply) => reply.code(204).headers({
    'Access-Control-Allow-Origin': '*',
    'Access-Control-Allow-Methods': 'GET, POST',
    'Access-Control-Allow-Headers': 'authorization, content-type, mcp-protocol-version',
    'Access-Control-Max-Age': '86400'
  }).send())
}

/** Refuses the URL of a document that the application has already. */
export function assertFree (scope: FastifyInstance, url: string, options: string): void {
  if (!scope.hasRoute({ method: 'GET', url })) return
  throw new OptionsError(`the application has the route ${url} already; ` +
    `give ${options} to one registration of fastify-svc-auth, and mount no such route`)
}

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
