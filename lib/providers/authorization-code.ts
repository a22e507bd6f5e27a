import { createHash } from 'node:crypto'
import * as oauth from 'oauth4webapi'
import type { AuthenticationContext } from '../authentication.js'
import { type Complete, withoutUndefined } from '../base/defaults.js'
import { type BackChannel, type BackChannelOptions, backChannel } from './back-channel.js'
import { ClientCredentials, type ClientOptions } from './client-authentication.js'
import { demandsOf } from './demands.js'
import { failedAt, providerFailure, unacceptable } from './failures.js'
import { checkedIdentity } from './identity.js'
import type {
  Authentication, AuthorizationRequest, AuthorizationResponse, ProviderOptions, UncheckedIdentity
} from './provider.js'

export interface FlowOptions
  extends Complete<Omit<ProviderOptions, 'clientSecret' | 'label' | 'icon'>>, ClientOptions, BackChannelOptions {
  withoutPkce: boolean
}

/** The steps of the authorization code flow (RFC 6749 section 4.1) with PKCE (RFC 7636). */
export abstract class AuthorizationCodeFlow<Options extends FlowOptions = FlowOptions> {
  protected readonly options: Options
  protected readonly client: oauth.Client
  protected readonly http: BackChannel
  protected readonly credentials: ClientCredentials

  constructor (options: Options) {
    this.options = options
    this.client = { client_id: options.clientId }
    this.http = backChannel(options)
    this.credentials = new ClientCredentials(options)
  }

  /** Returns the metadata: the same object each time, by which oauth4webapi caches the keys. */
  protected abstract server (): Promise<oauth.AuthorizationServer>

  /** Reads the user whom the tokens are about. */
  protected abstract userOf (
    tokens: oauth.TokenEndpointResponse, server: oauth.AuthorizationServer, response: AuthorizationResponse
  ): Promise<{ identity: UncheckedIdentity, signed?: AuthenticationContext }>

  /** Builds the authorization request (RFC 6749 section 4.1.1). */
  async authorizationUrl (request: AuthorizationRequest): Promise<URL> {
    const { redirectUri, state, codeVerifier, loginHint, scopes = [] } = request
    const { prompt, maxAge, acrValues } = demandsOf(this.options.authorizationParams, request)
    const { authorization_endpoint: endpoint } = await this.server()
    const url = new URL(String(endpoint))
    const scope = [...new Set([...this.options.scopes, ...scopes])].join(' ')
    const parameters = {
      ...this.options.authorizationParams,
      ...withoutUndefined({
        login_hint: loginHint, prompt, max_age: maxAge?.toString(), acr_values: acrValues?.join(' ')
      }),
      client_id: this.client.client_id,
      redirect_uri: redirectUri,
      response_type: 'code',
      ...(scope !== '' && { scope }),
      state,
      // Sent whatever the metadata say: a server that does not support PKCE ignores it (RFC 7636
      // section 4.2).
      ...(!this.options.withoutPkce && {
        code_challenge: createHash('sha256').update(codeVerifier).digest('base64url'),
        code_challenge_method: 'S256'
      })
    }
    for (const [parameter, value] of Object.entries(parameters)) url.searchParams.set(parameter, value)
    return url
  }

  /** Validates the authorization response, and sends the token request (RFC 6749 section 4.1.3). */
  async authenticate (response: AuthorizationResponse): Promise<Authentication> {
    const { parameters, state, redirectUri, codeVerifier } = response
    const sent = [codeVerifier, ...parameters.getAll('code')]
    try {
      const server = await this.server()
      // oauth4webapi ignores an empty iss when the metadata do not announce one.
      if (parameters.get('iss') === '') throw unacceptable('the authorization response has an empty iss')
      const validated = oauth.validateAuthResponse(server, this.client, parameters, state)
      const verifier = this.options.withoutPkce ? oauth.nopkce : codeVerifier
      const atEndpoint = failedAt(server.token_endpoint)
      const tokenResponse = await this.credentials.authenticate(server, sent, async authentication =>
        oauth.authorizationCodeGrantRequest(
          server, this.client, authentication, validated, redirectUri, verifier, this.http)).catch(atEndpoint)
      const tokens = await this.tokensIn(tokenResponse, server, response).catch(atEndpoint)
      sent.push(tokens.access_token)
      const { identity, ...signed } = await this.userOf(tokens, server, response)
      const { logoutHint } = identity
      return { identity: checkedIdentity(identity), tokens: providerTokens(tokens), ...signed, logoutHint }
    } catch (error) {
      throw providerFailure(error, sent)
    }
  }

  /** Validates the token response (RFC 6749 section 5.1). */
  protected async tokensIn (
    tokenResponse: Response,
    server: oauth.AuthorizationServer,
    _response: AuthorizationResponse,
    checks: oauth.ProcessAuthorizationCodeResponseOptions = {}
  ): Promise<oauth.TokenEndpointResponse> {
    return oauth.processAuthorizationCodeResponse(server, this.client, tokenResponse, {
      ...checks,
      // oauth4webapi accepts this type besides Bearer.
      recognizedTokenTypes: {
        dpop: () => { throw unacceptable('the access token is bound to a key (DPoP), which was not requested') }
      }
    })
  }
}

function providerTokens (response: oauth.TokenEndpointResponse): Authentication['tokens'] {
  return withoutUndefined({
    accessToken: response.access_token,
    refreshToken: response.refresh_token,
    idToken: response.id_token,
    expiresIn: response.expires_in,
    scope: response.scope
  })
}
