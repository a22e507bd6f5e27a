import { TIMEOUT_MS, withTimeout } from '../../base/with-timeout.js'
import { Once, lazily } from '../../base/once.js'
import {
  type SQL, credentials, factors, oneTimeEntries, providerLinks, sessions, sql, users
} from '../../drizzle/postgres.js'
import { AuthError } from '../../errors.js'
import type { PostgresDrizzle } from '../sql-target.js'
import type { Batch, Columns, SqlDatabase, SqlTables, Values } from '../sql-database.js'
import { DROPPED, type TablePart } from '../table-parts.js'
import { isRetryable, isTableMissing, storeFailure } from './failures.js'
import { type Query, type BuiltStatement, prepared } from './statements.js'
import { appliedMigrations, lacksTables, migration } from './tables.js'

const MAX_ATTEMPTS = 5

/** How a statement is sent: alone on a connection, or together with others. */
type How = 'alone' | Batch

export interface PostgresDatabaseOptions {
  createTables: boolean
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

/** Turns an error into the one for the caller; default {@link storeFailure}. */
type Failure = (error: unknown) => AuthError

export interface RunOptions {
  deadline?: number | undefined
  failure?: Failure | undefined
}

export type Prepared<Row> = (values: Values, deadline?: number) => Promise<Row[]>

export class PostgresDatabase implements SqlDatabase {
  // Rows have the types that they have on SQLite.
  readonly tables =
    { users, credentials, providerLinks, factors, sessions, oneTimeEntries } as unknown as SqlTables

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

  with (part: TablePart): PostgresDatabase {
    return new PostgresDatabase(this.db, this.#options, part, this)
  }

  /** Makes the part, and those before it, however long that takes. */
  async make (): Promise<void> {
    await this.#tables.done().catch((error: unknown) => { throw storeFailure(error) })
  }

  /** Runs statements that need no tables within five seconds. */
  async untouched<T> (statements: () => Promise<T>): Promise<T> {
    return withTimeout(TIMEOUT_MS, statements(), 'Postgres').catch((error: unknown) => { throw storeFailure(error) })
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
    { deadline = Date.now() + TIMEOUT_MS, failure = storeFailure }: RunOptions = {}
  ): Promise<T> {
    try {
      return await withTimeout(deadline - Date.now(), this.#onTables(statement), 'Postgres')
    } catch (error) {
      throw failure(error)
    }
  }

  async #onTables<T> (statement: () => Promise<T>): Promise<T> {
    await this.#tables.done()
    const { again } = this.#shared
    try {
      return await withRetry(statement)
    } catch (error) {
      if (!this.#options.createTables || !isTableMissing(error)) throw error
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
    if (attempts === 1 || !isRetryable(error)) throw error
    return withRetry(run, attempts - 1)
  }
}
