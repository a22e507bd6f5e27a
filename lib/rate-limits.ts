import { type ChecksOf, hasMethods, mustBe, optional, tableOrBoolean, wholeNumber } from './option-checks.js'

/** How often one address may try. Of IPv6 the /64 counts, because one customer has all of it. */
export interface RateLimitOptions {
  /** Milliseconds in which attempts are counted; default 900000 (15 minutes). */
  timeWindow?: number | undefined
  /** How many times the limits of one address an IPv6 network (/48) has; default 10. */
  network?: number | undefined
  /** Sign-ins by password from one address; default 300. */
  login?: number | undefined
  /**
   * Passwords for one e-mail from one address, at the sign-in and in other forms; default 20. Each
   * address has its own count, so that an attacker cannot lock the owner of the e-mail out.
   */
  account?: number | undefined
  /** Sign-ins at a provider started from one address, by links of other sites too; default 300. */
  start?: number | undefined
  /** Registrations from one address; default 60. */
  register?: number | undefined
  /** Returns from a provider from one address; default 300. */
  callback?: number | undefined
  /**
   * Passwords by which one signed-in user reauthenticates, and changes of their credentials, from
   * any address; default 10. An open session must not serve to guess its password.
   */
  reauthenticate?: number | undefined
  /**
   * Requests for a mail from one address, registrations included where mails are sent; default 30.
   * Mailboxes have limits of their own: `mails.limits` of the local identity provider.
   */
  mail?: number | undefined
  /** Tokens and sign-in codes from mails that one address sends; default 60. */
  code?: number | undefined
  /** Codes and passkeys from one address, and apps that are set up; default 600. */
  factor?: number | undefined
  /** Challenges for passkeys, one each four minutes of a sign-in page; default 3000. */
  challenge?: number | undefined
  /**
   * Counts attempts: `memory`, in each process, or a store class as @fastify/rate-limit takes it.
   * By default `SqlAuthStore` on Postgres counts for all processes, other stores as `memory`.
   */
  store?: 'memory' | (new (options: object) => RateLimitStore) | undefined
}

/** A store of @fastify/rate-limit. */
export interface RateLimitStore {
  /** Adds one to a count; `ttl`: milliseconds until it starts again. */
  incr (
    key: string,
    callback: (error: Error | null, result?: { current: number, ttl: number }) => void,
    timeWindow: number,
    max: number
  ): void
  /** Returns the store of one route, with counts of its own. */
  child (options: object): RateLimitStore
}

const attempts = (byDefault: number) => optional(wholeNumber(1), byDefault)

/** The attempts that each limit allows within `timeWindow`. */
const LIMITS = {
  login: attempts(300),
  account: attempts(20),
  start: attempts(300),
  register: attempts(60),
  callback: attempts(300),
  reauthenticate: attempts(10),
  mail: attempts(30),
  code: attempts(60),
  factor: attempts(600),
  challenge: attempts(3000)
}

export type Limited = keyof typeof LIMITS

/** Checks the option `rateLimit`; null for no limits. */
export const checkedRateLimit = tableOrBoolean({
  timeWindow: optional(wholeNumber(1, Infinity, 'milliseconds'), 15 * 60 * 1000),
  network: attempts(10),
  ...LIMITS,
  store: optional(mustBe("'memory' or a class with incr and child", isStore))
} satisfies ChecksOf<RateLimitOptions>)

export type ResolvedRateLimits = NonNullable<ReturnType<typeof checkedRateLimit>>

function isStore (value: unknown): value is NonNullable<RateLimitOptions['store']> {
  const isClass = typeof value === 'function' && hasMethods<RateLimitStore>('incr', 'child')(value.prototype)
  return value === 'memory' || isClass
}
