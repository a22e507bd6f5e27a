import { randomUUID } from 'node:crypto'
import type { Session } from 'fastify'
import { Turns } from '../base/turns.js'
import { ENDED_MS } from '../store/sessions.js'
import type { EndingSession } from './keeper.js'
import { type SessionEntries, entryId } from './session-store.js'

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
  /** Whether a user was signed in: then a flood of visitors does not displace the mark. */
  isOfUser: boolean
}

/** Ends a session: no request under way, in whichever process, saves it again. */
export async function endSession (
  entries: SessionEntries,
  { id, ...mark }: EndingSession & EndMark
): Promise<void> {
  const remove = async (): Promise<void> => entries.remove(id)
  await entries.write(entryId('ended', id), { svcAuthEnd: mark satisfies EndMark }, ENDED_MS, remove)
}

/** Whether a session was ended; false for a new session and for one that expired. */
export async function hasEnded (entries: SessionEntries, id: string): Promise<boolean> {
  return await entries.read(entryId('ended', id)) !== null
}

/** Whether the user of a session signed out, as opposed to a sign-in that replaced the session. */
export async function hasSignedOut (entries: SessionEntries, id: string): Promise<boolean> {
  return await entries.read(entryId('signed-out', id)) !== null
}

/**
 * Runs sign-outs of one session one after the other, so that one of several simultaneous ones in
 * this process announces it.
 */
const signOuts = new Turns()

/**
 * Ends a session because its user signs out, and the session of a sign-in that has replaced it
 * meanwhile. A sign-in that is under way looks for the note after it has written its session, so
 * one of the two sees the other.
 *
 * @returns whether this call signed the user out; false when another one did. Of two calls in
 * different processes, the one whose note is the last does; a store without a conditional write
 * allows no more.
 */
export async function signOutOf (entries: SessionEntries, session: EndingSession): Promise<boolean> {
  const { id, isOfUser } = session
  return signOuts.take(id, async () => {
    const note = entryId('signed-out', id)
    const isThere = await entries.read(id) !== null
    const isNoted = await entries.read(note) !== null
    const by = randomUUID()
    // The note of another process stays: it tells that process that it is the one.
    if (!isNoted) await entries.write(note, { by, svcAuthEnd: { isOfUser } }, ENDED_MS)
    let next: string | undefined
    try {
      next = endMarkIn(await entries.read(entryId('ended', id)))?.next
      if (next !== undefined) await endSession(entries, { id: next, isOfUser: true })
      await endSession(entries, { ...session, ...(next !== undefined && { next }) })
    } catch (error) {
      // The note of another sign-out stays.
      if (!isNoted) await entries.remove(note).catch(() => {})
      throw error
    }
    const last = await entries.read(note)
    return (isThere || next !== undefined) && !isNoted && Object(last).by === by
  })
}

/** The mark in an entry; null without one. */
export function endMarkIn (entry: Session | null): EndMark | null {
  return entry !== null && 'svcAuthEnd' in entry ? Object(entry.svcAuthEnd) : null
}
