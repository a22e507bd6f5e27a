import { fileURLToPath } from 'node:url'
import SqliteDatabase from 'better-sqlite3'
import { sql } from 'drizzle-orm'
import { drizzle as sqliteDatabase } from 'drizzle-orm/better-sqlite3'
import { drizzle as postgresDatabase } from 'drizzle-orm/postgres-js'
import type { AuthorizationClaims } from 'fastify-svc-auth'
import { users as postgresUsers } from 'fastify-svc-auth/schema/postgres'
import { users as sqliteUsers } from 'fastify-svc-auth/schema/sqlite'
import postgres from 'postgres'

const MOST = 100

export interface ListedUser {
  userId: string
  email: string | null
  name: string | null
  /** What was granted. */
  claims: AuthorizationClaims
}

export interface UserList {
  /** The first hundred, by e-mail. */
  first (): Promise<ListedUser[]>
  close (): Promise<unknown>
}

/**
 * Reads the users out of the tables of the store, which an application may query as its own: the library exports their schema.
 *
 * @param target what LOCAL_AUTH_DB names: an SQLite file or URL, or a `postgres:` URL. It is opened when it is first read, by when the store has accepted it.
 */
export function userList (target: string): UserList {
  if (/^postgres(ql)?:/i.test(target)) return inPostgres(target)
  const file = fileOf(target)
  // What is in memory only the store can see.
  return file === ':memory:' ? { first: async () => [], close: async () => {} } : inSqlite(file)
}

function inPostgres (url: string): UserList {
  let client: postgres.Sql | undefined
  return {
    async first () {
      client ??= postgres(url, { max: 1 })
      const { userId, email, name, claims } = postgresUsers
      return postgresDatabase({ client }).select({ userId, email, name, claims }).from(postgresUsers).orderBy(sql`${email} nulls last`).limit(MOST)
    },
    close: async () => client?.end()
  }
}

function inSqlite (file: string): UserList {
  let connection: SqliteDatabase.Database | undefined
  return {
    async first () {
      connection ??= new SqliteDatabase(file, { readonly: true })
      const { userId, email, name, claims } = sqliteUsers
      return sqliteDatabase({ client: connection }).select({ userId, email, name, claims }).from(sqliteUsers).orderBy(sql`${email} nulls last`).limit(MOST)
    },
    close: async () => connection?.close()
  }
}

function fileOf (target: string): string {
  return /^file:\/\//i.test(target) ? fileURLToPath(target) : target.replace(/^(?:sqlite|file):(?:\/\/)?/i, '')
}
