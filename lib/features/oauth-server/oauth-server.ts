import { brand } from '../../base/values.js'
import { isPlainObject, isText } from '../../claims.js'
import type { PartSetup } from '../../core/feature.js'
import { type ScopeText, scopeTexts } from '../../core/scopes.js'
import { OptionsError } from '../../errors.js'
import {
  type Check, type Checked, type ChecksOf, boolean, checkedOptions, listOf, mustBe, oneOf, optional,
  table, tableOrBoolean, text, wholeNumber
} from '../../option-checks.js'
import type { OAuthClient } from './client.js'
import { clientDocuments } from './client-documents.js'
import { LIFETIMES } from './grant.js'
import { Grants } from './grants.js'
import { isPrivateScheme, isRegistrable } from './redirect-uris.js'

/** A resource that clients ask tokens for, such as an API or an MCP server. */
export interface ResourceOptions {
  /** What its scopes allow, as the consent says it: `{ 'notes:read': 'Read your notes' }`. */
  scopes: Readonly<Record<string, ScopeText>>
  /** The seconds within which the user must have authenticated for the consent. */
  within?: number | undefined
  /** Whether the consent takes a second factor; default false. */
  secondFactor?: boolean | undefined
}

/** A client that the application knows. */
export interface ClientOptions {
  /** Its id; also the URL of a document that this server cannot fetch. */
  client_id: string
  /** Its name, for users. */
  client_name: string
  /** Where it is sent back: exactly these; on this machine with any port. */
  redirect_uris: readonly string[]
  /** Whether users are not asked, where it is sent back to an `https:` URL; default false. */
  firstParty?: boolean | undefined
}

/** Options of {@link OAuthServer}. */
export interface OAuthServerOptions {
  /** The resources by their URLs, on an origin of `baseUrl` or `trustedOrigins`. */
  resources: Readonly<Record<string, ResourceOptions>>
  /** The clients that the application knows; default none. */
  clients?: readonly ClientOptions[] | undefined
  /** Whether a client may be known by the URL of its document; default true. */
  documents?: boolean | undefined
  /** Whether clients may register themselves, and how many that nobody uses; default false. */
  registration?: boolean | { most?: number | undefined } | undefined
  /** The ids of the clients that may use codes that are typed on another device; default none. */
  device?: { clients: readonly string[] } | undefined
  /** Schemes of redirect URIs without a dot, such as `cursor`; default none. */
  schemes?: readonly string[] | undefined
  /** How long tokens and grants live, in seconds; default ten minutes, 30 days, a year. */
  lifetimes?: { access?: number | undefined, refresh?: number | undefined, grant?: number | undefined } | undefined
  /** What becomes of a grant whose old refresh token is sent again; default `refuse`. */
  replays?: 'refuse' | 'end-grant' | undefined
}

/** What the option became: a part of the context. */
export type Server = ReturnType<OAuthServer['resolve']>

declare module '../../core/context.js' {
  interface Parts {
    readonly oauthServer: Server | null
  }
}

const RESOURCE = {
  scopes: scopeTexts,
  within: optional(wholeNumber(1), null),
  secondFactor: optional(boolean, false)
} satisfies ChecksOf<ResourceOptions>

const CLIENT = {
  client_id: text,
  client_name: text,
  redirect_uris: listOf('a list of redirect URIs', isText),
  firstParty: optional(boolean, false)
} satisfies ChecksOf<ClientOptions>

const seconds = optional(wholeNumber(1, Infinity, 'seconds'))

const OPTIONS = {
  resources: mustBe("an object of resources by their URLs, such as { 'https://app.example/mcp': { scopes } }",
    (value): value is Record<string, unknown> => isPlainObject(value) && Object.keys(value).length > 0),
  clients: optional(eachOf(CLIENT), []),
  documents: optional(boolean, true),
  registration: optional(tableOrBoolean({ most: optional(wholeNumber(1), 1000) }), null),
  device: optional(table({ clients: listOf('a list of client ids', isText) }), null),
  schemes: optional(listOf("a list of schemes, such as ['cursor']", isPrivateScheme), []),
  lifetimes: optional(table({ access: seconds, refresh: seconds, grant: seconds }), {}),
  replays: optional(oneOf('refuse', 'end-grant'), 'refuse')
} satisfies ChecksOf<OAuthServerOptions>

