import type { FastifyInstance } from 'fastify'
import { OptionsError } from '../errors.js'
import { type Checked, table } from '../option-checks.js'
import { RESOURCE_METADATA, type ResourceMetadata } from '../tokens/resource-metadata.js'
import type { TokenUse } from '../tokens/token-claims.js'
import { allowCaching } from './caching.js'
import { operation } from './schema-parts.js'

const METADATA_PATH = '/.well-known/oauth-protected-resource'

/** The path of a resource: none, or one that is not a pattern of a route. */
const PLAIN_PATH = /^(?:(?:\/[\w.~-]+)+\/?)?$/

const schema = operation({
  summary: 'The authorization servers of a protected resource',
  description: 'For clients that have no token yet (RFC 9728).',
  operationId: 'authResourceMetadata',
  user: 'anyone',
  answers: { 200: { type: 'object', description: 'The metadata', additionalProperties: true } }
})

interface Published {
  readonly given: string
  readonly scopes: Set<string>
}

/**
 * Publishes the metadata of the resources that guards protect, each at the URL that its clients
 * know: `/.well-known/oauth-protected-resource` in front of the path of the resource.
 *
 * @see RFC 9728 section 3
 */
export class PublishedResources {
  readonly #baseUrl: string | null
  readonly #published = new Map<string, Published>()
  #scope: FastifyInstance | null = null

  constructor (baseUrl: string | null) {
    this.#baseUrl = baseUrl
  }

  /** Sets the encapsulated context of the routes, at the root of the application. */
  mountOn (scope: FastifyInstance): void {
    this.#scope = scope
  }

  /**
   * Publishes the metadata of a resource; of several guards of one resource they are the same, and
   * have the scopes of all.
   *
   * @param use `audience`: the URL of the resource
   * @returns the URL of the metadata
   * @throws OptionsError where the resource is not a URL of this application
   */
  publish ({ audience: resource }: TokenUse, scopes: readonly string[], metadata: ResourceMetadata): string {
    const members = table(RESOURCE_METADATA)(metadata, 'metadata of requireBearerFor')
    const url = this.#urlOf(resource)
    const known = this.#published.get(url.href) ?? this.#mount(url.pathname, { resource, ...members })
    if (known.given !== JSON.stringify(members)) {
      throw new OptionsError(`metadata of requireBearerFor must be the same for all guards of ${resource}`)
    }
    this.#published.set(url.href, known)
    for (const scope of scopes) known.scopes.add(scope)
    return url.href
  }

  #urlOf (resource = ''): URL {
    const origin = this.#baseUrl === null ? null : new URL(this.#baseUrl).origin
    const path = origin !== null && resource.startsWith(origin) ? resource.slice(origin.length) : null
    // As clients write it: they compare it letter for letter.
    if (origin === null || path === null || !PLAIN_PATH.test(path) || new URL(resource).pathname !== (path || '/')) {
      throw new OptionsError('metadata of requireBearerFor needs the option baseUrl of the plugin and, as audience, ' +
        'the URL of the resource on the origin of baseUrl, such as https://app.example/mcp, without query and hash')
    }
    return Object.assign(new URL(resource), { pathname: METADATA_PATH + path })
  }

  #mount (path: string, document: { resource: string | undefined } & Checked<typeof RESOURCE_METADATA>): Published {
    const { resource, ...members } = document
    const scopes = new Set<string>()
    if (this.#scope?.prefix.replace(/\/$/, '') !== '') {
      throw new OptionsError(`metadata of requireBearerFor needs the route ${path} at the root of the application; ` +
        'register fastify-svc-auth outside the context with a prefix')
    }
    this.#scope.get(path, {
      schema,
      onSend: async (_request, reply) => allowCaching(reply, 'public, max-age=300'),
      exposeHeadRoute: false
    }, async (_request, reply) => {
      // Scripts of any origin may look for the authorization server.
      reply.header('Access-Control-Allow-Origin', '*')
      const supported = scopes.size === 0 ? {} : { scopes_supported: [...scopes] }
      return { resource, ...members, ...supported, bearer_methods_supported: ['header'] }
    })
    return { given: JSON.stringify(members), scopes }
  }
}
