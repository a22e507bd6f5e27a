import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import Fastify from 'fastify'
import type { Test } from 'tap'
import authPlugin, { SqlAuthStore } from '../../lib/index.js'
import { SESSION_SECRET, localProvider } from '../helpers/app.js'

// As a program: an application with a store on the URL of its first argument. It ends when it is let go; an uncaught error ends it
// before that, as in production.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const app = Fastify({ logger: true })
  await app.register(authPlugin, { session: { secret: SESSION_SECRET }, local: localProvider(), store: new SqlAuthStore(process.argv[2]), rateLimit: false })
  app.get('/public', async () => ({ isOpen: true }))
  app.get('/private', { preHandler: app.auth.requireUser }, async request => request.principal)
  app.get('/api', { preHandler: app.auth.requireBearer }, async request => request.token)
  process.once('disconnect', () => app.close())
  process.send?.(await app.listen({ host: '127.0.0.1', port: 0 }))
}

/** An application that runs by itself, and what it has logged. */
export class AppProcess {
  readonly #child: ChildProcess
  readonly #origin: string
  readonly #exit: Promise<unknown[]>
  #cookie = ''
  log = ''

  constructor (child: ChildProcess, origin: string, exit: Promise<unknown[]>) {
    this.#child = child
    this.#origin = origin
    this.#exit = exit
    child.stdout?.setEncoding('utf8').on('data', text => { this.log += text })
  }

  /** Lets it go: resolves to its exit code. */
  async end (): Promise<unknown> {
    if (this.#child.connected) this.#child.disconnect()
    const [code] = await this.#exit
    return code
  }

  async get (path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.#send(path, { headers })
  }

  async post (path: string, body: unknown): Promise<Answer> {
    return this.#send(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  }

  /** Keeps the cookie of the last sign-in. */
  async #send (path: string, { headers, ...init }: RequestInit & { headers: Record<string, string> }): Promise<Answer> {
    const response = await fetch(new URL(path, this.#origin), { ...init, headers: { accept: 'application/json', cookie: this.#cookie, ...headers } })
    const [cookie] = response.headers.getSetCookie()
    if (cookie !== undefined) this.#cookie = cookie.split(';', 1)[0] ?? ''
    const text = await response.text()
    return { status: response.status, body: JSON.parse(text) }
  }
}

export async function startAppProcess (t: Test, url: string): Promise<AppProcess> {
  const child = fork(fileURLToPath(import.meta.url), [url], { execArgv: process.execArgv, stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  const exit = once(child, 'exit')
  const [origin] = await Promise.race([once(child, 'message'), exit.then(([code]) => { throw new Error(`the application ended with ${code}`) })])
  const app = new AppProcess(child, String(origin), exit)
  t.teardown(() => app.end())
  return app
}

interface Answer {
  status: number
  body: unknown
}
