import type { SessionStore } from '@fastify/session'
import type { Session } from 'fastify'
import { endMarkIn } from './ended-sessions.js'
import { principalIn } from './record.js'

const SWEEP_INTERVAL_MS = 60_000

/** The maximum number of anonymous entries, about a kilobyte each: any client can cause them. */
const MAX_ANONYMOUS = 50_000

interface Entry {
  json: string
  /** Milliseconds since the epoch. */
  expires: number
}

/**
 * A session store in the memory of one process. Entries expire with their cookie. They are
 * serialised, so that sessions behave as in Redis or a database: a request sees its session as of
 * its start, without the changes of other requests. Above the maximum, the oldest anonymous entries
 * are removed; the mark that ends the session of a user is not anonymous.
 */
export class MemorySessionStore implements SessionStore {
  readonly #entries = new Map<string, Entry>()
  readonly #anonymous = new Set<string>()
  #lastSweep = 0

  set (id: string, session: Session, callback: (error?: unknown) => void): void {
    this.#sweep()
    const expires = session.cookie.expires ? new Date(session.cookie.expires).getTime() : Infinity
    const isAnonymous = principalIn(session) === null && endMarkIn(session)?.isOfUser !== true
    this.#entries.set(id, { json: JSON.stringify(session), expires })
    this.#anonymous.delete(id)
    if (isAnonymous) this.#limitAnonymous(id)
    callback()
  }

  get (id: string, callback: (error: unknown, session?: Session | null) => void): void {
    const entry = this.#entries.get(id)
    const session: Session | null = entry === undefined || entry.expires <= Date.now() ? null : JSON.parse(entry.json)
    callback(null, session)
  }

  destroy (id: string, callback: (error?: unknown) => void): void {
    this.#remove(id)
    callback()
  }

  #limitAnonymous (id: string): void {
    this.#anonymous.add(id)
    const [oldest] = this.#anonymous
    if (oldest !== undefined && this.#anonymous.size > MAX_ANONYMOUS) this.#remove(oldest)
  }

  #remove (id: string): void {
    this.#entries.delete(id)
    this.#anonymous.delete(id)
  }

  #sweep (): void {
    const now = Date.now()
    // The clock may have been set back.
    if (Math.abs(now - this.#lastSweep) < SWEEP_INTERVAL_MS) return
    this.#lastSweep = now
    for (const [id, { expires }] of this.#entries) {
      if (expires <= now) this.#remove(id)
    }
  }
}
