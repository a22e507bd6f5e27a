import * as oauth from 'oauth4webapi'
import { Once } from '../base/once.js'
import { AuthorizationCodeFlow, type FlowOptions, RECOGNIZED_TOKEN_TYPES } from './authorization-code.js'
import { type DiscoveryOptions, discover } from './discovery.js'
import { acceptedIdToken, assertKeyOfIssuer, withTenantOf } from './id-token.js'
import { presentClaims } from './identity.js'
import type {
  AuthenticationContext, AuthorizationRequest, AuthorizationResponse, UncheckedIdentity
} from './provider.js'

/** The claims about a user: those of the verified ID token and those that userinfo adds. */
export type OidcProfile = Record<string, unknown> & {
  /** The subject of the ID token. Userinfo of another one is refused (Core 5.3.2). */
  sub: string
}

interface OidcFlowOptions extends FlowOptions, DiscoveryOptions {
  userinfo: boolean
  identityOf: (profile: OidcProfile, idToken: OidcProfile) => UncheckedIdentity
}

/** The claims that each scope requests (OpenID Connect Core 5.4) and that this library reads. */
const CLAIMS_OF_SCOPE: Readonly<Record<string, readonly string[]>> = {
  email: ['email', 'email_verified'],
  profile: ['name', 'picture']
}

/** The flow of OpenID Connect (Core 3.1) with one provider. */
export class OidcFlow extends AuthorizationCodeFlow {
  readonly #server: Once<oauth.AuthorizationServer>
  readonly #usesUserinfo: boolean
  readonly #identityOf: OidcFlowOptions['identityOf']
  /** Seconds since the user last authenticated at the provider. */
  readonly #maxAge: number | undefined
  /** A copy of the keys that oauth4webapi caches. */
  readonly #keys: oauth.JWKSCacheInput = {}

  constructor ({ url, issuers, userinfo, identityOf, ...options }: OidcFlowOptions) {
    super(options)
    this.#server = new Once(() => discover({ url, issuers }, this.http))
    this.#usesUserinfo = userinfo
    this.#identityOf = identityOf
    const { max_age: maxAge } = options.authorizationParams
    this.#maxAge = maxAge === undefined ? undefined : Number(maxAge)
  }

  override async authorizationUrl (request: AuthorizationRequest): Promise<URL> {
    const url = await super.authorizationUrl(request)
    url.searchParams.set('nonce', request.nonce)
    return url
  }

  protected override async server (): Promise<oauth.AuthorizationServer> {
    return this.#server.done()
  }

  /** Validates the token response (OpenID Connect Core 3.1.3) and the signature of its ID token. */
  protected override async tokensIn (
    tokenResponse: Response, server: oauth.AuthorizationServer, { nonce, maxAge = this.#maxAge }: AuthorizationResponse
  ): Promise<oauth.TokenEndpointResponse> {
    const issuer = await withTenantOf(tokenResponse, server)
    const tokens = await oauth.processAuthorizationCodeResponse(issuer, this.client, tokenResponse, {
      expectedNonce: nonce,
      maxAge: maxAge ?? oauth.skipAuthTimeCheck,
      requireIdToken: true,
      recognizedTokenTypes: RECOGNIZED_TOKEN_TYPES
    })
    const { jwks: known } = this.#keys
    // The metadata without the tenant: oauth4webapi caches the keys by this object.
    const http = { ...this.http, [oauth.jwksCache]: this.#keys }
    await oauth.validateApplicationLevelSignature(server, tokenResponse, http)
    // Another sign-in empties the copy while it fetches newer keys.
    const { jwks = known } = this.#keys
    assertKeyOfIssuer(tokens, { server, issuer, jwks })
    return tokens
  }

  protected override async userOf (
    tokens: oauth.TokenEndpointResponse,
    server: oauth.AuthorizationServer,
    { maxAge = this.#maxAge }: AuthorizationResponse
  ): Promise<{ identity: UncheckedIdentity, signed: AuthenticationContext }> {
    const { sub, ...claims } = acceptedIdToken(tokens, this.client, maxAge !== undefined)
    // An empty claim of the ID token must not hide the one of userinfo.
    const idToken = { ...presentClaims(claims), sub }
    const profile = await this.#withUserinfo(server, tokens.access_token, idToken)
    return { identity: this.#identityOf(profile, idToken), signed: signedProofIn(idToken) }
  }

  /** Adds the claims of the scopes that only userinfo has: the signed ID token takes precedence. */
  async #withUserinfo (
    server: oauth.AuthorizationServer, accessToken: string, idToken: OidcProfile
  ): Promise<OidcProfile> {
    const wanted = this.scopes.flatMap(scope => CLAIMS_OF_SCOPE[scope] ?? [])
    const isComplete = wanted.every(claim => idToken[claim] !== undefined)
    if (!this.#usesUserinfo || isComplete || server.userinfo_endpoint === undefined) return idToken

    const response = await oauth.userInfoRequest(server, this.client, accessToken, this.http)
    const userinfo = await oauth.processUserInfoResponse(server, this.client, idToken.sub, response)
    const isSigned = response.headers.get('content-type')?.includes('jwt')
    if (isSigned) await oauth.validateApplicationLevelSignature(server, response, this.http)
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
