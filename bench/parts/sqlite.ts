import SqliteDatabase, { type Database } from 'better-sqlite3'

/** Opens a file with the settings that SqlAuthStore gives to it; `NORMAL` does not wait for the disk. */
export function openSqlite (file: string, synchronous: 'FULL' | 'NORMAL' = 'FULL'): Database {
  const connection = new SqliteDatabase(file)
  connection.pragma('journal_mode = WAL')
  connection.pragma(`synchronous = ${synchronous}`)
  return connection
}
