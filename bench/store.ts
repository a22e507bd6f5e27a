import { machine } from './parts/machine.js'
import { type Repetitions, type Trial, latencies, throughputs } from './parts/measure.js'
import { benchOptions } from './parts/options.js'
import type { AdmittedUser } from './parts/people.js'
import { postgresServer } from './parts/postgres-server.js'
import { figure, ratio, table } from './parts/table.js'
import { type Contest, type Pair, pairs } from './store/contest.js'
import { postgresContest } from './store/postgres.js'
import { sqliteContest } from './store/sqlite.js'

/** Shows whether the store gets slower as users become more, and what it costs over raw prepared statements on the same driver. */

const IN_FLIGHT = 16

const { sizes, dialects, isShort } = benchOptions()
if (dialects.includes('sqlite')) await benchSqlite()
if (dialects.includes('postgres')) await benchPostgres()

async function benchSqlite (): Promise<void> {
  console.log(`SQLite: ${machine('better-sqlite3', 'drizzle-orm')}\n`)
  await withContests(sqliteContest, compareLatency)
}

async function benchPostgres (): Promise<void> {
  const server = await postgresServer()
  try {
    console.log(`Postgres ${server.version}: ${machine('postgres', 'drizzle-orm')}\n`)
    await withContests(users => postgresContest(server, users), async contests => {
      await compareLatency(contests)
      await compareThroughput(contests)
    })
  } finally {
    await server.stop()
  }
}

/** All sizes are there at once, so that they are measured side by side. */
async function withContests (open: (users: number) => Promise<Contest>, compare: (contests: Contest[]) => Promise<void>): Promise<void> {
  const contests: Contest[] = []
  try {
    for (const users of sizes) {
      const start = performance.now()
      contests.push(await open(users))
      console.error(`${users} users made in ${((performance.now() - start) / 1000).toFixed(1)} s`)
    }
    await compare(contests)
  } finally {
    for (const contest of contests) await contest.close()
  }
}

async function compareLatency (contests: Contest[]): Promise<void> {
  const repetitions: Repetitions = isShort ? { rounds: 2, calls: 2 } : { rounds: 300, calls: 10 }
  const compared = everything(contests)
  const times = await latencies(compared.flatMap(bothSides), repetitions)
  console.log(`One call after the other; medians of ${repetitions.rounds * repetitions.calls} calls\n`)
  console.log(comparison(compared, times, { unit: 'µs', shown: figure }))
}

async function compareThroughput (contests: Contest[]): Promise<void> {
  const repetitions: Repetitions = isShort ? { rounds: 1, calls: 32 } : { rounds: 25, calls: 320 }
  const compared = everything(contests)
  const times = await throughputs(compared.flatMap(bothSides), { ...repetitions, inFlight: IN_FLIGHT })
  console.log(`${IN_FLIGHT} calls under way at any time; medians of ${repetitions.rounds} times ${repetitions.calls} calls\n`)
  console.log(comparison(compared, times, { unit: 'calls/s', shown: time => figure(1e6 / time) }))
}

function everything (contests: Contest[]): Pair[] {
  return [
    ...pairs('find by link', 'findByLink', contests),
    ...pairs('find by e-mail', 'findByEmail', contests),
    ...pairs('find credential', 'findCredential', contests),
    ...pairs('grant', 'grant', contests),
    ...pairs('upsert of somebody known', 'refreshIdentity', contests),
    ...pairs('create user', 'createUser', contests)
  ]
}

function bothSides ({ store, raw }: Pair): Array<Trial<AdmittedUser>> {
  return [store, raw]
}

/** Ratios are ratios of times: above 1 is slower. */
function comparison (compared: Pair[], times: ReadonlyMap<Trial<AdmittedUser>, number>, { unit, shown }: { unit: string, shown: (time: number) => string }): string {
  const timeOf = (trial: Trial<AdmittedUser>): number => times.get(trial) ?? NaN
  const smallest = compared[0]?.users
  const rows = compared.map(({ operation, users, store, raw }) => {
    const base = compared.find(pair => pair.operation === operation && pair.users === smallest)
    return [
      operation,
      String(users),
      shown(timeOf(store)),
      shown(timeOf(raw)),
      ratio(timeOf(store), timeOf(raw)),
      ...base === undefined ? [] : [ratio(timeOf(store), timeOf(base.store)), ratio(timeOf(raw), timeOf(base.raw))]
    ]
  })
  return table(['operation', 'users', `store ${unit}`, `raw ${unit}`, 'store/raw', `store, to ${smallest} users`, `raw, to ${smallest} users`], rows) + '\n'
}
