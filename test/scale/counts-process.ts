import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import Fastify from 'fastify'
import type { Test } from 'tap'
import authPlugin, { type RateLimitOptions, SqlAuthStore } from '../../lib/index.js'
import { SESSION_SECRET, localProvider } from '../helpers/app.js'

export interface CountsProcessOptions {
  /** The database. */
  target: string
  rateLimit?: RateLimitOptions
  /** How many milliseconds the clock of the process is ahead. */
  ahead?: number
}

/** What a process tells its parent: where it listens, then each mail. */
type Message = { origin: string } | { mailTo: string }

/** A process of an application with limits, which ends with the test. */
export interface CountsProcess {
  origin: string
  /** The addresses that it has sent mails to. */
  mails: string[]
  /** Resolves when it has ended. */
  end (): Promise<void>
}

export async function forkCountsProcess (t: Test, options: CountsProcessOptions): Promise<CountsProcess> {
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(options)], { execArgv: process.execArgv })
  const exited = once(child, 'exit')
  const end = async (): Promise<void> => {
    if (child.connected) child.disconnect()
    await exited
  }
  t.teardown(end)
  const mails: string[] = []
  const origin = await new Promise<string>((resolve, reject) => {
    child.once('exit', code => { reject(new Error(`the application ended with ${code}`)) })
    child.on('message', (message: Message) => {
      if ('origin' in message) resolve(message.origin)
      else mails.push(message.mailTo)
    })
  })
  return { origin, mails, end }
}

// As a program: an application behind a proxy, which ends when its parent lets it go.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { target, rateLimit, ahead = 0 }: CountsProcessOptions = JSON.parse(process.argv[2] ?? '')
  const { now } = Date
  Date.now = () => now() + ahead
  const tell = (message: Message): void => { process.send?.(message) }
  const app = Fastify({ trustProxy: '127.0.0.1' })
  await app.register(authPlugin, {
    // Not https, because the session cookie travels over http here.
    baseUrl: 'http://app.example',
    local: localProvider({ sendMail: ({ to }) => { tell({ mailTo: to }) }, registration: { verify: 'first' } }),
    store: new SqlAuthStore(target),
    session: { secret: SESSION_SECRET },
    ...(rateLimit !== undefined && { rateLimit })
  })
  process.once('disconnect', () => app.close())
  tell({ origin: await app.listen({ host: '127.0.0.1', port: 0 }) })
}
