const SWEEP_INTERVAL_MS = 60_000

/**
 * Removes what is over in the background, at most once a minute and only while the store is used:
 * no timer keeps a process alive.
 */
export class Sweeper {
  readonly #sweep: (now: number) => Promise<void>
  readonly #failed: (error: unknown) => void
  #lastSweep: number
  #underWay: Promise<void> | null = null

  /**
   * @param failed is told why a sweep failed
   * @param lastSweep the time from which on a minute passes; default the first use sweeps
   */
  constructor (sweep: (now: number) => Promise<void>, failed: (error: unknown) => void = () => {}, lastSweep = 0) {
    this.#sweep = sweep
    this.#failed = failed
    this.#lastSweep = lastSweep
  }

  /** Starts a sweep when it is time. A sweep that fails is left for the next one. */
  start (now: number): void {
    // The clock may have been set back.
    if (this.#underWay !== null || Math.abs(now - this.#lastSweep) < SWEEP_INTERVAL_MS) return
    this.#lastSweep = now
    this.#underWay = this.#sweep(now).catch(this.#failed).finally(() => { this.#underWay = null })
  }
}
