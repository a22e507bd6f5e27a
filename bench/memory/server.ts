import type { SessionStore } from '@fastify/session'
import SqliteDatabase from 'better-sqlite3'
import Fastify, { type Session } from 'fastify'
import authPlugin, { LocalIdentityProvider, SqlAuthStore } from '../../dist/index.js'
import { ADA, SECRET } from '../login/ada.js'
import { type Make, serve } from '../parts/serve.js'

/** An application that keeps users and, unless told otherwise, sessions in SQLite files, with hashes that cost next to nothing. `GET /heap` tells what it has in memory. */
const makers: Record<string, Make> = {
  async application (users = '', sessions = '') {
    const app = Fastify()
    await app.register(authPlugin, {
      local: new LocalIdentityProvider({ secret: SECRET, argon2: { memoryCost: 8, timeCost: 1 } }),
      store: new SqlAuthStore(users),
      session: { secret: SECRET, ...sessions !== 'memory' && { store: new SqliteSessionStore(sessions) } },
      rateLimit: false
    })
    app.get('/heap', async () => {
      globalThis.gc?.()
      return process.memoryUsage().heapUsed
    })
    await app.inject({ method: 'POST', url: '/auth/local/register', body: ADA })
    return app
  }
}

/** Sessions outside of this process's memory: the least that @fastify/session takes. */
class SqliteSessionStore implements SessionStore {
  readonly #connection: SqliteDatabase.Database

  constructor (file: string) {
    this.#connection = new SqliteDatabase(file)
    this.#connection.pragma('journal_mode = WAL')
    this.#connection.pragma('synchronous = OFF')
    this.#connection.exec('create table sessions (id text primary key, session text)')
  }

  set (id: string, session: Session, done: (error?: unknown) => void): void {
    this.#connection.prepare('insert or replace into sessions values (?, ?)').run(id, JSON.stringify(session))
    done()
  }

  get (id: string, done: (error: unknown, session?: Session | null) => void): void {
    const row = this.#connection.prepare<[string], { session: string }>('select session from sessions where id = ?').get(id)
    done(null, row === undefined ? null : JSON.parse(row.session))
  }

  destroy (id: string, done: (error?: unknown) => void): void {
    this.#connection.prepare('delete from sessions where id = ?').run(id)
    done()
  }
}

await serve(makers)
