import { SignJWT, type JWTPayload } from 'jose'
import type { Refusal } from './authorization-codes.js'
import { type Answer, html, json } from './lies.js'
import { NO_STORE, OpenIdStandIn, hashOf, now } from './openid-stand-in.js'
import { type ReceivedRequest, redirectTo } from './stand-in.js'

const SCOPES = [
  'openid', 'profile', 'offline_access', 'name', 'given_name', 'family_name', 'nickname', 'email', 'email_verified',
  'picture', 'created_at', 'identities', 'phone', 'address'
]

const REFUSALS: Readonly<Record<Refusal, readonly [status: number, error: string, description: string]>> = {
  'no form': [403, 'unsupported_grant_type', 'Unsupported grant type'],
  // The code that elsewhere means that the person said no.
  'no secret': [401, 'access_denied', 'Unauthorized'],
  'unknown client': [401, 'access_denied', 'Unauthorized'],
  'wrong secret': [401, 'access_denied', 'Unauthorized'],
  'unknown code': [403, 'invalid_grant', 'Invalid authorization code'],
  'used code': [403, 'invalid_grant', 'Invalid authorization code'],
  'expired code': [403, 'invalid_grant', 'Invalid authorization code'],
  'other redirect URI': [403, 'invalid_grant', 'The redirect URI is wrong.'],
  'no verifier': [403, 'invalid_grant', 'Failed to verify code verifier'],
  'wrong verifier': [403, 'invalid_grant', 'Failed to verify code verifier']
}

/** An Auth0 tenant with a custom domain, and an Action that adds claims. Whichever host a sign-in runs over is its issuer. */
export class Auth0StandIn extends OpenIdStandIn {
  readonly clientId = 'pW7StandIn0000000000000000000000'
  readonly clientSecret = 'secret-of_the-Auth0-stand-in-0123456789'
  readonly hosts = ['tenant.eu.auth0.com', 'login.example.com']
  profile: Record<string, unknown> = {
    given_name: 'Mary',
    family_name: 'Example',
    nickname: 'mary',
    name: 'Mary Example',
    picture: 'https://s.gravatar.com/avatar/5f0c7127cb2f4e5d?s=480&d=https%3A%2F%2Fcdn.auth0.com%2Favatars%2Fme.png',
    updated_at: '2026-11-20T09:30:11.154Z',
    email: 'mary@example.com',
    email_verified: true,
    sub: 'auth0|66f0a1b2c3d4e5f607182930'
  }

  keys = ['auth0-current', 'auth0-next']
  signWith = 'auth0-current'
  /** What an Action adds to ID tokens and userinfo. */
  customClaims: Record<string, unknown> = { role: 'editor', 'https://app.example/plan': 'gold' }
  /** What a Rule of the customer's says to everybody, in place of letting them in. */
  deniedByRule: string | null = null
  /** Whether ID tokens carry `at_hash`. */
  hashesAccessTokens = false
  /** Whether the application is set to the signature algorithm HS256. */
  signsWithSecret = false
  protected readonly scopes = SCOPES

  constructor () {
    super('https://app.example/auth/auth0/callback')
  }

  protected async answer (request: ReceivedRequest): Promise<Answer> {
    switch (`${request.method} ${request.path}`) {
      case 'GET /.well-known/openid-configuration': return json(200, metadata(`https://${request.host}`))
      case 'GET /authorize': return this.#authorization(request.query)
      case 'POST /oauth/token': return this.#token(request)
      case 'GET /.well-known/jwks.json': return json(200, { keys: await this.publishedKeys() }, { 'cache-control': 'public, max-age=15' })
      case 'GET /userinfo': return this.#userinfo(request)
      default: return json(404, { statusCode: 404, error: 'Not Found', message: 'Not Found' })
    }
  }

