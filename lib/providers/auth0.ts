import { OptionsError } from '../errors.js'
import { OidcProvider, type OidcProfile } from './oidc.js'
import type { ProviderOptions, UncheckedIdentity } from './provider.js'

export interface Auth0ProviderOptions extends ProviderOptions {
  /** The host of the tenant, such as `tenant.eu.auth0.com`, or its custom domain. */
  domain: string
  /** Permits plain http, for development servers on this machine only; default false. */
  allowInsecureRequests?: boolean
}

/** Claims about the ID token itself, not about the person. */
const PROTOCOL_CLAIMS: ReadonlySet<string> = new Set(['iss', 'aud', 'exp', 'iat', 'nbf', 'nonce', 'azp', 'at_hash', 'c_hash', 's_hash', 'sid', 'jti', 'auth_time', 'acr', 'amr'])

/** Auth0; claims also those that rules and actions of the tenant add, under their names. */
export class Auth0Provider extends OidcProvider {
  /** @throws OptionsError naming the option */
  constructor ({ domain, ...options }: Auth0ProviderOptions) {
    super({
      name: 'auth0',
      discoveryUrl: `${originOf(domain)}/.well-known/openid-configuration`,
      // What the scopes ask for is in the ID token; userinfo is rate limited and says the same.
      userinfo: false,
      ...options
    })
  }

  protected override identityOf (profile: OidcProfile): UncheckedIdentity {
    const identity = super.identityOf(profile)
    const told = Object.entries(profile).filter(([name]) => !PROTOCOL_CLAIMS.has(name))
    return { ...identity, claims: { ...Object.fromEntries(told), ...identity.claims } }
  }
}

/** People write the domain with and without a scheme, with a slash, in upper case. */
function originOf (domain: unknown): string {
  const text = typeof domain === 'string' ? domain.trim() : ''
  const address = /^[a-z]+:\/\//i.test(text) ? text : `https://${text}`
  const url = URL.canParse(address) ? new URL(address) : null
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.href !== `${url.origin}/`) {
    throw new OptionsError('auth0: domain must be the host of the tenant, such as tenant.eu.auth0.com')
  }
  return url.origin
}
