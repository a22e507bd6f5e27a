import { type Defined, withoutUndefined } from '../base/values.js'
import { isPlainObject, isText } from '../claims.js'
import { isSecureUrl } from '../core/fetching.js'
import { isPath } from '../core/redirects.js'
import { OptionsError } from '../errors.js'
import {
  type Check, type Checks, type ChecksOf, assertKnownOptions, callable, checkedMembers, listOf, mustBe, optional, text,
  unknownOption, wholeNumber
} from '../option-checks.js'
import { isBare } from '../secrets.js'
import type { ProviderOptions } from './provider.js'

const NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/

/** Names of routes, and of members that every object has. */
const RESERVED_NAMES = [
  'local', 'application', 'guest', 'connections', 'device', 'oauth', 'pages', 'session', 'login', 'callback',
  'constructor', 'prototype'
]

/** Parameters that the flow sets; a static value would disable a check. */
const FLOW_PARAMETERS = [
  'client_id', 'redirect_uri', 'response_type', 'response_mode', 'scope', 'state', 'nonce', 'code_challenge',
  'code_challenge_method', 'request', 'request_uri'
]

const HOW_TO_SET = ', and there is none; set the environment variable that it comes from, ' +
  'or use providersFromEnv(), which leaves out a provider without settings'

const ALONE = ', without quotes or blanks around it, and without control characters'

/** The options of every provider class. */
const commonOptions = (scopes: readonly string[]) => ({
  clientId: issued('client id'),
  clientSecret: issued('client secret'),
  scopes: optional(listOf('a list of strings', isText), scopes),
  authorizationParams: optional(parameters, {}),
  label: optional(text),
  icon: optional(mustBe('a path of this application, such as /google.svg', isPath)),
  timeout: optional(wholeNumber(1, 60_000, 'milliseconds'), 5000),
  fetch: optional(callable<typeof fetch>(), globalThis.fetch)
} satisfies ChecksOf<ProviderOptions>)

/** Checks the options of a provider class: those of every class, and its own by a table. */
export function checkedProviderOptions<Own extends Checks> (
  { name, ...options }: Omit<ProviderOptions, 'clientSecret'> & { name: string }, scopes: readonly string[], own: Own
) {
  assertProviderName(name)
  const common = commonOptions(scopes)
  const checks = { ...common, ...own }
  assertKnownOptions(name, options, Object.keys(checks), () =>
    `expected one of ${Object.keys(common).join(', ')}, or one that only this provider has`)
  return { name, ...checkedMembers(options, checks, `${name}: `) }
}

/** An absent value usually comes from an environment variable that is not set. */
export function issued (what: string): Check<string> {
  const expected = `the ${what} that the provider gave you`
  const [given, absent] = [mustBe(expected + ALONE, isBare), mustBe(expected + HOW_TO_SET, isText)]
  return (value, option) => (value === undefined || value === '' ? absent : given)(value, option)
}

function parameters (value: unknown, option: string): Readonly<Record<string, string>> {
  const given = mustBe('an object of strings', areStrings)(value, option)
  const reserved = FLOW_PARAMETERS.find(parameter => parameter in given)
  if (reserved === undefined) return { ...given }
  throw new OptionsError(`${option} must not contain "${reserved}"; the sign-in sets it`)
}

function areStrings (value: unknown): value is Record<string, string> {
  return isPlainObject(value) && Object.values(value).every(isText)
}

/** The options of a class: those that it sets, its defaults, and those of the application. */
export function preset<Fixed extends { name: string }, Default extends object, Chosen extends object> (
  fixed: Fixed, defaults: Default, chosen: Chosen
): Fixed & Default & Defined<Chosen> {
  const clash = Object.keys(chosen).find(option => option in fixed)
  if (clash !== undefined) throw unknownOption(fixed.name, clash, 'the class sets it')
  return { ...fixed, ...defaults, ...withoutUndefined(chosen) }
}

/** An option that is a URL with nothing but a host and a port, and becomes its origin. */
export function originOf (owner: string, allowInsecureRequests = false): Check<string> {
  const isOrigin = (value: unknown): value is string =>
    isSecureUrl(value, allowInsecureRequests) && new URL(value).href === `${new URL(value).origin}/`
  const check = mustBe(`the https: URL of ${owner}, with nothing but a host and a port`, isOrigin)
  return (value, option) => new URL(check(value, option)).origin
}

/** Checks that a name can be a segment of the routes. */
export function assertProviderName (name: unknown): asserts name is string {
  if (typeof name !== 'string' || name.length > 63 || !NAME.test(name)) {
    throw new OptionsError(
      'name of a provider must be lower-case letters, digits and hyphens: it becomes a segment of the URL')
  }
  if (RESERVED_NAMES.includes(name)) {
    throw new OptionsError(`name of a provider must not be "${name}", which is reserved`)
  }
}
