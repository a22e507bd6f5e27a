import type { FastifyReply, FastifyRequest } from 'fastify'
import { AuthError } from '../errors.js'
import { sessionCookieName } from './cookie.js'
import { hasEnded, hasSignedOut, keepEnded, withSignOutNoted } from './ended-sessions.js'
import { movePendingSignIns } from './pending-sign-ins.js'
import { type Principal, principalOf } from './record.js'
import { sessionsUnavailable } from './session-store.js'

/**
 * Writes a principal into a new session with a new id, so that an attacker who knew or prepared the
 * old session has no access to the new one. Only the sign-ins that other tabs have started are
 * kept.
 *
 * @param confirm runs after the session is written; when it fails, the sign-in fails
 * @throws AuthError `invalid_state` when the user signed out meanwhile, `unavailable`; what
 * `confirm` throws
 * @see OWASP ASVS 7.2.4
 */
export async function writePrincipal (
  request: FastifyRequest,
  principal: Principal,
  confirm: () => Promise<void>
): Promise<void> {
  keepEnded(request.sessionStore)
  const before = request.session.sessionId
  try {
    await request.session.regenerate()
    request.session.svcAuth = { principal }
    // Saved now and not when the response is sent: a failure of the store must fail the sign-in.
    await request.session.save()
    // Another sign-in may replace the session meanwhile, as when a form is sent twice; a sign-out
    // wins.
    if (await hasSignedOut(request.sessionStore, before)) throw new AuthError('invalid_state')
    await confirm()
  } catch (error) {
    // After a failed sign-in, the id of the written session must not reach the browser.
    await request.session.regenerate().catch(() => {})
    throw error
  }
  try {
    await movePendingSignIns(request, before, request.session.sessionId)
  } catch (error) {
    request.log.warn({ err: error }, 'sign-ins that other tabs have started are lost')
  }
}

/**
 * Refuses a session that ended while the request was under way.
 *
 * @throws AuthError `invalid_state`, `unavailable`
 */
export async function assertSessionGoesOn (request: FastifyRequest): Promise<void> {
  if (await hasEnded(request.sessionStore, request.session.sessionId)) throw new AuthError('invalid_state')
}

/** Replaces the principal in the session. The id and the other content of the session stay. */
export async function updatePrincipal (request: FastifyRequest, principal: Principal): Promise<void> {
  keepEnded(request.sessionStore)
  try {
    request.session.svcAuth = { ...request.session.svcAuth, principal }
    await request.session.save()
  } catch (error) {
    throw sessionsUnavailable(error)
  }
}

/** Ends the session and continues the request with an empty one, in which no user is signed in. */
export async function leaveSession (request: FastifyRequest): Promise<void> {
  keepEnded(request.sessionStore)
  try {
    await request.session.regenerate()
  } catch (error) {
    throw sessionsUnavailable(error)
  }
}

/**
 * Ends the session and clears its cookie. Other requests of the session that are under way cannot
 * restore it.
 *
 * @returns the principal that this call signed out; null without one, and when another request did
 * so first
 * @throws AuthError `unavailable`
 */
export async function endSession (request: FastifyRequest, reply: FastifyReply): Promise<Principal | null> {
  const { session } = request
  // A destroyed session is null, and outside the path of its cookie it has no id.
  if (session?.sessionId === undefined) return null
  const principal = principalOf(request)
  const cookieName = sessionCookieName(request)
  if (cookieName === undefined && principal === null) return null

  keepEnded(request.sessionStore)
  const { path = '/', domain, httpOnly = true, secure, sameSite } = session.cookie
  let isEnded: boolean
  try {
    isEnded = await withSignOutNoted(request.sessionStore, session.sessionId, async () => session.destroy())
  } catch (error) {
    throw sessionsUnavailable(error)
  }
  if (cookieName !== undefined) {
    // @fastify/session uses null for an absent flag; @fastify/cookie would apply its default then.
    const flags = { httpOnly, secure: secure === true, sameSite: sameSite ?? false }
    reply.clearCookie(cookieName, { path, ...flags, ...(domain && { domain }) })
  }
  return isEnded ? principal : null
}
