import { createHash } from 'node:crypto'
import { decodeProtectedHeader } from 'jose/decode/protected_header'
import { decodeJwt } from 'jose/jwt/decode'
import * as oauth from 'oauth4webapi'
import type { AuthenticationContext } from '../authentication.js'
import { UUID, withoutUndefined } from '../base/values.js'
import { isSecureUrl } from '../core/fetching.js'
import { AuthorizationCodeFlow, type FlowOptions } from './authorization-code.js'
import { Discovery, type DiscoveryOptions } from './discovery.js'
import { CHECK_CLOCK, failedAt, failure, providerFailure, redacted, unacceptable } from './failures.js'
import { parsedJson, presentClaims } from './identity.js'
import type {
  Authentication, AuthorizationRequest, AuthorizationResponse, EndSessionRequest, LogoutToken, UncheckedIdentity
} from './provider.js'

/** The claims about a user: of the verified ID token, and what userinfo adds. */
export type OidcProfile = Record<string, unknown> & {
  /** The subject of the ID token. Userinfo of another subject is refused (Core 5.3.2). */
  sub: string
}

interface OidcFlowOptions extends FlowOptions, DiscoveryOptions {
  userinfo: boolean
  pushedAuthorizationRequests: boolean
  backChannelLogout: boolean
  acceptUntypedLogoutTokens: boolean
  responseMode?: 'form_post'
  identityOf: (profile: OidcProfile, idToken: OidcProfile) => UncheckedIdentity
}

/** The claims that each scope requests (OpenID Connect Core 5.4) and that this library reads. */
const CLAIMS_OF_SCOPE: Readonly<Record<string, readonly string[]>> = {
  email: ['email', 'email_verified'],
  profile: ['name', 'picture']
}

/** The flow of OpenID Connect (Core 3.1) with one provider. */
export class OidcFlow extends AuthorizationCodeFlow<OidcFlowOptions> {
  readonly #discovery = new Discovery(this.options, this.http)

  override async authorizationUrl (request: AuthorizationRequest): Promise<URL> {
    const url = await super.authorizationUrl(request)
    url.searchParams.set('nonce', request.nonce)
    if (this.options.responseMode !== undefined) url.searchParams.set('response_mode', this.options.responseMode)
    return this.#pushed(url)
  }

