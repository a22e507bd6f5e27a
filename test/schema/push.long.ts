/** `drizzle-kit push`, with the configuration of the guide, in a database where the store made its tables. */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { SqlAuthStore } from '../../lib/index.js'
import { Markdown } from '../helpers/markdown.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { type TestDatabase, postgresDatabase, sqliteDatabase } from '../store/database.js'

const PROJECT = join(import.meta.dirname, '../..')
const [schema = '', config = ''] = (await Markdown.read('docs/migrations.md')).blocks('ts')

/** What is written otherwise with SQLite. */
const ON_SQLITE = [
  ['pg-core', 'sqlite-core'], ['pgTable', 'sqliteTable'], ['schema/postgres', 'schema/sqlite'], [', uuid }', ' }'], ['uuid(', 'text('],
  ['.generatedAlwaysAsIdentity()', ''], ['postgresql', 'sqlite']
] as const

/** Pushes the schema of the package and a table beside it; returns the statements. */
async function push (folder: string, dialect: 'postgresql' | 'sqlite', url: string): Promise<string> {
  const inDialect = (text: string): string => dialect === 'postgresql' ? text : ON_SQLITE.reduce((text, [from, to]) => text.replaceAll(from, to), text)
  writeFileSync(join(folder, 'schema.ts'), inDialect(schema).replaceAll('fastify-svc-auth', join(PROJECT, 'lib')).replaceAll(/lib\/schema\/\w+/g, '$&.ts'))
  writeFileSync(join(folder, 'drizzle.config.ts'), inDialect(config))
  const options = { cwd: folder, env: { ...process.env, DATABASE_URL: url } }
  const { stdout } = await promisify(execFile)(join(PROJECT, 'node_modules/.bin/drizzle-kit'), ['push', '--force', '--verbose'], options)
  return stdout
}

/** Makes the tables of the store, and resolves to what tells which tables there are. */
async function ofStore ({ target, query }: TestDatabase, tables: string): Promise<() => Promise<unknown[]>> {
  const store = new SqlAuthStore(target)
  await store.migrate()
  await store.close()
  return async () => (await query(tables)).map(({ name }) => name).sort()
}

t.test('drizzle-kit push on Postgres makes no index again, and leaves what the store has made', async t => {
  const folder = t.testdir()
  const database = postgresDatabase(await emptyDatabase(t))
  const tables = await ofStore(database, "select tablename as name from pg_tables where schemaname = 'public'")
  const made = await tables()

  t.notMatch(await push(folder, 'postgresql', database.target), /INDEX|DROP TABLE|RENAME/)
  t.notMatch(await push(folder, 'postgresql', database.target), /INDEX|DROP TABLE|RENAME/)
  t.strictSame(await tables(), ['notes', ...made])
})

/** The indexes of SQLite with an expression or a condition, which drizzle-kit does not read back. */
const MADE_AGAIN = 'svc_auth_users_|svc_auth_sessions_(?:shown|provider_session|provider_user)`|svc_auth_domains_proven`'

t.test('drizzle-kit push on SQLite makes no index again but those that the guide names, and leaves what the store has made', async t => {
  const folder = t.testdir()
  const database = sqliteDatabase(t)
  const tables = await ofStore(database, "select name from sqlite_master where type = 'table'")
  const made = await tables()

  await push(folder, 'sqlite', database.target)
  t.notMatch(await push(folder, 'sqlite', database.target), new RegExp(`TABLE|INDEX \`(?!${MADE_AGAIN})`))
  t.strictSame(await tables(), ['notes', ...made])
})
