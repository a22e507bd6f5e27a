/** Lets pieces of work on one key take turns, within this process. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>()

  /** How many keys are being worked on. */
  get size (): number {
    return this.#last.size
  }

  async take<T> (key: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#last.get(key) ?? Promise.resolve()).then(work)
    const settled = turn.catch(() => {}).then(() => {
      if (this.#last.get(key) === settled) this.#last.delete(key)
    })
    this.#last.set(key, settled)
    return turn
  }
}
