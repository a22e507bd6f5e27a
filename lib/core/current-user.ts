import { isDeepStrictEqual } from 'node:util'
import type { FastifyRequest } from 'fastify'
import type { AccountStatus, Link, User } from '../accounts/account.js'
import { noteSubject } from '../audit.js'
import { mergeClaims } from '../claims.js'
import { AuthError } from '../errors.js'
import { endSession, updateRecord } from '../session/lifecycle.js'
import {
  type Principal, ReadRecord, type SessionRecord, actingIn, guestRecordIn, hideUser, ownRecordIn, principalOf, recordIn,
  shownPrincipal
} from '../session/record.js'
import { actingStatus, stopActing } from './acting.js'
import type { AuthContext, WithAccounts } from './context.js'
import { namesOfMethods } from './methods.js'

/** The signed-in user, as the store has them now. */
export interface CurrentUser {
  readonly user: User
  /** All links of the user. */
  readonly links: readonly Link[]
  /** The plugin's part of the session, with the claims that the store has now. */
  readonly record: SessionRecord
}

/**
 * Returns the signed-in user of a request. The session is left as it is.
 *
 * @throws AuthError `unauthenticated` without a user, when the user, or the link by which they
 * signed in, no longer exists, and when their sessions were ended
 */
export async function current (auth: WithAccounts, request: FastifyRequest): Promise<CurrentUser> {
  const record = await isActingOver(auth, request) ? null : recordIn(request.session)
  const found = record === null ? null : await readUser(auth, record.principal)
  if (record === null || found === null || found.user.generation !== record.generation) {
    throw new AuthError('unauthenticated')
  }
  const { principal, ...user } = found
  noteSubject(request, principal.userId)
  return { ...user, record: { ...record, principal: { ...record.principal, ...principal } } }
}

/**
 * Returns the signed-in user of a request, for a page, with the claims of the session; null without
 * one. A session that has ended is left, as a guard does. The link by which the user signed in may
 * be gone: they have just removed it on their account page.
 */
export async function currentUser (auth: WithAccounts, request: FastifyRequest): Promise<CurrentUser | null> {
  const principal = await currentPrincipal(auth, request)
  const record = recordIn(request.session)
  const found = principal === null ? null : await readAccount(auth, principal.userId)
  return found === null || record === null ? null : { ...found, record }
}

/**
 * Returns the principal of a session if the user still exists and their sessions were not ended,
 * else signs the user out. The claims are as of the session.
 */
export async function currentPrincipal (auth: WithAccounts, request: FastifyRequest): Promise<Principal | null> {
  return await currentStatus(auth, request) === null ? null : principalOf(request)
}

/** Returns what a guard asks about the user of a session, as {@link currentPrincipal} does. */
export async function currentStatus (auth: WithAccounts, request: FastifyRequest): Promise<AccountStatus | null> {
  const own = ownRecordIn(request.session)
  if (own === null || (own.acting === undefined && recordIn(request.session) === null)) return null
  const status = ReadRecord.fresh(request.session).status ?? await auth.accounts.status(own.principal.userId)
  if (status?.generation === own.generation) {
    return own.acting === undefined ? status : actingStatus(auth, request, own, own.acting)
  }
  await endSession(request)
  return currentStatus(auth, request)
}

/** Whether a session had an impersonation, which is over with this call. */
async function isActingOver (auth: WithAccounts, request: FastifyRequest): Promise<boolean> {
  return actingIn(request.session) !== undefined && await currentStatus(auth, request) === null
}

/**
 * Returns the record of a session with the claims that were read together with it a moment ago,
 * else as {@link current} does.
 */
export async function currentRecord (auth: WithAccounts, request: FastifyRequest): Promise<SessionRecord> {
  const record = recordIn(request.session)
  const { status, presentClaims } = ReadRecord.fresh(request.session)
  const isShown = record?.principal.impersonator !== undefined
  if (record === null || isShown || status === undefined || presentClaims === undefined) {
    return (await current(auth, request)).record
  }
  const claims = status.generation === record.generation ? presentClaims() : null
  if (claims === null) throw new AuthError('unauthenticated')
  return { ...record, principal: { ...record.principal, claims } }
}

/**
 * Updates the principal of a session from the store. Signs the user out when the user, or the link
 * by which they signed in, no longer exists, and when their sessions were ended.
 */
export async function refreshPrincipal (auth: WithAccounts, request: FastifyRequest): Promise<Principal | null> {
  for (;;) {
    const { session } = request
    const record = await isActingOver(auth, request) ? null : recordIn(session) ?? guestRecordIn(session)
    if (record === null) return null
    const { impersonator, guest, ...held } = record.principal
    const found = await readUser(auth, held)
    const principal = found?.user.generation === record.generation ? found.principal : null
    if (isDeepStrictEqual(principal, held)) return shownPrincipal(request)
    // Read once more when it is written: another request may have written what came later, which
    // this one would undo.
    if (principal !== null) await updatePrincipal(request, principal)
    else if (impersonator === undefined) await endSession(request)
    else {
      await stopActing(request)
      hideUser(request)
    }
  }
}

/** Returns a user, with a principal that has the claims of now; null without its user or link. */
export async function readUser (
  auth: Pick<AuthContext, 'accounts'>, { userId, provider }: Principal
): Promise<Pick<CurrentUser, 'user' | 'links'> & { principal: Principal } | null> {
  const found = await readAccount(auth, userId)
  const link = found?.links.find(link => link.provider === provider)
  if (found === null || link === undefined) return null
  return { ...found, principal: { userId, provider, claims: mergeClaims(link.claims, found.user.claims) } }
}

async function readAccount ({ accounts }: Pick<AuthContext, 'accounts'>, userId: string) {
  const [user, links] = await Promise.all([accounts.findUser({ userId }), accounts.links(userId)])
  return user && { user, links }
}

/** How a user can reauthenticate: `password`, `mail`, kinds of factors, names of providers. */
export async function methodNamesOf (
  auth: Pick<AuthContext, 'accounts' | 'offered' | 'parts' | 'providers'>, userId: string
): Promise<string[]> {
  const found = await readAccount(auth, userId)
  return found === null ? [] : namesOfMethods(auth, found)
}

/** Replaces the principal in the session. The id and the other content of the session stay. */
async function updatePrincipal (request: FastifyRequest, principal: Principal): Promise<void> {
  const own = ownRecordIn(request.session)
  if (own === null) return
  const { acting } = own
  await updateRecord(request, acting === undefined
    ? { ...own, principal }
    : { ...own, acting: { ...acting, user: principal } })
}
