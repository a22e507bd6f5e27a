import { subscribe } from 'node:diagnostics_channel'
import type { Database } from 'better-sqlite3'
import type { AuditEvent } from 'fastify-svc-auth'

/** A row of the history: who did what, when, and to whom. */
export interface HistoryEntry {
  at: number
  event: string
  userId: string | null
  actor: string | null
  ip: string | null
  code: string | null
}

/** Keeps the audit events in a table, and returns what reads the last ones about a user, or by them. */
export function keepHistory (database: Database): (userId: string) => HistoryEntry[] {
  database.exec(`CREATE TABLE IF NOT EXISTS history (
    at INTEGER NOT NULL, event TEXT NOT NULL, user_id TEXT, actor TEXT, ip TEXT, code TEXT
  )`)
  database.exec('CREATE INDEX IF NOT EXISTS history_user ON history (user_id, at)')
  database.exec('CREATE INDEX IF NOT EXISTS history_actor ON history (actor, at)')
  const insert = database.prepare<HistoryEntry>(
    'INSERT INTO history VALUES (@at, @event, @userId, @actor, @ip, @code)')
  const select = database.prepare<{ userId: string }, HistoryEntry>(`
    SELECT at, event, user_id AS userId, actor, ip, code FROM history
    WHERE user_id = @userId OR actor = @userId ORDER BY at DESC LIMIT 50`)

  subscribe('fastify-svc-auth.audit', message => {
    const { event, userId = null, actor = null, ip = null, code = null } =
      message as AuditEvent & Partial<Pick<HistoryEntry, 'userId' | 'code'>>
    if (database.open) insert.run({ at: Date.now(), event, userId, actor, ip, code })
  })
  return userId => select.all({ userId })
}
