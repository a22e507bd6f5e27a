import { drizzle } from 'drizzle-orm/pg-proxy'
import type { Sql } from 'postgres'
import { installed } from '../driver.js'
import type { PostgresTarget } from '../sql-target.js'
import type { AuthStore } from '../store.js'
import { type PostgresDatabase, type PostgresEngine, PostgresStatements } from './statements.js'

/** How the store connects to a URL; parameters of the URL go first. */
const POOL = {
  max: 10,
  connect_timeout: 5,
  // A lost server is asked again soon: whoever signs in is waiting.
  backoff: () => 0.1,
  onnotice: () => {},
  connection: { application_name: 'fastify-svc-auth', statement_timeout: 5000 }
}

/** A store on a pool of connections to a URL, or on an application's engine, which stays the application's to close and to look after. */
export async function openPostgres (target: PostgresTarget, options: { createTables: boolean }): Promise<AuthStore> {
  const engine = 'url' in target ? await pool(target.url) : existingEngine('db' in target ? target.db : databaseOn(target.client))
  return new PostgresStatements(engine, options)
}

async function pool (url: string): Promise<PostgresEngine> {
  const { default: postgres } = await installed('postgres', import('postgres'))
  const open = (): PostgresEngine => {
    const client = postgres(url, POOL)
    return {
      db: databaseOn(client),
      close: () => client.end({ timeout: 5 }),
      renew () {
        client.end({ timeout: 0 }).catch(nothing)
        return open()
      }
    }
  }
  return open()
}

function existingEngine (db: PostgresDatabase): PostgresEngine {
  const engine: PostgresEngine = { db, close: nothing, renew: () => engine }
  return engine
}

async function nothing (): Promise<void> {}

/**
 * A Drizzle database on a client of the package postgres. Drizzle's own driver for it would change the client's types for everyone who uses
 * it; here values are taken as the text that the server sends, whatever types and transformations the client has.
 */
function databaseOn (client: Sql): PostgresDatabase {
  return drizzle(async (statement, params) => {
    const rows = await client.unsafe(statement, params, { prepare: true }).raw()
    return { rows: rows.map(row => row.map(value => value === null ? null : String(value))) }
  })
}
