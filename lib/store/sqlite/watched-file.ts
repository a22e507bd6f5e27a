import { type Stats, rmSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Database } from 'better-sqlite3'
import type { SqliteDatabaseOptions } from './database.js'

/** How often calls look at the path; each commit that waits for the disk does too. */
const CHECK_MS = 1000

const REPLACED = 'The SQLite file was deleted or replaced while it was open; the next call opens it anew'

/** An open file, which may be deleted or replaced, as by a restored backup. */
export class WatchedFile {
  readonly #connection: Database
  readonly #lost: SqliteDatabaseOptions['lost']
  /** The database, its log and the index of the log. */
  readonly #files: ReadonlyArray<readonly [path: string, identity: string]>
  #checkedAt = performance.now()

  constructor (file: string, connection: Database, lost: SqliteDatabaseOptions['lost']) {
    this.#connection = connection
    this.#lost = lost
    const paths = file === ':memory:' ? [] : ['', '-wal', '-shm'].map(end => resolve(file) + end)
    this.#files = paths.map(path => [path, identityOf(path)])
  }

  assertKept (): void {
    if (this.#isReplaced()) throw new Error(REPLACED)
  }

  /**
   * Closes the connection if the file was replaced: whether the path is to be opened anew.
   *
   * @param age the milliseconds for which the last look counts
   */
  isOver (age = CHECK_MS): boolean {
    if (!this.#connection.open) return true
    if (performance.now() - this.#checkedAt < age || !this.#isReplaced()) return false
    // Otherwise SQLite would take the log of the former file for that of the new one.
    if (this.#connection.pragma('wal_checkpoint(TRUNCATE)', { simple: true }) !== 0) return false
    for (const [path, opened] of this.#files) if (identityOf(path) === opened) rmSync(path, { force: true })
    this.#connection.close()
    this.#lost?.(new Error(this.#files[0]?.[0]), REPLACED)
    return true
  }

  #isReplaced (): boolean {
    const [[path, opened] = []] = this.#files
    const isReplaced = path !== undefined && identityOf(path) !== opened
    this.#checkedAt = isReplaced ? -Infinity : performance.now()
    return isReplaced
  }
}

function identityOf (path: string): string {
  const { dev, ino }: Partial<Stats> = statSync(path, { throwIfNoEntry: false }) ?? {}
  return `${dev} ${ino}`
}
