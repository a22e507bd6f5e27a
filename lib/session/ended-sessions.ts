import type { Session } from 'fastify'
import { MemorySessionStore } from './memory-session-store.js'
import {
  type CallbackStore, entryId, isEntryId, readEntry, removeEntry, writeEntry, writeSession
} from './session-store.js'
import { Turns } from '../base/turns.js'

type Done<T = void> = (error: unknown, answer?: T) => void

/** The longest time that a request may run on after its session has ended. */
const LONGEST_REQUEST_MS = 60 * 60 * 1000

const kept = new WeakSet<object>()

/**
 * Wraps the methods of a session store, once, so that an ended session stays ended in every process
 * that uses the store.
 *
 * @fastify/session saves a session when a request is answered, also after another request has
 * signed the user out: the session would exist again. Therefore the end of a session writes a mark
 * to the store, and every save checks for the mark before and after it. The mark is written before
 * the session is removed, so a late save is either removed with the session or finds the mark.
 *
 * The store itself is changed, because sessions keep a reference to it.
 */
export function keepEnded (store: CallbackStore): void {
  if (kept.has(store)) return
  kept.add(store)
  const original: CallbackStore = {
    get: store.get.bind(store),
    set: store.set.bind(store),
    destroy: store.destroy.bind(store)
  }

  // Guards and the application's routes would send an error of the store to the client, so it
  // becomes an AuthError. The store in memory never fails.
  if (store.get !== MemorySessionStore.prototype.get) {
    store.get = (id: string, done: Done<Session | null>) => {
      if (isEntryId(id)) return original.get(id, done)
      settle(done, readEntry(original, id))
    }
  }
  store.set = (id: string, session: Session, done: Done) => {
    if (isEntryId(id)) return original.set(id, session, done)
    settle(done, writeUnlessEnded(original, id, session))
  }
  store.destroy = (id: string, done: Done) => {
    if (isEntryId(id)) return original.destroy(id, done)
    const remove = async (): Promise<void> => removeEntry(original, id)
    settle(done, writeEntry(original, entryId('ended', id), {}, LONGEST_REQUEST_MS, remove))
  }
}

async function writeUnlessEnded (store: CallbackStore, id: string, session: Session): Promise<void> {
  if (await hasEnded(store, id)) return
  await writeSession(store, id, session, async () => {
    if (await hasEnded(store, id)) await removeEntry(store, id)
  })
}

/**
 * Runs sign-outs of one session one after the other, so that one of several simultaneous ones ends
 * it.
 */
const signOuts = new Turns()

/**
 * Ends a session and marks it as signed out, as opposed to replaced by a session with a new id.
 *
 * @returns whether this call ended the session; false when another one had ended it
 */
export async function withSignOutNoted (store: CallbackStore, id: string, end: () => Promise<void>): Promise<boolean> {
  return signOuts.take(id, async () => {
    const isThere = await readEntry(store, id) !== null
    const wasNoted = await hasSignedOut(store, id)
    const note = entryId('signed-out', id)
    // Written first: a sign-in that is under way checks for it after it has written its session.
    await writeEntry(store, note, {}, LONGEST_REQUEST_MS)
    try {
      await end()
    } catch (error) {
      // The note of another sign-out stays.
      if (!wasNoted) await removeEntry(store, note).catch(() => {})
      throw error
    }
    return isThere
  })
}

/** Whether the user of a session signed out. */
export async function hasSignedOut (store: CallbackStore, id: string): Promise<boolean> {
  return await readEntry(store, entryId('signed-out', id)) !== null
}

/** Whether a session was ended; false for a new session and for one that expired. */
export async function hasEnded (store: CallbackStore, id: string): Promise<boolean> {
  return await readEntry(store, entryId('ended', id)) !== null
}

function settle<T> (done: Done<T>, answer: Promise<T>): void {
  // The callback runs outside the promise, so that its errors are not reported as errors of the
  // store.
  answer.then(answer => { process.nextTick(done, null, answer) }, (error: unknown) => { process.nextTick(done, error) })
}
