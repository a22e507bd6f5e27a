import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { drizzle as drizzleSqlite } from 'drizzle-orm/better-sqlite3'
import { drizzle as drizzlePostgres } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import { PostgresDatabase } from '../../lib/engines/postgres/database.js'
import { POSTGRES_MIGRATIONS as POSTGRES } from '../../lib/engines/postgres/migrations.js'
import { SqliteDatabase } from '../../lib/engines/sqlite/database.js'
import { SQLITE_MIGRATIONS as SQLITE } from '../../lib/engines/sqlite/migrations.js'
import type { TablePart } from '../../lib/engines/sql-tables.js'
import { SqlAuthStore } from '../../lib/index.js'
import { localProvider, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { ADA, serverOptions, startServer } from '../helpers/oauth-app.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { isSoon } from '../helpers/soon.js'
import { startLogged, whenLogged } from '../helpers/start-log.js'

const GRANTS = ['svc_auth_clients', 'svc_auth_grants']
const USERS = ['svc_auth_credentials', 'svc_auth_migrations', 'svc_auth_provider_links', 'svc_auth_users']

/** A database with connections of its own. */
interface Connected {
  /** Uses a part of the tables. */
  use (part: TablePart): Promise<unknown>
  run (statement: string): Promise<unknown>
}

interface Place {
  migrations: typeof POSTGRES
  /** What a store is opened with. */
  target: string
  /** The tables that are made with the sessions. */
  sessions: string[]
  connect (options?: { createTables: boolean }): Connected
  /** The names of the tables, in order. */
  tables (): Promise<string[]>
}

const PLACES: Record<string, (t: Test) => Promise<Place>> = {
  async Postgres (t) {
    const url = await emptyDatabase(t)
    const clientOf = (): postgres.Sql => {
      const client = postgres(url, { max: 1, onnotice: () => {} })
      t.teardown(() => client.end())
      return client
    }
    return {
      migrations: POSTGRES,
      target: url,
      sessions: ['svc_auth_attempts', 'svc_auth_factors', 'svc_auth_pending', 'svc_auth_revocations', 'svc_auth_sessions'],
      connect (options = { createTables: true }) {
        const client = clientOf()
        const database = new PostgresDatabase(drizzlePostgres(client), options)
        return {
          use: part => (part === 'users' ? database : database.with(part)).run(async () => {}),
          run: async statement => client.unsafe(statement)
        }
      },
      tables: async () => (await clientOf()`select tablename from pg_tables where schemaname = 'public' order by 1`).map(row => row.tablename)
    }
  },

  async SQLite (t) {
    const file = join(t.testdir(), `${randomUUID()}.db`)
    const connected = () => {
      const connection = new Sqlite(file, { timeout: 0 })
      connection.pragma('journal_mode = WAL')
      t.teardown(() => { connection.close() })
      return connection
    }
    return {
      migrations: SQLITE,
      target: file,
      sessions: ['svc_auth_factors', 'svc_auth_pending', 'svc_auth_sessions'],
      connect (options = { createTables: true }) {
        const client = connected()
        const database = new SqliteDatabase(drizzleSqlite({ client }), { ...options, lost () {} })
        return {
          use: part => (part === 'users' ? database : database.with(part)).write(() => {}),
          run: async statement => client.exec(statement)
        }
      },
      tables: async () => connected().prepare<[], string>("select name from sqlite_master where type = 'table' order by 1").pluck().all()
    }
  }
}

for (const [name, empty] of Object.entries(PLACES)) {
  t.test(`the parts of the tables on ${name}`, async t => {
    t.test('a part is made when it is first used, after the users', async t => {
      const { connect, tables, sessions } = await empty(t)

      await connect().use('users')
      t.strictSame(await tables(), USERS)
      await connect().use('sessions')
      t.strictSame(await tables(), [...USERS, ...sessions].sort())

      const another = await empty(t)
      await another.connect().use('sessions')
      t.strictSame(await another.tables(), [...USERS, ...sessions].sort())
    })

    t.test('the grants of the authorization server are a part, which needs no sessions', async t => {
      const { connect, tables, sessions } = await empty(t)
      await connect().use('grants')
      t.strictSame(await tables(), [...GRANTS, ...USERS].sort())
      await connect().use('sessions')
      t.strictSame(await tables(), [...GRANTS, ...USERS, ...sessions].sort())
    })

    t.test('an application without the option oauthServer makes no tables for it, one with it when it starts', async t => {
      const { target, tables } = await empty(t)
      const open = () => new SqlAuthStore(target)
      const without = await startApp(t, { store: open(), local: localProvider() })
      await new Browser(without).post('/auth/local/register', ADA)
      t.strictSame((await tables()).filter(table => GRANTS.includes(table)), [])

      await startServer(t, {}, { store: open() })
      t.ok(await isSoon(async () => {
        const made = await tables()
        return GRANTS.every(table => made.includes(table))
      }))
    })

    t.test('with createTables: false the log of an application says at its start that the grants are missing', async t => {
      const { target, connect } = await empty(t)
      for (const part of ['users', 'sessions'] as const) await connect().use(part)
      const store = new SqlAuthStore(target, { createTables: false })
      const { lines } = await startLogged(t, serverOptions({}, { store }))
      const [line] = await whenLogged(lines, 1)
      t.match([line?.level, JSON.stringify(line)], [50, /run the migrations that make the tables/])
    })

    t.test('connections that use different parts at one moment make each of them once', async t => {
      const { connect, tables, sessions } = await empty(t)
      const parts: TablePart[] = ['sessions', 'users', 'sessions', 'sessions', 'users', 'sessions']

      await Promise.all(parts.map(part => connect().use(part)))

      t.strictSame(await tables(), [...USERS, ...sessions].sort())
    })

    t.test('a part is not made with createTables: false', async t => {
      const { connect, tables } = await empty(t)

      await connect({ createTables: false }).use('sessions')

      t.strictSame(await tables(), [])
    })

    t.test("a part that the application's own migrations left out is not made, and the error says what to do", async t => {
      const { connect, tables, migrations } = await empty(t)
      const run = async (part: TablePart): Promise<void> => {
        const [{ sql = [] } = {}] = migrations[part]
        for (const statement of sql) await connect().run(statement)
      }
      await run('users')
      const before = await tables()

      const message = 'the table svc_auth_sessions is missing; the other tables are not made by this package, ' +
        'so add a migration for it with drizzle-kit'
      await t.rejects(connect().use('sessions'), { code: 'unavailable', cause: { message } })
      t.strictSame(await tables(), before)
      await run('sessions')
      await t.resolves(connect().use('sessions'))
      t.notOk((await tables()).includes('svc_auth_migrations'))
    })
  })
}
