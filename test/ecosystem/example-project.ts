/** An example of examples/ that has its own package.json, as a project beside no other: with its packages and this one, as npm installs them. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { freePort } from '../helpers/loopback.js'
import { Client } from './client.js'

const ROOT = join(import.meta.dirname, '../..')
const QUIET = ['--no-audit', '--no-fund', '--prefer-offline']
const SECRET = 'a-secret-for-the-processes-of-examples'

/** A user of the examples. */
export const ADA = { email: 'ada@example.com', password: 'a correct horse' }

/** What a guard of claims answers a user who has others. */
export const FORBIDDEN = { statusCode: 403, code: 'forbidden', error: 'Forbidden', message: 'The signed-in user may not do this.' }

const execute = promisify(execFile)

export class ExampleProject {
  readonly #t: Test
  readonly #folder: string

  private constructor (t: Test, folder: string) {
    this.#t = t
    this.#folder = folder
  }

  /** Installs an example in a folder of its own, until the end of the test. */
  static async install (t: Test, name: string): Promise<ExampleProject> {
    const folder = await mkdtemp(join(tmpdir(), `svc-auth-${name}-`))
    t.teardown(() => rm(folder, { recursive: true, force: true }))
    const [project, library] = [join(folder, 'project'), join(folder, 'library')]
    const isSource = (path: string): boolean => !path.includes('/node_modules')
    await Promise.all([cp(join(ROOT, 'examples', name), project, { recursive: true, filter: isSource }), build(library)])
    await execute('npm', ['ci', ...QUIET], { cwd: project })
    await execute('npm', ['install', '--no-save', '--install-links', ...QUIET, library], { cwd: project })
    return new ExampleProject(t, project)
  }

  /** Runs a command of the project, and resolves to what it prints. */
  async run (command: string, args: string[] = [], env: Record<string, string> = {}): Promise<string> {
    const child = this.#spawn(command, args, env)
    const [output, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${output}${errors}`)
    return output
  }

  /**
   * Starts the server that a command of the project is, until the end of the test.
   *
   * @param ready the path that the server answers once it has started
   */
  async start (command: string, args: string[], env: Record<string, string>, ready = '/auth/session'): Promise<Client> {
    const port = String(await freePort())
    const child = this.#spawn(command, args, { ...env, PORT: port })
    this.#t.teardown(() => stop(child))
    const output = Promise.all([text(child.stdout), text(child.stderr)])
    const client = new Client(`http://localhost:${port}`)
    while (!await client.get(ready).then(({ status }) => status === 200, () => false)) {
      if (child.exitCode !== null) throw new Error(`${command} ended:\n${(await output).join('')}`)
      await new Promise(resolve => setTimeout(resolve, 50))
    }
    return client
  }

  #spawn (command: string, args: string[], env: Record<string, string>) {
    const settings = {
      HOME: String(process.env.HOME),
      PATH: `${join(this.#folder, 'node_modules/.bin')}:${process.env.PATH}`,
      SVC_SESSION_SECRET: SECRET,
      LOCAL_IDP_SECRET: SECRET,
      ...env
    }
    // env -i, not the option env: tap would add its loaders to that.
    const assigned = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
    return spawn('env', ['-i', ...assigned, command, ...args], { cwd: this.#folder, stdio: ['ignore', 'pipe', 'pipe'] })
  }
}

/** Makes the package in a folder; `dist/` stays as it is, which other tests may read. */
async function build (library: string): Promise<void> {
  const dist = join(library, 'dist')
  const { scripts, devDependencies, ...description } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
  if (process.env.DIST_IS_BUILT !== undefined) await cp(join(ROOT, 'dist'), dist, { recursive: true })
  else {
    await execute('tsc', ['-p', 'tsconfig.build.json', '--outDir', dist], { cwd: ROOT })
    await cp(join(ROOT, 'node_modules/.cache/drizzle'), join(dist, 'drizzle'), { recursive: true })
  }
  await cp(join(ROOT, 'drizzle'), join(library, 'drizzle'), { recursive: true })
  await writeFile(join(library, 'package.json'), JSON.stringify(description))
}

async function stop (child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'close')
}
