/**
 * A map with a maximum number of entries. An entry above it replaces the one that was set longest
 * ago.
 */
export class BoundedMap<V> extends Map<string, V> {
  readonly #max: number

  constructor (max: number) {
    super()
    this.#max = max
  }

  override set (key: string, value: V): this {
    this.delete(key)
    super.set(key, value)
    const [oldest] = this.keys()
    if (oldest !== undefined && this.size > this.#max) this.delete(oldest)
    return this
  }
}
