import type { AuthStore } from './store.js'

/** Listens to the endings of other processes: see {@link Endings.follow}. */
export interface EndingsListener {
  /** Called once for each ending. */
  ended (userId: string): void
  /** The logger of the application. */
  log: {
    /** Notes how the store hears of endings. */
    info (context: object, message: string): void
    /** Notes a failure that the store recovers from by itself. */
    warn (context: object, message: string): void
  }
}

/**
 * Tells all processes that have the same database when sessions end. An ending is recorded in the
 * step that ends the sessions: by the methods of the store that end all sessions of a user
 * (`changeUser` with `endSessions`, `setPassword`, `removeLink`, `resetPassword`, `changeEmail` and
 * `disownEmail`), and by a sign-out from a session that the store keeps.
 */
export interface Endings {
  /**
   * Records that a user signed out from a session that another store keeps. The caller has
   * announced it in this process.
   */
  record (userId: string): Promise<void>

  /**
   * Calls a listener for each ending that another store on the database records, from a few seconds
   * ago until this store is closed: for each once, also for those that were recorded while the
   * database could not be reached. An ending of this store is told only when its method failed and
   * the sessions have ended all the same.
   */
  follow (listener: EndingsListener): Promise<void>
}

/** The optional part of {@link AuthStore} by which `revoke` reaches every process. */
export interface SharedEndings {
  /** Null where each process tells only of its own. */
  readonly endings: Endings | null
}

/** Returns the endings of a store, or null when it shares none. */
export function endingsOf (store: AuthStore & Partial<SharedEndings>): Endings | null {
  return store.endings ?? null
}
