/**
 * The shipped .sql files against the schema: drizzle-kit only compares the schema with the snapshots beside them, and would not see that
 * one was edited by hand.
 */
import { fileURLToPath } from 'node:url'
import Sqlite, { type Database } from 'better-sqlite3'
import { SQL, getTableName, is } from 'drizzle-orm'
import { drizzle as drizzleSqlite } from 'drizzle-orm/better-sqlite3'
import { migrate as migrateSqlite } from 'drizzle-orm/better-sqlite3/migrator'
import { readMigrationFiles } from 'drizzle-orm/migrator'
import { PgDialect, getTableConfig as postgresConfig } from 'drizzle-orm/pg-core'
import { drizzle as drizzlePostgres } from 'drizzle-orm/postgres-js'
import { migrate as migratePostgres } from 'drizzle-orm/postgres-js/migrator'
import { SQLiteSyncDialect, getTableConfig as sqliteConfig } from 'drizzle-orm/sqlite-core'
import postgres, { type Sql } from 'postgres'
import t, { type Test } from 'tap'
import * as postgresSchema from '../../lib/schema/postgres.js'
import * as sqliteSchema from '../../lib/schema/sqlite.js'
import { PostgresDatabase } from '../../lib/engines/postgres/database.js'
import { POSTGRES_MIGRATIONS } from '../../lib/engines/postgres/migrations.js'
import { SqliteDatabase } from '../../lib/engines/sqlite/database.js'
import { SQLITE_MIGRATIONS } from '../../lib/engines/sqlite/migrations.js'
import { PARTS, tablesOf } from '../../lib/engines/sql-tables.js'
import { Markdown } from '../helpers/markdown.js'
import { emptyDatabase } from '../helpers/postgres.js'

/** What columns, keys and indexes a table has, as sentences of SQL, by the table's name. */
type Tables = Record<string, string[]>

