import { Once, TIMEOUT_MS, lazily, withTimeout } from '../../base/concurrency.js'
import { isUserId } from '../../base/values.js'
import {
  type SQL, type SQLWrapper, connections, credentials, domains, eq, factors, fillPlaceholders, grants, keys,
  oauthClients,
  oneTimeEntries, providerLinks, sessions, sql, users
} from '../../drizzle/postgres.js'
import { AuthError } from '../../errors.js'
import type { Batch, Columns, Decoder, SqlDatabase, Values } from '../../session/sql-database.js'
import {
  DROPPED, type Migration, type TablePart, type TableState, ifMissing, mainTable, missingPart, renamed, tableState,
  tablesOf
} from '../sql-tables.js'
import { given, sweeperOn } from '../sql-rows.js'
import type { PostgresDrizzle } from '../sql-target.js'
import { otherEncoding, postgresFailures } from './failures.js'
import { POSTGRES_MIGRATIONS } from './migrations.js'

/** A named statement stays on the server: it fails behind a pooler, and after a migration. */
export const UNNAMED = ''

/** Text that is not an id becomes null, which no row has: Postgres would refuse to compare it. */
export const USER_ID = sql.param(given('userId'), { mapToDriverValue: (id: unknown) => isUserId(id) ? id : null })

export const isUser = eq(users.userId, USER_ID)

/** JSON is sent as text: drivers differ in what they make of a parameter of the type jsonb. */
export function json (name: string): SQL {
  return sql`${sql.param(given(name), { mapToDriverValue: JSON.stringify })}::text::jsonb`
}

/** A boolean that is read as one: drivers differ in what they make of the type. */
export function isTrue (value: SQLWrapper): SQL<boolean> {
  return sql`(${value})::int`.mapWith(value => Number(value) === 1)
}

/** Sends a statement with its values. The rows have the columns as the server's text. */
export type Query = (text: string, values: readonly unknown[]) => Promise<Array<Array<string | null>>>

export interface BuiltStatement<Row> {
  toSQL (): { sql: string, params: unknown[] }
  prepare (name: string): { execute (values: Values): Promise<Row[]> }
}

export const TEXT: Decoder = { mapFromDriverValue: text => text }

/**
 * Prepares a statement. What Drizzle does each time it runs one takes a third of the CPU time: what
 * many requests run is sent without.
 *
 * @param columns those that the statement returns; null for one that Drizzle runs
 * @param query null for a driver of the application, on which Drizzle runs all statements
 */
export function prepared<Row> (
  statement: BuiltStatement<Row>,
  columns: Columns | null,
  query: Query | null
): (values: Values) => Promise<Row[]> {
  if (query === null || columns === null) {
    const ofDrizzle = statement.prepare(UNNAMED)
    return values => ofDrizzle.execute(values)
  }
  const { sql, params } = statement.toSQL()
  const read = readerOf(columns)
  return async values => {
    const rows = await query(sql, fillPlaceholders(params, values))
    return rows.map(row => read(row.values()) as Row)
  }
}

function readerOf (column: Decoder | Columns): (texts: Iterator<string | null>) => unknown {
  if (isDecoder(column)) {
    return texts => {
      const { value } = texts.next()
      return value === null ? null : column.mapFromDriverValue(value)
    }
  }
  const readers = Object.entries(column).map(([name, part]) => [name, readerOf(part)] as const)
  return texts => {
    const row: Values = {}
    for (const [name, read] of readers) row[name] = read(texts)
    return row
  }
}

function isDecoder (column: Decoder | Columns): column is Decoder {
  return typeof column.mapFromDriverValue === 'function'
}

/** A number that other software is unlikely to lock. */
const LOCK = 7_320_118_454

/** Resolves to the names of the migrations, and the schema in which tables are made. */
async function appliedMigrations (db: PostgresDrizzle): Promise<{ names: string[], schema: string | null }> {
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

function lacksTables (part: TablePart, applied: readonly string[]): boolean {
  return POSTGRES_MIGRATIONS[part].some(({ name }) => !applied.includes(name))
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
  const dropped = part === 'users' ? Object.values(POSTGRES_MIGRATIONS).flat() : POSTGRES_MIGRATIONS[part]
  const names = tablesOf(POSTGRES_MIGRATIONS[part])
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
    ${POSTGRES_MIGRATIONS[part].map(applied).join('\n')}
  end $svc_auth$`
}

/** Whatever `standard_conforming_strings` is. */
const literal = (text: string): string => `E'${text.replace(/['\\]/g, '$&$&')}'`