  /** Pushes the authorization request where one is required (RFC 9126 sections 5 and 6). */
  async #pushed (url: URL): Promise<URL> {
    const server = await this.server()
    const isRequired = server.require_pushed_authorization_requests === true
    if (!isRequired && !this.options.pushedAuthorizationRequests) return url
    const sent: string[] = []
    const endpoint = server.pushed_authorization_request_endpoint
    try {
      const response = await this.credentials.authenticate(server, sent, async authentication =>
        oauth.pushedAuthorizationRequest(server, this.client, authentication, url.searchParams, this.http))
        .catch(failedAt(endpoint))
      const { request_uri: uri, error, error_description: description } =
        await oauth.processPushedAuthorizationResponse(server, this.client, response).catch(failedAt(endpoint))
      if (error) throw failure('provider_error', redacted(`${error}: ${description}`, sent), { endpoint })
      const reference = new URL(String(server.authorization_endpoint))
      reference.searchParams.set('client_id', this.client.client_id)
      reference.searchParams.set('request_uri', uri)
      return reference
    } catch (error) {
      throw providerFailure(error, sent)
    }
  }

  /** Builds the logout request (OpenID Connect RP-Initiated Logout 1.0 section 2). */
  async endSessionUrl ({ redirectUri, state, idToken, logoutHint }: EndSessionRequest): Promise<URL | null> {
    const { end_session_endpoint: endpoint } = await this.server()
    if (endpoint === undefined) return null
    // Not with the other endpoints: a sign-in does without it.
    if (!isSecureUrl(endpoint, this.options.allowInsecureRequests)) {
      throw unacceptable('the discovery document has an end_session_endpoint that is not an https: URL')
    }
    const url = new URL(endpoint)
    const hints = withoutUndefined({ id_token_hint: idToken, logout_hint: logoutHint })
    const parameters = { ...hints, client_id: this.client.client_id, post_logout_redirect_uri: redirectUri, state }
    for (const [parameter, value] of Object.entries(parameters)) url.searchParams.set(parameter, value)
    return url
  }

  /** Verifies a logout token (OpenID Connect Back-Channel Logout 1.0 section 2.6). */
  async verifyLogoutToken (token: string): Promise<LogoutToken> {
    const { verifiedLogoutToken } = await import('./logout-token.js')
    try {
      const server = await this.server()
      return await verifiedLogoutToken(token, {
        issuer: server.issuer,
        clientId: this.client.client_id,
        algorithms: server.id_token_signing_alg_values_supported ?? [],
        acceptsUntyped: this.options.acceptUntypedLogoutTokens,
        clockTolerance: CLOCK_TOLERANCE,
        keyFor: find => this.#discovery.keyFor(server, find)
      })
    } catch (error) {
      throw providerFailure(error)
    }
  }

  protected override async server (): Promise<oauth.AuthorizationServer> {
    return this.#discovery.server()
  }

  /** Validates the token response (OpenID Connect Core 3.1.3) and the signature of its ID token. */
  protected override async tokensIn (
    tokenResponse: Response, server: oauth.AuthorizationServer, response: AuthorizationResponse
  ): Promise<oauth.TokenEndpointResponse> {
    const issuer = await withTenantOf(tokenResponse, server)
    const tokens = await super.tokensIn(tokenResponse, issuer, response, {
      expectedNonce: response.nonce,
      maxAge: this.demands(response).maxAge ?? oauth.skipAuthTimeCheck,
      requireIdToken: true
    })
    assertKeyOfIssuer(tokens, { server, issuer, jwks: await this.#discovery.verify(server, tokenResponse) })
    return tokens
  }

  protected override async userOf (
    tokens: oauth.TokenEndpointResponse, server: oauth.AuthorizationServer, response: AuthorizationResponse
  ): Promise<{ identity: UncheckedIdentity } & Pick<Authentication, 'signed' | 'atProvider'>> {
    const { sub, ...claims } = acceptedIdToken(tokens, this.client, this.demands(response).maxAge !== undefined)
    // An empty claim of the ID token must not hide the one of userinfo.
    const idToken: OidcProfile = { ...presentClaims(claims), sub }
    const signed = signedProofIn(idToken)
    this.#assertContext(response, signed)
    const profile = await this.#withUserinfo(server, tokens.access_token, idToken)
    const identity = this.options.identityOf(profile, idToken)
    return { identity, signed, ...(this.options.backChannelLogout && { atProvider: { sid: idToken.sid, sub } }) }
  }

  /** Refuses another `acr` than one that was asked for: to a provider, `acr_values` is a wish. */
  #assertContext (response: AuthorizationResponse, { acr }: AuthenticationContext): void {
    const { acrValues: wanted } = this.demands(response)
    if (wanted === undefined || (acr !== null && wanted.includes(acr))) return
    const message = `the acr of the ID token is ${acr ?? 'absent'}, expected ${wanted.join(' or ')}`
    throw failure('not_allowed', message, { isEveryday: acr !== null })
  }

  /** Adds the claims of the scopes that only userinfo has: the signed ID token takes precedence. */
  async #withUserinfo (
    server: oauth.AuthorizationServer, accessToken: string, idToken: OidcProfile
  ): Promise<OidcProfile> {
    const wanted = this.options.scopes.flatMap(scope => CLAIMS_OF_SCOPE[scope] ?? [])
    const isComplete = wanted.every(claim => idToken[claim] !== undefined)
    if (!this.options.userinfo || isComplete || server.userinfo_endpoint === undefined) return idToken

    const atUserinfo = failedAt(server.userinfo_endpoint)
    const response = await oauth.userInfoRequest(server, this.client, accessToken, this.http).catch(atUserinfo)
    const userinfo = await oauth.processUserInfoResponse(server, this.client, idToken.sub, response).catch(atUserinfo)
    const isSigned = response.headers.get('content-type')?.includes('jwt')
    if (isSigned) await this.#discovery.verify(server, response)
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

/** Seconds by which the provider's clock may differ: the default of oauth4webapi. */
const CLOCK_TOLERANCE = 30

/**
 * Stands for the tenant in the one document that Microsoft Entra publishes for all tenants. Its
 * keys name the issuer that they may sign for (Microsoft identity platform, "Validate the issuer"
 * and "Validate the signing key issuer").
 */
const PLACEHOLDER = '{tenantid}'

/**
 * Returns the claims of an ID token after the checks of OpenID Connect Core 3.1.3.7 and 3.1.3.8.
 *
 * @param tokens a token response that was processed with `requireIdToken`
 * @param checksAge whether `max_age` was asked for, so that `auth_time` counts
 */
function acceptedIdToken (
  tokens: oauth.TokenEndpointResponse, { client_id: clientId }: oauth.Client, checksAge: boolean
): oauth.IDToken {
  const claims = oauth.getValidatedIdTokenClaims(tokens)
  const latest = Date.now() / 1000 + CLOCK_TOLERANCE
  // Never undefined with requireIdToken.
  if (claims === undefined || claims.iat > latest) {
    throw unacceptable(`the ID token was issued in the future: ${CHECK_CLOCK}`)
  }
  const { azp, at_hash: accessTokenHash, auth_time: authTime = 0 } = claims
  // oauth4webapi checks only that it is not too old.
  if (checksAge && authTime > latest) {
    throw unacceptable('the auth_time of the ID token is in the future, so it says nothing about max_age')
  }
  if (azp !== undefined && azp !== clientId) {
    throw unacceptable('the ID token was issued to another client: its azp is not the clientId')
  }
  const hash = hashOf(tokens)
  if (hash !== null && accessTokenHash !== undefined && accessTokenHash !== hash) {
    throw unacceptable('the at_hash of the ID token does not match the access token')
  }
  return claims
}

/**
 * Computes the `at_hash` of the access token: the left half of its hash, with the hash function of
 * the signature algorithm (OpenID Connect Core 3.1.3.6). Null for an algorithm that names none,
 * such as EdDSA: providers differ there.
 */
function hashOf ({ id_token: idToken, access_token: accessToken }: oauth.TokenEndpointResponse): string | null {
  const { alg } = decodeProtectedHeader(String(idToken))
  const [bits] = /(256|384|512)$/.exec(String(alg)) ?? []
  if (bits === undefined) return null
  const digest = createHash(`sha${bits}`).update(accessToken).digest()
  return digest.subarray(0, digest.length / 2).toString('base64url')
}

/**
 * Fills the tenant of the ID token into the issuer of the metadata, if that is a template. The
 * token is not verified yet: its tenant only selects the issuer that the token must then match.
 */
async function withTenantOf (
  tokenResponse: Response, server: oauth.AuthorizationServer
): Promise<oauth.AuthorizationServer> {
  if (!server.issuer.includes(PLACEHOLDER)) return server
  const { id_token: idToken }: { id_token?: unknown } = Object(parsedJson(await tokenResponse.clone().text()))
  const tenant = tenantOf(String(idToken))
  return tenant === null ? server : { ...server, issuer: server.issuer.replace(PLACEHOLDER, tenant) }
}

/** Returns null for what is not an ID token of a tenant: oauth4webapi reports what is wrong. */
function tenantOf (idToken: string): string | null {
  try {
    const { tid } = decodeJwt(idToken)
    return typeof tid === 'string' && UUID.test(tid) ? tid : null
  } catch {
    return null
  }
}

/**
 * Checks that a verified ID token names a tenant and that its key may sign for that tenant, if the
 * issuer of the metadata is a template: some keys of the common set belong to one tenant.
 *
 * @param issuer the metadata with the tenant filled in
 */
function assertKeyOfIssuer (
  { id_token: idToken }: oauth.TokenEndpointResponse,
  { server, issuer, jwks }: {
    server: oauth.AuthorizationServer, issuer: oauth.AuthorizationServer, jwks: oauth.JWKS
  }
): void {
  if (!server.issuer.includes(PLACEHOLDER)) return
  const { kid } = decodeProtectedHeader(String(idToken))
  const key = jwks.keys.find(key => key.kid === kid)
  if (issuer === server || key === undefined) throw unacceptable('the ID token names no tenant or no key')
  // The issuer of a key is the template when the key may sign for all tenants.
  const keyIssuer: unknown = Reflect.get(key, 'issuer')
  if (keyIssuer !== undefined && keyIssuer !== server.issuer && keyIssuer !== issuer.issuer) {
    throw unacceptable('the key that signed the ID token belongs to another issuer')
  }
}
