import { isIP, isIPv6 } from 'node:net'
import fastifyRateLimit, { type RateLimitOptions as FastifyRateLimitOptions, normalizeIP } from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { wrapStoreErrors } from '../accounts/auth-store.js'
import { TIMEOUT_MS, withTimeout } from '../base/concurrency.js'
import { BoundedMap } from '../base/values.js'
import { AuthError } from '../errors.js'
import { type ChecksOf, hasMethods, mustBe, optional, tableOrBoolean, wholeNumber } from '../option-checks.js'
import { sentFields } from './site.js'
import { principalOf } from '../session/record.js'
import type { AttemptCounter } from '../session/store.js'

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
   * Requests of programs to the authorization server, and logout tokens of providers, from one
   * address; default 30000. An assistant in the cloud asks from a few addresses for all its users.
   */
  token?: number | undefined
  /** Guests from one address in an hour; default 20. */
  guest?: number | undefined
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
  challenge: attempts(3000),
  token: attempts(30_000),
  guest: attempts(20)
}

type Limited = keyof typeof LIMITS

/** Checks the option `rateLimit`; null for no limits. */
export const checkedRateLimit = tableOrBoolean({
  timeWindow: optional(wholeNumber(1, Infinity, 'milliseconds'), 15 * 60 * 1000),
  network: attempts(10),
  ...LIMITS,
  store: optional(mustBe("'memory' or a class with incr and child", isStore))
} satisfies ChecksOf<RateLimitOptions>)

type ResolvedRateLimits = NonNullable<ReturnType<typeof checkedRateLimit>>

function isStore (value: unknown): value is NonNullable<RateLimitOptions['store']> {
  const isClass = typeof value === 'function' && hasMethods<RateLimitStore>('incr', 'child')(value.prototype)
  return value === 'memory' || isClass
}

/** What is counted: a request, or something that it causes. */
export interface LimitedAttempt {
  readonly request: FastifyRequest
}

/** How many attempts are allowed within a number of milliseconds. */
export interface Allowance {
  readonly max: number
  readonly timeWindow: number
}

/** A limit by one part of an attempt. */
export interface LimitRule<Counted extends LimitedAttempt = LimitedAttempt> extends Allowance {
  /** What an attempt is counted by; null for those that are not counted. */
  readonly keyOf: (attempt: Counted) => string | null
}

/**
 * Counts an attempt by several rules in their order, up to the first one that it is beyond.
 *
 * @param meanwhile called while a database counts, for what is asked of it together with the counts
 * @returns milliseconds until the count of that rule starts again; null when the attempt is within
 *   all of them
 */
export type Count<Counted extends LimitedAttempt> = (attempt: Counted, meanwhile?: () => void) => Promise<number | null>

/** Makes what counts by some rules. A rule has one count, however often it is given. */
export type Counter = <Counted extends LimitedAttempt>(rules: ReadonlyArray<LimitRule<Counted>>) => Count<Counted>

/** The counts that one process keeps for each rule; above it, the least recently used go. */
const MAX_COUNTS = 50_000

/**
 * Chooses where attempts are counted: in the store of @fastify/rate-limit where the application has
 * registered it itself, else as the option `rateLimit.store` says, else in the database.
 *
 * @param options null where the application wants no limits of clients
 * @param shared the counts of the database; null when it has none
 */
export async function setUpCounter (
  app: FastifyInstance, options: Pick<ResolvedRateLimits, 'store'> | null, shared: AttemptCounter | null
): Promise<Counter> {
  const counter = await chooseCounter(app, options?.store, shared)
  return rules => {
    const count = counter(rules)
    return (...attempt) => wrapStoreErrors(() =>
      withTimeout(TIMEOUT_MS, count(...attempt), 'the store of counts'))
  }
}

async function chooseCounter (
  app: FastifyInstance, store: ResolvedRateLimits['store'], shared: AttemptCounter | null
): Promise<Counter> {
  if (app.hasDecorator('createRateLimit')) return counterByPlugin(app)
  if (shared !== null && store === undefined) return counterIn(shared)
  const isClass = store !== undefined && store !== 'memory'
  let limited = app
  // In a context of its own, so that the application may register the plugin too.
  await app.register(async scope => {
    await scope.register(fastifyRateLimit, { global: false, ...(isClass && { store }) })
    limited = scope
  })
  return counterByPlugin(limited)
}

