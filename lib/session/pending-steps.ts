import type { FastifyRequest } from 'fastify'
import { digestOf } from '../base/digest.js'
import {
  type EntryContent, type EntryKey, type OneTimeEntries, type OneTimeEntry, PENDING_MS, SECOND_STEP
} from '../store/one-time-entries.js'
import { sessionsUnavailable } from './express-store.js'
import { replaceSession } from './lifecycle.js'
import { membersIn, shortenLifetime } from './lifetime.js'
import { type RequestSessions, sessionsOf } from './request-sessions.js'
import { noteRequest } from './sent-requests.js'

/**
 * Replaces the session of a request with a new one, in which no user is signed in and which
 * owns an entry. What the application has written into a session without a user is kept, as the
 * hook `onSignIn` reads it once the entry is used; what it has written for a user is not.
 *
 * @throws AuthError `invalid_state` when the user of the session signed out meanwhile
 */
export async function startPendingSession (request: FastifyRequest, kind: string, content: object): Promise<void> {
  const confirm = async (): Promise<void> => sessionsOf(request).backend.entries.put(stepOf(request, kind, content), 1)
  const kept = request.session.svcAuth?.principal === undefined ? membersIn(request.session) : []
  await replaceSession(request, null, { kept, confirm })
}

/** What a client is told of a sign-in that waits in a session. */
export interface WaitingSession {
  readonly details: Readonly<Record<string, unknown>>
}

/** Moves a sign-in that waits to a new session; null without one. */
export async function moveWaiting (request: FastifyRequest): Promise<WaitingSession | null> {
  const waiting = await takeEntry<WaitingSession>(request, SECOND_STEP)
  if (waiting !== null) await startPendingSession(request, SECOND_STEP, waiting)
  return waiting
}

/**
 * Writes an entry of the session, in place of one with this kind and key. A new session is saved
 * for it.
 *
 * @param options `key`: default the empty text, for the one entry of the kind; `most`: how many of
 *   the kind a session may have, default 1
 */
export async function putEntry (
  request: FastifyRequest, kind: string, content: object, { key, most = 1 }: { key?: string, most?: number } = {}
): Promise<void> {
  await putOwned(request, stepOf(request, kind, content, key), most)
}

/**
 * Returns the content of an entry that was written in the last ten minutes. Only one flow writes
 * entries of a kind, so the caller knows its form.
 *
 * @param named the kind of an entry of the session, or a key, which may be of another session
 * @param entries where it is kept; default beside the session
 */
export async function findEntry<Content> (
  request: FastifyRequest, named: string | EntryKey, entries: TakenEntries = sessionsOf(request).backend.entries
): Promise<Content | null> {
  return contentOf(await entries.find(keyIn(request, named)))
}

type TakenEntries = Pick<OneTimeEntries, 'find' | 'take'>

/** Counts an attempt at an entry as {@link findEntry} does; null once `most` were counted. */
export async function attemptEntry<Content> (
  request: FastifyRequest, named: string | EntryKey, most: number
): Promise<Content | null> {
  const key = keyIn(request, named)
  noteRequest(request, { entry: key })
  return contentOf(await sessionsOf(request).backend.entries.attempt(key, most))
}

/** Takes an entry, as {@link findEntry} does: of several requests, one gets it. */
export async function takeEntry<Content> (
  request: FastifyRequest, named: string | EntryKey, entries: TakenEntries = sessionsOf(request).backend.entries
): Promise<Content | null> {
  const key = keyIn(request, named)
  const taken = await entries.take(key.hash, key.kind, [key.owner])
  noteRequest(request, { entry: key, hasEntry: taken !== null })
  return contentOf(taken)
}

function keyIn ({ session }: FastifyRequest, named: string | EntryKey): EntryKey {
  return typeof named === 'string' ? keyOf(session.sessionId, named) : named
}

/** An entry is known by its session, so that another session cannot name it. */
export function keyOf (sessionId: string, kind: string, key = ''): EntryKey {
  return { hash: digestOf(`${kind} ${sessionId} ${key}`), kind, owner: digestOf(sessionId) }
}

function stepOf (request: FastifyRequest, kind: string, content: object, key?: string): OneTimeEntry {
  const startedAt = Date.now()
  return { ...keyOf(request.session.sessionId, kind, key), content: { content, startedAt }, startedAt }
}

function contentOf<Content> (found: EntryContent | null): Content | null {
  const { content, startedAt } = Object(found)
  return startedAt > Date.now() - PENDING_MS ? content : null
}

/**
 * Writes an entry of the session of a request. Each has a place of its own, so that other tabs and
 * processes do not overwrite it and a late save of the session does not restore it.
 */
export async function putOwned (request: FastifyRequest, entry: OneTimeEntry, most: number): Promise<void> {
  const sessions = sessionsOf(request)
  await keepSession(request, sessions, entry).catch((error: unknown) => { throw sessionsUnavailable(error) })
  await sessions.backend.entries.put(entry, most)
}

/** Saves the session if necessary, because later requests find the entry by its cookie. */
async function keepSession (request: FastifyRequest, sessions: RequestSessions, entry: OneTimeEntry): Promise<void> {
  const { session } = request
  if (!sessions.isStored(session)) {
    shortenLifetime(session, { firstEntry: entry.hash })
    return session.save()
  }
  // The session may have changed since this request read it.
  const present = await sessions.backend.read(session.sessionId)
  const expires = present?.cookie.expires
  if (expires == null || new Date(expires).getTime() > Date.now() + PENDING_MS) return
  await session.reload()
  await request.session.save()
}
