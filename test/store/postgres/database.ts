import { randomUUID } from 'node:crypto'
import postgres from 'postgres'
import type { Test } from 'tap'
import type { SqlEngine } from '../../../lib/engines/sql.js'
import { SqlAuthStore, type SqlAuthStoreOptions } from '../../../lib/engines/sql.js'
import { clientOf, emptyDatabase } from '../../helpers/postgres.js'

export type Target = string | SqlEngine

/** Runs SQL past the store; resolves to the rows of a single statement. */
export type Run = (statements: string) => Promise<Array<Record<string, unknown>>>

/** A database on the server, and a client of the test's own. */
export interface Database {
  url: string
  client: postgres.Sql
  run: Run
}

export const UNAVAILABLE = { name: 'AuthError', code: 'unavailable', statusCode: 503, message: 'Accounts cannot be reached at the moment; try again later.' }
export const PASSWORD = 'hunter2'

/** An empty database that ends with the test. */
export async function database (t: Test): Promise<Database> {
  const url = await emptyDatabase(t)
  const client = clientOf(t, url)
  return { url, client, run: async statements => (await client.unsafe(statements)).map(row => ({ ...row })) }
}

/** A store that is closed at the end of the test. */
export function open (t: Test, target: Target, options: SqlAuthStoreOptions = {}): SqlAuthStore {
  const store = new SqlAuthStore(target, options)
  t.teardown(() => store.close())
  return store
}

/** A client that does everything to values that the package lets it do. */
export function unusualClientOf (t: Test, url: string) {
  const client = postgres(url, {
    onnotice: () => {},
    prepare: false,
    transform: { ...postgres.camel, undefined: null },
    types: {
      json: { to: 3802, from: [114, 3802], serialize: (value: unknown) => JSON.stringify({ value }), parse: (text: string) => ({ text }) },
      text: { to: 25, from: [25], serialize: (value: unknown) => String(value).toUpperCase(), parse: (text: string) => [text] }
    }
  })
  t.teardown(() => client.end())
  return client
}

/** A role that may connect to the database and make nothing there. */
export async function roleOf (t: Test, url: string): Promise<{ name: string, url: string }> {
  const name = `svc_auth_test_${randomUUID().replaceAll('-', '')}`
  const admin = clientOf(t, url)
  await admin.unsafe(`create role ${name} login password '${PASSWORD}'; revoke create on schema public from public`)
  t.teardown(() => admin.unsafe(`drop owned by ${name}; drop role ${name}`))
  return { name, url: changed(url, { username: name, password: PASSWORD }) }
}

/** A URL with other parts. */
export function changed (url: string, parts: { username?: string, password?: string, port?: string, pathname?: string }): string {
  return Object.assign(new URL(url), parts).href
}

/** What {@link tables} finds where tables were made by the migrations of an application. */
export const THE_THREE_TABLES = [
  { table: 'svc_auth_credentials', columns: 'user_id uuid, pw_hash text' },
  { table: 'svc_auth_provider_links', columns: 'provider text, subject text, user_id uuid, claims jsonb' },
  { table: 'svc_auth_users', columns: 'user_id uuid, email text, name text, claims jsonb, extras jsonb' }
]
/** What it finds where a store made them. */
export const THE_TABLES = [
  ...THE_THREE_TABLES.slice(0, 1),
  { table: 'svc_auth_migrations', columns: 'name text' },
  ...THE_THREE_TABLES.slice(1)
]

/** Every table that is not the server's own, with its columns. */
export async function tables (run: Run, schema = '%'): Promise<Array<Record<string, unknown>>> {
  return run(`
    select table_name as table, string_agg(column_name || ' ' || data_type, ', ' order by ordinal_position) as columns
    from information_schema.columns
    where table_schema not in ('pg_catalog', 'information_schema') and table_schema like '${schema}'
    group by table_schema, table_name
    order by table_name collate "C"`)
}

/** The connections that stores have opened by a URL. */
export async function connections (run: Run): Promise<Array<Record<string, unknown>>> {
  return run("select wait_event_type from pg_stat_activity where application_name = 'fastify-svc-auth' and datname = current_database()")
}

/** How many of them wait for a lock. */
export async function waiting (run: Run): Promise<number> {
  return (await connections(run)).filter(({ wait_event_type: type }) => type === 'Lock').length
}

/** Takes a lock that stores run into, until it is released. */
export async function hold (client: postgres.Sql, lock: string): Promise<() => Promise<void>> {
  const held = await client.reserve()
  await held.unsafe(`begin; ${lock}`)
  return async () => {
    await held.unsafe('rollback')
    held.release()
  }
}
