import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ReplacedSession } from '../authentication.js'
import { digestOf } from '../base/digest.js'
import { AuthError } from '../errors.js'
import { PENDING_MS } from '../store/one-time-entries.js'
import { nameInCookie, sessionCookieName, signedIdsIn } from './request-cookies.js'
import {
  BROWSER_SESSION_MS, cookieEndOf, cookieFlags, endCookie, membersIn, restoreLifetime, shortenLifetime
} from './lifetime.js'
import { type Principal, type SessionRecord, principalOf, recordIn } from './record.js'
import { sessionsOf } from './request-sessions.js'
import { sentBy } from './sent-requests.js'
import { type SessionReplacement, type SignedOut, preciseTime } from './session-backend.js'
import { forgetOthers, otherSessions } from './several-cookies.js'
import { forgetStarts } from './start-cookies.js'

/** What a sign-in or a reauthentication writes into a session. */
type NewRecord = Omit<SessionRecord, 'replacedSessions'>

/** The number of replaced sessions whose pending sign-ins may still finish. */
const MAX_REPLACED = 8

/**
 * Moves a session with a new record to a new id. The application's part of the session is kept, and
 * so is its end.
 *
 * @throws AuthError `invalid_state` when the user signed out meanwhile
 */
export async function renewSession (request: FastifyRequest, record: NewRecord): Promise<void> {
  const { session } = request
  const moves = record.until === undefined && sessionsOf(request).isRolling
  await replaceSession(request, record, {
    kept: membersIn(session), cookieEnd: moves ? undefined : cookieEndOf(session)
  })
}

interface Replacement extends Pick<SessionReplacement, 'admits'> {
  /** The names of members of the present session that the new one gets. */
  kept?: string[]
  /** The end of its cookie; undefined for the end of the options. */
  cookieEnd?: Date | null | undefined
  /** Runs after the session is written: when it fails, the sign-in fails. */
  confirm?: (isAdmitted: boolean) => Promise<void>
}

/**
 * Replaces the session of a request with a new one that has a new id, so that an attacker who knew
 * or prepared the old one has no access to it. Sign-ins that other tabs have started in the old one
 * may still finish.
 *
 * @param record null for a session without a user
 * @throws AuthError `invalid_state` when the user signed out meanwhile; what `confirm` throws
 * @see OWASP ASVS 7.2.4
 */
export async function replaceSession (
  request: FastifyRequest,
  record: NewRecord | null,
  { kept = [], cookieEnd, admits = false, confirm }: Replacement
): Promise<void> {
  const sessions = sessionsOf(request)
  const { session: before } = request
  const isReplaced = sessions.isStored(before)
  const others = otherSessions(request)
  const cookieName = sessionCookieName(request)

  sessions.renew(request, kept)
  const { session } = request
  restoreLifetime(session, before)
  if (cookieEnd !== undefined) endCookie(session, cookieEnd)
  const sent = await sentBy(request, isReplaced ? before.sessionId : null)
  if (record === null) shortenLifetime(session, { kept, ...sent })
  // Such a cookie does not tell when the session began.
  const isEndless = session.cookie.expires === null && !sessions.isRolling
  const written = record && {
    ...(isEndless && { until: Date.now() + BROWSER_SESSION_MS }), ...withoutSent(record), ...sent
  }
  try {
    // Saved now and not when the response is sent: a failure of the store must fail the sign-in.
    const replaced = before.sessionId
    const isAdmitted = isReplaced
      ? await sessions.saveRecord(
        request, written && { ...written, replacedSessions: replacedSessions(before) }, { replaced, admits }
      )
      : await sessions.saveRecord(request, written, { admits })
    for (const { id } of others) await sessions.backend.end(id)
    await confirm?.(isAdmitted)
  } catch (error) {
    // The browser never learns the id of the new session.
    await sessions.backend.remove(session.sessionId).catch(() => {})
    if (isReplaced) sessions.renew(request)
    else request.session = before
    throw error
  }
  if (cookieName !== undefined) nameInCookie(request, cookieName, before)
  forgetOthers(request)
}

function withoutSent ({ sent: _, ...record }: NewRecord): NewRecord {
  return record
}

function replacedSessions (before: FastifyRequest['session']): ReplacedSession[] {
  const now = Date.now()
  const earlier = recordIn(before)?.replacedSessions ?? []
  const replaced = { digest: digestOf(before.sessionId), endedAt: now }
  return [replaced, ...earlier.filter(({ endedAt }) => endedAt > now - PENDING_MS)].slice(0, MAX_REPLACED)
}

/** Refuses a session that ended while the request was under way: `invalid_state`. */
export async function assertSessionActive (request: FastifyRequest): Promise<void> {
  const present = await sessionsOf(request).backend.read(request.session.sessionId)
  if (present === null) throw new AuthError('invalid_state')
}

/** Replaces the principal in the session. The id and the other content of the session stay. */
export async function updatePrincipal (request: FastifyRequest, principal: Principal): Promise<void> {
  const record = recordIn(request.session)
  if (record !== null) await updateRecord(request, { ...record, principal })
}

export async function updateRecord (request: FastifyRequest, record: SessionRecord): Promise<void> {
  await sessionsOf(request).saveRecord(request, record)
}

/**
 * Ends the session and continues the request with the session of another user whom the browser
 * names, else with an empty one, in which no user is signed in.
 */
export async function endSession (request: FastifyRequest): Promise<void> {
  const sessions = sessionsOf(request)
  const next = otherSessions(request).find(({ userId }) => userId !== null)
  await sessions.backend.end(request.session.sessionId)
  if (next !== undefined) return next.use()
  sessions.renew(request)
  sessions.hasLeft = true
}

/**
 * Ends the session, and the sessions of other cookies of the name, and clears the cookies. Other
 * requests of a session that are under way cannot restore it, and a sign-in among them does not
 * replace it.
 *
 * @param recordedFor the user whose sign-out is recorded for the other processes already
 * @returns the users that this call signed out, without those whom another request did first
 */
export async function signOutSession (
  request: FastifyRequest,
  reply: FastifyReply,
  recordedFor?: string
): Promise<SignedOut[]> {
  const { session } = request
  // A destroyed session is null, and outside the path of its cookie it has no id.
  if (session?.sessionId === undefined) return []
  const sessions = sessionsOf(request)
  const isStored = sessions.isStored(session)
  const present = { id: session.sessionId, userId: principalOf(request)?.userId ?? null }
  const cookieName = sessionCookieName(request)
  const flags = cookieFlags(session)

  const signedOut = isStored ? [] : await signOutReplaced(request, reply)
  for (const leaving of [...otherSessions(request), ...(isStored ? [present] : [])]) {
    const user = await sessions.backend.signOut(leaving, leaving.userId === recordedFor)
    if (user !== null && signedOut.every(({ userId }) => userId !== user.userId)) signedOut.push(user)
  }
  forgetOthers(request)
  forgetStarts(reply)
  if (isStored) sessions.drop(request)
  if (cookieName !== undefined) reply.clearCookie(cookieName, flags)
  return signedOut
}

/**
 * Ends the session of a sign-in that has replaced the session of a request before that could be
 * read: the browser sent both at one time.
 */
async function signOutReplaced (request: FastifyRequest, reply: FastifyReply): Promise<SignedOut[]> {
  const sessions = sessionsOf(request)
  const arrivedAt = preciseTime() - reply.elapsedTime
  for (const id of signedIdsIn(request)) {
    const signedOut = await sessions.backend.signOutReplaced(id, arrivedAt)
    if (signedOut === null) continue
    sessions.hasLeft = true
    return [signedOut]
  }
  return []
}
