import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ReplacedSession } from '../authentication.js'
import { digestOf } from '../base/values.js'
import { AuthError } from '../errors.js'
import { sessionCookieName, signedIdsIn } from './cookies.js'
import { sessionsUnavailable } from './express.js'
import {
  BROWSER_SESSION_MS, cookieEndOf, cookieFlags, endCookie, membersIn, restoreLifetime, shortenLifetime
} from './lifetime.js'
import {
  type SessionRecord, type SessionReplacement, type SignedOut, guestRecordIn, keepHidden, ownRecordIn, preciseTime
} from './record.js'
import { type RequestSessions, namedIdOf, sessionsOf } from './request-sessions.js'
import { noteRequest, sentBy } from './sent-requests.js'
import { forgetOthers, otherSessions } from './several-cookies.js'
import { forgetStarts } from './start-cookies.js'
import { type EntryContent, type EntryKey, type OneTimeEntries, type OneTimeEntry, PENDING_MS } from './store.js'

/** What a sign-in or a reauthentication writes into a session. */
type NewRecord = Omit<SessionRecord, 'replacedSessions'>

/** The number of replaced sessions whose pending sign-ins may still finish. */
const MAX_REPLACED = 8

/**
 * Moves a session with a new record to a new id. The application's part of the session is kept, and
 * so is its end.
 *
 * @param replacement `preserved`: the names of the application's members that it keeps, default
 *   all; `onlyOpen`: whether the session must be open, default false
 * @throws AuthError `invalid_state` when the user signed out meanwhile, and with `onlyOpen` when
 *   another request has replaced the session
 */
export async function renewSession (
  request: FastifyRequest, record: NewRecord,
  { preserved = membersIn(request.session), onlyOpen = false }: Pick<Replacement, 'preserved' | 'onlyOpen'> = {}
): Promise<void> {
  const { session } = request
  const moves = record.until === undefined && sessionsOf(request).isRolling
  await replaceSession(request, record, { preserved, onlyOpen, cookieEnd: moves ? undefined : cookieEndOf(session) })
}

