import { type SQL, sql } from '../../drizzle/postgres.js'
import type { PostgresDrizzle } from '../sql-target.js'
import { otherEncoding } from './failures.js'
import { isTrue } from './statements.js'

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

const UNVERIFIED = 'sslmode=no-verify encrypts the connections to Postgres and does not verify the server, so that ' +
  'others on the network can pose as it; write sslmode=verify-full, with sslrootcert for a private authority'

/** Looks into a database with one statement, and returns warnings for the log. */
export async function inspect (
  db: PostgresDrizzle,
  { createTables, isUnverified }: { createTables: boolean, isUnverified: boolean }
): Promise<string[]> {
  const list = (column: string): SQL<string | null> => sql`string_agg(distinct ${sql.raw(column)}, ', ')`
  const rows = await db.select({
    encoding: sql<string>`current_setting('server_encoding')`,
    hasTables: isTrue(sql`to_regclass('svc_auth_users') is not null`),
    roles: list('role'),
    relations: list('relation'),
    schema: list('schema'),
    protection: sql<string>`coalesce(string_agg(
      distinct format('alter table %s enable row level security; ', relation), '') filter (where is_own_table), '')`
  }).from(EXPOSED)
  return rows.flatMap(({ encoding, hasTables, roles, relations, schema, protection }) => {
    if (encoding !== 'UTF8') throw otherEncoding(encoding)
    if (!hasTables && !createTables) throw Object.assign(new Error('no tables'), { code: '42P01' })
    const exposure = `${roles} may read or write ${relations}: an API that serves the schema ${schema}, such as that ` +
      'of Supabase, gives password hashes and sessions away. Keep the tables in a schema that no API serves, such as ' +
      `?search_path=svc_auth in the URL, or run: ${protection}revoke all on ${relations} from ${roles};`
    return [...(isUnverified ? [UNVERIFIED] : []), ...(roles === null ? [] : [exposure])]
  })
}
