/** An attempt, as a limit counts it. */
export interface Attempt {
  /** What it is counted by, such as the name of the limit with an address. */
  key: string
  /** How many attempts the limit allows. */
  max: number
  /** Milliseconds from the first attempt, after which the count starts again. */
  timeWindow: number
}

/** A limit that an attempt is beyond. */
export interface ExceededLimit {
  /** The key of the {@link Attempt}. */
  key: string
  /** Milliseconds until the count starts again. */
  wait: number
}

/** Counts attempts for all processes that have the same database. */
export interface AttemptCounter {
  /**
   * Adds one to the counts of several limits in their order, up to the first one that the attempt
   * is beyond. Each count is exact however many calls there are at once, and all times are of one
   * clock: processes whose clocks differ must not restart each other's counts.
   *
   * @returns null when the attempt is within all limits
   */
  count (attempts: readonly Attempt[]): Promise<ExceededLimit | null>
}
