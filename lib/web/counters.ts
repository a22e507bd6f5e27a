import fastifyRateLimit, { type RateLimitOptions } from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { wrapStoreErrors } from '../accounts/auth-store.js'
import { BoundedMap } from '../base/bounded-map.js'
import { TIMEOUT_MS, withTimeout } from '../base/with-timeout.js'
import type { ResolvedRateLimits } from '../rate-limits.js'
import type { AttemptCounter } from '../store/attempts.js'

/** What is counted: a request, or something that it causes. */
export interface Attempt {
  readonly request: FastifyRequest
}

/** How many attempts are allowed within a number of milliseconds. */
export interface Allowance {
  readonly max: number
  readonly timeWindow: number
}

/** A limit by one part of an attempt. */
export interface Rule<Counted extends Attempt = Attempt> extends Allowance {
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
export type Count<Counted extends Attempt> = (attempt: Counted, meanwhile?: () => void) => Promise<number | null>

/** Makes what counts by some rules. A rule has one count, however often it is given. */
export type Counter = <Counted extends Attempt>(rules: ReadonlyArray<Rule<Counted>>) => Count<Counted>

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
  const settings: RateLimitOptions = {
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
