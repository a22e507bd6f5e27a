import fastify, { type FastifyInstance } from 'fastify'
import type { Test } from 'tap'
import authPlugin, { type AuthPluginOptions } from '../../lib/index.js'
import { SESSION_SECRET } from './app.js'
import { isSoon } from './soon.js'

/** A line of a log, parsed. */
export interface LogLine {
  level: number
  msg: string
  err?: { message: string }
}

/** Starts an application that logs warnings and errors; it is closed at the end of the test. */
export async function startLogged (t: Test, options: AuthPluginOptions): Promise<{ app: FastifyInstance, lines: LogLine[] }> {
  const lines: LogLine[] = []
  const app: FastifyInstance = fastify({ logger: { level: 'warn', stream: { write: (line: string) => { lines.push(JSON.parse(line)) } } } })
  t.teardown(() => app.close())
  await app.register(authPlugin, { session: { secret: SESSION_SECRET }, ...options })
  await app.ready()
  return { app, lines }
}

/** Resolves to so many lines, when they are there. */
export async function whenLogged (lines: LogLine[], count: number): Promise<LogLine[]> {
  if (!await isSoon(async () => lines.length >= count)) throw new Error(`${lines.length} lines are logged, expected ${count}`)
  return lines
}
