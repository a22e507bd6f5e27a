import { isText } from '../claims.js'
import { OptionsError } from '../errors.js'
import { UUID } from '../base/values.js'
import { mustBe } from '../option-checks.js'
import { failure, unacceptable } from './failures.js'
import { type ClientCredential, OidcProvider, type OidcProfile, type OidcProviderOptions } from './oidc.js'
import { originOf, preset } from './provider-options.js'
import type { ProviderOptions, UncheckedIdentity } from './provider.js'

/** Options of a {@link MicrosoftProvider}. */
export type MicrosoftProviderOptions = Omit<ProviderOptions, 'clientSecret'> & ClientCredential &
Pick<OidcProviderOptions, 'clientAuthentication' | 'signOut'> & {
  /** `common` (default: all accounts), `organizations` (no personal ones), or a tenant's GUID. */
  tenant?: string | undefined
  /**
   * The sign-in host of a national cloud, such as `https://login.microsoftonline.us`; default
   * `https://login.microsoftonline.com`.
   */
  baseUrl?: string | undefined
}

const DEFAULT_BASE_URL = 'https://login.microsoftonline.com'

/** The tenant of all personal accounts. */
const PERSONAL_TENANT = '9188040d-6c67-4c5b-b112-36a304b66dad'

/**
 * Signs users in with Microsoft Entra ID. The claims are `sub`, `email`, `tid` (the tenant) and
 * `oid` (the user in that tenant).
 *
 * The e-mail address never counts as verified, because the administrator of any tenant can set it
 * to any value.
 */
export class MicrosoftProvider extends OidcProvider {
  /** `auth_time` is an optional claim, which the application's registration at Entra must name. */
  override readonly provesAuthTime = false
  readonly #tenant: string

  /** @throws OptionsError naming the option */
  constructor ({ tenant = 'common', baseUrl = DEFAULT_BASE_URL, ...options }: MicrosoftProviderOptions) {
    const checkedTenant = checkTenant(tenant, 'microsoft: tenant').toLowerCase()
    const authority = originOf('a sign-in host such as https://login.microsoftonline.us')(baseUrl, 'microsoft: baseUrl')
    super(preset({
      name: 'microsoft',
      // Entra has front-channel logout alone.
      backChannelLogout: false,
      discoveryUrl: `${authority}/${checkedTenant}/v2.0/.well-known/openid-configuration`,
      issuer: `${authority}/${UUID.test(checkedTenant) ? checkedTenant : '{tenantid}'}/v2.0`,
      // Userinfo has neither tid nor oid, and Microsoft recommends the ID token.
      userinfo: false,
      // The issuer of many tenants is a template.
      assertionAudience: 'token_endpoint' as const
    }, { clientAuthentication: 'client_secret_post' }, options))
    if (options.scopes?.includes('profile') === false) {
      throw new OptionsError('microsoft: scopes must contain "profile": without it the ID token has no oid')
    }
    this.#tenant = checkedTenant
  }

  protected override identityOf ({ sub, tid, oid, email, login_hint: logoutHint }: OidcProfile): UncheckedIdentity {
    if (typeof tid !== 'string' || !UUID.test(tid)) throw unacceptable('the ID token has no tid that is a GUID')
    if (UUID.test(this.#tenant) && tid !== this.#tenant) throw unacceptable('the ID token belongs to another tenant')
    if (this.#tenant === 'organizations' && tid === PERSONAL_TENANT) {
      throw failure('not_allowed', 'the ID token belongs to a personal account', { isEveryday: true })
    }
    if (!isText(oid)) throw unacceptable('the ID token has no oid')
    // tid and oid identify the user even after a new app registration, which changes sub.
    // Without the optional claim login_hint, Entra asks which account to sign out.
    return { subject: `${tid}.${oid}`, claims: { sub, tid, oid, email }, emailVerified: false, logoutHint }
  }
}

const checkTenant = mustBe('"common", "organizations" or the GUID of a tenant', (value): value is string => {
  const name = typeof value === 'string' ? value.toLowerCase() : ''
  return name === 'common' || name === 'organizations' || UUID.test(name)
})
