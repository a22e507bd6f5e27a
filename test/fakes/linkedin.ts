import { randomBytes } from 'node:crypto'
import { type Answer, html, json } from './lies.js'
import { type ReceivedRequest, StandIn, redirectTo } from './stand-in.js'

/** LinkedIn: a code_verifier makes it refuse the client, and a user who turns back brings an error code of its own. */
export class LinkedInStandIn extends StandIn {
  readonly clientId = '77abcdefgh1234'
  readonly clientSecret = 'WPL_AP1.secret-of-the-tests'
  readonly hosts = ['www.linkedin.com', 'api.linkedin.com']
  user: Record<string, unknown> = {
    sub: '782bbtaQ',
    name: 'Mary Example',
    given_name: 'Mary',
    family_name: 'Example',
    picture: 'https://media.licdn-ei.com/dms/image/C5F03AQHqK8v7tB1HCQ/profile-displayphoto-shrink_100_100/0/',
    locale: { country: 'US', language: 'en' },
    email: 'mary@example.com',
    email_verified: true
  }

  readonly #accessTokens = new Set<string>()

  constructor () {
    super('https://app.example/auth/linkedin/callback')
  }

  protected answer (request: ReceivedRequest): Answer {
    switch (`${request.method} ${request.host}${request.path}`) {
      case 'GET www.linkedin.com/oauth/v2/authorization': return this.#authorization(request.query)
      case 'POST www.linkedin.com/oauth/v2/accessToken': return this.#token(request)
      case 'GET api.linkedin.com/v2/userinfo': return this.#userinfo(request)
      default: return json(404, { status: 404, code: 'RESOURCE_NOT_FOUND' })
    }
  }

  #authorization (query: URLSearchParams): Answer {
    const redirectUri = query.get('redirect_uri') ?? ''
    const isValid = query.get('client_id') === this.clientId && this.redirectUris.includes(redirectUri) &&
      query.get('response_type') === 'code' && query.get('scope') === 'openid profile email'
    if (!isValid) return html(400, 'Bummer, something went wrong.')
    const state = query.get('state')
    return this.consents
      ? redirectTo(redirectUri, { code: this.issueCode(query), state })
      : redirectTo(redirectUri, { error: 'user_cancelled_authorize', error_description: 'The user cancelled the authorization', state })
  }

  #token (request: ReceivedRequest): Answer {
    const isPkce = request.form.has('code_verifier')
    const authorization = this.redeem(request)
    if (isPkce || (typeof authorization === 'string' && /client|secret/.test(authorization))) {
      return json(401, { error: 'invalid_client', error_description: 'Client authentication failed' })
    }
    if (typeof authorization === 'string') {
      const description = 'Unable to retrieve access token: appid/redirect uri/code verifier does not match authorization code'
      return json(400, { error: 'invalid_request', error_description: description })
    }
    const accessToken = randomBytes(16).toString('base64url')
    this.#accessTokens.add(accessToken)
    return json(200, { access_token: accessToken, expires_in: 5_184_000, scope: 'email,openid,profile', token_type: 'Bearer', id_token: 'a.jwt.without-nonce' })
  }

  #userinfo ({ headers }: ReceivedRequest): Answer {
    const [, token = ''] = /^Bearer (.+)$/.exec(headers.authorization ?? '') ?? []
    return this.#accessTokens.has(token) ? json(200, this.user) : json(401, { status: 401, code: 'INVALID_ACCESS_TOKEN' })
  }
}
