import type postgres from 'postgres'
import { type Host, type PostgresSettings, postgresSettings } from '../postgres-url.js'

/**
 * How long the hosts may take to let a connection in, all of them together. It is less than a call,
 * so that the statement has the rest.
 */
const CONNECT_MS = 4000

/** The hosts of a URL, which all connections of a store share. */
export class Hosts {
  readonly driver: typeof postgres
  readonly settings: PostgresSettings
  /** The number of connections that a pool may have. */
  readonly max: number
  /**
   * How long one host may take to let a connection in, in milliseconds: its share of the time, or
   * less where `connect_timeout` of the URL says so.
   */
  readonly connectTimeout: number
  #first = 0

  constructor (driver: typeof postgres, url: string) {
    this.driver = driver
    const { hosts, options } = this.settings = postgresSettings(url)
    const { max, connect_timeout: seconds } = driver({ ...options }).options
    this.max = Number(max) || 10
    this.connectTimeout = Math.min(CONNECT_MS / hosts.length, seconds > 0 ? seconds * 1000 : Infinity)
  }

  /** The hosts in the order in which a connection asks them: the one that worked last is first. */
  inOrder (): Host[] {
    const { hosts } = this.settings
    return [...hosts.slice(this.#first), ...hosts.slice(0, this.#first)]
  }

  /** Notes that a host let a connection in. */
  worked (host: Host): void {
    this.#first = this.settings.hosts.indexOf(host)
  }
}