/**
 * Counts in the database, by one statement for all rules. The process knows who is beyond a limit
 * until the count starts again: a flood of attempts causes no statements.
 */
function counterIn (counts: AttemptCounter): Counter {
  const exceeded = new BoundedMap<number>(MAX_COUNTS)
  return rules => async (attempt, meanwhile) => {
    const attempts = rules.flatMap(({ max, timeWindow, keyOf }) => {
      const key = keyOf(attempt)
      return key === null ? [] : [{ key, max, timeWindow }]
    })
    const known = Math.max(...attempts.map(({ key }) => exceeded.get(key) ?? 0)) - Date.now()
    if (known > 0) return known
    const counted = counts.count(attempts)
    meanwhile?.()
    const limit = await counted
    if (limit === null) return null
    exceeded.set(limit.key, Date.now() + limit.wait)
    return limit.wait
  }
}

function counterByPlugin (scope: FastifyInstance): Counter {
  const counted = new Map<object, CountOfKey>()
  return rules => {
    const counts = rules.map(rule => {
      const count = counted.get(rule) ?? countByPlugin(scope, rule)
      counted.set(rule, count)
      return { keyOf: rule.keyOf, count }
    })
    return async attempt => {
      for (const { keyOf, count } of counts) {
        const key = keyOf(attempt)
        const wait = key === null ? null : await count(key, attempt.request)
        if (wait !== null) return wait
      }
      return null
    }
  }
}

type CountOfKey = (key: string, request: FastifyRequest) => Promise<number | null>

function countByPlugin (scope: FastifyInstance, { max, timeWindow }: Allowance): CountOfKey {
  const keys = new WeakMap<FastifyRequest, string>()
  // All settings, because the application may have registered the plugin with other defaults.
  const settings: FastifyRateLimitOptions = {
    max,
    timeWindow,
    keyGenerator: request => keys.get(request) ?? '',
    cache: MAX_COUNTS,
    allowList: [],
    ban: -1,
    continueExceeding: false,
    exponentialBackoff: false,
    skipOnError: false
  }
  const count = scope.createRateLimit(settings)
  return async (key, request) => {
    // The plugin takes the key from a request, and one request may cause several mails at a time.
    const keyed: FastifyRequest = Object.create(request)
    keys.set(keyed, key)
    const counted = await count(keyed)
    return !counted.isAllowed && counted.isExceeded ? counted.ttl : null
  }
}

/** Counts a request, and refuses it with `rate_limited` beyond the limit. */
export type Limit = (request: FastifyRequest) => Promise<void>

export type LimitName = Exclude<Limited, 'account' | 'login'> | 'mailOrCode' | 'newEmail'

export type RateLimits = Readonly<Record<LimitName, Limit>> & {
  /**
   * Counts a sign-in by password, for the address and for the account, and looks up what it is
   * about: a database is asked for both at once.
   */
  readonly login: <Found>(attempt: SignInAttempt, lookUp: () => Promise<Found>) => Promise<Found>
  /** Counts a password for the account with an e-mail in canonical form, as `login` does. */
  readonly attempt: (request: FastifyRequest, email: string) => Promise<void>
}

interface SignInAttempt extends LimitedAttempt {
  /** The e-mail in canonical form. */
  readonly email: string
}

/**
 * Sets up the limits of the routes. An attempt is counted before it is made, so that many at once
 * are limited too, and successful attempts count as well.
 *
 * @param options null for no limits
 */
