import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import { type AddressInfo } from 'node:net'
import { type CryptoKey, type JWK, type JWTPayload, SignJWT, exportJWK, generateKeyPair } from 'jose'
import type { Test } from 'tap'
import { OidcProvider, type OidcProviderOptions } from '../../lib/index.js'
import { type Lie, json } from './lies.js'
import { credentialsOf } from './stand-in.js'

interface Code {
  challenge: string
  nonce: string
  redirectUri: string
}

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
  readonly key: CryptoKey
  readonly jwk: JWK
  metadata: Record<string, unknown>
  profile: Record<string, unknown> = { sub: 'ada', email: 'ada@example.com', email_verified: true, name: 'Ada', picture: 'https://id.example/ada.png' }
  userinfo: Record<string, unknown> = {}
  /** Changes the payload of the ID token; a member set to undefined is left out. */
  idTokenClaims: Record<string, unknown> = {}
  /** Makes the ID token in place of the provider. */
  forgeIdToken: ((payload: JWTPayload) => string | Promise<string>) | null = null
  /** Lies by path. */
  readonly lies = new Map<string, Lie>()
  readonly #codes = new Map<string, Code>()

  constructor (issuer: string, key: CryptoKey, jwk: JWK) {
    this.issuer = issuer
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

  provider (options: Partial<OidcProviderOptions> = {}): OidcProvider {
    return new OidcProvider({
      name: 'fake',
      discoveryUrl: `${this.issuer}/.well-known/openid-configuration`,
      clientId: this.clientId,
      clientSecret: this.clientSecret,
      allowInsecureRequests: true,
      ...options
    })
  }

  /** What the person's browser brings back after he consented: path and query of the callback. */
  consent (authorizationUrl: string, changes: Record<string, string | null> = {}): string {
    const request = new URL(authorizationUrl).searchParams
    const code = randomBytes(16).toString('base64url')
    const redirectUri = request.get('redirect_uri') ?? ''
    this.#codes.set(code, { challenge: request.get('code_challenge') ?? '', nonce: request.get('nonce') ?? '', redirectUri })
    const callback = new URL(redirectUri)
    const parameters = { code, state: request.get('state'), iss: this.issuer, ...changes }
    for (const [name, value] of Object.entries(parameters)) {
      if (value !== null) callback.searchParams.set(name, value)
    }
    return callback.pathname + callback.search
  }

  async signedIdToken (payload: JWTPayload, header: { alg: string, kid?: string } = { alg: 'RS256', kid: 'key-1' }): Promise<string> {
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
    if (path === '/userinfo') return request.headers.authorization === 'Bearer the-access-token' ? [200, { ...this.profile, ...this.userinfo }] : [401, { error: 'invalid_token' }]
    if (path === '/token') return this.#token(request)
    return [404, { error: 'not_found' }]
  }

  async #token (request: IncomingMessage): Promise<[status: number, body: unknown]> {
    const form = new URLSearchParams(await textOf(request))
    const [id, secret] = credentialsOf(request.headers, form)
    if (id !== this.clientId || secret !== this.clientSecret) return [401, { error: 'invalid_client', error_description: 'wrong client id or secret' }]
    const code = this.#codes.get(form.get('code') ?? '')
    this.#codes.delete(form.get('code') ?? '')
    const challenge = createHash('sha256').update(form.get('code_verifier') ?? '').digest('base64url')
    if (code === undefined || code.redirectUri !== form.get('redirect_uri') || code.challenge !== challenge) {
      return [400, { error: 'invalid_grant', error_description: 'the code is\r\nwrong' }]
    }
    const now = Math.floor(Date.now() / 1000)
    const payload = { iss: this.issuer, aud: this.clientId, iat: now, exp: now + 600, nonce: code.nonce, ...this.profile, ...this.idTokenClaims }
    const idToken = await (this.forgeIdToken ?? (payload => this.signedIdToken(payload)))(payload)
    return [200, { access_token: 'the-access-token', token_type: 'Bearer', expires_in: 600, scope: 'openid', refresh_token: 'the-refresh-token', id_token: idToken }]
  }
}

/** One pair for all the providers of a test file: making one takes longer than most tests. */
const keyPair = generateKeyPair('RS256', { extractable: true })

export async function startFakeOpenIdProvider (t: Test): Promise<FakeOpenIdProvider> {
  const { publicKey, privateKey } = await keyPair
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => { server.close(); server.closeAllConnections(); await once(server, 'close') })
  const jwk = { ...await exportJWK(publicKey), kid: 'key-1', alg: 'RS256', use: 'sig' }
  const fake = new FakeOpenIdProvider(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, privateKey, jwk)
  server.on('request', (request, response) => { fake.answer(request, response) })
  return fake
}

async function textOf (request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}
