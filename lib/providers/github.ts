import { isPlainObject, isText } from '../claims.js'
import { unacceptable } from './failures.js'
import { textClaims } from './identity.js'
import { OAuth2Provider, type ProviderApi } from './oauth2.js'
import { parsedJson } from './parsed-json.js'
import { checkedOrigin, withFixed } from './provider-options.js'
import type { ProviderOptions, UncheckedIdentity } from './provider.js'

/** What {@link GitHubProvider} takes. */
export interface GitHubProviderOptions extends ProviderOptions {
  /** The URL of an Enterprise Server, or of an enterprise with data residency (`https://octocorp.ghe.com`); default `https://github.com`. */
  baseUrl?: string
}

/** GitHub; claims also `login`. The e-mail address is the primary one, if GitHub has verified it. */
export class GitHubProvider extends OAuth2Provider {
  readonly #api: string

  /**
   * @param options `clientId` and `clientSecret` of the OAuth app, and perhaps `baseUrl`
   * @throws OptionsError naming the option
   */
  constructor ({ baseUrl = 'https://github.com', ...options }: GitHubProviderOptions) {
    const origin = checkedOrigin(baseUrl, 'github: baseUrl', 'a GitHub Enterprise Server such as https://github.example.com')
    super(withFixed({
      name: 'github',
      authorizationEndpoint: `${origin}/login/oauth/authorize`,
      tokenEndpoint: `${origin}/login/oauth/access_token`,
      issuer: `${origin}/login/oauth`,
      conform
    }, {
      ...options,
      scopes: options.scopes ?? ['read:user', 'user:email']
    }))
    this.#api = apiOf(origin)
  }

  protected override async identify (api: ProviderApi): Promise<UncheckedIdentity> {
    const headers = { accept: 'application/vnd.github+json' }
    const { id, login, name, avatar_url: picture } = await api.get(`${this.#api}/user`, headers)
    // A login can be given up and taken over by somebody else; the id stays.
    if (!Number.isSafeInteger(id) || Number(id) < 1) throw unacceptable('the id of the user is not a number as GitHub has them')
    // The address of the public profile is whatever the person typed there.
    const email = primaryEmail(await api.getList(`${this.#api}/user/emails?per_page=100`, headers) ?? [])
    return { subject: String(id), claims: textClaims({ login, name, email, picture }), emailVerified: email !== undefined }
  }
}

function primaryEmail (emails: unknown[]): unknown {
  return emails.filter(isPlainObject).find(({ primary, verified, email }) => primary === true && verified === true && isText(email))?.email
}

function apiOf (origin: string): string {
  const { host } = new URL(origin)
  return host === 'github.com' || host.endsWith('.ghe.com') ? `https://api.${host}` : `${origin}/api/v3`
}

/** GitHub says of too many requests 403 as well as 429, not always with a header that tells so. */
async function conform (answer: Response): Promise<Response> {
  const { status, headers } = answer
  if (status !== 403) return answer
  const text = await answer.text()
  const body = parsedJson(text)
  const isRateLimit = headers.has('retry-after') || headers.get('x-ratelimit-remaining') === '0' ||
    (isPlainObject(body) && /rate limit|abuse/i.test(String(body.message)))
  return new Response(text, { status: isRateLimit ? 429 : 403, headers })
}
