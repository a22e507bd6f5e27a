import { type ChildProcess, fork } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { SessionStore } from '@fastify/session'
import Fastify, { type Session } from 'fastify'
import type { Test } from 'tap'
import authPlugin, { SqlAuthStore } from '../../lib/index.js'
import { localProvider } from '../helpers/app.js'
import { OwnProvider } from '../helpers/own-provider.js'

/** A call of the session store, from a process of the application to its parent. */
interface Call {
  call: number
  method: 'get' | 'set' | 'destroy'
  id: string
  text?: string
}

/** What a process of the application tells its parent. */
type Message = Call | { origin: string } | { revoked: string }

/** A session store in the parent process: each call takes a message there and one back. */
class ParentStore implements SessionStore {
  readonly #waiting = new Map<number, (text: string | null) => void>()
  #calls = 0

  constructor () {
    process.on('message', ({ call, text }: { call: number, text: string | null }) => {
      this.#waiting.get(call)?.(text)
      this.#waiting.delete(call)
    })
  }

  get (id: string, done: (error: unknown, session?: Session | null) => void): void {
    this.#ask({ method: 'get', id }, text => { done(null, JSON.parse(text ?? 'null')) })
  }

  set (id: string, session: Session, done: (error?: unknown) => void): void {
    this.#ask({ method: 'set', id, text: JSON.stringify(session) }, () => { done() })
  }

  destroy (id: string, done: (error?: unknown) => void): void {
    this.#ask({ method: 'destroy', id }, () => { done() })
  }

  #ask (call: Omit<Call, 'call'>, done: (text: string | null) => void): void {
    const number = ++this.#calls
    this.#waiting.set(number, done)
    process.send?.({ ...call, call: number } satisfies Message)
  }
}

/** The store that processes share, in this one. Emits `get` with the id when it reads for one of them. */
export class SharedEntries extends EventEmitter<{ get: [id: string] }> {
  readonly entries = new Map<string, string>()
  /** The users of whom any process announced that they signed out. */
  readonly revoked: string[] = []

  /** Answers the calls of a process, each after a moment on the way. */
  async serve (child: ChildProcess, { call, method, id, text }: Call): Promise<void> {
    await wait(Math.random() * 3)
    const answer = this.entries.get(id) ?? null
    if (method === 'get') this.emit('get', id)
    if (method === 'set' && text !== undefined) this.entries.set(id, text)
    if (method === 'destroy') this.entries.delete(id)
    await wait(Math.random() * 3)
    if (child.connected) child.send({ call, text: answer })
  }
}

/** A process of the application. */
export interface SessionProcess {
  origin: string
  end: () => Promise<void>
}

/** Starts a process on an SQLite file of users and the shared session store. */
export async function forkSessionProcess (
  t: Test,
  shared: SharedEntries,
  users: string,
  secrets: readonly string[]
): Promise<SessionProcess> {
  const child = fork(fileURLToPath(import.meta.url), [users, ...secrets], { execArgv: process.execArgv })
  const exited = once(child, 'exit')
  const end = async (): Promise<void> => {
    if (child.connected) child.disconnect()
    await exited
  }
  t.teardown(end)
  const origin = await new Promise<string>((resolve, reject) => {
    child.once('exit', code => { reject(new Error(`the application ended with ${code}`)) })
    child.on('message', (message: Message) => {
      if ('origin' in message) resolve(message.origin)
      else if ('revoked' in message) shared.revoked.push(message.revoked)
      else shared.serve(child, message)
    })
  })
  return { origin, end }
}

// As a program: an application that ends when its parent lets it go.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , users, ...secrets] = process.argv
  const app = Fastify()
  await app.register(authPlugin, {
    // Not https, because the session cookie travels over http here.
    baseUrl: 'http://app.example',
    local: localProvider(),
    providers: [new OwnProvider('mine')],
    store: new SqlAuthStore(users),
    session: { secret: secrets, store: new ParentStore() },
    rateLimit: false
  })
  app.get('/me', async request => ({ principal: request.principal }))
  app.get('/private', { preHandler: app.auth.requireUser }, async () => ({ passed: true }))
  app.auth.channel.on('revoke', userId => { process.send?.({ revoked: userId } satisfies Message) })
  process.once('disconnect', () => app.close())
  const origin = await app.listen({ host: '127.0.0.1', port: 0 })
  process.send?.({ origin } satisfies Message)
}
