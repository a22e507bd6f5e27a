import { setTimeout as wait } from 'node:timers/promises'
import { SqlAuthStore } from '../dist/index.js'
import { KINDS, type Kind, THROTTLED, addressOf } from './mail-timing/kinds.js'
import { machine } from './parts/machine.js'
import { benchOptions } from './parts/options.js'
import { postgresServer } from './parts/postgres-server.js'
import { type Server, ask, startServer } from './parts/server.js'
import { temporaryFolder } from './parts/temporary-folder.js'
import { comparison, timeInTurns } from './parts/turns.js'

/** Shows whether the time of an answer that may cause a mail tells whether an account has the address. */

const { dialects, isShort } = benchOptions()
const ROUNDS = isShort ? 10 : 1000
const WARM_UP = Math.ceil(ROUNDS / 10)
const SETTLE_MS = 3
const RESAMPLES = isShort ? 100 : 2000

const KNOWN_AND_OTHERS = Object.keys(KINDS) as Kind[]

console.log(`${machine('fastify')}\n`)
await bench('Memory', async () => 'memory')
if (dialects.includes('sqlite')) await bench('SQLite', async () => `${temporaryFolder()}/users.db`)
if (dialects.includes('postgres')) {
  const server = await postgresServer()
  try {
    await bench(`Postgres ${server.version}`, async () => server.createDatabase())
  } finally {
    await server.stop()
  }
}

async function bench (store: string, createDatabase: () => Promise<string>): Promise<void> {
  console.log(`${store}: ${ROUNDS} requests of each kind, in turns\n`)
  for (const [verify, path] of [
    ['later', 'forgot-password'], ['first', 'register'], ['later', 'mail-login'], ['closed', 'mail-login']
  ] as const) {
    const database = await createDatabase()
    if (database !== 'memory') await makeTables(database)
    const server = await startServer(new URL('mail-timing/server.ts', import.meta.url), verify, database, String(WARM_UP + ROUNDS))
    try {
      await compare(server, path, KNOWN_AND_OTHERS, (kind, round) => addressOf(kind, round))
      await compare(server, `${path}, mailbox full`, ['a', 'b'], kind => addressOf(kind, THROTTLED))
    } finally {
      await server.end()
    }
  }
}

/** Waits for the migrations, so that the application has its tables at once. */
async function makeTables (database: string): Promise<void> {
  const store = new SqlAuthStore(database)
  await store.findUser({ email: 'user@example.com' })
  await store.close()
}

async function compare (
  server: Server,
  title: string,
  kinds: readonly Kind[],
  addressAs: (kind: Kind, round: number) => string
): Promise<void> {
  const [path] = title.split(',')
  const rounds = await timeInTurns({ kinds: kinds.length, rounds: ROUNDS, warmUp: WARM_UP }, async (index, round) => {
    const body = JSON.stringify({ email: addressAs(kinds[index] ?? 'a', round) })
    const start = performance.now()
    const { status, text } = await ask(server, {
      method: 'POST',
      path: `/auth/local/${path}`,
      headers: { accept: 'application/json', 'content-type': 'application/json' },
      body
    })
    const end = performance.now()
    // What the application does after this answer must not delay the next one, which is of another kind.
    await wait(SETTLE_MS)
    if (status !== 202 || text !== '') throw new Error(`expected 202 without content, got ${status} ${text}`)
    return end - start
  })
  console.log(comparison({ title, kinds: kinds.map(kind => KINDS[kind]), resamples: RESAMPLES }, rounds) + '\n')
}
