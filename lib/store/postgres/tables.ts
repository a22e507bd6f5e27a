import { sql } from '../../drizzle/postgres.js'
import { otherEncoding } from './failures.js'
import { MIGRATIONS } from './migrations.js'
import type { PostgresDrizzle } from '../sql-target.js'
import {
  type Migration, type TablePart, type TableState, ifMissing, mainTable, missingPart, renamed, tableState, tablesOf
} from '../table-parts.js'
import { isTrue } from './statements.js'

/** A number that other software is unlikely to lock. */
const LOCK = 7_320_118_454

/** Resolves to the names of the migrations, and the schema in which tables are made. */
export async function appliedMigrations (db: PostgresDrizzle): Promise<{ names: string[], schema: string | null }> {
  const [{ encoding, schema, journals } = { encoding: 'unknown', schema: null, journals: 0 }] = await db.select({
    encoding: sql<string>`current_setting('server_encoding')`,
    schema: sql<string | null>`max(current_schema())`,
    journals: sql`count(*)`.mapWith(Number)
  }).from(sql`pg_class`)
    .where(sql`oid = to_regclass('svc_auth_migrations') and relnamespace = current_schema()::regnamespace`)
  if (encoding !== 'UTF8') throw otherEncoding(encoding)
  if (journals === 0) return { names: [], schema }
  const applied = await db.select({ name: sql<string>`name` }).from(sql`svc_auth_migrations`)
  return { names: applied.map(({ name }) => name), schema }
}

export async function postgresTables (db: PostgresDrizzle): Promise<TableState> {
  const [{ names }, [{ isOwn } = { isOwn: false }]] = await Promise.all([
    appliedMigrations(db),
    db.select({ isOwn: isTrue(sql`to_regclass('svc_auth_users') is not null`) }).from(sql`(select) as nothing`)
  ])
  return tableState(MIGRATIONS, names.length === 0 && isOwn ? null : names)
}

export function lacksTables (part: TablePart, applied: readonly string[]): boolean {
  return MIGRATIONS[part].some(({ name }) => !applied.includes(name))
}

/**
 * Brings a part of the tables up to date by one statement, which is a transaction on every driver;
 * processes that start together take turns at its lock. Tables of the application's own migrations
 * stay; dropped ones of this package are made again.
 *
 * @param schema where this process has used tables: none are made in another one
 */
export function migration (part: TablePart, schema: string | null): string {
  const table = mainTable(part)
  // With the table of users, the foreign keys of other parts are dropped.
  const dropped = part === 'users' ? Object.values(MIGRATIONS).flat() : MIGRATIONS[part]
  const names = tablesOf(MIGRATIONS[part])
  const tables = listed(names)
  return `do $svc_auth$ declare present text := ${schema === null ? 'null' : literal(schema)};
  begin
    perform pg_advisory_xact_lock(${LOCK});
    present := coalesce(
      (select nspname from pg_class c join pg_namespace n on n.oid = relnamespace
        where c.oid = to_regclass('svc_auth_users')),
      present
    );
    if present <> current_schema() then
      raise invalid_schema_name using message = format(
        'svc_auth_users is in the schema %s, but tables would be made in %s', present, current_schema()
      );
    end if;
    if to_regclass('svc_auth_migrations') is null then
      if to_regclass('${table}') is not null then return; end if;
      if to_regclass('svc_auth_users') is not null then
        raise exception using message = '${missingPart(table)}';
      end if;
      create table svc_auth_migrations (name text primary key);
    end if;
    if exists (select from unnest(${tables}) name where to_regclass(name) is null) then
      if exists (select from pg_class, unnest(${tables}) name where relkind = 'i' and to_regclass(name) is null
          and starts_with(relname, name || '_') and relnamespace = current_schema()::regnamespace) then
        raise exception using message = '${renamed(names)}';
      end if;
      delete from svc_auth_migrations where name = any(${listed(dropped.map(({ name }) => name))});
    end if;
    ${MIGRATIONS[part].map(applied).join('\n')}
  end $svc_auth$`
}

/** Whatever `standard_conforming_strings` is. */
const literal = (text: string): string => `E'${text.replace(/['\\]/g, '$&$&')}'`

/** A list of names as SQL. */
export const listed = (names: string[]): string => `array['${names.join("', '")}']`

function applied ({ name, sql: statements }: Migration): string {
  return `if not exists (select from svc_auth_migrations where name = '${name}') then
    ${statements.map(inSearchPath).map(ifMissing).map(withKeys).join('\n')}
    insert into svc_auth_migrations values ('${name}');
  end if;`
}

/**
 * Adds a foreign key unless it is there. Where the table of users was dropped, rows of users who
 * are gone are deleted, as the key would have done.
 */
function withKeys (statement: string): string {
  const [, table] = /^ALTER TABLE (\S+) ADD CONSTRAINT .+ FOREIGN KEY/.exec(statement) ?? []
  if (table === undefined) return statement
  return `begin ${statement} exception when duplicate_object then null; when foreign_key_violation then
    delete from ${table} where user_id not in (select user_id from svc_auth_users); ${statement} end;`
}

/** drizzle-kit names a schema in foreign keys: the connection's search path decides. */
function inSearchPath (statement: string): string {
  return statement.trim().replace(/;?$/, ';').replaceAll('"public".', '')
}
