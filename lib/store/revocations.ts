/** Listens to the revocations of other processes: see {@link Revocations.follow}. */
export interface RevocationListener {
  /** Called once for each revocation. */
  revoked (userId: string): void
  /** The logger of the application. */
  log: {
    /** Notes how the store hears of revocations. */
    info (context: object, message: string): void
    /** Notes a failure that the store recovers from by itself. */
    warn (context: object, message: string): void
  }
}

/**
 * Tells all processes that have the same database when sessions end. A revocation is recorded in
 * the step that ends the sessions: a change that deletes an account or raises its `generation`, and
 * a sign-out from a session that the store keeps.
 */
export interface Revocations {
  /**
   * Records that a user signed out from a session that another store keeps. The caller has
   * announced it in this process.
   */
  record (userId: string): Promise<void>

  /**
   * Calls a listener for each revocation that another store on the database records, from a few
   * seconds ago until this store is closed: for each once, also for those that were recorded while
   * the database could not be reached. A revocation of this store is told only when its method
   * failed and the sessions have ended all the same.
   */
  follow (listener: RevocationListener): Promise<void>
}
