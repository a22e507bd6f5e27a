import * as oauth from 'oauth4webapi'
import { isPlainObject, isText } from '../claims.js'
import {
  AuthorizationCodeFlow, type AuthorizationCodeFlowOptions, RECOGNIZED_TOKEN_TYPES, tokensOf
} from './authorization-code.js'
import { ApiError, providerFailure, unacceptable } from './failures.js'
import { checkedIdentity } from './identity.js'
import { parsedJson } from './parsed-json.js'
import type { Authentication, AuthorizationRequest, AuthorizationResponse, UncheckedIdentity } from './provider.js'

/**
 * The provider's API, called with the access token of the user who signs in. An error that it
 * throws ends the sign-in.
 */
export interface ProviderApi {
  /** @returns the JSON object at a URL */
  get (url: string, headers?: Record<string, string>): Promise<Record<string, unknown>>
  /**
   * @returns the JSON array at a URL; null for status 403 or 404, for example without the scope for
   *   it
   */
  getList (url: string, headers?: Record<string, string>): Promise<unknown[] | null>
}

/** Runs the authorization code flow of plain OAuth 2.0 with one provider. */
export class OAuth2Flow {
  readonly #server: oauth.AuthorizationServer
  readonly #flow: AuthorizationCodeFlow

  constructor ({ server, ...options }: AuthorizationCodeFlowOptions & { server: oauth.AuthorizationServer }) {
    this.#server = server
    this.#flow = new AuthorizationCodeFlow(options)
  }

  async authorizationUrl (request: AuthorizationRequest): Promise<URL> {
    if (request.maxAge !== undefined) {
      throw unacceptable('maxAge of signInUrl cannot be checked: the provider issues no ID tokens')
    }
    return this.#flow.authorizationUrl(this.#server, request)
  }

  /** @param identify requests the user of an access token from the provider's API */
  async authenticate (
    response: AuthorizationResponse, identify: (api: ProviderApi, accessToken: string) => Promise<UncheckedIdentity>
  ): Promise<Authentication> {
    const sent = this.#flow.secretsOf(response)
    try {
      const tokenResponse = await this.#flow.redeem(this.#server, response)
      const tokens = await oauth.processAuthorizationCodeResponse(this.#server, this.#flow.client, tokenResponse, {
        recognizedTokenTypes: RECOGNIZED_TOKEN_TYPES
      })
      const { access_token: accessToken } = tokens
      sent.push(accessToken)
      const identity = await identify({
        get: async (url, headers) => objectOf(await this.#request(accessToken, url, headers)),
        getList: async (url, headers) => listOf(await this.#request(accessToken, url, headers))
      }, accessToken)
      return { identity: checkedIdentity(identity), tokens: tokensOf(tokens) }
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
