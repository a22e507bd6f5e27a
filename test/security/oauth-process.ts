import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import Fastify from 'fastify'
import type { Test } from 'tap'
import { ApiKeys } from '../../lib/api-keys.js'
import type { CreatedKey, KeyToCreate } from '../../lib/features/api-keys/made-keys.js'
import authPlugin, { SqlAuthStore } from '../../lib/index.js'
import { SESSION_SECRET } from '../helpers/app.js'
import { addResource, serverOptions } from '../helpers/oauth-app.js'

/** The API keys of the application, which its users make too. */
export const apiKeys = new ApiKeys({ prefix: 'shop', scopes: { 'notes:read': 'Read your notes' }, selfService: true })

// As a program: an authorization server on the database of its first argument. It ends when it is let go.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const app = Fastify()
  const options = serverOptions({ device: { clients: ['assistant'] } }, { store: new SqlAuthStore(process.argv[2]), rateLimit: false, apiKeys })
  await app.register(authPlugin, { session: { secret: SESSION_SECRET }, ...options })
  addResource(app)
  app.get('/notes', { preHandler: app.auth.requireCaller({ by: ['key'] }) }, async request => app.auth.caller(request).id)
  app.post<{ Body: KeyToCreate }>('/keys', async ({ body }) => app.auth.createKey(body, { actor: 'test' }))
  app.delete<{ Params: { id: string } }>('/keys/:id', async ({ params }) => app.auth.endKey(params.id, { actor: 'test' }))
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

  /** The status with which a route answers an API key; null where no answer came. */
  async use (key: string): Promise<number | null> {
    return (await this.#send('GET', '/notes', { headers: { authorization: `Bearer ${key}` } }))?.status ?? null
  }

  /** Makes a key of an owner; the status where it was refused, null where no answer came. */
  async makeKey (owner: string): Promise<CreatedKey | number | null> {
    const body = JSON.stringify({ owner, name: 'Key', scopes: ['notes:read'] })
    const answer = await this.#send('POST', '/keys', { body, headers: { 'content-type': 'application/json' } })
    return answer?.status === 200 ? answer.body as CreatedKey : answer?.status ?? null
  }

  /** Ends a key; whether the answer came. */
  async endKey (id: string): Promise<boolean> {
    return (await this.#send('DELETE', `/keys/${id}`))?.status === 200
  }

  async #send (method: string, path: string, how: RequestInit = {}): Promise<{ status: number, body: unknown } | null> {
    try {
      const response = await fetch(this.#origin + path, { method, ...how })
      const text = await response.text()
      return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : text }
    } catch {
      return null
    }
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
