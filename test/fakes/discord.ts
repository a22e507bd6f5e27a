import { randomBytes } from 'node:crypto'
import { type Answer, html, json } from './lies.js'
import { type ReceivedRequest, StandIn, redirectTo } from './stand-in.js'

/** Discord: OAuth 2.0 by the book, and an API that wants the Bearer token. */
export class DiscordStandIn extends StandIn {
  readonly clientId = '157730590492196864'
  readonly clientSecret = 'discord-secret-of-the-tests'
  readonly hosts = ['discord.com']
  user: Record<string, unknown> = {
    id: '80351110224678912',
    username: 'nelly',
    discriminator: '0',
    global_name: 'Nelly',
    avatar: '8342729096ea3675442027381ff50dfe',
    email: 'nelly@example.com',
    verified: true
  }

  readonly #accessTokens = new Set<string>()

  constructor () {
    super('https://app.example/auth/discord/callback')
  }

  protected answer (request: ReceivedRequest): Answer {
    switch (`${request.method} ${request.path}`) {
      case 'GET /oauth2/authorize': return this.#authorization(request.query)
      case 'POST /api/oauth2/token': return this.#token(request)
      case 'GET /api/users/@me': return this.#me(request)
      default: return json(404, { message: '404: Not Found', code: 0 })
    }
  }

  #authorization (query: URLSearchParams): Answer {
    const redirectUri = query.get('redirect_uri') ?? ''
    const isValid = query.get('client_id') === this.clientId && this.redirectUris.includes(redirectUri) &&
      query.get('response_type') === 'code' && query.get('scope') === 'identify email'
    if (!isValid) return html(400, 'Invalid OAuth2 redirect_uri')
    const state = query.get('state')
    if (!this.consents) {
      return redirectTo(redirectUri, {
        error: 'access_denied',
        error_description: 'The resource owner or authorization server denied the request',
        state
      })
    }
    return redirectTo(redirectUri, { code: this.issueCode(query), state })
  }

  #token (request: ReceivedRequest): Answer {
    const authorization = this.redeem(request)
    if (typeof authorization === 'string') {
      return /client|secret/.test(authorization)
        ? json(401, { error: 'invalid_client' })
        : json(400, {
          error: 'invalid_grant',
          error_description: `Invalid "code" in request: ${authorization}`
        })
    }
    const accessToken = randomBytes(16).toString('base64url')
    this.#accessTokens.add(accessToken)
    return json(200, { token_type: 'Bearer', access_token: accessToken, expires_in: 604800, refresh_token: 'a-refresh-token', scope: authorization.scope })
  }

  #me ({ headers }: ReceivedRequest): Answer {
    const [, token = ''] = /^Bearer (.+)$/.exec(headers.authorization ?? '') ?? []
    return this.#accessTokens.has(token) ? json(200, this.user) : json(401, { message: '401: Unauthorized', code: 0 })
  }
}
