import * as oauth from 'oauth4webapi'
import { OptionsError } from '../errors.js'
import { Once } from '../once.js'
import type { BackChannel } from './back-channel.js'
import { unacceptable } from './failures.js'
import { assertSecureUrl, isSecureUrl } from './provider-options.js'

export interface DiscoveryOptions {
  /** Of the provider, for messages. */
  name: string
  discoveryUrl: string
  issuer: string | undefined
  allowInsecureRequests: boolean
}

const WELL_KNOWN = /\/\.well-known\/openid-configuration\/?$/

/** The metadata of an OpenID provider (OpenID Connect Discovery 1.0), fetched on first use and kept. */
export class Discovery {
  /** What is asked for the document: the issuer, and perhaps a query. */
  readonly #target: URL
  /** What the document must say of itself. */
  readonly #issuer: URL
  readonly #http: BackChannel
  readonly #document = new Once(() => this.#fetch())

  /** @throws OptionsError naming the option */
  constructor ({ name, discoveryUrl, issuer, allowInsecureRequests }: DiscoveryOptions, http: BackChannel) {
    assertSecureUrl(discoveryUrl, allowInsecureRequests, `${name}: discoveryUrl`)
    this.#target = new URL(discoveryUrl)
    if (!WELL_KNOWN.test(this.#target.pathname)) throw new OptionsError(`${name}: discoveryUrl must end in /.well-known/openid-configuration`)
    this.#target.pathname = this.#target.pathname.replace(WELL_KNOWN, '')

    if (issuer !== undefined) assertSecureUrl(issuer, allowInsecureRequests, `${name}: issuer`)
    this.#issuer = issuer === undefined ? withoutQuery(this.#target) : new URL(issuer)
    this.#http = http
  }

  /** The object stays one: oauth4webapi keeps the provider's keys by it. */
  metadata (): Promise<oauth.AuthorizationServer> {
    return this.#document.done()
  }

  async #fetch (): Promise<oauth.AuthorizationServer> {
    const response = await oauth.discoveryRequest(this.#target, this.#http)
    return usable(await oauth.processDiscoveryResponse(this.#issuer, response), this.#http[oauth.allowInsecureRequests])
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

/** The issuer is what precedes the well-known path (OpenID Connect Discovery 1.0 section 4). */
function withoutQuery (url: URL): URL {
  const issuer = new URL(url)
  issuer.search = ''
  return issuer
}
