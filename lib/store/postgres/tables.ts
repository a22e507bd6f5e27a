import { sql } from '../../drizzle/postgres.js'
import { otherEncoding } from './failures.js'
import { MIGRATIONS } from './migrations.js'
import type { PostgresDrizzle } from '../sql-target.js'
import { TABLE_PARTS, type TablePart, missingPart } from '../table-parts.js'

type Migration = typeof MIGRATIONS[number]

/** A number that other software is unlikely to lock. */
const LOCK = 7_320_118_454

/**
 * Reads the hashes of the migrations that were applied from the journal of this package.
 *
 * @throws Error for a database whose encoding is not UTF-8
 */
export async function appliedMigrations (db: PostgresDrizzle): Promise<string[]> {
  const [{ encoding, journals } = { encoding: 'unknown', journals: 0 }] = await db.select({
    encoding: sql<string>`current_setting('server_encoding')`,
    journals: sql`count(*)`.mapWith(Number)
  }).from(sql`pg_class`)
    .where(sql`oid = to_regclass('svc_auth_migrations') and relnamespace = current_schema()::regnamespace`)
  if (encoding !== 'UTF8') throw otherEncoding(encoding)
  if (journals === 0) return []
  const applied = await db.select({ hash: sql<string>`hash` }).from(sql`svc_auth_migrations`)
  return applied.map(({ hash }) => hash)
}

/** Whether a part of the tables is not up to date, by the migrations that were applied. */
export function lacksTables (part: TablePart, applied: readonly string[]): boolean {
  return migrationsOf(part).some(({ hash }) => !applied.includes(hash))
}

function migrationsOf (part: TablePart): readonly Migration[] {
  return MIGRATIONS.filter(({ name }) => TABLE_PARTS[part].migrations.includes(name))
}

/**
 * Returns the statement that brings a part of the tables up to date with the migrations of this
 * package. It is one statement, which is a transaction on every driver; processes that start
 * together take turns at its lock. Tables that the application's own migrations made are left as
 * they are.
 */
export function migration (part: TablePart): string {
  const { table } = TABLE_PARTS[part]
  return `do $svc_auth$ begin
    perform pg_advisory_xact_lock(${LOCK});
    if (select relnamespace from pg_class where oid = to_regclass('svc_auth_users'))
        <> current_schema()::regnamespace then
      raise invalid_schema_name using message = format(
        'svc_auth_users is in the schema %s, but tables would be made in %s',
        (select relnamespace::regnamespace from pg_class where oid = to_regclass('svc_auth_users')),
        current_schema()
      );
    end if;
    if to_regclass('svc_auth_migrations') is null then
      if to_regclass('${table}') is not null then return; end if;
      if to_regclass('svc_auth_users') is not null then
        raise exception using message = '${missingPart(table)}';
      end if;
      create table svc_auth_migrations (hash text primary key, created_at bigint not null);
    end if;
    ${migrationsOf(part).map(applied).join('\n')}
  end $svc_auth$`
}

function applied ({ hash, folderMillis, sql: statements }: Migration): string {
  return `if not exists (select from svc_auth_migrations where hash = '${hash}') then
    ${statements.map(inSearchPath).join('\n')}
    insert into svc_auth_migrations values ('${hash}', ${folderMillis});
  end if;`
}

/**
 * Removes the schema that drizzle-kit names in foreign keys: the connection's search path decides.
 */
function inSearchPath (statement: string): string {
  return statement.trim().replace(/;?$/, ';').replaceAll('"public".', '')
}
