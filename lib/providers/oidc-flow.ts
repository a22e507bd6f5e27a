import * as oauth from 'oauth4webapi'
import { Once } from '../base/once.js'
import {
  AuthorizationCodeFlow, type AuthorizationCodeFlowOptions, RECOGNIZED_TOKEN_TYPES, tokensOf
} from './authorization-code.js'
import { type BackChannel, deduplicated } from './back-channel.js'
import { type DiscoveryOptions, discover } from './discovery.js'
import { providerFailure } from './failures.js'
import { acceptedIdToken } from './id-token.js'
import { checkedIdentity, presentClaims } from './identity.js'
import { assertKeyOfIssuer, withTenantOf } from './issuer-template.js'
import type {
  Authentication, AuthorizationRequest, AuthorizationResponse, AuthenticationContext, UncheckedIdentity
} from './provider.js'

/** The claims about a user: those of the verified ID token and those that userinfo adds. */
export type OidcProfile = Record<string, unknown> & {
  /**
   * The subject of the ID token. Userinfo of another subject is refused (OpenID Connect Core
   * 5.3.2).
   */
  sub: string
}

interface OidcFlowOptions extends AuthorizationCodeFlowOptions {
  discovery: DiscoveryOptions
  /** Whether to request from userinfo the claims of the scopes that the ID token lacks. */
  userinfo: boolean
}

/** The claims that each scope requests (OpenID Connect Core 5.4) and that this library reads. */
const CLAIMS_OF_SCOPE: Readonly<Record<string, readonly string[]>> = {
  email: ['email', 'email_verified'],
  profile: ['name', 'picture']
}

/** Seconds since the user last authenticated at the provider. */
type MaxAge = number | typeof oauth.skipAuthTimeCheck

/** Runs the authorization code flow of OpenID Connect (Core 3.1) with one provider. */
export class OidcFlow {
  readonly #flow: AuthorizationCodeFlow
  /** The same object each time: oauth4webapi caches the provider's keys by it. */
  readonly #server: Once<oauth.AuthorizationServer>
  readonly #usesUserinfo: boolean
  readonly #maxAge: MaxAge
  readonly #keysHttp: BackChannel
  #keys: oauth.ExportedJWKSCache = { jwks: { keys: [] }, uat: 0 }

  constructor ({ discovery, userinfo, ...options }: OidcFlowOptions) {
    this.#flow = new AuthorizationCodeFlow(options)
    this.#server = new Once(() => discover(discovery, this.#flow.http))
    this.#usesUserinfo = userinfo
    const { max_age: maxAge } = options.authorizationParams
    this.#maxAge = maxAge === undefined ? oauth.skipAuthTimeCheck : Number(maxAge)
    this.#keysHttp = deduplicated(this.#flow.http)
  }

  async authorizationUrl (request: AuthorizationRequest): Promise<URL> {
    try {
      return this.#flow.authorizationUrl(await this.#server.done(), request, { nonce: request.nonce })
    } catch (error) {
      throw providerFailure(error)
    }
  }

  /** @param identityOf as {@link OidcProvider} has it */
  async authenticate (
    response: AuthorizationResponse, identityOf: (profile: OidcProfile, idToken: OidcProfile) => UncheckedIdentity
  ): Promise<Authentication> {
    const sent = this.#flow.secretsOf(response)
    try {
      const server = await this.#server.done()
      const maxAge = response.maxAge ?? this.#maxAge
      const tokens = await this.#tokens(server, response, maxAge)
      sent.push(tokens.access_token)
      const checksAge = maxAge !== oauth.skipAuthTimeCheck
      const { sub, ...claims } = acceptedIdToken(tokens, this.#flow.client, { checksAge })
      // An empty claim of the ID token must not hide the one of userinfo.
      const idToken = { ...presentClaims(claims), sub }
      const profile = await this.#withUserinfo(server, tokens.access_token, idToken)
      const identity = checkedIdentity(identityOf(profile, idToken))
      return { identity, tokens: tokensOf(tokens), signed: signedProofIn(idToken) }
    } catch (error) {
      throw providerFailure(error, sent)
    }
  }

  /** Sends the token request (OpenID Connect Core 3.1.3) and validates the response. */
  async #tokens (
    server: oauth.AuthorizationServer, authorizationResponse: AuthorizationResponse, maxAge: MaxAge
  ): Promise<oauth.TokenEndpointResponse> {
    const response = await this.#flow.redeem(server, authorizationResponse)
    const issuer = await withTenantOf(response, server)
    const tokens = await oauth.processAuthorizationCodeResponse(issuer, this.#flow.client, response, {
      expectedNonce: authorizationResponse.nonce,
      maxAge,
      requireIdToken: true,
      recognizedTokenTypes: RECOGNIZED_TOKEN_TYPES
    })
    const keys = await this.#verifySignature(issuer, response)
    assertKeyOfIssuer(server, { issuer, idToken: String(tokens.id_token), keys })
    return tokens
  }

  /** Returns the keys that were used; a concurrent sign-in may have fetched newer ones. */
  async #verifySignature (issuer: oauth.AuthorizationServer, response: Response): Promise<oauth.ExportedJWKSCache> {
    const keys = { ...this.#keys }
    try {
      await oauth.validateApplicationLevelSignature(issuer, response, { ...this.#keysHttp, [oauth.jwksCache]: keys })
    } finally {
      if (keys.uat > this.#keys.uat) this.#keys = keys
    }
    return keys
  }

  /** Adds the claims of the scopes that only userinfo has: the signed ID token takes precedence. */
  async #withUserinfo (
    server: oauth.AuthorizationServer, accessToken: string, idToken: OidcProfile
  ): Promise<OidcProfile> {
    const wanted = this.#flow.scopes.flatMap(scope => CLAIMS_OF_SCOPE[scope] ?? [])
    const isComplete = wanted.every(claim => idToken[claim] !== undefined)
    if (!this.#usesUserinfo || isComplete || server.userinfo_endpoint === undefined) return idToken

    const { client, http } = this.#flow
    const response = await oauth.userInfoRequest(server, client, accessToken, http)
    const userinfo = await oauth.processUserInfoResponse(server, client, idToken.sub, response)
    const isSigned = response.headers.get('content-type')?.includes('jwt')
    if (isSigned) await oauth.validateApplicationLevelSignature(server, response, this.#keysHttp)
    const profile = { ...userinfo, ...idToken }
    // email_verified counts only for the address in the same response.
    const isAboutEmail = (source: Record<string, unknown>): boolean =>
      source.email === profile.email && source.email_verified !== undefined
    return { ...profile, email_verified: [idToken, userinfo].find(isAboutEmail)?.email_verified }
  }
}

/** Members of other types than Core 2 has say nothing. */
function signedProofIn ({ amr, acr }: Record<string, unknown>): AuthenticationContext {
  const isList = Array.isArray(amr) && amr.every(method => typeof method === 'string')
  return { amr: isList ? amr : [], acr: typeof acr === 'string' ? acr : null }
}
