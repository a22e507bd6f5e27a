import * as oauth from 'oauth4webapi'
import { isVerified } from '../claims.js'
import { OptionsError } from '../errors.js'
import { AuthorizationCodeFlow, RECOGNIZED_TOKEN_TYPES, tokensOf } from './authorization-code.js'
import { type BackChannel, deduplicated } from './back-channel.js'
import { Discovery } from './discovery.js'
import { providerFailure } from './failures.js'
import { acceptedIdToken } from './id-token.js'
import { checkedIdentity, presentClaims } from './identity.js'
import { assertKeyOfIssuer, issuerOfAnswer } from './issuer-template.js'
import type { AuthorizationRequest, AuthorizationResponse, ExternalProvider, Identity, ProviderOptions, ProviderTokens, UncheckedIdentity } from './provider.js'
import { checkedProviderOptions } from './provider-options.js'

export interface OidcProviderOptions extends ProviderOptions {
  /** The URL segment of the provider's routes. */
  name: string
  /** The URL of the provider's `/.well-known/openid-configuration` document. */
  discoveryUrl: string
  /**
   * The issuer that the document must name, where it is not what precedes `/.well-known/` in its URL. `{tenantid}` in it stands for the
   * `tid` of each ID token, as in the documents that Microsoft Entra has for many tenants.
   */
  issuer?: string
  /** Whether to ask the userinfo endpoint for what the scopes ask for and the ID token lacks; default true. */
  userinfo?: boolean
  /** Permits plain http, for development servers on this machine only; default false. */
  allowInsecureRequests?: boolean
}

/** What is known of a person: the claims of the verified ID token, and what userinfo adds to them. */
export type OidcProfile = Record<string, unknown> & { sub: string }

/** What a provider may say about a user, by the scope that asks for it (OpenID Connect Core 5.4). */
const CLAIMS_OF_SCOPE: Readonly<Record<string, readonly string[]>> = { email: ['email', 'email_verified'], profile: ['name', 'picture'] }

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
  readonly #flow: AuthorizationCodeFlow
  readonly #discovery: Discovery
  readonly #usesUserinfo: boolean
  readonly #keysHttp: BackChannel
  #keys: oauth.ExportedJWKSCache = { jwks: { keys: [] }, uat: 0 }

  /** @throws OptionsError naming the option */
  constructor (options: OidcProviderOptions) {
    const { discoveryUrl, issuer, userinfo = true, allowInsecureRequests = false, ...common } = options
    const checked = checkedProviderOptions(common, ['openid', 'email', 'profile'])
    const { name, scopes } = checked
    if (!scopes.includes('openid')) throw new OptionsError(`${name}: scopes must contain "openid"`)
    if (typeof userinfo !== 'boolean') throw new OptionsError(`${name}: userinfo must be true or false`)
    if (typeof allowInsecureRequests !== 'boolean') throw new OptionsError(`${name}: allowInsecureRequests must be true or false`)

    this.name = name
    this.#flow = new AuthorizationCodeFlow({ ...checked, allowInsecureRequests })
    this.#discovery = new Discovery({ name, discoveryUrl, issuer, allowInsecureRequests }, this.#flow.http)
    this.#usesUserinfo = userinfo
    this.#keysHttp = deduplicated(this.#flow.http)
  }

  async authorizationUrl (request: AuthorizationRequest): Promise<URL> {
    try {
      return await this.#flow.authorizationUrl(await this.#discovery.metadata(), request, { nonce: request.nonce })
    } catch (error) {
      throw providerFailure(error)
    }
  }

  async authenticate (response: AuthorizationResponse): Promise<{ identity: Identity, tokens: ProviderTokens }> {
    const sent = this.#flow.secretsOf(response)
    try {
      const server = await this.#discovery.metadata()
      const tokens = await this.#tokens(server, response)
      sent.push(tokens.access_token)
      const { sub, ...claims } = acceptedIdToken(tokens, this.#flow.client)
      // What is as good as absent must not keep userinfo from saying it.
      const idToken = { ...presentClaims(claims), sub }
      const profile = await this.#withUserinfo(server, tokens.access_token, idToken)
      return { identity: checkedIdentity(this.identityOf(profile, idToken)), tokens: tokensOf(tokens) }
    } catch (error) {
      throw providerFailure(error, sent)
    }
  }

  /**
   * Who the claims of ID token and userinfo describe. Override it for a provider with claims of its own.
   *
   * @param _idToken what the provider signed, for claims that must not come from elsewhere
   * @throws AuthError to refuse the person: `access_denied`, or `provider_error` for claims that cannot be accepted
   */
  protected identityOf ({ sub, email, email_verified: emailVerified, name, picture }: OidcProfile, _idToken: OidcProfile): UncheckedIdentity {
    return { subject: sub, claims: { email, email_verified: emailVerified, name, picture }, emailVerified: isVerified(emailVerified) }
  }

  /** The token request (OpenID Connect Core 3.1.3), with every check of the answer, the signature included. */
  async #tokens (server: oauth.AuthorizationServer, authorizationResponse: AuthorizationResponse): Promise<oauth.TokenEndpointResponse> {
    const response = await this.#flow.redeem(server, authorizationResponse)
    const issuer = await issuerOfAnswer(server, response)
    const tokens = await oauth.processAuthorizationCodeResponse(issuer, this.#flow.client, response, { expectedNonce: authorizationResponse.nonce, requireIdToken: true, recognizedTokenTypes: RECOGNIZED_TOKEN_TYPES })
    const keys = await this.#verifySignature(issuer, response)
    assertKeyOfIssuer(server, issuer, String(tokens.id_token), keys)
    return tokens
  }

  /** @returns the keys that were used: others may be fetched meanwhile */
  async #verifySignature (issuer: oauth.AuthorizationServer, response: Response): Promise<oauth.ExportedJWKSCache> {
    const keys = { ...this.#keys }
    try {
      await oauth.validateApplicationLevelSignature(issuer, response, { ...this.#keysHttp, [oauth.jwksCache]: keys })
    } finally {
      if (keys.uat > this.#keys.uat) this.#keys = keys
    }
    return keys
  }

  /** Fills in from userinfo what the scopes asked for and the ID token left out; what the signed ID token says stands. */
  async #withUserinfo (server: oauth.AuthorizationServer, accessToken: string, idToken: OidcProfile): Promise<OidcProfile> {
    const wanted = this.#flow.scopes.flatMap(scope => CLAIMS_OF_SCOPE[scope] ?? [])
    const isComplete = wanted.every(claim => idToken[claim] !== undefined)
    if (!this.#usesUserinfo || isComplete || server.userinfo_endpoint === undefined) return idToken

    const { client, http } = this.#flow
    const response = await oauth.userInfoRequest(server, client, accessToken, http)
    const userinfo = await oauth.processUserInfoResponse(server, client, idToken.sub, response)
    // A signed answer is only as good as its signature.
    if (response.headers.get('content-type')?.includes('jwt')) await oauth.validateApplicationLevelSignature(server, response, this.#keysHttp)
    const profile = { ...userinfo, ...idToken }
    // The flag is about the address beside it: one answer's flag never vouches for the other's address.
    const voucher = [idToken, userinfo].find(source => source.email === profile.email && source.email_verified !== undefined)
    return { ...profile, email_verified: voucher?.email_verified }
  }
}
