import type { Complete } from '../base/defaults.js'
import { isPlainObject, isText } from '../claims.js'
import { OptionsError } from '../errors.js'
import { unknownOption } from '../option-checks.js'
import { isSecureUrl } from '../http/secure-url.js'
import type { ClientAuthentication, ProviderOptions } from './provider.js'

const NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/
const DEFAULT_TIMEOUT_MS = 5000

const COMMON_OPTIONS = ['clientId', 'clientSecret', 'scopes', 'authorizationParams', 'timeout', 'fetch']

/** Names that routes use themselves, or that every object has as members. */
const RESERVED_NAMES = ['local', 'application', 'login', 'callback', 'constructor', 'prototype']

/** Parameters that the flow sets; a static value would disable a check. */
const FLOW_PARAMETERS = [
  'client_id', 'redirect_uri', 'response_type', 'response_mode', 'scope', 'state', 'nonce', 'code_challenge',
  'code_challenge_method', 'request', 'request_uri'
]

const HOW_TO_SET = ', and there is none; set the environment variable that it comes from, ' +
  'or use providersFromEnv(), which leaves out a provider without settings'

type CheckedOptions = Complete<ProviderOptions> & { name: string }

/**
 * Checks the options of every provider class and fills in the defaults.
 *
 * @throws OptionsError naming the provider and the option, never showing the secret
 */
export function checkedProviderOptions (
  options: ProviderOptions & { name: string }, defaultScopes: readonly string[]
): CheckedOptions {
  const { name, clientId, clientSecret, scopes = defaultScopes, authorizationParams = {}, ...others } = options
  const { timeout = DEFAULT_TIMEOUT_MS, fetch = globalThis.fetch, ...unknown } = others
  assertProviderName(name)
  const mistake = (problem: string): OptionsError => new OptionsError(`${name}: ${problem}`)
  const [other] = Object.keys(unknown)
  if (other !== undefined) {
    throw unknownOption(name, other, `expected one of ${COMMON_OPTIONS.join(', ')}, or one that only this provider has`)
  }
  if (!isText(clientId)) {
    throw mistake(`clientId must be the client id that the provider gave you${howToSet(clientId)}`)
  }
  if (!isText(clientSecret)) {
    throw mistake(`clientSecret must be the client secret that the provider gave you${howToSet(clientSecret)}`)
  }
  if (!Array.isArray(scopes) || !scopes.every(isText)) throw mistake('scopes must be a list of strings')
  if (!isPlainObject(authorizationParams) || !Object.values(authorizationParams).every(isText)) {
    throw mistake('authorizationParams must be an object of strings')
  }
  const reserved = FLOW_PARAMETERS.find(parameter => parameter in authorizationParams)
  if (reserved !== undefined) {
    throw mistake(`authorizationParams must not contain "${reserved}"; the sign-in sets it`)
  }
  if (!Number.isInteger(timeout) || timeout < 1 || timeout > 60_000) {
    throw mistake('timeout must be a whole number of milliseconds from 1 to 60000')
  }
  if (typeof fetch !== 'function') throw mistake('fetch must be a function')
  return {
    name, clientId, clientSecret, scopes: [...scopes], authorizationParams: { ...authorizationParams }, timeout, fetch
  }
}

/** An absent value usually comes from an environment variable that is not set. */
function howToSet (value: unknown): string {
  return value === undefined || value === '' ? HOW_TO_SET : ''
}

/**
 * Combines the options that a provider class sets itself with those of the application.
 *
 * @throws OptionsError when the application sets an option of the class
 */
export function withFixed<Fixed extends { name: string }, Chosen extends object> (
  fixed: Fixed, chosen: Chosen
): Fixed & Chosen {
  const clash = Object.keys(chosen).find(option => option in fixed)
  if (clash === undefined) return { ...fixed, ...chosen }
  throw unknownOption(fixed.name, clash, 'the class sets it')
}

const CLIENT_AUTHENTICATION: readonly ClientAuthentication[] = ['client_secret_basic', 'client_secret_post']

/** @throws OptionsError naming the option, unless the value is a client authentication method */
export function assertClientAuthentication (value: ClientAuthentication, name: string): void {
  if (CLIENT_AUTHENTICATION.includes(value)) return
  throw new OptionsError(`${name}: clientAuthentication must be ${CLIENT_AUTHENTICATION.join(' or ')}`)
}

/**
 * Checks that an option is a URL with nothing but a host and a port, and returns its origin.
 *
 * @param expected what the URL belongs to, with an example, for the message
 * @throws OptionsError naming the option
 */
export function checkedOrigin (
  value: unknown, option: string, expected: string, allowInsecureRequests = false
): string {
  const url = isSecureUrl(value, allowInsecureRequests) ? new URL(String(value)) : null
  if (url !== null && url.href === `${url.origin}/`) return url.origin
  throw new OptionsError(`${option} must be the https: URL of ${expected}, with nothing but a host and a port`)
}

/** @throws OptionsError unless the name can be a segment of the routes */
export function assertProviderName (name: unknown): asserts name is string {
  if (typeof name !== 'string' || name.length > 63 || !NAME.test(name)) {
    throw new OptionsError(
      'name of a provider must be lower-case letters, digits and hyphens: it becomes a segment of the URL')
  }
  if (RESERVED_NAMES.includes(name)) {
    throw new OptionsError(`name of a provider must not be "${name}", which is reserved`)
  }
}
