import { isIP } from 'node:net'
import fastifyRateLimit, { type RateLimitOptions, normalizeIP } from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { canonicalEmail } from '../email.js'
import { AuthError } from '../errors.js'
import { PATIENCE_MS, inTime } from '../in-time.js'
import type { Limited, ResolvedRateLimits } from '../options.js'

/** A limit is an `onRequest` hook; that of an account looks at the body, so it is a `preHandler`. */
type Limit = (request: FastifyRequest) => Promise<void>

export type RateLimits = Readonly<Record<Limited, Limit>>

/** Counts that one process remembers, a limit; the ones that were used longest ago go first. */
const MAX_REMEMBERED = 50_000

/**
 * The limits of the routes. They count every attempt, also those that succeed, and before it is made: many at once are many.
 *
 * An application that has registered @fastify/rate-limit itself has chosen a store; the counts are kept there.
 *
 * @param options null for no limits
 */
export async function setUpRateLimits (scope: FastifyInstance, options: ResolvedRateLimits | null): Promise<RateLimits> {
  if (options === null) return { login: unlimited, account: unlimited, register: unlimited, callback: unlimited }
  const { timeWindow, login, account, register, callback, store } = options

  if (!scope.hasDecorator('createRateLimit')) await scope.register(fastifyRateLimit, { global: false, ...(store !== undefined && { store }) })

  const limit = (name: Limited, max: number, keyOf: (request: FastifyRequest) => string): Limit => {
    // Complete, for the application may have registered the plugin with other ideas.
    const limiting: RateLimitOptions = {
      max,
      timeWindow,
      keyGenerator: request => `svc-auth-${name}:${keyOf(request)}`,
      cache: MAX_REMEMBERED,
      allowList: [],
      ban: -1,
      continueExceeding: false,
      exponentialBackoff: false,
      skipOnError: false
    }
    const count = scope.createRateLimit(limiting)
    return async request => {
      const counted = await inTime(PATIENCE_MS, count(request), 'the store of counts')
      if (!counted.isAllowed && counted.isExceeded) throw new AuthError('rate_limited', { retryAfter: Math.max(1, counted.ttlInSeconds) })
    }
  }

  return {
    login: limit('login', login, addressOf),
    account: limit('account', account, request => `${addressOf(request)} ${emailIn(request)}`),
    register: limit('register', register, addressOf),
    callback: limit('callback', callback, addressOf)
  }
}

async function unlimited (): Promise<void> {}

/** The client's address, under which its requests count. Some proxies add the port; what is not an address, as on a Unix socket, counts as one. */
export function addressOf ({ ip }: FastifyRequest): string {
  const [, bracketed, plain] = /^\[([^\]]+)\](?::\d+)?$|^([^:]+):\d+$/.exec(ip) ?? []
  const address = bracketed ?? plain ?? ip
  return isIP(address) === 0 ? 'unknown' : normalizeIP(address)
}

/** However it is spelt; all that nobody can have count as one. */
function emailIn ({ body }: FastifyRequest): string | null {
  const { email }: { email?: unknown } = Object(body)
  return canonicalEmail(String(email))
}
