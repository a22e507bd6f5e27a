import { once } from 'node:events'
import { type IncomingMessage, createServer } from 'node:http'
import { type Socket, connect } from 'node:net'
import type { Duplex } from 'node:stream'
import root from 'tap'
import { listening } from '../helpers/loopback.js'

let starting: Promise<string> | undefined

/**
 * Starts a proxy by which browsers find each host on this machine, with https: and the port that they ask for, and resolves to its host
 * and port. The internet is out of reach.
 */
export async function startProxy (): Promise<string> {
  starting ??= start()
  return starting
}

async function start (): Promise<string> {
  const proxy = createServer()
  const sockets = new Set<Socket | Duplex>()
  root.teardown(async () => {
    for (const socket of sockets) socket.destroy()
    proxy.close()
    await once(proxy, 'close')
  })
  proxy.on('connect', ({ url }: IncomingMessage, client: Duplex) => {
    const host = connect(Number(new URL(`https://${url}`).port), '127.0.0.1', () => client.write('HTTP/1.1 200 OK\r\n\r\n'))
    host.pipe(client).pipe(host)
    for (const socket of [host, client]) {
      sockets.add(socket)
      socket.on('error', () => { host.destroy(); client.destroy() }).on('close', () => sockets.delete(socket))
    }
  })
  return `127.0.0.1:${await listening(proxy)}`
}
