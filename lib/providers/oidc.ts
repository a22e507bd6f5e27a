import { isVerified } from '../claims.js'
import { OptionsError } from '../errors.js'
import { Once } from '../base/once.js'
import type { DiscoveryOptions } from './discovery.js'
import type { OidcFlow } from './oidc-flow.js'
import type { Authentication, AuthorizationRequest, AuthorizationResponse, ClientAuthentication, ExternalProvider, ProviderOptions, UncheckedIdentity } from './provider.js'
import { assertClientAuthentication, assertSecureUrl, checkedProviderOptions } from './provider-options.js'

/** What {@link OidcProvider} takes. */
export interface OidcProviderOptions extends ProviderOptions {
  /** The URL segment of the provider's routes. */
  name: string
  /**
   * The URL of the provider's `/.well-known/openid-configuration` document, requested exactly as
   * given, with its query and a slash at its end.
   */
  discoveryUrl: string
  /**
   * The issuer that the document must name, where it is not what precedes `/.well-known/` in its URL,
   * with or without a slash at its end. `{tenantid}` in it stands for the `tid` of each ID token, as in
   * the documents that Microsoft Entra has for many tenants.
   */
  issuer?: string
  /**
   * How the client is registered to authenticate at the token endpoint. Default: the method that the
   * metadata leave as the only one, else `client_secret_basic`, with one retry by `client_secret_post`
   * after `invalid_client`; the method that worked is remembered.
   */
  clientAuthentication?: ClientAuthentication
  /** Whether to ask the userinfo endpoint for what the scopes ask for and the ID token lacks; default true. */
  userinfo?: boolean
  /** Permits plain http, for development servers on this machine only; default false. */
  allowInsecureRequests?: boolean
}

/** What is known of a person: the claims of the verified ID token, and what userinfo adds to them. */
export type OidcProfile = Record<string, unknown> & {
  /** The subject of the ID token; userinfo of another one is refused (OpenID Connect Core 5.3.2). */
  sub: string
}

/**
 * Any provider that publishes a discovery document (OpenID Connect Discovery 1.0): authorization code flow with PKCE, state and nonce.
 *
 * @example
 * ```ts
 * new OidcProvider({ name: 'keycloak', discoveryUrl: 'https://id.example/realms/main/.well-known/openid-configuration', clientId, clientSecret })
 * ```
 */
export class OidcProvider implements ExternalProvider {
  readonly name: string
  readonly #flow: Once<OidcFlow>

  /**
   * Asks nothing of the provider yet: the discovery document is fetched by the first sign-in.
   *
   * @throws OptionsError naming the option
   */
  constructor (options: OidcProviderOptions) {
    const { discoveryUrl, issuer, clientAuthentication, ...others } = options
    const { userinfo = true, allowInsecureRequests = false, ...common } = others
    const checked = checkedProviderOptions(common, ['openid', 'email', 'profile'])
    const { name, scopes, authorizationParams: { max_age: maxAge } } = checked
    if (!scopes.includes('openid')) throw new OptionsError(`${name}: scopes must contain "openid"`)
    if (typeof userinfo !== 'boolean') throw new OptionsError(`${name}: userinfo must be true or false`)
    if (typeof allowInsecureRequests !== 'boolean') throw new OptionsError(`${name}: allowInsecureRequests must be true or false`)

    if (clientAuthentication !== undefined) assertClientAuthentication(clientAuthentication, name)
    if (maxAge !== undefined && !/^\d{1,10}$/.test(maxAge)) {
      throw new OptionsError(`${name}: max_age in authorizationParams must be a whole number of seconds, such as "3600"`)
    }
    assertSecureUrl(discoveryUrl, allowInsecureRequests, `${name}: discoveryUrl`)
    if (issuer !== undefined) assertSecureUrl(issuer, allowInsecureRequests, `${name}: issuer`)
    const url = new URL(discoveryUrl)
    if (!WELL_KNOWN.test(url.pathname)) {
      throw new OptionsError(`${name}: discoveryUrl must end in /.well-known/openid-configuration`)
    }
    const discovery: DiscoveryOptions = { url, issuers: issuer === undefined ? issuersOf(url) : [new URL(issuer)] }

    this.name = name
    // The protocol is loaded with the first sign-in, not with the application.
    this.#flow = new Once(async () => {
      const { OidcFlow } = await import('./oidc-flow.js')
      return new OidcFlow({ ...checked, discovery, userinfo, clientAuthentication, allowInsecureRequests })
    })
  }

  async authorizationUrl (request: AuthorizationRequest): Promise<URL> {
    const flow = await this.#flow.done()
    return flow.authorizationUrl(request)
  }

  async authenticate (response: AuthorizationResponse): Promise<Authentication> {
    const flow = await this.#flow.done()
    return flow.authenticate(response, (profile, idToken) => this.identityOf(profile, idToken))
  }

  /**
   * Who the claims of ID token and userinfo describe. Override it for a provider with claims of its own.
   *
   * @param profile the claims of the verified ID token, and what userinfo adds to them
   * @param _idToken what the provider signed, for claims that must not come from elsewhere
   * @throws AuthError to refuse the person: `access_denied`, or `provider_error` for claims that cannot be accepted
   */
  protected identityOf ({ sub, email, email_verified: emailVerified, name, picture }: OidcProfile, _idToken: OidcProfile): UncheckedIdentity {
    return { subject: sub, claims: { email, email_verified: emailVerified, name, picture }, emailVerified: isVerified(emailVerified) }
  }
}

const WELL_KNOWN = /\/\.well-known\/openid-configuration\/?$/

/**
 * The issuer is what precedes the well-known path (OpenID Connect Discovery 1.0 section 4), with or
 * without a slash: section 4.1 removes the one at the end of an issuer with a path.
 */
function issuersOf (url: URL): [URL, URL] {
  const path = url.pathname.replace(WELL_KNOWN, '').replace(/\/$/, '')
  const at = (pathname: string): URL => Object.assign(new URL(url), { pathname, search: '' })
  return [at(path), at(`${path}/`)]
}
