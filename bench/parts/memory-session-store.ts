import type { SessionStore } from '@fastify/session'
import type { Session } from 'fastify'

/** Keeps sessions as text in the memory of a process, as the plugin does. */
export class MemorySessionStore implements SessionStore {
  readonly #sessions = new Map<string, string>()

  get (id: string, done: (error: unknown, session?: Session | null) => void): void {
    const session = this.#sessions.get(id)
    done(null, session === undefined ? null : JSON.parse(session))
  }

  set (id: string, session: Session, done: (error?: unknown) => void): void {
    this.#sessions.set(id, JSON.stringify(session))
    done()
  }

  destroy (id: string, done: (error?: unknown) => void): void {
    this.#sessions.delete(id)
    done()
  }
}
