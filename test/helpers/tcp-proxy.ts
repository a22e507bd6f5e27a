import { once } from 'node:events'
import { type Socket, connect, createServer } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Test } from 'tap'
import { listening } from './loopback.js'

/**
 * What becomes of a connection: it works, it is closed at once (with TLS, after the handshake), its client is refused if it asks for a
 * time limit, as by a pooler, hears nothing, or nothing any more once Postgres is ready.
 */
type Fate = 'works' | 'is closed' | 'takes no time limit' | 'is silent' | 'falls silent when ready'

/** With this Postgres lets a client in: ReadyForQuery, no transaction. */
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49])

/** What PgBouncer answers to a startup parameter that it does not know (Protocol, message formats: ErrorResponse). */
const REFUSAL = Buffer.concat([Buffer.from('E\0\0\0\0'), Buffer.from('SFATAL\0VFATAL\0C08P01\0Munsupported startup parameter: statement_timeout\0\0')])
REFUSAL.writeInt32BE(REFUSAL.length - 1, 1)

/** A connection of a client. */
interface Line {
  readonly client: Socket
  readonly server: Socket
  /** Whether nothing comes through any more. */
  isSilent: boolean
  isAnswered: boolean
}

/** A network in front of a Postgres server, which can fail. */
export interface TcpProxy {
  /** The URL of the server, through this network. */
  readonly url: string
  /** How many connections came in. */
  connections: number
  /** The names under which clients have greeted it, with TLS. */
  readonly serverNames: string[]
  /** What becomes of the connections to come. */
  fate: Fate
  /** How often a client has sent something and had an answer before it sent more. */
  roundTrips: number
  /** Hears what clients send, and on which connection. */
  hear: (data: Buffer, line: Line) => void
  /** From now on nothing comes through on the connections that there are, not even that they are closed. */
  silence (): void
  /** Resets the connections that there are. */
  reset (): void
  /** Ends the connections that there are, as a server does that says nothing. */
  end (): void
}

/** Starts one in front of the server of a URL; it ends with the test `t`. With a certificate, it speaks TLS with the client. */
export async function startProxy (t: Test, target: string, certificate?: { key: string, cert: string }): Promise<TcpProxy> {
  const { hostname, port } = new URL(target)
  const lines = new Set<Line>()

  const listener = createServer({ allowHalfOpen: true }, async socket => {
    proxy.connections++
    const { fate } = proxy
    const client = certificate === undefined ? socket : await secured(socket)
    const server = connect(Number(port), hostname)
    const line: Line = { client, server, isSilent: fate === 'is silent', isAnswered: true }
    lines.add(line)
    client.on('error', () => {})
      .on('data', data => {
        proxy.hear(data, line)
        if (line.isAnswered) proxy.roundTrips++
        line.isAnswered = false
        if (fate === 'takes no time limit' && data.includes('statement_timeout\0')) return client.end(REFUSAL)
        if (!line.isSilent) server.write(data)
      })
      .once('end', () => { if (!line.isSilent) server.end() })
      .once('close', () => { server.destroy(); lines.delete(line) })
    server.on('error', () => {})
      .on('data', data => {
        line.isAnswered = true
        if (!line.isSilent) client.write(data)
        line.isSilent ||= fate === 'falls silent when ready' && data.includes(READY)
      })
      .once('close', () => { if (!line.isSilent) client.destroy() })
    const close = () => { client.end(() => { client.destroy() }) }
    if (fate === 'is closed' && client === socket) close()
    else if (fate === 'is closed') client.once('secure', close)
  })
  /** Grants what every client asks for that wants TLS. */
  const secured = async (socket: Socket): Promise<Socket> => {
    await once(socket, 'data')
    socket.write('S')
    return new TLSSocket(socket, { isServer: true, ...certificate, SNICallback (name, done) { proxy.serverNames.push(name); done(null) } })
  }
  const ownPort = await listening(listener)
  t.teardown(async () => {
    listener.close()
    for (const { client } of lines) client.destroy()
    await once(listener, 'close')
  })

  const proxy: TcpProxy = {
    url: Object.assign(new URL(target), { host: `127.0.0.1:${ownPort}` }).href,
    connections: 0,
    serverNames: [],
    fate: 'works',
    roundTrips: 0,
    hear () {},
    silence () { for (const line of lines) line.isSilent = true },
    reset () { for (const { client } of lines) client.resetAndDestroy() },
    end () { for (const { client } of lines) client.end() }
  }
  return proxy
}
