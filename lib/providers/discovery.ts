import * as oauth from 'oauth4webapi'
import { Once } from '../base/concurrency.js'
import { isPlainObject, isText } from '../claims.js'
import { isSecureUrl } from '../core/fetching.js'
import type { BackChannel } from './authorization-code.js'
import { ApiError, failedAt, failure, providerFailure, unacceptable, unreachable } from './failures.js'
import { parsedJson } from './identity.js'

export interface DiscoveryOptions {
  /** The URL of the document. */
  url: URL
  /** The issuers that the document may name; an error names the first one as expected. */
  issuers: readonly [URL, ...URL[]]
}

const MINUTE_MS = 60_000
const FAILED_MS = 5000

/** The metadata of an OpenID provider, and its public keys, fetched anew after five minutes. */
export class Discovery {
  readonly #http: BackChannel
  readonly #server: Once<oauth.AuthorizationServer>
  #known: { jwks: oauth.JWKS, at: number } = { jwks: { keys: [] }, at: 0 }
  #request: Promise<void> | undefined
  /** Anyone can send a logout token: those leave the request for a new key to sign-ins. */
  readonly #repeatedAt = { signIn: 0, logout: 0, old: 0 }

  constructor (options: DiscoveryOptions, http: BackChannel) {
    this.#http = http
    this.#server = new Once(() => fetchMetadata(options, http))
  }

  /** Returns the metadata (OpenID Connect Discovery 1.0): the same object each time. */
  async server (): Promise<oauth.AuthorizationServer> {
    return this.#server.done()
  }

  /**
   * Verifies the signature of a processed response. An unknown key, as after a rotation, has the
   * keys fetched again at once, but once a minute at most.
   *
   * @returns the keys, of which one has signed
   */
  async verify (server: oauth.AuthorizationServer, response: Response): Promise<oauth.JWKS> {
    if (this.#isOld) await this.#fetch(server)
    // Keys so old, and of a copy of the metadata, oauth4webapi fetches again if it needs another.
    const cache = { jwks: this.#known.jwks, uat: Math.floor((Date.now() - MINUTE_MS) / 1000) }
    const again = async (): Promise<Response> => {
      await this.#again(server, 'signIn')
      return Response.json(this.#known.jwks)
    }
    const options = { ...this.#http, [oauth.jwksCache]: cache, [oauth.customFetch]: again }
    await oauth.validateApplicationLevelSignature({ ...server }, response, options).catch(failedAt(server.jwks_uri))
    return cache.jwks
  }

  /**
   * Finds the key of a token that anyone can have sent: an unknown one has the keys fetched again
   * once a minute at most, and old keys while the provider does not answer once in five seconds.
   *
   * @param find returns null for a key that is not there
   * @returns null when the provider has no such key
   */
  async keyFor<Key> (
    server: oauth.AuthorizationServer, find: (jwks: oauth.JWKS) => Promise<Key | null>
  ): Promise<Key | null> {
    if (this.#isOld) await this.#again(server, 'old', FAILED_MS)
    if (this.#isOld) throw unreachable(new Error('the keys were asked for a moment ago, in vain'))
    const found = await find(this.#known.jwks)
    if (found !== null) return found
    await this.#again(server, 'logout')
    return find(this.#known.jwks)
  }

  get #isOld (): boolean {
    return Date.now() - this.#known.at >= 5 * MINUTE_MS
  }

  /** Fetches the keys again, but once in an interval; otherwise waits for those who do. */
  async #again (
    server: oauth.AuthorizationServer, need: 'signIn' | 'logout' | 'old', interval = MINUTE_MS
  ): Promise<void> {
    const isDue = Date.now() - this.#repeatedAt[need] >= interval
    if (isDue) this.#repeatedAt[need] = Date.now()
    await (isDue ? this.#fetch(server) : this.#request)
  }

  /** Fetches the keys, once for all who wait. */
  async #fetch ({ jwks_uri: url }: oauth.AuthorizationServer): Promise<void> {
    this.#request ??= keysAt(String(url), this.#http).then(jwks => { this.#known = { jwks, at: Date.now() } })
      .catch(failedAt(url)).finally(() => { this.#request = undefined })
    return this.#request
  }
}

async function fetchMetadata (
  { url, issuers }: DiscoveryOptions, http: BackChannel
): Promise<oauth.AuthorizationServer> {
  const { headers, [oauth.customFetch]: fetch, [oauth.allowInsecureRequests]: allowInsecureRequests } = http
  try {
    // oauth4webapi would derive the URL from an issuer; some providers have the document elsewhere.
    const response = await fetch(url.href, { method: 'GET', headers: { ...headers, accept: 'application/json' } })
    const issuer = await expectedIssuer(issuers, response)
    return usable(await oauth.processDiscoveryResponse(issuer, response), allowInsecureRequests)
  } catch (error) {
    const { code, cause } = providerFailure(error)
    const { message }: { message?: string } = Object(cause)
    const isAway = code === 'provider_unavailable'
    throw failure(isAway ? 'provider_unavailable' : 'provider_error', `${url.href}: ${message}`)
  }
}

async function expectedIssuer (issuers: DiscoveryOptions['issuers'], response: Response): Promise<URL> {
  const { issuer }: { issuer?: unknown } = Object(parsedJson(await response.clone().text()))
  const named = URL.parse(String(issuer))
  return issuers.find(({ href }) => href === named?.href) ?? issuers[0]
}

const ENDPOINTS = ['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'userinfo_endpoint'] as const

/** Checks the parts of the document that a sign-in uses; userinfo is optional. */
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
    throw unacceptable('the discovery document has algorithms or methods that are not a list')
  }
  return { ...server, id_token_signing_alg_values_supported: algorithms.filter(isAsymmetric) }
}

/** Refuses unsigned ID tokens, and those with an HMAC of the client secret, even when offered. */
function isAsymmetric (algorithm: unknown): boolean {
  return typeof algorithm === 'string' && algorithm !== 'none' && !algorithm.startsWith('HS')
}

async function keysAt (url: string, { headers, [oauth.customFetch]: fetch }: BackChannel): Promise<oauth.JWKS> {
  const response = await fetch(url, { method: 'GET', headers: { ...headers, accept: 'application/json' } })
  if (response.status !== 200) throw new ApiError(response, [])
  // A member that is null says what an absent one says.
  const body = parsedJson(await response.text(), (_name, value) => value ?? undefined)
  const { keys }: { keys?: unknown } = Object(body)
  if (!Array.isArray(keys)) throw unacceptable('the answer has no list of keys')
  return { keys: keys.filter(isPlainObject).filter(isUsable) }
}

const MEMBERS = new Map([['RSA', ['n', 'e']], ['EC', ['x', 'y']], ['OKP', ['x']], ['AKP', ['pub']]])

/** Whether a key has what its type requires: others are ignored (RFC 7517 section 5). */
function isUsable (key: Record<string, unknown>): key is oauth.JWK {
  const hasMembers = MEMBERS.get(String(key.kty))?.every(member => isText(key[member]))
  return hasMembers === true && Array.isArray(key.key_ops ?? [])
}
