import * as oauth from 'oauth4webapi'
import { type IdentityClaims, isText, isVerified } from '../claims.js'
import { AuthError, OptionsError } from '../errors.js'
import { type BackChannel, backChannel, providerFailure } from './back-channel.js'
import type { AuthorizationRequest, AuthorizationResponse, ExternalProvider, Identity, ProviderOptions, ProviderTokens } from './provider.js'
import { checkedProviderOptions } from './provider-options.js'

export interface OidcProviderOptions extends ProviderOptions {
  /** The URL segment of the provider's routes. */
  name: string
  /** The URL of the provider's `/.well-known/openid-configuration` document. */
  discoveryUrl: string
  /** Permits plain http, for development servers on this machine only; default false. */
  allowInsecureRequests?: boolean
}

const WELL_KNOWN = /\/\.well-known\/openid-configuration\/?$/

/** Seconds by which the provider's clock may be off. */
const CLOCK_TOLERANCE = 30

/** What a provider may say about a user, by the scope that asks for it (OpenID Connect Core 5.4). */
const CLAIMS_OF_SCOPE: Readonly<Record<string, readonly string[]>> = { email: ['email'], profile: ['name', 'picture'] }

/**
 * Any provider that publishes a discovery document (OpenID Connect Discovery 1.0): authorization code flow with PKCE, state and nonce.
 *
 * @example
 * ```ts
 * new OidcProvider({ name: 'keycloak', discoveryUrl: 'https://id.example/realms/main/.well-known/openid-configuration', clientId, clientSecret })
 * ```
 */
export class OidcProvider implements ExternalProvider {
  readonly name: string
  /** What is asked for its document: the issuer, and perhaps a query. */
  readonly #discoveryTarget: URL
  readonly #client: oauth.Client
  readonly #clientSecret: string
  readonly #scopes: readonly string[]
  readonly #authorizationParams: Readonly<Record<string, string>>
  readonly #http: BackChannel
  #metadata: Promise<oauth.AuthorizationServer> | undefined

  /** @throws OptionsError naming the option */
  constructor (options: OidcProviderOptions) {
    const { discoveryUrl, allowInsecureRequests = false, ...common } = options
    const { name, clientId, clientSecret, scopes, authorizationParams, timeout, fetch } = checkedProviderOptions(common, ['openid', 'email', 'profile'])
    if (!scopes.includes('openid')) throw new OptionsError(`${name}: scopes must contain "openid"`)
    if (typeof allowInsecureRequests !== 'boolean') throw new OptionsError(`${name}: allowInsecureRequests must be true or false`)

    this.name = name
    this.#discoveryTarget = discoveryTarget(discoveryUrl, allowInsecureRequests, name)
    this.#client = { client_id: clientId, [oauth.clockTolerance]: CLOCK_TOLERANCE }
    this.#clientSecret = clientSecret
    this.#scopes = scopes
    this.#authorizationParams = authorizationParams
    this.#http = backChannel({ timeout, fetch, allowInsecureRequests })
  }

