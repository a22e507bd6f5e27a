import fastifyRateLimit, { type RateLimitOptions } from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { BoundedMap } from '../base/bounded-map.js'
import type { ResolvedRateLimits } from '../rate-limits.js'
import type { TryCounts } from '../store/try-counts.js'

/** A limit by one part of the request. */
export interface Rule {
  /** How many tries it allows within the number of milliseconds. */
  readonly max: number
  readonly timeWindow: number
  /** What a request is counted by; null for those that are not counted. */
  readonly keyOf: (request: FastifyRequest) => string | null
}

/**
 * Counts a request by several rules in their order, up to the first one that it is beyond.
 *
 * @returns milliseconds until the count of that rule starts again; null when the request is within
 *   all of them
 */
export type Count = (request: FastifyRequest) => Promise<number | null>

/** Makes what counts by some rules. A rule has one count, however often it is given. */
export type Counter = (rules: readonly Rule[]) => Count

/**
 * The counts that one process keeps for each rule; above this number the least recently used are
 * dropped.
 */
const MAX_COUNTS = 50_000

/**
 * Chooses where requests are counted: in the store of @fastify/rate-limit where the application has
 * registered it itself, else as the option `rateLimit.store` says, else in the database.
 *
 * @param shared the counts of the database; null when it has none
 */
export async function setUpCounter (
  scope: FastifyInstance,
  { store }: Pick<ResolvedRateLimits, 'store'>,
  shared: TryCounts | null
): Promise<Counter> {
  const isRegistered = scope.hasDecorator('createRateLimit')
  if (shared !== null && store === undefined && !isRegistered) return counterIn(shared)
  if (!isRegistered) {
    const isClass = store !== undefined && store !== 'memory'
    await scope.register(fastifyRateLimit, { global: false, ...(isClass && { store }) })
  }
  return counterByPlugin(scope)
}

/**
 * Counts in the database, by one statement for all rules. A client that is beyond a limit stays so
 * until its count starts again: the process knows, and a flood of tries causes no statements.
 */
function counterIn (counts: TryCounts): Counter {
  const exceeded = new BoundedMap<number>(MAX_COUNTS)
  return rules => async request => {
    const tries = rules.flatMap(({ max, timeWindow, keyOf }) => {
      const key = keyOf(request)
      return key === null ? [] : [{ key, max, timeWindow }]
    })
    const known = Math.max(...tries.map(({ key }) => exceeded.get(key) ?? 0)) - Date.now()
    if (known > 0) return known
    const limit = await counts.count(tries)
    if (limit === null) return null
    exceeded.set(limit.key, Date.now() + limit.wait)
    return limit.wait
  }
}

/** Counts by @fastify/rate-limit: in its memory, or in the store that it was given. */
function counterByPlugin (scope: FastifyInstance): Counter {
  const counted = new Map<Rule, Count>()
  const countBy = (rule: Rule): Count => {
    const count = counted.get(rule) ?? countByPlugin(scope, rule)
    counted.set(rule, count)
    return count
  }
  return rules => {
    const counts = rules.map(countBy)
    return async request => {
      for (const count of counts) {
        const wait = await count(request)
        if (wait !== null) return wait
      }
      return null
    }
  }
}

function countByPlugin (scope: FastifyInstance, { max, timeWindow, keyOf }: Rule): Count {
  // All settings, because the application may have registered the plugin with other defaults.
  const settings: RateLimitOptions = {
    max,
    timeWindow,
    keyGenerator: request => keyOf(request) ?? '',
    cache: MAX_COUNTS,
    allowList: [],
    ban: -1,
    continueExceeding: false,
    exponentialBackoff: false,
    skipOnError: false
  }
  const count = scope.createRateLimit(settings)
  return async request => {
    if (keyOf(request) === null) return null
    const counted = await count(request)
    return !counted.isAllowed && counted.isExceeded ? counted.ttl : null
  }
}
