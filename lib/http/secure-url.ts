import { OptionsError } from '../errors.js'

/**
 * Checks that an option is an https: URL without user info and hash; http: is accepted when
 * insecure requests are allowed.
 *
 * @param option the name of the option, for the message
 * @throws OptionsError naming the option
 */
export function assertSecureUrl (
  value: unknown, allowInsecureRequests: boolean, option: string
): asserts value is string {
  if (isSecureUrl(value, allowInsecureRequests)) return
  throw new OptionsError(`${option} must be an https: URL without user info and hash; ` +
    'for a development server on this machine set allowInsecureRequests')
}

/** Whether requests and browsers may be sent to a URL. */
export function isSecureUrl (value: unknown, allowInsecureRequests: boolean): boolean {
  if (typeof value !== 'string' || !URL.canParse(value)) return false
  const { protocol, username, password, hash } = new URL(value)
  const isSecure = protocol === 'https:' || (allowInsecureRequests && protocol === 'http:')
  return isSecure && `${username}${password}${hash}` === ''
}
