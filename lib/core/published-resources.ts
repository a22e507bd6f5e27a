import { isDeepStrictEqual } from 'node:util'
import type { FastifyInstance } from 'fastify'
import { OptionsError } from '../errors.js'
import { table } from '../option-checks.js'
import { RESOURCE_METADATA, type ResourceMetadata } from './tokens/token-verifier.js'
import type { TokenUse } from './tokens/token-claims.js'
import { type PublicDocument, mountDocument } from './published-documents.js'

const METADATA_PATH = '/.well-known/oauth-protected-resource'

/** The path of a resource: none, or one that is not a pattern of a route. */
const PLAIN_PATH = /^(?:(?:\/[\w.~-]+)+\/?)?$/

const DOCUMENT: PublicDocument = {
  summary: 'The authorization servers of a protected resource',
  description: 'For clients that have no token yet (RFC 9728).',
  operationId: 'authResourceMetadata',
  maxAge: 300
}

/**
 * Publishes the metadata of the resources that guards protect, each at the URL that its clients
 * know: `/.well-known/oauth-protected-resource` in front of the path of the resource.
 *
 * @see RFC 9728 section 3
 */
export class PublishedResources {
  readonly #baseUrl: string | null
  /** The scopes of each resource, and its other metadata, by the path of the metadata. */
  readonly #published = new Map<string, { scopes: Set<string>, members: object }>()
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
    const { href, pathname } = this.#urlOf(resource)
    const published = this.#published.get(pathname) ?? { scopes: new Set(), members }
    if (!isDeepStrictEqual(published.members, members)) {
      throw new OptionsError(`metadata of requireBearerFor must be the same for all guards of ${resource}`)
    }
    for (const scope of scopes) published.scopes.add(scope)
    if (!this.#published.has(pathname)) {
      this.#mount(pathname, () => ({
        resource,
        ...members,
        ...(published.scopes.size > 0 && { scopes_supported: [...published.scopes] }),
        bearer_methods_supported: ['header']
      }))
    }
    this.#published.set(pathname, published)
    return href
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

  #mount (path: string, read: () => object): void {
    if (this.#scope?.prefix.replace(/\/$/, '') !== '') {
      throw new OptionsError(`metadata of requireBearerFor needs the route ${path} at the root of the application; ` +
        'register fastify-svc-auth outside the context with a prefix')
    }
    mountDocument(this.#scope, path, DOCUMENT, reply => {
      // Scripts of any origin may look for the authorization server.
      reply.header('Access-Control-Allow-Origin', '*')
      return read()
    })
  }
}
