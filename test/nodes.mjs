/**
 * Runs tests on the other supported versions of Node.js, which npm installs beside the dependencies:
 *
 *     npm run test:nodes                    the everyday tests on all of them
 *     npm run test:nodes -- 22              on one
 *     npm run test:nodes -- --runtime 22    those of what differs between versions of Node.js
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const VERSIONS = ['22', '26']

/** Native modules, processes, Unicode, URLs and HTTP. */
const RUNTIME = [
  'test/email.test.ts',
  'test/factors/code-shape.test.ts',
  'test/http/redirects.test.ts',
  'test/start.test.ts',
  'test/passwords/*.test.ts',
  'test/tokens/*.test.ts',
  'test/providers/oidc.test.ts',
  'test/routes/*.test.ts',
  'test/security/input.test.ts',
  'test/store/report.test.ts',
  'test/store/sql-targets.test.ts',
  'test/store/sqlite*.test.ts'
]

const { values: { runtime }, positionals } = parseArgs({ options: { runtime: { type: 'boolean' } }, allowPositionals: true })
const files = runtime ? RUNTIME : []

for (const version of positionals.length > 0 ? positionals : VERSIONS) {
  const folder = join(import.meta.dirname, '../node_modules/.cache', `node-${version}`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true }))
  run('npm', ['install', '--no-audit', '--no-fund', '--no-package-lock', `node@${version}`], { cwd: folder })

  const bin = join(folder, 'node_modules/.bin')
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` }
  console.log(`# Node.js ${version}`)
  run(join(bin, 'node'), ['--import', './test/typescript.mjs', 'test/run.ts', ...files], { env })
}

function run (command, args, options) {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit', ...options })
  if (error !== undefined) throw error
  if (status !== 0) process.exit(status ?? 1)
}
