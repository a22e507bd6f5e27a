import { type Stats, rmSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Database } from 'better-sqlite3'
import type { SqliteDatabaseOptions } from './database.js'

/** How often calls look at the path; each commit that waits for the disk does too. */
const CHECK_MS = 1000

const REPLACED = 'The SQLite file was deleted or replaced while it was open; the next call opens it anew'

/** Watches an open file, which may be deleted or replaced, as by a restored backup. */
export function watchedFile (file: string, connection: Database, lost: SqliteDatabaseOptions['lost']) {
  // The database, its log and the index of the log.
  const paths = file === ':memory:' ? [] : ['', '-wal', '-shm'].map(end => resolve(file) + end)
  const files = paths.map(path => ({ path, opened: identityOf(path) }))
  let checkedAt = performance.now()

  const isReplaced = (): boolean => {
    const [database] = files
    const isOther = database !== undefined && identityOf(database.path) !== database.opened
    checkedAt = isOther ? -Infinity : performance.now()
    return isOther
  }

  return {
    assertKept () {
      if (isReplaced()) throw new Error(REPLACED)
    },

    /**
     * Closes the connection if the file was replaced: whether the path is to be opened anew.
     *
     * @param age the milliseconds for which the last look counts
     */
    isOver (age = CHECK_MS): boolean {
      if (!connection.open) return true
      if (performance.now() - checkedAt < age || !isReplaced()) return false
      // Otherwise SQLite would take the log of the former file for that of the new one.
      if (connection.pragma('wal_checkpoint(TRUNCATE)', { simple: true }) !== 0) return false
      for (const { path, opened } of files) if (identityOf(path) === opened) rmSync(path, { force: true })
      connection.close()
      lost(new Error(paths[0]), REPLACED)
      return true
    }
  }
}

function identityOf (path: string): string {
  const { dev, ino }: Partial<Stats> = statSync(path, { throwIfNoEntry: false }) ?? {}
  return `${dev} ${ino}`
}
