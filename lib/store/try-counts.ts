import type { AuthStore } from './store.js'

/** A try, as a limit counts it. */
export interface Try {
  /** What it is counted by, such as the name of the limit with an address. */
  key: string
  /** How many tries the limit allows. */
  max: number
  /** Milliseconds from the first try, after which the count starts again. */
  timeWindow: number
}

/** A limit that a try is beyond. */
export interface ExceededLimit {
  /** That of the {@link Try}. */
  key: string
  /** Milliseconds until the count starts again. */
  wait: number
}

/** Counts tries for all processes that have the same database. */
export interface TryCounts {
  /**
   * Adds one to the counts of several limits in their order, up to the first one that the try is
   * beyond. Each count is exact however many calls there are at once, and times are those of one
   * clock: processes whose clocks differ must not restart each other's counts.
   *
   * @returns null when the try is within all limits
   */
  count (tries: readonly Try[]): Promise<ExceededLimit | null>
}

/** The optional part of {@link AuthStore} by which processes share the counts of tries. */
export interface SharedCounts {
  /** Null where each process counts for itself. */
  readonly counts: TryCounts | null
}

/** Returns the counts of a store, or null when it has none. */
export function countsOf (store: AuthStore & Partial<SharedCounts>): TryCounts | null {
  return store.counts ?? null
}
