import { Socket } from 'node:net'
import type postgres from 'postgres'
import type { Host } from '../postgres-url.js'
import { otherEncoding } from './failures.js'
import type { Hosts } from './hosts.js'

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

/** Settings of the URL go before this one. */
const APPLICATION_NAME = 'fastify-svc-auth'

/**
 * The server gives up before the store does: it must not finish a statement that was reported as
 * failed.
 */
const STATEMENT_TIMEOUT_MS = 4000

const CLOSED = 'Postgres closed the connection'

export interface ConnectionOptions {
  /** Whether the server is asked to limit the time of statements. */
  hasTimeLimit: boolean
  /** Called with the payload of each notification. */
  notified?: (payload: string) => void
  /** Called when a connection that worked is lost. */
  lost?: () => void
}

/**
 * One connection to one host: a client of the driver with a pool of one. It connects once, with its
 * first statement; after a failure it must be dropped. The driver would connect again, but with
 * leftovers of the failed statement, by which the next one fails or hangs.
 *
 * @see https://github.com/porsager/postgres/issues/1223 and the pull request 1209
 */
export class HostConnection {
  readonly #host: Host
  readonly #client: postgres.Sql
  readonly #dropped = new AbortController()
  #socket: Socket | undefined
  #hasWorked = false
  #isLost = false

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
      connection: { application_name: APPLICATION_NAME, ...timeLimit, ...settings.connection },
      socket: () => this.#connect(),
      onparameter: (name: string, value: string) => {
        if (name !== 'server_encoding' || value === 'UTF8') return
        // Before a statement is sent.
        this.#socket?.destroy()
        throw otherEncoding(value)
      },
      onclose: () => {
        this.#isLost = true
        if (this.#hasWorked) lost?.()
      },
      ...(notified && { onnotify: (_channel: string, payload: string) => { notified(payload) } })
    }
    this.#client = driver(clientOptions)
  }

  /** Whether the server has closed the connection. */
  get isLost (): boolean {
    return this.#isLost
  }

  async run<T> (statement: (client: postgres.Sql) => Promise<T>): Promise<T> {
    this.#socket?.ref()
    const result = await statement(this.#client)
    this.#hasWorked = true
    return result
  }

  /** Lets the process end until the next statement. */
  unref (): void {
    this.#socket?.unref()
  }

  /** Closes the connection when its statement is done; within five seconds. */
  async close (): Promise<void> {
    await this.#client.end({ timeout: 5 })
  }

  /** Drops the connection. The driver waits for the server to hang up; the process does not. */
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
    // After an end without an error the driver would connect again at once, and again (its issue
    // 1193).
    socket.once('end', () => { socket.destroy(new Error(CLOSED)) })
    return Object.assign(socket, { host, port })
  }
}
