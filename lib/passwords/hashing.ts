import { availableParallelism } from 'node:os'
import type * as argon2 from '@node-rs/argon2'
import type { AuthError } from '../errors.js'
import { Once } from '../base/once.js'
import type { Argon2Cost } from './argon2-cost.js'
import { type Caller, FairQueue } from './fair-queue.js'

/**
 * Threads of Node.js's pool: four by default, and one for a setting that is not a number, as libuv
 * reads it.
 */
const POOL_THREADS = Number.parseInt(process.env.UV_THREADPOOL_SIZE ?? '4', 10) || 1

/**
 * Hashes that run at a time: one more than there are cores, so that none is idle until the event
 * loop starts the next hash. One thread of the pool stays free for files, DNS and keys. More hashes
 * do not finish sooner, and each takes 19 MiB.
 */
export const RUNNING = Math.max(1, Math.min(POOL_THREADS - 1, availableParallelism() + 1, 8))

/** Hashes that wait. At 20 ms per hash and two cores the last one waits 2.5 s. */
export const WAITING = 256

const queue = new FairQueue({ running: RUNNING, waiting: WAITING, retryAfter: 3 })

/** The native module is loaded when the application is ready, or with the first password. */
const native = new Once<typeof argon2>(() => import('@node-rs/argon2'))

/**
 * Computes the password hashes of this process in the thread pool of Node.js, a few at a time.
 *
 * `hash` and `verify` throw AuthError `busy` when too many hashes wait, and the reason of `signal`
 * when it aborts before the hash has begun.
 */
export const hashing = {
  /** Loads the native module, so that the first password does not wait for it. */
  async preload (): Promise<void> {
    await native.done()
  },

  async hash ({ password, cost }: { password: string, cost: Argon2Cost }, caller?: Caller): Promise<string> {
    const { hash } = await native.done()
    return queue.run(async () => hash(password, cost), caller)
  },

  async verify ({ password, hash }: { password: string, hash: string }, caller?: Caller): Promise<boolean> {
    const { verify } = await native.done()
    return queue.run(async () => verify(hash, password), caller)
  },

  /** Reads the parameters of a PHC string; throws for any other string. */
  async parametersOf (hash: string): Promise<argon2.ParsedHashOptions> {
    const { parseOptions } = await native.done()
    return parseOptions(hash)
  },

  /** As {@link FairQueue.refusalFor}. */
  refusalFor (address: string): AuthError | null {
    return queue.refusalFor(address)
  }
}
