import * as oauth from 'oauth4webapi'
import { AuthorizationCodeFlow, type AuthorizationCodeFlowOptions, RECOGNIZED_TOKEN_TYPES, tokensOf } from './authorization-code.js'
import { type BackChannel, deduplicated } from './back-channel.js'
import { Discovery, type DiscoveryOptions } from './discovery.js'
import { providerFailure } from './failures.js'
import { acceptedIdToken } from './id-token.js'
import { checkedIdentity, presentClaims } from './identity.js'
import { assertKeyOfIssuer, issuerOfAnswer } from './issuer-template.js'
import type { OidcProfile } from './oidc.js'
import type { Authentication, AuthorizationRequest, AuthorizationResponse, UncheckedIdentity } from './provider.js'

export interface OidcFlowOptions extends AuthorizationCodeFlowOptions {
  discovery: DiscoveryOptions
  /** Whether to ask the userinfo endpoint for what the scopes ask for and the ID token lacks. */
  userinfo: boolean
}

/** Who the claims of ID token and userinfo, and of the ID token alone, describe. */
type IdentityOf = (profile: OidcProfile, idToken: OidcProfile) => UncheckedIdentity

/** What a provider may say about a user, by the scope that asks for it (OpenID Connect Core 5.4). */
const CLAIMS_OF_SCOPE: Readonly<Record<string, readonly string[]>> = { email: ['email', 'email_verified'], profile: ['name', 'picture'] }

/** The authorization code flow of OpenID Connect (Core 3.1) with one provider. */
export class OidcFlow {
  readonly #flow: AuthorizationCodeFlow
  readonly #discovery: Discovery
  readonly #usesUserinfo: boolean
  readonly #maxAge: number | typeof oauth.skipAuthTimeCheck
  readonly #keysHttp: BackChannel
  #keys: oauth.ExportedJWKSCache = { jwks: { keys: [] }, uat: 0 }

  constructor ({ discovery, userinfo, ...options }: OidcFlowOptions) {
    this.#flow = new AuthorizationCodeFlow(options)
    this.#discovery = new Discovery(discovery, this.#flow.http)
    this.#usesUserinfo = userinfo
    const { max_age: maxAge } = options.authorizationParams
    this.#maxAge = maxAge === undefined ? oauth.skipAuthTimeCheck : Number(maxAge)
    this.#keysHttp = deduplicated(this.#flow.http)
  }

  async authorizationUrl (request: AuthorizationRequest): Promise<URL> {
    try {
      return this.#flow.authorizationUrl(await this.#discovery.metadata(), request, { nonce: request.nonce })
    } catch (error) {
      throw providerFailure(error)
    }
  }

  async authenticate (response: AuthorizationResponse, identityOf: IdentityOf): Promise<Authentication> {
    const sent = this.#flow.secretsOf(response)
    try {
      const server = await this.#discovery.metadata()
      const tokens = await this.#tokens(server, response)
      sent.push(tokens.access_token)
      const { sub, ...claims } = acceptedIdToken(tokens, this.#flow.client)
      // What is as good as absent must not keep userinfo from saying it.
      const idToken = { ...presentClaims(claims), sub }
      const profile = await this.#withUserinfo(server, tokens.access_token, idToken)
      return { identity: checkedIdentity(identityOf(profile, idToken)), tokens: tokensOf(tokens) }
    } catch (error) {
      throw providerFailure(error, sent)
    }
  }

  /** The token request (OpenID Connect Core 3.1.3), with every check of the answer, the signature included. */
  async #tokens (server: oauth.AuthorizationServer, authorizationResponse: AuthorizationResponse): Promise<oauth.TokenEndpointResponse> {
    const response = await this.#flow.redeem(server, authorizationResponse)
    const issuer = await issuerOfAnswer(server, response)
    const tokens = await oauth.processAuthorizationCodeResponse(issuer, this.#flow.client, response, {
      expectedNonce: authorizationResponse.nonce,
      maxAge: authorizationResponse.maxAge ?? this.#maxAge,
      requireIdToken: true,
      recognizedTokenTypes: RECOGNIZED_TOKEN_TYPES
    })
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
