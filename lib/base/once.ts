/** Work that is done when it is first asked for, and whose result is kept. A failed attempt is not kept: the next call tries again. */
export class Once<T> {
  readonly #work: () => Promise<T>
  #attempt: Promise<T> | undefined

  constructor (work: () => Promise<T>) {
    this.#work = work
  }

  /** What is under way or was done; undefined when there is nothing. */
  get attempt (): Promise<T> | undefined {
    return this.#attempt
  }

  done (): Promise<T> {
    this.#attempt ??= this.#work().catch((error: unknown) => {
      this.#attempt = undefined
      throw error
    })
    return this.#attempt
  }
}
