import { type KeyObject, generateKeyPairSync } from 'node:crypto'
import { decodeProtectedHeader, jwtVerify } from 'jose'
import { type Answer, html, json } from './lies.js'
import { NO_STORE, OpenIdStandIn, hashOf, now } from './openid-stand-in.js'
import { type ReceivedRequest, redirectTo } from './stand-in.js'

const ISSUER = 'https://appleid.apple.com'

/** Apple with a services ID, as its documentation of the REST API and answers that others have published describe it. */
export class AppleStandIn extends OpenIdStandIn {
  readonly clientId = 'com.example.app.web'
  /** What a client secret becomes once it is found to be right. */
  readonly clientSecret = 'verified'
  readonly hosts = ['appleid.apple.com']
  readonly teamId = 'TEAM123456'
  /** The keys of the team, by their ids. */
  readonly teamKeys = new Map<string, KeyObject>()
  /** The claims of each client secret that came. */
  readonly secrets: Array<Record<string, unknown>> = []
  profile: Record<string, unknown> = {
    sub: '001544.6f3ab3e3a6d34d0fbf6ce1f3a1f0b9d7.0821',
    email: 'pq9x7@privaterelay.appleid.com',
    email_verified: 'true',
    is_private_email: 'true'
  }

  /** What the form has in the field `user`, at the first consent alone. */
  user: string | null = JSON.stringify({ name: { firstName: 'Ada', lastName: 'Lovelace' }, email: 'pq9x7@privaterelay.appleid.com' })
  keys = ['apple-1', 'apple-2']
  signWith = 'apple-1'
  protected readonly scopes = ['openid', 'email', 'name']

  constructor () {
    super('https://app.example/auth/apple/callback')
  }

  /** Makes a key of the team; the text of its file. */
  newKey (keyId: string): string {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    this.teamKeys.set(keyId, publicKey)
    return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  }

  /** Opens an authorization request in the person's browser: returns the fields of the form that it posts to the callback. */
  async post (authorizationUrl: string): Promise<URLSearchParams> {
    return new URL(await this.authorize(authorizationUrl), 'https://app.example').searchParams
  }

  protected async answer (request: ReceivedRequest): Promise<Answer> {
    switch (`${request.method} ${request.path}`) {
      case 'GET /.well-known/openid-configuration': return json(200, METADATA)
      case 'GET /auth/authorize': return this.#authorization(request.query)
      case 'POST /auth/token': return this.#token(request)
      case 'GET /auth/keys': return json(200, { keys: await this.publishedKeys() })
      default: return json(404, {})
    }
  }

  /** In place of the page with the form: its fields are in the query. */
  #authorization (query: URLSearchParams): Answer {
    const problem = this.problemOf(query)
    // Required for any scope (Request an authorization to the Sign in with Apple server).
    if (problem !== null || query.get('response_mode') !== 'form_post') return html(400, problem ?? 'invalid_request: response_mode must be form_post')
    const [redirectUri, state] = [query.get('redirect_uri') ?? '', query.get('state')]
    if (!this.consents) return redirectTo(redirectUri, { error: 'user_cancelled_authorize', state })
    const user = this.user
    this.user = null
    return redirectTo(redirectUri, { code: this.issueCode(query, { prefix: 'c' }), state, user })
  }

  async #token (request: ReceivedRequest): Promise<Answer> {
    request.form.set('client_secret', await this.#verified(request.form.get('client_secret') ?? ''))
    const authorization = this.redeem(request)
    if (typeof authorization === 'string') {
      const isOfClient = ['no secret', 'unknown client', 'wrong secret'].includes(authorization)
      return json(400, isOfClient ? { error: 'invalid_client' } : { error: 'invalid_grant', error_description: `The code: ${authorization}.` }, NO_STORE)
    }
    const accessToken = this.issueAccessToken(authorization.scope)
    const { email, email_verified: emailVerified, is_private_email: isPrivate, ...brief } = this.profile
    const idToken = await this.idToken({
      iss: ISSUER,
      aud: this.clientId,
      iat: now(),
      exp: now() + 86_400,
      ...brief,
      ...(authorization.scope.includes('email') && { email, email_verified: emailVerified, is_private_email: isPrivate }),
      nonce: authorization.nonce ?? '',
      nonce_supported: true,
      at_hash: hashOf(accessToken),
      auth_time: now()
    })
    return json(200, { access_token: accessToken, token_type: 'Bearer', expires_in: 3600, refresh_token: 'r1', id_token: idToken }, NO_STORE)
  }

  /** Apple's rules for the secret: ES256, `kid`, `iss` the team, `sub` the client, `aud` Apple, at most six months. */
  async #verified (secret: string): Promise<string> {
    try {
      const key = this.teamKeys.get(String(decodeProtectedHeader(secret).kid))
      if (key === undefined) return secret
      const { payload } = await jwtVerify(secret, key, {
        algorithms: ['ES256'], issuer: this.teamId, subject: this.clientId, audience: ISSUER, requiredClaims: ['iat', 'exp']
      })
      this.secrets.push({ ...payload, kid: decodeProtectedHeader(secret).kid })
      return Number(payload.exp) - now() <= 15_777_000 ? this.clientSecret : secret
    } catch {
      return secret
    }
  }
}

const METADATA = {
  issuer: ISSUER,
  authorization_endpoint: `${ISSUER}/auth/authorize`,
  token_endpoint: `${ISSUER}/auth/token`,
  revocation_endpoint: `${ISSUER}/auth/revoke`,
  jwks_uri: `${ISSUER}/auth/keys`,
  response_types_supported: ['code'],
  response_modes_supported: ['query', 'fragment', 'form_post'],
  subject_types_supported: ['pairwise'],
  id_token_signing_alg_values_supported: ['RS256'],
  scopes_supported: ['openid', 'email', 'name'],
  token_endpoint_auth_methods_supported: ['client_secret_post'],
  claims_supported: [
    'aud', 'email', 'email_verified', 'exp', 'iat', 'is_private_email', 'iss', 'nonce', 'nonce_supported',
    'real_user_status', 'sub', 'transfer_sub'
  ]
}
