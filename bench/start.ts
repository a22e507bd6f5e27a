import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { machine } from './parts/machine.js'
import { type Trial, latencies } from './parts/measure.js'
import { benchOptions } from './parts/options.js'
import { postgresServer } from './parts/postgres-server.js'
import { figure, table } from './parts/table.js'
import { temporaryFolder } from './parts/temporary-folder.js'
import { firstLogins } from './start/first-login.js'

/**
 * Shows what the plugin adds to the start of an application: the time from the start of the process until Fastify is ready; and what the
 * first login takes then, beside other libraries.
 */

const { dialects, isShort, node } = benchOptions()
const REPETITIONS = { rounds: isShort ? 2 : 30, calls: 1 }

const starts = {
  'Fastify alone': starting('bare'),
  'with @fastify/session': starting('session'),
  'with fastify-svc-auth: five providers, passwords, SQLite': starting('everything')
}

const times = await latencies(Object.values(starts), REPETITIONS)
const msOf = (trial: Trial<null>): number => (times.get(trial) ?? NaN) / 1000
const base = msOf(starts['with @fastify/session'])
console.log(`Medians of ${REPETITIONS.rounds} starts each, in turns; ${machine('fastify', '@fastify/session')}\n`)
console.log(table(['application', 'ready after ms', 'to @fastify/session ms'], Object.entries(starts).map(([name, trial]) => [name, figure(msOf(trial)), difference(msOf(trial) - base)])) + '\n')

const head = ['application', 'listening after ms', 'first login ms', 'loop held at most ms', 'resident MiB a second later']
const logins = isShort ? 1 : 11
const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()
console.log(`Medians of ${logins} starts each on Node.js ${version.slice(1)}, in turns; ${machine('@fastify/passport', 'better-auth', 'better-sqlite3', 'postgres', 'pg')}\n`)
if (dialects.includes('sqlite')) {
  let databases = 0
  const folder = temporaryFolder()
  console.log(`SQLite\n\n${table(head, await firstLogins(node, logins, async () => join(folder, `${++databases}.db`)))}\n`)
}
if (dialects.includes('postgres')) {
  const server = await postgresServer()
  try {
    console.log(`Postgres ${server.version}\n\n${table(head, await firstLogins(node, logins, () => server.createDatabase()))}\n`)
  } finally {
    await server.stop()
  }
}

/** The start of a program that tells when it is ready, and then ends. It is plain JavaScript, as what is published. */
function starting (program: string): Trial<null> {
  const ends: Array<Promise<unknown>> = []
  return {
    choose: () => null,
    async call () {
      const child = fork(fileURLToPath(new URL(`start/${program}.mjs`, import.meta.url)), { execPath: node, execArgv: [] })
      const end = once(child, 'exit')
      ends.push(end)
      const [message] = await Promise.race([once(child, 'message'), end])
      return message
    },
    check (message) {
      if (message !== 'ready') throw new Error(`${program} ended with ${message}`)
    },
    // The end of a process must not take its time from the start of the next one.
    async undo () { await Promise.all(ends.splice(0)) }
  }
}

function difference (ms: number): string {
  return `${ms < 0 ? '−' : '+'}${Math.abs(ms).toFixed(1)}`
}
