import { availableParallelism } from 'node:os'
import type * as argon2 from '@node-rs/argon2'
import type { AuthError } from '../errors.js'
import { Once } from '../base/once.js'
import { type Caller, FairQueue } from './fair-queue.js'
import type { Argon2Cost } from './password.js'

/** What Node.js has unless the environment says otherwise; libuv takes what is not a number for 1. */
const POOL_THREADS = Number.parseInt(process.env.UV_THREADPOOL_SIZE ?? '4', 10) || 1

/** One thread of the pool stays free for files, names and keys. More hashes than cores finish no sooner, and each takes 19 MiB. */
export const RUNNING = Math.max(1, Math.min(POOL_THREADS - 1, availableParallelism(), 8))

/** At 20 ms a hash and two cores the last one waits 2.5 s. */
export const WAITING = 256

const queue = new FairQueue({ running: RUNNING, waiting: WAITING, retryAfter: 3 })

/** The native module is loaded when the application is ready, or with the first password. */
const native = new Once<typeof argon2>(() => import('@node-rs/argon2'))

/**
 * Computes the password hashes of this process in the thread pool of Node.js, few at a time.
 *
 * Both throw AuthError `busy` when too many hashes wait, and the reason of `signal` when it aborts before the turn has come.
 */
export const hashing = {
  /** Loads the native module, which the first password would otherwise wait for. */
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

  /** Reads the parameters of a PHC string; throws for another string. */
  async parametersOf (hash: string): Promise<argon2.ParsedHashOptions> {
    const { parseOptions } = await native.done()
    return parseOptions(hash)
  },

  /** The refusal `busy` of a hash that would not be taken in now; null when there is room. */
  refusalFor (address: string): AuthError | null {
    return queue.refusalFor(address)
  }
}