for (const [dialect, constants] of [['postgres', POSTGRES_MIGRATIONS], ['sqlite', SQLITE_MIGRATIONS]] as const) {
  t.test(`the constants that the store runs are the statements of the migrations in drizzle/${dialect}`, async t => {
    const sql = readMigrationFiles({ migrationsFolder: migrations(dialect) }).flatMap(({ sql }) => sql)
    t.strictSame(Object.values(constants).flat().flatMap(({ sql }) => sql).sort(), sql.map(statement => statement.trim()).sort(), 'if not: npm run migrations')
  })

  t.test(`a part of the tables for ${dialect} refers to itself and to those before it alone`, async t => {
    t.strictSame(Object.keys(constants), [...PARTS])
    PARTS.forEach((part, index) => {
      const known = tablesOf(PARTS.slice(0, index + 1).flatMap(part => constants[part]))
      const statements = constants[part].flatMap(({ sql }) => sql)
      const named = statements.flatMap(statement => Array.from(statement.matchAll(/(?:TABLE|ON|REFERENCES) (?:"public".)?["`](\w+)/g), ([, table]) => table))
      t.strictSame(named.filter(table => !known.includes(table ?? '')), [], part)
    })
  })
}

t.test('the first query makes the tables of users, credentials and links', async t => {
  for (const { users } of [POSTGRES_MIGRATIONS, SQLITE_MIGRATIONS]) {
    t.strictSame(tablesOf(users).sort(), ['svc_auth_credentials', 'svc_auth_provider_links', 'svc_auth_users'])
  }
})

t.test('the migrations for Postgres make the tables of the schema', async t => {
  const client = await onPostgres(t)
  await migratePostgres(drizzlePostgres(client), { migrationsFolder: migrations('postgres') })
  t.strictSame(await postgresTables(client), declaredForPostgres())
})
t.test('the store on Postgres makes the tables of the schema, and one journal', async t => {
  const client = await onPostgres(t)
  const database = new PostgresDatabase(drizzlePostgres(client), { createTables: true, lost () {} })
  for (const part of PARTS) await database.with(part).run(async () => {})
  const { svc_auth_migrations: journal, ...tables } = await postgresTables(client)
  t.strictSame(tables, declaredForPostgres())
  t.ok(journal)
})
t.test('on Postgres counts are not logged, and pages have room for the next version of a row that changes often', async t => {
  const client = await onPostgres(t)
  const storage = async () => {
    const tables = await client`select relname, relpersistence, reloptions from pg_class where relname in ('svc_auth_attempts', 'svc_auth_sessions') order by 1`
    return [...tables].map(row => ({ ...row }))
  }
  const wanted = [
    { relname: 'svc_auth_attempts', relpersistence: 'u', reloptions: ['fillfactor=70'] },
    { relname: 'svc_auth_sessions', relpersistence: 'p', reloptions: ['fillfactor=85'] }
  ]
  await migratePostgres(drizzlePostgres(client), { migrationsFolder: migrations('postgres') })
  t.strictSame(await storage(), wanted)

  // As drizzle-kit makes them for an application.
  await client`alter table svc_auth_attempts set logged`
  for (const { relname } of wanted) await client`alter table ${client(relname)} reset (fillfactor)`
  t.notSame(await storage(), wanted)
  const [documented = ''] = (await Markdown.read('docs/migrations.md')).blocks('sql')
  for (const statement of documented.split('--> statement-breakpoint')) await client.unsafe(statement)
  t.strictSame(await storage(), wanted, 'the SQL of the documentation does the same')
})
t.test('the migrations for SQLite make the tables of the schema', async t => {
  const connection = inMemory(t)
  migrateSqlite(drizzleSqlite({ client: connection }), { migrationsFolder: migrations('sqlite'), migrationsTable: 'journal' })
  const { journal, ...tables } = sqliteTables(connection)
  t.strictSame(tables, declaredForSqlite())
  t.ok(journal)
})
t.test('the store on SQLite makes the tables of the schema, and one journal', async t => {
  const connection = inMemory(t)
  const database = new SqliteDatabase(drizzleSqlite({ client: connection }), { createTables: true, lost () {} })
  for (const part of PARTS) await database.with(part).write(() => {})
  const { svc_auth_migrations: journal, ...tables } = sqliteTables(connection)
  t.strictSame(tables, declaredForSqlite())
  t.ok(journal)
})

function migrations (dialect: 'postgres' | 'sqlite'): string {
  return fileURLToPath(new URL(`../../drizzle/${dialect}`, import.meta.url))
}
async function onPostgres (t: Test): Promise<Sql> {
  const client = postgres(await emptyDatabase(t), { max: 1, onnotice: () => {} })
  t.teardown(() => client.end())
  return client
}
function inMemory (t: Test): Database {
  const connection = new Sqlite(':memory:')
  t.teardown(() => connection.close())
  return connection
}

function declaredForPostgres (): Tables {
  const tables = Object.values(postgresSchema).map(postgresConfig)
  return Object.fromEntries(tables.map(({ name: table, columns, primaryKeys, foreignKeys, indexes }) => [table, [
    ...columns.map(columnSentence),
    ...columns.filter(column => column.primary).map(column => `${table}_pkey PRIMARY KEY (${column.name})`),
    ...primaryKeys.map(key => `${key.getName()} PRIMARY KEY (${namesOf(key.columns)})`),
    ...foreignKeys.map(key => `${key.getName()} ${foreignKeySentence(key)}`),
    ...indexes.map(({ config }) => {
      const kind = config.unique ? 'UNIQUE INDEX' : 'INDEX'
      const columns = config.columns.map(column => {
        const opClass = 'indexConfig' in column ? column.indexConfig.opClass : undefined
        return [is(column, SQL) ? new PgDialect().sqlToQuery(column).sql : namesOf([column]), ...opClass === undefined ? [] : [opClass]].join(' ')
      })
      const where = config.where === undefined ? '' : ` WHERE ${new PgDialect().sqlToQuery(config.where).sql}`
      return `CREATE ${kind} ${config.name} ON public.${table} USING ${config.method} (${columns.join(', ')})${where}`
    })
  ].map(plain).sort()]))
}
function declaredForSqlite (): Tables {
  const tables = Object.values(sqliteSchema).map(sqliteConfig)
  return Object.fromEntries(tables.map(({ name: table, columns, primaryKeys, foreignKeys, indexes }) => [table, [
    ...columns.map(columnSentence),
    ...columns.filter(column => column.primary).map(column => `PRIMARY KEY (${column.name})`),
    ...primaryKeys.map(key => `PRIMARY KEY (${namesOf(key.columns)})`),
    ...foreignKeys.map(foreignKeySentence),
    ...indexes.map(({ config }) => {
      const where = config.where === undefined ? '' : ` WHERE ${new SQLiteSyncDialect().sqlToQuery(config.where).sql}`
      const columns = config.columns.map(column => is(column, SQL) ? new SQLiteSyncDialect().sqlToQuery(column).sql : namesOf([column]))
      return `CREATE ${config.unique ? 'UNIQUE ' : ''}INDEX ${config.name} ON ${table} (${columns.join(', ')})${where}`
    })
  ].sort()]))
}

type PostgresConfig = ReturnType<typeof postgresConfig>
type SqliteConfig = ReturnType<typeof sqliteConfig>

function columnSentence (column: PostgresConfig['columns'][number] | SqliteConfig['columns'][number]): string {
  return `${column.name} ${column.getSQLType()}${column.notNull ? ' NOT NULL' : ''}${column.default === undefined ? '' : ' DEFAULT'}`
}
function foreignKeySentence (key: PostgresConfig['foreignKeys'][number] | SqliteConfig['foreignKeys'][number]): string {
  const { columns, foreignTable, foreignColumns } = key.reference()
  const actions = actionSentence('UPDATE', key.onUpdate) + actionSentence('DELETE', key.onDelete)
  return `FOREIGN KEY (${namesOf(columns)}) REFERENCES ${getTableName(foreignTable)}(${namesOf(foreignColumns)})${actions}`
}
function actionSentence (event: 'UPDATE' | 'DELETE', action = 'no action'): string {
  return action.toLowerCase() === 'no action' ? '' : ` ON ${event} ${action.toUpperCase()}`
}
/** Postgres writes expressions with its own parentheses and casts. */
function plain (sentence: string): string {
  return sentence.startsWith('CREATE') ? sentence.replaceAll('::text', '').replace(/(?<=btree )(.*)/, text => text.replaceAll(/[()]/g, '')) : sentence
}
function namesOf (columns: object[]): string {
  return columns.map(column => 'name' in column ? String(column.name) : 'an expression').join(', ')
}

async function postgresTables (client: Sql): Promise<Tables> {
  return byTable(await client.unsafe<Row[]>(`
    with tables as (select oid, relname as "table" from pg_class where relnamespace = 'public'::regnamespace and relkind not in ('i', 'c', 'v'))
    select "table", concat(attname, ' ', format_type(atttypid, atttypmod),
        case when attnotnull then ' NOT NULL' end, case when atthasdef then ' DEFAULT' end, ' COLLATE ' || nullif(collname, 'default')) as sentence
      from tables join pg_attribute on attrelid = tables.oid and attnum > 0 and not attisdropped left join pg_collation on pg_collation.oid = attcollation
    union all
    select "table", concat(conname, ' ', pg_get_constraintdef(pg_constraint.oid)) from tables join pg_constraint on conrelid = tables.oid where contype <> 'n'
    union all
    select "table", concat(split_part(pg_get_indexdef(indexrelid), ' WHERE ', 1), ' WHERE ' || condition)
      from tables join pg_index on indrelid = tables.oid
      -- As it is written in the schema, without the casts and parentheses of the server.
      cross join lateral (
        select replace(replace(btrim(pg_get_expr(indpred, indrelid), '()'), '::text)', ''), 'IS NOT NULL', 'is not null') as condition
      ) as predicate
      where not exists (select from pg_constraint where conindid = indexrelid and contype in ('p', 'u', 'x'))
    union all
    select "table", pg_get_triggerdef(pg_trigger.oid) from tables join pg_trigger on tgrelid = tables.oid where not tgisinternal
  `))
}

function sqliteTables (connection: Database): Tables {
  return byTable(connection.prepare<[], Row>(`
    with tables as (select name as "table", sql from sqlite_master where type = 'table')
    select "table", name || ' ' || lower(type) || iif("notnull", ' NOT NULL', '') || iif(dflt_value is null, '', ' DEFAULT') as sentence
      from tables, pragma_table_xinfo("table")
    union all
    select "table", 'PRIMARY KEY (' || group_concat(name, ', ' order by pk) || ')' from tables, pragma_table_xinfo("table") where pk > 0 group by "table"
    union all
    select tables."table", 'FOREIGN KEY (' || group_concat("from", ', ' order by seq)
        || ') REFERENCES ' || keys."table" || '(' || group_concat("to", ', ' order by seq) || ')'
      || iif(on_update = 'NO ACTION', '', ' ON UPDATE ' || on_update) || iif(on_delete = 'NO ACTION', '', ' ON DELETE ' || on_delete)
      from tables, pragma_foreign_key_list(tables."table") as keys group by tables."table", id
    union all
    select tbl_name, replace(replace(sql, ',\`', ', \`'), '\`', '') from sqlite_master where type not in ('table', 'view') and sql is not null
    union all
    select "table", clause.column1 from tables, (values ('CHECK'), ('COLLATE'), ('UNIQUE'), ('GENERATED'),
      ('DEFERRABLE'), ('AUTOINCREMENT'), ('STRICT'), ('WITHOUT')) as clause
      where sql like '% ' || clause.column1 || '%'
  `).all())
}

interface Row {
  table: string
  sentence: string
}

function byTable (rows: Row[]): Tables {
  const tables: Tables = {}
  for (const { table, sentence } of rows) (tables[table] ??= []).push(sentence)
  return Object.fromEntries(Object.entries(tables).map(([table, sentences]) => [table, sentences.map(plain).sort()]))
}
