import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import { type CryptoKey, type JWK, type JWTPayload, SignJWT } from 'jose'
import type { Test } from 'tap'
import { OidcProvider, type OidcProviderOptions, type ProviderOptions } from '../../lib/index.js'
import type { ClientAuthentication } from '../../lib/providers/provider.js'
import { listen } from '../helpers/loopback.js'
import { AuthorizationCodes, formOf } from './authorization-codes.js'
import { type Lie, json } from './lies.js'
import { signingKey } from './signing-keys.js'

/**
 * An OpenID provider that checks its client as a strict one does (code, redirect URI, PKCE, secret) and can be told to lie: about its
 * metadata, its keys, the ID token, or any answer.
 */
export class FakeOpenIdProvider {
  readonly clientId = 'the-app'
  readonly clientSecret = 'the client secret of the tests'
  /** Requests that came in: method and path. */
  readonly requests: string[] = []
  readonly issuer: string
  /** The key that signs, and the public half of it, which is published. */
  key: CryptoKey
  jwk: JWK
  metadata: Record<string, unknown>
  profile: Record<string, unknown> = { sub: 'ada', email: 'ada@example.com', email_verified: true, name: 'Ada', picture: 'https://id.example/ada.png' }
  userinfo: Record<string, unknown> = {}
  /** Changes the payload of the ID token; a member set to undefined is left out. */
  idTokenClaims: Record<string, unknown> = {}
  /** Makes the ID token in place of the provider. */
  forgeIdToken: ((payload: JWTPayload) => string | Promise<string>) | null = null
  /** The method that the client is registered with; null takes both. */
  registeredWith: ClientAuthentication | null = null
  /** The client authentication of each token request. */
  readonly authentications: ClientAuthentication[] = []
  /** Lies by path. */
  readonly lies = new Map<string, Lie>()
  readonly #codes = new AuthorizationCodes()
  readonly #origin: string

  /** @param origin of the server that answers for the issuer */
  constructor (issuer: string, key: CryptoKey, jwk: JWK, origin = issuer) {
    this.issuer = issuer
    this.#origin = origin
    this.key = key
    this.jwk = jwk
    this.metadata = {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      userinfo_endpoint: `${issuer}/userinfo`,
      jwks_uri: `${issuer}/jwks`,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      token_endpoint_auth_methods_supported: ['client_secret_post', 'client_secret_basic'],
      authorization_response_iss_parameter_supported: true
    }
  }

  provider (options: Partial<Omit<OidcProviderOptions, 'clientKey'> & ProviderOptions> = {}): OidcProvider {
    return new OidcProvider({
      name: 'fake',
      discoveryUrl: `${this.issuer}/.well-known/openid-configuration`,
      clientId: this.clientId,
      clientSecret: this.clientSecret,
      allowInsecureRequests: true,
      ...options
    })
  }

  /** Takes requests for the issuer to the server, and lets no other host be asked: for the option `fetch`. */
  readonly fetch: typeof fetch = async (input, init) => {
    const { origin, pathname, search } = new URL(input instanceof Request ? input.url : input)
    if (origin !== this.issuer) throw new Error(`the provider has nothing at ${origin}`)
    return fetch(this.#origin + pathname + search, init)
  }

  /** Signs with a new key from now on, and publishes nothing else. */
  async rotateKey (kid: string): Promise<void> {
    const { privateKey, jwk } = await signingKey(kid)
    this.key = privateKey
    this.jwk = { ...jwk, alg: 'RS256' }
  }

  /** What the person's browser brings back after he consented: path and query of the callback. */
  consent (authorizationUrl: string, changes: Record<string, string | null> = {}): string {
    const request = new URL(authorizationUrl).searchParams
    const callback = new URL(request.get('redirect_uri') ?? '')
    const parameters = { code: this.#codes.issue(request), state: request.get('state'), iss: this.issuer, ...changes }
    for (const [name, value] of Object.entries(parameters)) {
      if (value !== null) callback.searchParams.set(name, value)
    }
    return callback.pathname + callback.search
  }

  async signedIdToken (payload: JWTPayload, header: { alg: string, kid?: string } = { alg: 'RS256', kid: this.jwk.kid ?? '' }): Promise<string> {
    return new SignJWT(payload).setProtectedHeader(header).sign(this.key)
  }

  async answer (request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url?.split('?', 1)[0] ?? ''
    this.requests.push(`${request.method} ${path}`)
    const honest = json(...await this.#honest(path, request))
    const answer = await this.lies.get(path)?.(honest, response) ?? honest
    if (answer === 'handled') return
    response.writeHead(answer.status, answer.headers).end(answer.body)
  }

  async #honest (path: string, request: IncomingMessage): Promise<[status: number, body: unknown]> {
    if (path === '/.well-known/openid-configuration') return [200, this.metadata]
    if (path === '/jwks') return [200, { keys: [this.jwk] }]
    if (path === '/userinfo') {
      return request.headers.authorization === 'Bearer the-access-token'
        ? [
            200,
            { ...this.profile, ...this.userinfo }
          ]
        : [401, { error: 'invalid_token' }]
    }
    if (path === '/token') return this.#token(request)
    return [404, { error: 'not_found' }]
  }

  async #token (request: IncomingMessage): Promise<[status: number, body: unknown]> {
    const { method = '', headers } = request
    const authentication = headers.authorization === undefined ? 'client_secret_post' : 'client_secret_basic'
    this.authentications.push(authentication)
    if (this.registeredWith !== null && authentication !== this.registeredWith) {
      return [401, { error: 'invalid_client', error_description: `the client is registered with ${this.registeredWith}` }]
    }
    const authorization = this.#codes.redeem({ method, headers, form: await formOf(request) }, this)
    if (authorization === 'unknown client' || authorization === 'no secret' || authorization === 'wrong secret') {
      return [401, { error: 'invalid_client', error_description: 'wrong client id or secret' }]
    }
    if (typeof authorization === 'string' || authorization.challenge === null) {
      return [
        400,
        { error: 'invalid_grant', error_description: 'the code is\r\nwrong' }
      ]
    }
    const now = Math.floor(Date.now() / 1000)
    const payload = { iss: this.issuer, aud: this.clientId, iat: now, exp: now + 600, nonce: authorization.nonce, ...this.profile, ...this.idTokenClaims }
    const idToken = await (this.forgeIdToken ?? (payload => this.signedIdToken(payload)))(payload)
    return [
      200,
      {
        access_token: 'the-access-token',
        token_type: 'Bearer',
        expires_in: 600,
        scope: 'openid',
        refresh_token: 'the-refresh-token',
        id_token: idToken
      }
    ]
  }
}

/** @param issuer where it says that it is, for clients that go through its `fetch`; default where it listens */
export async function startFakeOpenIdProvider (t: Test, issuer?: string): Promise<FakeOpenIdProvider> {
  const server = createServer()
  const origin = `http://127.0.0.1:${await listen(t, server)}`
  const { privateKey, jwk } = await signingKey('key-1')
  const fake = new FakeOpenIdProvider(issuer ?? origin, privateKey, { ...jwk, alg: 'RS256' }, origin)
  server.on('request', (request, response) => { fake.answer(request, response) })
  return fake
}
