import { createHmac } from 'node:crypto'
import { isPlainObject } from '../claims.js'
import { matching } from '../option-checks.js'
import { OAuth2Provider, type ProviderApi } from './oauth2.js'
import { parsedJson } from './identity.js'
import { preset } from './provider-options.js'
import type { Authentication, AuthorizationResponse, ProviderOptions, UncheckedIdentity } from './provider.js'

/** Options of a {@link FacebookProvider}. */
export interface FacebookProviderOptions extends ProviderOptions {
  /** The version of the Graph API; default `v24.0`. */
  graphVersion?: string | undefined
}

const FIELDS = 'id,name,email,picture.width(200).height(200)'

/**
 * Signs users in with Facebook Login. The e-mail address is absent unless the user granted it, and
 * never counts as verified, because Facebook does not say whether it is.
 */
export class FacebookProvider extends OAuth2Provider {
  readonly #me: string
  readonly #clientSecret: string

  /** @throws OptionsError naming the option */
  constructor ({ graphVersion = 'v24.0', ...options }: FacebookProviderOptions) {
    matching('a version such as v24.0', /^v\d{1,3}\.\d$/)(graphVersion, 'facebook: graphVersion')
    super(preset({
      name: 'facebook',
      authorizationEndpoint: `https://www.facebook.com/${graphVersion}/dialog/oauth`,
      tokenEndpoint: `https://graph.facebook.com/${graphVersion}/oauth/access_token`,
      conform
    }, { scopes: ['email', 'public_profile'] }, options))
    this.#me = `https://graph.facebook.com/${graphVersion}/me`
    this.#clientSecret = options.clientSecret
  }

  override async authenticate (response: AuthorizationResponse): Promise<Authentication> {
    return super.authenticate({ ...response, parameters: withErrorParameter(response.parameters) })
  }

  protected override async identify (api: ProviderApi, accessToken: string): Promise<UncheckedIdentity> {
    // Proves that the sender has the secret; the settings of an app can require it.
    const proof = createHmac('sha256', this.#clientSecret).update(accessToken).digest('hex')
    const query = new URLSearchParams({ fields: FIELDS, appsecret_proof: proof })
    const { id: subject, name, email, picture } = await api.get(`${this.#me}?${query}`)
    return { subject, claims: { name, email, picture: pictureUrl(picture) }, emailVerified: false }
  }
}

function pictureUrl (picture: unknown): unknown {
  return isPlainObject(picture) && isPlainObject(picture.data) ? picture.data.url : undefined
}

/** Adds the parameter `error`: some failures have only `error_code` and `error_message`. */
function withErrorParameter (parameters: URLSearchParams): URLSearchParams {
  const code = parameters.get('error_code')
  if (code === null || parameters.has('error')) return parameters
  const completed = new URLSearchParams(parameters)
  completed.set('error', parameters.get('error_reason') === 'user_denied' ? 'access_denied' : `error_code ${code}`)
  completed.set('error_description', parameters.get('error_message') ?? '')
  return completed
}

/** Error codes of RFC 6749 section 5.2 by `code` and `error_subcode` of the Graph API. */
const ERRORS: ReadonlyMap<string, string> = new Map([
  ['1', 'invalid_client'],
  ['100/36007', 'invalid_grant'],
  ['100/36008', 'redirect_uri_mismatch'],
  ['100/36009', 'invalid_grant']
])

/** Codes of the Graph API such as "Application request limit reached". */
const RATE_LIMITS: readonly unknown[] = [4, 17, 32]

/** Rewrites an error that is an object. Drops its message, which can contain the access token. */
async function conform (response: Response): Promise<Response> {
  const { status, headers } = response
  if (status < 400 || status >= 500) return response
  const text = await response.text()
  const body = parsedJson(text)
  if (!isPlainObject(body) || !isPlainObject(body.error)) return new Response(text, { status, headers })
  const { type, code, error_subcode: subcode } = body.error
  const number = subcode === undefined ? String(code) : `${code}/${subcode}`
  return Response.json(
    { error: ERRORS.get(number) ?? 'graph_api_error', error_description: `${type}, code ${number}` },
    { status: RATE_LIMITS.includes(code) ? 429 : status }
  )
}
