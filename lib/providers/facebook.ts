import { createHmac } from 'node:crypto'
import { isPlainObject } from '../claims.js'
import { OptionsError } from '../errors.js'
import { OAuth2Provider, type ProviderApi } from './oauth2.js'
import { parsedJson } from './parsed-json.js'
import { withFixed } from './provider-options.js'
import type { Authentication, AuthorizationResponse, ProviderOptions, UncheckedIdentity } from './provider.js'

/** What {@link FacebookProvider} takes. */
export interface FacebookProviderOptions extends ProviderOptions {
  /** The version of the Graph API; default `v24.0`. */
  graphVersion?: string
}

const FIELDS = 'id,name,email,picture.width(200).height(200)'

/** Facebook Login. The e-mail address is there only if the person granted it, and never a verified one: Facebook does not say. */
export class FacebookProvider extends OAuth2Provider {
  readonly #me: string
  readonly #clientSecret: string

  /**
   * @param options id and secret of the app as `clientId` and `clientSecret`, and perhaps `graphVersion`
   * @throws OptionsError naming the option
   */
  constructor ({ graphVersion = 'v24.0', ...options }: FacebookProviderOptions) {
    if (!/^v\d{1,3}\.\d$/.test(graphVersion)) throw new OptionsError('facebook: graphVersion must be a version such as v24.0')
    super(withFixed({
      name: 'facebook',
      authorizationEndpoint: `https://www.facebook.com/${graphVersion}/dialog/oauth`,
      tokenEndpoint: `https://graph.facebook.com/${graphVersion}/oauth/access_token`,
      conform
    }, {
      ...options,
      scopes: options.scopes ?? ['email', 'public_profile']
    }))
    this.#me = `https://graph.facebook.com/${graphVersion}/me`
    this.#clientSecret = options.clientSecret
  }

  override async authenticate (response: AuthorizationResponse): Promise<Authentication> {
    return super.authenticate({ ...response, parameters: withErrorParameter(response.parameters) })
  }

  protected override async identify (api: ProviderApi, accessToken: string): Promise<UncheckedIdentity> {
    // Shows that the request comes from who has the secret; applications can demand it.
    const proof = createHmac('sha256', this.#clientSecret).update(accessToken).digest('hex')
    const { id: subject, name, email, picture } = await api.get(`${this.#me}?${new URLSearchParams({ fields: FIELDS, appsecret_proof: proof })}`)
    return { subject, claims: { name, email, picture: pictureUrl(picture) }, emailVerified: false }
  }
}

function pictureUrl (picture: unknown): unknown {
  return isPlainObject(picture) && isPlainObject(picture.data) ? picture.data.url : undefined
}

/** Some failures come back with `error_code` and `error_message`, and without `error`. */
function withErrorParameter (parameters: URLSearchParams): URLSearchParams {
  const code = parameters.get('error_code')
  if (code === null || parameters.has('error')) return parameters
  const completed = new URLSearchParams(parameters)
  completed.set('error', parameters.get('error_reason') === 'user_denied' ? 'access_denied' : `error_code ${code}`)
  completed.set('error_description', parameters.get('error_message') ?? '')
  return completed
}

/** The error codes of RFC 6749 section 5.2 for those of the Graph API that have one, by `code` and `error_subcode`. */
const ERRORS: ReadonlyMap<string, string> = new Map([
  ['1', 'invalid_client'],
  ['100/36007', 'invalid_grant'],
  ['100/36008', 'redirect_uri_mismatch'],
  ['100/36009', 'invalid_grant']
])

/** "Application request limit reached" and the like. */
const RATE_LIMITS: readonly unknown[] = [4, 17, 32]

/** In an error of the Graph API `error` is an object. Its message can quote the token, so it goes no further. */
async function conform (answer: Response): Promise<Response> {
  const { status, headers } = answer
  if (status < 400 || status >= 500) return answer
  const text = await answer.text()
  const body = parsedJson(text)
  if (!isPlainObject(body) || !isPlainObject(body.error)) return new Response(text, { status, headers })
  const { type, code, error_subcode: subcode } = body.error
  const number = subcode === undefined ? String(code) : `${code}/${subcode}`
  return Response.json(
    { error: ERRORS.get(number) ?? 'graph_api_error', error_description: `${type}, code ${number}` },
    { status: RATE_LIMITS.includes(code) ? 429 : status }
  )
}
