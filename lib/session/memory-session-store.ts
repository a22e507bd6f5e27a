import type { SessionStore } from '@fastify/session'
import type { Session } from 'fastify'
import { sessionIdOf } from './session-store.js'

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
 * are removed.
 */
export class MemorySessionStore implements SessionStore {
  readonly #entries = new Map<string, Entry>()
  readonly #anonymous = new Set<string>()
  #nextSweep = 0

  set (id: string, session: Session, callback: (error?: unknown) => void): void {
    this.#sweep()
    const expires = session.cookie.expires ? new Date(session.cookie.expires).getTime() : Infinity
    const isAnonymous = session.svcAuth === undefined && !this.#isOfMember(id)
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

  /**
   * Whether an entry belongs to the session of a signed-in user. The mark that ends such a session
   * must not be removed, or a late request of the session would restore it.
   */
  #isOfMember (id: string): boolean {
    const sessionId = sessionIdOf(id)
    // The mark itself counts too: it may be written again after the session was removed.
    return sessionId !== null && [sessionId, id].some(id => this.#entries.has(id) && !this.#anonymous.has(id))
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
    if (now < this.#nextSweep) return
    this.#nextSweep = now + SWEEP_INTERVAL_MS
    for (const [id, { expires }] of this.#entries) {
      if (expires <= now) this.#remove(id)
    }
  }
}
