/**
 * Supports one discovery document for many issuers. Microsoft Entra publishes one for all tenants:
 * its `issuer` is a template, and its keys name the issuer that they may sign for (Microsoft
 * identity platform, "Validate the issuer" and "Validate the signing key issuer").
 */
import { decodeProtectedHeader } from 'jose/decode/protected_header'
import { decodeJwt } from 'jose/jwt/decode'
import type * as oauth from 'oauth4webapi'
import { UUID } from '../base/uuid.js'
import { unacceptable } from './failures.js'

const PLACEHOLDER = '{tenantid}'

/**
 * Fills the tenant of the ID token into the issuer of the metadata, if that is a template. The
 * token is not verified yet: its tenant only selects the issuer that the token must then match.
 */
export async function withTenantOf (
  response: Response, server: oauth.AuthorizationServer
): Promise<oauth.AuthorizationServer> {
  if (!server.issuer.includes(PLACEHOLDER)) return server
  const tenant = await claimedTenant(response)
  return tenant === null ? server : { ...server, issuer: server.issuer.replace(PLACEHOLDER, tenant) }
}

/**
 * Checks that a verified ID token names a tenant and that its key may sign for that tenant: some
 * keys of the common set belong to one tenant.
 *
 * @param verified the token, the keys that verified it, and its metadata with the tenant filled in
 */
export function assertKeyOfIssuer (
  server: oauth.AuthorizationServer,
  { issuer, idToken, keys: { jwks } }: {
    issuer: oauth.AuthorizationServer, idToken: string, keys: oauth.ExportedJWKSCache
  }
): void {
  if (!server.issuer.includes(PLACEHOLDER)) return
  const { kid } = decodeProtectedHeader(idToken)
  const key = jwks.keys.find(key => key.kid === kid)
  if (issuer === server || key === undefined) throw unacceptable('the ID token names no tenant or no key')
  // The issuer of a key is the template when the key may sign for all tenants.
  const keyIssuer: unknown = Reflect.get(key, 'issuer')
  if (keyIssuer !== undefined && keyIssuer !== server.issuer && keyIssuer !== issuer.issuer) {
    throw unacceptable('the key that signed the ID token belongs to another issuer')
  }
}

/** Returns null for a response that cannot be read: oauth4webapi reports what is wrong with it. */
async function claimedTenant (response: Response): Promise<string | null> {
  try {
    const body: unknown = await response.clone().json()
    const idToken: unknown = Reflect.get(Object(body), 'id_token')
    const { tid } = decodeJwt(String(idToken))
    return typeof tid === 'string' && UUID.test(tid) ? tid : null
  } catch {
    return null
  }
}
