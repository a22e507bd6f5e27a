import * as oauth from 'oauth4webapi'
import { Once } from '../base/once.js'
import type { BackChannel } from './back-channel.js'
import { failureAt, unacceptable } from './failures.js'
import { parsedJson } from './parsed-json.js'
import { isSecureUrl } from './provider-options.js'

export interface DiscoveryOptions {
  /** The URL of the document. */
  url: URL
  /** The issuers that the document may name; the first is the one to expect. */
  issuers: readonly [URL, ...URL[]]
}

/** The metadata of an OpenID provider (OpenID Connect Discovery 1.0), fetched on first use and kept. */
export class Discovery {
  readonly #options: DiscoveryOptions
  readonly #http: BackChannel
  readonly #document = new Once(() => this.#fetch())

  constructor (options: DiscoveryOptions, http: BackChannel) {
    this.#options = options
    this.#http = http
  }

  /** Resolves to one object, always the same: oauth4webapi keeps the provider's keys by it. */
  metadata (): Promise<oauth.AuthorizationServer> {
    return this.#document.done()
  }

  async #fetch (): Promise<oauth.AuthorizationServer> {
    const { url, issuers } = this.#options
    const { headers, [oauth.customFetch]: fetch, [oauth.allowInsecureRequests]: allowInsecureRequests } = this.#http
    try {
      // oauth4webapi would build a URL from an issuer, and not every provider answers at that one.
      const response = await fetch(url.href, { method: 'GET', headers: { ...headers, accept: 'application/json' } })
      const issuer = await expectedIssuer(issuers, response)
      return usable(await oauth.processDiscoveryResponse(issuer, response), allowInsecureRequests)
    } catch (error) {
      throw failureAt(url, error)
    }
  }
}

/** The issuer that the document names, if it is one of those expected, else the one to compare it with. */
async function expectedIssuer (issuers: DiscoveryOptions['issuers'], response: Response): Promise<URL> {
  const { issuer }: { issuer?: unknown } = Object(parsedJson(await response.clone().text()))
  const named = URL.parse(String(issuer))
  return issuers.find(({ href }) => href === named?.href) ?? issuers[0]
}

/** What requests and browsers are sent to; the last one only some providers have. */
const ENDPOINTS = ['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'userinfo_endpoint'] as const

/** The document, if a sign-in can be built on it. */
function usable (server: oauth.AuthorizationServer, allowInsecureRequests: boolean): oauth.AuthorizationServer {
  for (const name of ENDPOINTS) {
    const isAbsent = name === 'userinfo_endpoint' && server[name] === undefined
    if (isAbsent || isSecureUrl(server[name], allowInsecureRequests)) continue
    throw unacceptable(`the discovery document has no ${name} that is an https: URL`)
  }
  const {
    // The default of OpenID Connect Discovery 1.0 section 3.
    id_token_signing_alg_values_supported: algorithms = ['RS256'],
    token_endpoint_auth_methods_supported: methods = []
  } = server
  if (!Array.isArray(algorithms) || !Array.isArray(methods)) {
    throw unacceptable('the discovery document has something else where a list of algorithms or methods should be')
  }
  return { ...server, id_token_signing_alg_values_supported: algorithms.filter(isAsymmetric) }
}

/**
 * Whether only the provider has the key: whatever the document offers, an ID token is signed, and
 * not by an HMAC with the client secret.
 */
function isAsymmetric (algorithm: unknown): boolean {
  return typeof algorithm === 'string' && algorithm !== 'none' && !algorithm.startsWith('HS')
}
