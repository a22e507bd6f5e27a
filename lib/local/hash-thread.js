// @ts-check
/** What runs in the threads of {@link hashThreads}. JavaScript, for what loads TypeScript in the main thread does not everywhere do so in others. */
import { getPriority, setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import { hashSync, verifySync } from '@node-rs/argon2'

/** Of a thread among those of the machine: requests that need no password are answered first. */
const NICENESS = 10
const NICEST = 19

// Elsewhere it would be that of the whole process.
if (process.platform === 'linux') setPriority(Math.min(getPriority() + NICENESS, NICEST))

parentPort?.on('message', ({ password, cost, hash }) => {
  try {
    parentPort?.postMessage({ value: hash === undefined ? hashSync(password, cost) : verifySync(hash, password) })
  } catch (error) {
    parentPort?.postMessage({ error })
  }
})
