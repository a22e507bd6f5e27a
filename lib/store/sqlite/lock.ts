import { setTimeout as wait } from 'node:timers/promises'
import type { Database } from 'better-sqlite3'
import { lazilyBy } from '../../base/once.js'
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
 * Returns what runs work on a connection of the application without waiting for a lock inside
 * SQLite, which would block the process, and with integers as numbers. Then its settings are
 * restored.
 */
export function withoutWaiting (connection: Database): <T>(work: () => T) => T {
  const setBusyTimeout = pragmaSetter(connection, 'busy_timeout')
  return work => {
    const timeout: unknown = connection.pragma('busy_timeout', { simple: true })
    const isBigInt = typeof timeout === 'bigint'
    if (isBigInt) connection.defaultSafeIntegers(false)
    setBusyTimeout(0)
    try {
      return work()
    } finally {
      setBusyTimeout(Number(timeout))
      if (isBigInt) connection.defaultSafeIntegers(true)
    }
  }
}

/** Sets a pragma by statements that are kept: preparing takes ten times as long as running. */
export function pragmaSetter (connection: Database, pragma: string): (value: number | string) => void {
  const statementFor = lazilyBy((value: number | string) => connection.prepare(`pragma ${pragma} = ${value}`))
  return value => {
    const statement = statementFor(value)
    if (statement.reader) statement.get()
    else statement.run()
  }
}

function isLocked (error: unknown): boolean {
  return sqliteCode(error).startsWith('SQLITE_BUSY')
}
