import type { Sql } from 'postgres'
import { drizzle } from '../../drizzle/postgres.js'
import { ODD_NAME, assertEscapes } from '../drizzle.js'
import { type PostgresDrizzle, type PostgresEngine, isPostgresClient } from '../sql-target.js'
import { postgresAccounts } from './accounts.js'
import { postgresAttempts } from './attempts.js'
import { PostgresDatabase, type PostgresDatabaseOptions } from './database.js'
import { inspect } from './inspection.js'
import { postgresRevocations } from './revocations.js'
import { type OpenNotifications, notificationsAt, notificationsOf } from './notifications.js'
import { Pool } from './pool.js'
import { postgresSessions } from './sessions.js'
import type { Query } from './statements.js'
import { postgresTables } from './tables.js'

/** The type of a literal: the server infers it, and the client has no serializer for it. */
const UNKNOWN = 705

/** Opens the store on a pool of its own, or on an engine of the application, which closes it. */
export function openPostgres (
  target: Pool | PostgresEngine, options: Pick<PostgresDatabaseOptions, 'createTables' | 'ready' | 'lost' | 'notSwept'>
) {
  const isOwn = target instanceof Pool
  const { db, queries, migrate, notifications, close } = isOwn ? connectedTo(target) : connectedBy(target)
  const database = new PostgresDatabase(db, { ...options, queries, migrate, isOwn })
  const withSessions = database.with('sessions')
  const revocations = postgresRevocations(withSessions, notifications)
  return {
    accounts: postgresAccounts(database, withSessions, revocations),
    attempts: postgresAttempts(withSessions),
    revocations,
    ...postgresSessions(withSessions, revocations),
    tables: () => database.untouched(() => postgresTables(db)),
    migrate: () => withSessions.make(),
    async inspect () {
      const isUnverified = isOwn && target.hosts.settings.isUnverified
      const warnings = await database.untouched(() => inspect(db, { ...options, isUnverified }))
      if (isOwn) target.unref()
      return warnings
    },
    async close () {
      revocations.close()
      await close?.()
    }
  }
}

interface Connected extends Pick<PostgresDatabaseOptions, 'queries' | 'migrate'> {
  db: PostgresDrizzle
  /** Null where the engine does not pass them on. */
  notifications: OpenNotifications | null
  /** Absent on an application's engine, which stays open. */
  close?: () => Promise<void>
}

function connectedBy (target: PostgresEngine): Connected {
  if ('db' in target) {
    assertEscapes(target.db.select().from(ODD_NAME).toSQL().sql)
    const client = '$client' in target.db ? target.db.$client : null
    return { db: target.db, notifications: isPostgresClient(client) ? notificationsOf(client) : null }
  }
  const query = queryOn(statement => statement(target.client))
  return { db: drizzleOn(query), queries: () => query, notifications: notificationsOf(target.client) }
}

function connectedTo (pool: Pool): Connected {
  const { hosts } = pool
  const query = queryOn((statement, isRead) => pool.run(statement, { isRead }))
  return {
    db: drizzleOn(query),
    queries: how => how === 'alone' ? query : queryOn(statement => pool.batched(how, statement)),
    // One message is one transaction, so that a pooler keeps the limit for its other clients.
    migrate: migration =>
      pool.run(client => client.unsafe(`set local statement_timeout = 0; ${migration}`), { isLong: true }),
    notifications: notificationsAt(hosts),
    close: () => pool.close()
  }
}

/**
 * Drizzle's own driver for the package postgres would change the client's types for the whole
 * application; here values are the text that the server sends, whatever types the client has.
 */
function drizzleOn (query: Query): PostgresDrizzle {
  return drizzle(async (statement, params) => ({ rows: await query(statement, params) }))
}

function queryOn (run: <T>(statement: (client: Sql) => Promise<T>, isRead: boolean) => Promise<T>): Query {
  return async (statement, params) => {
    // One that writes begins with another word, also if only a part of it writes.
    const isRead = statement.startsWith('select ')
    const rows = await run(client => {
      const values = params.map(value => value === null ? null : client.typed(String(value), UNKNOWN))
      return client.unsafe(statement, values, { prepare: true }).raw()
    }, isRead)
    return rows.map(row => row.map(value => value === null ? null : String(value)))
  }
}
