import { createHash } from 'node:crypto'
import * as oauth from 'oauth4webapi'
import { type BackChannel, type BackChannelOptions, backChannel } from './back-channel.js'
import { unacceptable } from './failures.js'
import type { AuthorizationRequest, AuthorizationResponse, ProviderOptions, ProviderTokens } from './provider.js'

/** Seconds by which the provider's clock may be off. */
export const CLOCK_TOLERANCE = 30

/** The authorization code flow (RFC 6749 section 4.1) with PKCE (RFC 7636): what OpenID Connect and plain OAuth 2.0 have in common. */
export class AuthorizationCodeFlow {
  readonly client: oauth.Client
  readonly http: BackChannel
  readonly scopes: readonly string[]
  readonly #clientSecret: string
  readonly #authorizationParams: Readonly<Record<string, string>>

  constructor ({ clientId, clientSecret, scopes, authorizationParams, ...transport }: Required<ProviderOptions> & BackChannelOptions) {
    this.client = { client_id: clientId, [oauth.clockTolerance]: CLOCK_TOLERANCE }
    this.http = backChannel(transport)
    this.scopes = scopes
    this.#clientSecret = clientSecret
    this.#authorizationParams = authorizationParams
  }

  /** What is sent to the provider and must not come back into the log. */
  secretsOf ({ parameters, codeVerifier }: AuthorizationResponse): string[] {
    return [this.#clientSecret, codeVerifier, ...parameters.getAll('code')]
  }

  /** The authorization request (RFC 6749 section 4.1.1). */
  authorizationUrl (server: oauth.AuthorizationServer, { redirectUri, state, codeVerifier }: AuthorizationRequest, extra: Record<string, string> = {}): URL {
    const url = new URL(String(server.authorization_endpoint))
    const parameters = {
      ...this.#authorizationParams,
      ...extra,
      client_id: this.client.client_id,
      redirect_uri: redirectUri,
      response_type: 'code',
      ...(this.scopes.length > 0 && { scope: this.scopes.join(' ') }),
      state,
      // RFC 7636 section 4.2; whatever the metadata say: a server that does not know PKCE ignores it.
      code_challenge: createHash('sha256').update(codeVerifier).digest('base64url'),
      code_challenge_method: 'S256'
    }
    for (const [parameter, value] of Object.entries(parameters)) url.searchParams.set(parameter, value)
    return url
  }

  /** The authorization response with its checks, and the token request for its code (RFC 6749 section 4.1.3). */
  async redeem (server: oauth.AuthorizationServer, response: AuthorizationResponse): Promise<Response> {
    const parameters = validatedResponse(server, this.client, response)
    const { redirectUri, codeVerifier } = response
    const authentication = clientAuthentication(server, this.#clientSecret)
    return oauth.authorizationCodeGrantRequest(server, this.client, authentication, parameters, redirectUri, codeVerifier, this.http)
  }
}

/** Types of access tokens that oauth4webapi takes and that cannot be used as Bearer tokens (RFC 6749 section 7.1). */
export const RECOGNIZED_TOKEN_TYPES: oauth.RecognizedTokenTypes = {
  dpop: () => { throw unacceptable('the access token is bound to a key (DPoP), which nobody asked for') }
}

export function tokensOf (response: oauth.TokenEndpointResponse): ProviderTokens {
  const { access_token: accessToken, refresh_token: refreshToken, id_token: idToken, expires_in: expiresIn, scope } = response
  return {
    accessToken,
    ...(refreshToken !== undefined && { refreshToken }),
    ...(idToken !== undefined && { idToken }),
    ...(expiresIn !== undefined && { expiresIn }),
    ...(scope !== undefined && { scope })
  }
}

/** State, `iss` (RFC 9207), error. */
function validatedResponse (server: oauth.AuthorizationServer, client: oauth.Client, { parameters, state }: AuthorizationResponse): URLSearchParams {
  if (parameters.has('iss') && parameters.get('iss') === '') throw unacceptable('the authorization response has an empty iss')
  // An error response without iss carries no code that could leak; some providers leave it out there.
  const isPlainError = parameters.has('error') && !parameters.has('iss')
  const expected = isPlainError ? { ...server, authorization_response_iss_parameter_supported: false } : server
  return oauth.validateAuthResponse(expected, client, parameters, state)
}

/** In the body where the provider takes it: RFC 6749 encodes a Basic id and secret in a way that some servers do not undo. */
function clientAuthentication (server: oauth.AuthorizationServer, secret: string): oauth.ClientAuth {
  const takesPost = server.token_endpoint_auth_methods_supported?.includes('client_secret_post') === true
  return takesPost ? oauth.ClientSecretPost(secret) : oauth.ClientSecretBasic(secret)
}
