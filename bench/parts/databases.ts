import { join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import postgres from 'postgres'
import { SqlAuthStore } from '../../dist/engines/sql.js'
import { fillPostgres, fillSqlite } from './people.js'
import type { PostgresServer } from './postgres-server.js'
import { temporaryFolder } from './temporary-folder.js'

/** A temporary SQLite file with so many users: its name. */
export async function filledSqlite (users: number): Promise<string> {
  const file = join(temporaryFolder(), 'users.db')
  await makeTables(file)
  const connection = new SqliteDatabase(file)
  fillSqlite(connection, users)
  connection.close()
  return file
}

/** A temporary Postgres database with so many users: its URL. */
export async function filledPostgres (server: PostgresServer, users: number): Promise<string> {
  const url = await server.createDatabase()
  await makeTables(url)
  const client = postgres(url, { max: 1 })
  await fillPostgres(client, users)
  await client.end()
  return url
}

async function makeTables (target: string): Promise<void> {
  const store = new SqlAuthStore(target)
  await store.findUser({ email: 'nobody@example.com' })
  await store.close()
}
