import { randomBytes } from 'node:crypto'
import { type Answer, html, json } from './lies.js'
import { type ReceivedRequest, StandIn, redirectTo } from './stand-in.js'

/** X: PKCE is a must, confidential clients say who they are in the Authorization header, and users come wrapped in `data`. */
export class XStandIn extends StandIn {
  readonly clientId = 'V1ROclFTMTRiVWhwTWw4M2FVNWFkVGQyTldNNk1UcGphUQ'
  readonly clientSecret = 'secret-of-the-tests_for-X'
  readonly hosts = ['x.com', 'api.x.com']
  user: Record<string, unknown> = {
    id: '2244994945',
    name: 'Mary',
    username: 'mary_example',
    confirmed_email: 'mary@example.com',
    profile_image_url: 'https://pbs.twimg.com/profile_images/1/mary_normal.jpg'
  }

  readonly #accessTokens = new Set<string>()

  constructor () {
    super('https://app.example/auth/x/callback')
  }

  protected answer (request: ReceivedRequest): Answer {
    switch (`${request.method} ${request.host}${request.path}`) {
      case 'GET x.com/i/oauth2/authorize': return this.#authorization(request.query)
      case 'POST api.x.com/2/oauth2/token': return this.#token(request)
      case 'GET api.x.com/2/users/me': return this.#me(request)
      default: return json(404, { title: 'Not Found', status: 404 })
    }
  }

  #authorization (query: URLSearchParams): Answer {
    const redirectUri = query.get('redirect_uri') ?? ''
    const isValid = query.get('client_id') === this.clientId && this.redirectUris.includes(redirectUri) &&
      query.get('response_type') === 'code' && query.get('scope') === 'tweet.read users.read users.email' &&
      query.get('state') !== null && query.get('code_challenge_method') === 'S256'
    if (!isValid) return html(400, 'Something went wrong. You weren’t able to give access to the App.')
    const state = query.get('state')
    return this.consents ? redirectTo(redirectUri, { state, code: this.issueCode(query) }) : redirectTo(redirectUri, { error: 'access_denied', state })
  }

  #token (request: ReceivedRequest): Answer {
    if (request.headers.authorization === undefined) {
      return json(401, { error: 'unauthorized_client', error_description: 'Missing valid authorization header' })
    }
    const authorization = this.redeem(request)
    if (typeof authorization === 'string') {
      return /client|secret/.test(authorization)
        ? json(401, { error: 'unauthorized_client', error_description: 'Missing valid authorization header' })
        : json(400, { error: 'invalid_request', error_description: 'Value passed for the authorization code was invalid.' })
    }
    const accessToken = randomBytes(16).toString('base64url')
    this.#accessTokens.add(accessToken)
    return json(200, { token_type: 'bearer', expires_in: 7200, access_token: accessToken, scope: authorization.scope })
  }

  #me ({ headers, query }: ReceivedRequest): Answer {
    const [, token = ''] = /^Bearer (.+)$/.exec(headers.authorization ?? '') ?? []
    if (!this.#accessTokens.has(token)) return json(401, { title: 'Unauthorized', status: 401 })
    const fields = ['id', 'name', 'username', ...(query.get('user.fields') ?? '').split(',')]
    return json(200, { data: Object.fromEntries(Object.entries(this.user).filter(([name]) => fields.includes(name))) })
  }
}
