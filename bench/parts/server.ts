import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Pool } from 'undici'
import type { Trial } from './measure.js'

/** An application in a process of its own: what it costs is not mixed up with what it costs to ask. */
export interface Server {
  readonly origin: string
  /** Connections that stay. */
  readonly pool: Pool
  end (): Promise<void>
}

/** Starts a program that calls `serve`. */
export async function startServer (program: URL, name: string, ...settings: string[]): Promise<Server> {
  const child = fork(fileURLToPath(program), [name, ...settings], { execArgv: ['--expose-gc', ...process.execArgv] })
  const exited = once(child, 'exit')
  const [origin] = await Promise.race([once(child, 'message'), exited.then(([code]) => { throw new Error(`${name} ended with ${code}`) })])
  const pool = new Pool(String(origin), { pipelining: 1 })
  return {
    origin: String(origin),
    pool,
    async end () {
      await pool.destroy()
      if (child.connected) child.disconnect()
      await exited
    }
  }
}

export interface Question {
  method: 'GET' | 'POST'
  path: string
  headers?: Record<string, string>
  body?: string
}

export interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

export async function ask ({ pool }: Server, question: Question): Promise<Answer> {
  const { statusCode: status, headers, body } = await pool.request(question)
  return { status, headers, text: await body.text() }
}

/** Questions to a server, to be timed: each must be answered with 200 and a text that contains `expected`. */
export function questions (server: Server, choose: () => Question, expected: string): Trial<Question> {
  return {
    choose,
    call: question => ask(server, question),
    check (result) {
      const { status, text } = result as Answer
      if (status !== 200 || !text.includes(expected)) throw new Error(`expected 200 with ${expected}, got ${status}: ${text}`)
    },
    undo () {}
  }
}
