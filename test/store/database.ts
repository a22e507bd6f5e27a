import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import type { Test } from 'tap'
import { query } from '../helpers/postgres.js'

/** A database to open stores on, and to look into without them. */
export interface TestDatabase {
  /** What a SqlAuthStore is opened with. */
  readonly target: string
  query (statement: string): Promise<Array<Record<string, unknown>>>
}

/** A database file of the test's own. */
export function sqliteDatabase (t: Test): TestDatabase {
  const target = join(t.testdir(), `${randomUUID()}.db`)
  return {
    target,
    async query (statement) {
      const connection = new SqliteDatabase(target, { fileMustExist: true })
      try {
        const prepared = connection.prepare<[], Record<string, unknown>>(statement)
        if (prepared.reader) return prepared.all()
        prepared.run()
        return []
      } finally {
        connection.close()
      }
    }
  }
}

/** A database on a Postgres server. */
export function postgresDatabase (target: string): TestDatabase {
  return { target, query: async statement => query(target, statement) }
}

/** Finds what no single write leaves behind: parts of a user without the others. On every database, and in one look. */
export const HALF_MADE = `
  select 'a user without a link' as what, user_id from svc_auth_users
    where user_id not in (select user_id from svc_auth_provider_links)
  union all
  select 'a link without a user', user_id from svc_auth_provider_links
    where user_id not in (select user_id from svc_auth_users)
  union all
  select 'a credential without a user', user_id from svc_auth_credentials
    where user_id not in (select user_id from svc_auth_users)
  union all
  select 'a credential without a local link', user_id from svc_auth_credentials
    where user_id not in (select user_id from svc_auth_provider_links where provider = 'local')
  union all
  select 'a local link without a credential', user_id from svc_auth_provider_links
    where provider = 'local' and user_id not in (select user_id from svc_auth_credentials)`
