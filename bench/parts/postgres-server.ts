import postgres from 'postgres'
import { databaseName, databaseUrl, startEmbeddedPostgres } from '../../test/helpers/embedded-postgres.js'
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
      const name = databaseName('bench')
      await client.unsafe(`create database ${name} template template0`)
      databases.push(name)
      return databaseUrl(url, name)
    },
    async stop () {
      for (const name of databases) await client.unsafe(`drop database ${name} with (force)`)
      await client.end()
      await stop()
    }
  }
}

async function start () {
  // What Postgres comes with, 128 MB, does not hold a million users, and is not meant for use: its manual has a quarter of the memory.
  return startEmbeddedPostgres(temporaryFolder(), { settings: ['shared_buffers=1GB'] })
}
