import { Once } from '../base/once.js'
import type { OAuth2Flow } from './oauth2-flow.js'
import type { Authentication, AuthorizationRequest, AuthorizationResponse, ClientAuthentication, ExternalProvider, ProviderOptions, UncheckedIdentity } from './provider.js'
import { assertClientAuthentication, assertSecureUrl, checkedProviderOptions } from './provider-options.js'

/** What {@link OAuth2Provider} takes. */
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
  /** How the client authenticates at the token endpoint; default `client_secret_post`. */
  clientAuthentication?: ClientAuthentication
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

/**
 * A provider with plain OAuth 2.0: authorization code flow with PKCE and state, and an API that tells who the access token speaks for.
 * A subclass says where that is, and how its answer becomes an identity.
 */
export abstract class OAuth2Provider implements ExternalProvider {
  readonly name: string
  readonly #flow: Once<OAuth2Flow>

  /**
   * Asks nothing of the provider yet.
   *
   * @throws OptionsError naming the option
   */
  constructor (options: OAuth2ProviderOptions) {
    const { authorizationEndpoint, tokenEndpoint, issuer, conform, ...others } = options
    const { clientAuthentication = 'client_secret_post', allowInsecureRequests = false, ...common } = others
    const checked = checkedProviderOptions(common, [])
    this.name = checked.name
    assertSecureUrl(authorizationEndpoint, allowInsecureRequests, `${this.name}: authorizationEndpoint`)
    assertSecureUrl(tokenEndpoint, allowInsecureRequests, `${this.name}: tokenEndpoint`)
    assertClientAuthentication(clientAuthentication, this.name)
    const server = {
      issuer: issuer ?? new URL(authorizationEndpoint).origin,
      authorization_endpoint: authorizationEndpoint,
      token_endpoint: tokenEndpoint
    }
    // The protocol is loaded with the first sign-in, not with the application.
    this.#flow = new Once(async () => {
      const { OAuth2Flow } = await import('./oauth2-flow.js')
      const transport = { allowInsecureRequests, ...(conform !== undefined && { conform }) }
      return new OAuth2Flow({ ...checked, ...transport, clientAuthentication, server })
    })
  }

  /**
   * Asks the provider's API who the access token speaks for.
   *
   * @throws AuthError to refuse the person: `access_denied`, or `provider_error` for an answer that cannot be accepted
   */
  protected abstract identify (api: ProviderApi, accessToken: string): Promise<UncheckedIdentity>

  async authorizationUrl (request: AuthorizationRequest): Promise<URL> {
    const flow = await this.#flow.done()
    return flow.authorizationUrl(request)
  }

  async authenticate (response: AuthorizationResponse): Promise<Authentication> {
    const flow = await this.#flow.done()
    return flow.authenticate(response, (api, accessToken) => this.identify(api, accessToken))
  }
}
