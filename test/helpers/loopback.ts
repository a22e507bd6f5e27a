import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import { type Server, createServer } from 'node:net'
import type { Test } from 'tap'

/** Lets a web server listen on this machine until the end of the test, and resolves to its port. */
export async function listen (t: Test, server: HttpServer | HttpsServer): Promise<number> {
  const port = await listening(server)
  t.teardown(async () => {
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  })
  return port
}

/** Lets a server listen on a free port of this machine, which it resolves to. */
export async function listening (server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('a server that listens on a port has one')
  return address.port
}

/** A port of this machine on which nobody listens. */
export async function freePort (): Promise<number> {
  const server = createServer()
  const port = await listening(server)
  server.close()
  await once(server, 'close')
  return port
}
