import { type ChildProcess, fork } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { fileURLToPath } from 'node:url'
import Fastify from 'fastify'
import type { Test } from 'tap'
import authPlugin, { type AuthorizationResponse, SqlAuthStore } from '../../lib/index.js'
import { SESSION_SECRET, localProvider } from '../helpers/app.js'
import { OwnProvider } from '../helpers/own-provider.js'

/** How an application of a process is set up. */
export interface SessionProcessOptions {
  /** The database of users and sessions. */
  target: string
  /** Default the one of the tests. */
  secrets?: readonly string[]
  /** Whether it starts without tap's loaders, which take seconds: a process that is killed reports no coverage. */
  isBare?: boolean
}

const TYPESCRIPT = new URL('../typescript.mjs', import.meta.url).href

/** What a process tells its parent. */
type Message = { origin: string } | { revoked: string } | { redeemed: string } | 'held'

/** A process of an application, which ends with the test. Emits `told` for each message. */
export class SessionProcess extends EventEmitter<{ told: [] }> {
  origin = ''
  /** The users whose sign-out the channel announced. */
  readonly revoked: string[] = []
  /** The codes that were redeemed at the provider. */
  readonly redeemed: string[] = []
  /** How many requests were held: those of `/held`, and callbacks of the subject `held`. */
  held = 0
  readonly #child: ChildProcess
  readonly #exited: Promise<unknown[]>

  constructor (child: ChildProcess) {
    super()
    this.#child = child
    this.#exited = once(child, 'exit')
    child.on('message', (message: Message) => {
      if (message === 'held') this.held++
      else if ('origin' in message) this.origin = message.origin
      else if ('revoked' in message) this.revoked.push(message.revoked)
      else this.redeemed.push(message.redeemed)
      this.emit('told')
    })
  }

  static async start (t: Test, options: SessionProcessOptions): Promise<SessionProcess> {
    const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(options)], options.isBare === true
      ? { execArgv: ['--import', TYPESCRIPT], env: {} }
      : { execArgv: process.execArgv })
    const started = new SessionProcess(child)
    t.teardown(() => started.end())
    const failed = started.#exited.then(([code]) => { throw new Error(`the application ended with ${code}`) })
    await Promise.race([once(child, 'message'), failed])
    return started
  }

  /** Resolves when what the process has told holds. */
  async tells (holds: () => boolean): Promise<void> {
    while (!holds()) await once(this, 'told')
  }

  /** Lets all requests that are held go on. */
  letGo (): void {
    this.#child.send('go on')
  }

  kill (): void {
    this.#child.kill('SIGKILL')
  }

  /** Lets the process go: resolves to its exit code. */
  async end (): Promise<unknown> {
    if (this.#child.connected) this.#child.disconnect()
    const [code] = await this.#exited
    return code
  }
}

// As a program: an application that ends when its parent lets it go.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { target, secrets = [SESSION_SECRET] }: SessionProcessOptions = JSON.parse(process.argv[2] ?? '')
  const tell = (message: Message): void => { process.send?.(message) }
  const hold = async (): Promise<void> => {
    tell('held')
    await once(process, 'message')
  }

  class TellingProvider extends OwnProvider {
    override async authenticate (response: AuthorizationResponse) {
      tell({ redeemed: response.parameters.get('state') ?? '' })
      const authenticated = await super.authenticate(response)
      if (authenticated.identity.subject === 'held') await hold()
      return authenticated
    }
  }

  const app = Fastify()
  await app.register(authPlugin, {
    // Not https, because the session cookie travels over http here.
    baseUrl: 'http://app.example',
    local: localProvider(),
    providers: [new TellingProvider('mine')],
    store: new SqlAuthStore(target),
    session: { secret: [...secrets] },
    rateLimit: false
  })
  app.get('/me', async request => ({ principal: request.principal }))
  app.get('/private', { preHandler: app.auth.requireUser }, async () => ({ passed: true }))
  app.get('/cart', async ({ session }) => ({ cart: Reflect.get(session, 'cart') ?? null }))
  app.post<{ Body: { cart: string } }>('/cart', async ({ session, body }) => {
    Object.assign(session, { cart: body.cart })
    return {}
  })
  app.get('/held', async ({ session }) => {
    await hold()
    return { cart: Object.assign(session, { cart: 'late' }).cart }
  })
  app.auth.channel.on('revoke', revoked => { tell({ revoked }) })
  process.once('disconnect', () => app.close())
  tell({ origin: await app.listen({ host: '127.0.0.1', port: 0 }) })
}