interface Replacement extends Pick<SessionReplacement, 'admits' | 'onlyOpen'> {
  /** The names of members of the present session that the new one gets. */
  preserved?: string[]
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
 * @throws AuthError `invalid_state` when the user signed out meanwhile, here or at the provider;
 *   what `confirm` throws
 * @see OWASP ASVS 7.2.4
 */
export async function replaceSession (
  request: FastifyRequest,
  record: NewRecord | null,
  { preserved: kept = [], cookieEnd, admits = false, onlyOpen = false, confirm }: Replacement
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
  if (record === null) shortenLifetime(session, { preserved: kept, ...sent })
  // Such a cookie does not tell when the session began.
  const isEndless = session.cookie.expires === null && !sessions.isRolling
  const written = record && {
    ...(isEndless && { until: Date.now() + BROWSER_SESSION_MS }), ...withoutSent(record), ...sent
  }
  try {
    await assertOpenAtProvider(sessions, written)
    // Saved now and not when the response is sent: a failure of the store must fail the sign-in.
    const replaced = before.sessionId
    const isAdmitted = isReplaced
      ? await sessions.saveRecord(
        request, written && { ...written, replacedSessions: replacedSessions(before) }, { replaced, admits, onlyOpen }
      )
      : await sessions.saveRecord(request, written, { admits })
    for (const { id } of others) await sessions.backend.end(id)
    // A logout that came meanwhile has not found the session.
    await assertOpenAtProvider(sessions, written)
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

/** Refuses a session that has ended at its provider already: `invalid_state`. */
async function assertOpenAtProvider (
  { backend }: RequestSessions, record: Pick<SessionRecord, 'atProvider'> | null
): Promise<void> {
  const hasEnded = record?.atProvider !== undefined && await backend.hasEndedAtProvider(record.atProvider)
  if (hasEnded) throw new AuthError('invalid_state')
}

function withoutSent ({ sent: _, ...record }: NewRecord): NewRecord {
  return record
}

function replacedSessions (before: FastifyRequest['session']): ReplacedSession[] {
  const now = Date.now()
  const earlier = ownRecordIn(before)?.replacedSessions ?? []
  const replaced = { digest: digestOf(before.sessionId), endedAt: now }
  return [replaced, ...earlier.filter(({ endedAt }) => endedAt > now - PENDING_MS)].slice(0, MAX_REPLACED)
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
  const present = { id: session.sessionId, userId: ownRecordIn(session)?.principal.userId ?? null }
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

/**
 * Replaces the session of a request with a new one, in which no user is signed in and which
 * owns an entry. What the application has written into a session without a user is kept, as the
 * hook `onSignIn` reads it once the entry is used; what it has written for a user is not.
 *
 * @throws AuthError `invalid_state` when the user of the session signed out meanwhile
 */
export async function startPendingSession (request: FastifyRequest, kind: string, content: object): Promise<void> {
  const confirm = async (): Promise<void> => sessionsOf(request).backend.entries.put(stepOf(request, kind, content), 1)
  const { session } = request
  // A guest is one until the sign-in is complete.
  const guest = guestRecordIn(session) === null ? null : ownRecordIn(session)
  const kept = guest !== null || session.svcAuth?.principal === undefined ? membersIn(session) : []
  await replaceSession(request, guest, { preserved: kept, confirm, ...guest && { cookieEnd: cookieEndOf(session) } })
}

/** What a client is told of a sign-in that waits in a session. */
export interface WaitingSession {
  readonly details: Readonly<Record<string, unknown>>
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
 * @param named the kind of an entry of the session, its key by the id of the session, or a key,
 *   which may be of another session
 * @param entries where it is kept; default beside the session
 */
export async function findEntry<Content> (
  request: FastifyRequest, named: NamedEntry, entries: TakenEntries = sessionsOf(request).backend.entries
): Promise<Content | null> {
  return contentOf(await entries.find(keyIn(request.session, named)))
}

type NamedEntry = string | EntryKey | ((sessionId: string) => EntryKey)

type TakenEntries = Pick<OneTimeEntries, 'find' | 'take'>

/** Counts an attempt at an entry as {@link findEntry} does; null once `most` were counted. */
export async function attemptEntry<Content> (
  request: FastifyRequest, named: NamedEntry, most: number
): Promise<Content | null> {
  noteEntry(request, named)
  return contentOf(await sessionsOf(request).backend.entries.attempt(keyIn(request.session, named), most))
}

/** Takes an entry, as {@link findEntry} does: of several requests, one gets it. */
export async function takeEntry<Content> (
  request: FastifyRequest, named: NamedEntry, entries: TakenEntries = sessionsOf(request).backend.entries
): Promise<Content | null> {
  const key = keyIn(request.session, named)
  const taken = await entries.take(key.hash, key.kind, [key.owner])
  noteEntry(request, named, taken !== null)
  return contentOf(taken)
}

/**
 * Notes the entry that a request asks for. While another process runs the act that has taken the
 * only entry of a session, that session is unknown: the request has a new one, and its cookie alone
 * names the session of the entry.
 */
export function noteEntry (request: FastifyRequest, named: NamedEntry, hasEntry = false): void {
  const sessionId = namedIdOf(request) ?? request.session.sessionId
  noteRequest(request, { entry: keyIn({ sessionId }, named), hasEntry })
}

function keyIn ({ sessionId }: { sessionId: string }, named: NamedEntry): EntryKey {
  if (typeof named === 'function') return named(sessionId)
  return typeof named === 'string' ? keyOf(sessionId, named) : named
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
  await keepSession(request, entry).catch((error: unknown) => { throw sessionsUnavailable(error) })
  await sessions.backend.entries.put(entry, most)
}

/** Saves the session if necessary, because later requests find the entry by its cookie. */
async function keepSession (request: FastifyRequest, entry: OneTimeEntry): Promise<void> {
  const { session } = request
  const sessions = sessionsOf(request)
  if (!sessions.isStored(session)) {
    shortenLifetime(session, { firstEntry: entry.hash })
    return session.save()
  }
  // The session may have changed since this request read it.
  const present = await sessions.backend.read(session.sessionId)
  const expires = present?.cookie.expires
  if (expires == null || new Date(expires).getTime() > Date.now() + PENDING_MS) return
  await session.reload()
  keepHidden(request, session)
  await request.session.save()
}

/**
 * Puts the id of the present session into the cookie of a request, as if the browser had sent it.
 * Otherwise @fastify/session would clear the cookie of the replaced session first and answer with
 * two `Set-Cookie` of one name.
 */
function nameInCookie (request: FastifyRequest, name: string, before: FastifyRequest['session']): void {
  const prefix = String(request.cookies[name]).slice(0, -before.encryptedSessionId.length)
  request.cookies[name] = prefix + request.session.encryptedSessionId
}
