import { randomInt } from 'node:crypto'
import { Socket } from 'node:net'
import type postgres from 'postgres'
import { withTimeout } from '../../base/concurrency.js'
import { type Host, type PostgresSettings, postgresSettings } from '../sql-target.js'
import { otherEncoding, postgresFailures } from './failures.js'

/** A router may have forgotten a connection that was not used for so long. */
const IDLE_MS = 15_000

/** The longest time of a connection, which keeps the settings and rights of when it was opened. */
const LIFETIME_MS = 3_600_000

/** How long the server may take to answer on such a connection. */
const PROBE_MS = 1000

type SessionAttrs = 'read-write' | 'primary' | 'read-only' | 'standby'

type State = Record<'isReadOnly' | 'isStandby', boolean>

const STATE =
  'select current_setting(\'transaction_read_only\')::bool as "isReadOnly", pg_is_in_recovery() as "isStandby"'

const IS: Readonly<Record<SessionAttrs, [name: keyof State, is: boolean]>> = {
  'read-write': ['isReadOnly', false],
  'read-only': ['isReadOnly', true],
  primary: ['isStandby', false],
  standby: ['isStandby', true]
}

/** One connection to the first host that answers. After a failure it must be dropped. */
export class Connection {
  readonly options: ConnectionOptions
  readonly #hosts: Hosts
  #found: HostConnection | undefined
  #latest: HostConnection | undefined
  readonly #openedAt = Date.now()
  // Processes that started together do not connect together again.
  readonly #lifetime = randomInt(LIFETIME_MS / 2, LIFETIME_MS)
  #usedAt = 0
  #isOver = false

  constructor (hosts: Hosts, options: ConnectionOptions) {
    this.#hosts = hosts
    this.options = options
  }

  /** Runs a statement. Without a connection, each host is tried once. */
  async run<T> (statement: (client: postgres.Sql) => Promise<T>): Promise<T> {
    this.#found ??= await this.#connect()
    const result = await this.#found.run(statement)
    this.#usedAt = Date.now()
    return result
  }

  get age (): number {
    return Date.now() - this.#openedAt
  }

  get isOld (): boolean {
    return this.age >= this.#lifetime
  }

  /** Whether a connection that was used still works; one that was idle for long is probed. */
  async works (): Promise<boolean> {
    if (this.#found?.isLost !== false) return false
    if (Date.now() < this.#usedAt + IDLE_MS) return true
    const probe = this.run(client => client.unsafe('select 1'))
    return withTimeout(PROBE_MS, probe, 'Postgres').then(() => true, () => false)
  }

  unref (): void {
    this.#found?.unref()
  }

  async close (): Promise<void> {
    this.#isOver = true
    await this.#found?.close()
    this.drop()
  }

  drop (): void {
    this.#isOver = true
    this.#latest?.drop()
  }

  async #connect (): Promise<HostConnection> {
    const { sessionAttrs: attrs } = this.#hosts.settings
    if (attrs !== 'prefer-standby') return this.#connectTo(attrs)
    return this.#connectTo('standby').catch(async () => this.#connectTo(undefined))
  }

  async #connectTo (attrs: SessionAttrs | undefined): Promise<HostConnection> {
    let failure: unknown
    const hosts = this.#hosts.inOrder()
    for (const host of hosts) {
      const connection = this.#latest = new HostConnection(this.#hosts, host, this.options)
      if (hosts.length === 1 && attrs === undefined) return connection
      try {
        // Not the caller's statement, which would run twice if a host answered it too late. Asked
        // here: a connection that ends while the driver asks would end the process.
        const answer = connection.run(client => client.unsafe<State[]>(STATE))
        const name = `${host.host}:${host.port}`
        const [state] = await withTimeout(this.#hosts.connectTimeout, answer, `Postgres at ${name}`)
        if (attrs !== undefined && state?.[IS[attrs][0]] !== IS[attrs][1]) {
          throw new Error(`Postgres at ${name} is not what target_session_attrs=${attrs} asks for`)
        }
        this.#hosts.worked(host)
        return connection
      } catch (error) {
        connection.drop()
        if (this.#isOver || postgresFailures.isOfEachHost(error)) throw error
        failure = error
      }
    }
    throw failure
  }
}

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

interface ConnectionOptions {
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
