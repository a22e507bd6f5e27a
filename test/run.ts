/**
 * Runs tests, on one Postgres server for all of them unless TEST_POSTGRES_URL names another:
 *
 *     npm test                              the everyday tests: every *.test.ts
 *     npm test -- test/claims.test.ts       some of them, which are in test/ or beside what they test in lib/
 *     npm run test:all                      everything, with the long tests (*.long.ts) and those in a browser (*.browser.ts), and the coverage of lib/
 *     npm run test:all -- --shard 1/3       the first of three parts of everything, without the coverage
 *
 * Everyday tests share processes, because each process loads Fastify and Drizzle again, which takes much
 * of the CPU time. `test:all` has a process for each file, so that no file relies on another, and the
 * runner of tap, which measures the coverage. Everyday tests do without that runner: it parses all that
 * they print, and loads what follows each promise before typescript.mjs can leave that out.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, globSync, mkdirSync, openSync, readFileSync, statfsSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startEmbeddedPostgres } from './helpers/embedded-postgres.js'

/** The files that take longest, in that order: each part of all tests gets its share of them. */
const LONGEST = [
  'test/scale/crashes.long.ts',
  'test/browser/redirects.browser.ts',
  'test/store/crashes.long.ts',
  'test/store/lost-database.long.ts',
  'test/browser/mails.browser.ts',
  'test/browser/demo.browser.ts'
]

/** How many processes the files share that none has to itself: each loads Fastify and Drizzle, and compiles what is hot. */
const GROUPS = availableParallelism()

/** How many seconds a process may take; tap ends it then. */
const TIMEOUT_S = 600

/** A file system in memory, and how much must be free of it. */
const MEMORY = { folder: '/dev/shm', bytes: 2 * 1024 ** 3 }

