import type { SessionStore } from '@fastify/session'
import type { Session } from 'fastify'
import { AuthError } from '../errors.js'
import { PATIENCE_MS, inTime } from '../base/in-time.js'

/** The part of an express-session compatible store that is used here. */
export type CallbackStore = Pick<SessionStore, 'get' | 'set' | 'destroy'>

/** What of ours stands beside a session in its store: sign-ins under way, the mark that the session has ended, and the one that it ended with a sign-out. */
export type EntryKind = 'pending' | 'ended' | 'signed-out'

const PREFIX = 'svc-auth-'

/** Session ids are made by @fastify/session and come back signed: nobody can pass the id of such an entry off as his session. */
export function entryId (kind: EntryKind, sessionId: string): string {
  return `${PREFIX}${kind}:${sessionId}`
}

export function isEntryId (id: string): boolean {
  return id.startsWith(PREFIX)
}

/** The id of the session beside which an entry of ours stands; null for a session itself. */
export function sessionIdOf (id: string): string | null {
  return isEntryId(id) ? id.slice(id.indexOf(':') + 1) : null
}

/** Reads an entry; null when there is none. */
export async function readEntry (store: CallbackStore, id: string): Promise<Session | null> {
  const entry = await inPatience(answerOf<Session | null | undefined>(done => { store.get(id, done) }).catch(passOverMissing))
  return entry ?? null
}

/** Writes an entry of our own, which ends after `lifetime` ms: stores take that from the member `cookie`, as of a session. */
export async function writeEntry (store: CallbackStore, id: string, content: object, lifetime: number, afterwards?: () => Promise<void>): Promise<void> {
  await writeSession(store, id, { ...content, cookie: { originalMaxAge: lifetime, maxAge: lifetime, expires: new Date(Date.now() + lifetime) } }, afterwards)
}

/** @param afterwards what has to follow, also when the answer comes too late for whoever waits for it */
export async function writeSession (store: CallbackStore, id: string, session: Session, afterwards = async (): Promise<void> => {}): Promise<void> {
  await inPatience(answerOf(done => { store.set(id, session, done) }).then(afterwards))
}

export async function removeEntry (store: CallbackStore, id: string): Promise<void> {
  await inPatience(answerOf(done => { store.destroy(id, done) }).catch(passOverMissing))
}

function answerOf<T = void> (ask: (done: (error: unknown, answer?: T) => void) => void): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    ask((error, answer) => { error ? reject(error) : resolve(answer) })
  })
}

/** Some stores report a missing entry as an error with this code. */
function passOverMissing (error: unknown): undefined {
  if (typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT') return
  throw error
}

/** @throws AuthError `unavailable` for a store that fails, or says nothing */
async function inPatience<T> (answer: Promise<T>): Promise<T> {
  try {
    return await inTime(PATIENCE_MS, answer, 'the session store')
  } catch (error) {
    throw error instanceof AuthError ? error : sessionsUnavailable(error)
  }
}

export function sessionsUnavailable (cause: unknown): AuthError {
  return new AuthError('unavailable', { message: 'Sessions cannot be reached at the moment; try again later.', cause })
}
