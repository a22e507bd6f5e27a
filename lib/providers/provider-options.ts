import { isPlainObject, isText } from '../claims.js'
import { OptionsError, unknownOption } from '../errors.js'
import type { ClientAuthentication, ProviderOptions } from './provider.js'

const NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/
const DEFAULT_TIMEOUT_MS = 5000

const COMMON_OPTIONS = ['clientId', 'clientSecret', 'scopes', 'authorizationParams', 'timeout', 'fetch']

/** Names with a meaning of their own: in the routes, or as members of every object. */
const RESERVED_NAMES = ['local', 'login', 'callback', 'constructor', 'prototype']

/** Parameters that the flow sets; a static value would undo a check. */
const FLOW_PARAMETERS = ['client_id', 'redirect_uri', 'response_type', 'response_mode', 'scope', 'state', 'nonce', 'code_challenge', 'code_challenge_method', 'request', 'request_uri']

/**
 * Checks what every provider takes and fills in the defaults.
 *
 * @throws OptionsError naming the provider and the option, never printing the secret
 */
export function checkedProviderOptions (options: ProviderOptions & { name: string }, defaultScopes: readonly string[]): Required<ProviderOptions> & { name: string } {
  const { name, clientId, clientSecret, scopes = defaultScopes, authorizationParams = {}, timeout = DEFAULT_TIMEOUT_MS, fetch = globalThis.fetch, ...unknown } = options
  assertProviderName(name)
  const [other] = Object.keys(unknown)
  if (other !== undefined) {
    throw unknownOption(name, other, `expected one of ${COMMON_OPTIONS.join(', ')}, or one that only this provider has`)
  }
  if (!isText(clientId)) throw new OptionsError(`${name}: clientId must be the client id that the provider gave you${howToSet(clientId)}`)
  if (!isText(clientSecret)) throw new OptionsError(`${name}: clientSecret must be the client secret that the provider gave you${howToSet(clientSecret)}`)
  if (!Array.isArray(scopes) || !scopes.every(isText)) throw new OptionsError(`${name}: scopes must be a list of strings`)
  if (!isPlainObject(authorizationParams) || !Object.values(authorizationParams).every(isText)) throw new OptionsError(`${name}: authorizationParams must be an object of strings`)
  const reserved = FLOW_PARAMETERS.find(parameter => parameter in authorizationParams)
  if (reserved !== undefined) throw new OptionsError(`${name}: authorizationParams must not contain "${reserved}"; the sign-in sets it`)
  if (!Number.isInteger(timeout) || timeout < 1 || timeout > 60_000) throw new OptionsError(`${name}: timeout must be a whole number of milliseconds from 1 to 60000`)
  if (typeof fetch !== 'function') throw new OptionsError(`${name}: fetch must be a function`)
  return { name, clientId, clientSecret, scopes: [...scopes], authorizationParams: { ...authorizationParams }, timeout, fetch }
}

/** What is not there was mostly to come from the environment. */
function howToSet (value: unknown): string {
  return value === undefined || value === '' ? ', and there is none; set the environment variable that it comes from, or use providersFromEnv(), which leaves out a provider without settings' : ''
}

/**
 * What a provider class fixes, and what its user chose besides.
 *
 * @throws OptionsError when he chose what is fixed
 */
export function withFixed<Fixed extends { name: string }, Chosen extends object> (fixed: Fixed, chosen: Chosen): Fixed & Chosen {
  const clash = Object.keys(chosen).find(option => option in fixed)
  if (clash !== undefined) throw unknownOption(fixed.name, clash, 'the class sets it')
  return { ...fixed, ...chosen }
}

const CLIENT_AUTHENTICATION: readonly ClientAuthentication[] = ['client_secret_basic', 'client_secret_post']

/** @throws OptionsError naming the option, unless it is one of the methods */
export function assertClientAuthentication (value: ClientAuthentication, name: string): void {
  if (CLIENT_AUTHENTICATION.includes(value)) return
  throw new OptionsError(`${name}: clientAuthentication must be ${CLIENT_AUTHENTICATION.join(' or ')}`)
}

/** @throws OptionsError naming the option, unless it is an https: URL, or an http: one where that is permitted, without user info and hash */
export function assertSecureUrl (value: unknown, allowInsecureRequests: boolean, option: string): asserts value is string {
  if (!isSecureUrl(value, allowInsecureRequests)) {
    throw new OptionsError(`${option} must be an https: URL without user info and hash; for a development server on this machine set allowInsecureRequests`)
  }
}

/** Whether requests may go there, and browsers be sent there. */
export function isSecureUrl (value: unknown, allowInsecureRequests: boolean): boolean {
  if (typeof value !== 'string' || !URL.canParse(value)) return false
  const { protocol, username, password, hash } = new URL(value)
  return (protocol === 'https:' || (allowInsecureRequests && protocol === 'http:')) && `${username}${password}${hash}` === ''
}

/**
 * The origin of a URL that has nothing else.
 *
 * @param what whose URL it is, with an example
 * @throws OptionsError naming the option
 */
export function checkedOrigin (value: unknown, option: string, what: string, allowInsecureRequests = false): string {
  const url = isSecureUrl(value, allowInsecureRequests) ? new URL(String(value)) : null
  if (url !== null && url.href === `${url.origin}/`) return url.origin
  throw new OptionsError(`${option} must be the https: URL of ${what}, with no more than a host and a port`)
}

/** @throws OptionsError unless it can be a segment of the routes */
export function assertProviderName (name: unknown): asserts name is string {
  if (typeof name !== 'string' || name.length > 63 || !NAME.test(name)) {
    throw new OptionsError('name of a provider must be lower-case letters, digits and hyphens: it becomes a segment of the URL')
  }
  if (RESERVED_NAMES.includes(name)) throw new OptionsError(`name of a provider must not be "${name}", which has a meaning of its own`)
}
