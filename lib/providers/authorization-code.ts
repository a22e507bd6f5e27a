import { createHash } from 'node:crypto'
import * as oauth from 'oauth4webapi'
import { type Complete, withoutUndefined } from '../base/defaults.js'
import { type BackChannel, type BackChannelOptions, backChannel } from './back-channel.js'
import { ClientCredentials } from './client-authentication.js'
import { unacceptable } from './failures.js'
import type {
  AuthorizationRequest, AuthorizationResponse, ClientAuthentication, ProviderOptions, ProviderTokens
} from './provider.js'

/** Seconds by which the provider's clock may differ. */
export const CLOCK_TOLERANCE = 30

export interface AuthorizationCodeFlowOptions extends Complete<ProviderOptions>, BackChannelOptions {
  /** The only method to use; default: chosen by the metadata, with a retry. */
  clientAuthentication?: ClientAuthentication | undefined
}

/**
 * Runs the part of the authorization code flow (RFC 6749 section 4.1) with PKCE (RFC 7636) that
 * OpenID Connect and plain OAuth 2.0 have in common.
 */
export class AuthorizationCodeFlow {
  readonly client: oauth.Client
  readonly http: BackChannel
  readonly scopes: readonly string[]
  readonly #credentials: ClientCredentials
  readonly #authorizationParams: Readonly<Record<string, string>>

  constructor (options: AuthorizationCodeFlowOptions) {
    const { clientId, clientSecret, clientAuthentication, scopes, authorizationParams, ...transport } = options
    this.client = { client_id: clientId, [oauth.clockTolerance]: CLOCK_TOLERANCE }
    this.http = backChannel(transport)
    this.scopes = scopes
    this.#credentials = new ClientCredentials(clientId, clientSecret, clientAuthentication)
    this.#authorizationParams = authorizationParams
  }

  /** Returns what a provider may quote of the token request in an error, and no log must show. */
  secretsOf ({ parameters, codeVerifier }: AuthorizationResponse): string[] {
    return [...this.#credentials.secrets, codeVerifier, ...parameters.getAll('code')]
  }

  /** Builds the authorization request (RFC 6749 section 4.1.1). */
  authorizationUrl (
    server: oauth.AuthorizationServer, request: AuthorizationRequest, extra: Record<string, string> = {}
  ): URL {
    const { redirectUri, state, codeVerifier, loginHint, prompt, maxAge, scopes = [] } = request
    const url = new URL(String(server.authorization_endpoint))
    const scope = [...new Set([...this.scopes, ...scopes])].join(' ')
    const parameters = {
      ...this.#authorizationParams,
      ...withoutUndefined({ login_hint: loginHint, prompt, max_age: maxAge?.toString() }),
      ...extra,
      client_id: this.client.client_id,
      redirect_uri: redirectUri,
      response_type: 'code',
      ...(scope !== '' && { scope }),
      state,
      // Sent whatever the metadata say: a server that does not support PKCE ignores it (RFC 7636
      // section 4.2).
      code_challenge: createHash('sha256').update(codeVerifier).digest('base64url'),
      code_challenge_method: 'S256'
    }
    for (const [parameter, value] of Object.entries(parameters)) url.searchParams.set(parameter, value)
    return url
  }

  /** Validates the authorization response and sends the token request (RFC 6749 section 4.1.3). */
  async redeem (server: oauth.AuthorizationServer, response: AuthorizationResponse): Promise<Response> {
    const { parameters, state, redirectUri, codeVerifier } = response
    // oauth4webapi ignores an empty iss when the metadata do not announce one.
    if (parameters.get('iss') === '') throw unacceptable('the authorization response has an empty iss')
    const validated = oauth.validateAuthResponse(server, this.client, parameters, state)
    return this.#credentials.authenticate(server, async authentication => oauth.authorizationCodeGrantRequest(
      server, this.client, authentication, validated, redirectUri, codeVerifier, this.http))
  }
}

/** Refuses the token types that oauth4webapi accepts besides Bearer (RFC 6749 section 7.1). */
export const RECOGNIZED_TOKEN_TYPES: oauth.RecognizedTokenTypes = {
  dpop: () => { throw unacceptable('the access token is bound to a key (DPoP), which was not requested') }
}

/** Names the parameters of a token response as {@link ProviderTokens} does. */
export function tokensOf (response: oauth.TokenEndpointResponse): ProviderTokens {
  return withoutUndefined({
    accessToken: response.access_token,
    refreshToken: response.refresh_token,
    idToken: response.id_token,
    expiresIn: response.expires_in,
    scope: response.scope
  })
}
