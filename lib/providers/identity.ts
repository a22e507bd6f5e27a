import { displayName, isText, isVerified, jsonDataOf } from '../claims.js'
import { canonicalEmail } from '../email.js'
import { unacceptable } from './failures.js'
import type { Identity, UncheckedIdentity } from './provider.js'

/** Parses JSON; returns undefined for any other text. */
export function parsedJson (text: string, reviver?: (name: string, value: unknown) => unknown): unknown {
  try {
    return JSON.parse(text, reviver)
  } catch {
    return undefined
  }
}

const MAX_SUBJECT_LENGTH = 255

/** Characters of JSON. Claims are stored with the user and in each session. */
const MAX_CLAIMS_LENGTH = 16_384

/** Claims that pages show as names (OpenID Connect Core 5.1). */
const NAMES = ['name', 'given_name', 'family_name', 'middle_name', 'nickname', 'preferred_username']

/**
 * Checks the identity that a provider class returns, one of the application too, and returns a copy
 * of plain JSON data. An e-mail that is not one plain address never counts as verified.
 *
 * @throws AuthError `provider_error`
 */
export function checkedIdentity ({ subject, claims, emailVerified }: UncheckedIdentity): Identity {
  const sub = claims.sub ?? subject
  if (!isSubject(subject) || !isSubject(sub)) throw unacceptable('the subject is not a string of 1 to 255 characters')
  const { email, email_verified: flag, name, picture, ...others } = jsonDataOf({ ...claims, ...cleanNames(claims) })
  const canBeVerified = isText(email) && canonicalEmail(email) !== null
  const hasFlag = isText(email) && flag !== undefined
  const accepted = {
    ...presentClaims(others),
    ...textClaims({ email, name, picture: httpsUrl(picture) }),
    ...(hasFlag && { email_verified: canBeVerified && isVerified(flag) }),
    sub
  }
  if (JSON.stringify(accepted).length > MAX_CLAIMS_LENGTH) {
    const advice = 'configure the provider to send fewer'
    throw unacceptable(`the claims are longer than ${MAX_CLAIMS_LENGTH} characters; ${advice}`)
  }
  return { subject, claims: accepted, emailVerified: canBeVerified && emailVerified === true }
}

function cleanNames (claims: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(NAMES.flatMap(name => {
    const value = claims[name]
    return typeof value === 'string' ? [[name, displayName(value)]] : []
  }))
}

/** Accepts https: only: pages load the picture, where a `javascript:` or `data:` URL is unsafe. */
function httpsUrl (value: unknown): string | undefined {
  const url = isText(value) ? URL.parse(value) : null
  return url?.protocol === 'https:' ? url.href : undefined
}

/** Claims that describe the ID token instead of the user. */
const PROTOCOL_CLAIMS: ReadonlySet<string> = new Set([
  'iss', 'aud', 'exp', 'iat', 'nbf', 'nonce', 'azp', 'at_hash', 'c_hash', 's_hash', 'sid', 'jti', 'auth_time', 'acr',
  'amr'
])

/** Returns all claims about the user, those that a tenant has added too. */
export function claimsOfUser (profile: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(profile).filter(([name]) => !PROTOCOL_CLAIMS.has(name)))
}

/** Removes claims that are null or an empty string. */
export function presentClaims<T> (claims: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== null && value !== ''))
}

/** Removes claims that are not a non-empty string. */
export function textClaims (claims: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(Object.entries(claims).filter((claim): claim is [string, string] => isText(claim[1])))
}

function isSubject (value: unknown): value is string {
  return isText(value) && value.length <= MAX_SUBJECT_LENGTH
}
