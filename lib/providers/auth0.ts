import { OidcProvider, type OidcProfile, type OidcProviderOptions } from './oidc.js'
import { checkedOrigin, withFixed } from './provider-options.js'
import type { ProviderOptions, UncheckedIdentity } from './provider.js'

/** What {@link Auth0Provider} takes. */
export interface Auth0ProviderOptions extends ProviderOptions, Pick<OidcProviderOptions, 'clientAuthentication' | 'allowInsecureRequests'> {
  /** The host of the tenant, such as `tenant.eu.auth0.com`, or its custom domain. */
  domain: string
}

/** Claims about the ID token itself, not about the person. */
const PROTOCOL_CLAIMS: ReadonlySet<string> = new Set(['iss', 'aud', 'exp', 'iat', 'nbf', 'nonce', 'azp', 'at_hash', 'c_hash', 's_hash', 'sid', 'jti', 'auth_time', 'acr', 'amr'])

/** Auth0; claims also those that rules and actions of the tenant add, under their names. */
export class Auth0Provider extends OidcProvider {
  /**
   * @param options `clientId`, `clientSecret` and `domain` of the application at Auth0
   * @throws OptionsError naming the option
   */
  constructor ({ domain, clientAuthentication = 'client_secret_post', ...options }: Auth0ProviderOptions) {
    super(withFixed({
      name: 'auth0',
      discoveryUrl: `${originOf(domain, options.allowInsecureRequests)}/.well-known/openid-configuration`,
      // What the scopes ask for is in the ID token; userinfo is rate limited and says the same.
      userinfo: false
    }, { ...options, clientAuthentication }))
  }

  protected override identityOf (profile: OidcProfile, idToken: OidcProfile): UncheckedIdentity {
    const identity = super.identityOf(profile, idToken)
    const aboutPerson = Object.entries(profile).filter(([name]) => !PROTOCOL_CLAIMS.has(name))
    return { ...identity, claims: { ...Object.fromEntries(aboutPerson), ...identity.claims } }
  }
}

/** People write the domain with and without a scheme, with a slash, in upper case. */
function originOf (domain: unknown, allowInsecureRequests = false): string {
  const text = typeof domain === 'string' ? domain.trim() : ''
  const url = /^[a-z]+:\/\//i.test(text) ? text : `https://${text}`
  return checkedOrigin(url, 'auth0: domain', 'the tenant, or its host, such as tenant.eu.auth0.com (http: for a development server on this machine, with allowInsecureRequests)', allowInsecureRequests)
}
