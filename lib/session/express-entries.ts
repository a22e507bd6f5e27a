import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { Session } from 'fastify'
import { digestOf } from '../base/digest.js'
import { KeyedMutex } from '../base/keyed-mutex.js'
import { type EntryContent, type EntryKey, type OneTimeEntry, PENDING_MS } from '../store/one-time-entries.js'
import { type SessionEntries, entryId } from './express-store.js'
import { noteIn } from './lifetime.js'
import type { OwnedEntries } from './session-backend.js'

interface PendingEntry extends Pick<OneTimeEntry, 'owner' | 'content'> {
  attempts: number
  /** Set by the request that takes it. */
  takenBy?: string
  takenAt?: number
}

/** Runs changes of one entry, or of one list, one after the other. */
const mutex = new KeyedMutex()

/**
 * Keeps what sessions own beside them in an express-session compatible store. Each method is atomic
 * in this process.
 */
export class ExpressEntries implements OwnedEntries {
  readonly #store: SessionEntries
  /** The entries that sessions were saved for, as hashes by owner: no list has them at first. */
  readonly #firstOf = new Map<string, string>()

  constructor (store: SessionEntries) {
    this.#store = store
  }

  noteFirst (id: string, session: Session): void {
    const { firstEntry } = noteIn(session)
    if (firstEntry !== undefined) this.#firstOf.set(digestOf(id), firstEntry)
  }

  async put ({ hash, kind, owner, content }: OneTimeEntry, most: number): Promise<void> {
    const id = idOf(kind, hash)
    await mutex.run(id, () => this.#write(id, { owner, content, attempts: 0 }))
    const first = this.#firstOf.get(owner)
    if (first === hash) return
    const list = entryId('started', `${kind} ${owner}`)
    await mutex.run(list, async () => {
      const { started: earlier = first === undefined ? [] : [first] }: { started?: string[] } =
        Object(await this.#store.read(list))
      const started = [...earlier.filter(other => other !== hash), hash]
      const tooMany = started.splice(0, started.length - most)
      for (const oldest of tooMany) await this.#store.remove(idOf(kind, oldest))
      await this.#store.write(list, { started }, PENDING_MS)
    })
  }

  async find ({ hash, kind, owner }: EntryKey): Promise<EntryContent | null> {
    const entry = await this.#read(idOf(kind, hash), [owner])
    return entry && entry.content
  }

  async attempt ({ hash, kind, owner }: EntryKey, most: number): Promise<EntryContent | null> {
    const id = idOf(kind, hash)
    return mutex.run(id, async () => {
      const entry = await this.#read(id, [owner])
      if (entry === null || entry.attempts >= most) return null
      await this.#write(id, { ...entry, attempts: entry.attempts + 1 })
      return entry.content
    })
  }

  /** Of several calls in different processes, the one that claims the entry last gets it. */
  async take (hash: string, kind: string, owners: readonly string[]): Promise<EntryContent | null> {
    const id = idOf(kind, hash)
    return mutex.run(id, async () => {
      const entry = await this.#read(id, owners)
      return entry !== null && await this.#claim(id, entry) ? entry.content : null
    })
  }

  async takenAt ({ hash, kind, owner }: EntryKey): Promise<number | null> {
    const entry = await this.#pending(idOf(kind, hash))
    return entry?.owner === owner ? entry.takenAt ?? null : null
  }

  /**
   * Claims an entry for one of several processes, as far as a store without an atomic removal can
   * tell. Waits twice as long as the write took before it reads the claim again: a process that saw
   * the entry unclaimed has overwritten it by then.
   */
  async #claim (id: string, entry: PendingEntry): Promise<boolean> {
    const takenBy = randomUUID()
    const start = performance.now()
    await this.#write(id, { ...entry, content: {}, takenBy, takenAt: Date.now() })
    await wait(Math.min(2 * (performance.now() - start), 100))
    return (await this.#pending(id))?.takenBy === takenBy
  }

  /** Reads an entry of one of these owners that is not taken. */
  async #read (id: string, owners: readonly string[]): Promise<PendingEntry | null> {
    const entry = await this.#pending(id)
    return entry !== null && entry.takenBy === undefined && owners.includes(entry.owner) ? entry : null
  }

  async #pending (id: string): Promise<PendingEntry | null> {
    return Object(await this.#store.read(id)).pending ?? null
  }

  async #write (id: string, pending: PendingEntry): Promise<void> {
    await this.#store.write(id, { pending }, PENDING_MS)
  }
}

function idOf (kind: string, hash: string): string {
  return entryId('pending', `${kind} ${hash}`)
}