export interface Resource {
  readonly url: string
  readonly scopes: ReadonlyMap<string, ScopeText>
  readonly within: number | null
  readonly secondFactor: boolean
}

/**
 * The authorization server of one's own clients, such as AI assistants (MCP), command lines and
 * mobile apps, for the option `oauthServer` of the plugin: the authorization code grant with PKCE,
 * refresh tokens and, where named, the device grant, for public clients.
 *
 * @see OAuth 2.1, RFC 9700
 *
 * @example
 * ```ts
 * import { OAuthServer } from 'fastify-svc-auth/oauth-server'
 *
 * const oauthServer = new OAuthServer({
 *   resources: { 'https://app.example/mcp': { scopes: { 'notes:read': 'Read your notes' } } }
 * })
 * await app.register(authPlugin, { baseUrl: 'https://app.example', local, store, pages, oauthServer })
 * ```
 */
export class OAuthServer {
  static { brand(this, 'OAuthServer') }
  readonly #options: Checked<typeof OPTIONS>
  readonly #resources: ReadonlyMap<string, Resource>

  /** @throws OptionsError naming the option */
  constructor (options: OAuthServerOptions) {
    this.#options = checkedOptions('OAuthServer', options, OPTIONS, '{ resources }')
    this.#resources = new Map(Object.entries(this.#options.resources).map(([url, resource]) => {
      const { scopes, ...others } = table(RESOURCE)(resource, `resources['${url}'] of OAuthServer`)
      return [url, { url, scopes: new Map(Object.entries(scopes)), ...others }]
    }))
    const schemes = new Set(this.#options.schemes)
    for (const { client_id: id, redirect_uris: uris } of this.#options.clients) {
      const wrong = uris.find(uri => !isRegistrable(uri, schemes))
      if (wrong === undefined) continue
      throw new OptionsError(`OAuthServer: the client ${id} has the redirect URI ${wrong}; expected an https: URL, ` +
        'http: of this machine, or a scheme with a dot or of the option schemes, without a fragment')
    }
  }

  /** @hidden for the plugin */
  resolve ({ site, featureTables, pathOf, assertAtRoot }: PartSetup) {
    const { baseUrl, trustedOrigins } = site
    if (baseUrl === null) {
      throw new OptionsError('baseUrl is required with oauthServer, because it is the issuer; ' +
        'set it to the public URL of the application, such as https://app.example')
    }
    if (featureTables === undefined) {
      throw new OptionsError('oauthServer needs a SqlAuthStore, whose database keeps the grants')
    }
    assertAtRoot('oauthServer', '/.well-known/oauth-authorization-server')
    for (const url of this.#resources.keys()) {
      const origin = URL.parse(url)?.origin ?? ''
      if (origin === new URL(baseUrl).origin || trustedOrigins.has(origin)) continue
      throw new OptionsError(`OAuthServer: the resource ${url} must be a URL on an origin of baseUrl or trustedOrigins`)
    }
    const { clients, lifetimes, device, registration, documents, schemes, replays } = this.#options
    const privateSchemes: ReadonlySet<string> = new Set(schemes)
    const known = clients.map(({ client_id: id, client_name: name, redirect_uris: redirectUris, firstParty }) =>
      [id, { id, name, redirectUris, firstParty, kind: 'configured' }] as const)
    return Object.freeze({
      issuer: baseUrl,
      resources: this.#resources,
      clients: new Map<string, OAuthClient>(known),
      documents: documents ? clientDocuments(privateSchemes) : null,
      registration,
      deviceClients: new Set(device?.clients),
      schemes: privateSchemes,
      replays,
      lifetimes: {
        access: lifetimes.access === undefined ? LIFETIMES.access : lifetimes.access * 1000,
        refresh: lifetimes.refresh === undefined ? LIFETIMES.refresh : lifetimes.refresh * 1000,
        grant: lifetimes.grant === undefined ? LIFETIMES.grant : lifetimes.grant * 1000
      },
      grants: new Grants(featureTables),
      authorizePath: pathOf('oauth/authorize'),
      pages: {}
    })
  }
}

function eachOf<Table extends typeof CLIENT> (checks: Table): Check<ReadonlyArray<Checked<Table>>> {
  return (value, option) => {
    if (!Array.isArray(value)) throw new OptionsError(`${option} must be a list of clients`)
    return value.map((item, index) => table(checks)(item, `${option}[${index}]`))
  }
}
