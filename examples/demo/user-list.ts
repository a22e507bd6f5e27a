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
  /** The authorization claims. */
  claims: AuthorizationClaims
}

export interface UserList {
  /** The first hundred, by e-mail. */
  first (): Promise<ListedUser[]>
  close (): Promise<unknown>
}

/**
 * Reads users from the tables of the store, which an application may query as its own: the library exports the schema.
 *
 * @param target the value of LOCAL_AUTH_DB: an SQLite file or URL, or a `postgres:` URL; opened by the first read
 */
export function userList (target: string): UserList {
  if (/^postgres(ql)?:/i.test(target)) return inPostgres(target)
  const file = fileOf(target)
  // Only the store can read a database in memory.
  return file === ':memory:' ? { first: async () => [], close: async () => {} } : inSqlite(file)
}

function inPostgres (url: string): UserList {
  let client: postgres.Sql | undefined
  return {
    async first () {
      client ??= postgres(url, { max: 1 })
      const { userId, email, name, claims } = postgresUsers
      const database = postgresDatabase({ client })
      const listed = database.select({ userId, email, name, claims }).from(postgresUsers)
      return listed.orderBy(sql`${email} nulls last`).limit(MOST)
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
      const database = sqliteDatabase({ client: connection })
      const listed = database.select({ userId, email, name, claims }).from(sqliteUsers)
      return listed.orderBy(sql`${email} nulls last`).limit(MOST)
    },
    close: async () => connection?.close()
  }
}

function fileOf (target: string): string {
  return /^file:\/\//i.test(target) ? fileURLToPath(target) : target.replace(/^(?:sqlite|file):(?:\/\/)?/i, '')
}
