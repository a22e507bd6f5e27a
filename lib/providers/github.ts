import { isPlainObject, isText } from '../claims.js'
import { unacceptable } from './failures.js'
import { parsedJson, textClaims } from './identity.js'
import { OAuth2Provider, type ProviderApi } from './oauth2.js'
import { originOf, preset } from './provider-options.js'
import type { ProviderOptions, UncheckedIdentity } from './provider.js'

/** Options of a {@link GitHubProvider}. */
export interface GitHubProviderOptions extends ProviderOptions {
  /**
   * The URL of a GitHub Enterprise Server, or of an enterprise with data residency such as
   * `https://octocorp.ghe.com`; default `https://github.com`.
   */
  baseUrl?: string | undefined
}

/** Signs users in with GitHub. Adds `login`. The e-mail address is the primary one, if verified. */
export class GitHubProvider extends OAuth2Provider {
  readonly #api: string

  /** @throws OptionsError naming the option */
  constructor ({ baseUrl = 'https://github.com', ...options }: GitHubProviderOptions) {
    const origin = originOf('a GitHub Enterprise Server such as https://github.example.com')(baseUrl, 'github: baseUrl')
    super(preset({
      name: 'github',
      authorizationEndpoint: `${origin}/login/oauth/authorize`,
      tokenEndpoint: `${origin}/login/oauth/access_token`,
      issuer: `${origin}/login/oauth`,
      conform
    }, { scopes: ['read:user', 'user:email'] }, options))
    this.#api = apiOf(origin)
  }

  protected override async identify (api: ProviderApi): Promise<UncheckedIdentity> {
    const headers = { accept: 'application/vnd.github+json' }
    const { id, login, name, avatar_url: picture } = await api.get(`${this.#api}/user`, headers)
    // The id, because a user can release a login and another user can take it.
    if (!Number.isSafeInteger(id) || Number(id) < 1) throw unacceptable('the id of the user is not a positive integer')
    // From the list of addresses, because the one in the public profile is unverified.
    const email = primaryEmail(await api.getList(`${this.#api}/user/emails?per_page=100`, headers) ?? [])
    const claims = textClaims({ login, name, email, picture })
    return { subject: String(id), claims, emailVerified: email !== undefined }
  }
}

function primaryEmail (emails: unknown[]): unknown {
  const primary = emails.filter(isPlainObject).find(({ primary, verified, email }) =>
    primary === true && verified === true && isText(email))
  return primary?.email
}

function apiOf (origin: string): string {
  const { host } = new URL(origin)
  return host === 'github.com' || host.endsWith('.ghe.com') ? `https://api.${host}` : `${origin}/api/v3`
}

/** Gives rate limits the status 429: GitHub also sends 403, not always with a header for it. */
async function conform (response: Response): Promise<Response> {
  const { status, headers } = response
  if (status !== 403) return response
  const text = await response.text()
  const body = parsedJson(text)
  const isRateLimit = headers.has('retry-after') || headers.get('x-ratelimit-remaining') === '0' ||
    (isPlainObject(body) && /rate limit|abuse/i.test(String(body.message)))
  return new Response(text, { status: isRateLimit ? 429 : 403, headers })
}
