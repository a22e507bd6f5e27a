import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Claims } from '../claims.js'
import { AuthError } from '../errors.js'
import { isUserId } from '../store/store.js'
import { sessionCookieName } from './cookie.js'
import { hasEnded, hasSignedOut, keepEnded, withSignOutNoted } from './ended-sessions.js'
import { movePendingSignIns } from './pending-sign-ins.js'
import { sessionsUnavailable } from './session-store.js'

/** Who is signed in, as the session knows it. */
export interface Principal {
  /** The UUID of the user in the store. */
  userId: string
  /** How he signed in: `local` or the name of an external provider. */
  provider: string
  /** Identity claims with the authorization claims over them, as of the sign-in. */
  claims: Claims
}

declare module 'fastify' {
  interface Session {
    user?: Principal
  }
}

export function principalOf (request: FastifyRequest): Principal | null {
  // The session is null once it was destroyed, and empty outside the path of its cookie. In one that the application registered, `user` may be its own.
  const user = request.session?.user
  return isUserId(user?.userId) ? user : null
}

/**
 * Signs a principal in. The session gets a new id and nothing of the old one, so that whoever knew or prepared the session
 * before the sign-in has nothing of the one after it; only sign-ins that other tabs have under way go along.
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
    request.session.user = principal
    // Saved here and not when the response is sent: a store that fails must fail the sign-in, not follow it.
    await request.session.save()
    // Another sign-in may have replaced the session meanwhile, as when a form is sent twice; a sign-out is the person's last word.
    if (await hasSignedOut(request.sessionStore, before)) throw new AuthError('invalid_state')
    await confirm()
  } catch (error) {
    // Who is told that the sign-in failed is not signed in: whatever the store has of the session, its id is not sent.
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

/** Replaces what the session knows of the one who is signed in; its id and its other content stay. */
export async function updatePrincipal (request: FastifyRequest, principal: Principal): Promise<void> {
  keepEnded(request.sessionStore)
  try {
    request.session.user = principal
    await request.session.save()
  } catch (error) {
    throw sessionsUnavailable(error)
  }
}

/** Ends the session and goes on with an empty one: the rest of the request is that of somebody who is not signed in. */
export async function leaveSession (request: FastifyRequest): Promise<void> {
  keepEnded(request.sessionStore)
  try {
    await request.session.regenerate()
  } catch (error) {
    throw sessionsUnavailable(error)
  }
}

/**
 * Ends the session for good, whatever other request of it is under way, and clears its cookie.
 *
 * @returns who has signed out by that; null for nobody, and when another request has done it
 */
export async function endSession (request: FastifyRequest, reply: FastifyReply): Promise<Principal | null> {
  const { session } = request
  const principal = principalOf(request)
  const cookieName = sessionCookieName(request)
  if (cookieName === undefined && principal === null) return null

  const { path = '/', domain, httpOnly = true, secure, sameSite } = session.cookie
  let isEnded: boolean
  try {
    isEnded = await withSignOutNoted(request.sessionStore, session.sessionId, async () => session.destroy())
  } catch (error) {
    throw sessionsUnavailable(error)
  }
  if (cookieName !== undefined) {
    // @fastify/session has null for what is not set, which @fastify/cookie would take for its own default.
    reply.clearCookie(cookieName, { path, httpOnly, secure: secure === true, sameSite: sameSite ?? false, ...(domain && { domain }) })
  }
  return isEnded ? principal : null
}
