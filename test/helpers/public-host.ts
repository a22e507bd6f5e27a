import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import type { Test } from 'tap'
import { isPublicAddress } from '../../lib/core/public-addresses.js'
import { INTERNET, type Network } from '../../lib/core/public-fetch.js'
import { selfSigned } from './certificate.js'
import { listen } from './loopback.js'

/** The only host that {@link publicHost} has a certificate for. */
const HOST = 'client.example'

const certificate = selfSigned(HOST)

/** A server of this machine that passes for one on the internet, and the network in which it does. */
export interface PublicHost {
  readonly origin: string
  readonly network: Network
  /** The names that were resolved. */
  readonly resolved: string[]
  /** Chooses the addresses of all names from now on: first of IPv4, then of IPv6. */
  resolveTo: (ipv4: readonly string[], ipv6?: readonly string[]) => void
  /** The TXT records by their names; an error for name servers that do not answer. */
  readonly texts: Map<string, readonly string[] | Error>
}

/** Lets what is made without a network of its own reach a host of {@link publicHost}, until the end of the test. */
export function replaceInternet (t: Test, network: Network): void {
  const internet = { ...INTERNET }
  Object.assign(INTERNET, network)
  t.teardown(() => {
    for (const name of ['ca', 'timeLimit']) Reflect.deleteProperty(INTERNET, name)
    Object.assign(INTERNET, internet)
  })
}

export async function publicHost (t: Test, answer: RequestListener): Promise<PublicHost> {
  const { key, cert } = await certificate
  const port = await listen(t, createServer({ key, cert }, answer))
  let addresses: ReadonlyArray<readonly string[]> = [['127.0.0.1'], []]
  const resolved: string[] = []
  const texts = new Map<string, readonly string[] | Error>()
  const addressesOf = (family: number) => async (host: string): Promise<string[]> => {
    if (family === 0) resolved.push(host)
    const found = addresses[family] ?? []
    // As a name server answers that has none of a kind.
    if (found.length === 0) throw new Error('ENODATA')
    return [...found]
  }
  return {
    origin: `https://${HOST}:${port}`,
    resolved,
    resolveTo: (ipv4, ipv6 = []) => { addresses = [ipv4, ipv6] },
    texts,
    network: {
      resolver: () => ({ resolve4: addressesOf(0), resolve6: addressesOf(1), resolveTxt: textsIn(texts), cancel: () => {} }),
      isPublic: address => address === '127.0.0.1' || isPublicAddress(address),
      ca: cert,
      timeLimit: 20_000
    }
  }
}

/** Answers as a name server with these records does. */
export function textsIn (records: ReadonlyMap<string, readonly string[] | Error>): (host: string) => Promise<string[][]> {
  return async host => {
    const found = records.get(host) ?? Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })
    if (found instanceof Error) throw found
    // Longer texts come in parts of 255 characters.
    return found.map(text => [text.slice(0, 10), text.slice(10)])
  }
}
