import { availableParallelism } from 'node:os'
import type { Piscina } from 'piscina'
import { AuthError } from '../errors.js'
import { Once } from '../once.js'
import type { hash, verify } from './hash-thread.js'

/** Passwords waiting for a free core; one more is turned away with `busy`. At 20 ms a hash and two cores this is a wait of 2.5 s. */
const MAX_WAITING = 256

const RETRY_AFTER_SECONDS = 3

/** Threads that have nothing to do for so long end. */
const IDLE_MS = 60_000

/** Of a thread among those of the machine: requests that need no password are answered first. */
const NICENESS = 10

/**
 * Computes the hashes of this process, one per core at a time, in threads of their own: the pool of Node.js stays free for files, names and
 * keys, and the thread that answers requests comes first. The threads are started with the first password.
 *
 * Both throw AuthError `busy` when too many hashes are waiting.
 */
export const hashThreads = {
  async hash (task: Parameters<typeof hash>[0]): Promise<string> {
    return run('hash', task)
  },

  async verify (task: Parameters<typeof verify>[0]): Promise<boolean> {
    return run('verify', task)
  }
}

async function run<T> (name: string, task: object): Promise<T> {
  const { Piscina } = await piscina.done()
  pool ??= startPool(Piscina)
  if (pool.queueSize >= MAX_WAITING) throw new AuthError('busy', { retryAfter: RETRY_AFTER_SECONDS })
  return pool.run(task, { name })
}

const piscina = new Once(() => import('piscina'))

let pool: Piscina | undefined

function startPool (Threads: typeof Piscina): Piscina {
  const threads = new Threads({
    filename: new URL('./hash-thread.js', import.meta.url).href,
    minThreads: 0,
    maxThreads: availableParallelism(),
    // One is computed, and the next one is at hand when it is done.
    concurrentTasksPerWorker: 2,
    idleTimeout: IDLE_MS,
    // Elsewhere it would be that of the whole process.
    ...(process.platform === 'linux' && { niceIncrement: NICENESS })
  })
  // A thread that cannot start, as without memory, would end the process, and who waits for it would wait for ever. The next password tries anew.
  threads.once('error', () => {
    pool = undefined
    threads.on('error', () => {}).destroy().catch(() => {})
  })
  return threads
}
