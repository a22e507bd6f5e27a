import { isIP, isIPv6 } from 'node:net'
import { normalizeIP } from '@fastify/rate-limit'
import type { FastifyRequest } from 'fastify'
import { AuthError } from '../errors.js'
import type { Limited, ResolvedRateLimits } from '../rate-limits.js'
import { principalOf } from '../session/record.js'
import type { Allowance, Attempt, Counter, Rule } from './counters.js'

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

interface SignInAttempt extends Attempt {
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
  const limited = <Counted extends Attempt>(rules: ReadonlyArray<Rule<Counted>>) => {
    const count = options === null ? async () => null : counter(rules)
    return async (attempt: Counted, meanwhile?: () => void): Promise<void> => {
      const wait = await count(attempt, meanwhile)
      if (wait !== null) throw rateLimited(Math.max(1, Math.ceil(wait / 1000)))
    }
  }
  const limitedRequest = (rules: readonly Rule[]): Limit => {
    const count = limited(rules)
    return request => count({ request })
  }
  const limit = (name: Limited): Limit => limitedRequest(byAddress(options, name))
  const limitUser = (name: string, allowed: Allowance | null): Limit => {
    // Requests without a user count as one: they are refused.
    const keyOf = ({ request }: Attempt): string => `svc-auth-${name}:${principalOf(request)?.userId ?? ''}`
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
    reauthenticate: limitUser('reauthenticate', perUser),
    mail,
    code,
    // A form with the token of a mail.
    mailOrCode: request => Object(request.body).token === undefined ? mail(request) : code(request),
    // Each is a mail to an address of the user's choice.
    newEmail: limitUser('new-email', options && { max: 5, timeWindow: 60 * 60_000 })
  }
}

/** The rules that count by the client's address, and by the network that it is in. */
function byAddress<Counted extends Attempt> (
  options: ResolvedRateLimits | null, name: Limited, partOf: (attempt: Counted) => string = () => ''
): Array<Rule<Counted>> {
  if (options === null) return []
  const { timeWindow, network, [name]: max } = options
  const keyOf = (attempt: Counted, origin: string): string => `svc-auth-${name}:${origin}${partOf(attempt)}`
  const networkOf = ({ request }: Attempt): string => `${prefixOf(request, 48)}/48`
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
