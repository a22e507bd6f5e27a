import { once } from 'node:events'
import * as oauth from 'oauth4webapi'
import { isPlainObject, isText } from '../claims.js'
import { isSecureUrl, limitedBody } from '../core/fetching.js'
import { AuthError } from '../errors.js'
import { ApiError, failedAt, failureAt, unacceptable, unreachable } from './failures.js'
import { parsedJson } from './identity.js'

const MAX_RESPONSE_BYTES = 1_048_576

export interface BackChannelOptions {
  /** Milliseconds for one request and its response. */
  timeout: number
  fetch: typeof fetch
  /** Permits plain http. */
  allowInsecureRequests: boolean
  /** Rewrites a response that does not conform to the standard. */
  conform?: (response: Response) => Response | Promise<Response>
}

export type BackChannel = ReturnType<typeof backChannel>

type Request = Pick<oauth.CustomFetchOptions<string, unknown>, 'method' | 'headers'> & {
  body?: oauth.ProtectedResourceRequestBody
}

/** Options for oauth4webapi: requests have a timeout and follow no redirect. */
export function backChannel ({ timeout, fetch, allowInsecureRequests, conform }: BackChannelOptions) {
  return {
    // GitHub refuses requests without a User-Agent.
    headers: { 'user-agent': 'fastify-svc-auth' },
    [oauth.allowInsecureRequests]: allowInsecureRequests,
    [oauth.customFetch]: async (url: string, { method, headers, body = null }: Request) => {
      const signal = AbortSignal.timeout(timeout)
      // The option `fetch` may be a function that ignores the signal.
      const aborted = once(signal, 'abort').then(() => { throw signal.reason })
      const request = async () => completed(await fetch(url, { method, headers, body, signal, redirect: 'manual' }))
      const response = await Promise.race([request(), aborted]).catch((error: unknown) => {
        throw error instanceof AuthError ? error : unreachable(error)
      })
      return conform === undefined ? response : conform(response)
    }
  }
}

/** Reads the whole body, so that the connection is released even if the response is not used. */
async function completed ({ status, headers, body }: Response): Promise<Response> {
  const content = await limitedBody(body, MAX_RESPONSE_BYTES)
  if (content === null) throw unacceptable(`the response is longer than ${MAX_RESPONSE_BYTES} bytes`)
  const response = new Response(content === '' ? null : content, { status, headers })
  // With a challenge, oauth4webapi would not read the body, which has the error code (RFC 6749
  // section 5.2).
  response.headers.delete('www-authenticate')
  return response
}

export interface DiscoveryOptions {
  /** The URL of the document. */
  url: URL
  /** The issuers that the document may name; an error names the first one as expected. */
  issuers: readonly [URL, ...URL[]]
}

/** Fetches the metadata of an OpenID provider (OpenID Connect Discovery 1.0). */
export async function discover (
  { url, issuers }: DiscoveryOptions, http: BackChannel
): Promise<oauth.AuthorizationServer> {
  const { headers, [oauth.customFetch]: fetch, [oauth.allowInsecureRequests]: allowInsecureRequests } = http
  try {
    // oauth4webapi would derive the URL from an issuer; some providers have the document elsewhere.
    const response = await fetch(url.href, { method: 'GET', headers: { ...headers, accept: 'application/json' } })
    const issuer = await expectedIssuer(issuers, response)
    return usable(await oauth.processDiscoveryResponse(issuer, response), allowInsecureRequests)
  } catch (error) {
    throw failureAt(url, error)
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

const MINUTE_MS = 60_000

/** The public keys of a provider, fetched anew after five minutes. */
export class ProviderKeys {
  #known: { jwks: oauth.JWKS, at: number } = { jwks: { keys: [] }, at: 0 }
  #request: Promise<void> | undefined
  #repeatedAt = 0

  /**
   * Verifies the signature of a processed response. An unknown key, as after a rotation, has the
   * keys fetched again at once, but once a minute at most.
   *
   * @returns the keys, of which one has signed
   */
  async verify (server: oauth.AuthorizationServer, response: Response, http: BackChannel): Promise<oauth.JWKS> {
    if (Date.now() - this.#known.at >= 5 * MINUTE_MS) await this.#fetch(server, http)
    // Keys so old, and of a copy of the metadata, oauth4webapi fetches again if it needs another.
    const cache = { jwks: this.#known.jwks, uat: Math.floor((Date.now() - MINUTE_MS) / 1000) }
    const again = async (): Promise<Response> => {
      const isDue = Date.now() - this.#repeatedAt >= MINUTE_MS
      if (isDue) this.#repeatedAt = Date.now()
      await (isDue ? this.#fetch(server, http) : this.#request)
      return Response.json(this.#known.jwks)
    }
    const options = { ...http, [oauth.jwksCache]: cache, [oauth.customFetch]: again }
    await oauth.validateApplicationLevelSignature({ ...server }, response, options).catch(failedAt(server.jwks_uri))
    return cache.jwks
  }

  /** Fetches the keys, once for all who wait. */
  async #fetch ({ jwks_uri: url }: oauth.AuthorizationServer, http: BackChannel): Promise<void> {
    this.#request ??= keysAt(String(url), http).then(jwks => { this.#known = { jwks, at: Date.now() } })
      .catch(failedAt(url)).finally(() => { this.#request = undefined })
    return this.#request
  }
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
