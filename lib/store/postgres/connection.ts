import { type Socket, connect } from 'node:net'
import type postgres from 'postgres'

const OPTIONS = {
  max: 1,
  connect_timeout: 4,
  // Whoever signs in is waiting.
  backoff: () => 0,
  // Its timer would go on when the connection is given up, and keep the process from ending.
  max_lifetime: null,
  // We have no use for array types, and nobody could catch a failure to fetch them.
  fetch_types: false,
  onnotice: () => {},
  // Parameters of the URL go before these. The server gives up before the store does, so that nothing goes on there for nobody.
  connection: { application_name: 'fastify-svc-auth', statement_timeout: 4000 }
}

/** Where the driver is to connect to; `path` is that of a Unix socket. */
interface Address {
  readonly host: readonly string[]
  readonly port: readonly number[]
  readonly path: string | false
}

/**
 * One connection: a client of the driver with a pool of one. To be dropped after a failure: the driver would connect again, but with
 * leftovers of what it was doing, which fail the next statement or make it hang.
 *
 * @see https://github.com/porsager/postgres/issues/1223 and the pull request 1209
 */
export class Connection {
  readonly client: postgres.Sql
  readonly #dropped = new AbortController()
  #socket: Socket | undefined
  #attempts = 0

  constructor (driver: typeof postgres, url: string) {
    const options = { ...OPTIONS, socket: (address: Address) => this.#connect(address) }
    this.client = driver(url, options)
  }

  /** Ends it in order, when the statement on it is through; in a few seconds at most. */
  async close (): Promise<void> {
    await this.client.end({ timeout: 5 })
    this.drop()
  }

  /** Gives it up. The driver goes on waiting for the server to hang up; the process need not, for one that says nothing. */
  drop (): void {
    this.#dropped.abort(new Error('the connection is given up'))
    this.#socket?.unref()
    Promise.allSettled([this.client.end({ timeout: 0 })])
  }

  #connect ({ host, port, path }: Address): Socket {
    this.#dropped.signal.throwIfAborted()
    // Of several hosts, each has its turn.
    const turn = this.#attempts++ % host.length
    const address = { host: host[turn], port: Number(port[turn]) }
    const socket = this.#socket = path === false ? connect(address) : connect(path)
    // An end without an error is, to the driver, no reason not to connect again at once, and again (its issue 1193).
    socket.once('end', () => { socket.destroy(new Error('Postgres closed the connection')) })
    return Object.assign(socket, address)
  }
}
