import { closeSync, openSync } from 'node:fs'
import SqliteDatabase, { type Database } from 'better-sqlite3'
import { OptionsError } from 'fastify-svc-auth'

/** Opens the database for what is not about users: an SQLite file, `./example.db` unless EXAMPLE_DB names another. */
export function openDatabase (): Database {
  const file = process.env.EXAMPLE_DB ?? './example.db'
  try {
    // A secret may be in it, so only the owner may read it.
    closeSync(openSync(file, 'a', 0o600))
    return new SqliteDatabase(file)
  } catch (error) {
    throw new OptionsError(`EXAMPLE_DB must name a file that can be written, and ${file} cannot`, { cause: error })
  }
}
