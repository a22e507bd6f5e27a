import { execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { nativePackage } from '../lib/features/password/hashing.js'
import type { Loaded } from './start-process.js'

const HEAVY = [
  '@node-rs/argon2', '@simplewebauthn/server', 'better-sqlite3', 'drizzle-orm', 'jose', 'oauth4webapi', 'postgres',
  'second factors', 'the pages'
]

t.test('an application with five providers, passwords and SQLite starts quickly', async t => {
  const child = fork(fileURLToPath(new URL('start-process.ts', import.meta.url)), [join(t.testdir(), 'users.db')], { execArgv: process.execArgv })
  const exited = once(child, 'exit')
  const [message]: unknown[] = await Promise.race([once(child, 'message'), exited.then(([code]) => { throw new Error(`the process ended with ${code}`) })])
  await exited
  const { modulesBehind, whenReady, behindReady, afterLogin, afterRegistration } = message as Loaded
  const heavy = (packages: string[]) => HEAVY.filter(name => packages.includes(name))

  t.ok(whenReady.includes('fastify'), 'tells what it loads')
  t.strictSame(heavy(whenReady), [], 'starts without what is heavy')
  t.strictSame(heavy(behindReady), ['@node-rs/argon2', 'better-sqlite3'], 'loads what a password needs behind ready, without a request')
  t.strictSame(afterRegistration, behindReady, 'loads nothing with the first registration')
  t.ok(modulesBehind <= 25, `loads ${modulesBehind} modules for it, and no file of drizzle-orm, which are a hundred`)
  t.strictSame(
    heavy(afterLogin),
    [...heavy(behindReady), 'oauth4webapi'],
    'loads the protocol with the first sign-in at a provider, and never the pages or second factors'
  )
})

/** What a program says that fails: its error and the cause. */
async function failure (program: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
  const reported = `Promise.resolve().then(async () => { ${program} }).catch(error => console.log(error.message, error.cause?.message))`
  const options = { cwd: join(import.meta.dirname, '..'), env: { ...process.env, ...env } }
  return (await promisify(execFile)(process.execPath, [...process.execArgv, '-e', reported], options)).stdout
}

t.test('on a Node.js that is too old each entry point says which one is needed', async t => {
  for (const entry of ['index', 'passwords', 'testing', 'command/commands']) {
    const said = await failure(`delete Object.groupBy; await import('./lib/${entry}.ts')`)
    t.match(said, /^Node\.js 22\.12 or later is needed; this is v2/, entry)
  }
})

t.test('without its native module Argon2 names the package of this platform, and what to do', async t => {
  const said = await failure("await (await import('./lib/features/password/hashing.ts')).hashing.preload()", { NAPI_RS_NATIVE_LIBRARY_PATH: '/missing' })
  t.match(said, `Passwords need @node-rs/argon2 and its optional dependency ${nativePackage(process)}; install all packages on this platform`)
  t.match(said, 'Cannot find native binding', 'the error of the package is the cause')
})

t.test('the package with the native Argon2 is named as npm has it', async t => {
  const lockfile: unknown = JSON.parse(await readFile(join(import.meta.dirname, '../package-lock.json'), 'utf8'))
  const published = Object.keys(Object(lockfile).packages).flatMap(path => /^node_modules\/(@node-rs\/argon2-.+)/.exec(path)?.[1] ?? [])
  const glibc = { ...process.report, getReport: () => ({ header: { glibcVersionRuntime: '2.41' } }) }
  const musl = { ...process.report, getReport: () => ({ header: {} }) }
  const named = [
    { platform: 'linux', arch: 'x64', report: glibc }, { platform: 'linux', arch: 'arm64', report: musl },
    { platform: 'linux', arch: 'arm', report: glibc }, { platform: 'win32', arch: 'x64', report: musl },
    { platform: 'darwin', arch: 'arm64', report: musl }
  ] as const
  t.strictSame(named.map(nativePackage).filter(name => !published.includes(name)), [])
  t.equal(new Set(named.map(nativePackage)).size, named.length)
})
