/**
 * What a user gets: packs the library, installs the tarball in an empty TypeScript project, compiles a small strict application without
 * skipLibCheck, and runs it as ES module and through require().
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const consumer = fileURLToPath(new URL('consumer', import.meta.url))
const project = mkdtempSync(join(tmpdir(), 'svc-auth-consumer-'))
const run = (command, args, cwd = project) => execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, NODE_ENV: 'test' } })
const installed = name => JSON.parse(run('npm', ['pkg', 'get', `devDependencies.${name}`], root))

try {
  const [{ filename, files }] = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', project], root))
  const strays = files.map(({ path }) => path).filter(path => !/^(dist\/|drizzle\/[a-z]+\/|README\.md$|CHANGELOG\.md$|LICENSE$|package\.json$)/.test(path))
  if (strays.length > 0) throw new Error(`the package holds what it should not: ${strays.join(', ')}`)

  cpSync(consumer, project, { recursive: true })
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
  run('npm', ['install', '--no-audit', '--no-fund', `./${filename}`, ...['fastify', 'typescript', '@types/node', 'better-sqlite3'].map(name => `${name}@${installed(name)}`)])
  run('npx', ['tsc', '-p', '.'])
  console.log(run('node', ['app.js']).trim())
  console.log(run('node', ['app.cjs']).trim())
} finally {
  rmSync(project, { recursive: true, force: true })
}