/** What changes the whole process or the folder of the root test: such a file has a process of its own. */
const ALONE = /^(?:t|root)\.(?:before|beforeEach|afterEach|jobs)\b|\bprocess\.env\.\w+ = |Object\.assign\(process\.env|\bsettingsFor\b/m

/** Where the modules are that load several files, and what each process printed. */
const CACHE = 'node_modules/.cache/tests'

const { values: { all, shard }, positionals } = parseArgs({
  options: { all: { type: 'boolean', default: false }, shard: { type: 'string', default: '1/1' } },
  allowPositionals: true
})
const patterns = positionals.length > 0 ? positionals : [`{lib,test}/**/*.${all ? '{test,long,browser}' : 'test'}.ts`]
const files = partOf([...new Set(patterns.flatMap(filesOf))].sort(byLength), shard)
const isWhole = all && shard === '1/1'
if (shard !== '1/1') console.log(`# shard ${shard}: ${files.length} files\n${files.map(file => `#   ${file}`).join('\n')}`)

process.on('SIGINT', () => {}) // Ctrl+C reaches the tests as well; this process waits for them, to stop the server.
const code = process.env.TEST_POSTGRES_URL === undefined
  ? await withPostgres(url => runTests({ TEST_POSTGRES_URL: url }))
  : await runTests({})
process.exit(code) // embedded-postgres ends a process with code 0, whatever exitCode is.

async function withPostgres<T> (run: (url: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(isRoomInMemory() ? MEMORY.folder : tmpdir(), 'svc-auth-tests-'))
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

/** Each database is three hundred files, which a disk takes up to ten times the CPU time to make. */
function isRoomInMemory (): boolean {
  if (!existsSync(MEMORY.folder)) return false
  const { bavail, bsize } = statfsSync(MEMORY.folder)
  return bavail * bsize > MEMORY.bytes
}

/** @returns the exit code */
async function runTests (env: Record<string, string>): Promise<number> {
  mkdirSync(CACHE, { recursive: true })
  const [isGood, output] = all ? await runWithTap({ ...env, TEST_ALL: 'true' }) : await runSideBySide({ ...env, TAP_TIMEOUT: String(TIMEOUT_S) })
  printResults(output)
  return isGood ? 0 : 1
}

/** Runs the files with the runner of tap; a terminal gets its reporter, which ends with the failures. */
async function runWithTap (env: Record<string, string>): Promise<[isGood: boolean, output: string]> {
  const tap = fileURLToPath(new URL('dist/esm/run.mjs', import.meta.resolve('tap/package.json')))
  const coverage = isWhole ? [] : ['--disable-coverage', '--allow-incomplete-coverage']
  const child = start([tap, `--jobs=${availableParallelism()}`, ...coverage, ...files], env, process.stdout.isTTY ? 'inherit' : 'pipe')
  const output: Buffer[] = []
  child.stdout?.on('data', (chunk: Buffer) => {
    output.push(chunk)
    process.stdout.write(chunk)
  })
  const [code] = await once(child, 'close')
  return [code === 0, Buffer.concat(output).toString()]
}

/** Runs the files with a process for each core at a time, which everyday tests share. */
async function runSideBySide (env: Record<string, string>): Promise<[isGood: boolean, output: string]> {
  const waiting = files.length > GROUPS && files.every(file => !file.endsWith('.long.ts')) ? inGroups(files) : [...files]
  const results: Array<[isGood: boolean, output: string]> = []
  console.log(`TAP version 14\n1..${waiting.length}`)
  await Promise.all(Array.from({ length: availableParallelism() }, async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      const [isGood, output] = await runFile(file, env)
      results.push([isGood, output])
      console.log(`# Subtest: ${file}\n${output}${isGood ? 'ok' : 'not ok'} ${results.length} - ${file}\n`)
    }
  }))
  return [results.every(([isGood]) => isGood), results.map(([, output]) => output).join('')]
}

/** Runs a file. Its results go to another file meanwhile: each write to a pipe would wake this process. */
async function runFile (file: string, env: Record<string, string>): Promise<[isGood: boolean, output: string]> {
  const log = join(CACHE, `${file.replaceAll('/', '-')}.tap`)
  const descriptor = openSync(log, 'w')
  const [code, signal] = await once(start(['--import', './test/typescript.mjs', file], env, descriptor), 'close')
  closeSync(descriptor)
  const results = readFileSync(log, 'utf8')
  // The code alone does not tell: it is 0 where embedded-postgres ended the process. The number of the results comes last.
  const isGood = code === 0 && /^1\.\.\d/m.test(results) && !/^not ok /m.test(results)
  const failure = isGood || /^ *not ok /m.test(results) ? '' : `not ok - ${file} ended by ${signal ?? code}\n`
  return [isGood, `${results}${failure}`.replace(/^TAP version 14\n/, '').replace(/^(?=.)/gm, '    ')]
}

function start (args: readonly string[], env: Record<string, string>, stdout: 'inherit' | 'pipe' | number): ChildProcess {
  const child = spawn(process.execPath, args, { env: { ...process.env, ...env }, stdio: ['inherit', stdout, 'inherit'] })
  const stop = (): void => { child.kill('SIGTERM') }
  process.on('SIGTERM', stop)
  child.once('close', () => process.off('SIGTERM', stop))
  return child
}

/** Writes a module for each group of files, and returns what is to be run in a process each. */
function inGroups (files: readonly string[]): string[] {
  const alone = files.filter(file => ALONE.test(readFileSync(file, 'utf8')))
  const others = files.filter(file => !alone.includes(file))
  const modules = Array.from({ length: Math.min(GROUPS, others.length) }, (_, index) => {
    const group = others.filter((_, position) => position % GROUPS === index)
    const module = join(CACHE, `group-${index + 1}.mjs`)
    writeFileSync(module, group.map(file => `import '${relative(CACHE, file)}'\n`).join(''))
    return module
  })
  return [...alone, ...modules]
}

/** Prints how many there are of each result, and each failure again, with what led to it: the end of a long log is what one sees of it. */
function printResults (tap: string): void {
  const counts = new Map<string, number>()
  for (const [, count] of tap.matchAll(/^ *# \{ (.*) \}$/gm)) {
    for (const [, name = '', number] of count?.matchAll(/(\w+): (\d+)/g) ?? []) counts.set(name, (counts.get(name) ?? 0) + Number(number))
  }
  if (!all) console.log(`# { ${[...counts].map(([name, number]) => `${name}: ${number}`).join(', ')} }`)
  const failures = tap.match(/^ *not ok .*(?:\n *---\n[^]*?\n *\.\.\.$)?/gm) ?? []
  if (failures.length > 0) console.log(`# What failed:\n${failures.join('\n')}`)
}

/** The files that match a pattern, of which there is one at least: a pattern that names none names what is no longer there. */
function filesOf (pattern: string): string[] {
  const found = globSync(pattern)
  if (found.length === 0) throw new Error(`no file matches ${pattern}`)
  return found
}

/** Sorts the longest files before all others, and those by name; tap runs the files of a part by name. */
function byLength (one: string, other: string): number {
  const rank = (file: string): number => LONGEST.includes(file) ? LONGEST.indexOf(file) : LONGEST.length
  return rank(one) - rank(other) || (one < other ? -1 : 1)
}

/** Deals the files out to as many parts as `shard` says, such as `1/3`, and returns those of the part that it names. */
function partOf (files: readonly string[], shard: string): readonly string[] {
  const [, part, parts] = /^([1-9]\d*)\/([1-9]\d*)$/.exec(shard)?.map(Number) ?? []
  if (part === undefined || parts === undefined || part > parts) throw new Error(`--shard ${shard}: expected a part and the number of parts, such as 1/3`)
  return files.filter((_, index) => index % parts === part - 1)
}
