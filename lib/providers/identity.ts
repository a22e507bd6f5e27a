import { isText, jsonDataOf } from '../claims.js'
import { AuthError } from '../errors.js'
import type { Identity } from './provider.js'

const MAX_SUBJECT_LENGTH = 255

/**
 * Checks what a provider, perhaps one that the application wrote, says of a person, before anything is stored under it.
 *
 * @returns a copy whose claims are plain JSON data
 * @throws AuthError `provider_error` without a subject of 1 to 255 characters that every store can keep
 */
export function checkedIdentity ({ subject, claims, emailVerified }: Identity): Identity {
  if (!isText(subject) || subject.length > MAX_SUBJECT_LENGTH) {
    throw new AuthError('provider_error', { cause: new Error('the subject is not a string of 1 to 255 characters') })
  }
  const { email, ...rest } = jsonDataOf(claims)
  return {
    subject,
    claims: { ...rest, ...(isText(email) && { email }), sub: subject },
    emailVerified: emailVerified === true && isText(email)
  }
}
