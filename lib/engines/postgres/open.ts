import type { ISql, Sql } from 'postgres'
import { type SQL, drizzle, sql } from '../../drizzle/postgres.js'
import { lazilyBy } from '../../base/concurrency.js'
import { FEATURE_PARTS, type FeaturePart } from '../../session/feature-tables.js'
import { tablesOf } from '../sql-tables.js'
import { ODD_NAME, assertEscapes } from '../sql-rows.js'
import { type PostgresDrizzle, type PostgresEngine, isPostgresClient } from '../sql-target.js'
import { postgresAccounts } from './accounts.js'
import type { Hosts } from './connection.js'
import { type Begin, PostgresDatabase, type PostgresDatabaseOptions, type Query, isTrue } from './database.js'
import { otherEncoding, postgresFailures } from './failures.js'
import { POSTGRES_MIGRATIONS } from './migrations.js'
import { Pool } from './pool.js'
import { postgresRevocations } from './revocations.js'
import { postgresSessions } from './sessions.js'

/** The type of a literal: the server infers it, and the client has no serializer for it. */
const UNKNOWN = 705

/** Opens the store on a pool of its own, or on an engine of the application, which closes it. */
export function openPostgres (
  target: Pool | PostgresEngine, options: Pick<PostgresDatabaseOptions, 'createTables' | 'ready' | 'lost' | 'notSwept'>
) {
  const isOwn = target instanceof Pool
  const { db, queries, migrate, interactive, notifier, close } = isOwn ? connectedTo(target) : connectedBy(target)
  const database = new PostgresDatabase(db, { ...options, queries, migrate, interactive, isOwn })
  const withSessions = database.with('sessions')
  const revocations = postgresRevocations(withSessions, notifier)
  const featureTables = lazilyBy((part: FeaturePart) => database.with(part))
  return {
    accounts: postgresAccounts(database, withSessions, revocations),
    revocations,
    ...postgresSessions(withSessions, revocations),
    tables: () => database.tableState(),
    async migrate () {
      await withSessions.make()
      for (const part of FEATURE_PARTS) await featureTables(part).make()
    },
    featureTables,
    async inspect () {
      const isUnverified = isOwn && target.hosts.settings.isUnverified
      const warnings = await database.untouched(() => inspect(db, { ...options, isUnverified }))
      if (isOwn) target.unref()
      return warnings
    },
    async close () {
      revocations.close()
      await close?.()
    }
  }
}

interface Connected extends Pick<PostgresDatabaseOptions, 'queries' | 'migrate' | 'interactive'> {
  db: PostgresDrizzle
  /** Where to listen; null where the engine passes no notifications on. */
  notifier: Hosts | Sql | null
  /** Absent on an application's engine, which stays open. */
  close?: () => Promise<void>
}

function connectedBy (target: PostgresEngine): Connected {
  if ('db' in target) {
    assertEscapes(target.db.select().from(ODD_NAME).toSQL().sql)
    const client = '$client' in target.db ? target.db.$client : null
    return { db: target.db, notifier: isPostgresClient(client) ? client : null }
  }
  const { client } = target
  const query = queryOn(statement => statement(client))
  return {
    db: drizzleOn(query), queries: () => query, interactive: work => work(beginOn(client)), notifier: client
  }
}

function connectedTo (pool: Pool): Connected {
  const query = queryOn((statement, isRead) => pool.run(statement, { isRead }))
  return {
    db: drizzleOn(query),
    queries: how => how === 'alone' ? query : queryOn(statement => pool.batched(how, statement)),
    // One message is one transaction, so that a pooler keeps the limit for its other clients.
    migrate: migration =>
      pool.run(client => client.unsafe(`set local statement_timeout = 0; ${migration}`), { isLong: true }),
    interactive: work => pool.run(client => work(beginOn(client))),
    notifier: pool.hosts,
    close: () => pool.close()
  }
}

/**
 * Drizzle's own driver for the package postgres would change the client's types for the whole
 * application; here values are the text that the server sends, whatever types the client has.
 */
function drizzleOn (query: Query): PostgresDrizzle {
  return drizzle(async (statement, params) => ({ rows: await query(statement, params) }))
}

function beginOn (client: Sql): Begin {
  return async work => {
    const { result } = await client.begin(async tx =>
      ({ result: await work(drizzleOn(queryOn(statement => statement(tx))), tx) }))
    return result
  }
}

function queryOn (run: <T>(statement: (client: ISql) => Promise<T>, isRead: boolean) => Promise<T>): Query {
  return async (statement, params) => {
    // One that writes begins with another word, also if only a part of it writes.
    const isRead = statement.startsWith('select ')
    const rows = await run(client => {
      const values = params.map(value => value === null ? null : client.typed(String(value), UNKNOWN))
      return client.unsafe(statement, values, { prepare: true }).raw()
    }, isRead)
    return rows.map(row => row.map(value => value === null ? null : String(value)))
  }
}

/**
 * The tables and views of the store that PUBLIC may read or write, or a role as which PostgREST or
 * Supabase serves tables. Row level security without a policy shows such a role no row; a view
 * shows what its owner sees, unless it is a view of the invoker.
 */
