import type postgres from 'postgres'

/** A host of a URL. */
export interface Host {
  readonly host: string
  readonly port: number
  /** The path of a Unix socket, which is used instead; the driver has false without one. */
  readonly path: string | false | undefined
}

/**
 * How long the hosts may take to let a connection in, all of them together. It is less than a call,
 * so that the statement has the rest.
 */
const CONNECT_MS = 4000

/** The hosts of a URL, which all connections of a store share. */
export class Hosts {
  readonly driver: typeof postgres
  readonly url: string
  /** The number of connections that a pool may have. */
  readonly max: number
  /**
   * How long one host may take to let a connection in, in milliseconds: its share of the time, or
   * less where `connect_timeout` of the URL says so.
   */
  readonly connectTimeout: number
  readonly #hosts: readonly Host[]
  #first = 0

  constructor (driver: typeof postgres, url: string) {
    this.driver = driver
    this.url = url
    const { host, port, path, max, connect_timeout: seconds } = driver(url).options
    this.max = Number(max) || 10
    const addresses = addressesIn(url) ?? { host, port }
    this.#hosts = addresses.host.map((host, index) => ({ host, port: Number(addresses.port[index]), path }))
    this.connectTimeout = Math.min(CONNECT_MS / this.#hosts.length, seconds > 0 ? seconds * 1000 : Infinity)
  }

  /** The hosts in the order in which a connection asks them: the one that worked last is first. */
  inOrder (): Host[] {
    return [...this.#hosts.slice(this.#first), ...this.#hosts.slice(0, this.#first)]
  }

  /** Notes that a host let a connection in. */
  worked (host: Host): void {
    this.#first = this.#hosts.indexOf(host)
  }
}

/**
 * Parses the hosts and ports of a URL with an IPv6 address, which the driver would split at its
 * first colon.
 */
function addressesIn (url: string): { host: string[], port: number[] } | undefined {
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
