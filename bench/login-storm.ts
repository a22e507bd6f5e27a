import { setTimeout } from 'node:timers/promises'
import { type AppUnderLoad, type Credentials, startAppUnderLoad } from '../test/security/load-process.js'
import { type Outcomes, startAttacker } from './login-storm/attacker.js'
import { machine } from './parts/machine.js'
import { benchOptions } from './parts/options.js'
import { figure, table } from './parts/table.js'

/** Shows what many logins at once cost the other visitors of an application, and in memory. */

const { isShort } = benchOptions()
const IDLE_MS = isShort ? 200 : 10_000

/** A visitor comes this often, whether or not those before have been answered. */
const VISIT_EVERY_MS = 5

const MIB = 2 ** 20
const ADA = { email: 'ada@example.com', password: 'the right password' }

interface Storm {
  title: string
  logins: Credentials[]
  /** How many are under way at any time. */
  atOnce: number
}

const STORMS: readonly Storm[] = [
  { title: '200 logins at a time', logins: halfRight(isShort ? 20 : 3000), atOnce: isShort ? 10 : 200 },
  { title: '2,000 logins at once', logins: halfRight(isShort ? 20 : 2000), atOnce: isShort ? 20 : 2000 },
  { title: '512 that try again at once', logins: halfRight(isShort ? 20 : 6000), atOnce: isShort ? 10 : 512 },
  { title: '200 with 1,000,000 bytes', logins: long(isShort ? 2 : 200), atOnce: isShort ? 2 : 200 }
]

function halfRight (number: number): Credentials[] {
  return Array.from({ length: number }, (_, index) => index % 2 === 0 ? ADA : { ...ADA, password: `guess number ${index}` })
}

function long (number: number): Credentials[] {
  return Array.from({ length: number }, () => ({ ...ADA, password: 'x'.repeat(1_000_000) }))
}

console.log(`${machine('fastify', '@node-rs/argon2')}\n`)
const rows: string[][] = []
for (const storm of STORMS) rows.push(...await weather(storm))
const times = ['p50 ms', 'p99 ms', 'longest ms']
console.log(table(['the application is', 'seconds', 'visitors', ...times, 'logins answered', 'busy', 'compared a second', 'memory MiB', 'over idle'], rows) + '\n')

/** On an application of its own: what a visitor waits before and during the storm. */
async function weather ({ title, logins, atOnce }: Storm): Promise<string[][]> {
  const app = await startAppUnderLoad()
  try {
    await app.register(ADA)
    await app.logIn(ADA)
    await visit(app, setTimeout(IDLE_MS / 10)) // Warms up.
    const { now: idle } = await app.memory()

    const quiet = await visit(app, setTimeout(IDLE_MS))
    const { highest: highestIdle } = await app.memory()
    const attacker = await startAttacker()
    const stormy = await visit(app, attacker.attack(app.origin, logins, atOnce))
    const { highest } = await app.memory()

    return [
      ['idle', ...waiting(quiet), '', '', '', ...memory(highestIdle, idle)],
      [`under ${title}`, ...waiting(stormy), ...answered(stormy), ...memory(highest, idle)]
    ]
  } finally {
    await app.end()
  }
}

interface Visits<T> {
  result: T
  seconds: number
  /** Milliseconds that each visitor waited. */
  waits: number[]
}

/** Sends visitors to a trivial route until something is over. */
async function visit<T> (app: AppUnderLoad, something: Promise<T>): Promise<Visits<T>> {
  const isOver = something.then(() => true)
  const visits: Array<Promise<number>> = []
  const start = performance.now()
  let due = start
  do {
    visits.push(wait(app, due))
    due += VISIT_EVERY_MS
  } while (!await Promise.race([isOver, setTimeout(Math.max(0, due - performance.now()), false)]))
  return { result: await something, seconds: (performance.now() - start) / 1000, waits: await Promise.all(visits) }
}

/** From when the visitor was due: one that this process sends late has waited already. */
async function wait (app: AppUnderLoad, due: number): Promise<number> {
  const { status } = await app.askTrivial()
  if (status !== 200) throw new Error(`expected the trivial route to answer, got ${status}`)
  return performance.now() - due
}

function waiting ({ seconds, waits }: Visits<unknown>): string[] {
  const sorted = Float64Array.from(waits).sort()
  const times = [0.5, 0.99, 1].map(share => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN)
  return [figure(seconds), String(sorted.length), ...times.map(figure)]
}

function answered ({ result: outcomes, seconds }: Visits<Outcomes>): string[] {
  const all = Object.values(outcomes).reduce((sum, count) => sum + count, 0)
  const byStatus = Object.entries(outcomes).map(([status, count]) => `${status}: ${count}`).join(', ')
  const busy = outcomes['503'] ?? 0
  return [byStatus, `${(busy / all * 100).toFixed()} %`, figure((all - busy) / seconds)]
}

function memory (highest: number, idle: number): string[] {
  return [highest, highest - idle].map(bytes => (bytes / MIB).toFixed())
}