const EXPOSED = sql`(
  select name as role, quote_ident(nspname) as schema, format('%I.%I', nspname, relname) as relation,
    relkind in ('r', 'p') and pg_has_role(relowner, 'usage') as is_own_table
  from pg_class c join pg_namespace n on n.oid = relnamespace, (
    select oid, rolname::text, rolbypassrls from pg_roles where rolname in ('anon', 'authenticated', 'web_anon')
    union all select 0, 'public', false
  ) as role (role_id, name, bypasses)
  where relnamespace = (select relnamespace from pg_class where oid = to_regclass('svc_auth_users'))
    and left(relname, 9) = 'svc_auth_' and relkind in ('r', 'p', 'v', 'm', 'f')
    and has_schema_privilege(role_id, n.oid, 'usage')
    and (has_any_column_privilege(role_id, c.oid, 'select, insert, update')
      or has_table_privilege(role_id, c.oid, 'delete'))
    and not coalesce(reloptions && '{security_invoker=true,security_invoker=on,security_invoker=1}', false)
    and (not relrowsecurity or bypasses or exists (
      select from pg_policy, unnest(polroles) as named
      where polrelid = c.oid and polpermissive and (named = 0 or pg_has_role(role_id, named, 'usage'))
    ))
) as exposed`

const NAMES = sql.raw(`unnest('{${Object.values(POSTGRES_MIGRATIONS).flatMap(tablesOf)}}'::text[])`)

const ours = (condition: SQL) => sql<string | null>`(
  select string_agg(format('%I.%I', nspname, relname), ', ' order by relname)
  from ${NAMES} name join pg_class c on c.oid = to_regclass(name) join pg_namespace n on n.oid = relnamespace
  where ${condition}
)`

const LACKS_RIGHTS = sql`not (has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
  and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete'))`

const applying = (condition: SQL): SQL => sql`exists (
  select from pg_policy where polrelid = c.oid and ${condition} and exists (
    select from unnest(polroles) named where named = 0 or pg_has_role(named, 'usage')
  )
)`

/** Without a policy by which this role sees and writes every row. */
const HIDES_ROWS = sql`row_security_active(c.oid) and (${applying(sql`not polpermissive`)} or not ${applying(
  sql`polpermissive and polcmd = '*' and pg_get_expr(polqual, polrelid) = 'true'
    and coalesce(pg_get_expr(polwithcheck, polrelid), 'true') = 'true'`
)})`

const NO_SCHEMA = 'no schema of the search_path exists, or this role has no USAGE on it'

const UNVERIFIED = 'sslmode=no-verify encrypts the connections to Postgres and does not verify the server, so that ' +
  'others on the network can pose as it; write sslmode=verify-full, with sslrootcert for a private authority'

/**
 * Looks with one statement whether a database can be used, as a first sign-in does, and returns
 * warnings for the log.
 */
async function inspect (
  db: PostgresDrizzle,
  { createTables, isUnverified }: { createTables: boolean, isUnverified: boolean }
): Promise<string[]> {
  const list = (column: string): SQL<string | null> => sql`string_agg(distinct ${sql.raw(column)}, ', ')`
  const rows = await db.select({
    encoding: sql<string>`current_setting('server_encoding')`,
    hasTables: isTrue(sql`to_regclass('svc_auth_users') is not null`),
    isReadOnly: isTrue(sql`current_setting('transaction_read_only')::bool`),
    user: sql<string>`quote_ident(current_user)`,
    target: sql<string | null>`quote_ident(current_schema())`,
    cannotMake: isTrue(sql`not has_schema_privilege(current_schema(), 'create')
      and exists (select from ${NAMES} name where to_regclass(name) is null)`),
    lacking: ours(LACKS_RIGHTS),
    hidden: ours(HIDES_ROWS),
    roles: list('role'),
    relations: list('relation'),
    schema: list('schema'),
    protection: sql<string>`coalesce(string_agg(
      distinct format('alter table %s enable row level security; ', relation), '') filter (where is_own_table), '')`
  }).from(EXPOSED)
  return rows.flatMap(({ encoding, hasTables, roles, relations, schema, protection, user, target, ...found }) => {
    if (encoding !== 'UTF8') throw otherEncoding(encoding)
    if (!hasTables && target === null) throw postgresFailures.refusal('noSchema', NO_SCHEMA)
    if (!hasTables && !createTables) throw postgresFailures.refusal('noTable', 'no tables')
    const grant = createTables && found.cannotMake
      ? `create on schema ${target}`
      : found.lacking && `select, insert, update, delete on ${found.lacking}`
    if (grant) throw postgresFailures.refusal('noRight', `a right is missing: grant ${grant} to ${user}`)
    if (found.isReadOnly) throw postgresFailures.refusal('readOnly', 'transactions are read-only')
    const hidden = `Row level security may hide rows of ${found.hidden} from the role ${user}, so that users are ` +
      'unknown and their passwords wrong. On each table, run: ' +
      `create policy svc_auth on … for all to ${user} using (true); or: alter role ${user} bypassrls;`
    const exposure = `${roles} may read or write ${relations}: an API that serves the schema ${schema}, such as that ` +
      'of Supabase, gives password hashes and sessions away. Keep the tables in a schema that no API serves, such as ' +
      `?search_path=svc_auth in the URL, or run: ${protection}revoke all on ${relations} from ${roles};`
    return [
      ...(isUnverified ? [UNVERIFIED] : []),
      ...(found.hidden === null ? [] : [hidden]),
      ...(roles === null ? [] : [exposure])
    ]
  })
}
