import { createHash } from 'node:crypto'
import { decodeProtectedHeader } from 'jose/decode/protected_header'
import * as oauth from 'oauth4webapi'
import { CLOCK_TOLERANCE } from './authorization-code.js'
import { unacceptable } from './failures.js'

/**
 * The claims of an ID token, with what OpenID Connect Core 3.1.3.7 and 3.1.3.8 ask for and oauth4webapi leaves to its caller.
 *
 * @param tokens an answer that was processed with `requireIdToken`
 * @throws AuthError `provider_error`
 */
export function acceptedIdToken (tokens: oauth.TokenEndpointResponse, { client_id: clientId }: oauth.Client): oauth.IDToken {
  const claims = oauth.getValidatedIdTokenClaims(tokens)
  // One was required, so there is one.
  if (claims === undefined || claims.iat > Date.now() / 1000 + CLOCK_TOLERANCE) throw unacceptable('the ID token was issued in the future: compare the clock of this machine')
  const { azp, at_hash: accessTokenHash } = claims
  if (azp !== undefined && azp !== clientId) throw unacceptable('the ID token was issued to another client: its azp is not the clientId')
  const hash = hashOf(tokens)
  if (hash !== null && accessTokenHash !== undefined && accessTokenHash !== hash) {
    throw unacceptable('the at_hash of the ID token is not that of the access token')
  }
  return claims
}

/**
 * The left half of the access token's hash, by the hash function in the name of the signature
 * algorithm (OpenID Connect Core 3.1.3.6).
 *
 * @returns null for an algorithm whose name has none, such as EdDSA: providers differ in what they hash with
 */
function hashOf ({ id_token: idToken, access_token: accessToken }: oauth.TokenEndpointResponse): string | null {
  const { alg } = decodeProtectedHeader(String(idToken))
  const [bits] = /(256|384|512)$/.exec(String(alg)) ?? []
  if (bits === undefined) return null
  const digest = createHash(`sha${bits}`).update(accessToken).digest()
  return digest.subarray(0, digest.length / 2).toString('base64url')
}
