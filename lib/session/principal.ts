import type { FastifyReply, FastifyRequest } from 'fastify'
import { AuthError } from '../errors.js'
import { sessionCookieName } from './cookie.js'
import { hasEnded, hasSignedOut, keepEnded, withSignOutNoted } from './ended-sessions.js'
import { movePendingSignIns } from './pending-sign-ins.js'
import { type Principal, principalOf } from './record.js'
import { sessionsUnavailable } from './session-store.js'

/**
 * Writes a principal into a session with a new id and nothing of the old one, so that an attacker
 * who knew or prepared the session before the sign-in has nothing of the one after it. Sign-ins that
 * other tabs have under way go along.
 *
 * @param confirm what follows when the session is written; when it fails, the sign-in fails
 * @throws AuthError `invalid_state` when the user signed out meanwhile, `unavailable`; what `confirm` throws
 * @see OWASP ASVS 7.2.4
 */
export async function writePrincipal (request: FastifyRequest, principal: Principal, confirm: () => Promise<void>): Promise<void> {
  keepEnded(request.sessionStore)
  const before = request.session.sessionId
  try {
    await request.session.regenerate()
    request.session.svcAuth = { principal }
    // Saved here and not when the response is sent: a store that fails must fail the sign-in, not follow it.
    await request.session.save()
    // Another sign-in may have replaced the session meanwhile, as when a form is sent twice; a sign-out is the user's last word.
    if (await hasSignedOut(request.sessionStore, before)) throw new AuthError('invalid_state')
    await confirm()
  } catch (error) {
    // A sign-in that is reported as failed must have failed: the id of the session is not sent.
    await request.session.regenerate().catch(() => {})
    throw error
  }
  try {
    await movePendingSignIns(request, before, request.session.sessionId)
  } catch (error) {
    request.log.warn({ err: error }, 'sign-ins that other tabs have under way are lost')
  }
}

/**
 * Refuses to go on with a session that has ended since the request came in.
 *
 * @throws AuthError `invalid_state`, `unavailable`
 */
export async function assertSessionGoesOn (request: FastifyRequest): Promise<void> {
  if (await hasEnded(request.sessionStore, request.session.sessionId)) throw new AuthError('invalid_state')
}

/** Replaces the principal in the session; the session's id and its other content stay. */
export async function updatePrincipal (request: FastifyRequest, principal: Principal): Promise<void> {
  keepEnded(request.sessionStore)
  try {
    request.session.svcAuth = { ...request.session.svcAuth, principal }
    await request.session.save()
  } catch (error) {
    throw sessionsUnavailable(error)
  }
}

/** Ends the session and goes on with an empty one: nobody is signed in for the rest of the request. */
export async function leaveSession (request: FastifyRequest): Promise<void> {
  keepEnded(request.sessionStore)
  try {
    await request.session.regenerate()
  } catch (error) {
    throw sessionsUnavailable(error)
  }
}

/**
 * Ends the session for good and clears its cookie. Other requests of the session that are under way
 * cannot bring it back.
 *
 * @returns the principal whom this call signed out; null without one, and when another request was first
 * @throws AuthError `unavailable`
 */
export async function endSession (request: FastifyRequest, reply: FastifyReply): Promise<Principal | null> {
  const { session } = request
  // A destroyed session is null, and outside the path of its cookie there is none.
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
    // @fastify/session has null for what is not set, which @fastify/cookie would take for its default.
    const flags = { httpOnly, secure: secure === true, sameSite: sameSite ?? false }
    reply.clearCookie(cookieName, { path, ...flags, ...(domain && { domain }) })
  }
  return isEnded ? principal : null
}
