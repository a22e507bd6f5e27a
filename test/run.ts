/**
 * Runs tests with tap, on one Postgres server for all of them unless TEST_POSTGRES_URL names another:
 *
 *     npm test                           the everyday tests: every *.test.ts
 *     npm test -- test/claims.test.ts    some of them
 *     npm run test:all                   everything, with the long tests (*.long.ts) and those in a browser (*.browser.ts), and the coverage of lib/
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startEmbeddedPostgres } from './helpers/embedded-postgres.js'

const { values: { all }, positionals } = parseArgs({ options: { all: { type: 'boolean', default: false } }, allowPositionals: true })
const files = positionals.length > 0 ? positionals : [`test/**/*.${all ? '{test,long,browser}' : 'test'}.ts`]

const code = process.env.TEST_POSTGRES_URL === undefined
  ? await withPostgres(url => runTests({ TEST_POSTGRES_URL: url }))
  : await runTests({})
process.exit(code) // embedded-postgres ends a process with code 0, whatever exitCode is.

async function withPostgres<T> (run: (url: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-auth-tests-'))
  // What it keeps ends with the tests: it need not outlive a crash.
  const server = await startEmbeddedPostgres(folder, {
    initdbFlags: ['--no-sync'],
    settings: [
      'max_connections=300', 'autovacuum=off', 'jit=off',
      'fsync=off', 'synchronous_commit=off', 'full_page_writes=off',
      'wal_level=minimal', 'max_wal_senders=0', 'max_wal_size=4GB'
    ]
  })
  try {
    return await run(server.url)
  } finally {
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

/** @returns the exit code of tap */
async function runTests (env: Record<string, string>): Promise<number> {
  const tap = fileURLToPath(new URL('dist/esm/run.mjs', import.meta.resolve('tap/package.json')))
  const coverage = all ? [] : ['--disable-coverage', '--allow-incomplete-coverage']
  const child = spawn(process.execPath, [tap, ...coverage, ...files], {
    env: { ...process.env, ...env, ...(all && { TEST_ALL: 'true' }) },
    stdio: 'inherit'
  })
  // Ctrl+C reaches tap as well; this process waits for it, to stop the server.
  process.on('SIGINT', () => {}).on('SIGTERM', () => { child.kill('SIGTERM') })
  const [code] = await once(child, 'exit')
  return typeof code === 'number' ? code : 1
}
