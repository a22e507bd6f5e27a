import * as oauth from 'oauth4webapi'
import { isSecureUrl } from '../http/secure-url.js'
import type { BackChannel } from './back-channel.js'
import { failureAt, unacceptable } from './failures.js'
import { parsedJson } from './parsed-json.js'

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
