import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, type IncomingHttpHeaders, type IncomingMessage, type RequestOptions, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import Fastify from 'fastify'
import authPlugin, { LocalIdentityProvider } from '../../lib/index.js'
import { LOCAL_SECRET, SESSION_SECRET } from '../helpers/app.js'

const LOOK_EVERY_MS = 5

// As a program: an application whose passwords cost what they cost by default, and which watches its memory. It ends when it is let go.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const app = Fastify()
  await app.register(authPlugin, { session: { secret: SESSION_SECRET }, local: new LocalIdentityProvider({ secret: LOCAL_SECRET }), rateLimit: false })

  let highest = 0
  const look = () => { highest = Math.max(highest, process.memoryUsage.rss()) }
  setInterval(look, LOOK_EVERY_MS).unref()

  app.get('/public', async () => ({ isOpen: true }))
  app.get('/memory', async (): Promise<Memory> => {
    look()
    const memory = { now: process.memoryUsage.rss(), highest }
    highest = 0
    return memory
  })
  process.once('disconnect', () => app.close())
  // With the usual backlog those who do not get in at once would try again a second later.
  process.send?.(await app.listen({ host: '127.0.0.1', port: 0, backlog: 4096 }))
}

/** Bytes that a process has in memory. */
export interface Memory {
  now: number
  /** Since it was asked last. */
  highest: number
}

export interface Credentials {
  email: string
  password: string
}

export interface Answer {
  status: number | undefined
  headers: IncomingHttpHeaders
  body: Record<string, unknown>
}

/** An application that runs by itself, to which many people come at once over HTTP. */
export class AppUnderLoad {
  readonly origin: string
  readonly #child: ChildProcess
  readonly #exit: Promise<unknown[]>
  readonly #agent = new Agent({ keepAlive: true })

  constructor (child: ChildProcess, origin: string, exit: Promise<unknown[]>) {
    this.origin = origin
    this.#child = child
    this.#exit = exit
  }

  /** Lets it go: resolves to its exit code. */
  async end (): Promise<unknown> {
    this.#agent.destroy()
    if (this.#child.connected) this.#child.disconnect()
    const [code] = await this.#exit
    return code
  }

  async register (credentials: Credentials): Promise<Answer> {
    return post(new URL('/auth/local/register', this.origin), credentials)
  }

  async logIn (credentials: Credentials): Promise<Answer> {
    return logIn(this.origin, credentials)
  }

  /** A route that has nothing to do with passwords, asked on a connection that stays. */
  async askTrivial (): Promise<Answer> {
    return send(new URL('/public', this.origin), { agent: this.#agent })
  }

  async memory (): Promise<Memory> {
    const { body } = await send(new URL('/memory', this.origin), { agent: this.#agent })
    return { now: Number(body.now), highest: Number(body.highest) }
  }
}

export async function startAppUnderLoad (): Promise<AppUnderLoad> {
  const child = fork(fileURLToPath(import.meta.url), { execArgv: process.execArgv })
  const exit = once(child, 'exit')
  const [origin] = await Promise.race([once(child, 'message'), exit.then(([code]) => { throw new Error(`the application ended with ${code}`) })])
  return new AppUnderLoad(child, String(origin), exit)
}

async function logIn (origin: string, credentials: Credentials): Promise<Answer> {
  return post(new URL('/auth/local/login', origin), credentials)
}

/** On a connection of its own, as everybody has. */
async function post (url: URL, body: unknown): Promise<Answer> {
  return send(url, { agent: false, method: 'POST', headers: { accept: 'application/json', 'content-type': 'application/json' } }, JSON.stringify(body))
}

async function send (url: URL, options: RequestOptions, body?: string): Promise<Answer> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => { request(url, options, resolve).once('error', reject).end(body) })
  const { statusCode: status, headers } = response
  return { status, headers, body: JSON.parse(await text(response)) }
}
