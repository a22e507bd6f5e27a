import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { AuthError } from '../errors.js'
import type { Argon2Cost } from './password.js'

/** A hash takes 19 MiB, and in a container the cores are not all ours. */
const MAX_THREADS = Math.min(availableParallelism(), 8)

/** One is computed, and the next one is at hand when it is done. */
const JOBS_A_THREAD = 2

/** Passwords waiting for a thread; one more is turned away with `busy`. At 20 ms a hash and two cores this is a wait of 2.5 s. */
const MAX_WAITING = 256

const RETRY_AFTER_SECONDS = 3

/**
 * Computes the hashes of this process, one per core at a time, in threads of their own: the pool of Node.js stays free for files, names and
 * keys, and the thread that answers requests comes first. The threads are started when they are needed; who came first is first.
 *
 * Both throw AuthError `busy` when too many hashes are waiting, and `unavailable` when a thread cannot be started or ends.
 */
export const hashThreads = {
  async hash (task: { password: string, cost: Argon2Cost }): Promise<string> {
    return String(await run(task))
  },

  async verify (task: { password: string, hash: string }): Promise<boolean> {
    return await run(task) === true
  }
}

interface Job {
  task: object
  resolve (value: unknown): void
  reject (error: unknown): void
}

interface Thread {
  worker: Worker
  /** In their order; the first one is being computed. */
  jobs: Job[]
}

const threads: Thread[] = []
const waiting: Job[] = []

function run (task: object): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const job = { task, resolve, reject }
    const thread = threadWithRoom()
    if (thread !== undefined) give(thread, job)
    else if (waiting.length < MAX_WAITING) waiting.push(job)
    else reject(new AuthError('busy', { retryAfter: RETRY_AFTER_SECONDS }))
  })
}

/** The one with the least to do; a new one rather than a second job for one. */
function threadWithRoom (): Thread | undefined {
  const [least] = threads.toSorted((a, b) => a.jobs.length - b.jobs.length)
  if (least?.jobs.length === 0) return least
  if (threads.length < MAX_THREADS) {
    try {
      return start()
    } catch (cause) {
      // The machine has no thread left for us; those that there are go on.
      if (least === undefined) throw new AuthError('unavailable', { cause })
    }
  }
  return least !== undefined && least.jobs.length < JOBS_A_THREAD ? least : undefined
}

function give (thread: Thread, job: Job): void {
  thread.jobs.push(job)
  // A process that waits for a hash goes on; one that has nothing else to do ends.
  thread.worker.ref()
  thread.worker.postMessage(job.task)
}

function start (): Thread {
  const worker = new Worker(new URL('hash-thread.js', import.meta.url), { execArgv: [] })
  const thread: Thread = { worker, jobs: [] }
  threads.push(thread)
  worker.on('message', ({ value, error }) => {
    const job = thread.jobs.shift()
    if (error === undefined) job?.resolve(value)
    else job?.reject(error)
    goOn(thread)
  })
  worker.on('error', cause => { lose(thread, cause) })
  worker.on('exit', code => { lose(thread, new Error(`a thread for passwords ended with code ${code}`)) })
  return thread
}

function goOn (thread: Thread): void {
  const next = waiting.shift()
  if (next !== undefined) give(thread, next)
  else if (thread.jobs.length === 0) thread.worker.unref()
}

/** Nobody waits for what will not come; with the next password another thread is started. */
function lose (thread: Thread, cause: unknown): void {
  if (!threads.includes(thread)) return
  threads.splice(threads.indexOf(thread), 1)
  const lost = threads.length === 0 ? [...thread.jobs, ...waiting.splice(0)] : thread.jobs
  for (const { reject } of lost) reject(new AuthError('unavailable', { cause }))
}
