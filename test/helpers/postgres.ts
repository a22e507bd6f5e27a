import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import postgres from 'postgres'
import root, { type Test } from 'tap'
import { databaseName, databaseUrl, startEmbeddedPostgres } from './embedded-postgres.js'

/** A Postgres server of the test's own, which it may stop and kill. */
export interface PostgresServer {
  /** Makes an empty database and resolves to its URL. */
  createDatabase (): Promise<string>
  /** Sends a signal to all processes of the server: SIGKILL for a crash, SIGSTOP to make it deaf. */
  signal (signal: NodeJS.Signals): void
  /** Starts the server again after it was stopped or killed, with what was committed. */
  start (): Promise<void>
  stop (): Promise<void>
}

/** Makes an empty database on the server of TEST_POSTGRES_URL, else on one that is started for this test file, and resolves to its URL. */
export async function emptyDatabase (t: Test): Promise<string> {
  const server = process.env.TEST_POSTGRES_URL
  if (server === undefined) {
    shared ??= startPostgres(root)
    return (await shared).createDatabase()
  }
  const url = await createDatabaseOn(server)
  t.teardown(() => query(server, `drop database "${new URL(url).pathname.slice(1)}" with (force)`))
  return url
}

/**
 * A connection that closes while a test has stopped the clock would leave the timer of its lifetime,
 * which keeps the process for up to an hour: its `clearTimeout` knows no timer from before.
 */
const OPTIONS = { max_lifetime: null, onnotice: () => {} }

/** A client of the package postgres that ends with the test. */
export function clientOf (t: Test, url: string, options: postgres.Options<{}> = {}): postgres.Sql {
  const client = postgres(url, { ...OPTIONS, ...options })
  // Without a wait for a server that the test has ended.
  t.teardown(() => client.end({ timeout: 0 }))
  return client
}

/** A pool of the package pg that ends with the test. */
export function poolOf (t: Test, url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url })
  // It has ended before its connections are closed: the end of the database may close them first.
  pool.on('error', () => {})
  t.teardown(() => pool.end())
  return pool
}

/** One server for a test file; it ends with the file. */
let shared: Promise<PostgresServer> | undefined

/** Starts a server with an empty data directory; it ends with the test `t`. */
export async function startPostgres (t: Test): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-auth-postgres-'))
  const server = await startEmbeddedPostgres(folder, { initdbFlags: ['--no-sync'], settings: ['max_connections=300'] })
  let isKilled = false
  const signal = (signal: NodeJS.Signals): void => {
    for (const pid of withChildren(Number(readFileSync(join(server.databaseDir, 'postmaster.pid'), 'utf8').split('\n')[0]))) process.kill(pid, signal)
    isKilled ||= signal === 'SIGKILL'
  }
  const start = async (): Promise<void> => {
    await whenOldProcessesAreGone(() => server.start())
    isKilled = false
  }
  const stop = async (): Promise<void> => {
    // embedded-postgres waits for the end of its process, which would have been before; and a server that starts frees what a killed one left.
    if (isKilled) await start()
    await server.stop()
  }

  t.teardown(async () => {
    await stop()
    rmSync(folder, { recursive: true, force: true })
  })
  return { createDatabase: () => createDatabaseOn(server.url), signal, start, stop }
}

/** A process and those that it has started: Postgres has one for each connection. */
function withChildren (pid: number): number[] {
  const processes = execFileSync('ps', ['-A', '-o', 'ppid=,pid='], { encoding: 'utf8' }).matchAll(/(\d+) +(\d+)/g)
  return [pid, ...[...processes].filter(([, parent]) => Number(parent) === pid).map(([,, child]) => Number(child))]
}

/** What served a killed server's connections holds its memory until it notices. */
async function whenOldProcessesAreGone (start: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start()
    } catch (error) {
      if (attempt === 50) throw new Error('Postgres does not start again', { cause: error })
    }
    await wait(100)
  }
}

async function createDatabaseOn (server: string): Promise<string> {
  const name = databaseName('test')
  // The other strategy writes each page to the log, which takes several times as long.
  await query(server, `create database ${name} template template0 strategy file_copy`)
  return databaseUrl(server, name)
}

/** The connections of {@link query}, by URL. One that is not used ends after a second, so that the process can. */
const clients = new Map<string, postgres.Sql>()

/** Runs statements on the one connection that a database has for them: a new one costs more than most statements. */
export async function query (url: string, statement: string): Promise<Array<Record<string, unknown>>> {
  // Not used once it has closed: it would wait to connect again, by a clock that a test may have changed.
  const onclose = (): void => { clients.delete(url) }
  const client = clients.get(url) ?? postgres(url, { ...OPTIONS, max: 1, idle_timeout: 1, onclose })
  clients.set(url, client)
  return (await client.unsafe(statement)).map(row => ({ ...row }))
}
