import type { SessionStore } from '@fastify/session'
import type { Session } from 'fastify'
import { AuthError } from '../errors.js'
import { PATIENCE_MS, inTime } from '../base/in-time.js'

/** The methods of an express-session compatible store that the plugin uses. */
export type CallbackStore = Pick<SessionStore, 'get' | 'set' | 'destroy'>

/**
 * The kinds of entries that the plugin keeps beside a session in its store: pending sign-ins, the
 * mark that the session has ended, and the mark that the user signed out.
 */
export type EntryKind = 'pending' | 'ended' | 'signed-out'

const PREFIX = 'svc-auth-'

/**
 * Returns the id of an entry beside a session. A client cannot use it as a session id, because
 * cookies are signed.
 */
export function entryId (kind: EntryKind, sessionId: string): string {
  return `${PREFIX}${kind}:${sessionId}`
}

/** Whether an id is that of an entry of the plugin. */
export function isEntryId (id: string): boolean {
  return id.startsWith(PREFIX)
}

/** Returns the session id of an entry of the plugin; null for the id of a session itself. */
export function sessionIdOf (id: string): string | null {
  return isEntryId(id) ? id.slice(id.indexOf(':') + 1) : null
}

/** Reads an entry or a session; null without one. */
export async function readEntry (store: CallbackStore, id: string): Promise<Session | null> {
  const answer = answerOf<Session | null | undefined>(done => { store.get(id, done) })
  return await inPatience(answer.catch(ignoreMissing)) ?? null
}

/**
 * Writes an entry of the plugin.
 *
 * @param lifetime milliseconds; stores take them from the member `cookie`, as for a session
 * @param afterwards as for {@link writeSession}
 */
export async function writeEntry (
  store: CallbackStore,
  id: string,
  content: object,
  lifetime: number,
  afterwards?: () => Promise<void>
): Promise<void> {
  const cookie = { originalMaxAge: lifetime, maxAge: lifetime, expires: new Date(Date.now() + lifetime) }
  await writeSession(store, id, { ...content, cookie }, afterwards)
}

/**
 * Writes a session.
 *
 * @param afterwards runs after the write, also when the store answers too late for the caller
 */
export async function writeSession (
  store: CallbackStore,
  id: string,
  session: Session,
  afterwards = async (): Promise<void> => {}
): Promise<void> {
  await inPatience(answerOf(done => { store.set(id, session, done) }).then(afterwards))
}

/** Removes an entry or a session; a missing one is ignored. */
export async function removeEntry (store: CallbackStore, id: string): Promise<void> {
  await inPatience(answerOf(done => { store.destroy(id, done) }).catch(ignoreMissing))
}

function answerOf<T = void> (ask: (done: (error: unknown, answer?: T) => void) => void): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    ask((error, answer) => { error ? reject(error) : resolve(answer) })
  })
}

/** Ignores the error by which some stores report a missing entry. */
function ignoreMissing (error: unknown): undefined {
  if (typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT') return
  throw error
}

/** @throws AuthError `unavailable` when the store fails or does not answer in time */
async function inPatience<T> (answer: Promise<T>): Promise<T> {
  try {
    return await inTime(PATIENCE_MS, answer, 'the session store')
  } catch (error) {
    throw error instanceof AuthError ? error : sessionsUnavailable(error)
  }
}

/** Returns the error of a session store that fails. */
export function sessionsUnavailable (cause: unknown): AuthError {
  return new AuthError('unavailable', { message: 'Sessions cannot be reached at the moment; try again later.', cause })
}
