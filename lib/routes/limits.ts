import { isIP, isIPv6 } from 'node:net'
import fastifyRateLimit, { type RateLimitOptions, normalizeIP } from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { PATIENCE_MS, inTime } from '../base/in-time.js'
import { canonicalEmail } from '../email.js'
import { AuthError } from '../errors.js'
import type { Limited, ResolvedRateLimits } from '../rate-limits.js'
import { principalOf } from '../session/record.js'

/**
 * Counts a request and refuses it beyond the limit. `account` reads the body, so it is a
 * `preHandler`; the others may be `onRequest` hooks.
 */
type Limit = (request: FastifyRequest) => Promise<void>

/** The limits of the routes, by name. */
export type RateLimits = Readonly<Record<Limited, Limit>> & {
  /**
   * Counts a password for the account with an e-mail in canonical form, as `account` does for a
   * sign-in, whose form has the e-mail.
   *
   * @throws AuthError `rate_limited`
   */
  readonly attempt: (request: FastifyRequest, email: string) => Promise<void>
  /** Counts a new e-mail for the signed-in user: each is a mail to an address of their choice. */
  readonly newEmail: Limit
  /**
   * Counts a mail to an address in canonical form, whether or not an account has it.
   *
   * @returns whether it may be sent
   */
  readonly mayMail: (request: FastifyRequest, email: string) => Promise<boolean>
}

/** The mails that one mailbox gets at most, each within a number of milliseconds. */
const MAILBOX_LIMITS = [{ max: 1, timeWindow: 60_000 }, { max: 5, timeWindow: 60 * 60_000 }]

/** The new e-mails that one user asks for at most, within a number of milliseconds. */
const NEW_EMAIL_LIMIT = { max: 5, timeWindow: 60 * 60_000 }

/** What a limit counts by. */
interface Key {
  /** A part of the request, besides the address. */
  and?: (request: FastifyRequest) => string
  /** A part of the request, in place of the address. */
  alone?: (request: FastifyRequest) => string
}

/** Makes a limit that counts by address unless the key says otherwise. */
type LimitFactory = (name: Limited, key?: Key) => Limit

/**
 * The counts that one process keeps for each limit; above this number the least recently used are
 * dropped.
 */
const MAX_COUNTS = 50_000

/**
 * Sets up the limits of the routes. An attempt is counted before it is made, so that many at once
 * are limited too, and successful attempts count as well.
 *
 * Where the application has registered @fastify/rate-limit itself, its store keeps the counts.
 *
 * @param options null for no limits
 */
export async function setUpRateLimits (
  scope: FastifyInstance,
  options: ResolvedRateLimits | null
): Promise<RateLimits> {
  const { limit, newEmail, mayMail } = options === null ? UNLIMITED : await limitFactory(scope, options)
  const account = limit('account', { and: request => ` ${emailOf(request)}` })
  return {
    login: limit('login'),
    account,
    attempt: async (request, email) => {
      emails.set(request, email)
      await account(request)
    },
    start: limit('start'),
    register: limit('register'),
    callback: limit('callback'),
    reauthenticate: limit('reauthenticate', { alone: userIn }),
    mail: limit('mail'),
    code: limit('code'),
    newEmail,
    mayMail
  }
}

interface Limits {
  limit: LimitFactory
  newEmail: Limit
  mayMail: RateLimits['mayMail']
}

const UNLIMITED: Limits = { limit: () => async () => {}, newEmail: async () => {}, mayMail: async () => true }

async function limitFactory (scope: FastifyInstance, options: ResolvedRateLimits): Promise<Limits> {
  const { timeWindow: ownWindow, network, store } = options
  if (!scope.hasDecorator('createRateLimit')) {
    await scope.register(fastifyRateLimit, { global: false, ...(store !== undefined && { store }) })
  }

  const counter = (max: number, keyOf: (request: FastifyRequest) => string, timeWindow = ownWindow): Limit => {
    // All settings, because the application may have registered the plugin with other defaults.
    const settings: RateLimitOptions = {
      max,
      timeWindow,
      keyGenerator: keyOf,
      cache: MAX_COUNTS,
      allowList: [],
      ban: -1,
      continueExceeding: false,
      exponentialBackoff: false,
      skipOnError: false
    }
    const count = scope.createRateLimit(settings)
    return async request => {
      const counted = await count(request)
      if (counted.isAllowed || !counted.isExceeded) return
      throw new AuthError('rate_limited', { retryAfter: Math.max(1, counted.ttlInSeconds) })
    }
  }

  const inPatience = (count: Limit): Limit => request => inTime(PATIENCE_MS, count(request), 'the store of counts')

  const mailboxLimits = MAILBOX_LIMITS.map(({ max, timeWindow }) =>
    inPatience(counter(max, request => `svc-auth-mailbox-${timeWindow}:${emailOf(request)}`, timeWindow)))
  const mayMail = async (request: FastifyRequest, email: string): Promise<boolean> => {
    emails.set(request, email)
    try {
      for (const count of mailboxLimits) await count(request)
      return true
    } catch (error) {
      if (error instanceof AuthError && error.code === 'rate_limited') return false
      throw error
    }
  }

  const { max, timeWindow } = NEW_EMAIL_LIMIT
  const newEmail = inPatience(counter(max, request => `svc-auth-new-email:${userIn(request)}`, timeWindow))

  const limit: LimitFactory = (name, { and: partOf = () => '', alone } = {}) => {
    if (alone !== undefined) return inPatience(counter(options[name], request => `svc-auth-${name}:${alone(request)}`))
    const countAddress = counter(options[name], request => `svc-auth-${name}:${addressOf(request)}${partOf(request)}`)
    const countNetwork = counter(
      options[name] * network,
      request => `svc-auth-${name}:${networkOf(request)}/48${partOf(request)}`
    )
    return inPatience(async request => {
      // In this order: attempts that an address has left do not use up those of its network.
      await countAddress(request)
      if (isIPv6(addressOf(request))) await countNetwork(request)
    })
  }
  return { limit, newEmail, mayMail }
}

/**
 * The client's address as the limits count it: of an IPv6 address the /64, because one customer has
 * at least that much.
 */
export function addressOf (request: FastifyRequest): string {
  return prefixOf(request, 64)
}

/**
 * The /48 of an IPv6 address: a site, or the user of a free tunnel, may have all of it (RFC 6177).
 */
function networkOf (request: FastifyRequest): string {
  return prefixOf(request, 48)
}

/**
 * The prefix of the client's address. Values that are not addresses, as on a Unix socket, count as
 * one.
 */
function prefixOf ({ ip }: FastifyRequest, bits: number): string {
  // Some proxies add the port.
  const [, bracketed, plain] = /^\[([^\]]+)\](?::\d+)?$|^([^:]+):\d+$/.exec(ip) ?? []
  const address = bracketed ?? plain ?? ip
  return isIP(address) === 0 ? 'unknown' : normalizeIP(address, bits)
}

/** The signed-in user. Requests without one count as one: they are refused. */
function userIn (request: FastifyRequest): string {
  return principalOf(request)?.userId ?? ''
}

/** E-mails in canonical form that requests are counted by, where their form does not have them. */
const emails = new WeakMap<FastifyRequest, string>()

/** The e-mail that a request is counted by. Values that are not e-mails count as one. */
function emailOf (request: FastifyRequest): string | null {
  const { email }: { email?: unknown } = Object(request.body)
  return emails.get(request) ?? canonicalEmail(String(email))
}
