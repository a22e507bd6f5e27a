import * as oauth from 'oauth4webapi'
import { Once } from '../once.js'
import type { BackChannel } from './back-channel.js'
import { unacceptable } from './failures.js'
import { isSecureUrl } from './provider-options.js'

export interface DiscoveryUrls {
  /** What is asked for the document: the issuer, and perhaps a query. */
  target: URL
  /** What the document must say of itself. */
  issuer: URL
}

/** The metadata of an OpenID provider (OpenID Connect Discovery 1.0), fetched on first use and kept. */
export class Discovery {
  readonly #urls: DiscoveryUrls
  readonly #http: BackChannel
  readonly #document = new Once(() => this.#fetch())

  constructor (urls: DiscoveryUrls, http: BackChannel) {
    this.#urls = urls
    this.#http = http
  }

  /** The object stays one: oauth4webapi keeps the provider's keys by it. */
  metadata (): Promise<oauth.AuthorizationServer> {
    return this.#document.done()
  }

  async #fetch (): Promise<oauth.AuthorizationServer> {
    const { target, issuer } = this.#urls
    const response = await oauth.discoveryRequest(target, this.#http)
    return usable(await oauth.processDiscoveryResponse(issuer, response), this.#http[oauth.allowInsecureRequests])
  }
}

/** What requests and browsers are sent to; the last one only some providers have. */
const ENDPOINTS = ['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'userinfo_endpoint'] as const

/** The document, if a sign-in can be built on it. */
function usable (server: oauth.AuthorizationServer, allowInsecureRequests: boolean): oauth.AuthorizationServer {
  for (const name of ENDPOINTS) {
    const isAbsent = name === 'userinfo_endpoint' && server[name] === undefined
    if (!isAbsent && !isSecureUrl(server[name], allowInsecureRequests)) throw unacceptable(`the discovery document has no ${name} that is an https: URL`)
  }
  // What the document leaves out is the default of OpenID Connect Discovery 1.0 section 3.
  const { id_token_signing_alg_values_supported: algorithms = ['RS256'], token_endpoint_auth_methods_supported: methods = ['client_secret_basic'] } = server
  if (!Array.isArray(algorithms) || !Array.isArray(methods)) throw unacceptable('the discovery document has something else where a list of algorithms or methods should be')
  return { ...server, id_token_signing_alg_values_supported: algorithms.filter(isAsymmetric), token_endpoint_auth_methods_supported: methods }
}

/** Whatever the document offers, an ID token is signed, and with a key that only the provider has: neither `none` nor an HMAC with the client secret. */
function isAsymmetric (algorithm: unknown): boolean {
  return typeof algorithm === 'string' && algorithm !== 'none' && !algorithm.startsWith('HS')
}
