import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import type { LightMyRequestResponse } from 'fastify'
import { type CryptoKey, type JWK, SignJWT, exportJWK, generateKeyPair } from 'jose'
import { OidcProvider, type OidcProviderOptions } from '../providers/oidc.js'
import type { ProviderOptions } from '../providers/provider.js'
import { cookiesAfter } from './cookies.js'
import type { SignedInHeaders, TestedApp } from './signed-in.js'

/** What the provider says about the user: the claims of the ID token. */
export interface ProviderUser {
  /** The provider's identifier of the user. */
  sub: string
  /** Left out: a provider that tells no e-mail. */
  email?: string
  /** False: an address that anyone can have typed. */
  email_verified?: boolean
  /** What the user is called. */
  name?: string
  /** Any other claim. */
  [claim: string]: unknown
}

/**
 * What goes wrong at the provider. The user declines (`access_denied`). The provider drops every
 * connection of the application (`down`), never answers it (`slow`) or answers it 500
 * (`server_error`). The ID token is signed by another key (`wrong_signature`), for another sign-in
 * (`wrong_nonce`) or too old (`expired`).
 */
export type ProviderFault =
  'access_denied' | 'down' | 'slow' | 'server_error' | 'wrong_signature' | 'wrong_nonce' | 'expired'

/** What {@link startProvider} takes. */
export interface TestProviderOptions {
  /** The name of the provider, which is in the paths of its routes; default `test`. */
  name?: string | undefined
  /** The user who signs in; default Ada, with a verified e-mail. */
  user?: ProviderUser | undefined
}

/** What {@link TestProvider.signIn} takes. */
export interface ProviderSignInOptions {
  /** The page to end on. */
  next?: string | undefined
  /** Headers of each request to the application, such as a cookie that the browser has already. */
  headers?: Record<string, string> | undefined
}

/** How a sign-in through the provider ended. */
export interface ProviderSignIn {
  /** The last answer of the application: of the callback, or of the login when that failed. */
  response: LightMyRequestResponse
  /** The headers of the next request by this browser. */
  headers: SignedInHeaders
}

/** What {@link TestProvider.settings} has. */
export type ProviderSettings = Record<'name' | 'discoveryUrl' | 'clientId' | 'clientSecret', string> &
  Record<'allowInsecureRequests', boolean>

const CLIENT_ID = 'the-application'
const KEY_ID = 'test'
const HOUR_S = 3600
const ACCESS_TOKEN = 'the access token of the test provider'

/** What a code is good for, once. */
type Grant = Record<'redirectUri' | 'challenge' | 'nonce', string | null>

type Answer = [status: number, body: unknown]

/** The key that is published and signs, and one that is published nowhere. */
interface Keys {
  published: JWK
  signing: CryptoKey
  unknown: CryptoKey
}

/** An OpenID provider on this machine, whose user says yes to every sign-in. */
export class TestProvider {
  /** Its address, and the claim `iss`. */
  readonly issuer: string
  /** Where it publishes its metadata. */
  readonly discoveryUrl: string
  /** In the paths of the application's routes. */
  readonly name: string
  /** The user who signs in next. */
  user: ProviderUser
  /** What goes wrong from now on; null for nothing. */
  fault: ProviderFault | null = null

  readonly #server: Server
  readonly #keys: Keys
  readonly #clientSecret = randomBytes(32).toString('base64url')
  readonly #grants = new Map<string, Grant>()

  /** @hidden */
  constructor (server: Server, keys: Keys, { name = 'test', user }: TestProviderOptions) {
    const { port } = Object(server.address())
    this.#server = server
    this.#keys = keys
    this.name = name
    this.issuer = `http://127.0.0.1:${port}`
    this.discoveryUrl = `${this.issuer}/.well-known/openid-configuration`
    this.user = user ?? { sub: '1', email: 'ada@example.com', email_verified: true, name: 'Ada' }
    server.on('request', (request, response) => { this.#answer(request, response) })
  }

  /** The options of an `OidcProvider`, as plain data: for applications in other processes. */
  get settings (): ProviderSettings {
    return {
      name: this.name,
      discoveryUrl: this.discoveryUrl,
      clientId: CLIENT_ID,
      clientSecret: this.#clientSecret,
      allowInsecureRequests: true
    }
  }

  /** Makes the object for the application's option `providers`; `options` replace the defaults. */
  provider (options: Partial<Omit<OidcProviderOptions, 'clientKey'> & ProviderOptions> = {}): OidcProvider {
    return new OidcProvider({ ...this.settings, ...options })
  }

  /**
   * Signs the user in at an application as a browser does: login, provider, callback.
   *
   * @throws OptionsError when the application has no provider of this name
   */
  async signIn (app: TestedApp, { next, headers = {} }: ProviderSignInOptions = {}): Promise<ProviderSignIn> {
    await app.ready()
    const loginUrl = app.auth.signInUrl(this.name, { ...(next !== undefined && { next }) })
    const login = await visit(app, loginUrl, { accept: 'text/html', ...headers })
    const { location } = login.response.headers
    if (typeof location !== 'string' || !location.startsWith(`${this.issuer}/`)) return login
    const { pathname, search } = this.authorize(location)
    return visit(app, pathname + search, login.headers)
  }

  /**
   * Answers an authorization request, as the user decides.
   *
   * @param authorizationUrl where the application redirects the browser
   * @returns the URL of the application's callback
   */
  authorize (authorizationUrl: string): URL {
    const query = new URL(authorizationUrl).searchParams
    const callback = new URL(String(query.get('redirect_uri')))
    const code = randomUUID()
    this.#grants.set(code, {
      redirectUri: query.get('redirect_uri'),
      challenge: query.get('code_challenge'),
      nonce: query.get('nonce')
    })
    callback.search = new URLSearchParams({
      ...(this.fault === 'access_denied' ? { error: 'access_denied' } : { code }),
      state: query.get('state') ?? '',
      iss: this.issuer
    }).toString()
    return callback
  }