  #authorization (query: URLSearchParams): Answer {
    const problem = this.problemOf(query)
    if (problem === 'unknown client') return html(400, `invalid_request: Unknown client: ${query.get('client_id')}`)
    if (problem === 'unknown redirect URI') return html(403, 'Callback URL mismatch. The provided redirect_uri is not in the list of allowed callback URLs.')
    if (problem !== null) return html(400, `invalid_request: ${problem}`)

    const redirectUri = query.get('redirect_uri') ?? ''
    const state = query.get('state')
    if (!this.consents) return redirectTo(redirectUri, { error: 'access_denied', error_description: 'User did not authorize the request', state })
    if (this.deniedByRule !== null) return redirectTo(redirectUri, { error: 'unauthorized', error_description: this.deniedByRule, state })
    return redirectTo(redirectUri, { code: this.issueCode(query, { bytes: 36 }), state })
  }

  async #token (request: ReceivedRequest): Promise<Answer> {
    const authorization = this.redeem(request)
    if (typeof authorization === 'string') {
      const [status, error, description] = REFUSALS[authorization]
      return json(status, { error, error_description: description }, NO_STORE)
    }
    const { scope, nonce } = authorization
    const accessToken = this.issueAccessToken(scope, 'eyJhbGciOiJkaXIi..')
    const idToken = await this.idToken({
      ...this.customClaims,
      ...this.disclosed(scope),
      iss: `https://${request.host}/`,
      aud: this.clientId,
      iat: now(),
      exp: now() + 36_000,
      sid: 'Zt5StandIn-session-id',
      ...(this.hashesAccessTokens && { at_hash: hashOf(accessToken) }),
      ...(nonce !== null && { nonce })
    })
    return json(200, { access_token: accessToken, id_token: idToken, scope, expires_in: 86_400, token_type: 'Bearer' }, NO_STORE)
  }

  protected override async idToken (claims: JWTPayload): Promise<string> {
    if (!this.signsWithSecret) return super.idToken(claims)
    return new SignJWT({ ...claims, ...this.idTokenClaims }).setProtectedHeader({ alg: 'HS256', typ: 'JWT' }).sign(Buffer.from(this.clientSecret))
  }

  protected override async publishedKeys () {
    return (await super.publishedKeys()).map(key => ({
      ...key,
      x5t: `${key.kid}-thumbprint`,
      x5c: [Buffer.from(`certificate of ${key.kid}`).toString('base64')]
    }))
  }

  #userinfo (request: ReceivedRequest): Answer {
    const scope = this.scopeOf(request)
    if (scope !== null) return json(200, { ...this.customClaims, ...this.disclosed(scope) })
    return { status: 401, headers: { 'content-type': 'text/plain', 'www-authenticate': 'Bearer realm="Users", error="invalid_token"' }, body: 'Unauthorized' }
  }
}

function metadata (origin: string): Record<string, unknown> {
  return {
    issuer: `${origin}/`,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/oauth/token`,
    device_authorization_endpoint: `${origin}/oauth/device/code`,
    userinfo_endpoint: `${origin}/userinfo`,
    mfa_challenge_endpoint: `${origin}/mfa/challenge`,
    jwks_uri: `${origin}/.well-known/jwks.json`,
    registration_endpoint: `${origin}/oidc/register`,
    revocation_endpoint: `${origin}/oauth/revoke`,
    end_session_endpoint: `${origin}/oidc/logout`,
    scopes_supported: SCOPES,
    response_types_supported: ['code', 'token', 'id_token', 'code token', 'code id_token', 'token id_token', 'code token id_token'],
    code_challenge_methods_supported: ['S256', 'plain'],
    response_modes_supported: ['query', 'fragment', 'form_post'],
    subject_types_supported: ['public'],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'private_key_jwt'],
    id_token_signing_alg_values_supported: ['HS256', 'RS256', 'PS256'],
    request_uri_parameter_supported: false,
    request_parameter_supported: false,
    dpop_signing_alg_values_supported: ['ES256']
  }
}
