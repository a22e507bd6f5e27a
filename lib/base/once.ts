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
