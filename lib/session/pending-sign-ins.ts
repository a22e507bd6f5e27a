import type { FastifyRequest } from 'fastify'
import type { FormerSession } from '../authentication.js'
import type { SessionBackend } from './session-backend.js'
import type { PendingSignIn } from './pending-sign-in.js'
import { recordIn } from './record.js'
import { type RequestSessions, sessionsOf } from './request-sessions.js'
import { digestOf, entryId, sessionsUnavailable } from './session-store.js'
import { PENDING_MS } from '../store/one-time-entries.js'
import { shortenLifetime } from './visitor.js'

/**
 * Adds a pending sign-in to a session. Each has an entry of its own, under its state, so that
 * sign-ins of other tabs and processes do not overwrite it and a late save of the session does not
 * restore it.
 */
export async function addPendingSignIn (request: FastifyRequest, pending: PendingSignIn): Promise<void> {
  const sessions = sessionsOf(request)
  const isFirst = !sessions.isStored(request.session)
  await keepSession(request, sessions, pending.state).catch((error: unknown) => { throw sessionsUnavailable(error) })
  await sessions.backend.addPending(request.session, pending, isFirst)
}

/** Saves the session if necessary, because the callback finds pending sign-ins by its cookie. */
async function keepSession (request: FastifyRequest, sessions: RequestSessions, state: string): Promise<void> {
  const { session } = request
  if (!sessions.isStored(session)) {
    shortenLifetime(session, entryId('pending', state))
    return session.save()
  }
  // The session may have changed since this request read it.
  const present = await sessions.backend.read(session.sessionId)
  const expires = present?.cookie.expires
  if (expires == null || new Date(expires).getTime() > Date.now() + PENDING_MS) return
  await session.reload()
  await request.session.save()
}

/**
 * Takes a pending sign-in of a session out of the session store and returns it. Of sessions that
 * this one replaced, the sign-ins go on that other tabs have started; a linking or a
 * reauthentication counts as started by no user. An attacker with a copy of the old cookie could
 * have started it, and a new session is how the user gets rid of that attacker.
 *
 * @returns null when the state is unknown in this session, of another provider, used or older than
 * ten minutes
 */
export async function takePendingSignIn (
  request: FastifyRequest,
  provider: string,
  state: string
): Promise<PendingSignIn | null> {
  const { session } = request
  const { backend } = sessionsOf(request)
  const own = await backend.takePending(state, [digestOf(session.sessionId)])
  const pending = own ?? await ofFormerSession(backend, state, recordIn(session)?.formerly ?? [])
  if (pending === null) return null
  const isInTime = pending.startedAt > Date.now() - PENDING_MS
  // The callback of another provider is a mix-up (RFC 9700 section 4.4): the state is used up.
  return isInTime && pending.provider === provider ? pending : null
}

async function ofFormerSession (
  backend: SessionBackend,
  state: string,
  formerly: readonly FormerSession[]
): Promise<PendingSignIn | null> {
  if (formerly.length === 0) return null
  const pending = await backend.takePending(state, formerly.map(({ digest }) => digest))
  return pending === null || pending.purpose === 'sign-in' ? pending : { ...pending, startedBy: null }
}
