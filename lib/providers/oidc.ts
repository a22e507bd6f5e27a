import { isVerified } from '../claims.js'
import { OptionsError } from '../errors.js'
import { Once } from '../once.js'
import type { DiscoveryUrls } from './discovery.js'
import type { OidcFlow } from './oidc-flow.js'
import type { Authentication, AuthorizationRequest, AuthorizationResponse, ExternalProvider, ProviderOptions, UncheckedIdentity } from './provider.js'
import { assertSecureUrl, checkedProviderOptions } from './provider-options.js'

/** What {@link OidcProvider} takes. */
export interface OidcProviderOptions extends ProviderOptions {
  /** The URL segment of the provider's routes. */
  name: string
  /** The URL of the provider's `/.well-known/openid-configuration` document. */
  discoveryUrl: string
  /**
   * The issuer that the document must name, where it is not what precedes `/.well-known/` in its URL. `{tenantid}` in it stands for the
   * `tid` of each ID token, as in the documents that Microsoft Entra has for many tenants.
   */
  issuer?: string
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
    const { discoveryUrl, issuer, userinfo = true, allowInsecureRequests = false, ...common } = options
    const checked = checkedProviderOptions(common, ['openid', 'email', 'profile'])
    const { name, scopes } = checked
    if (!scopes.includes('openid')) throw new OptionsError(`${name}: scopes must contain "openid"`)
    if (typeof userinfo !== 'boolean') throw new OptionsError(`${name}: userinfo must be true or false`)
    if (typeof allowInsecureRequests !== 'boolean') throw new OptionsError(`${name}: allowInsecureRequests must be true or false`)

    const discovery = discoveryUrls(name, discoveryUrl, issuer, allowInsecureRequests)

    this.name = name
    // The protocol is loaded with the first sign-in, not with the application.
    this.#flow = new Once(async () => {
      const { OidcFlow } = await import('./oidc-flow.js')
      return new OidcFlow({ ...checked, discovery, userinfo, allowInsecureRequests })
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

/** @throws OptionsError naming the option */
function discoveryUrls (name: string, discoveryUrl: string, issuer: string | undefined, allowInsecureRequests: boolean): DiscoveryUrls {
  assertSecureUrl(discoveryUrl, allowInsecureRequests, `${name}: discoveryUrl`)
  const target = new URL(discoveryUrl)
  if (!WELL_KNOWN.test(target.pathname)) throw new OptionsError(`${name}: discoveryUrl must end in /.well-known/openid-configuration`)
  target.pathname = target.pathname.replace(WELL_KNOWN, '')
  if (issuer !== undefined) assertSecureUrl(issuer, allowInsecureRequests, `${name}: issuer`)
  return { target, issuer: issuer === undefined ? withoutQuery(target) : new URL(issuer) }
}

/** The issuer is what precedes the well-known path (OpenID Connect Discovery 1.0 section 4). */
function withoutQuery (url: URL): URL {
  const issuer = new URL(url)
  issuer.search = ''
  return issuer
}
