import { type Socket, connect } from 'node:net'
import type postgres from 'postgres'

const OPTIONS = {
  max: 1,
  connect_timeout: 4,
  // A sign-in waits for the connection.
  backoff: () => 0,
  // The timer of a lifetime would outlive a dropped connection, and keep the process from ending.
  max_lifetime: null,
  // Array types are not used, and a failure to fetch them could not be caught.
  fetch_types: false,
  onnotice: () => {}
}

/** Parameters of the URL go before this one. */
const APPLICATION_NAME = 'fastify-svc-auth'

/**
 * The server gives up before the store does: it must not finish a statement that was reported as
 * failed.
 */
const STATEMENT_TIMEOUT_MS = 4000

const CLOSED = 'Postgres closed the connection'

/** The hosts that the driver connects to; `path` is that of a Unix socket. */
interface Address {
  readonly host: readonly string[]
  readonly port: readonly number[]
  readonly path: string | false
}

interface ConnectionOptions {
  /** Whether the server is asked to limit the time of statements. */
  hasTimeLimit: boolean
  /** Called with the payload of each notification. */
  notified?: (payload: string) => void
  /** Called when the connection is lost, or could not be made. */
  closed?: () => void
}

/**
 * One connection: a client of the driver with a pool of one. After a failure it must be dropped:
 * the driver would connect again, but with leftovers of the failed statement, by which the next one
 * fails or hangs.
 *
 * @see https://github.com/porsager/postgres/issues/1223 and the pull request 1209
 */
export class Connection {
  /** Whether the server is asked to limit the time of statements. */
  readonly hasTimeLimit: boolean
  readonly #client: postgres.Sql
  readonly #addresses: Pick<Address, 'host' | 'port'> | undefined
  readonly #dropped = new AbortController()
  #socket: Socket | undefined
  #attempts = 0
  #failure: Error | undefined
  #givenUp = Promise.withResolvers<never>()

  constructor (driver: typeof postgres, url: string, { hasTimeLimit, notified, closed }: ConnectionOptions) {
    this.hasTimeLimit = hasTimeLimit
    this.#addresses = addressesIn(url)
    const timeLimit = hasTimeLimit && { statement_timeout: STATEMENT_TIMEOUT_MS }
    const options = {
      ...OPTIONS,
      connection: { application_name: APPLICATION_NAME, ...timeLimit },
      socket: (address: Address) => this.#connect(address),
      ...(notified && { onnotify: (_channel: string, payload: string) => { notified(payload) } }),
      ...(closed && { onclose: closed })
    }
    this.#client = driver(url, options)
  }

  /** Runs a statement. Without a connection, each host of the URL is tried once. */
  async run<T> (statement: (client: postgres.Sql) => Promise<T>): Promise<T> {
    this.#attempts = 0
    this.#failure = undefined
    this.#givenUp = Promise.withResolvers<never>()
    return Promise.race([statement(this.#client), this.#givenUp.promise])
  }

  /** Closes the connection when its statement is done; within five seconds. */
  async close (): Promise<void> {
    await this.#client.end({ timeout: 5 })
    this.drop()
  }

  /** Drops the connection. The driver waits for the server to hang up; the process does not. */
  drop (): void {
    this.#dropped.abort(new Error('the connection is given up'))
    this.#socket?.unref()
    Promise.allSettled([this.#client.end({ timeout: 0 })])
  }

  #connect ({ path, ...parsed }: Address): Socket {
    this.#dropped.signal.throwIfAborted()
    const { host, port } = this.#addresses ?? parsed
    // Each of several hosts is tried once. The driver would try them for ever, and hide the last
    // failure.
    const turn = this.#attempts++
    if (turn >= host.length) {
      const failure = this.#failure ?? new Error(CLOSED)
      this.#givenUp.reject(failure)
      throw failure
    }
    const address = { host: host[turn], port: Number(port[turn]) }
    const socket = this.#socket = path === false ? connect(address) : connect(path)
    socket.once('error', error => { this.#failure = error })
    // After an end without an error the driver would connect again at once, and again (its issue
    // 1193).
    socket.once('end', () => { socket.destroy(new Error(CLOSED)) })
    return Object.assign(socket, address)
  }
}

/**
 * Parses the hosts and ports of a URL with an IPv6 address, which the driver would split at its
 * first colon.
 */
function addressesIn (url: string): Pick<Address, 'host' | 'port'> | undefined {
  const [,, authority = ''] = url.split(/[/?#]/)
  const hosts = authority.slice(authority.lastIndexOf('@') + 1)
  if (!hosts.includes('[')) return undefined
  // The port is what follows the last colon outside of brackets.
  const addresses = hosts.split(',').map(host => host.split(/:(?=\d*$)(?!.*\])/))
  return {
    host: addresses.map(([host = '']) => host.replace(/^\[|\]$/g, '')),
    port: addresses.map(([, port = 5432]) => Number(port))
  }
}
