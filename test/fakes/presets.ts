import type { Refusal } from './authorization-codes.js'
import { type Answer, html, json } from './lies.js'
import { NO_STORE, OpenIdStandIn, hashOf, now } from './openid-stand-in.js'
import { type ReceivedRequest, redirectTo } from './stand-in.js'

/** What sets one OpenID provider apart from another: as its documentation, its documents and its clients have it. */
export interface Preset {
  name: string
  issuer: string
  /** The discovery document, besides the issuer. */
  metadata: Record<'authorization_endpoint' | 'token_endpoint' | 'jwks_uri', string> & Record<string, unknown>
  scopes: readonly string[]
  /** The user, in the words of the provider. */
  profile: Record<string, unknown>
  /** Claims that userinfo alone has. */
  inUserinfo?: readonly string[]
  /** Claims of ID tokens besides. */
  idToken?: Record<string, unknown>
  /** Parameters of the callback besides. */
  callback?: Record<string, string>
  /** The error that a user who declines brings back; default access_denied. */
  denial?: string
  refuse: (refusal: Refusal) => Answer
  /** How the token response has the scope. */
  scopeOf?: (scope: string) => unknown
  /** Whether a code_verifier is refused, however right it is. */
  refusesPkce?: boolean
  /** Whether ID tokens have only the claims that the parameter `claims` names. */
  asksForClaims?: boolean
}

const isOfClient = (refusal: Refusal): boolean => /client|secret/.test(refusal)

const oauthErrors = (status: number, error: string, description: string) => (refusal: Refusal): Answer => isOfClient(refusal)
  ? json(status, { error, error_description: description }, NO_STORE)
  : json(400, { error: 'invalid_grant', error_description: refusal }, NO_STORE)

const POOL = 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_a1B2c3D4e'
const POOL_DOMAIN = 'https://shop.auth.eu-central-1.amazoncognito.com'
const REALM = 'https://id.example/realms/main'

