/** Connects to a database, with the settings that SqlAuthStore gives to an SQLite file. */
export async function connect (database) {
  if (database.startsWith('postgres:')) {
    const { default: pg } = await import('pg')
    return new pg.Pool({ connectionString: database })
  }
  const { default: SqliteDatabase } = await import('better-sqlite3')
  const connection = new SqliteDatabase(database)
  connection.pragma('journal_mode = WAL')
  connection.pragma('synchronous = FULL')
  return connection
}
