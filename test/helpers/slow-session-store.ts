import { setTimeout as wait } from 'node:timers/promises'
import type { SessionStore } from '@fastify/session'
import type { Session } from 'fastify'

/** Whether an id is that of an entry that the library keeps beside the sessions. */
export const isEntryId = (id: string): boolean => id.startsWith('svc-') && id.length === 36

/** A session store like one in another process: sessions are text, and each operation takes a few milliseconds. */
export class SlowSessionStore implements SessionStore {
  readonly entries = new Map<string, string>()
  /** Fails every operation while set. */
  failure: Error | null = null

  set (id: string, session: Session, callback: (error?: unknown) => void): void {
    const text = JSON.stringify(session)
    this.#later(() => { this.entries.set(id, text) }, callback)
  }

  get (id: string, callback: (error: unknown, session?: Session | null) => void): void {
    this.#later(() => JSON.parse(this.entries.get(id) ?? 'null'), callback)
  }

  destroy (id: string, callback: (error?: unknown) => void): void {
    this.#later(() => { this.entries.delete(id) }, callback)
  }

  /** What is stored of sessions proper: none of the entries that the library keeps beside them. */
  get sessions (): string[] {
    return [...this.entries].filter(([id]) => !isEntryId(id)).map(([, text]) => text)
  }

  async #later<T> (work: () => T, callback: (error: unknown, result?: T) => void): Promise<void> {
    await wait(1 + Math.random() * 4)
    if (this.failure !== null) callback(this.failure)
    else callback(null, work())
  }
}
