/**
 * Starts a Postgres server, three processes of the demonstration that share nothing else, and a front that hands
 * requests to them in turn: `npm run cluster`. It needs no settings; PORT and DEV_PROVIDER_PORT can be set. Ctrl+C ends
 * all of them, and what they kept is gone.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildDevProvider } from '../demo/dev-provider.js'
import { StartError, listen, portFrom } from '../demo/ports.js'
import { buildFront } from './front.js'

/** What has to end, in the order of the start. */
const endings: Array<() => Promise<unknown>> = []
let isEnding = false

process.once('SIGINT', () => end(0)).once('SIGTERM', () => end(0))

try {
  await start()
} catch (error) {
  // A start that is interrupted fails, too.
  if (!isEnding) {
    console.error(error instanceof StartError ? error.message : error)
    await end(1)
  }
}

async function end (code: number): Promise<void> {
  if (isEnding) return
  isEnding = true
  for (let ending = endings.pop(); ending !== undefined; ending = endings.pop()) await ending()
  process.exit(code)
}

async function start (): Promise<void> {
  const port = portFrom('PORT', 3000)
  const devProviderPort = portFrom('DEV_PROVIDER_PORT', port + 1)
  const [baseUrl, devProviderUrl] = [`http://localhost:${port}`, `http://localhost:${devProviderPort}`]
  const folder = await mkdtemp(join(tmpdir(), 'svc-auth-cluster-'))
  endings.push(() => rm(folder, { recursive: true }))

  const postgres = await startProcess('postgres.ts', [folder])
  const dev = await buildDevProvider({ url: devProviderUrl, appUrl: baseUrl })
  endings.push(() => dev.server.close())
  await listen(dev.server, devProviderPort, 'DEV_PROVIDER_PORT')

  const settings = {
    BASE_URL: baseUrl,
    DEV_PROVIDER_URL: devProviderUrl,
    DEV_PROVIDER_SECRET: dev.clientSecret,
    LOCAL_AUTH_DB: postgres.url,
    EXAMPLE_DB: join(folder, 'example.db'),
    SVC_SESSION_SECRET: randomBytes(32).toString('hex'),
    LOCAL_IDP_SECRET: randomBytes(32).toString('hex'),
    SVC_AUTH_DATA_SECRET: randomBytes(32).toString('hex')
  }
  const upstreams = new Set<string>()
  const front = await buildFront(upstreams)
  const applications = await Promise.all(['A', 'B', 'C'].map(() => startProcess('application.ts', [], settings)))
  for (const { child, url } of applications) {
    upstreams.add(url)
    child.once('exit', () => {
      upstreams.delete(url)
      if (!isEnding) console.log(`Process ${child.pid} has ended; ${upstreams.size} are left.`)
    })
  }
  endings.push(() => front.close())
  await listen(front, port, 'PORT')

  const pids = applications.map(({ child }) => child.pid)
  console.log(`Processes: ${pids.join(', ')}. Sign in, end one with "kill -9 ${pids[0]}", and go on.`)
  console.log(`Ready: ${baseUrl}`)
}

/** Starts a script as a process of its own, and resolves to the address that it sends when it listens. */
async function startProcess (
  script: string,
  args: readonly string[],
  settings: Readonly<Record<string, string>> = {}
): Promise<{ child: ChildProcess, url: string }> {
  const child = fork(new URL(script, import.meta.url), args, { env: { ...process.env, ...settings } })
  const exited = once(child, 'exit')
  endings.push(async () => {
    child.kill('SIGTERM')
    await exited
  })
  const failed = exited.then(() => { throw new Error(`${script} has ended before it listened`) })
  const [url]: unknown[] = await Promise.race([once(child, 'message'), failed])
  return { child, url: String(url) }
}
