import { createHash } from 'node:crypto'
import { decodeProtectedHeader } from 'jose/decode/protected_header'
import * as oauth from 'oauth4webapi'
import { CLOCK_TOLERANCE } from './authorization-code.js'
import { unacceptable } from './failures.js'

/**
 * Returns the claims of an ID token after the checks of OpenID Connect Core 3.1.3.7 and 3.1.3.8
 * that oauth4webapi leaves to its caller.
 *
 * @param tokens a token response that was processed with `requireIdToken`
 * @param options.checksAge whether `max_age` was asked for, so that `auth_time` counts
 */
export function acceptedIdToken (
  tokens: oauth.TokenEndpointResponse, { client_id: clientId }: oauth.Client, { checksAge }: { checksAge: boolean }
): oauth.IDToken {
  const claims = oauth.getValidatedIdTokenClaims(tokens)
  const latest = Date.now() / 1000 + CLOCK_TOLERANCE
  // Never undefined with requireIdToken.
  if (claims === undefined || claims.iat > latest) {
    throw unacceptable('the ID token was issued in the future: check the clock of this machine')
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
