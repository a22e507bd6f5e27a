import { randomUUID } from 'node:crypto'
import { signingKey } from './signing-keys.js'
import type { Refusal } from './authorization-codes.js'
import { type Answer, html, json } from './lies.js'
import { NO_STORE, OpenIdStandIn, now } from './openid-stand-in.js'
import { type ReceivedRequest, redirectTo } from './stand-in.js'

/** Tenants of two companies, and the one of everybody's personal accounts. */
export const CONTOSO = '4f0d6c1e-7a52-4b8e-9c3d-2e61b5a7f084'
export const FABRIKAM = 'b81c29d7-05e6-4f3a-8d94-6a7e0c51f23b'
export const PERSONAL = '9188040d-6c67-4c5b-b112-36a304b66dad'

/** The key that signs for personal accounts, and for nobody else. */
export const PERSONAL_KEY = 'entra-personal'

const REFUSALS: Readonly<Record<Refusal, readonly [status: number, error: string, code: number, text: string]>> = {
  'no form': [400, 'invalid_request', 9_002_313, 'Invalid request. Request is malformed or invalid.'],
  'no secret': [401, 'invalid_client', 7_000_218, "The request body must contain the following parameter: 'client_assertion' or 'client_secret'."],
  'unknown client': [400, 'unauthorized_client', 700_016, 'Application was not found in the directory.'],
  'wrong secret': [
    401, 'invalid_client', 7_000_215,
    'Invalid client secret provided. Ensure the secret being sent in the request is the client secret value, not the ' +
      'client secret ID, for a secret added to the app.'
  ],
  'unknown code': [400, 'invalid_grant', 9_002_313, 'Invalid request. Request is malformed or invalid.'],
  'used code': [
    400, 'invalid_grant', 54_005,
    'OAuth2 Authorization code was already redeemed, please retry with a new valid code or use an existing refresh token.'
  ],
  'expired code': [
    400, 'invalid_grant', 70_008,
    'The provided authorization code or refresh token has expired due to inactivity. Send a new interactive authorization request for this user and resource.'
  ],
  'other redirect URI': [400, 'invalid_grant', 50_011, 'The redirect URI specified in the request does not match.'],
  'no verifier': [400, 'invalid_grant', 501_481, 'The Code_Verifier does not match the code_challenge supplied in the authorization request.'],
  'wrong verifier': [400, 'invalid_grant', 501_481, 'The Code_Verifier does not match the code_challenge supplied in the authorization request.']
}

/** Entra ID: the endpoints of `common`, `organizations` and three tenants, in the global cloud unless told otherwise. */
export class MicrosoftStandIn extends OpenIdStandIn {
  readonly clientId = '0c9e7a44-3b1d-4c6f-9a58-7d2e41b8c6f3'
  readonly clientSecret = 'Xq8Q~secret.of_the-Entra~stand-in'
  readonly hosts: readonly string[]
  profile: Record<string, unknown> = {
    sub: 'Kd93hG-stand-in-pairwise_subject-2u1Ls8QvYb',
    tid: CONTOSO,
    oid: '1d5b7e90-6c2a-4f18-8e3b-a94c07d652f1',
    name: 'Edith Example',
    preferred_username: 'edith@contoso.example',
    email: 'edith@contoso.example'
  }

  keys = ['entra-1', 'entra-2', PERSONAL_KEY]
  /** Id of the key that signs in place of the right one; empty for the right one. */
  signWith = ''
  /** Whether the secret is too old. */
  secretHasExpired = false
  protected readonly scopes = ['openid', 'profile', 'email', 'offline_access']
  readonly #authority: string
  readonly #graphHost: string

  constructor ({ host = 'login.microsoftonline.com', graphHost = 'graph.microsoft.com' } = {}) {
    super('https://app.example/auth/microsoft/callback')
    this.hosts = [host, graphHost]
    this.#authority = `https://${host}`
    this.#graphHost = graphHost
  }

