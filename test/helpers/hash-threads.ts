import { availableParallelism } from 'node:os'

/** The threads in which passwords are hashed. */
export const THREADS = Math.min(availableParallelism(), 8)

/** How many passwords are at the threads or wait before one more is turned away, if all of them come at the same moment. */
export const CAPACITY = THREADS * 2 + 256
