import assert from 'node:assert/strict'
import { appendFile } from 'node:fs/promises'
import SqliteDatabase from 'better-sqlite3'
import postgres from 'postgres'

/** The tables that each application needs; the store makes the others when they are first used. */
const USERS_TABLES = ['svc_auth_credentials', 'svc_auth_provider_links', 'svc_auth_users']

/** The application's migrations make the library's tables, beside one of its own that refers to them. */
export async function checkSharedMigrations (project, database) {
  const kit = command => project.run('drizzle-kit', [command, '--config', 'drizzle.config.ts'], database.place)
  const runApp = () => project.run('node', ['app.js'], database.place)

  assert.match(await kit('generate'), /Your SQL migration file/)
  await assert.rejects(runApp(), /unavailable/)
  assert.deepEqual(await database.tables(), [])
  await kit('migrate')
  await runApp()
  assert.deepEqual(await database.tables(), ['notes', ...USERS_TABLES, ...database.otherTables].sort())

  assert.match(await kit('generate'), /No schema changes/)
  assert.match(await kit('check'), /Everything's fine/)
  console.log(`${database.dialect}: the application's migrations make the library's tables`)
}

/** The store makes its tables, in a database where the application has migrations for its own. */
export async function checkOwnMigrations (project, database) {
  const kit = command => project.run('drizzle-kit', [command, '--config', 'own-tables.config.ts'], database.place)

  assert.match(await kit('generate'), /Your SQL migration file/)
  await kit('migrate')
  const journal = await database.journal()
  await project.run('node', ['../own-tables-app.js'], database.place)
  assert.deepEqual(await database.journal(), journal)
  const ofStore = [...USERS_TABLES, ...database.usedTables, 'svc_auth_migrations']
  assert.deepEqual(await database.tables(), ['notes', ...ofStore].sort())

  await appendFile(project.path('migrations', database.dialect, 'own-tables.ts'), database.anotherTable)
  assert.match(await kit('generate'), /Your SQL migration file/)
  await kit('migrate')
  assert.match(await kit('push'), /No changes detected/)
  assert.equal((await database.journal()).length, journal.length + 1)
  assert.deepEqual(await database.tables(), ['notes', ...ofStore, 'tags'].sort())
  assert.equal((await database.query('select * from svc_auth_users')).length, 1)
  console.log(`${database.dialect}: the application's migrations and the store's tables leave each other alone`)
}

export function postgresDatabase (url) {
  return {
    ...databaseOf('postgres', url, "select tablename as name from pg_tables where schemaname = 'public'", 'drizzle.__drizzle_migrations', async statement => {
      const client = postgres(url, { max: 1 })
      try {
        return Array.from(await client.unsafe(statement))
      } finally {
        await client.end()
      }
    }),
    otherTables: [
      'svc_auth_attempts', 'svc_auth_clients', 'svc_auth_connections', 'svc_auth_domains', 'svc_auth_factors', 'svc_auth_grants',
      'svc_auth_keys', 'svc_auth_pending', 'svc_auth_revocations', 'svc_auth_sessions'
    ],
    usedTables: ['svc_auth_attempts', 'svc_auth_factors', 'svc_auth_pending', 'svc_auth_revocations', 'svc_auth_sessions'],
    anotherTable: "export const tags = pgTable('tags', { name: text('name').primaryKey() })\n"
  }
}

const SQLITE_TABLES =
  "select name from sqlite_master where type = 'table' and name not like '\\_\\_drizzle%' escape '\\'"

export function sqliteDatabase (file) {
  return {
    ...databaseOf('sqlite', file, SQLITE_TABLES, '__drizzle_migrations', async statement => {
      const connection = new SqliteDatabase(file)
      try {
        return connection.prepare(statement).all()
      } finally {
        connection.close()
      }
    }),
    otherTables: [
      'svc_auth_clients', 'svc_auth_connections', 'svc_auth_domains', 'svc_auth_factors', 'svc_auth_grants', 'svc_auth_keys', 'svc_auth_pending',
      'svc_auth_sessions'
    ],
    usedTables: ['svc_auth_factors', 'svc_auth_pending', 'svc_auth_sessions'],
    anotherTable: "export const tags = sqliteTable('tags', { name: text('name').primaryKey() })\n"
  }
}

/** A database of the application, and the folder that the application runs in. */
function databaseOf (dialect, url, allTables, journal, query) {
  return {
    dialect,
    place: { folder: `migrations/${dialect}`, env: { DATABASE_URL: url } },
    query,
    tables: async () => (await query(allTables)).map(({ name }) => name).sort(),
    journal: () => query(`select hash, created_at from ${journal} order by created_at`)
  }
}