  /** Stops the provider, with every connection to it. */
  async close (): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close')
  }

  async #answer (request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(String(request.url), this.issuer)
    if (pathname === '/authorize') {
      response.writeHead(302, { location: this.authorize(this.issuer + request.url).href }).end()
    } else if (this.fault === 'down') {
      request.socket.destroy()
    } else if (this.fault !== 'slow') {
      const [status, body] = this.fault === 'server_error' ? [500, {}] : await this.#answerTo(pathname, request)
      response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
      response.end(JSON.stringify(body))
    }
  }

  async #answerTo (path: string, request: IncomingMessage): Promise<Answer> {
    switch (path) {
      case '/.well-known/openid-configuration': return [200, metadataOf(this.issuer)]
      case '/jwks': return [200, { keys: [this.#keys.published] }]
      case '/token': return this.#redeem(request)
      case '/userinfo': return this.#userinfo(request)
      default: return [404, { error: 'not_found' }]
    }
  }

  #userinfo ({ headers }: IncomingMessage): Answer {
    return headers.authorization === `Bearer ${ACCESS_TOKEN}` ? [200, this.user] : [401, { error: 'invalid_token' }]
  }

  /** The token request (RFC 6749 section 4.1.3, RFC 7636 section 4.6). */
  async #redeem (request: IncomingMessage): Promise<Answer> {
    const form = new URLSearchParams(await text(request))
    const isClient = form.get('client_id') === CLIENT_ID && form.get('client_secret') === this.#clientSecret
    if (!isClient) return [401, { error: 'invalid_client' }]
    const code = String(form.get('code'))
    const grant = this.#grants.get(code)
    this.#grants.delete(code)
    const challenge = createHash('sha256').update(String(form.get('code_verifier'))).digest('base64url')
    if (grant?.redirectUri !== form.get('redirect_uri') || grant.challenge !== challenge) {
      return [400, { error: 'invalid_grant' }]
    }
    const idToken = await this.#idToken(grant.nonce)
    return [200, { access_token: ACCESS_TOKEN, token_type: 'Bearer', expires_in: HOUR_S, id_token: idToken }]
  }

  async #idToken (nonce: string | null): Promise<string> {
    const now = Math.floor(Date.now() / 1000)
    const issuedAt = this.fault === 'expired' ? now - 2 * HOUR_S : now
    const { signing, unknown } = this.#keys
    return new SignJWT({ ...this.user, nonce: this.fault === 'wrong_nonce' ? 'another' : nonce })
      .setProtectedHeader({ alg: 'ES256', kid: KEY_ID })
      .setIssuer(this.issuer)
      .setAudience(CLIENT_ID)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + HOUR_S)
      .sign(this.fault === 'wrong_signature' ? unknown : signing)
  }
}

/**
 * Starts an OpenID provider on a free port of 127.0.0.1, for the tests of an application. It checks
 * client, redirect URI, code and PKCE. It asks its user nothing: a browser comes straight back.
 *
 * @example
 * ```ts
 * const google = await startProvider({ name: 'google' })
 * await app.register(authPlugin, { baseUrl, providers: [google.provider()] })
 * const { headers } = await google.signIn(app)
 * ```
 */
export async function startProvider (options: TestProviderOptions = {}): Promise<TestProvider> {
  const [pair, other] = await Promise.all([generateKeyPair('ES256'), generateKeyPair('ES256')])
  const published = { ...await exportJWK(pair.publicKey), kid: KEY_ID, alg: 'ES256', use: 'sig' }
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  return new TestProvider(server, { published, signing: pair.privateKey, unknown: other.privateKey }, options)
}

function metadataOf (issuer: string): Record<string, unknown> {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    userinfo_endpoint: `${issuer}/userinfo`,
    jwks_uri: `${issuer}/jwks`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
    token_endpoint_auth_methods_supported: ['client_secret_post'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true
  }
}

/** Opens a page of the application, and keeps its cookies. */
async function visit (app: TestedApp, url: string, headers: Record<string, string>): Promise<ProviderSignIn> {
  const response = await app.inject({ url, headers })
  return { response, headers: { ...headers, cookie: cookiesAfter(response, headers.cookie) } }
}
