import { randomInt } from 'node:crypto'
import type postgres from 'postgres'
import { withTimeout } from '../../base/with-timeout.js'
import { isOfEachHost } from './failures.js'
import { type ConnectionOptions, HostConnection, type Hosts } from './host-connection.js'

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
        if (this.#isOver || isOfEachHost(error)) throw error
        failure = error
      }
    }
    throw failure
  }
}
