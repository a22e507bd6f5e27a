import { isText } from '../claims.js'
import { OptionsError } from '../errors.js'
import { matching, optional } from '../option-checks.js'
import { failure } from './failures.js'
import { OidcProvider, type OidcProfile, type OidcProviderOptions } from './oidc.js'
import { preset } from './provider-options.js'
import type { ProviderOptions, UncheckedIdentity } from './provider.js'

/** Options of a {@link GoogleProvider}. */
export interface GoogleProviderOptions extends ProviderOptions, Pick<OidcProviderOptions, 'clientAuthentication'> {
  /** Admits only accounts of this Workspace domain, such as `example.com`; `*`: of any domain. */
  hostedDomain?: string | undefined
}

const checkDomain = optional(matching('a domain such as example.com, or *', /^[^\s@/]+$/))

/** Signs users in with Google accounts. Adds the claim `hd`, the domain of a Workspace account. */
export class GoogleProvider extends OidcProvider {
  /** Google issues no `auth_time` for `max_age`. */
  override readonly provesAuthTime = false
  readonly #hostedDomain: string | undefined

  /** @throws OptionsError naming the option */
  constructor ({ hostedDomain, ...options }: GoogleProviderOptions) {
    checkDomain(hostedDomain, 'google: hostedDomain')
    const { authorizationParams } = options
    if (authorizationParams !== undefined && 'hd' in authorizationParams) {
      throw new OptionsError(
        'google: authorizationParams must not contain "hd", which would only be a hint; set hostedDomain')
    }
    super(preset({
      name: 'google',
      signOut: false,
      backChannelLogout: false,
      discoveryUrl: 'https://accounts.google.com/.well-known/openid-configuration'
    }, { clientAuthentication: 'client_secret_post' }, {
      ...options,
      ...(hostedDomain !== undefined && { authorizationParams: { ...authorizationParams, hd: hostedDomain } })
    }))
    this.#hostedDomain = hostedDomain?.toLowerCase()
  }

  protected override identityOf (profile: OidcProfile, idToken: OidcProfile): UncheckedIdentity {
    const identity = super.identityOf(profile, idToken)
    const hd = isText(idToken.hd) ? idToken.hd : undefined
    // The parameter hd only filters Google's list of accounts, and the user can change it.
    if (this.#hostedDomain !== undefined && !isAdmitted(hd, this.#hostedDomain)) {
      const message = `the account does not belong to the Workspace domain ${this.#hostedDomain}`
      throw failure('not_allowed', message, { isEveryday: true })
    }
    return { ...identity, claims: { ...identity.claims, hd } }
  }
}

function isAdmitted (hd: string | undefined, hostedDomain: string): boolean {
  return hd !== undefined && (hostedDomain === '*' || hd.toLowerCase() === hostedDomain)
}
