import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import { sql } from '../../drizzle/sqlite.js'
import { TABLE_PARTS, type TablePart, missingPart } from '../table-parts.js'
import { MIGRATIONS } from './migrations.js'

const JOURNAL = sql.identifier('svc_auth_migrations')

/**
 * Brings a part of the tables up to date with the migrations of this package. Processes that start
 * together take turns: the transaction holds the write lock from its beginning. Tables that the
 * application's own migrations made are left as they are.
 *
 * @returns whether there was something to do
 */
export function createSqliteTables (db: BetterSQLite3Database, part: TablePart): boolean {
  const { table, migrations } = TABLE_PARTS[part]
  return db.transaction(tx => {
    if (tableExists(tx, 'svc_auth_users') && !tableExists(tx, 'svc_auth_migrations')) {
      if (tableExists(tx, table)) return false
      throw new Error(missingPart(table))
    }
    tx.run(sql`create table if not exists ${JOURNAL} (hash text primary key, created_at integer not null)`)
    const isMissing = ({ hash }: { hash: string }): boolean =>
      tx.get(sql`select 1 from ${JOURNAL} where hash = ${hash}`) === undefined
    const missing = MIGRATIONS.filter(({ name }) => migrations.includes(name)).filter(isMissing)
    for (const migration of missing) {
      for (const statement of migration.sql) tx.run(sql.raw(statement))
      tx.run(sql`insert into ${JOURNAL} values (${migration.hash}, ${migration.folderMillis})`)
    }
    return missing.length > 0
  }, { behavior: 'immediate' })
}

function tableExists (db: Pick<BetterSQLite3Database, 'get'>, name: string): boolean {
  return db.get(sql`select 1 from sqlite_master where type = 'table' and name = ${name}`) !== undefined
}
