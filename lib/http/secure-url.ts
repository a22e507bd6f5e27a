import { type Check, mustBe } from '../option-checks.js'

/**
 * Makes the check of an option that is an https: URL without user info and hash; http: is accepted
 * when insecure requests are allowed.
 */
export function secureUrl (allowInsecureRequests: boolean): Check<string> {
  return mustBe('an https: URL without user info and hash; ' +
    'for a development server on this machine set allowInsecureRequests',
  (value): value is string => isSecureUrl(value, allowInsecureRequests))
}

/** Whether requests and browsers may be sent to a URL. */
export function isSecureUrl (value: unknown, allowInsecureRequests: boolean): value is string {
  if (typeof value !== 'string' || !URL.canParse(value)) return false
  const { protocol, username, password, hash } = new URL(value)
  const isSecure = protocol === 'https:' || (allowInsecureRequests && protocol === 'http:')
  return isSecure && `${username}${password}${hash}` === ''
}
