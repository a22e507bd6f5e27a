import { setTimeout as wait } from 'node:timers/promises'
import type { Database } from 'better-sqlite3'
import { TIMEOUT_MS } from '../../base/with-timeout.js'
import { sqliteCode } from './failures.js'

const PAUSE_MS = 5

/** Tries work for five seconds, until no other process holds the lock that it needs. */
export async function whileLocked<T> (work: () => T, deadline = Date.now() + TIMEOUT_MS): Promise<T> {
  for (;;) {
    try {
      return work()
    } catch (error) {
      if (!isLocked(error) || Date.now() > deadline) throw error
    }
    await wait(PAUSE_MS)
  }
}

/** While another process holds the lock, one writer of this process tries, and the others wait. */
export class WriteLock {
  readonly #waiting: Array<() => void> = []
  #isTried = false

  /** Does work at once if the lock is free, else when it becomes free, within five seconds. */
  async run<T> (work: () => T): Promise<T> {
    const deadline = Date.now() + TIMEOUT_MS
    if (this.#isTried) await new Promise<void>(resolve => { this.#waiting.push(resolve) })
    else {
      try {
        return work()
      } catch (error) {
        if (!isLocked(error)) throw error
      }
      this.#isTried = true
    }
    try {
      return await whileLocked(work, deadline)
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#isTried = false
      else setImmediate(next)
    }
  }
}

/**
 * Runs work on a connection of the application without waiting for a lock inside SQLite, which
 * would block the process, and with integers as numbers. Then its settings are restored.
 */
export function withoutWaiting<T> (connection: Database, work: () => T): T {
  const timeout: unknown = connection.pragma('busy_timeout', { simple: true })
  const isBigInt = typeof timeout === 'bigint'
  if (isBigInt) connection.defaultSafeIntegers(false)
  connection.pragma('busy_timeout = 0')
  try {
    return work()
  } finally {
    connection.pragma(`busy_timeout = ${Number(timeout)}`)
    if (isBigInt) connection.defaultSafeIntegers(true)
  }
}

function isLocked (error: unknown): boolean {
  return sqliteCode(error).startsWith('SQLITE_BUSY')
}
