/** The checks of an ID token that oauth4webapi leaves to its caller. */
import { createHash } from 'node:crypto'
import { decodeProtectedHeader } from 'jose/decode/protected_header'
import { decodeJwt } from 'jose/jwt/decode'
import * as oauth from 'oauth4webapi'
import { UUID } from '../base/values.js'
import { CHECK_CLOCK, unacceptable } from './failures.js'
import { parsedJson } from './identity.js'

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
export function acceptedIdToken (
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
export async function withTenantOf (
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
export function assertKeyOfIssuer (
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
