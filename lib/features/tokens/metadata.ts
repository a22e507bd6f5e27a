import { isDeepStrictEqual } from 'node:util'
import type { FastifyInstance } from 'fastify'
import type { AuthContext } from '../../core/context.js'
import { isSecureOrLocal } from '../../core/fetching.js'
import { type PublicDocument, assertFree, mountDocument } from '../published.js'
import type { Site } from '../../core/site.js'
import { OptionsError } from '../../errors.js'
import { type ChecksOf, mustBe, optional, table, text } from '../../option-checks.js'

/** What the metadata of a protected resource say (RFC 9728 section 2). */
export interface ResourceMetadata {
  /** The issuers of the authorization servers whose tokens the resource accepts. */
  authorization_servers: readonly string[]
  /** The name of the resource, for users. */
  resource_name?: string | undefined
  /** The URL of a page for developers. */
  resource_documentation?: string | undefined
}

const RESOURCE_METADATA = {
  authorization_servers: mustBe('a list of https: URLs (http: for this machine alone), the issuers of one or more ' +
    'authorization servers', (value): value is string[] =>
    Array.isArray(value) && value.length > 0 && value.every(isSecureOrLocal)),
  resource_name: optional(text),
  resource_documentation: optional(mustBe('an https: URL', isSecureOrLocal))
} satisfies ChecksOf<ResourceMetadata>

const RESOURCE_PATH = '/.well-known/oauth-protected-resource'
const ISSUER_PATH = '/.well-known/openid-configuration'

/** The path of a resource: none, or one that is not a pattern of a route. */
const PLAIN_PATH = /^(?:(?:\/[\w.~-]+)+\/?)?$/

/** The path of an issuer that is not a pattern of a route. */
const PLAIN_ISSUER = /^[\w./~-]+$/

const ISSUER_DOCUMENT: PublicDocument = {
  summary: 'The issuer of tokens, and where its public keys are',
  description: 'Of OpenID Connect Discovery 1.0 what verifiers read: there is no authorization server.',
  operationId: 'authIssuerMetadata',
  maxAge: 300
}

const RESOURCE_DOCUMENT: PublicDocument = {
  summary: 'The authorization servers of a protected resource',
  description: 'For clients that have no token yet (RFC 9728).',
  operationId: 'authResourceMetadata',
  maxAge: 300,
  // Scripts of any origin may look for the authorization server.
  isOpen: true
}

/** Where documents are mounted in each application. */
const roots = new WeakMap<AuthContext, FastifyInstance>()

/**
 * Mounts the metadata of the issuer if it signs with a key and is a URL of the routes in the
 * context. Guards mount the metadata of the resources that they protect.
 *
 * @see OpenID Connect Discovery 1.0 section 4
 */
export function mountMetadata (scope: FastifyInstance, auth: AuthContext): void {
  roots.set(auth, scope)
  const { local, prefix, site: { baseUrl } } = auth
  if (local?.jwks == null || baseUrl === null || !`${local.issuer}/`.startsWith(`${baseUrl}/`)) return
  const { issuer, jwks: { keys } } = local
  const context = scope.prefix.replace(/\/$/, '')
  const url = issuer.slice(baseUrl.length).replace(/\/$/, '') + ISSUER_PATH
  if (!PLAIN_ISSUER.test(url) || !url.startsWith(`${context}/`)) return
  assertFree(scope, url, 'a signingKey with this issuer')
  mountDocument(scope, url.slice(context.length), ISSUER_DOCUMENT, () => ({
    issuer,
    jwks_uri: `${baseUrl}${prefix}/local/jwks.json`,
    // Clients insist on these three; no endpoint gives a token away.
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [...new Set(keys.map(({ alg }) => alg))]
  }))
}

/**
 * Returns what publishes the metadata of a resource that guards protect, at the URL that its
 * clients know: `/.well-known/oauth-protected-resource` in front of its path. Several guards of one
 * resource have the same metadata, with the scopes of all. It returns the URL of the metadata, and
 * throws OptionsError where the resource is not a URL of this application.
 *
 * @see RFC 9728 section 3
 */
export function resourcePublisher (auth: AuthContext): ResourcePublisher {
  const publisher = publishers.get(auth) ?? newPublisher(auth)
  publishers.set(auth, publisher)
  return publisher
}

export type ResourcePublisher =
  (resource: string | undefined, scopes: readonly string[], metadata: ResourceMetadata) => string

const publishers = new WeakMap<AuthContext, ResourcePublisher>()

function newPublisher (auth: AuthContext): ResourcePublisher {
  /** The scopes of each resource, and its other metadata, by the path of the metadata. */
  const resources = new Map<string, { scopes: Set<string>, members: object }>()
  return (resource = '', scopes, metadata) => {
    const members = table(RESOURCE_METADATA)(metadata, 'metadata of requireBearerFor')
    const { href, pathname } = metadataUrl(resource, auth.site)
    const published = resources.get(pathname) ?? { scopes: new Set(), members }
    if (!isDeepStrictEqual(published.members, members)) {
      throw new OptionsError(`metadata of requireBearerFor must be the same for all guards of ${resource}`)
    }
    for (const scope of scopes) published.scopes.add(scope)
    if (resources.has(pathname)) return href
    const root = roots.get(auth)
    if (root?.prefix.replace(/\/$/, '') !== '') {
      throw new OptionsError(`metadata of requireBearerFor needs the route ${pathname} at the root of the ` +
        'application; register fastify-svc-auth outside the context with a prefix')
    }
    mountDocument(root, pathname, RESOURCE_DOCUMENT, () => {
      const supported = published.scopes.size > 0 && { scopes_supported: [...published.scopes] }
      return { resource, ...members, ...supported, bearer_methods_supported: ['header'] }
    })
    resources.set(pathname, published)
    return href
  }
}

function metadataUrl (resource: string, { baseUrl }: Pick<Site, 'baseUrl'>): URL {
  const origin = baseUrl === null ? null : new URL(baseUrl).origin
  const path = origin !== null && resource.startsWith(origin) ? resource.slice(origin.length) : null
  // As clients write it: they compare it letter for letter.
  if (path === null || !PLAIN_PATH.test(path) || new URL(resource).pathname !== (path || '/')) {
    throw new OptionsError('metadata of requireBearerFor needs the option baseUrl of the plugin and, as audience, ' +
      'the URL of the resource on the origin of baseUrl, such as https://app.example/mcp, without query and hash')
  }
  return Object.assign(new URL(resource), { pathname: RESOURCE_PATH + path })
}
