import { type ChildProcess, fork } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { drizzle } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js'
import Fastify from 'fastify'
import pg from 'pg'
import postgres from 'postgres'
import type { Test } from 'tap'
import authPlugin, { SqlAuthStore, type SqlEngine } from '../../lib/index.js'
import { SESSION_SECRET } from '../helpers/app.js'

/** What the store of a process is opened on. */
export type Engine = 'url' | 'client' | 'drizzle' | 'drizzle-postgres-js'

type Message = { revoked: string } | { tried: string }

const ENGINES: Record<Engine, (url: string) => { target: string | SqlEngine, close: () => Promise<void> }> = {
  url: target => ({ target, close: async () => {} }),
  client: url => {
    const client = clientOf(url)
    return { target: client, close: () => client.end({ timeout: 0 }) }
  },
  'drizzle-postgres-js': url => {
    const client = clientOf(url)
    return { target: drizzlePostgresJs(client), close: () => client.end({ timeout: 0 }) }
  },
  drizzle: url => {
    const pool = new pg.Pool({ connectionString: url }).on('error', () => {})
    return { target: drizzle(pool), close: () => pool.end() }
  }
}

/** When a connection ends while the package fetches array types, nobody handles its rejection: its issue 1192. */
const clientOf = (url: string) => postgres(url, { onnotice: () => {}, fetch_types: false })

/** A process of an application, and whom its channel has announced. */
export class RevokeProcess extends EventEmitter<{ revoked: [] }> {
  readonly revoked: string[] = []
  readonly #child: ChildProcess
  readonly #exit: Promise<unknown[]>

  constructor (child: ChildProcess) {
    super()
    this.#child = child
    this.#exit = once(child, 'exit')
    child.on('message', (message: Message | 'ready') => {
      if (message === 'ready' || !('revoked' in message)) return
      this.revoked.push(message.revoked)
      this.emit('revoked')
    })
  }

  static async start (t: Test, engine: Engine, url: string): Promise<RevokeProcess> {
    const child = fork(fileURLToPath(import.meta.url), [engine, url], { execArgv: process.execArgv })
    const started = new RevokeProcess(child)
    t.teardown(() => started.end())
    await once(child, 'message')
    return started
  }

  /** Ends all sessions of users, all at once; resolves when each has succeeded or failed. */
  async signOut (userIds: readonly string[]): Promise<void> {
    const open = new Set(userIds)
    await new Promise<void>((resolve, reject) => {
      this.#exit.then(([code]) => { reject(new Error(`the application ended with ${String(code)}`)) })
      const listener = (message: Message): void => {
        if (!('tried' in message)) return
        open.delete(message.tried)
        if (open.size > 0) return
        this.#child.off('message', listener)
        resolve()
      }
      this.#child.on('message', listener)
      this.#child.send(userIds)
    })
  }

  signal (signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Lets the process go: resolves to its exit code. */
  async end (): Promise<unknown> {
    if (this.#child.connected) this.#child.disconnect()
    const [code] = await this.#exit
    return code
  }
}

// As a program: an application that ends sessions as it is told, and ends by itself when it is let go.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , engine, url = ''] = process.argv
  const { target, close } = ENGINES[engine as Engine](url)
  const app = Fastify()
  await app.register(authPlugin, { session: { secret: SESSION_SECRET }, store: new SqlAuthStore(target) })
  const tell = (message: Message): void => { process.send?.(message) }
  app.auth.channel.on('revoke', revoked => { tell({ revoked }) })
  await app.ready()
  process.on('message', (userIds: string[]) => {
    for (const userId of userIds) app.auth.signOutEverywhere(userId).catch(() => {}).then(() => { tell({ tried: userId }) })
  })
  process.once('disconnect', async () => {
    await app.close()
    await close()
  })
  process.send?.('ready')
}