  /** The issuer of a tenant's tokens. */
  issuer (tid: string): string {
    return `${this.#authority}/${tid}/v2.0`
  }

  protected async answer (request: ReceivedRequest): Promise<Answer> {
    if (request.host === this.#graphHost) return this.#graph(request)
    const [, segment = '', path = ''] = /^\/([^/]+)(\/.+)$/.exec(request.path) ?? []
    const tenant = segment.toLowerCase()
    if (!['common', 'organizations', CONTOSO, FABRIKAM, PERSONAL].includes(tenant)) {
      return failure(
        400,
        'invalid_tenant',
        90_002,
      `Tenant '${segment}' not found.`
      )
    }
    switch (`${request.method} ${path}`) {
      case 'GET /v2.0/.well-known/openid-configuration': return json(200, this.#metadata(tenant))
      case 'GET /oauth2/v2.0/authorize': return this.#authorization(tenant, request.query)
      case 'POST /oauth2/v2.0/token': return this.#token(request)
      case 'GET /discovery/v2.0/keys': return json(200, { keys: await this.#keysOf(tenant) })
      default: return html(404, '')
    }
  }

  /** No `code_challenge_methods_supported`: Entra takes PKCE without saying so. */
  #metadata (tenant: string): Record<string, unknown> {
    const base = `${this.#authority}/${tenant}`
    return {
      token_endpoint: `${base}/oauth2/v2.0/token`,
      token_endpoint_auth_methods_supported: ['client_secret_post', 'private_key_jwt', 'client_secret_basic'],
      jwks_uri: `${base}/discovery/v2.0/keys`,
      response_modes_supported: ['query', 'fragment', 'form_post'],
      subject_types_supported: ['pairwise'],
      id_token_signing_alg_values_supported: ['RS256'],
      response_types_supported: ['code', 'id_token', 'code id_token', 'id_token token'],
      scopes_supported: ['openid', 'profile', 'email', 'offline_access'],
      issuer: this.issuer(isShared(tenant) ? '{tenantid}' : tenant),
      request_uri_parameter_supported: false,
      userinfo_endpoint: `https://${this.#graphHost}/oidc/userinfo`,
      authorization_endpoint: `${base}/oauth2/v2.0/authorize`,
      device_authorization_endpoint: `${base}/oauth2/v2.0/devicecode`,
      http_logout_supported: true,
      frontchannel_logout_supported: true,
      end_session_endpoint: `${base}/oauth2/v2.0/logout`,
      kerberos_endpoint: `${base}/kerberos`,
      tenant_region_scope: isShared(tenant) ? null : 'EU',
      cloud_instance_name: new URL(this.#authority).host.replace('login.', ''),
      cloud_graph_host_name: 'graph.windows.net',
      msgraph_host: this.#graphHost,
      rbac_url: 'https://pas.windows.net'
    }
  }

  /** Each key with the issuer that it may sign for, and without `alg`. */
  async #keysOf (tenant: string): Promise<object[]> {
    const kids = this.keys.filter(kid => kid !== PERSONAL_KEY || tenant === 'common' || tenant === PERSONAL)
    return Promise.all(kids.map(async kid => ({
      ...(await signingKey(kid)).jwk,
      x5t: `${kid}-thumbprint`,
      x5c: [Buffer.from(`certificate of ${kid}`).toString('base64')],
      issuer: this.issuer(kid === PERSONAL_KEY ? PERSONAL : isShared(tenant) ? '{tenantid}' : tenant)
    })))
  }

  #authorization (tenant: string, query: URLSearchParams): Answer {
    const { tid } = this.profile
    const problem = this.problemOf(query)
    if (problem === 'unknown client') return html(400, 'AADSTS700016: Application was not found in the directory.')
    if (problem === 'unknown redirect URI') {
      return html(
        400,
        'AADSTS50011: The redirect URI specified in the request does not match the redirect URIs configured for the application.'
      )
    }
    if (problem !== null) return html(400, `AADSTS900144: ${problem}`)
    if (!admits(tenant, tid)) return html(400, 'AADSTS50020: User account from identity provider does not exist in tenant and cannot access the application.')

    const redirectUri = query.get('redirect_uri') ?? ''
    const state = query.get('state')
    if (this.consents) return redirectTo(redirectUri, { code: this.issueCode(query, { prefix: '0.AXkA', bytes: 900 }), state, session_state: randomUUID() })
    if (tid === PERSONAL) return redirectTo(redirectUri, { error: 'access_denied', error_description: 'the user canceled the authentication', state })
    return redirectTo(redirectUri, {
      error: 'access_denied',
      error_subcode: 'cancel',
      error_description: described(65_004, 'User declined to consent to access the app.'),
      state
    })
  }

  async #token (request: ReceivedRequest): Promise<Answer> {
    if (request.headers.origin !== undefined) {
      return failure(
        400,
        'invalid_request',
        9_002_326,
        "Cross-origin token use is permitted only for the 'Single-Page Application' client-type."
      )
    }
    const authorization = this.redeem(request)
    if (typeof authorization === 'string') return failure(...REFUSALS[authorization])
    if (this.secretHasExpired) return failure(401, 'invalid_client', 7_000_222, 'The provided client secret keys for the app are expired.')

    const { scope, nonce } = authorization
    const tid = String(this.profile.tid)
    const honestKey = tid === PERSONAL ? PERSONAL_KEY : 'entra-1'
    const idToken = await this.idToken({
      aud: this.clientId,
      iss: this.issuer(tid),
      iat: now(),
      nbf: now(),
      exp: now() + 3900,
      aio: 'AXQAi/8IAAAAstand-in',
      ...(nonce !== null && { nonce }),
      rh: '0.AXkAstand-in',
      sid: '00c7f1d2-stand-in',
      uti: 'pYbq3stand-inUqI-AA',
      ver: '2.0',
      ...this.disclosed(scope)
    }, this.signWith === '' ? honestKey : this.signWith)
    return json(200, {
      token_type: 'Bearer',
      scope: scope.split(' ').sort().join(' '),
      expires_in: 3599,
      ext_expires_in: 3599,
      access_token: this.issueAccessToken(scope, 'eyJ0eXAiOiJKV1QiLCJub25jZSI6.'),
      id_token: idToken
    }, NO_STORE)
  }

  /** Userinfo: neither `tid` nor `oid`, and a picture that only the access token opens. */
  #graph (request: ReceivedRequest): Answer {
    if (`${request.method} ${request.path}` !== 'GET /oidc/userinfo') return json(404, { error: { code: 'ResourceNotFound', message: 'Resource not found.' } })
    const scope = this.scopeOf(request)
    if (scope === null) return json(401, { error: { code: 'InvalidAuthenticationToken', message: 'Access token is empty.' } })
    const { sub, name, email } = this.disclosed(scope)
    return json(200, { sub, name, picture: `https://${this.#graphHost}/v1.0/me/photo/$value`, email })
  }
}

function isShared (tenant: string): boolean {
  return tenant === 'common' || tenant === 'organizations'
}

function admits (tenant: string, tid: unknown): boolean {
  return tenant === 'common' || (tenant === 'organizations' ? tid !== PERSONAL : tid === tenant)
}

function described (code: number, text: string): string {
  return `AADSTS${code}: ${text}\r\nTrace ID: ${randomUUID()}\r\nCorrelation ID: ${randomUUID()}\r\nTimestamp: 2026-11-20 06:03:00Z`
}

function failure (status: number, error: string, code: number, text: string): Answer {
  return json(status, {
    error,
    error_description: described(code, text),
    error_codes: [code],
    timestamp: '2026-11-20 06:03:00Z',
    trace_id: randomUUID(),
    correlation_id: randomUUID(),
    error_uri: `https://login.microsoftonline.com/error?code=${code}`
  }, NO_STORE)
}
