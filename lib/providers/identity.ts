import { isText, isVerified, jsonDataOf } from '../claims.js'
import { canonicalEmail } from '../email.js'
import { unacceptable } from './failures.js'
import type { Identity, UncheckedIdentity } from './provider.js'

const MAX_SUBJECT_LENGTH = 255

/** Characters of JSON. Claims are kept in the store and in every session of the user. */
const MAX_CLAIMS_LENGTH = 16_384

/** Claims that pages show as a name (OpenID Connect Core 5.1). */
const NAMES = ['name', 'given_name', 'family_name', 'middle_name', 'nickname', 'preferred_username']

/** Line breaks, other controls, and characters that turn the direction of the text around them. */
const NOT_IN_NAMES = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

/**
 * Checks what a provider, perhaps one that the application wrote, says of a user, before anything is
 * stored under it.
 *
 * @returns a copy whose claims are plain JSON data, with the subject as `sub` where they have none, a
 * `picture` only if it is an https: URL, and names without control and bidirectional characters; an
 * e-mail that is not one plain address is never a verified one
 * @throws AuthError `provider_error` without a subject of 1 to 255 characters that every store can keep, and for claims of more than 16384 characters
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
    throw unacceptable(`the claims are longer than ${MAX_CLAIMS_LENGTH} characters; let the provider send fewer of them`)
  }
  return { subject, claims: accepted, emailVerified: canBeVerified && emailVerified === true }
}

function cleanNames (claims: Record<string, unknown>): Record<string, string> {
  const names = NAMES.map(name => [name, claims[name]] as const)
  return Object.fromEntries(names.flatMap(([name, value]) => typeof value === 'string' ? [[name, value.replace(NOT_IN_NAMES, '')]] : []))
}

/** A page loads its pictures: a `javascript:`, `data:` or `http:` URL has no place there. */
function httpsUrl (value: unknown): string | undefined {
  const url = isText(value) ? URL.parse(value) : null
  return url?.protocol === 'https:' ? url.href : undefined
}

/** Those claims that say something: null or an empty string is as good as nothing. */
export function presentClaims<T> (claims: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== null && value !== ''))
}

/** Those claims that are texts: null, an empty string or another type in a provider's answer is as good as nothing. */
export function textClaims (claims: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(Object.entries(claims).filter((claim): claim is [string, string] => isText(claim[1])))
}

function isSubject (value: unknown): value is string {
  return isText(value) && value.length <= MAX_SUBJECT_LENGTH
}
