import { randomUUID } from 'node:crypto'
import type { Session } from 'fastify'
import { TIMEOUT_MS } from '../base/with-timeout.js'
import { KeyedMutex } from '../base/keyed-mutex.js'
import { ENDED_MS } from '../store/sessions.js'
import { principalIn } from './record.js'
import { type SessionEntries, entryId } from './express-store.js'

/**
 * The mark of an ended session.
 *
 * @fastify/session saves a session when a request is answered, also after another request has
 * signed the user out: the session would exist again. Therefore the end of a session writes a mark
 * to the store, and every save of the session checks for the mark afterwards. The mark is written
 * before the session is removed, so a late save is either removed with the session or finds the
 * mark.
 */
interface EndMark {
  /** The id of the session that replaced this one at a sign-in. */
  next?: string
  /** When that sign-in is over at the latest, by {@link preciseTime}. */
  until?: number
}

/** Ends a session: no request under way, in whichever process, saves it again. */
export async function endSession (entries: SessionEntries, id: string, mark: EndMark = {}): Promise<void> {
  await entries.write(entryId('ended', id), { svcAuthEnd: mark }, ENDED_MS, async () => entries.remove(id))
}

/** Whether a session was ended; false for a new session and for one that expired. */
export async function hasEnded (entries: SessionEntries, id: string): Promise<boolean> {
  return await entries.read(entryId('ended', id)) !== null
}

/** Whether the user of a session signed out, as opposed to a sign-in that replaced the session. */
export async function hasSignedOut (entries: SessionEntries, id: string): Promise<boolean> {
  return await entries.read(entryId('signed-out', id)) !== null
}

/** The longest time from the mark of the replaced session to the end of a sign-in. */
export const SIGN_IN_MS = 2 * TIMEOUT_MS

/** The present time, in milliseconds since the epoch, with fractions. */
export function preciseTime (): number {
  return performance.timeOrigin + performance.now()
}

/**
 * Runs what concerns the end of one session one after the other, so that one of several
 * simultaneous sign-outs in this process announces it.
 */
const mutex = new KeyedMutex()

/**
 * Notes in the background that the sign-in is over which has replaced a session: a sign-out that
 * comes from now on with the cookie of the replaced one does not end the new one.
 */
export function finishReplacement (entries: SessionEntries, id: string, next: string): void {
  const overAt = preciseTime()
  const note = async (): Promise<void> => entries.write(entryId('signed-in', next), { overAt }, SIGN_IN_MS)
  mutex.run(id, note).catch(() => {})
}

/** Whether a sign-in has replaced a session and was not over at a time. */
export async function isReplacedSince (entries: SessionEntries, id: string, time: number): Promise<boolean> {
  return mutex.run(id, async () => {
    const mark = endMarkIn(await entries.read(entryId('ended', id)))
    if (mark?.next === undefined) return false
    const { overAt = mark.until } = Object(await entries.read(entryId('signed-in', mark.next)))
    return time < overAt
  })
}

/**
 * Ends a session because its user signs out, and the session of a sign-in that has replaced it
 * meanwhile. A sign-in that is under way looks for the note after it has written its session, so
 * one of the two sees the other.
 *
 * @returns the user of the session that had replaced it, null without one; null when another call
 * ended it. Of two calls in different processes, the one whose note is the last does; a store
 * without a conditional write allows no more.
 */
export async function signOutOf (entries: SessionEntries, id: string): Promise<{ nextUserId: string | null } | null> {
  return mutex.run(id, async () => {
    const note = entryId('signed-out', id)
    const isThere = await entries.read(id) !== null
    const isNoted = await entries.read(note) !== null
    const by = randomUUID()
    // The note of another process stays: it tells that process that it is the one.
    if (!isNoted) await entries.write(note, { by }, ENDED_MS)
    let next: string | undefined
    let nextUserId: string | null = null
    try {
      next = endMarkIn(await entries.read(entryId('ended', id)))?.next
      if (next !== undefined) {
        nextUserId = principalIn(await entries.read(next))?.userId ?? null
        await endSession(entries, next)
      }
      await endSession(entries, id, next === undefined ? {} : { next })
    } catch (error) {
      // The note of another sign-out stays.
      if (!isNoted) await entries.remove(note).catch(() => {})
      throw error
    }
    const last = await entries.read(note)
    const isEndedHere = (isThere || next !== undefined) && !isNoted && Object(last).by === by
    return isEndedHere ? { nextUserId } : null
  })
}

/** The mark in an entry; null without one. */
function endMarkIn (entry: Session | null): EndMark | null {
  return entry !== null && 'svcAuthEnd' in entry ? Object(entry.svcAuthEnd) : null
}
