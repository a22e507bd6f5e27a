import SqliteDatabase, { type Database } from 'better-sqlite3'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import { ODD_NAME, assertEscapes } from '../drizzle.js'
import type { AuthStore } from '../store.js'
import type { SqliteTarget } from '../sql-target.js'
import { incompatibility } from './compatibility.js'
import { storeFailure } from './failures.js'
import { whileLocked, withoutWaiting } from './lock.js'
import { SqliteStatements } from './statements.js'

/** A store on an SQLite file, or on an application's connection, which stays the application's to close. */
export async function openSqlite (target: SqliteTarget, { createTables }: { createTables: boolean }): Promise<AuthStore> {
  if ('file' in target) {
    const connection = await openFile(target.file)
    return new SqliteStatements(drizzle({ client: connection }), { createTables, close: () => { connection.close() } })
  }
  const db = 'db' in target ? target.db : drizzle({ client: target.connection })
  assertEscapes(db.select().from(ODD_NAME).toSQL().sql)
  return new SqliteStatements(db, { createTables, attempt: work => withoutWaiting(db.$client, work) })
}

/** Opens a database file, or makes it; `:memory:` is a database of its own. What is committed survives a crash of the machine. */
async function openFile (file: string): Promise<Database> {
  const problem = incompatibility(SqliteDatabase.prototype)
  if (problem !== null) throw new Error(problem)
  let connection: Database | undefined
  try {
    // Waiting for a lock inside SQLite would block the whole process.
    const opened = connection = new SqliteDatabase(file, { timeout: 0 })
    await whileLocked(() => opened.pragma('journal_mode = WAL'))
    opened.pragma('synchronous = FULL')
    opened.pragma('foreign_keys = ON')
    return opened
  } catch (error) {
    connection?.close()
    throw storeFailure(error)
  }
}
