import type postgres from 'postgres'
import { notLoaded } from '../../base/not-loaded.js'
import { TIMEOUT_MS, TimeoutError, withTimeout } from '../../base/with-timeout.js'
import type { Batch } from '../sql-database.js'
import { Connection } from './connection.js'
import { isAnswer, refusesTimeLimit } from './failures.js'
import { Hosts } from './host-connection.js'

/** The server's time to answer: less than a call, so that the next one finds a repaired pool. */
const ANSWER_MS = 4500

type Statement<T> = (client: postgres.Sql) => Promise<T>

interface BatchedStatement {
  /** Settles the promise of the caller; rejects when the connection failed. */
  run: Statement<void>
  reject: (error: unknown) => void
}

/** Loads the driver, and connects to a URL in the background. */
export async function openPool (url: string): Promise<Pool> {
  const { default: driver } = await import('postgres').catch(notLoaded('postgres', 'The store'))
  const pool = new Pool(new Hosts(driver, url))
  pool.connect()
  return pool
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
  #connecting: Promise<void> | undefined
  /** Whether connections ask for `statement_timeout`, which a pooler may refuse. */
  #hasTimeLimit = true
  #isClosed = false

  constructor (hosts: Hosts) {
    this.hosts = hosts
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
  async run<T> (statement: Statement<T>, { isRead = false } = {}): Promise<T> {
    const deadline = Date.now() + TIMEOUT_MS
    await this.#connecting
    if (this.#used === this.hosts.max) await new Promise<void>(resolve => { this.#waiting.push(resolve) })
    else this.#used++
    try {
      // The caller has been told that the statement failed: it must not run any more.
      if (Date.now() >= deadline) {
        throw new TimeoutError(`no connection became free within ${TIMEOUT_MS / 1000} seconds`)
      }
      return await this.#send(statement, { isRead })
    } finally {
      // The next statement takes over the place.
      const next = this.#waiting.shift()
      if (next === undefined) this.#used--
      else next()
    }
  }

  /**
   * Runs a short statement of a batch. Those of one turn of the event loop are sent together on one
   * connection: each socket that is written to costs more than a statement does.
   */
  batched<T> (batch: Batch, statement: Statement<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const run = async (client: postgres.Sql): Promise<void> => {
        try {
          resolve(await statement(client))
        } catch (error) {
          if (!isAnswer(error)) throw error
          reject(error)
        }
      }
      if (this.#batches[batch].push({ run, reject }) === 1) setImmediate(() => { this.#runBatch(batch) })
    })
  }

  #runBatch (batch: Batch): void {
    const statements = this.#batches[batch]
    this.#batches[batch] = []
    this.run(client => Promise.all(statements.map(({ run }) => run(client))), { isRead: batch === 'reads' })
      .catch((error: unknown) => { for (const { reject } of statements) reject(error) })
  }

  async close (): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#connections].map(connection => connection.close()))
  }

  async #send<T> (statement: Statement<T>, how: { isRead: boolean }, deadline = Date.now() + ANSWER_MS): Promise<T> {
    const idle = await this.#idleConnection()
    if (this.#isClosed) throw new Error('the store is closed')
    const connection = idle ?? new Connection(this.hosts, { hasTimeLimit: this.#hasTimeLimit })
    this.#connections.add(connection)
    try {
      const result = await withTimeout(deadline - Date.now(), connection.run(statement), 'Postgres')
      this.#idle.push(connection)
      return result
    } catch (error) {
      if (isAnswer(error)) this.#idle.push(connection)
      else this.#lose(connection)
      // The server refuses the connection, before it is sent a statement.
      if (connection.options.hasTimeLimit && refusesTimeLimit(error)) this.#hasTimeLimit = false
      else if (!how.isRead || idle === undefined || isAnswer(error) || error instanceof TimeoutError) throw error
      return await this.#send(statement, how, deadline)
    }
  }

  async #idleConnection (): Promise<Connection | undefined> {
    const connection = this.#idle.pop()
    if (connection === undefined || await connection.works()) return connection
    this.#lose(connection)
  }

  /** Drops a connection, and the idle ones, which have probably failed too. */
  #lose (connection: Connection): void {
    for (const lost of [connection, ...this.#idle]) {
      this.#connections.delete(lost)
      lost.drop()
    }
    this.#idle = []
  }
}
