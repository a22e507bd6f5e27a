import SqliteDatabase from 'better-sqlite3'
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
 * @param target what LOCAL_AUTH_DB names: an SQLite file or URL, or a `postgres:` URL. It is opened when it is first read.
 */
export function userList (target: string): UserList {
  return /^postgres(ql)?:/.test(target) ? inPostgres(target) : inSqlite(target.replace(/^(?:sqlite|file):(?:\/\/)?/, ''))
}

function inPostgres (url: string): UserList {
  const client = postgres(url, { max: 1 })
  const { userId, email, name, claims } = postgresUsers
  const query = postgresDatabase({ client }).select({ userId, email, name, claims }).from(postgresUsers).orderBy(email).limit(MOST)
  return { first: async () => query, close: async () => client.end() }
}

function inSqlite (file: string): UserList {
  let connection: SqliteDatabase.Database | undefined
  return {
    async first () {
      connection ??= new SqliteDatabase(file, { readonly: true })
      const { userId, email, name, claims } = sqliteUsers
      return sqliteDatabase({ client: connection }).select({ userId, email, name, claims }).from(sqliteUsers).orderBy(email).limit(MOST)
    },
    close: async () => connection?.close()
  }
}
