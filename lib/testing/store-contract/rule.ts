import type { AuthStore } from '../../store/store.js'

/** Two stores over the same data, empty at first, each with a connection of its own if possible. */
export interface Stores {
  /** A store without data. */
  store: AuthStore
  /** A second store, as in another process of the application; it may be the same object. */
  twin: AuthStore
}

/** Adds a test of the contract. Each `open()` makes stores without data, closed after the test. */
export type Rule = (name: string, check: (open: () => Promise<Stores>) => Promise<void>) => void
