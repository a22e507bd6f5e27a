import { MemoryAuthStore } from '../../lib/index.js'
import { deferred } from './deferred.js'

/** A store that holds the answer about one credential until the test lets it go. */
export class HoldingStore extends MemoryAuthStore {
  readonly read = deferred()
  readonly goOn = deferred()
  holds = false

  async #hold<T> (answer: Promise<T>): Promise<T> {
    const known = await answer
    if (!this.holds) return known
    this.holds = false
    this.read.resolve()
    await this.goOn.promise
    return known
  }

  override async findCredential (email: string): ReturnType<MemoryAuthStore['findCredential']> {
    return this.#hold(super.findCredential(email))
  }

  override async refreshIdentity (
    ...identity: Parameters<MemoryAuthStore['refreshIdentity']>
  ): ReturnType<MemoryAuthStore['refreshIdentity']> {
    return this.#hold(super.refreshIdentity(...identity))
  }
}
