import { Once } from '../base/concurrency.js'
import { secureUrl } from '../core/fetching.js'
import { boolean, callable, oneOf, optional, text } from '../option-checks.js'
import type { OAuth2Flow, ProviderApi } from './oauth2-flow.js'
import type { OidcProviderOptions } from './oidc.js'
import type {
  Authentication, AuthorizationRequest, AuthorizationResponse, ClientAuthentication, ExternalProvider, ProviderOptions,
  UncheckedIdentity
} from './provider.js'
import { checkedProviderOptions } from './provider-options.js'

export type { ProviderApi } from './oauth2-flow.js'

/** Options of an {@link OAuth2Provider}. */
export interface OAuth2ProviderOptions
  extends ProviderOptions, Pick<OidcProviderOptions, 'name' | 'withoutPkce' | 'allowInsecureRequests'> {
  /** The endpoint that the browser is redirected to (RFC 6749 section 3.1). */
  authorizationEndpoint: string
  /** The endpoint that exchanges a code for an access token (RFC 6749 section 3.2). */
  tokenEndpoint: string
  /** The `iss` of responses (RFC 9207), if any; default the origin of `authorizationEndpoint`. */
  issuer?: string | undefined
  /** Rewrites a response of the provider that does not conform to RFC 6749. */
  conform?: ((response: Response) => Response | Promise<Response>) | undefined
  /** The client authentication method at the token endpoint; default `client_secret_post`. */
  clientAuthentication?: ClientAuthentication | undefined
}

/**
 * Signs users in with a provider of plain OAuth 2.0: the authorization code flow with PKCE and
 * state, then a request to the provider's API, which a subclass makes in `identify`.
 */
export abstract class OAuth2Provider implements ExternalProvider {
  readonly name: string
  readonly label: string | undefined
  readonly icon: string | undefined
  readonly #flow: Once<OAuth2Flow>

  /** @throws OptionsError naming the option */
  constructor (options: OAuth2ProviderOptions) {
    const httpsUrl = secureUrl(options.allowInsecureRequests === true)
    const { authorizationEndpoint, tokenEndpoint, issuer, ...checked } = checkedProviderOptions(options, [], {
      allowInsecureRequests: optional(boolean, false),
      authorizationEndpoint: httpsUrl,
      tokenEndpoint: httpsUrl,
      issuer: optional(text),
      conform: optional(callable<(response: Response) => Response | Promise<Response>>()),
      clientAuthentication: optional(oneOf('client_secret_basic', 'client_secret_post'), 'client_secret_post'),
      withoutPkce: optional(boolean, false)
    })
    this.name = checked.name
    this.label = checked.label
    this.icon = checked.icon
    const server = {
      issuer: issuer ?? new URL(authorizationEndpoint).origin,
      authorization_endpoint: authorizationEndpoint,
      token_endpoint: tokenEndpoint
    }
    // oauth4webapi is loaded with the first sign-in, to keep the start of the application fast.
    this.#flow = new Once(async () => {
      const { OAuth2Flow } = await import('./oauth2-flow.js')
      return new OAuth2Flow({ ...checked, server, identify: (...call) => this.identify(...call) })
    })
  }

  /**
   * Requests the user of an access token from the provider's API.
   *
   * @throws AuthError to refuse the user: `not_allowed`, or `provider_error`
   */
  protected abstract identify (api: ProviderApi, accessToken: string): Promise<UncheckedIdentity>

  async authorizationUrl (request: AuthorizationRequest): Promise<URL> {
    return (await this.#flow.done()).authorizationUrl(request)
  }

  async authenticate (response: AuthorizationResponse): Promise<Authentication> {
    return (await this.#flow.done()).authenticate(response)
  }
}
