/**
 * Does work at the first call and keeps the result. A failed attempt is not kept: the next call
 * tries again.
 */
export class Once<T> {
  readonly #work: () => Promise<T>
  #attempt: Promise<T> | undefined

  constructor (work: () => Promise<T>) {
    this.#work = work
  }

  /** The attempt that is under way or succeeded; undefined without one. */
  get attempt (): Promise<T> | undefined {
    return this.#attempt
  }

  /** The result; the first call starts the work. */
  done (): Promise<T> {
    this.#attempt ??= this.#work().catch((error: unknown) => {
      this.#attempt = undefined
      throw error
    })
    return this.#attempt
  }
}

/** Does work that needs no waiting at the first call, and keeps the result. */
export function lazily<T> (work: () => T): () => T {
  let result: { value: T } | undefined
  return () => {
    result ??= { value: work() }
    return result.value
  }
}

/** As {@link lazily}, for each key. */
export function lazilyBy<Key extends string | number | readonly string[], T> (work: (key: Key) => T): (key: Key) => T {
  const results = new Map<string, () => T>()
  return key => {
    const result = results.get(String(key)) ?? lazily(() => work(key))
    results.set(String(key), result)
    return result()
  }
}

/**
 * Applies a function to a value, or to what awaiting the value leads to. A query that runs once it
 * is awaited does not run before.
 */
export function mapAwaited<T, U> (value: T | PromiseLike<T>, work: (value: T) => U): U | PromiseLike<U> {
  if (!isThenable(value)) return work(value)
  if (value instanceof Promise) return value.then(work)
  return { then: (...given) => Promise.resolve(value).then(work).then(...given) }
}

export function isThenable<T> (value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof Object(value).then === 'function'
}

/** Runs work on the same key one after the other, within this process. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>()

  /** The number of keys with work under way. */
  get size (): number {
    return this.#last.size
  }

  /** Runs the work when all earlier work on the key is done, failed or not. */
  async run<T> (key: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#last.get(key) ?? Promise.resolve()).then(work)
    const settled = turn.catch(() => {}).then(() => {
      if (this.#last.get(key) === settled) this.#last.delete(key)
    })
    this.#last.set(key, settled)
    return turn
  }
}

/**
 * The longest time that a call outside this process may take, waits for a connection or a lock
 * included.
 */
export const TIMEOUT_MS = 5000

export class TimeoutError extends Error {}

/**
 * Waits for an answer for a limited time.
 *
 * @param server the name of the server, for the log
 * @throws TimeoutError when the time is over
 */
export function withTimeout<T> (milliseconds: number, answer: Promise<T>, server: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new TimeoutError(`${server} did not answer within ${Math.round(milliseconds / 100) / 10} seconds; ` +
        'see whether the server is up and can be reached'))
    }, milliseconds)
    answer.then(resolve, reject).then(() => { clearTimeout(timer) })
  })
}

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
