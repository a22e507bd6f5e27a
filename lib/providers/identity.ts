import { isText, isVerified, jsonDataOf } from '../claims.js'
import { unacceptable } from './failures.js'
import type { Identity, UncheckedIdentity } from './provider.js'

const MAX_SUBJECT_LENGTH = 255

/** Characters of JSON. Claims are kept in the store and in every session of the person. */
const MAX_CLAIMS_LENGTH = 16_384

/**
 * Checks what a provider, perhaps one that the application wrote, says of a person, before anything is stored under it.
 *
 * @returns a copy whose claims are plain JSON data, with the subject as `sub` where they have none
 * @throws AuthError `provider_error` without a subject of 1 to 255 characters that every store can keep, and for claims of more than 16384 characters
 */
export function checkedIdentity ({ subject, claims, emailVerified }: UncheckedIdentity): Identity {
  const sub = claims.sub ?? subject
  if (!isSubject(subject) || !isSubject(sub)) throw unacceptable('the subject is not a string of 1 to 255 characters')
  const { email, email_verified: flag, name, picture, ...others } = jsonDataOf(claims)
  const hasFlag = isText(email) && flag !== undefined
  const accepted = {
    ...presentClaims(others),
    ...textClaims({ email, name, picture }),
    ...(hasFlag && { email_verified: isVerified(flag) }),
    sub
  }
  if (JSON.stringify(accepted).length > MAX_CLAIMS_LENGTH) throw unacceptable(`the claims are longer than ${MAX_CLAIMS_LENGTH} characters; let the provider send fewer of them`)
  return { subject, claims: accepted, emailVerified: emailVerified === true && isText(email) }
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
