/** `npm run cluster`: three processes with one database behind a front, all of them real. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ExampleProcess, free, occupy, portOf, settingsFor } from './example-process.js'
import { Visitor } from './visitor.js'

const ADA = { name: 'Ada Lovelace', email: 'ada@example.com', password: 'an engine of analysis' }

t.test('a user who signs in at one process is signed in at all, also when one of them is killed', async t => {
  const { url, cluster } = await startCluster(t)
  const pids = pidsOf(cluster)
  t.equal(pids.length, 3)
  const visitor = new Visitor()
  await visitor.open(`${url}/auth/pages/sign-in`)
  await visitor.register(ADA)

  t.same(await processesThatKnow(visitor, url, 6), pids, 'each process in turn')

  process.kill(Number(pids[1]), 'SIGKILL')
  const left = [pids[0], pids[2]]
  t.same(await processesThatKnow(visitor, url, 6), left, 'from the first request on')
  await cluster.says(`Process ${pids[1]} has ended; 2 are left.`)

  await visitor.open(url)
  await visitor.press('Sign out')
  for (const pid of left) t.equal((await visitor.open(url)).url.pathname, '/auth/pages/sign-in', `signed out at all, ${pid} included`)
  t.match((await visitor.press('Sign in', ADA)).text, ADA.email)
  t.same(await processesThatKnow(visitor, url, 4), left)
})

t.test('a sign-in at the provider starts at one process, returns to the next and is seen by the third', async t => {
  const { url, cluster } = await startCluster(t)
  const pids = pidsOf(cluster)
  const visitor = new Visitor()
  await visitor.open(`${url}/auth/pages/sign-in`)
  await visitor.follow('Continue with Dev Provider')
  const account = await visitor.press('Continue')

  t.match(account.text, 'grace@example.com')
  t.same(await processesThatKnow(visitor, url, 3), pids)
})

t.test('Ctrl+C ends all processes and leaves no files', async t => {
  const { url, cluster, folder } = await startCluster(t)
  const group = processesOf(pidsOf(cluster)[0])
  t.ok(group.length > 5, 'Postgres included')
  t.equal(readdirSync(folder).length, 1)

  cluster.interrupt()

  t.equal(await cluster.end(), 0)
  t.same(group.filter(pid => isRunning(pid)), [])
  t.same(readdirSync(folder), [])
  await t.rejects(fetch(url))
})

t.test('no process outlives a cluster that was killed', async t => {
  const { cluster } = await startCluster(t)
  const group = processesOf(pidsOf(cluster)[0])

  await cluster.kill()

  while (group.some(pid => isRunning(pid))) await new Promise(setImmediate)
  t.pass()
})

t.test('what keeps the cluster from starting is one sentence, and nothing is left running', async t => {
  const other = await occupy()
  t.teardown(() => free(other))
  const settings = { ...await clusterSettings(t), PORT: portOf(other) }
  const cluster = new ExampleProcess(t, ['cluster/server.ts'], settings)

  t.equal(await cluster.end(), 1)
  t.equal(cluster.output, `Port ${settings.PORT} is in use; set PORT to a free one, for example PORT=4000\n`)
  t.same(readdirSync(settings.TMPDIR), [])
})

async function startCluster (t: Test): Promise<{ url: string, cluster: ExampleProcess, folder: string }> {
  const settings = await clusterSettings(t)
  const cluster = new ExampleProcess(t, ['cluster/server.ts'], settings, { detached: true })
  await cluster.says('Ready: ')
  return { url: `http://localhost:${settings.PORT}`, cluster, folder: settings.TMPDIR }
}

async function clusterSettings (t: Test): Promise<{ PORT: string, DEV_PROVIDER_PORT: string, TMPDIR: string, PATH: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-auth-cluster-test-'))
  chmodSync(folder, 0o755) // for the user that Postgres runs as
  t.teardown(() => { rmSync(folder, { recursive: true }) })
  const { PORT, DEV_PROVIDER_PORT } = await settingsFor(t)
  return { PORT, DEV_PROVIDER_PORT, TMPDIR: folder, PATH: process.env.PATH ?? '' }
}

/** The application processes, in the order of their turns. */
function pidsOf ({ output }: ExampleProcess): string[] {
  return /Processes: (\d+), (\d+), (\d+)\./.exec(output)?.slice(1) ?? []
}

/** Opens the account page so many times, and resolves to the processes that answered, without repetition. */
async function processesThatKnow (visitor: Visitor, url: string, times: number): Promise<string[]> {
  const pids = new Set<string>()
  for (let time = 0; time < times; time++) {
    const { url: { pathname }, text } = await visitor.open(url)
    if (pathname === '/') pids.add(/Process (\d+) answered/.exec(text)?.[1] ?? 'a page without a process')
    else pids.add(`signed out: ${pathname}`)
  }
  return [...pids].sort((one, other) => Number(one) - Number(other))
}

/** The processes of the group that this one belongs to. */
function processesOf (pid = ''): number[] {
  const processes = execFileSync('ps', ['-A', '-o', 'pgid=,pid='], { encoding: 'utf8' }).trim().split('\n').map(line => line.trim().split(/ +/).map(Number))
  const group = processes.find(([, other]) => other === Number(pid))?.[0]
  return processes.flatMap(([other, pid = 0]) => other === group ? [pid] : [])
}

function isRunning (pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