export const PRESETS = {
  gitlab: {
    name: 'gitlab',
    issuer: 'https://gitlab.com',
    metadata: {
      authorization_endpoint: 'https://gitlab.com/oauth/authorize',
      token_endpoint: 'https://gitlab.com/oauth/token',
      userinfo_endpoint: 'https://gitlab.com/oauth/userinfo',
      jwks_uri: 'https://gitlab.com/oauth/discovery/keys',
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
      code_challenge_methods_supported: ['plain', 'S256']
    },
    scopes: ['api', 'read_user', 'openid', 'profile', 'email'],
    profile: {
      sub: '4711',
      sub_legacy: '0df4b8',
      name: 'Mary Example',
      nickname: 'mary',
      preferred_username: 'mary',
      email: 'mary@example.com',
      email_verified: true,
      profile: 'https://gitlab.com/mary',
      picture: 'https://gitlab.com/uploads/-/system/user/avatar/4711/avatar.png',
      groups: ['example']
    },
    // Claims of the openid scope without a response are for userinfo alone.
    inUserinfo: ['name', 'nickname', 'preferred_username', 'profile', 'picture', 'groups'],
    idToken: { auth_time: 1_764_000_000, groups_direct: ['example'] },
    refuse: oauthErrors(401, 'invalid_client', 'Client authentication failed due to unknown client')
  },
  keycloak: {
    name: 'keycloak',
    issuer: REALM,
    metadata: {
      authorization_endpoint: `${REALM}/protocol/openid-connect/auth`,
      token_endpoint: `${REALM}/protocol/openid-connect/token`,
      userinfo_endpoint: `${REALM}/protocol/openid-connect/userinfo`,
      jwks_uri: `${REALM}/protocol/openid-connect/certs`,
      id_token_signing_alg_values_supported: ['PS384', 'RS384', 'EdDSA', 'HS256', 'HS512', 'ES256', 'RS256', 'PS256', 'RS512'],
      token_endpoint_auth_methods_supported: ['private_key_jwt', 'client_secret_basic', 'client_secret_post', 'tls_client_auth', 'client_secret_jwt'],
      authorization_response_iss_parameter_supported: true
    },
    scopes: ['openid', 'profile', 'email', 'acr', 'roles', 'basic', 'offline_access'],
    profile: {
      sub: '6a3f0d5e-5a0f-4b58-8f2c-6f3c6d3c9f10',
      email: 'mary@example.com',
      email_verified: true,
      name: 'Mary Example',
      preferred_username: 'mary',
      given_name: 'Mary',
      family_name: 'Example'
    },
    idToken: { typ: 'ID', acr: '1', sid: '2b8d0c6e-7f53-4a7b-8a3d-2f2b3a0f6c11', auth_time: 1_764_000_000 },
    callback: { session_state: '2b8d0c6e-7f53-4a7b-8a3d-2f2b3a0f6c11', iss: REALM },
    refuse: oauthErrors(401, 'unauthorized_client', 'Invalid client or Invalid client credentials')
  },
  okta: {
    name: 'okta',
    issuer: 'https://example.okta.com',
    metadata: {
      authorization_endpoint: 'https://example.okta.com/oauth2/v1/authorize',
      token_endpoint: 'https://example.okta.com/oauth2/v1/token',
      userinfo_endpoint: 'https://example.okta.com/oauth2/v1/userinfo',
      jwks_uri: 'https://example.okta.com/oauth2/v1/keys',
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'client_secret_jwt', 'private_key_jwt', 'none'],
      code_challenge_methods_supported: ['S256']
    },
    scopes: ['openid', 'email', 'profile', 'address', 'phone', 'offline_access', 'groups'],
    profile: {
      sub: '00u1a2b3c4D5e6F7g8h9',
      name: 'Mary Example',
      preferred_username: 'mary@example.com',
      email: 'mary@example.com',
      email_verified: true,
      zoneinfo: 'Europe/Berlin'
    },
    // With an access token, ID tokens of the org's authorization server are thin.
    inUserinfo: ['name', 'preferred_username', 'email', 'email_verified', 'zoneinfo'],
    idToken: { ver: 1, idp: '00o1a2b3c4', amr: ['pwd'], auth_time: 1_764_000_000 },
    refuse: oauthErrors(401, 'invalid_client', 'The client secret supplied for a confidential client is invalid.')
  },
  cognito: {
    name: 'cognito',
    issuer: POOL,
    metadata: {
      authorization_endpoint: `${POOL_DOMAIN}/oauth2/authorize`,
      token_endpoint: `${POOL_DOMAIN}/oauth2/token`,
      userinfo_endpoint: `${POOL_DOMAIN}/oauth2/userInfo`,
      end_session_endpoint: `${POOL_DOMAIN}/logout`,
      jwks_uri: `${POOL}/.well-known/jwks.json`,
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post']
    },
    scopes: ['openid', 'email', 'phone', 'profile'],
    profile: {
      sub: '13d4c8d2-4021-7056-1c1f-5b2f0e0d9c12',
      email: 'mary@example.com',
      // A boolean in ID tokens, a string in userinfo.
      email_verified: 'true',
      name: 'Mary Example',
      username: 'mary'
    },
    inUserinfo: ['email', 'email_verified', 'name', 'username'],
    idToken: { token_use: 'id', 'cognito:username': 'mary', 'cognito:groups': ['editors'], auth_time: 1_764_000_000 },
    refuse: refusal => json(400, { error: isOfClient(refusal) ? 'invalid_client' : 'invalid_grant' }, NO_STORE)
  },
  slack: {
    name: 'slack',
    issuer: 'https://slack.com',
    metadata: {
      authorization_endpoint: 'https://slack.com/openid/connect/authorize',
      token_endpoint: 'https://slack.com/api/openid.connect.token',
      userinfo_endpoint: 'https://slack.com/api/openid.connect.userInfo',
      jwks_uri: 'https://slack.com/openid/connect/keys'
    },
    scopes: ['openid', 'profile', 'email'],
    profile: {
      sub: 'U0R7JM',
      'https://slack.com/user_id': 'U0R7JM',
      'https://slack.com/team_id': 'T0123ABCD',
      email: 'mary@example.com',
      email_verified: true,
      date_email_verified: 1_622_128_723,
      name: 'Mary Example',
      picture: 'https://secure.gravatar.com/avatar/mary.png'
    },
    // Errors have status 200.
    refuse: refusal => json(200, { ok: false, error: isOfClient(refusal) ? 'bad_client_secret' : 'invalid_code' }),
    refusesPkce: true
  },
  twitch: {
    name: 'twitch',
    issuer: 'https://id.twitch.tv/oauth2',
    metadata: {
      authorization_endpoint: 'https://id.twitch.tv/oauth2/authorize',
      token_endpoint: 'https://id.twitch.tv/oauth2/token',
      userinfo_endpoint: 'https://id.twitch.tv/oauth2/userinfo',
      jwks_uri: 'https://id.twitch.tv/oauth2/keys',
      claims_parameter_supported: true,
      token_endpoint_auth_methods_supported: ['client_secret_post']
    },
    scopes: ['openid', 'user:read:email'],
    profile: {
      sub: '713936733',
      email: 'mary@example.com',
      email_verified: true,
      preferred_username: 'MaryExample',
      picture: 'https://static-cdn.jtvnw.net/jtv_user_pictures/mary-300x300.png',
      updated_at: '2026-11-20T09:30:11Z'
    },
    asksForClaims: true,
    scopeOf: scope => scope.split(' '),
    // No member has an error code of RFC 6749.
    refuse: refusal => isOfClient(refusal)
      ? json(403, { status: 403, message: 'invalid client secret' })
      : json(400, { status: 400, message: 'Invalid authorization code' })
  }
} satisfies Record<string, Preset>

