import { isIP, isIPv6 } from 'node:net'
import { normalizeIP } from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { PATIENCE_MS, inTime } from '../base/in-time.js'
import { canonicalEmail } from '../email.js'
import { AuthError } from '../errors.js'
import type { Limited, ResolvedRateLimits } from '../rate-limits.js'
import { principalOf } from '../session/record.js'
import type { TryCounts } from '../store/try-counts.js'
import { type Count, type Rule, setUpCounter } from './counters.js'

/**
 * Counts a request and refuses it beyond the limit.
 *
 * @throws AuthError `rate_limited`
 */
type Limit = (request: FastifyRequest) => Promise<void>

/** The limits of the routes, by name. */
export type RateLimits = Readonly<Record<Exclude<Limited, 'account'>, Limit>> & {
  /**
   * Counts a sign-in by password, for the address and for the account. It reads the body, so it is
   * a `preHandler`; the others may be `onRequest` hooks.
   */
  readonly login: Limit
  /**
   * Counts a password for the account with an e-mail in canonical form, as `login` does for the
   * e-mail in the form.
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

const unlimited: Limit = async () => {}

const UNLIMITED: RateLimits = {
  login: unlimited,
  attempt: unlimited,
  start: unlimited,
  register: unlimited,
  callback: unlimited,
  reauthenticate: unlimited,
  mail: unlimited,
  code: unlimited,
  newEmail: unlimited,
  mayMail: async () => true
}

/**
 * Sets up the limits of the routes. An attempt is counted before it is made, so that many at once
 * are limited too, and successful attempts count as well.
 *
 * @param options null for no limits
 * @param shared the counts of the store, which other processes see; null when it has none
 */
export async function setUpRateLimits (
  scope: FastifyInstance,
  options: ResolvedRateLimits | null,
  shared: TryCounts | null
): Promise<RateLimits> {
  if (options === null) return UNLIMITED
  const { timeWindow, network } = options
  const counter = await setUpCounter(scope, options, shared)

  const counted = (rules: readonly Rule[]): Count => {
    const count = counter(rules)
    return request => inTime(PATIENCE_MS, count(request), 'the store of counts')
  }
  const limited = (rules: readonly Rule[]): Limit => {
    const count = counted(rules)
    return async request => {
      const wait = await count(request)
      if (wait !== null) throw new AuthError('rate_limited', { retryAfter: Math.max(1, Math.ceil(wait / 1000)) })
    }
  }

  const byAddress = (name: Limited, partOf: (request: FastifyRequest) => string = () => ''): Rule[] => {
    const keyOf = (request: FastifyRequest, origin: string): string => `svc-auth-${name}:${origin}${partOf(request)}`
    return [
      { max: options[name], timeWindow, keyOf: request => keyOf(request, addressOf(request)) },
      // In this order: attempts that an address has left do not use up those of its network.
      {
        max: options[name] * network,
        timeWindow,
        keyOf: request => isIPv6(addressOf(request)) ? keyOf(request, `${networkOf(request)}/48`) : null
      }
    ]
  }

  const account = byAddress('account', request => ` ${emailOf(request)}`)
  const attempt = limited(account)
  const mailbox = counted(MAILBOX_LIMITS.map(limit => ({
    ...limit,
    keyOf: request => `svc-auth-mailbox-${limit.timeWindow}:${emailOf(request)}`
  })))

  return {
    // All counts of a sign-in in one step: in a database that is one statement.
    login: limited([...byAddress('login'), ...account]),
    async attempt (request, email) {
      emails.set(request, email)
      await attempt(request)
    },
    start: limited(byAddress('start')),
    register: limited(byAddress('register')),
    callback: limited(byAddress('callback')),
    reauthenticate: limited([
      { max: options.reauthenticate, timeWindow, keyOf: request => `svc-auth-reauthenticate:${userIn(request)}` }
    ]),
    mail: limited(byAddress('mail')),
    code: limited(byAddress('code')),
    newEmail: limited([{ ...NEW_EMAIL_LIMIT, keyOf: request => `svc-auth-new-email:${userIn(request)}` }]),
    async mayMail (request, email) {
      emails.set(request, email)
      return await mailbox(request) === null
    }
  }
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
