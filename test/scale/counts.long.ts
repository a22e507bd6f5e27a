/** The counts of attempts in one Postgres, for three processes. */
import t, { type Test } from 'tap'
import type { RateLimitOptions } from '../../lib/index.js'
import { emptyDatabase, startPostgres } from '../helpers/postgres.js'
import { type CountsProcess, type CountsProcessOptions, forkCountsProcess } from './counts-process.js'

const ADA = 'ada@example.com'
const HOUR_MS = 60 * 60_000

t.setTimeout(300_000)

t.test('attack 41: a limit of twenty admits twenty of 180 tries at once at three processes, also at the first ones of all', async t => {
  const processes = await threeProcesses(t, { target: await emptyDatabase(t) })

  t.equal(await countAdmitted(processes, 180), 20)
  t.equal(await countAdmitted(processes, 60), 0)
})

t.test('attack 41: a limit of twenty for a /48 admits twenty tries from as many networks of it', async t => {
  const rateLimit: RateLimitOptions = { account: 20, network: 1 }
  const processes = await threeProcesses(t, { target: await emptyDatabase(t), rateLimit })

  t.equal(await countAdmitted(processes, 180, index => `2001:db8:1:${index.toString(16)}::1`), 20)
})

t.test("with rateLimit.store: 'memory' each of the processes admits twenty", async t => {
  const processes = await threeProcesses(t, { target: await emptyDatabase(t), rateLimit: { store: 'memory' } })

  t.equal(await countAdmitted(processes, 180), 60)
})

t.test('attack 41: processes whose clocks are hours apart share one limit', async t => {
  const target = await emptyDatabase(t)
  const processes = await Promise.all([-HOUR_MS, 0, HOUR_MS].map(ahead => forkCountsProcess(t, { target, ahead })))

  t.equal(await countAdmitted(processes, 30), 20)
  t.equal(await countAdmitted(processes, 180), 0)
})

t.test('attack 62: a mailbox gets one mail of sixty that clients ask three processes for at once', async t => {
  const processes = await threeProcesses(t, { target: await emptyDatabase(t) })

  const asked = Array.from({ length: 60 }, (_, index) => {
    return post(processes[index % processes.length], '/auth/local/register', { email: ADA }, `198.51.100.${index}`)
  })
  t.strictSame(new Set(await Promise.all(asked)), new Set([202]), 'the answers do not tell')

  for (const process of processes) await process.end()
  t.strictSame(processes.flatMap(({ mails }) => mails), [ADA])
})

t.test('attack 59: while Postgres is gone no client tries, and afterwards counts begin anew', async t => {
  const server = await startPostgres(t)
  const processes = await threeProcesses(t, { target: await server.createDatabase() })
  t.equal(await countAdmitted(processes, 60), 20)

  server.signal('SIGKILL')
  t.strictSame(new Set(await statusesOf(processes, 6, () => '198.51.100.2')), new Set([503]), 'no try without a count')
  await server.start()

  t.equal(await countAdmitted(processes, 60, () => '198.51.100.3'), 20)
})

async function threeProcesses (t: Test, options: CountsProcessOptions): Promise<CountsProcess[]> {
  return Promise.all([1, 2, 3].map(() => forkCountsProcess(t, options)))
}

/** How many attempts at the password of one account, at once and at the processes in turn, are not turned away. */
async function countAdmitted (processes: CountsProcess[], tries: number, from?: (index: number) => string): Promise<number> {
  const statuses = await statusesOf(processes, tries, from)
  if (statuses.some(status => status !== 401 && status !== 429)) throw new Error(`answered ${statuses}`)
  return statuses.filter(status => status === 401).length
}

async function statusesOf (processes: CountsProcess[], tries: number, from: (index: number) => string = () => '198.51.100.1'): Promise<number[]> {
  return Promise.all(Array.from({ length: tries }, (_, index) => {
    return post(processes[index % processes.length], '/auth/local/login', { email: ADA, password: 'a guess at it' }, from(index))
  }))
}

/** Posts as a client with an address, through a proxy, and resolves to the status. */
async function post (process: CountsProcess | undefined, path: string, body: object, from: string): Promise<number> {
  const response = await fetch(new URL(path, process?.origin), {
    method: 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/json', 'x-forwarded-for': from },
    body: JSON.stringify(body)
  })
  await response.arrayBuffer()
  return response.status
}
