import type postgres from 'postgres'
import { notLoaded } from '../../base/values.js'
import { TIMEOUT_MS, TimeoutError, withTimeout } from '../../base/concurrency.js'
import type { Batch } from '../../session/sql-database.js'
import { Connection, Hosts } from './connection.js'
import { postgresFailures } from './failures.js'

/** The server's time to answer: less than a call, so that the next one finds a repaired pool. */
const ANSWER_MS = 4500

/** For so long after a refused connection, those that the pool has are its size. */
const FULL_MS = 1000

/** A younger connection is kept: while a database is read-only, not every request opens one. */
const YOUNG_MS = 1000

type Statement<T> = (client: postgres.Sql) => Promise<T>

interface How {
  /** Whether the statement may be sent twice. */
  isRead?: boolean
  /** Whether it may take minutes. */
  isLong?: boolean
}

interface BatchedStatement {
  /**
   * Settles the promise of the caller; rejects when the connection failed. Resolves to an error
   * that the connection may have caused.
   */
  run: Statement<unknown>
  reject: (error: unknown) => void
}

/**
 * Keeps connections to a URL, each for one statement at a time: no statement waits behind another's
 * lock, but for those of a {@link Batch}, which share a connection.
 */
export class Pool {
  readonly hosts: Hosts
  readonly #connections = new Set<Connection>()
  #idle: Connection[] = []
  readonly #waiting: Array<() => void> = []
  readonly #batches: Record<Batch, BatchedStatement[]> = { reads: [], 'sign-ins': [], entries: [] }
  #used = 0
  #fullUntil = 0
  #connecting: Promise<void> | undefined
  /** Whether connections ask for `statement_timeout`, which a pooler may refuse. */
  #hasTimeLimit = true
  #isClosed = false

  constructor (hosts: Hosts) {
    this.hosts = hosts
  }

  /** Loads the driver, and connects to a URL in the background. */
  static async open (url: string): Promise<Pool> {
    const { default: driver } = await import('postgres').catch(notLoaded('postgres', 'The store'))
    const pool = new Pool(new Hosts(driver, url))
    pool.connect()
    return pool
  }

  /**
   * Connects before the first statement. One that comes meanwhile waits for this connection, and
   * fails with it. Until one uses it, it does not keep the process alive.
   */
  connect (): void {
    const connecting = this.#send(client => client.unsafe('select 1'), { isRead: true })
      .then(() => { this.unref() })
      .finally(() => { this.#connecting = undefined })
    this.#connecting = connecting
    Promise.allSettled([connecting])
  }

  /** Lets the process end until the next statement. */
  unref (): void {
    for (const connection of this.#idle) connection.unref()
  }

  /**
   * Runs a statement when a connection is free. A statement whose connection is lost may have been
   * executed: only one that reads is sent again, unless the connection was new.
   */
  async run<T> (statement: Statement<T>, how: How = {}, deadline = Date.now() + TIMEOUT_MS): Promise<T> {
    await this.#connecting
    if (this.#used < this.#size) this.#used++
    else await new Promise<void>(resolve => { this.#waiting.push(resolve) })
    let isRefused = false
    try {
      // The caller has been told that the statement failed: it must not run any more.
      if (Date.now() >= deadline) {
        throw new TimeoutError(`no connection became free within ${TIMEOUT_MS / 1000} seconds`)
      }
      return await this.#send(statement, how)
    } catch (error) {
      isRefused = postgresFailures.hasNoRoom(error) && this.#connections.size > 0
      if (!isRefused) throw error
      this.#fullUntil = Date.now() + FULL_MS
    } finally {
      // The next statement takes over the place, unless there is no connection for it.
      const next = isRefused ? undefined : this.#waiting.shift()
      if (next === undefined) this.#used--
      else next()
    }
    return this.run(statement, how, deadline)
  }

  get #size (): number {
    return Date.now() < this.#fullUntil ? Math.max(this.#connections.size, 1) : this.hosts.max
  }

  /**
   * Runs a short statement of a batch. Those of one turn of the event loop are sent together on one
   * connection: each socket that is written to costs more than a statement does.
   */
  batched<T> (batch: Batch, statement: Statement<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const run = async (client: postgres.Sql): Promise<unknown> => {
        try {
          resolve(await statement(client))
        } catch (error) {
          if (!postgresFailures.isAnswer(error)) throw error
          if (postgresFailures.isOfConnection(error)) return error
          reject(error)
        }
      }
      if (this.#batches[batch].push({ run, reject }) === 1) setImmediate(() => { this.#runBatch(batch) })
    })
  }

  #runBatch (batch: Batch): void {
    let statements = this.#batches[batch]
    this.#batches[batch] = []
    const runAll = async (client: postgres.Sql): Promise<void> => {
      const errors = await Promise.all(statements.map(({ run }) => run(client)))
      statements = statements.filter((_, index) => errors[index] !== undefined)
      for (const error of errors) if (error !== undefined) throw error
    }
    this.run(runAll, { isRead: batch === 'reads' })
      .catch((error: unknown) => { for (const { reject } of statements) reject(error) })
  }

  async close (): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#connections].map(connection => connection.close()))
  }

  async #send<T> (statement: Statement<T>, how: How, deadline = Date.now() + ANSWER_MS): Promise<T> {
    const idle = await this.#idleConnection()
    if (this.#isClosed) throw new Error('the store is closed')
    const connection = idle ?? new Connection(this.hosts, { hasTimeLimit: this.#hasTimeLimit })
    this.#connections.add(connection)
    try {
      const answer = connection.run(statement)
      const result = await (how.isLong ? answer : withTimeout(deadline - Date.now(), answer, 'Postgres'))
      this.#idle.push(connection)
      return result
    } catch (error) {
      // What it took over when it was opened may be over. The statement is rolled back.
      const isStale = postgresFailures.isOfConnection(error) && idle !== undefined && idle.age >= YOUNG_MS
      const isKept = postgresFailures.isAnswer(error) && !isStale
      if (isKept) this.#idle.push(connection)
      else if (postgresFailures.hasNoRoom(error)) this.#drop(connection)
      else this.#lose(connection)
      // The server refuses the connection, before it is sent a statement.
      if (connection.options.hasTimeLimit && postgresFailures.refusesTimeLimit(error)) this.#hasTimeLimit = false
      else if (isKept || idle === undefined || error instanceof TimeoutError || !(isStale || how.isRead)) throw error
      return await this.#send(statement, how, deadline)
    }
  }

  async #idleConnection (): Promise<Connection | undefined> {
    const connection = this.#idle.pop()
    if (connection === undefined) return
    if (!connection.isOld && await connection.works()) return connection
    if (connection.isOld) this.#drop(connection)
    else this.#lose(connection)
  }

  /** Drops a connection, and the idle ones, which have probably failed too. */
  #lose (connection: Connection): void {
    for (const lost of [connection, ...this.#idle]) this.#drop(lost)
    this.#idle = []
  }

  #drop (connection: Connection): void {
    this.#connections.delete(connection)
    connection.drop()
  }
}
