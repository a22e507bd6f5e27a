import { drizzle } from 'drizzle-orm/pg-proxy'
import type { Sql } from 'postgres'
import { ODD_NAME, assertEscapes } from '../drizzle.js'
import { notLoaded } from '../driver.js'
import type { PostgresTarget } from '../sql-target.js'
import type { AuthStore } from '../store.js'
import { Pool } from './pool.js'
import type { PostgresDatabase } from './prepare.js'
import { PostgresStatements } from './statements.js'

/** The type of a literal: the server finds out what it is, and no serializer of the client is for it. */
const UNKNOWN = 705

/** A store on a pool of connections to a URL, or on an application's engine, which stays the application's to close and to look after. */
export async function openPostgres (target: PostgresTarget, options: { createTables: boolean }): Promise<AuthStore> {
  if ('db' in target) {
    assertEscapes(target.db.select().from(ODD_NAME).toSQL().sql)
    return new PostgresStatements(target.db, options)
  }
  if ('client' in target) return new PostgresStatements(databaseOn(statement => statement(target.client)), options)

  const { default: driver } = await import('postgres').catch(notLoaded('postgres'))
  const pool = new Pool(driver, target.url)
  return new PostgresStatements(databaseOn(statement => pool.run(statement)), { ...options, close: () => pool.close() })
}

/**
 * A Drizzle database on clients of the package postgres. Drizzle's own driver for it would change the client's types for everyone who uses
 * it; here values are taken as the text that the server sends, whatever types and transformations the client has.
 */
function databaseOn (run: <T>(statement: (client: Sql) => Promise<T>) => Promise<T>): PostgresDatabase {
  return drizzle(async (statement, params) => {
    const rows = await run(client => {
      const values = params.map(value => value === null ? null : client.typed(String(value), UNKNOWN))
      return client.unsafe(statement, values, { prepare: true }).raw()
    })
    return { rows: rows.map(row => row.map(value => value === null ? null : String(value))) }
  })
}
