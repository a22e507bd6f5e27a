import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expectedContents } from './contents.mjs'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CONSUMER = fileURLToPath(new URL('consumer', import.meta.url))

/** Makes a user's project, an ES module with the files of `consumer`, and removes it when the work is done. */
export async function withProject (work) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-auth-consumer-'))
  try {
    await cp(CONSUMER, folder, { recursive: true })
    await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
    const { name, dependencies, devDependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
    const bench = JSON.parse(await readFile(join(ROOT, 'bench/package.json'), 'utf8'))
    const tarball = await packInto(folder)
    await work(new Project(folder, tarball, { ...bench.dependencies, ...devDependencies, ...dependencies, [name]: `file:${tarball}` }))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

class Project {
  #folder
  #versions

  constructor (folder, tarball, versions) {
    this.#folder = folder
    this.tarball = tarball
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

  /** Installs a package that the project does not depend on: the next one that is installed takes its place. */
  async tryOut (name) {
    await this.run('npm', ['install', '--no-audit', '--no-fund', '--no-save', `${name}@${this.#versions[name]}`])
  }

  /** Compiles, and accepts no error but those that begin with what is passed over. */
  async compile (folder, { passOver = [] } = {}) {
    try {
      await this.run('tsc', ['-p', folder, '--pretty', 'false'])
    } catch (error) {
      const messages = error.message.split(/\n(?=\S)/).filter(line => line.includes('error TS'))
      const mistakes = messages.filter(message => !passOver.some(beginning => message.startsWith(beginning)))
      if (messages.length === 0) throw error
      if (mistakes.length > 0) throw new Error(mistakes.join('\n'))
    }
  }

  /** Runs a command in a folder of the project, one of its packages before all others, and resolves to what it prints. */
  run (command, args, { folder = '.', env = {}, ...as } = {}) {
    const PATH = `${this.path('node_modules/.bin')}:${process.env.PATH}`
    return run(command, args, { ...as, cwd: this.path(folder), env: { PATH, ...env } })
  }
}

/** Packs the library, and resolves to the tarball. With DIST_IS_BUILT the library is not built again. */
async function packInto (folder) {
  const options = process.env.DIST_IS_BUILT === undefined ? [] : ['--ignore-scripts']
  const packed = await run('npm', ['pack', '--json', '--pack-destination', folder, ...options], { cwd: ROOT })
  const [{ filename, files }] = JSON.parse(packed)
  const contents = files.map(({ path }) => path)
  const expected = await expectedContents(ROOT)
  assert.deepEqual({
    strays: contents.filter(path => !expected.includes(path)),
    missing: expected.filter(path => !contents.includes(path))
  }, { strays: [], missing: [] })
  return join(folder, filename)
}

/** Runs a command, and resolves to what it prints. A failure says all of that, and the warnings. */
export function run (command, args, { cwd, env = {}, ...as }) {
  return new Promise((resolve, reject) => {
    const child = execFile(command, args, { ...as, cwd, env: { ...process.env, NODE_ENV: 'test', ...env }, maxBuffer: Infinity }, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout)
      reject(new Error(`${command} ${args.join(' ')}\n${stdout}\n${stderr}`))
    })
    child.stdin.end()
  })
}
