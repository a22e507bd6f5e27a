import { isIP, isIPv6 } from 'node:net'
import fastifyRateLimit, { type RateLimitOptions, normalizeIP } from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { canonicalEmail } from '../email.js'
import { AuthError } from '../errors.js'
import { PATIENCE_MS, inTime } from '../base/in-time.js'
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
  if (options === null) return { login: unlimited, account: unlimited, start: unlimited, register: unlimited, callback: unlimited }
  const { timeWindow, network, login, account, start, register, callback, store } = options

  if (!scope.hasDecorator('createRateLimit')) await scope.register(fastifyRateLimit, { global: false, ...(store !== undefined && { store }) })

  const counter = (max: number, keyOf: (request: FastifyRequest) => string): (request: FastifyRequest) => Promise<void> => {
    // Complete, for the application may have registered the plugin with other ideas.
    const limiting: RateLimitOptions = {
      max,
      timeWindow,
      keyGenerator: keyOf,
      cache: MAX_REMEMBERED,
      allowList: [],
      ban: -1,
      continueExceeding: false,
      exponentialBackoff: false,
      skipOnError: false
    }
    const count = scope.createRateLimit(limiting)
    return async request => {
      const counted = await count(request)
      if (!counted.isAllowed && counted.isExceeded) throw new AuthError('rate_limited', { retryAfter: Math.max(1, counted.ttlInSeconds) })
    }
  }

  const limit = (name: Limited, max: number, about: (request: FastifyRequest) => string = () => ''): Limit => {
    const countAddress = counter(max, request => `svc-auth-${name}:${addressOf(request)}${about(request)}`)
    const countNetwork = counter(max * network, request => `svc-auth-${name}:${networkOf(request)}/48${about(request)}`)
    const count = async (request: FastifyRequest): Promise<void> => {
      // In this order: what an address tries in vain leaves the tries to others in its network.
      await countAddress(request)
      if (isIPv6(addressOf(request))) await countNetwork(request)
    }
    return async request => inTime(PATIENCE_MS, count(request), 'the store of counts')
  }

  return {
    login: limit('login', login),
    account: limit('account', account, request => ` ${emailIn(request)}`),
    start: limit('start', start),
    register: limit('register', register),
    callback: limit('callback', callback)
  }
}

async function unlimited (): Promise<void> {}

/** The client's address, under which its requests count: of an IPv6 address the /64, for one customer has at least that much. */
export function addressOf (request: FastifyRequest): string {
  return prefixOf(request, 64)
}

/** The /48 of an IPv6 address: a site may have that much, and a free tunnel too (RFC 6177). */
function networkOf (request: FastifyRequest): string {
  return prefixOf(request, 48)
}

/** Some proxies add the port. Anything that is not an address, as on a Unix socket, counts as one. */
function prefixOf ({ ip }: FastifyRequest, bits: number): string {
  const [, bracketed, plain] = /^\[([^\]]+)\](?::\d+)?$|^([^:]+):\d+$/.exec(ip) ?? []
  const address = bracketed ?? plain ?? ip
  return isIP(address) === 0 ? 'unknown' : normalizeIP(address, bits)
}

/** However it is spelt; all that nobody can have count as one. */
function emailIn ({ body }: FastifyRequest): string | null {
  const { email }: { email?: unknown } = Object(body)
  return canonicalEmail(String(email))
}