/** A list of names as SQL. */
const listed = (names: string[]): string => `array['${names.join("', '")}']`

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

const MAX_ATTEMPTS = 5

/** How a statement is sent: alone on a connection, or together with others. */
type How = 'alone' | Batch

/**
 * Runs work in a transaction of its own: by `db` the store's statements, by `tx` the application's.
 * What the work throws ends it.
 */
export type Begin = <T>(work: (db: PostgresDrizzle, tx: unknown) => Promise<T>) => Promise<T>

export interface PostgresDatabaseOptions {
  createTables: boolean
  /** Gives one connection to work that begins a transaction; default Drizzle does. */
  interactive?: (<T>(work: (begin: Begin) => Promise<T>) => Promise<T>) | undefined
  /** How prepared statements are sent; absent where Drizzle alone knows the driver. */
  queries?: ((how: How) => Query) | undefined
  /** Runs a migration without the time limits of requests; absent on an application's engine. */
  migrate?: ((migration: string) => Promise<unknown>) | undefined
  /** Called when a part of the tables is there. */
  ready?: () => void
  /** Is told what was lost, for the log. */
  lost?: (error: unknown, message: string) => void
  notSwept?: SqlDatabase['notSwept']
  /** Whether each statement is a transaction: in one of the application there may be others. */
  isOwn?: boolean | undefined
}

/** Turns an error into the one for the caller; default as for any statement. */
type Failure = (error: unknown) => AuthError

export interface RunOptions {
  deadline?: number | undefined
  failure?: Failure | undefined
}

export type Prepared<Row> = (values: Values, deadline?: number) => Promise<Row[]>

export class PostgresDatabase implements SqlDatabase {
  // Rows have the types that they have on SQLite.
  readonly tables = {
    users,
    credentials,
    providerLinks,
    factors,
    sessions,
    oneTimeEntries,
    grants,
    oauthClients,
    keys,
    connections,
    domains
  } as unknown as SqlDatabase['tables']

