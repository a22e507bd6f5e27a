import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import { databaseName, databaseUrl, startEmbeddedPostgres } from '../helpers/embedded-postgres.ts'

/**
 * Runs work with the URLs of empty databases, on the server of TEST_POSTGRES_URL, else on one that is started for it.
 *
 * @param {number} count how many databases
 * @param {(...urls: string[]) => Promise<void>} work
 */
export async function withDatabases (count, work) {
  const names = Array.from({ length: count }, () => databaseName('package'))
  await withServer(async server => {
    const client = postgres(server, { max: 1, onnotice: () => {} })
    try {
      for (const name of names) await client.unsafe(`create database ${name} template template0`)
      await work(...names.map(name => databaseUrl(server, name)))
    } finally {
      for (const name of names) await client.unsafe(`drop database if exists ${name} with (force)`)
      await client.end()
    }
  })
}

async function withServer (work) {
  if (process.env.TEST_POSTGRES_URL !== undefined) return work(process.env.TEST_POSTGRES_URL)

  const folder = await mkdtemp(join(tmpdir(), 'svc-auth-postgres-'))
  try {
    const server = await startEmbeddedPostgres(folder, { initdbFlags: ['--no-sync'] })
    try {
      await work(server.url)
    } finally {
      await server.stop()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
