import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
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