  async authorizationUrl ({ redirectUri, state, nonce, codeVerifier }: AuthorizationRequest): Promise<URL> {
    try {
      const url = authorizationEndpoint(await this.#discover(), this.#http[oauth.allowInsecureRequests])
      const parameters = {
        ...this.#authorizationParams,
        client_id: this.#client.client_id,
        redirect_uri: redirectUri,
        response_type: 'code',
        scope: this.#scopes.join(' '),
        state,
        nonce,
        code_challenge: await oauth.calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: 'S256'
      }
      for (const [parameter, value] of Object.entries(parameters)) url.searchParams.set(parameter, value)
      return url
    } catch (error) {
      throw providerFailure(error)
    }
  }

  async authenticate (response: AuthorizationResponse): Promise<{ identity: Identity, tokens: ProviderTokens }> {
    try {
      const server = await this.#discover()
      const parameters = validatedResponse(server, this.#client, response)
      const tokens = await this.#redeem(server, parameters, response)
      const idToken = oauth.getValidatedIdTokenClaims(tokens)
      // An ID token was required, so there is one.
      if (idToken === undefined || !isAcceptable(idToken, this.#client)) {
        throw new AuthError('provider_error', { cause: new Error('the ID token has an azp or an iat that cannot be right') })
      }
      const profile = await this.#withUserinfo(server, tokens.access_token, idToken)
      return { identity: this.identityOf(profile), tokens: tokensOf(tokens) }
    } catch (error) {
      throw providerFailure(error)
    }
  }

  /** Who the claims of ID token and userinfo describe. Override for a provider with claims of its own. */
  protected identityOf (profile: Record<string, unknown> & { sub: string }): Identity {
    const { sub, email, name, picture } = profile
    const emailVerified = isText(email) && isVerified(profile.email_verified)
    const claims: IdentityClaims = {
      sub,
      ...(isText(email) && { email, ...(profile.email_verified !== undefined && { email_verified: emailVerified }) }),
      ...(isText(name) && { name }),
      ...(isText(picture) && { picture })
    }
    return { subject: sub, claims, emailVerified }
  }

  /** Fetched on first use and kept; a failed attempt is not kept. The object stays one: oauth4webapi keeps the provider's keys by it. */
  async #discover (): Promise<oauth.AuthorizationServer> {
    this.#metadata ??= oauth.discoveryRequest(this.#discoveryTarget, this.#http)
      .then(response => oauth.processDiscoveryResponse(withoutQuery(this.#discoveryTarget), response))
    try {
      return await this.#metadata
    } catch (error) {
      this.#metadata = undefined
      throw error
    }
  }

  /** The token request (OpenID Connect Core 3.1.3), with every check of the answer, the signature included. */
  async #redeem (server: oauth.AuthorizationServer, parameters: URLSearchParams, { redirectUri, codeVerifier, nonce }: AuthorizationResponse): Promise<oauth.TokenEndpointResponse> {
    const authentication = clientAuthentication(server, this.#clientSecret)
    const response = await oauth.authorizationCodeGrantRequest(server, this.#client, authentication, parameters, redirectUri, codeVerifier, this.#http)
    const tokens = await oauth.processAuthorizationCodeResponse(server, this.#client, response, { expectedNonce: nonce, requireIdToken: true })
    await oauth.validateApplicationLevelSignature(server, response, this.#http)
    return tokens
  }

  /** Fills in from userinfo what the scopes asked for and the ID token left out; what the signed ID token says stands. */
  async #withUserinfo (server: oauth.AuthorizationServer, accessToken: string, idToken: oauth.IDToken): Promise<Record<string, unknown> & { sub: string }> {
    const wanted = this.#scopes.flatMap(scope => CLAIMS_OF_SCOPE[scope] ?? [])
    const isComplete = wanted.every(claim => idToken[claim] !== undefined)
    if (isComplete || server.userinfo_endpoint === undefined) return idToken

    const response = await oauth.userInfoRequest(server, this.#client, accessToken, this.#http)
    const userinfo = await oauth.processUserInfoResponse(server, this.#client, idToken.sub, response)
    // A signed answer is only as good as its signature.
    if (response.headers.get('content-type')?.includes('jwt')) await oauth.validateApplicationLevelSignature(server, response, this.#http)
    const profile = { ...userinfo, ...idToken }
    // The flag is about the address beside it: one answer's flag never vouches for the other's address.
    const voucher = [idToken, userinfo].find(source => source.email === profile.email && source.email_verified !== undefined)
    return { ...profile, email_verified: voucher?.email_verified }
  }
}

/** Browsers are sent there: nothing but https (http for a development server) will do. */
function authorizationEndpoint ({ authorization_endpoint: endpoint = '' }: oauth.AuthorizationServer, allowInsecureRequests: boolean): URL {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : null
  if (url?.protocol === 'https:' || (allowInsecureRequests && url?.protocol === 'http:')) return url
  throw new AuthError('provider_error', { cause: new Error('the discovery document has no authorization_endpoint with https:') })
}

/** The authorization response: state, `iss` (RFC 9207), error. */
function validatedResponse (server: oauth.AuthorizationServer, client: oauth.Client, { parameters, state }: AuthorizationResponse): URLSearchParams {
  if (parameters.has('iss') && parameters.get('iss') === '') throw new AuthError('provider_error', { cause: new Error('the authorization response has an empty iss') })
  // An error response without iss carries no code that could leak; some providers leave it out there.
  const isPlainError = parameters.has('error') && !parameters.has('iss')
  const expected = isPlainError ? { ...server, authorization_response_iss_parameter_supported: false } : server
  return oauth.validateAuthResponse(expected, client, parameters, state)
}

/** In the body where the provider takes it: RFC 6749 encodes a Basic id and secret in a way that some servers do not undo. */
function clientAuthentication (server: oauth.AuthorizationServer, secret: string): oauth.ClientAuth {
  const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
  return methods.includes('client_secret_post') ? oauth.ClientSecretPost(secret) : oauth.ClientSecretBasic(secret)
}

/** What OpenID Connect Core 3.1.3.7 asks for and oauth4webapi leaves to its caller. */
function isAcceptable ({ azp, iat }: oauth.IDToken, client: oauth.Client): boolean {
  const now = Math.floor(Date.now() / 1000)
  return (azp === undefined || azp === client.client_id) && iat <= now + CLOCK_TOLERANCE
}

function tokensOf (response: oauth.TokenEndpointResponse): ProviderTokens {
  const { access_token: accessToken, refresh_token: refreshToken, id_token: idToken, expires_in: expiresIn, scope } = response
  return {
    accessToken,
    ...(refreshToken !== undefined && { refreshToken }),
    ...(idToken !== undefined && { idToken }),
    ...(expiresIn !== undefined && { expiresIn }),
    ...(scope !== undefined && { scope })
  }
}

/** The issuer is what precedes the well-known path (OpenID Connect Discovery 1.0 section 4). */
function discoveryTarget (discoveryUrl: unknown, allowInsecureRequests: boolean, name: string): URL {
  if (typeof discoveryUrl !== 'string' || !URL.canParse(discoveryUrl)) {
    throw new OptionsError(`${name}: discoveryUrl must be the URL of a /.well-known/openid-configuration document`)
  }
  const url = new URL(discoveryUrl)
  if (url.protocol !== 'https:' && !(allowInsecureRequests && url.protocol === 'http:')) {
    throw new OptionsError(`${name}: discoveryUrl must be an https: URL; for a development server on this machine set allowInsecureRequests`)
  }
  if (!WELL_KNOWN.test(url.pathname)) {
    throw new OptionsError(`${name}: discoveryUrl must end in /.well-known/openid-configuration`)
  }
  url.pathname = url.pathname.replace(WELL_KNOWN, '')
  return url
}

function withoutQuery (url: URL): URL {
  const issuer = new URL(url)
  issuer.search = ''
  return issuer
}
