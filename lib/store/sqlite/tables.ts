import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import { sql } from '../../drizzle/sqlite.js'
import {
  type Migration, PARTS, type TablePart, type TableState, ifMissing, mainTable, missingPart, renamed, tableState,
  tablesOf
} from '../table-parts.js'
import { MIGRATIONS } from './migrations.js'

const JOURNAL = sql.identifier('svc_auth_migrations')

/**
 * Brings a part of the tables up to date. Processes that start together take turns: the transaction
 * holds the write lock from its beginning. Tables of the application's own migrations stay.
 *
 * @param isAgain whether tables are made again that are gone, though the journal names them
 * @returns whether there was something to do
 */
export function createSqliteTables (db: BetterSQLite3Database, part: TablePart, isAgain = false): boolean {
  // Tables that are there take no write lock: reads do not wait for it.
  if (missingMigrations(db, part, isAgain).length === 0) return false
  return db.transaction(tx => {
    const missing = missingMigrations(tx, part, isAgain)
    if (missing.length === 0) return false
    tx.run(sql`create table if not exists ${JOURNAL} (name text primary key)`)
    for (const migration of missing) {
      for (const statement of migration.sql) tx.run(sql.raw(ifMissing(statement)))
      tx.run(sql`insert or ignore into ${JOURNAL} values (${migration.name})`)
    }
    return true
  }, { behavior: 'immediate' })
}

function missingMigrations (db: Pick<BetterSQLite3Database, 'get'>, part: TablePart, isAgain: boolean) {
  const all = MIGRATIONS[part]
  if (tableExists(db, 'svc_auth_migrations')) {
    const dropped = isAgain ? tablesOf(all).filter(name => !tableExists(db, name)) : []
    const hasIndex = (name: string): boolean =>
      db.get(sql`select 1 from sqlite_master where type = 'index' and name glob ${`${name}_*`}`) !== undefined
    if (dropped.some(hasIndex)) throw new Error(renamed(dropped))
    if (dropped.length > 0) return all
    return all.filter(migration => !isApplied(db, migration))
  }
  if (!tableExists(db, 'svc_auth_users')) return all
  if (!tableExists(db, mainTable(part))) throw new Error(missingPart(mainTable(part)))
  return []
}

export function sqliteTables (db: Pick<BetterSQLite3Database, 'get' | 'all'>): TableState {
  const hasJournal = tableExists(db, 'svc_auth_migrations')
  const applied = hasJournal ? db.all<{ name: string }>(sql`select name from ${JOURNAL}`).map(({ name }) => name) : []
  return tableState(MIGRATIONS, !hasJournal && tableExists(db, 'svc_auth_users') ? null : applied)
}

/** Makes missing tables. Returns whether tables were gone that had been made before. */
export function makeMissingTables (db: BetterSQLite3Database, made: ReadonlySet<TablePart>): boolean {
  const isNoted = (part: TablePart): boolean =>
    tableExists(db, 'svc_auth_migrations') && MIGRATIONS[part].some(migration => isApplied(db, migration))
  return PARTS.filter(part => {
    const wasMade = made.has(part) || isNoted(part)
    return createSqliteTables(db, part, true) && wasMade
  }).length > 0
}

function isApplied (db: Pick<BetterSQLite3Database, 'get'>, { name }: Migration): boolean {
  return db.get(sql`select 1 from ${JOURNAL} where name = ${name}`) !== undefined
}

function tableExists (db: Pick<BetterSQLite3Database, 'get'>, name: string): boolean {
  return db.get(sql`select 1 from sqlite_master where type = 'table' and name = ${name}`) !== undefined
}
