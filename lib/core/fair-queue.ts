import { AuthError } from '../errors.js'

/** The caller that work is done for: callers of different addresses take turns. */
export interface Caller {
  /** The address of the client; callers without an address share one line. */
  address?: string | undefined
  /** Removes work that has not begun when it aborts; the promise rejects with its reason. */
  signal?: AbortSignal | undefined
}

export interface FairQueueLimits {
  /** Pieces of work that run at the same time. */
  running: number
  /** Pieces of work that wait for their turn. */
  waiting: number
  /** Seconds after which a refused caller should try again. */
  retryAfter: number
}

interface Turn {
  begin (): void
  refuse (reason: unknown): void
}

/**
 * Runs a bounded number of pieces of work at a time and lets a bounded number wait. Each address
 * has its own line, and the lines take turns. When no place is left, a caller with a shorter line
 * takes the last place of the longest line.
 */
export class FairQueue {
  readonly #limits: FairQueueLimits
  #running = 0
  #waiting = 0
  /** Lines by address. The first line has the next turn and then moves to the end. */
  readonly #lines = new Map<string, Set<Turn>>()

  constructor (limits: FairQueueLimits) {
    this.#limits = limits
  }

  /** Returns the error `busy` when a caller at this address would get no place now; else null. */
  refusalFor (address = ''): AuthError | null {
    const ownLength = this.#lines.get(address)?.size ?? 0
    const hasRoom = this.#waiting < this.#limits.waiting || this.#longestLine().size > ownLength + 1
    return hasRoom ? null : this.#busy()
  }

  /** Waits for a turn and runs the work; throws `busy` without one, and the reason of `signal`. */
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

  /** Gives the place of finished work to the next turn in line. */
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
