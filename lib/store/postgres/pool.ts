import type postgres from 'postgres'
import { PATIENCE_MS, SilenceError, inTime } from '../../base/in-time.js'
import { Connection } from './connection.js'
import { isAnswer, refusesTimeLimit } from './failures.js'

/** How long the server may take to answer: less than a call may take, so that the next one finds the pool mended. */
const ANSWER_MS = 4500

/** Connections to a URL, each for one statement at a time: no statement waits behind the lock of another one. */
export class Pool {
  readonly #size: number
  readonly #open: () => Connection
  readonly #connections = new Set<Connection>()
  #idle: Connection[] = []
  readonly #waiting: Array<() => void> = []
  #used = 0
  /** A pooler may refuse a connection that asks for it. */
  #hasTimeLimit = true
  #isClosed = false

  /** There are ten at most, or as many as the parameter `max` of the URL says. */
  constructor (driver: typeof postgres, url: string) {
    this.#size = Number(driver(url).options.max) || 10
    this.#open = () => new Connection(driver, url, { hasTimeLimit: this.#hasTimeLimit })
  }

  /** Runs a statement when it is its turn. */
  async run<T> (statement: (client: postgres.Sql) => Promise<T>): Promise<T> {
    const deadline = Date.now() + PATIENCE_MS
    if (this.#used === this.#size) await new Promise<void>(resolve => { this.#waiting.push(resolve) })
    else this.#used++
    try {
      // Its caller has been told that it failed: it must not be done any more.
      if (Date.now() >= deadline) throw new SilenceError(`no connection became free within ${PATIENCE_MS / 1000} seconds`)
      return await this.#runOn(this.#connection(), statement)
    } finally {
      // Whoever is next takes the place over.
      const next = this.#waiting.shift()
      if (next === undefined) this.#used--
      else next()
    }
  }

  async close (): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#connections].map(connection => connection.close()))
  }

  async #runOn<T> (connection: Connection, statement: (client: postgres.Sql) => Promise<T>): Promise<T> {
    try {
      const result = await inTime(ANSWER_MS, connection.run(statement), 'Postgres')
      this.#idle.push(connection)
      return result
    } catch (error) {
      if (isAnswer(error)) this.#idle.push(connection)
      else this.#lose(connection)
      if (!connection.hasTimeLimit || !refusesTimeLimit(error)) throw error
      this.#hasTimeLimit = false
      return await this.#runOn(this.#connection(), statement)
    }
  }

  #connection (): Connection {
    if (this.#isClosed) throw new Error('the store is closed')
    const connection = this.#idle.shift() ?? this.#open()
    this.#connections.add(connection)
    return connection
  }

  /** What has happened to a connection has probably happened to those that lie idle. Those in use will tell. */
  #lose (connection: Connection): void {
    for (const lost of [connection, ...this.#idle]) {
      this.#connections.delete(lost)
      lost.drop()
    }
    this.#idle = []
  }
}
