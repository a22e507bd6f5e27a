/** Whether a request has come in a new session: then the answer that started it was not lost. */
import type { Session } from 'fastify'
import { BoundedMap, digestOf } from '../base/values.js'
import type { EntryKey, OneTimeEntries } from './store.js'
import { sentIn } from './lifetime.js'

/** The kind of the note that a request has come in a session. */
const KIND = 'seen-session'

/** How long a request may be sent again. */
export const SENT_MS = 60_000

/** The sessions that are noted, so that this process notes each once. */
const noted = new BoundedMap<true>(10_000)

export const seenSessions = {
  /** Notes that a request has come in a session whose first one may be sent again. */
  async note (entries: Pick<OneTimeEntries, 'put'>, session: Session & { sessionId: string }): Promise<void> {
    const { at = 0 } = sentIn(session) ?? {}
    if (at > Date.now() - SENT_MS) await this.add(entries, session.sessionId)
  },

  /** Lets no request that is sent again have a session. */
  async add (entries: Pick<OneTimeEntries, 'put'>, id: string): Promise<void> {
    const key = keyOf(id)
    if (noted.has(key.hash)) return
    await entries.put({ ...key, content: {}, startedAt: Date.now() }, 1)
    noted.set(key.hash, true)
  },

  async has (entries: Pick<OneTimeEntries, 'find'>, id: string): Promise<boolean> {
    return await entries.find(keyOf(id)) !== null
  }
}

function keyOf (id: string): EntryKey {
  return { hash: digestOf(`${KIND} ${id}`), kind: KIND, owner: digestOf(id) }
}
