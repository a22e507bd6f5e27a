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
