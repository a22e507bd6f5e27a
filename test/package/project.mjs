import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CONSUMER = fileURLToPath(new URL('consumer', import.meta.url))

/** What the package may hold. */
const PUBLIC_FILE = /^(dist\/|drizzle\/[a-z]+\/|README\.md$|CHANGELOG\.md$|LICENSE$|package\.json$)/

/** Makes a user's project, an ES module with the files of `consumer`, and removes it when the work is done. */
export async function withProject (work) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-auth-consumer-'))
  try {
    await cp(CONSUMER, folder, { recursive: true })
    await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
    const { name, dependencies, devDependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
    await work(new Project(folder, { ...devDependencies, ...dependencies, [name]: `file:${await packInto(folder)}` }))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

class Project {
  #folder
  #versions

  constructor (folder, versions) {
    this.#folder = folder
    this.#versions = versions
  }

  /** The path of a file of the project. */
  path (...names) {
    return join(this.#folder, ...names)
  }

  /** Installs packages: the library from its tarball, others at the versions that this repository has. */
  async install (...names) {
    await this.run('npm', ['install', '--no-audit', '--no-fund', ...names.map(name => `${name}@${this.#versions[name]}`)])
  }

  /** Compiles, and accepts no error but those that begin with what is passed over. */
  async compile (folder, { passOver = [] } = {}) {
    try {
      await this.run('npx', ['tsc', '-p', folder, '--pretty', 'false'])
    } catch (error) {
      const messages = error.message.split(/\n(?=\S)/).filter(line => line.includes('error TS'))
      const mistakes = messages.filter(message => !passOver.some(beginning => message.startsWith(beginning)))
      if (messages.length === 0) throw error
      if (mistakes.length > 0) throw new Error(mistakes.join('\n'))
    }
  }

  /** Runs a command in a folder of the project, and resolves to what it prints. */
  run (command, args, { folder = '.', env = {} } = {}) {
    return run(command, args, { cwd: this.path(folder), env })
  }
}

/** Packs the library, and resolves to the tarball. */
async function packInto (folder) {
  const [{ filename, files }] = JSON.parse(await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: ROOT }))
  const strays = files.map(({ path }) => path).filter(path => !PUBLIC_FILE.test(path))
  if (strays.length > 0) throw new Error(`the package holds what it should not: ${strays.join(', ')}`)
  return join(folder, filename)
}

/** Runs a command, and resolves to what it prints. A failure says all of that, and the warnings. */
export function run (command, args, { cwd, env = {} }) {
  return new Promise((resolve, reject) => {
    const child = execFile(command, args, { cwd, env: { ...process.env, NODE_ENV: 'test', ...env }, maxBuffer: Infinity }, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout)
      reject(new Error(`${command} ${args.join(' ')}\n${stdout}\n${stderr}`))
    })
    child.stdin.end()
  })
}
