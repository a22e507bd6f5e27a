import { claimsOfUser } from './identity.js'
import { type ClientCredential, OidcProvider, type OidcProfile, type OidcProviderOptions } from './oidc.js'
import { originOf, preset } from './provider-options.js'
import type { EndSessionRequest, ProviderOptions, UncheckedIdentity } from './provider.js'

/** Options of an {@link Auth0Provider}. */
export type Auth0ProviderOptions = Omit<ProviderOptions, 'clientSecret'> & ClientCredential &
Pick<
  OidcProviderOptions,
  'clientAuthentication' | 'allowInsecureRequests' | 'signOut' | 'backChannelLogout' | 'acceptUntypedLogoutTokens'
> & {
  /** The host of the tenant, such as `tenant.eu.auth0.com`, or its custom domain. */
  domain: string
}

const EXPECTED_DOMAIN = 'the tenant, or its host, such as tenant.eu.auth0.com ' +
  '(http: for a development server on this machine, with allowInsecureRequests)'

/** Signs users in with Auth0. Keeps the custom claims that rules and actions of the tenant add. */
export class Auth0Provider extends OidcProvider {
  readonly #logoutUrl: URL

  /** @throws OptionsError naming the option */
  constructor ({ domain, ...options }: Auth0ProviderOptions) {
    const origin = domainOrigin(domain, options.allowInsecureRequests)
    super(preset({
      name: 'auth0',
      discoveryUrl: `${origin}/.well-known/openid-configuration`,
      // The ID token has all claims of the scopes; userinfo repeats them and is rate limited.
      userinfo: false
    }, { clientAuthentication: 'client_secret_post' }, options))
    this.#logoutUrl = new URL('/v2/logout', origin)
    this.#logoutUrl.searchParams.set('client_id', options.clientId)
  }

  /** Tenants may announce no endpoint. The older one knows no `state`, and ignores the query. */
  override async endSessionUrl (request: EndSessionRequest): Promise<URL | null> {
    const [url, returnTo] = [new URL(this.#logoutUrl), new URL(request.redirectUri)]
    returnTo.searchParams.set('state', request.state)
    url.searchParams.set('returnTo', returnTo.href)
    return await super.endSessionUrl(request) ?? url
  }

  protected override identityOf (profile: OidcProfile, idToken: OidcProfile): UncheckedIdentity {
    const identity = super.identityOf(profile, idToken)
    return { ...identity, claims: { ...claimsOfUser(profile), ...identity.claims }, logoutHint: idToken.sid }
  }
}

/** Settings contain the domain with and without a scheme or a trailing slash, and in upper case. */
function domainOrigin (domain: unknown, allowInsecureRequests = false): string {
  const text = typeof domain === 'string' ? domain.trim() : ''
  const url = /^[a-z]+:\/\//i.test(text) ? text : `https://${text}`
  return originOf(EXPECTED_DOMAIN, allowInsecureRequests)(url, 'auth0: domain')
}
