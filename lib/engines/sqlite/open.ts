import { existsSync } from 'node:fs'
import { readFile, realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import Sqlite, { type Database } from 'better-sqlite3'
import { drizzle } from '../../drizzle/sqlite.js'
import { ODD_NAME, assertEscapes } from '../sql-rows.js'
import type { SqliteDrizzle, SqliteTarget } from '../sql-target.js'
import {
  SqliteDatabase, type SqliteDatabaseOptions, pragmaSetter, sqliteFailures, sqliteTables, watchedFile,
  whileLocked, withoutWaiting
} from './database.js'
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
  return { ...databaseOn(db, { ...options, attempt: withoutWaiting(db.$client) }), close: () => {} }
}

function databaseOn (db: SqliteDrizzle, options: SqliteDatabaseOptions) {
  const database = new SqliteDatabase(db, options)
  const withSessions = database.with('sessions')
  return {
    accounts: sqliteAccounts(database),
    ...sqliteSessions(withSessions),
    attempts: null,
    revocations: null,
    tables: () => new SqliteDatabase(db, { ...options, createTables: false }).read(() => sqliteTables(db)),
    migrate: () => withSessions.read(() => {}),
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