export function setUpRateLimits (counter: Counter, options: ResolvedRateLimits | null): RateLimits {
  const limited = <Counted extends LimitedAttempt>(rules: ReadonlyArray<LimitRule<Counted>>) => {
    const count = options === null ? async () => null : counter(rules)
    return async (attempt: Counted, meanwhile?: () => void): Promise<void> => {
      const wait = await count(attempt, meanwhile)
      if (wait !== null) throw rateLimited(Math.max(1, Math.ceil(wait / 1000)))
    }
  }
  const limitedRequest = (rules: readonly LimitRule[]): Limit => {
    const count = limited(rules)
    return request => count({ request })
  }
  const limit = (name: Limited): Limit => limitedRequest(byAddress(options, name))
  const limitUser = (name: string, allowed: Allowance | null): Limit => {
    // Requests without a user count as one: they are refused.
    const keyOf = ({ request }: LimitedAttempt): string => `svc-auth-${name}:${principalOf(request)?.userId ?? ''}`
    return limitedRequest(allowed === null ? [] : [{ ...allowed, keyOf }])
  }

  const perUser = options && { max: options.reauthenticate, timeWindow: options.timeWindow }
  const account = byAddress<SignInAttempt>(options, 'account', ({ email }) => ` ${email}`)
  // All counts of a sign-in in one step: in a database that is one statement.
  const login = limited([...byAddress<SignInAttempt>(options, 'login'), ...account])
  const attempt = limited(account)
  const [mail, code] = [limit('mail'), limit('code')]

  return {
    async login (attempt, lookUp) {
      let found
      await login(attempt, () => {
        found = lookUp()
        // Not heard when the attempt is refused.
        found.catch(() => {})
      })
      return await (found ?? lookUp())
    },
    attempt: (request, email) => attempt({ request, email }),
    start: limit('start'),
    register: limit('register'),
    callback: limit('callback'),
    factor: limit('factor'),
    challenge: limit('challenge'),
    token: limit('token'),
    guest: limitedRequest(byAddress(options && { ...options, timeWindow: 60 * 60_000 }, 'guest')),
    reauthenticate: limitUser('reauthenticate', perUser),
    mail,
    code,
    // A form with the token of a mail.
    mailOrCode: request => sentFields(request).token === undefined ? mail(request) : code(request),
    // Each is a mail to an address of the user's choice.
    newEmail: limitUser('new-email', options && { max: 5, timeWindow: 60 * 60_000 })
  }
}

/** The rules that count by the client's address, and by the network that it is in. */
function byAddress<Counted extends LimitedAttempt> (
  options: ResolvedRateLimits | null, name: Limited, partOf: (attempt: Counted) => string = () => ''
): Array<LimitRule<Counted>> {
  if (options === null) return []
  const { timeWindow, network, [name]: max } = options
  const keyOf = (attempt: Counted, origin: string): string => `svc-auth-${name}:${origin}${partOf(attempt)}`
  const networkOf = ({ request }: LimitedAttempt): string => `${prefixOf(request, 48)}/48`
  return [
    { max, timeWindow, keyOf: attempt => keyOf(attempt, addressOf(attempt.request)) },
    // Last: attempts that an address has left do not use up those of its network. A site, or the
    // user of a free tunnel, may have all of a /48 (RFC 6177).
    {
      max: max * network,
      timeWindow,
      keyOf: attempt => isIPv6(addressOf(attempt.request)) ? keyOf(attempt, networkOf(attempt)) : null
    }
  ]
}

/** @param retryAfter seconds, for `Retry-After` and for the sentence */
function rateLimited (retryAfter: number): AuthError {
  const [count, unit] = retryAfter < 120 ? [retryAfter, 'second'] : [Math.ceil(retryAfter / 60), 'minute']
  const message = `Too many attempts; try again in ${count} ${unit}${count === 1 ? '' : 's'}.`
  return new AuthError('rate_limited', { retryAfter, message })
}

/** The client's address as limits count it: the /64 of IPv6, which one customer has at least. */
export function addressOf (request: FastifyRequest): string {
  return prefixOf(request, 64)
}

/** The prefix of the client's address. All else, as on a Unix socket, counts as one address. */
function prefixOf ({ ip }: FastifyRequest, bits: number): string {
  // Some proxies add the port.
  const [, bracketed, plain] = /^\[([^\]]+)\](?::\d+)?$|^([^:]+):\d+$/.exec(ip) ?? []
  const address = bracketed ?? plain ?? ip
  return isIP(address) === 0 ? 'unknown' : normalizeIP(address, bits)
}
