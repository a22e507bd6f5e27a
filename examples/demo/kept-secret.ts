import { randomBytes } from 'node:crypto'
import type { Database } from 'better-sqlite3'

/**
 * Returns a random secret that is made at the first call and kept: users stay signed in over a restart, and the
 * application verifies what a command line tool signs. It is for a demonstration; in production a secret is a setting.
 */
export function keptSecret (database: Database, name: string): string {
  database.exec('CREATE TABLE IF NOT EXISTS secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL)')
  // Of two processes at the same time both get the secret that was written first.
  database.prepare('INSERT OR IGNORE INTO secrets (name, value) VALUES (?, ?)').run(name, randomBytes(32).toString('hex'))
  const select = database.prepare<[string], string>('SELECT value FROM secrets WHERE name = ?').pluck()
  return select.get(name) ?? ''
}
