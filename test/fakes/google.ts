import type { Refusal } from './authorization-codes.js'
import { type Answer, html, json } from './lies.js'
import { NO_STORE, OpenIdStandIn, hashOf, now } from './openid-stand-in.js'
import { type ReceivedRequest, redirectTo } from './stand-in.js'

const ISSUER = 'https://accounts.google.com'

/** What Google calls the short scopes in its answers. */
const LONG_SCOPES: Readonly<Record<string, string>> = {
  email: 'https://www.googleapis.com/auth/userinfo.email',
  profile: 'https://www.googleapis.com/auth/userinfo.profile'
}

const REFUSALS: Readonly<Record<Refusal, readonly [status: number, error: string, description: string]>> = {
  'no form': [400, 'unsupported_grant_type', 'Invalid grant_type'],
  'no secret': [400, 'invalid_request', 'client_secret is missing.'],
  'unknown client': [401, 'invalid_client', 'The OAuth client was not found.'],
  'wrong secret': [401, 'invalid_client', 'The provided client secret is invalid.'],
  'unknown code': [400, 'invalid_grant', 'Malformed auth code.'],
  'used code': [400, 'invalid_grant', 'Bad Request'],
  'expired code': [400, 'invalid_grant', 'Bad Request'],
  'other redirect URI': [400, 'redirect_uri_mismatch', 'Bad Request'],
  'no verifier': [400, 'invalid_grant', 'Missing code verifier.'],
  'wrong verifier': [400, 'invalid_grant', 'Invalid code verifier.']
}

/** Google, with a Workspace account behind it. */
export class GoogleStandIn extends OpenIdStandIn {
  readonly clientId = '5528-stand-in.apps.googleusercontent.com'
  readonly clientSecret = 'GOCSPX-secret_of~the.stand-in'
  readonly hosts = ['accounts.google.com', 'oauth2.googleapis.com', 'www.googleapis.com', 'openidconnect.googleapis.com']
  profile: Record<string, unknown> = {
    sub: '108204268033311374519',
    hd: 'example.com',
    email: 'grace@example.com',
    email_verified: true,
    name: 'Grace Example',
    picture: 'https://lh3.googleusercontent.com/a/ACg8ocGrace=s96-c',
    given_name: 'Grace',
    family_name: 'Example'
  }

  keys = ['google-1', 'google-2']
  signWith = 'google-1'
  /** Whether the metadata announces RFC 9207; Google sends `iss` either way. */
  announcesIss = true
  /** Whether a denial carries `iss` too. */
  issOnErrors = true
  /** Whether ID tokens leave name and picture to userinfo. */
  idTokensAreBrief = false
  protected readonly scopes = ['openid', 'email', 'profile', ...Object.values(LONG_SCOPES), 'https://www.googleapis.com/auth/calendar.readonly']

  constructor () {
    super('https://app.example/auth/google/callback')
  }

  protected async answer (request: ReceivedRequest): Promise<Answer> {
    switch (`${request.method} ${request.host}${request.path}`) {
      case 'GET accounts.google.com/.well-known/openid-configuration': return json(200, this.#metadata(), { 'cache-control': 'public, max-age=3600' })
      case 'GET accounts.google.com/o/oauth2/v2/auth': return this.#authorization(request.query)
      case 'POST oauth2.googleapis.com/token': return this.#token(request)
      case 'GET www.googleapis.com/oauth2/v3/certs': return json(200, { keys: await this.publishedKeys() }, { 'cache-control': 'public, max-age=19800' })
      case 'GET openidconnect.googleapis.com/v1/userinfo': return this.#userinfo(request)
      default: return html(404, '<title>Error 404 (Not Found)!!1</title>')
    }
  }

  #metadata (): Record<string, unknown> {
    return {
      issuer: ISSUER,
      authorization_endpoint: `${ISSUER}/o/oauth2/v2/auth`,
      device_authorization_endpoint: 'https://oauth2.googleapis.com/device/code',
      token_endpoint: 'https://oauth2.googleapis.com/token',
      userinfo_endpoint: 'https://openidconnect.googleapis.com/v1/userinfo',
      revocation_endpoint: 'https://oauth2.googleapis.com/revoke',
      jwks_uri: 'https://www.googleapis.com/oauth2/v3/certs',
      response_types_supported: ['code', 'token', 'id_token', 'code token', 'code id_token', 'token id_token', 'code token id_token', 'none'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      scopes_supported: ['openid', 'email', 'profile'],
      token_endpoint_auth_methods_supported: ['client_secret_post', 'client_secret_basic'],
      code_challenge_methods_supported: ['plain', 'S256'],
      ...(this.announcesIss && { authorization_response_iss_parameter_supported: true })
    }
  }

  #authorization (query: URLSearchParams): Answer {
    const problem = this.problemOf(query)
    if (problem === 'unknown client') return html(401, 'Error 401: invalid_client. The OAuth client was not found.')
    if (problem === 'unknown redirect URI') return html(400, 'Error 400: redirect_uri_mismatch')
    if (problem !== null) return html(400, `Error 400: invalid_request. ${problem}`)

    const redirectUri = query.get('redirect_uri') ?? ''
    const state = query.get('state')
    if (!this.consents) return redirectTo(redirectUri, { error: 'access_denied', state, iss: this.issOnErrors ? ISSUER : null })
    const { hd } = this.profile
    return redirectTo(redirectUri, {
      state,
      iss: ISSUER,
      code: this.issueCode(query, { prefix: '4/0A' }),
      scope: granted(query.get('scope') ?? '', { isNamedTwice: true }),
      authuser: '0',
      hd: typeof hd === 'string' ? hd : null,
      prompt: 'consent'
    })
  }

  async #token (request: ReceivedRequest): Promise<Answer> {
    const authorization = this.redeem(request)
    if (typeof authorization === 'string') {
      const [status, error, description] = REFUSALS[authorization]
      return json(status, { error, error_description: description }, NO_STORE)
    }
    const { scope, nonce } = authorization
    const accessToken = this.issueAccessToken(scope, 'ya29.a0')
    const { name, picture, given_name: givenName, family_name: familyName, ...brief } = this.disclosed(shortened(scope))
    const idToken = await this.idToken({
      iss: ISSUER,
      azp: this.clientId,
      aud: this.clientId,
      ...brief,
      at_hash: hashOf(accessToken),
      ...(nonce !== null && { nonce }),
      ...(!this.idTokensAreBrief && { name, picture, given_name: givenName, family_name: familyName }),
      iat: now(),
      exp: now() + 3600
    })
    return json(200, { access_token: accessToken, expires_in: 3599, scope: granted(scope), token_type: 'Bearer', id_token: idToken }, NO_STORE)
  }

  #userinfo (request: ReceivedRequest): Answer {
    const scope = this.scopeOf(request)
    if (scope !== null) return json(200, this.disclosed(shortened(scope)))
    const challenge = { 'www-authenticate': 'Bearer realm="https://accounts.google.com/", error="invalid_request"' }
    return json(401, { error: 'invalid_request', error_description: 'Invalid Credentials' }, challenge)
  }
}

/** The scope as Google tells it: `email` and `profile` in their long form, in the authorization response in both. */
function granted (scope: string, { isNamedTwice = false } = {}): string {
  const scopes = scope.split(' ').flatMap(name => {
    const long = LONG_SCOPES[name]
    if (long === undefined) return [name]
    return isNamedTwice ? [name, long] : [long]
  })
  return scopes.join(' ')
}

function shortened (scope: string): string {
  return Object.entries(LONG_SCOPES).reduce((short, [name, long]) => short.replace(long, name), scope)
}
