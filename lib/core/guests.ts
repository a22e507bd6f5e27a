/** Guests: visitors who have a user, and have signed in by nothing yet. */
import type { FastifyRequest } from 'fastify'
import type { User } from '../accounts/account.js'
import type { NewUser } from '../accounts/identities.js'
import { audit, noteSubject } from '../audit.js'
import { callHook } from '../hooks.js'
import { endSession } from '../session/lifecycle.js'
import { cookieEndOf, endCookie } from '../session/lifetime.js'
import { type Principal, ReadRecord, type SessionRecord, guestRecordIn } from '../session/record.js'
import type { AuthContext, WithAccounts } from './context.js'
import { currentPrincipal } from './current-user.js'
import type { Findings } from './findings.js'

type GuestContext = Pick<AuthContext, 'accounts' | 'parts'>

/** How much of its lifetime a session has left at least when it is used: each move is a write. */
const LEFT = 0.9

/** Returns the plugin's part of the session of a guest, whose end it moves; null without one. */
export async function currentGuest (
  { accounts, parts: { guests } }: GuestContext, request: FastifyRequest
): Promise<SessionRecord | null> {
  const { session } = request
  const record = guestRecordIn(session)
  if (guests === null || record === null) return null
  const { principal } = record
  const { status = await accounts.status(principal.userId) } = ReadRecord.fresh(session)
  if (status?.generation !== record.generation) {
    await endSession(request)
    return null
  }
  const end = cookieEndOf(session)
  if (end === null || end.getTime() < Date.now() + LEFT * guests.lifetime) endCookie(session, endOfGuest(guests))
  return record
}

/** Returns the principal of the user, or of the guest, of a request; null for another visitor. */
export async function userOrGuest (
  auth: GuestContext & WithAccounts, request: FastifyRequest
): Promise<Principal | null> {
  return await currentPrincipal(auth, request) ?? (await currentGuest(auth, request))?.principal ?? null
}

/** Sessions whose guest a guard has let pass in this request. */
const admitted = new WeakSet<object>()

/** Returns the guest of a request as {@link currentGuest} does, for a guard that admits guests. */
export async function admitGuest (auth: GuestContext, request: FastifyRequest): Promise<SessionRecord | null> {
  const guest = await currentGuest(auth, request)
  if (guest !== null) admitted.add(request.session)
  return guest
}

/** The guest of a request whom a guard has let pass; null for another visitor. */
export function admittedGuest ({ session }: FastifyRequest): Principal | null {
  return admitted.has(Object(session)) ? guestRecordIn(session)?.principal ?? null : null
}

/** When a session of a guest ends that is used now. */
export function endOfGuest ({ lifetime }: { readonly lifetime: number }): Date {
  return new Date(Date.now() + lifetime)
}

/** Returns the guest of a request; null for another visitor, and for a signed-in user. */
export async function guestOf (auth: GuestContext, request: FastifyRequest): Promise<User | null> {
  const record = await currentGuest(auth, request)
  const user = record && await auth.accounts.findUser({ userId: record.principal.userId })
  return user?.guest ? user : null
}

/** What a sign-in has found that makes the guest of the request the user whom it would create. */
export function promotionOf (request: object, guest: User, newUser: NewUser) {
  noteSubject(request, guest.userId)
  const identity = { ...newUser.link, emailVerified: newUser.emailVerified }
  return { user: guest, isNew: false, held: 'promotes', newUser, identity } as const satisfies Partial<Findings>
}

/**
 * Tells the application of the guest of a request, who signs in as another user.
 *
 * @returns deletes the guest, once the session is that of the user
 */
export async function leaveGuest (
  auth: GuestContext & Pick<AuthContext, 'onGuest'>, request: FastifyRequest, user: User
): Promise<() => Promise<void>> {
  const { accounts, onGuest } = auth
  const guest = await guestOf(auth, request)
  if (guest === null || guest.userId === user.userId) return async () => {}
  if (onGuest !== null) await callHook(() => onGuest({ request, guest, user }))
  return async () => {
    const { userId } = guest
    try {
      // In another tab the guest may have become a user.
      if (await accounts.deleteGuest(userId)) audit('deletion', { userId }, request)
    } catch (err) {
      // Without a session the guest goes later.
      request.log.warn({ err, userId }, 'a guest who has signed in as another user could not be deleted yet')
    }
  }
}
