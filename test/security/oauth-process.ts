import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import Fastify from 'fastify'
import type { Test } from 'tap'
import authPlugin, { SqlAuthStore } from '../../lib/index.js'
import { SESSION_SECRET } from '../helpers/app.js'
import { addResource, serverOptions } from '../helpers/oauth-app.js'

// As a program: an authorization server on the database of its first argument. It ends when it is let go.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const app = Fastify()
  const options = serverOptions({ device: { clients: ['assistant'] } }, { store: new SqlAuthStore(process.argv[2]), rateLimit: false })
  await app.register(authPlugin, { session: { secret: SESSION_SECRET }, ...options })
  addResource(app)
  process.once('disconnect', () => app.close())
  process.send?.(await app.listen({ host: '127.0.0.1', port: 0 }))
}

export interface TokenAnswer {
  status: number
  body: { access_token: string, refresh_token: string, error?: string }
}

/** A server that runs by itself, which may be killed. */
export class ServerProcess {
  readonly #child: ChildProcess
  readonly #origin: string

  constructor (child: ChildProcess, origin: string) {
    this.#child = child
    this.#origin = origin
  }

  /** Sends a request for tokens; null where no answer came. */
  async token (fields: Record<string, string>): Promise<TokenAnswer | null> {
    const body = new URLSearchParams({ client_id: 'assistant', ...fields })
    try {
      const response = await fetch(`${this.#origin}/auth/oauth/token`, { method: 'POST', body })
      return { status: response.status, body: await response.json() as TokenAnswer['body'] }
    } catch {
      return null
    }
  }

  async refresh (token: string): Promise<TokenAnswer | null> {
    return this.token({ grant_type: 'refresh_token', refresh_token: token })
  }

  /** The status with which the resource answers a token. */
  async ask (token: string): Promise<number> {
    return (await fetch(`${this.#origin}/mcp`, { method: 'POST', headers: { authorization: `Bearer ${token}` } })).status
  }

  async kill (): Promise<void> {
    const exit = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exit
  }

  end (): void {
    if (this.#child.connected) this.#child.disconnect()
  }
}

export async function startServerProcess (t: Test, target: string): Promise<ServerProcess> {
  const child = fork(fileURLToPath(import.meta.url), [target], { execArgv: process.execArgv })
  const exit = once(child, 'exit').then(([code]) => { throw new Error(`the server ended with ${code}`) })
  const [origin] = await Promise.race([once(child, 'message'), exit])
  exit.catch(() => {})
  const server = new ServerProcess(child, String(origin))
  t.teardown(() => { server.end() })
  return server
}
