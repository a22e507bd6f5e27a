/** Visitors with a user of their own, before they have an address: a basket, a draft. */
import { randomUUID } from 'node:crypto'
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify'
import { GUEST } from '../../accounts/account.js'
import { audit } from '../../audit.js'
import { Sweeper } from '../../base/concurrency.js'
import { DAY_MS } from '../../base/values.js'
import type { AuthContext } from '../../core/context.js'
import { endOfGuest, userOrGuest } from '../../core/guests.js'
import type { AnyRequest, Bivariant } from '../../core/guard.js'
import { OptionsError } from '../../errors.js'
import { callHook } from '../../hooks.js'
import { type ChecksOf, optional, table, wholeNumber } from '../../option-checks.js'
import { replaceSession } from '../../session/lifecycle.js'
import { membersIn } from '../../session/lifetime.js'
import { type Principal, guestRecordIn } from '../../session/record.js'

/** The option `guests`. */
export interface GuestOptions {
  /** After how many days without use a guest is deleted, 1 to 400; default 30. */
  days?: number | undefined
}

const checkedOptions = optional(table({
  // Browsers keep no cookie for longer than 400 days.
  days: optional(wholeNumber(1, 400), 30)
} satisfies ChecksOf<GuestOptions>), null)

/** The part of the option `guests`. */
export interface Guests {
  /** In milliseconds, since the last use. */
  readonly lifetime: number
}

declare module '../../core/context.js' {
  interface Parts {
    readonly guests: Guests | null
  }
}

export function checkedGuests (value: unknown, option: string): Guests | null {
  const options = checkedOptions(value, option)
  return options && { lifetime: options.days * DAY_MS }
}

declare module '../app-auth/auth.js' {
  interface Auth extends GuestMembers {}
}

/** What the option `guests` adds to `app.auth`. */
export interface GuestMembers {
  /**
   * Makes a user without an address for a visitor, and their session. A guest passes no guard but
   * those with `{ guests: true }`. Whom they become by registering, or by a provider, a mail or a
   * passkey that nobody has, keeps the id, the claims and all rows.
   *
   * @returns the principal of the guest, or of the user who is signed in already
   * @throws OptionsError without the option `guests`; AuthError `cross_origin`, `rate_limited`
   *
   * @example
   * ```ts
   * app.post('/basket', async request => {
   *   const { userId } = await app.auth.signInGuest(request)
   *   return baskets.add(userId, request.body)
   * })
   * ```
   */
  readonly signInGuest: Bivariant<(request: AnyRequest) => Promise<Principal>>
}

export function guestMembers (auth: AuthContext): GuestMembers {
  return { signInGuest: async (request: FastifyRequest) => signInGuest(auth, request) }
}

/** Has guests who are over deleted behind answers, also once nobody becomes a guest any more. */
export function sweepGuests (app: FastifyInstance, auth: AuthContext): void {
  if (auth.parts.guests === null) return
  const { log } = app
  const sweeper = new Sweeper(sweep(auth, log), err => { log.warn({ err }, 'Guests could not be looked for') })
  app.addHook('onResponse', async () => { sweeper.start(Date.now()) })
}

async function signInGuest (auth: AuthContext, request: FastifyRequest): Promise<Principal> {
  const { accounts, limits, parts: { guests }, site } = auth
  if (guests === null) throw new OptionsError('signInGuest needs the option guests of the plugin')
  const present = await userOrGuest(auth, request)
  if (present !== null) return present

  site.refuseCrossOrigin(request)
  await limits.guest(request)
  const userId = randomUUID()
  const claims = { sub: userId }
  const link = { provider: GUEST, subject: userId, claims }
  await accounts.createUser({ userId, email: null, emailVerified: false, name: null, claims: {}, link })
  const principal = { userId, provider: GUEST, claims }
  const record = { principal, generation: 0, at: Date.now(), methods: [] }
  await replaceSession(request, record, { preserved: membersIn(request.session), cookieEnd: endOfGuest(guests) })
  audit('creation', { userId, provider: GUEST }, request)
  return guestRecordIn(request.session)?.principal ?? principal
}

/** How many guests a turn deletes: each is a transaction, and rows of the application. */
const SWEPT = 100

/** A guest is made before their session is. */
const GRACE_MS = 60 * 60_000

/** Deletes guests who have no session any more, those of a part of the ids at each turn. */
function sweep ({ accounts, onDelete }: AuthContext, log: FastifyBaseLogger): (now: number) => Promise<void> {
  let after = ''
  return async now => {
    const over = await accounts.abandonedGuests(now - GRACE_MS, now, SWEPT, after)
    // Guests who cannot be deleted now do not keep those behind them.
    after = over.length < SWEPT ? '' : over.at(-1) ?? ''
    const failures: Array<{ userId: string, err: unknown }> = []
    for (const userId of over) {
      try {
        // First, so that the rows of a user whom the guest has just become stay.
        if (!await accounts.closeGuest(userId)) continue
        await callHook(() => onDelete?.({ request: null, userId }))
        if (await accounts.deleteGuest(userId)) audit('deletion', { userId }, { log })
      } catch (err) {
        failures.push({ userId, err })
      }
    }
    const [first] = failures
    if (first !== undefined) log.warn({ ...first, guests: failures.length }, NOT_SWEPT)
  }
}

const NOT_SWEPT = 'Guests whose sessions are over could not be deleted, and are tried again; the line has the first one'
