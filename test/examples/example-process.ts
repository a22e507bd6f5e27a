import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, type Server, createServer } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'

const ROOT = join(import.meta.dirname, '../..')

export type Settings = Readonly<Record<string, string>>

/** A script of examples/ as a process of its own, with the given settings and nothing else in its environment. */
export class ExampleProcess {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #ended: Promise<unknown>
  #hours = 0
  output = ''

  constructor (t: Test, [script, ...args]: [string, ...string[]], settings: Settings, { detached = false }: { detached?: boolean } = {}) {
    // env -i, not the option env: tap would add its loaders to that, with which a process takes longer to start.
    const environment = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
    const command = [process.execPath, '--import', './test/typescript.mjs', join('examples', script), ...args]
    this.#child = spawn('env', ['-i', ...environment, ...command], { cwd: ROOT, detached })
    this.#ended = once(this.#child, 'close')
    this.#onOutput(chunk => { this.output += chunk })
    t.teardown(() => this.kill())
  }

  /** Resolves when the output contains the text; rejects when the process ends without it. */
  async says (text: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const check = () => { if (this.output.includes(text)) resolve() }
      this.#onOutput(check)
      check()
      this.#ended.then(() => { reject(new Error(`the process ended without saying "${text}":\n${this.output}`)) }, reject)
    })
  }

  /** @returns the exit code */
  async end (): Promise<number | null> {
    await this.#ended
    return this.#child.exitCode
  }

  /** By how many hours the clock of the process is ahead. */
  get hoursAhead (): number {
    return this.#hours
  }

  /** Sets the clock of the process an hour ahead, if the settings are those of {@link withClock}. */
  async advanceClock (): Promise<void> {
    this.#hours++
    this.#child.kill('SIGUSR2')
    await this.says(`The clock is ${this.#hours} h ahead.`)
  }

  /** What Ctrl+C does in a terminal: a signal to a detached process and to all that it has started. */
  interrupt (): void {
    const { pid } = this.#child
    if (pid !== undefined) process.kill(-pid, 'SIGINT')
  }

  async kill (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    this.#child.kill(signal)
    await this.#ended
  }

  #onOutput (listener: (chunk: string) => void): void {
    for (const stream of [this.#child.stdout, this.#child.stderr]) stream.setEncoding('utf8').on('data', listener)
  }
}

/** Where the example and its development provider listen, and where it keeps what it knows. */
export async function settingsFor (t: Test): Promise<{ PORT: string, DEV_PROVIDER_PORT: string, LOCAL_AUTH_DB: string, EXAMPLE_DB: string }> {
  const servers = [await occupy(), await occupy()] as const
  const [PORT, DEV_PROVIDER_PORT] = [portOf(servers[0]), portOf(servers[1])]
  await Promise.all(servers.map(free))
  const directory = t.testdir()
  return { PORT, DEV_PROVIDER_PORT, LOCAL_AUTH_DB: join(directory, 'users.db'), EXAMPLE_DB: join(directory, 'example.db') }
}

/** Settings of a process whose clock can be advanced. */
export function withClock (settings: Settings): Settings {
  return { ...settings, NODE_OPTIONS: `--import=${new URL('advancing-clock.mjs', import.meta.url)}` }
}

/** Starts the example and waits until it is ready. */
export async function startExample (t: Test, settings: Settings): Promise<ExampleProcess> {
  const example = new ExampleProcess(t, ['demo/server.ts'], settings)
  await example.says('Ready: ')
  return example
}

/** Takes a free port, as another program would. */
export async function occupy (): Promise<Server> {
  const server = createServer().listen({ host: 'localhost', port: 0 })
  await once(server, 'listening')
  return server
}

export async function free (server: Server): Promise<void> {
  await once(server.close(), 'close')
}

export function portOf (server: Server): string {
  const { port } = server.address() as AddressInfo
  return String(port)
}
