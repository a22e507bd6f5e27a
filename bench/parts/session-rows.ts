import type { SessionStore } from '@fastify/session'
import type { Session } from 'fastify'
import postgres from 'postgres'
import { openSqlite } from './sqlite.js'

const TABLE = 'create table session_rows (id text primary key, data text not null)'

/** Sessions by hand in an SQLite file or a Postgres database, whose commits wait for the disk. */
export async function sessionRows (database: string): Promise<{ store: SessionStore, close: () => unknown }> {
  return database.startsWith('postgres:') ? inPostgres(database) : inSqlite(database)
}

function inSqlite (file: string): { store: SessionStore, close: () => unknown } {
  const db = openSqlite(file)
  db.exec(TABLE)
  const read = db.prepare<[string], { data: string }>('select data from session_rows where id = ?')
  const write = db.prepare('insert into session_rows values (?, ?) on conflict (id) do update set data = excluded.data')
  const end = db.prepare('delete from session_rows where id = ?')
  const store = storeOf({
    read: async id => read.get(id)?.data,
    write: async (id, data) => { write.run(id, data) },
    end: async id => { end.run(id) }
  })
  return { store, close: () => db.close() }
}

async function inPostgres (url: string): Promise<{ store: SessionStore, close: () => unknown }> {
  const sql = postgres(url)
  await sql.unsafe(TABLE)
  const store = storeOf({
    read: async id => (await sql`select data from session_rows where id = ${id}`)[0]?.data,
    write: async (id, data) => {
      await sql`insert into session_rows values (${id}, ${data}) on conflict (id) do update set data = excluded.data`
    },
    end: async id => { await sql`delete from session_rows where id = ${id}` }
  })
  return { store, close: () => sql.end() }
}

interface SessionRows {
  read (id: string): Promise<string | undefined>
  write (id: string, data: string): Promise<void>
  end (id: string): Promise<void>
}

function storeOf ({ read, write, end }: SessionRows): SessionStore {
  return {
    get (id, done) { read(id).then(data => { done(null, data === undefined ? null : JSON.parse(data) as Session) }, done) },
    set (id, session, done) { write(id, JSON.stringify(session)).then(() => { done() }, done) },
    destroy (id, done) { end(id).then(() => { done() }, done) }
  }
}
