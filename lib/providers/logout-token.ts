import type { JWTVerifyResult } from 'jose'
import { JOSEError, JWKSMultipleMatchingKeys, JWKSNoMatchingKey } from 'jose/errors'
import { createLocalJWKSet } from 'jose/jwks/local'
import { jwtVerify } from 'jose/jwt/verify'
import type { JWKS } from 'oauth4webapi'
import { isPlainObject, isText } from '../claims.js'
import { AuthError } from '../errors.js'
import { ProviderFailure } from './failures.js'
import type { LogoutToken } from './provider.js'

type Key = Awaited<ReturnType<ReturnType<typeof createLocalJWKSet>>>

/** What a logout token is compared with. */
export interface LogoutTokenChecks {
  issuer: string
  clientId: string
  /** Those of ID tokens. */
  algorithms: readonly string[]
  /** Whether it needs no `typ` and no `exp`. */
  acceptsUntyped: boolean
  /** Seconds. */
  clockTolerance: number
  keyFor: (find: (jwks: JWKS) => Promise<Key | null>) => Promise<Key | null>
}

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
const MAX_ID_LENGTH = 255

/** The types by which no other token is meant; without one `nonce` and `events` tell. */
const UNTYPED = [undefined, 'jwt', 'application/jwt']
const TYPED = ['logout+jwt', 'application/logout+jwt']

/**
 * Verifies a logout token, which must be two minutes old at most.
 *
 * @throws AuthError `invalid_token`
 * @see OpenID Connect Back-Channel Logout 1.0 section 2.6
 */
export async function verifiedLogoutToken (token: string, checks: LogoutTokenChecks): Promise<LogoutToken> {
  const { issuer, clientId, algorithms, acceptsUntyped, clockTolerance, keyFor } = checks
  const { payload, protectedHeader } = await jwtVerify(token, async (header, input) => {
    const key = await keyFor(async jwks => createLocalJWKSet(jwks)(header, input).catch(noKey))
    if (key === null) throw new JWKSNoMatchingKey()
    return key
  }, {
    issuer,
    audience: clientId,
    algorithms: [...algorithms],
    maxTokenAge: '2m',
    clockTolerance,
    requiredClaims: ['jti', 'iat', 'events', ...acceptsUntyped ? [] : ['exp']]
  }).catch((error: unknown) => { throw error instanceof JOSEError ? invalid(error.message) : error })
  return claimsOf(payload, protectedHeader, { clientId, acceptsUntyped })
}

function claimsOf (
  payload: JWTVerifyResult['payload'], { typ, crit }: JWTVerifyResult['protectedHeader'],
  { clientId, acceptsUntyped }: Pick<LogoutTokenChecks, 'clientId' | 'acceptsUntyped'>
): LogoutToken {
  const { jti, events, sid, sub, aud, azp } = payload
  const type = typeof typ === 'string' ? typ.toLowerCase() : typ
  const types: readonly unknown[] = acceptsUntyped ? [...TYPED, ...UNTYPED] : TYPED
  if (!types.includes(type)) throw invalid('its typ is not logout+jwt')
  if (crit !== undefined) throw invalid('it has a crit')
  // Otherwise an ID token would end sessions.
  if ('nonce' in payload) throw invalid('it has a nonce')
  if (!isPlainObject(events) || !isPlainObject(events[EVENT])) throw invalid('its events have no logout')
  if (!isText(jti)) throw invalid('its jti is not a text')
  if (sid === undefined && sub === undefined) throw invalid('it names neither a session nor a user')
  if ((sid !== undefined && !isId(sid)) || (sub !== undefined && !isId(sub))) {
    throw invalid(`its sid or sub is not a text of up to ${MAX_ID_LENGTH} characters`)
  }
  const isOthersToo = Array.isArray(aud) && aud.some(audience => audience !== clientId)
  if (azp === undefined ? isOthersToo : azp !== clientId) throw invalid('it was issued to another client')
  return { jti, ...(sid !== undefined && { sid }), ...(sub !== undefined && { sub }) }
}

/** Whether a value is an id of a session or a user (OpenID Connect Core section 2). */
function isId (value: unknown): value is string {
  return isText(value) && value.length <= MAX_ID_LENGTH
}

/** Null for a key that is not there: it may be a new one. */
function noKey (error: unknown): null {
  if (error instanceof JWKSNoMatchingKey || error instanceof JWKSMultipleMatchingKeys) return null
  throw error
}

function invalid (reason: string): AuthError {
  return new AuthError('invalid_token', {
    cause: new ProviderFailure(`the logout token is refused: ${reason}`, { isEveryday: true })
  })
}
