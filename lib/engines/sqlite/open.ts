import { type Stats, existsSync, rmSync, statSync } from 'node:fs'
import { readFile, realpath, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import Sqlite, { type Database } from 'better-sqlite3'
import { lazilyBy } from '../../base/concurrency.js'
import type { FeaturePart } from '../../session/feature-tables.js'
import { PARTS } from '../sql-tables.js'
import { drizzle } from '../../drizzle/sqlite.js'
import { ODD_NAME, assertEscapes } from '../sql-rows.js'
import type { SqliteDrizzle, SqliteTarget } from '../sql-target.js'
import { SqliteDatabase, type SqliteDatabaseOptions, sqliteFailures, whileLocked } from './database.js'
import { sqliteAccounts, sqliteSessions } from './rows.js'

/** Opens a file, or the store on a connection of the application, which closes it. */
export async function openSqlite (target: SqliteTarget, options: SqliteDatabaseOptions) {
  if ('file' in target) {
    const connection = await openFile(target.file, options.createTables)
    const watched = watchedFile(target.file, connection, options.lost)
    const own = { ...options, sync: syncOf(connection), assertKept: watched.assertKept }
    return {
      ...databaseOn(drizzle({ client: connection }), own),
      isOver: () => watched.isOver(),
      close: () => { if (!watched.isOver(0)) connection.close() }
    }
  }
  const db = 'db' in target ? target.db : drizzle({ client: target.connection })
  assertEscapes(db.select().from(ODD_NAME).toSQL().sql)
  const given = { ...options, ...withoutWaiting(db.$client), isDrizzle: 'db' in target }
  return { ...databaseOn(db, given), close: () => {} }
}

function databaseOn (db: SqliteDrizzle, options: SqliteDatabaseOptions) {
  const database = new SqliteDatabase(db, options)
  const withSessions = database.with('sessions')
  return {
    accounts: sqliteAccounts(database),
    ...sqliteSessions(withSessions),
    attempts: null,
    revocations: null,
    tables: () => database.tableState(),
    migrate: async () => {
      for (const part of PARTS) await database.with(part).read(() => {})
    },
    featureTables: lazilyBy((part: FeaturePart) => database.with(part)),
    inspect: () => mountWarnings(db.$client.name)
  }
}

/** Sets whether commits wait for the disk, if they do not already: SQLite takes a while for it. */
function syncOf (connection: Database): (isWanted: boolean) => void {
  const setSynchronous = pragmaSetter(connection, 'synchronous')
  let isSet = true
  return isWanted => {
    if (isWanted === isSet) return
    setSynchronous(isWanted ? 'FULL' : 'NORMAL')
    isSet = isWanted
  }
}

/** Opens a file, or creates it, whose commits survive a crash of the machine. */
async function openFile (file: string, isCreated: boolean): Promise<Database> {
  let connection: Database | undefined
  try {
    // Waiting for a lock inside SQLite would block the whole process.
    const opened = connection = new Sqlite(file, { timeout: 0, fileMustExist: !isCreated })
    await whileLocked(() => {
      opened.pragma('journal_mode = WAL')
      // The first read makes the files of the log, which are watched too.
      opened.pragma('schema_version')
    })
    opened.pragma('synchronous = FULL')
    opened.pragma('foreign_keys = ON')
    return opened
  } catch (error) {
    connection?.close()
    const isMissing = !isCreated && sqliteFailures.codeOf(error) === 'SQLITE_CANTOPEN' && !existsSync(file)
    throw sqliteFailures.toAuthError(isMissing ? new Error('the file does not exist', { cause: error }) : error)
  }
}

/**
 * Returns what runs work on a connection of the application without waiting for a lock inside
 * SQLite, which would block the process, and with integers as numbers. Then its settings are
 * restored, and meanwhile for what the application does itself.
 */
function withoutWaiting (connection: Database): Pick<Required<SqliteDatabaseOptions>, 'attempt' | 'asGiven'> {
  const setBusyTimeout = pragmaSetter(connection, 'busy_timeout')
  let isBigInt = false
  return {
    attempt (work) {
      const timeout: unknown = connection.pragma('busy_timeout', { simple: true })
      isBigInt = typeof timeout === 'bigint'
      if (isBigInt) connection.defaultSafeIntegers(false)
      setBusyTimeout(0)
      try {
        return work()
      } finally {
        setBusyTimeout(Number(timeout))
        if (isBigInt) connection.defaultSafeIntegers(true)
      }
    },
    asGiven (work) {
      connection.defaultSafeIntegers(isBigInt)
      try {
        return work()
      } finally {
        connection.defaultSafeIntegers(false)
      }
    }
  }
}

/** Sets a pragma by statements that are kept: preparing takes ten times as long as running. */
function pragmaSetter (connection: Database, pragma: string): (value: number | string) => void {
  const statementFor = lazilyBy((value: number | string) => connection.prepare(`pragma ${pragma} = ${value}`))
  return value => {
    const statement = statementFor(value)
    if (statement.reader) statement.get()
    else statement.run()
  }
}

/** How often calls look at the path; each commit that waits for the disk does too. */
const CHECK_MS = 1000

const REPLACED = 'The SQLite file was deleted or replaced while it was open; the next call opens it anew'

/** Watches an open file, which may be deleted or replaced, as by a restored backup. */
function watchedFile (file: string, connection: Database, lost: SqliteDatabaseOptions['lost']) {
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

/** Returns a warning for a file that is mounted alone, as into a container: its log is not kept. */
async function mountWarnings (file: string): Promise<string[]> {
  try {
    const path = await realpath(file)
    return await isMountPoint(path)
      ? [`${path} is mounted without its folder, so its log (-wal) is lost with the container, and committed users ` +
        'with it: mount the folder in place of the file']
      : []
  } catch {
    // There is no file, or the process may not look.
    return []
  }
}

async function isMountPoint (path: string): Promise<boolean> {
  if (process.platform !== 'linux') return (await stat(path)).dev !== (await stat(dirname(path))).dev
  // A bind mount has the device of its folder, and a file of an overlay another one.
  const escaped = path.replace(/[ \t\n\\]/g, character => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`)
  const mounts = await readFile('/proc/self/mountinfo', 'utf8')
  return mounts.split('\n').some(mount => mount.split(' ')[4] === escaped)
}