/** An OpenID provider as a {@link Preset} has it. */
export class PresetStandIn extends OpenIdStandIn {
  readonly clientId = 'the-client-of-the-tests'
  readonly clientSecret = 'the-secret-of-the-tests'
  readonly hosts: readonly string[]
  profile: Record<string, unknown>
  keys = ['preset-1']
  signWith = 'preset-1'
  readonly preset: Preset
  protected readonly scopes: readonly string[]
  #claimsOfCode: string | null = null

  constructor (preset: Preset) {
    super(`https://app.example/auth/${preset.name}/callback`)
    this.preset = preset
    this.profile = { ...preset.profile }
    this.scopes = preset.scopes
    const { authorization_endpoint: authorize, token_endpoint: token, jwks_uri: keys } = preset.metadata
    this.hosts = [...new Set([preset.issuer, authorize, token, keys].map(url => new URL(url).host))]
  }

  protected async answer (request: ReceivedRequest): Promise<Answer> {
    const { issuer, metadata } = this.preset
    switch (`https://${request.host}${request.path}`) {
      case `${issuer}/.well-known/openid-configuration`: return json(200, {
        id_token_signing_alg_values_supported: ['RS256'],
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        ...metadata,
        issuer
      })
      case metadata.authorization_endpoint: return this.#authorization(request.query)
      case metadata.token_endpoint: return this.#token(request)
      case metadata.jwks_uri: return json(200, { keys: await this.publishedKeys() })
      case metadata.userinfo_endpoint: return this.#userinfo(request)
      default: return json(404, { error: 'not_found' })
    }
  }

  protected override problemOf (query: URLSearchParams): string | null {
    const problem = super.problemOf(query)
    return this.preset.refusesPkce === true && problem === 'no challenge with S256' ? null : problem
  }

  #authorization (query: URLSearchParams): Answer {
    const problem = this.problemOf(query)
    if (problem !== null) return html(400, problem)
    const { callback, denial = 'access_denied' } = this.preset
    const [redirectUri, state] = [query.get('redirect_uri') ?? '', query.get('state')]
    if (!this.consents) return redirectTo(redirectUri, { error: denial, error_description: 'the user declined', state, ...callback })
    this.#claimsOfCode = query.get('claims')
    return redirectTo(redirectUri, { code: this.issueCode(query), state, ...callback })
  }

  async #token (request: ReceivedRequest): Promise<Answer> {
    const { issuer, idToken: besides, refusesPkce, scopeOf = scope => scope, refuse } = this.preset
    if (refusesPkce === true && request.form.has('code_verifier')) return json(200, { ok: false, error: 'internal_error' })
    const authorization = this.redeem(request)
    if (typeof authorization === 'string') return refuse(authorization)
    const { scope, nonce } = authorization
    const accessToken = this.issueAccessToken(scope)
    const idToken = await this.idToken({
      ...this.#claimsOfIdToken(scope),
      ...besides,
      iss: issuer,
      aud: this.clientId,
      iat: now(),
      exp: now() + 600,
      at_hash: hashOf(accessToken),
      ...(nonce !== null && { nonce })
    })
    return json(200, { ok: true, access_token: accessToken, token_type: 'Bearer', expires_in: 600, id_token: idToken, scope: scopeOf(scope) }, NO_STORE)
  }

  #claimsOfIdToken (scope: string): Record<string, unknown> {
    const { inUserinfo = [], asksForClaims } = this.preset
    const asked = Object.keys(JSON.parse(this.#claimsOfCode ?? '{}').id_token ?? {})
    const all = asksForClaims === true ? this.profile : this.disclosed(scope)
    const isIn = (claim: string): boolean => asksForClaims === true ? asked.includes(claim) : !inUserinfo.includes(claim)
    return Object.fromEntries(Object.entries(all).filter(([claim]) => claim === 'sub' || isIn(claim)))
  }

  #userinfo (request: ReceivedRequest): Answer {
    const scope = this.scopeOf(request)
    return scope === null ? json(401, { error: 'invalid_token' }) : json(200, { ok: true, ...this.disclosed(scope) })
  }
}
