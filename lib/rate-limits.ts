import { type Complete, withoutUndefined } from './base/defaults.js'
import { isPlainObject } from './claims.js'
import { OptionsError } from './errors.js'

/**
 * Limits how often one address may try. Of an IPv6 address the /64 counts, because one customer has
 * all of it.
 */
export interface RateLimitOptions {
  /** Milliseconds in which attempts are counted; default 900000 (15 minutes). */
  timeWindow?: number | undefined
  /** How many times the limits of one address an IPv6 network (/48) has; default 10. */
  network?: number | undefined
  /** Sign-ins by password from one address; default 300. */
  login?: number | undefined
  /**
   * Passwords for one e-mail from one address, at the sign-in and in forms that ask for a password
   * of an account; default 20. Other addresses have counts of their own, so that an attacker cannot
   * lock the owner of the e-mail out.
   */
  account?: number | undefined
  /**
   * Sign-ins started at a provider from one address; default 300. They have a count of their own,
   * because pages of other sites can start them.
   */
  start?: number | undefined
  /** Registrations from one address; default 60. */
  register?: number | undefined
  /** Returns from a provider from one address; default 300. */
  callback?: number | undefined
  /**
   * Passwords by which one signed-in user reauthenticates, and changes of their
   * credentials; default 10. They count for the user, from any address: an open session must not
   * serve to guess its password.
   */
  reauthenticate?: number | undefined
  /**
   * Requests for a mail from one address, registrations included where mails are sent; default 30.
   * Mailboxes have limits of their own: the option `mails.limits` of the local identity provider.
   */
  mail?: number | undefined
  /** Tokens from mails that one address sends; default 60. */
  code?: number | undefined
  /** Codes and passkeys from one address, and apps that are set up; default 600. */
  factor?: number | undefined
  /**
   * Challenges for passkeys that one address asks for; default 3000. The sign-in page asks for one
   * when it is opened, and then every four minutes.
   */
  challenge?: number | undefined
  /**
   * Where attempts are counted: in the `memory` of each process, or by a store class as
   * @fastify/rate-limit takes it. Default: a `SqlAuthStore` on Postgres counts for all processes;
   * with other stores, each process counts in its memory.
   */
  store?: 'memory' | (new (options: object) => RateLimitStore) | undefined
}

/** Stores counts that several machines share, as @fastify/rate-limit uses them. */
export interface RateLimitStore {
  /** Adds one to a count; `ttl` is the number of milliseconds until the count starts again. */
  incr (
    key: string,
    callback: (error: Error | null, result?: { current: number, ttl: number }) => void,
    timeWindow: number,
    max: number
  ): void
  /** Returns the store of one route, with counts of its own. */
  child (options: object): RateLimitStore
}

/** The limits by name, with the attempts that each allows within `timeWindow` by default. */
const LIMITS = {
  login: 300,
  account: 20,
  start: 300,
  register: 60,
  callback: 300,
  reauthenticate: 10,
  mail: 30,
  code: 60,
  factor: 600,
  challenge: 3000
} as const

const DEFAULTS = {
  timeWindow: 15 * 60 * 1000,
  network: 10,
  ...LIMITS
} as const satisfies Complete<Omit<RateLimitOptions, 'store'>>

/** The name of a limit. */
export type Limited = keyof typeof LIMITS

/** The option `rateLimit` with its defaults. */
export type ResolvedRateLimits = Readonly<Record<keyof typeof DEFAULTS, number> & Pick<RateLimitOptions, 'store'>>

/**
 * Checks the option `rateLimit`.
 *
 * @param hasRateLimit whether the application has registered @fastify/rate-limit itself
 * @returns null for no limits
 * @throws OptionsError naming the option
 */
export function checkedRateLimit (rateLimit: unknown, hasRateLimit: boolean): ResolvedRateLimits | null {
  if (rateLimit === false) return null
  if (!isRateLimit(rateLimit)) {
    throw new OptionsError(`rateLimit must be false or { ${Object.keys(DEFAULTS).join(', ')}: whole numbers from 1, ` +
      'store: \'memory\' or a class with incr and child }; timeWindow is in milliseconds')
  }
  if (hasRateLimit && rateLimit.store !== undefined) {
    throw new OptionsError('rateLimit.store must be absent: ' +
      'the application has registered @fastify/rate-limit itself, and its store is used')
  }
  return Object.freeze({ ...DEFAULTS, ...withoutUndefined(rateLimit) })
}

function isRateLimit (value: unknown): value is RateLimitOptions {
  if (!isPlainObject(value)) return false
  const { store, ...numbers } = value
  return (store === undefined || store === 'memory' || isStoreClass(store)) &&
    Object.entries(numbers).every(([name, number]) => Object.hasOwn(DEFAULTS, name) && isCount(number))
}

function isCount (value: unknown): boolean {
  return value === undefined || (Number.isSafeInteger(value) && Number(value) >= 1)
}

function isStoreClass (value: unknown): boolean {
  const { incr, child }: { incr?: unknown, child?: unknown } = Object(typeof value === 'function' && value.prototype)
  return typeof incr === 'function' && typeof child === 'function'
}