  readonly db: PostgresDrizzle
  readonly notSwept: SqlDatabase['notSwept']
  readonly #options: PostgresDatabaseOptions
  readonly #part: TablePart
  readonly #tables: Once<void>
  /** For all parts: what was found, what is made, in which schema, and what makes it again. */
  readonly #shared: {
    found: ReturnType<typeof firstLook>, made: Set<TablePart>, schema: string | null, again: Once<void>
  }

  /** @param former the database whose tables are made before a further part */
  constructor (
    db: PostgresDrizzle, options: PostgresDatabaseOptions, part: TablePart = 'users', former?: PostgresDatabase
  ) {
    this.db = db
    this.notSwept = options.notSwept
    this.#options = options
    this.#part = part
    const shared = this.#shared = former === undefined
      ? { found: firstLook(db), made: new Set(), schema: null, again: new Once(() => this.#makeAgain()) }
      : former.#shared
    this.#tables = new Once(async () => {
      if (former !== undefined) await former.#tables.done()
      if (options.createTables) {
        const { names, schema } = await shared.found.done()
        if (lacksTables(part, names)) await this.#migrate(part)
        shared.schema = schema
      }
      options.ready?.()
      shared.made.add(part)
    })
  }

  /**
   * A condition that is true. On a connection of the store's own, the commit of a statement with it
   * does not wait for the disk. What is committed later reaches the disk later: a crash of the
   * server that undoes the statement undoes that too.
   */
  get asyncCommit (): SQL {
    return this.#options.isOwn ? sql`(select set_config('synchronous_commit', 'off', true)) is not null` : sql`true`
  }

  /** Whether this process has made or found the part of the tables. */
  get isMade (): boolean {
    return this.#shared.made.has(this.#part)
  }

  readonly json = json
  readonly sweeper: SqlDatabase['sweeper'] = swept => sweeperOn(this, swept)

  with (part: TablePart): PostgresDatabase {
    return new PostgresDatabase(this.db, this.#options, part, this)
  }

  /** Makes the part, and those before it, however long that takes. */
  async make (): Promise<void> {
    await this.#tables.done().catch((error: unknown) => { throw postgresFailures.toAuthError(error) })
  }

  /** Compares the tables with those of this version. */
  tableState (): Promise<TableState> {
    return this.untouched(async () => {
      const [{ names }, [{ isOwn } = { isOwn: false }]] = await Promise.all([
        appliedMigrations(this.db),
        this.db.select({ isOwn: isTrue(sql`to_regclass('svc_auth_users') is not null`) }).from(sql`(select) as nothing`)
      ])
      return tableState(POSTGRES_MIGRATIONS, names.length === 0 && isOwn ? null : names)
    })
  }

  /** Runs statements that need no tables within five seconds. */
  async untouched<T> (statements: () => Promise<T>): Promise<T> {
    return withTimeout(TIMEOUT_MS, statements(), 'Postgres')
      .catch((error: unknown) => { throw postgresFailures.toAuthError(error) })
  }

  /** May take minutes, as an index of millions of rows: meanwhile calls are `unavailable`. */
  async #migrate (part: TablePart): Promise<void> {
    const { migrate = (migration: string) => this.db.execute(sql.raw(migration)) } = this.#options
    await withRetry(() => migrate(migration(part, this.#shared.schema)))
  }

  /** Makes dropped tables again, and anew when later statements miss one. */
  async #makeAgain (): Promise<void> {
    for (const part of this.#shared.made) await this.#migrate(part)
    this.#shared.again = new Once(() => this.#makeAgain())
  }

  /**
   * Prepares a statement, which runs as {@link run} does: see {@link prepared}. It is built on its
   * first use and kept: building takes longer than the server takes to run it.
   */
  prepared<Row> (
    build: (db: PostgresDrizzle) => BuiltStatement<Row>,
    columns: Columns | null = null,
    how: How = 'alone',
    failure?: Failure
  ): Prepared<Row> {
    const statement = lazily(() => prepared(build(this.db), columns, this.#options.queries?.(how) ?? null))
    return (values, deadline) => this.run(() => statement()(values), { deadline, failure })
  }

  query: SqlDatabase['query'] = (build, columns, how) =>
    this.prepared(build as unknown as (db: PostgresDrizzle) => BuiltStatement<never>, columns, how)

  change: SqlDatabase['change'] = build => this.query(build)

  execute: SqlDatabase['execute'] = async build => {
    await this.run(async () => (build as unknown as (db: PostgresDrizzle) => Promise<unknown>)(this.db))
  }

  /**
   * Runs a statement within five seconds. The first call creates the tables; a statement that lost
   * a race against another one, or misses a table, is run again.
   *
   * @param how with a deadline: an earlier end, in milliseconds since the epoch
   */
  async run<T> (
    statement: () => Promise<T>,
    { deadline = Date.now() + TIMEOUT_MS, failure = postgresFailures.toAuthError }: RunOptions = {}
  ): Promise<T> {
    try {
      return await withTimeout(deadline - Date.now(), this.#onTables(statement), 'Postgres')
    } catch (error) {
      throw failure(error)
    }
  }

  /** Runs a transaction in several steps, as {@link run} runs a statement. */
  interactive<T> (work: (begin: Begin) => Promise<T>, how: RunOptions): Promise<T> {
    // In a transaction of the application a savepoint.
    const ofDrizzle = <T>(work: (begin: Begin) => Promise<T>) => work(work => this.db.transaction(tx => work(tx, tx)))
    const { interactive = ofDrizzle } = this.#options
    return this.run(() => interactive(work), how)
  }

  async #onTables<T> (statement: () => Promise<T>): Promise<T> {
    await this.#tables.done()
    const { again } = this.#shared
    try {
      return await withRetry(statement)
    } catch (error) {
      if (!this.#options.createTables || !postgresFailures.isTableMissing(error)) throw error
      const isFirst = again.attempt === undefined
      await again.done()
      const result = await withRetry(statement)
      if (isFirst) this.#options.lost?.(error, DROPPED)
      return result
    }
  }
}

const firstLook = (db: PostgresDrizzle) =>
  new Once(() => withTimeout(TIMEOUT_MS, withRetry(() => appliedMigrations(db)), 'Postgres'))

/**
 * Runs a statement again that a concurrent one got ahead of: the server has answered with an error,
 * so that the statement is rolled back.
 */
async function withRetry<T> (run: () => Promise<T>, attempts = MAX_ATTEMPTS): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (attempts === 1 || !postgresFailures.isRetryable(error)) throw error
    return withRetry(run, attempts - 1)
  }
}
