import * as oauth from 'oauth4webapi'
import { isPlainObject, isText } from '../claims.js'
import { OptionsError } from '../errors.js'
import { AuthorizationCodeFlow, RECOGNIZED_TOKEN_TYPES, tokensOf } from './authorization-code.js'
import { parsedJson } from './back-channel.js'
import { ApiError, providerFailure, unacceptable } from './failures.js'
import { checkedIdentity } from './identity.js'
import type { AuthorizationRequest, AuthorizationResponse, ExternalProvider, Identity, ProviderOptions, ProviderTokens, UncheckedIdentity } from './provider.js'
import { assertSecureUrl, checkedProviderOptions } from './provider-options.js'

export interface OAuth2ProviderOptions extends ProviderOptions {
  /** The URL segment of the provider's routes. */
  name: string
  /** Where browsers are sent (RFC 6749 section 3.1). */
  authorizationEndpoint: string
  /** Where a code is exchanged for an access token (RFC 6749 section 3.2). */
  tokenEndpoint: string
  /** What the provider calls itself in the `iss` of authorization responses, if it sends one (RFC 9207); default the origin of `authorizationEndpoint`. */
  issuer?: string
  /** Makes an answer of the provider that is not as RFC 6749 says into one that is. */
  conform?: (answer: Response) => Response | Promise<Response>
  /** How the token endpoint wants to know who asks (RFC 6749 section 2.3.1): with the secret in the body, or in the Authorization header; default `client_secret_post`. */
  clientAuthentication?: 'client_secret_post' | 'client_secret_basic'
  /** Permits plain http, for development servers on this machine only; default false. */
  allowInsecureRequests?: boolean
}

/** The provider's API, asked with the access token of a person who signs in. What it throws ends the sign-in. */
export interface ProviderApi {
  /** @returns the JSON object at a URL */
  get (url: string, headers?: Record<string, string>): Promise<Record<string, unknown>>
  /** @returns the JSON array at a URL, or null when the token may not read it (status 403 or 404), as without the scope for it */
  getList (url: string, headers?: Record<string, string>): Promise<unknown[] | null>
}

const CLIENT_AUTHENTICATION: readonly string[] = ['client_secret_post', 'client_secret_basic']

/**
 * A provider with plain OAuth 2.0: authorization code flow with PKCE and state, and an API that tells who the access token speaks for.
 * A subclass says where that is, and how its answer becomes an identity.
 */
export abstract class OAuth2Provider implements ExternalProvider {
  readonly name: string
  readonly #server: oauth.AuthorizationServer
  readonly #flow: AuthorizationCodeFlow

  /** @throws OptionsError naming the option */
  constructor (options: OAuth2ProviderOptions) {
    const { authorizationEndpoint, tokenEndpoint, issuer, conform, clientAuthentication = 'client_secret_post', allowInsecureRequests = false, ...common } = options
    const checked = checkedProviderOptions(common, [])
    this.name = checked.name
    assertSecureUrl(authorizationEndpoint, allowInsecureRequests, `${this.name}: authorizationEndpoint`)
    assertSecureUrl(tokenEndpoint, allowInsecureRequests, `${this.name}: tokenEndpoint`)
    if (!CLIENT_AUTHENTICATION.includes(clientAuthentication)) throw new OptionsError(`${this.name}: clientAuthentication must be ${CLIENT_AUTHENTICATION.join(' or ')}`)
    this.#server = {
      issuer: issuer ?? new URL(authorizationEndpoint).origin,
      authorization_endpoint: authorizationEndpoint,
      token_endpoint: tokenEndpoint,
      token_endpoint_auth_methods_supported: [clientAuthentication]
    }
    this.#flow = new AuthorizationCodeFlow({ ...checked, allowInsecureRequests, ...(conform !== undefined && { conform }) })
  }

  /**
   * Asks the provider's API who the access token speaks for.
   *
   * @throws AuthError to refuse the person: `access_denied`, or `provider_error` for an answer that cannot be accepted
   */
  protected abstract identify (api: ProviderApi, accessToken: string): Promise<UncheckedIdentity>

  async authorizationUrl (request: AuthorizationRequest): Promise<URL> {
    return this.#flow.authorizationUrl(this.#server, request)
  }

  async authenticate (response: AuthorizationResponse): Promise<{ identity: Identity, tokens: ProviderTokens }> {
    const sent = this.#flow.secretsOf(response)
    try {
      const answer = await this.#flow.redeem(this.#server, response)
      const tokens = await oauth.processAuthorizationCodeResponse(this.#server, this.#flow.client, answer, { recognizedTokenTypes: RECOGNIZED_TOKEN_TYPES })
      const { access_token: accessToken } = tokens
      sent.push(accessToken)
      const person = await this.identify({
        get: async (url, headers) => objectOf(await this.#request(accessToken, url, headers)),
        getList: async (url, headers) => listOf(await this.#request(accessToken, url, headers))
      }, accessToken)
      return { identity: checkedIdentity(person), tokens: tokensOf(tokens) }
    } catch (error) {
      throw providerFailure(error, sent)
    }
  }

  async #request (accessToken: string, url: string, given: Record<string, string> = {}): Promise<Response> {
    const { http } = this.#flow
    const headers = new Headers({ accept: 'application/json', ...http.headers })
    for (const [name, value] of Object.entries(given)) headers.set(name, value)
    return oauth.protectedResourceRequest(accessToken, 'GET', new URL(url), headers, null, http)
  }
}

async function objectOf (response: Response): Promise<Record<string, unknown>> {
  const body = await successOf(response)
  if (!isPlainObject(body)) throw unacceptable('the API of the provider did not answer with a JSON object')
  return body
}

async function listOf (response: Response): Promise<unknown[] | null> {
  if (response.status === 403 || response.status === 404) return null
  const body = await successOf(response)
  if (!Array.isArray(body)) throw unacceptable('the API of the provider did not answer with a JSON array')
  return body
}

async function successOf (response: Response): Promise<unknown> {
  const body = parsedJson(await response.text())
  if (response.status === 200) return body
  const { error, error_description: description, message } = isPlainObject(body) ? body : {}
  throw new ApiError(response, [error, description, message].filter(isText))
}
