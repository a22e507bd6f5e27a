import type { AttemptCounter } from '../../lib/index.js'
import type { Attempt, ExceededLimit } from '../../lib/session/store.js'

/** Counts as a store of an application's own may have them. */
export class MemoryAttempts implements AttemptCounter {
  /** How often it was asked. */
  calls = 0
  readonly #entries = new Map<string, { count: number, resetsAt: number }>()

  async count (attempts: readonly Attempt[]): Promise<ExceededLimit | null> {
    this.calls++
    for (const { key, max, timeWindow } of attempts) {
      const last = this.#entries.get(key)
      const entry = last !== undefined && last.resetsAt > Date.now() ? last : { count: 0, resetsAt: Date.now() + timeWindow }
      this.#entries.set(key, entry)
      if (++entry.count > max) return { key, wait: entry.resetsAt - Date.now() }
    }
    return null
  }
}
