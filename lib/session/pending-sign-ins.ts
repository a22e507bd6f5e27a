import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { FastifyRequest, Session } from 'fastify'
import { Turns } from '../base/turns.js'
import type { SignInParameters } from '../providers/provider.js'
import { recordIn } from './record.js'
import { type RequestSessions, sessionsOf } from './request-sessions.js'
import { digestOf, entryId, sessionsUnavailable } from './session-store.js'
import { PENDING_MS, firstStartedIn, shortenLifetime } from './visitor.js'

/** A sign-in that was started at a provider and is not finished. */
export interface PendingSignIn {
  /** The name of the provider. */
  provider: string
  state: string
  nonce: string
  codeVerifier: string
  /** The page after the sign-in: a path of this origin. */
  next: string
  /**
   * The page for errors: the one that `error_next` names, or the one on which the sign-in was
   * started. A path of this origin.
   */
  startedOn: string | null
  /** The id of the user who was signed in at the start; null without one. */
  startedBy: string | null
  /**
   * `link`: the user who started it links the identity to their account; `reauthentication`: they
   * prove again who they are.
   */
  purpose: 'sign-in' | 'link' | 'reauthentication'
  /** The parameters of this authorization request. */
  asked: SignInParameters
  /** Milliseconds since the epoch. */
  startedAt: number
}

/** An entry of a pending sign-in in the session store. */
interface PendingEntry extends PendingSignIn {
  /** A digest of the id of the session that started it. */
  session: string
  /** Set by the callback that takes it. */
  takenBy?: string
}

const MAX_PENDING = 8

/**
 * Adds a pending sign-in to a session. Each has an entry of its own in the session store, under its
 * state, so that sign-ins of other tabs and processes do not overwrite it and a late save of the
 * session does not restore it.
 */
export async function addPendingSignIn (request: FastifyRequest, pending: PendingSignIn): Promise<void> {
  const sessions = sessionsOf(request)
  const { session } = request
  const id = entryId('pending', pending.state)
  const isFirst = !sessions.isStored(session)
  await keepSession(request, sessions, id).catch((error: unknown) => { throw sessionsUnavailable(error) })
  const entry: PendingEntry = { ...pending, session: digestOf(session.sessionId) }
  await sessions.entries.write(id, { pending: entry }, PENDING_MS)
  if (!isFirst) await limitStarted(sessions, session, id)
}

/** Saves the session if necessary, because the callback finds pending sign-ins by its cookie. */
async function keepSession (request: FastifyRequest, sessions: RequestSessions, pendingId: string): Promise<void> {
  const { session } = request
  if (!sessions.isStored(session)) {
    shortenLifetime(session, pendingId)
    return session.save()
  }
  // The session may have changed since this request read it.
  const present = await sessions.entries.read(session.sessionId)
  const expires = present?.cookie.expires
  if (expires == null || new Date(expires).getTime() > Date.now() + PENDING_MS) return
  await session.reload()
  await request.session.save()
}

/** Runs changes of one list, and uses of one state, one after the other. */
const turns = new Turns()

/** Removes the oldest of more than eight sign-ins that a session has started. */
async function limitStarted (
  { entries }: RequestSessions,
  session: FastifyRequest['session'],
  pendingId: string
): Promise<void> {
  const id = entryId('started', session.sessionId)
  await turns.take(id, async () => {
    const first = firstStartedIn(session)
    const earlier = startedIn(await entries.read(id)) ?? (first === null ? [] : [first])
    const started = [...earlier, pendingId]
    const tooMany = started.length > MAX_PENDING ? started.shift() : undefined
    if (tooMany !== undefined) await entries.remove(tooMany)
    await entries.write(id, { started }, PENDING_MS)
  })
}

/**
 * Takes a pending sign-in of a session out of the session store and returns it. Of several requests
 * with one state in this process, one gets it; of several in different processes, the one that
 * claims it last, as far as a store without an atomic removal can tell.
 *
 * @returns null when the state is unknown in this session, of another provider, used or older than
 * ten minutes
 */
export async function takePendingSignIn (
  request: FastifyRequest,
  provider: string,
  state: string
): Promise<PendingSignIn | null> {
  const sessions = sessionsOf(request)
  const id = entryId('pending', state)
  return turns.take(id, async () => {
    const pending = pendingIn(await sessions.entries.read(id))
    if (pending === null || pending.takenBy !== undefined || !isOf(request.session, pending)) return null
    const isFirst = !sessions.isShared || await claim(sessions, id, pending)
    if (!isFirst) return null
    await sessions.entries.remove(id)
    const isInTime = pending.startedAt > Date.now() - PENDING_MS
    // The callback of another provider is a mix-up (RFC 9700 section 4.4): the state is used up.
    return isInTime && pending.provider === provider ? pending : null
  })
}

/**
 * Claims a pending sign-in for one of several processes. Waits twice as long as the write took
 * before it reads the claim again: a process that saw the entry unclaimed has overwritten it by
 * then.
 */
async function claim ({ entries }: RequestSessions, id: string, pending: PendingEntry): Promise<boolean> {
  const takenBy = randomUUID()
  const start = performance.now()
  await entries.write(id, { pending: { ...pending, takenBy } }, PENDING_MS)
  await wait(Math.min(2 * (performance.now() - start), 100))
  return pendingIn(await entries.read(id))?.takenBy === takenBy
}

/** Whether a session started a sign-in, or replaced the session that did. */
function isOf (session: FastifyRequest['session'], pending: PendingEntry): boolean {
  const formerly = recordIn(session)?.formerly ?? []
  return [digestOf(session.sessionId), ...formerly.map(({ digest }) => digest)].includes(pending.session)
}

function pendingIn (entry: Session | null): PendingEntry | null {
  return entry !== null && 'pending' in entry ? Object(entry.pending) : null
}

function startedIn (entry: Session | null): string[] | null {
  return entry !== null && 'started' in entry && Array.isArray(entry.started) ? entry.started : null
}
