import { Socket } from 'node:net'
import type postgres from 'postgres'
import { type Host, type PostgresSettings, postgresSettings } from '../postgres-url.js'
import { otherEncoding } from './failures.js'

/** The time of all hosts to let a connection in; the statement has the rest of the call. */
const CONNECT_MS = 4000

const OPTIONS = {
  max: 1,
  // A sign-in waits for the connection.
  backoff: () => 0,
  // The timer of a lifetime would outlive a dropped connection, and keep the process from ending.
  max_lifetime: null,
  // Array types are not used, and a failure to fetch them could not be caught.
  fetch_types: false,
  onnotice: () => {}
}

/** Less than a call: the server must not finish a statement that was reported as failed. */
const STATEMENT_TIMEOUT_MS = 4000

const CLOSED = 'Postgres closed the connection'

export interface ConnectionOptions {
  /** Whether the server is asked to limit the time of statements. */
  hasTimeLimit: boolean
  notified?: (payload: string) => void
  /** Called when a connection that worked is lost. */
  lost?: () => void
}

/** The hosts of a URL, which all connections of a store share. */
export class Hosts {
  readonly driver: typeof postgres
  readonly settings: PostgresSettings
  readonly max: number
  /** The time of one host: its share, or less where `connect_timeout` of the URL says so. */
  readonly connectTimeout: number
  #first = 0

  constructor (driver: typeof postgres, url: string) {
    this.driver = driver
    const { hosts, options } = this.settings = postgresSettings(url)
    const { max, connect_timeout: seconds } = driver({ ...options }).options
    this.max = Number(max) || 10
    this.connectTimeout = Math.min(CONNECT_MS / hosts.length, seconds > 0 ? seconds * 1000 : Infinity)
  }

  /** The hosts, the one that worked last first. */
  inOrder (): Host[] {
    const { hosts } = this.settings
    return [...hosts.slice(this.#first), ...hosts.slice(0, this.#first)]
  }

  worked (host: Host): void {
    this.#first = this.settings.hosts.indexOf(host)
  }
}

/**
 * One connection to one host: a client of the driver with a pool of one, which connects once, with
 * its first statement. The driver would connect again after a failure, but with leftovers of the
 * failed statement, by which the next one fails or hangs.
 *
 * @see https://github.com/porsager/postgres/issues/1223 and the pull request 1209
 */
export class HostConnection {
  isLost = false
  readonly #host: Host
  readonly #client: postgres.Sql
  readonly #dropped = new AbortController()
  #socket: Socket | undefined
  #hasWorked = false

  constructor ({ driver, settings, connectTimeout }: Hosts, host: Host, options: ConnectionOptions) {
    const { hasTimeLimit, notified, lost } = options
    this.#host = host
    const timeLimit = hasTimeLimit && { statement_timeout: STATEMENT_TIMEOUT_MS }
    const clientOptions = {
      ...settings.options,
      ...settings.encryptionTo(host),
      ...OPTIONS,
      // One alone: the driver would ignore the failure of one among several.
      host: host.host,
      port: host.port,
      connect_timeout: connectTimeout / 1000,
      connection: { application_name: 'fastify-svc-auth', ...timeLimit, ...settings.connection },
      socket: () => this.#connect(),
      onparameter: (name: string, value: string) => {
        if (name !== 'server_encoding' || value === 'UTF8') return
        // Before a statement is sent.
        this.#socket?.destroy()
        throw otherEncoding(value)
      },
      onclose: () => {
        this.isLost = true
        if (this.#hasWorked) lost?.()
      },
      ...(notified && { onnotify: (_channel: string, payload: string) => { notified(payload) } })
    }
    this.#client = driver(clientOptions)
  }

  async run<T> (statement: (client: postgres.Sql) => Promise<T>): Promise<T> {
    this.#socket?.ref()
    const result = await statement(this.#client)
    this.#hasWorked = true
    return result
  }

  unref (): void {
    this.#socket?.unref()
  }

  /** Closes the connection when its statement is done; within five seconds. */
  async close (): Promise<void> {
    await this.#client.end({ timeout: 5 })
  }

  /** The driver waits for the server to hang up; the process does not. */
  drop (): void {
    this.#dropped.abort(new Error('the connection is given up'))
    this.#socket?.unref()
    Promise.allSettled([this.#client.end({ timeout: 0 })])
  }

  #connect (): Socket {
    this.#dropped.signal.throwIfAborted()
    // The driver tries for ever to reach a server that hangs up without an error.
    if (this.#socket !== undefined) throw new Error(CLOSED)
    const { host, port } = this.#host
    const socket = this.#socket = new Socket()
    // When the driver listens for errors: some addresses fail in the next tick.
    queueMicrotask(() => {
      socket.connect(host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port })
    })
    // After an end without an error the driver would connect again at once (its issue 1193).
    socket.once('end', () => { socket.destroy(new Error(CLOSED)) })
    return Object.assign(socket, { host, port })
  }
}
