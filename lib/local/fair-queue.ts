import { AuthError } from '../errors.js'

/** For whom work is done, so that many requests of one client leave others their turn. */
export interface Caller {
  /** The client's address; callers without one share a line. */
  address?: string | undefined
  /** Takes work that has not begun out of the queue when it aborts; the promise rejects with its reason. */
  signal?: AbortSignal | undefined
}

export interface FairQueueLimits {
  /** Pieces of work that run at the same time. */
  running: number
  /** Pieces of work that wait for their turn. */
  waiting: number
  /** Seconds after which a caller that was refused should try again. */
  retryAfter: number
}

interface Turn {
  begin (): void
  refuse (reason: unknown): void
}

/**
 * Runs a bounded number of pieces of work at a time and lets a bounded number wait. Each address has a line of its own and
 * the lines take turns. When no place is left, a caller with a shorter line takes the last place of the longest line.
 */
export class FairQueue {
  readonly #limits: FairQueueLimits
  #running = 0
  #waiting = 0
  /** The line that comes first has the next turn, and goes to the end then. */
  readonly #lines = new Map<string, Set<Turn>>()

  constructor (limits: FairQueueLimits) {
    this.#limits = limits
  }

  /** The refusal `busy` of work that would not be taken in now; null when there is room. */
  refusalFor (address = ''): AuthError | null {
    const hasRoom = this.#waiting < this.#limits.waiting || this.#longestLine().size > (this.#lines.get(address)?.size ?? 0) + 1
    return hasRoom ? null : this.#busy()
  }

  /**
   * Runs the work when its turn has come.
   *
   * @throws AuthError `busy` when no place is left, or a caller with a shorter line takes it; the reason of `signal`
   */
  async run<T> (work: () => Promise<T>, caller: Caller = {}): Promise<T> {
    await this.#turn(caller)
    try {
      return await work()
    } finally {
      this.#handOn()
    }
  }

  async #turn ({ address = '', signal }: Caller): Promise<void> {
    signal?.throwIfAborted()
    if (this.#running < this.#limits.running) {
      this.#running++
      return
    }
    const refusal = this.refusalFor(address)
    if (refusal !== null) throw refusal
    if (this.#waiting === this.#limits.waiting) [...this.#longestLine()].at(-1)?.refuse(this.#busy())

    const line = this.#lines.get(address) ?? new Set<Turn>()
    this.#lines.set(address, line)
    this.#waiting++
    await new Promise<void>((resolve, reject) => {
      const leave = (): void => {
        line.delete(turn)
        if (line.size === 0) this.#lines.delete(address)
        this.#waiting--
        signal?.removeEventListener('abort', abort)
      }
      const turn: Turn = {
        begin () { leave(); resolve() },
        refuse (reason) { leave(); reject(reason) }
      }
      const abort = (): void => { turn.refuse(signal?.reason) }
      signal?.addEventListener('abort', abort)
      line.add(turn)
    })
  }

  /** Gives the place of finished work to the next turn. */
  #handOn (): void {
    const [first] = this.#lines
    if (first === undefined) {
      this.#running--
      return
    }
    const [address, line] = first
    this.#lines.delete(address)
    this.#lines.set(address, line)
    const [next] = line
    next?.begin()
  }

  #busy (): AuthError {
    return new AuthError('busy', { retryAfter: this.#limits.retryAfter })
  }

  #longestLine (): Set<Turn> {
    return [...this.#lines.values()].reduce((longest, line) => line.size > longest.size ? line : longest)
  }
}
