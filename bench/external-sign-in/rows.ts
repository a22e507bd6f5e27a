import { randomUUID } from 'node:crypto'
import type { SessionStore } from '@fastify/session'
import type { IDToken } from 'oauth4webapi'
import postgres from 'postgres'
import { sessionRows } from '../parts/session-rows.js'
import { openSqlite } from '../parts/sqlite.js'
import type { PendingSignIn } from './script.js'

/**
 * The rows of a sign-in by hand, five statements in all: a pending sign-in is put and taken, and as
 * the plugin's may be lost with the machine; a user, their link and their session may not.
 */
export interface Rows {
  put (id: string, signIn: PendingSignIn): Promise<void>
  take (id: string): Promise<PendingSignIn | undefined>
  keep (claims: IDToken): Promise<string>
  find (userId: string): Promise<unknown>
  readonly sessions: SessionStore
  close (): Promise<void>
}

const TABLES = `
  create table pending (id text primary key, data text not null);
  create table users (id text primary key, email text unique, name text, claims text not null);
  create table links (issuer text, subject text, user_id text not null, claims text not null, primary key (issuer, subject))`

/** Of an SQLite file or a Postgres database, which is empty. */
export async function rowsIn (database: string): Promise<Rows> {
  return database.startsWith('postgres:') ? rowsInPostgres(database) : rowsInSqlite(database)
}

async function rowsInSqlite (file: string): Promise<Rows> {
  const [db, hasty] = [openSqlite(file), openSqlite(file, 'NORMAL')]
  db.exec(TABLES)
  const sessions = await sessionRows(file)
  const put = hasty.prepare('insert into pending values (?, ?)')
  const take = hasty.prepare<[string], { data: string }>('delete from pending where id = ? returning data')
  const user = db.prepare('insert into users values (?, ?, ?, ?)')
  const link = db.prepare('insert into links values (?, ?, ?, ?)')
  const both = db.transaction((id: string, { iss, sub, email, name, ...claims }: IDToken) => {
    user.run(id, email, name, '{}')
    link.run(iss, sub, id, JSON.stringify({ iss, sub, email, name, ...claims }))
  })
  const find = db.prepare<[string], { claims: string }>('select claims from links where user_id = ?')
  return {
    async put (id, signIn) { put.run(id, JSON.stringify(signIn)) },
    async take (id) { return parsed(take.get(id)?.data) },
    async keep (claims) {
      const id = randomUUID()
      both(id, claims)
      return id
    },
    find: async userId => parsed(find.get(userId)?.claims),
    sessions: sessions.store,
    async close () { for (const connection of [db, hasty, sessions]) connection.close() }
  }
}

async function rowsInPostgres (url: string): Promise<Rows> {
  const [sql, hasty] = [postgres(url), postgres(url, { connection: { synchronous_commit: 'off' } })]
  await sql.unsafe(TABLES)
  const sessions = await sessionRows(url)
  return {
    async put (id, signIn) { await hasty`insert into pending values (${id}, ${JSON.stringify(signIn)})` },
    async take (id) {
      const [row] = await hasty`delete from pending where id = ${id} returning data`
      return parsed(row?.data)
    },
    async keep ({ iss, sub, email = null, name = null, ...claims }) {
      const id = randomUUID()
      const all = JSON.stringify({ iss, sub, email, name, ...claims })
      await sql`with made as (insert into users values (${id}, ${String(email)}, ${String(name)}, '{}'))
        insert into links values (${iss}, ${sub}, ${id}, ${all})`
      return id
    },
    async find (userId) {
      const [row] = await sql`select claims from links where user_id = ${userId}`
      return parsed(row?.claims)
    },
    sessions: sessions.store,
    async close () {
      for (const client of [sql, hasty]) await client.end()
      await sessions.close()
    }
  }
}

function parsed<T> (text: string | undefined): T | undefined {
  return text === undefined ? undefined : JSON.parse(text)
}
