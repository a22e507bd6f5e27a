import { randomUUID } from 'node:crypto'
import Fastify, { type FastifyInstance } from 'fastify'
import authPlugin, { type AuthStore, LocalIdentityProvider, MemoryAuthStore, SqlAuthStore } from '../dist/index.js'
import { machine } from './parts/machine.js'
import { benchOptions } from './parts/options.js'
import { postgresServer } from './parts/postgres-server.js'
import { figure, table } from './parts/table.js'

/** Shows whether the time that a refused login takes tells more than that it was refused: whether the e-mail has an account, above all. */

const { dialects, isShort } = benchOptions()
const LOGINS = isShort ? 10 : 200
const RESAMPLES = isShort ? 100 : 4000

/** With 99 % a store has one chance in twenty to show some difference where there is none. */
const CONFIDENCE = 0.99

/** A difference of more than this is one that somebody could use. */
const USABLE_PERCENT = 5

const GUESS = 'not the password of anybody'

/** The addresses are of one length. The first one is what the others are compared with. */
const REFUSED = {
  'known e-mail, wrong password': { email: 'known-1@example.com', password: GUESS },
  'unknown e-mail': { email: 'nobody1@example.com', password: GUESS },
  'e-mail of an external identity': { email: 'outside@example.com', password: GUESS },
  'known e-mail, 2,000 bytes': { email: 'known-1@example.com', password: 'x'.repeat(2000) },
  'known e-mail, NUL in password': { email: 'known-1@example.com', password: `${GUESS}\0` },
  'unreadable stored hash': { email: 'damaged@example.com', password: GUESS },
  'no e-mail': { email: 'known-1 example.com', password: GUESS }
}

console.log(`${machine('@node-rs/argon2')}\n`)
await bench('Memory', new MemoryAuthStore())
if (dialects.includes('sqlite')) await bench('SQLite', new SqlAuthStore(':memory:'))
if (dialects.includes('postgres')) {
  const server = await postgresServer()
  try {
    await bench(`Postgres ${server.version}`, new SqlAuthStore(await server.createDatabase()))
  } finally {
    await server.stop()
  }
}

async function bench (title: string, store: AuthStore): Promise<void> {
  const app = await appOn(store)
  try {
    const rounds = await timeLogins(app)
    console.log(`${title}: ${rounds.length} logins each, in turns\n`)
    console.log(comparison(rounds) + '\n')
  } finally {
    await app.close()
  }
}

/** With the default cost of passwords. */
async function appOn (store: AuthStore): Promise<FastifyInstance> {
  const local = new LocalIdentityProvider({ secret: randomUUID() })
  const app = Fastify()
  await app.register(authPlugin, { local, store, session: { secret: randomUUID() }, rateLimit: false })

  const password = await local.rehashPassword(randomUUID())
  await addUser(store, 'local', REFUSED['known e-mail, wrong password'].email, password)
  await addUser(store, 'local', REFUSED['unreadable stored hash'].email, password.slice(0, -10))
  await addUser(store, 'elsewhere', REFUSED['e-mail of an external identity'].email)
  return app
}

async function addUser (store: AuthStore, provider: string, email: string, passwordHash?: string): Promise<void> {
  const userId = randomUUID()
  const link = { provider, subject: email, claims: { sub: userId, email } }
  await store.createUser({ userId, email, emailVerified: true, name: null, claims: {}, link, ...(passwordHash !== undefined && { passwordHash }) })
}

/** @returns milliseconds of a login of each kind, a round, in the order of the kinds; in a round they have turns that chance decides */
async function timeLogins (app: FastifyInstance): Promise<number[][]> {
  const logins = Object.values(REFUSED)
  const warmUp = Math.ceil(LOGINS / 10)
  const rounds: number[][] = []
  for (let round = 0; round < warmUp + LOGINS; round++) {
    const times = logins.map(() => NaN)
    for (const index of inAnyOrder(logins)) times[index] = await timeLogin(app, logins[index])
    if (round >= warmUp) rounds.push(times)
  }
  return rounds
}

async function timeLogin (app: FastifyInstance, payload: typeof REFUSED[keyof typeof REFUSED] | undefined): Promise<number> {
  const start = performance.now()
  const { statusCode, body } = await app.inject({ method: 'POST', url: '/auth/local/login', headers: { accept: 'application/json' }, payload: { ...payload } })
  const end = performance.now()
  if (statusCode !== 401) throw new Error(`expected a login to be refused, got ${statusCode} ${body}`)
  return end - start
}

function comparison (rounds: readonly number[][]): string {
  const rows = Object.keys(REFUSED).map((kind, index) => {
    const times = column(rounds, index)
    const cells = [kind, String(times.length), figure(quantile(times, 0.5)), figure(quantile(times, 0.95))]
    if (index === 0) return [...cells, '', '', '']
    const [lowest, highest] = likelyDifferences(rounds, index)
    return [...cells, percent(difference(rounds, index)), `${percent(lowest)} to ${percent(highest)}`, verdict(lowest, highest)]
  })
  return table(['refused login', 'n', 'median ms', '95 % ms', 'to the first', 'with 99 % confidence', 'difference'], rows)
}

/** A machine that has too much else to do cannot tell. */
function verdict (lowest: number, highest: number): string {
  const isSeen = lowest > 0 || highest < 0
  if (Math.max(-lowest, highest) < USABLE_PERCENT) return isSeen ? `below ${USABLE_PERCENT} %` : 'none'
  return isSeen ? 'A DIFFERENCE' : 'too noisy to tell'
}

/** Of the median of a kind to the median of the first, in per cent. */
function difference (rounds: readonly number[][], index: number): number {
  return (quantile(column(rounds, index), 0.5) / quantile(column(rounds, 0), 0.5) - 1) * 100
}

/**
 * A bootstrap: what the difference would be, had chance made other rounds of those that were measured, again and again. Where the middle
 * 99 % of these lie on both sides of zero, no difference is to be seen.
 */
function likelyDifferences (rounds: readonly number[][], index: number): [lowest: number, highest: number] {
  const differences = Array.from({ length: RESAMPLES }, () => difference(rounds.map(() => rounds[Math.floor(Math.random() * rounds.length)] ?? []), index))
  const outside = (1 - CONFIDENCE) / 2
  return [quantile(differences, outside), quantile(differences, 1 - outside)]
}

function column (rounds: readonly number[][], index: number): number[] {
  return rounds.map(times => times[index] ?? NaN)
}

function quantile (values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.floor(share * sorted.length)] ?? NaN
}

function percent (value: number): string {
  return `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(1)} %`
}

function inAnyOrder (items: readonly unknown[]): number[] {
  return items.map((_, index) => ({ index, place: Math.random() })).sort((a, b) => a.place - b.place).map(({ index }) => index)
}
