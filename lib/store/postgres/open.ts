import { drizzle } from 'drizzle-orm/pg-proxy'
import type { Sql } from 'postgres'
import { ODD_NAME, assertEscapes } from '../drizzle.js'
import { notLoaded } from '../driver.js'
import type { PostgresDrizzle, PostgresTarget } from '../sql-target.js'
import { postgresAccounts } from './accounts.js'
import { PostgresDatabase } from './database.js'
import { postgresEmailProofs } from './email-proofs.js'
import { postgresManagedAccounts } from './managed-accounts.js'
import { Pool } from './pool.js'

/** The type of a literal: the server infers it, and the client has no serializer for it. */
const UNKNOWN = 705

/**
 * Opens the store on a pool of connections to a URL, or on an application's engine, which the
 * application closes.
 */
export async function openPostgres (target: PostgresTarget, options: { createTables: boolean }) {
  const { db, reads = db, close } = await connected(target)
  const database = new PostgresDatabase(db, reads, options)
  const accounts = {
    ...postgresAccounts(database), ...postgresManagedAccounts(database), ...postgresEmailProofs(database)
  }
  return { accounts, close }
}

interface Connected {
  db: PostgresDrizzle
  /** Where there is a faster way for short statements that wait for no lock. */
  reads?: PostgresDrizzle
  close: () => Promise<void>
}

async function connected (target: PostgresTarget): Promise<Connected> {
  const leaveOpen = async (): Promise<void> => {}
  if ('db' in target) {
    assertEscapes(target.db.select().from(ODD_NAME).toSQL().sql)
    return { db: target.db, close: leaveOpen }
  }
  if ('client' in target) return { db: drizzleOn(statement => statement(target.client)), close: leaveOpen }

  const { default: driver } = await import('postgres').catch(notLoaded('postgres'))
  const pool = new Pool(driver, target.url)
  return {
    db: drizzleOn(statement => pool.run(statement)),
    reads: drizzleOn(statement => pool.read(statement)),
    close: () => pool.close()
  }
}

/**
 * Makes a Drizzle database on clients of the package postgres. Drizzle's own driver for it would
 * change the client's types for the whole application; here values are the text that the server
 * sends, whatever types and transformations the client has.
 */
function drizzleOn (run: <T>(statement: (client: Sql) => Promise<T>) => Promise<T>): PostgresDrizzle {
  return drizzle(async (statement, params) => {
    const rows = await run(client => {
      const values = params.map(value => value === null ? null : client.typed(String(value), UNKNOWN))
      return client.unsafe(statement, values, { prepare: true }).raw()
    })
    return { rows: rows.map(row => row.map(value => value === null ? null : String(value))) }
  })
}
