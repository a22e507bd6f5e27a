import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { freePort } from './loopback.js'

/** Debian has it where only root looks. */
const PATH = `${process.env.PATH}:/usr/sbin`

/** Whether PgBouncer is installed. */
export function hasPgBouncer (): boolean {
  try {
    execFileSync('pgbouncer', ['--version'], { env: { PATH } })
    return true
  } catch {
    return false
  }
}

/** Starts PgBouncer in transaction mode before a database, with a pool of so many connections, and resolves to the URL of the database behind it. */
export async function startPgBouncer (t: Test, database: string, { connections }: { connections: number }): Promise<string> {
  const { hostname, port, username, password, pathname } = new URL(database)
  const folder = mkdtempSync(join(tmpdir(), 'svc-auth-pgbouncer-'))
  const listenPort = await freePort()
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(file, `
[databases]
pooled = host=${hostname} port=${port} dbname=${pathname.slice(1)} user=${username} password='${decodeURIComponent(password)}'
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${connections}
`)
  // It does not run as root.
  chmodSync(folder, 0o755)
  const user = process.getuid?.() === 0 ? ['--user', 'nobody'] : []
  const bouncer = spawn('pgbouncer', [...user, file], { env: { PATH }, stdio: ['ignore', 'ignore', 'pipe'] })
  t.teardown(async () => {
    await end(bouncer)
    rmSync(folder, { recursive: true })
  })
  for await (const line of createInterface(bouncer.stderr)) {
    if (line.includes('process up')) break
  }
  bouncer.stderr.resume()
  return `postgres://app@127.0.0.1:${listenPort}/pooled`
}

async function end (child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}
