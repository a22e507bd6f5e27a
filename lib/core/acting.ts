/** Sessions in which a user sees the application as another one: impersonation. */
import type { FastifyRequest } from 'fastify'
import type { AccountStatus } from '../accounts/account.js'
import { audit, sourceOf } from '../audit.js'
import { AuthError } from '../errors.js'
import { renewSession, updateRecord } from '../session/lifecycle.js'
import { type SessionRecord, actingIn, hideUser, ownRecordIn } from '../session/record.js'
import type { Acting } from '../session/store.js'
import type { AuthContext } from './context.js'

/** The config of a route that serves impersonations: those of other routes are refused. */
export const WHILE_IMPERSONATING: object = { svcAuthWhileImpersonating: true }

/** Refuses an impersonation at a route that does not say that it serves them. */
export function refuseUnserved (request: FastifyRequest): void {
  if (Object(request.routeOptions.config).svcAuthWhileImpersonating !== true) refuseImpersonation(request)
}

/** @throws AuthError `impersonating` in an impersonation, also in one whose time is over */
export function refuseImpersonation ({ session }: Pick<FastifyRequest, 'session'>): void {
  if (actingIn(session) !== undefined) throw new AuthError('impersonating')
}

/** How long the application's rule is relied on. */
const ALLOWED_MS = 60_000

/**
 * Returns what a guard asks about the user whom a session shows. Where the impersonation is over,
 * the session goes on as that of the user who has started it, and this request, which was sent for
 * the other user, has none.
 */
export async function actingStatus (
  auth: Pick<AuthContext, 'accounts' | 'mayAct'>, request: FastifyRequest, own: SessionRecord, acting: Acting
): Promise<AccountStatus | null> {
  const status = acting.until > Date.now() ? await auth.accounts.status(acting.user.userId) : null
  if (status?.generation === acting.generation && await isAllowed(auth, request, own, acting)) return status
  await stopActing(request)
  hideUser(request)
  return null
}

/** Asks the application again, at most once a minute. */
async function isAllowed (
  { accounts, mayAct }: Pick<AuthContext, 'accounts' | 'mayAct'>, request: FastifyRequest, own: SessionRecord,
  acting: Acting
): Promise<boolean> {
  // A process without the option has no rule.
  if (mayAct === null) return false
  if (Math.abs(Date.now() - acting.allowedAt) < ALLOWED_MS) return true
  const [actor, user] = await Promise.all(
    [own.principal, acting.user].map(async ({ userId }) => accounts.findUser({ userId })))
  if (actor == null || user == null || !await mayAct(actor, user)) return false
  await updateRecord(request, { ...own, acting: { ...acting, allowedAt: Date.now() } })
  return true
}

/** Of several requests that start or end one at once, one does: one row and one cookie remain. */
const MOVE = { preserved: [], onlyOpen: true }

/**
 * Begins an impersonation: the session gets a new id, and nothing of what the application has kept
 * in it, as at a sign-in.
 *
 * @throws AuthError `invalid_state` when the user signed out meanwhile, or another request has
 *   replaced the session
 */
export async function startActing (request: FastifyRequest, own: SessionRecord, acting: Acting): Promise<void> {
  await renewSession(request, { ...own, acting }, MOVE)
}

/**
 * Ends an impersonation; the session goes on as that of the user who has started it. Where another
 * request has ended it or the session meanwhile, this one has no user.
 */
export async function stopActing (request: FastifyRequest): Promise<void> {
  const record = ownRecordIn(request.session)
  if (record?.acting === undefined) return
  const { acting, ...own } = record
  // Of both users, also where the time is over.
  const source = { ...sourceOf(request, own.principal.userId), impersonating: acting.user.userId }
  try {
    await renewSession(request, own, MOVE)
  } catch (error) {
    if (error instanceof AuthError && error.code === 'invalid_state') return
    throw error
  }
  audit('impersonation-end', { userId: acting.user.userId }, source)
}
