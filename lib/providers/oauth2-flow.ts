import * as oauth from 'oauth4webapi'
import { isPlainObject, isText } from '../claims.js'
import { AuthorizationCodeFlow, type FlowOptions } from './authorization-code.js'
import { ApiError, failedAt, unacceptable } from './failures.js'
import { parsedJson } from './identity.js'
import type { AuthorizationRequest, AuthorizationResponse, UncheckedIdentity } from './provider.js'

/** The provider's API, called with the access token of the user. Its errors end the sign-in. */
export interface ProviderApi {
  /** @returns the JSON object at a URL */
  get (url: string, headers?: Record<string, string>): Promise<Record<string, unknown>>
  /** @returns the JSON array at a URL; null for status 403 or 404, as without the scope for it */
  getList (url: string, headers?: Record<string, string>): Promise<unknown[] | null>
}

interface OAuth2FlowOptions extends FlowOptions {
  server: oauth.AuthorizationServer
  identify: (api: ProviderApi, accessToken: string) => Promise<UncheckedIdentity>
}

export class OAuth2Flow extends AuthorizationCodeFlow<OAuth2FlowOptions> {
  override async authorizationUrl (request: AuthorizationRequest): Promise<URL> {
    const unchecked = (['maxAge', 'acrValues'] as const).find(name => request[name] !== undefined)
    if (unchecked === undefined) return super.authorizationUrl(request)
    throw unacceptable(`${unchecked} of signInUrl cannot be checked: the provider issues no ID tokens`)
  }

  protected override async server (): Promise<oauth.AuthorizationServer> {
    return this.options.server
  }

  /** Leaves an ID token out: nothing here would verify it. LinkedIn sends one with `openid`. */
  protected override async tokensIn (
    tokenResponse: Response, ...others: [oauth.AuthorizationServer, AuthorizationResponse]
  ): Promise<oauth.TokenEndpointResponse> {
    const { id_token: _, ...body } = Object(parsedJson(await tokenResponse.text()))
    return super.tokensIn(new Response(JSON.stringify(body), tokenResponse), ...others)
  }

  protected override async userOf (tokens: oauth.TokenEndpointResponse): Promise<{ identity: UncheckedIdentity }> {
    const { access_token: accessToken } = tokens
    // The query may have a secret.
    const at = (url: string) => failedAt(url.replace(/\?.*/s, ''))
    const identity = await this.options.identify({
      get: async (url, headers) => this.#request(accessToken, url, headers)
        .then(async response => bodyOf(response, isPlainObject, 'a JSON object')).catch(at(url)),
      getList: async (url, headers) => this.#request(accessToken, url, headers)
        .then(async response => [403, 404].includes(response.status)
          ? null
          : bodyOf<unknown[]>(response, Array.isArray, 'a JSON array')).catch(at(url))
    }, accessToken)
    return { identity }
  }

  async #request (accessToken: string, url: string, given: Record<string, string> = {}): Promise<Response> {
    const headers = new Headers({ accept: 'application/json', ...this.http.headers })
    for (const [name, value] of Object.entries(given)) headers.set(name, value)
    return oauth.protectedResourceRequest(accessToken, 'GET', new URL(url), headers, null, this.http)
  }
}

async function bodyOf<Body> (response: Response, is: (body: unknown) => body is Body, expected: string): Promise<Body> {
  const body = parsedJson(await response.text())
  if (response.status !== 200) {
    const { error, error_description: description, message } = isPlainObject(body) ? body : {}
    throw new ApiError(response, [error, description, message].filter(isText))
  }
  if (!is(body)) throw unacceptable(`the API of the provider did not answer with ${expected}`)
  return body
}
