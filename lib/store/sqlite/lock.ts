import { setTimeout as wait } from 'node:timers/promises'
import { sqliteCode } from './failures.js'

/** How long SQLite itself waits for a lock: it blocks the whole process meanwhile. */
export const LOCK_WAIT_MS = 50

/** How long work is tried again, in all, while another process holds the lock. */
const PATIENCE_MS = 5000
const PAUSE_MS = 20

/** Tries work on an SQLite database until no other process holds the lock that it needs, without blocking this one, for five seconds. */
export async function whileLocked<T> (work: () => T): Promise<T> {
  const deadline = Date.now() + PATIENCE_MS
  for (;;) {
    try {
      return work()
    } catch (error) {
      if (!isLocked(error) || Date.now() > deadline) throw error
    }
    await wait(PAUSE_MS)
  }
}

function isLocked (error: unknown): boolean {
  return sqliteCode(error).startsWith('SQLITE_BUSY')
}
