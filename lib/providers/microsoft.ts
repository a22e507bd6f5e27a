import { isText } from '../claims.js'
import { OptionsError } from '../errors.js'
import { UUID } from '../base/uuid.js'
import { unacceptable } from './failures.js'
import { OidcProvider, type OidcProfile, type OidcProviderOptions } from './oidc.js'
import { checkedOrigin, withFixed } from './provider-options.js'
import type { ProviderOptions, UncheckedIdentity } from './provider.js'

/** What {@link MicrosoftProvider} takes. */
export interface MicrosoftProviderOptions extends ProviderOptions, Pick<OidcProviderOptions, 'clientAuthentication'> {
  /** `common` (work, school and personal accounts; the default), `organizations` (no personal accounts), or the GUID of one tenant. */
  tenant?: string
  /** The sign-in host of a national cloud, such as `https://login.microsoftonline.us`; default `https://login.microsoftonline.com`. */
  baseUrl?: string
}

/** The tenant of all personal accounts. */
const PERSONAL_TENANT = '9188040d-6c67-4c5b-b112-36a304b66dad'

/**
 * Microsoft Entra ID; claims `sub`, `email`, `tid` (tenant) and `oid` (the person in that tenant).
 *
 * The e-mail address is never a verified one: the administrator of any tenant can write what he likes into it.
 */
export class MicrosoftProvider extends OidcProvider {
  readonly #tenant: string

  /**
   * @param options `clientId` and `clientSecret` of the app registration, and perhaps `tenant`
   * @throws OptionsError naming the option
   */
  constructor ({ tenant = 'common', baseUrl = 'https://login.microsoftonline.com', ...others }: MicrosoftProviderOptions) {
    const { clientAuthentication = 'client_secret_post', ...options } = others
    const checkedTenant = tenantOf(tenant)
    const authority = checkedOrigin(baseUrl, 'microsoft: baseUrl', 'a sign-in host such as https://login.microsoftonline.us')
    super(withFixed({
      name: 'microsoft',
      discoveryUrl: `${authority}/${checkedTenant}/v2.0/.well-known/openid-configuration`,
      issuer: `${authority}/${UUID.test(checkedTenant) ? checkedTenant : '{tenantid}'}/v2.0`,
      // Userinfo knows neither tid nor oid, and Microsoft says to use the ID token.
      userinfo: false
    }, { ...options, clientAuthentication }))
    if (options.scopes?.includes('profile') === false) throw new OptionsError('microsoft: scopes must contain "profile": without it there is no oid')
    this.#tenant = checkedTenant
  }

  protected override identityOf ({ sub, tid, oid, email }: OidcProfile): UncheckedIdentity {
    if (typeof tid !== 'string' || !UUID.test(tid)) throw unacceptable('the ID token has no tid that is a GUID')
    if (UUID.test(this.#tenant) && tid !== this.#tenant) throw unacceptable('the ID token is one of another tenant')
    if (this.#tenant === 'organizations' && tid === PERSONAL_TENANT) throw unacceptable('the ID token is one of a personal account')
    if (!isText(oid)) throw unacceptable('the ID token has no oid')
    // Both together stay the same when the application is registered anew, and differ for the tenants of one person; sub does neither.
    return { subject: `${tid}.${oid}`, claims: { sub, tid, oid, email }, emailVerified: false }
  }
}

function tenantOf (tenant: unknown): string {
  const name = typeof tenant === 'string' ? tenant.toLowerCase() : ''
  if (name === 'common' || name === 'organizations' || UUID.test(name)) return name
  throw new OptionsError('microsoft: tenant must be "common", "organizations" or the GUID of a tenant')
}
