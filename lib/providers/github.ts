import { isPlainObject, isText } from '../claims.js'
import { OptionsError } from '../errors.js'
import { unacceptable } from './failures.js'
import { textClaims } from './identity.js'
import { OAuth2Provider, type ProviderApi } from './oauth2.js'
import type { ProviderOptions, UncheckedIdentity } from './provider.js'

export interface GitHubProviderOptions extends ProviderOptions {
  /** The URL of an Enterprise Server, or of an enterprise with data residency (`https://octocorp.ghe.com`); default `https://github.com`. */
  baseUrl?: string
}

/** GitHub; claims also `login`. The e-mail address is the primary one, if GitHub has verified it. */
export class GitHubProvider extends OAuth2Provider {
  readonly #api: string

  /** @throws OptionsError naming the option */
  constructor ({ baseUrl = 'https://github.com', ...options }: GitHubProviderOptions) {
    const origin = originOf(baseUrl)
    super({
      name: 'github',
      authorizationEndpoint: `${origin}/login/oauth/authorize`,
      tokenEndpoint: `${origin}/login/oauth/access_token`,
      issuer: `${origin}/login/oauth`,
      conformed,
      ...options,
      scopes: options.scopes ?? ['read:user', 'user:email']
    })
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

function originOf (baseUrl: unknown): string {
  const url = typeof baseUrl === 'string' && URL.canParse(baseUrl) ? new URL(baseUrl) : null
  if (url?.protocol === 'https:' && url.href === `${url.origin}/`) return url.origin
  throw new OptionsError('github: baseUrl must be the https: URL of a GitHub Enterprise Server, without a path, such as https://github.example.com')
}

function apiOf (origin: string): string {
  const { host } = new URL(origin)
  return host === 'github.com' || host.endsWith('.ghe.com') ? `https://api.${host}` : `${origin}/api/v3`
}

/** GitHub answers a token request that it refuses with status 200; RFC 6749 section 5.2 says 400. */
async function conformed (response: Response): Promise<Response> {
  if (response.status !== 200) return response
  const body = await response.text()
  return new Response(body, { status: saysError(body) ? 400 : 200, headers: response.headers })
}

function saysError (body: string): boolean {
  try {
    const answer: unknown = JSON.parse(body)
    return isPlainObject(answer) && isText(answer.error)
  } catch {
    return false
  }
}
