import { isText } from '../claims.js'
import { AuthError, OptionsError } from '../errors.js'
import { ProviderFailure } from './failures.js'
import { OidcProvider, type OidcProfile } from './oidc.js'
import type { ProviderOptions, UncheckedIdentity } from './provider.js'

export interface GoogleProviderOptions extends ProviderOptions {
  /** Admits only accounts of this Google Workspace domain, such as `example.com`; `*` admits those of any. */
  hostedDomain?: string
}

/** Google, with personal and Workspace accounts; claims also `hd`, the Workspace domain of the account. */
export class GoogleProvider extends OidcProvider {
  readonly #hostedDomain: string | undefined

  /** @throws OptionsError naming the option */
  constructor ({ hostedDomain, ...options }: GoogleProviderOptions) {
    if (hostedDomain !== undefined && !isText(hostedDomain)) throw new OptionsError('google: hostedDomain must be a domain such as example.com, or *')
    super({
      name: 'google',
      discoveryUrl: 'https://accounts.google.com/.well-known/openid-configuration',
      ...options,
      ...(hostedDomain !== undefined && { authorizationParams: { ...options.authorizationParams, hd: hostedDomain } })
    })
    this.#hostedDomain = hostedDomain?.toLowerCase()
  }

  protected override identityOf (profile: OidcProfile): UncheckedIdentity {
    const identity = super.identityOf(profile)
    const hd = isText(profile.hd) ? profile.hd : undefined
    // The parameter hd only filters Google's list of accounts, and anyone can change it; the claim is signed.
    if (this.#hostedDomain !== undefined && !isAdmitted(hd, this.#hostedDomain)) {
      throw new AuthError('access_denied', { cause: new ProviderFailure(`the account is not one of the Workspace domain ${this.#hostedDomain}`, { isEveryday: true }) })
    }
    return { ...identity, claims: { ...identity.claims, hd } }
  }
}

function isAdmitted (hd: string | undefined, hostedDomain: string): boolean {
  return hd !== undefined && (hostedDomain === '*' || hd.toLowerCase() === hostedDomain)
}
