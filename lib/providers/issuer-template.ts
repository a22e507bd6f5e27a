/**
 * One discovery document for many issuers: Microsoft Entra publishes one for all its tenants, whose `issuer` is a template, and its keys
 * say whose tokens they may sign (Microsoft identity platform, "Validate the issuer" and "Validate the signing key issuer").
 */
import { decodeProtectedHeader } from 'jose/decode/protected_header'
import { decodeJwt } from 'jose/jwt/decode'
import type * as oauth from 'oauth4webapi'
import { UUID } from '../base/uuid.js'
import { unacceptable } from './failures.js'

const PLACEHOLDER = '{tenantid}'

/**
 * The server as the issuer of the ID token in an answer. The token is not verified yet: what it says of its tenant only selects the issuer
 * that it is then held to.
 *
 * @returns the server itself when its issuer is no template, or when the answer names no tenant
 */
export async function issuerOfAnswer (server: oauth.AuthorizationServer, response: Response): Promise<oauth.AuthorizationServer> {
  if (!server.issuer.includes(PLACEHOLDER)) return server
  const tenant = await claimedTenant(response)
  return tenant === null ? server : { ...server, issuer: server.issuer.replace(PLACEHOLDER, tenant) }
}

/**
 * Checks of a verified ID token that its tenant was filled in, and that the key may sign for it: some keys in the common set are of one tenant.
 *
 * @param cache where `validateApplicationLevelSignature` has left the keys that it used
 * @throws AuthError `provider_error`
 */
export function assertKeyOfIssuer (server: oauth.AuthorizationServer, issuer: oauth.AuthorizationServer, idToken: string, { jwks }: oauth.ExportedJWKSCache): void {
  if (!server.issuer.includes(PLACEHOLDER)) return
  const { kid } = decodeProtectedHeader(idToken)
  const key = jwks.keys.find(key => key.kid === kid)
  if (issuer === server || key === undefined) throw unacceptable('the ID token names no tenant or no key')
  // A key says that it may sign for all tenants, or for which one.
  const keyIssuer: unknown = Reflect.get(key, 'issuer')
  if (keyIssuer !== undefined && keyIssuer !== server.issuer && keyIssuer !== issuer.issuer) {
    throw unacceptable('the key that signed the ID token belongs to another issuer')
  }
}

/** Whatever else is wrong with the answer is found out by those who read it next. */
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
