import type { Session } from 'fastify'
import { MemorySessionStore } from './memory-session-store.js'
import { type CallbackStore, entryId, isEntryId, readEntry, removeEntry, writeEntry, writeSession } from './session-store.js'
import { Turns } from '../base/turns.js'

type Done<T = void> = (error: unknown, answer?: T) => void

/** No request that was under way when its session ended runs longer than this. */
const LONGEST_REQUEST_MS = 60 * 60 * 1000

const kept = new WeakSet<object>()

/**
 * Makes a session that was ended stay ended, in this process and in others on the same store.
 *
 * @fastify/session saves a session when a request answers, and knows nothing of another request that signed the person out in the
 * meantime: the saved session would be alive again. So the end of a session leaves a mark in the store, and whoever saves a session
 * looks for the mark afterwards. The mark is written before the session is removed; hence a late save is either removed with the
 * session or finds the mark.
 *
 * The store's own methods are wrapped, once, because sessions hold on to the store itself.
 */
export function keepEnded (store: CallbackStore): void {
  if (kept.has(store)) return
  kept.add(store)
  const original: CallbackStore = { get: store.get.bind(store), set: store.set.bind(store), destroy: store.destroy.bind(store) }

  // What a store throws is for the log: guards and the application's routes would send it to the client. Ours throws nothing, and answers at once.
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
    settle(done, writeEntry(original, entryId('ended', id), {}, LONGEST_REQUEST_MS, async () => removeEntry(original, id)))
  }
}

async function writeUnlessEnded (store: CallbackStore, id: string, session: Session): Promise<void> {
  if (await hasEnded(store, id)) return
  await writeSession(store, id, session, async () => {
    if (await hasEnded(store, id)) await removeEntry(store, id)
  })
}

/** Sign-outs of one session take turns, so that of many at once one is the first. */
const signOuts = new Turns()

/**
 * Ends a session, and notes that it is because somebody signs out, and not because it gives way to one with a new id.
 *
 * @returns whether this call ended it; false when another one had
 */
export async function withSignOutNoted (store: CallbackStore, id: string, end: () => Promise<void>): Promise<boolean> {
  return signOuts.take(id, async () => {
    const isThere = await readEntry(store, id) !== null
    const wasNoted = await hasSignedOut(store, id)
    const note = entryId('signed-out', id)
    // Noted before: a sign-in that is under way looks for it after it has written its session.
    await writeEntry(store, note, {}, LONGEST_REQUEST_MS)
    try {
      await end()
    } catch (error) {
      // What another one has noted stays.
      if (!wasNoted) await removeEntry(store, note).catch(() => {})
      throw error
    }
    return isThere
  })
}

export async function hasSignedOut (store: CallbackStore, id: string): Promise<boolean> {
  return await readEntry(store, entryId('signed-out', id)) !== null
}

/** Whether a session was ended; a new one, or one that merely expired, was not. */
export async function hasEnded (store: CallbackStore, id: string): Promise<boolean> {
  return await readEntry(store, entryId('ended', id)) !== null
}

function settle<T> (done: Done<T>, answer: Promise<T>): void {
  // The callback runs outside the promise: what it throws is not an error of the store.
  answer.then(answer => { process.nextTick(done, null, answer) }, (error: unknown) => { process.nextTick(done, error) })
}
