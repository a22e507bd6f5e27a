import { RUNNING, WAITING } from '../../lib/features/password/hashing.js'

/** How many passwords of one address run or wait before one more is refused as busy. */
export const CAPACITY = RUNNING + WAITING
