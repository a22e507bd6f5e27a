import { randomBytes } from 'node:crypto'
import type { Database } from 'better-sqlite3'

/**
 * A secret that is made up when it is first asked for, and the same ever after: a command line tool signs with it, the application
 * verifies. This is for a first look only; in production a secret is a setting.
 */
export function keptSecret (database: Database, name: string): string {
  database.exec('CREATE TABLE IF NOT EXISTS secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL)')
  // Whoever comes second gets what the first one wrote.
  database.prepare('INSERT OR IGNORE INTO secrets (name, value) VALUES (?, ?)').run(name, randomBytes(32).toString('hex'))
  return database.prepare<[string], string>('SELECT value FROM secrets WHERE name = ?').pluck().get(name) ?? ''
}
