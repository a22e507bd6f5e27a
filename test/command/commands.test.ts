/** What each command does, in this process; command.long.ts has them as processes, on each database. */
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import t, { type Test } from 'tap'
import { SqlAuthStore } from '../../lib/index.js'
import { COMMANDS } from '../../lib/command/commands.js'
import type { Values } from '../../lib/command/options.js'
import { LOCAL_SECRET } from '../helpers/app.js'
import { setEnv } from '../helpers/environment.js'

const EMAIL = 'ada@example.com'
const TO = { 'base-url': 'https://app.example' }

/** Runs commands on a database of their own; what they note beside their output is left out. */
function runnerOf (t: Test) {
  const store = join(t.testdir({ 'users.db': '' }), 'users.db')
  setEnv(t, { LOCAL_IDP_SECRET: LOCAL_SECRET })
  t.intercept(process.stderr, 'write', { value: () => true })
  return {
    store,
    async run (name: string, who = EMAIL, values: Partial<Values> = {}): Promise<Record<string, any>> {
      const command = COMMANDS.get(name)
      if (command === undefined) throw new Error(`there is no command ${name}`)
      return command.run({ store, ...values }, who)
    }
  }
}

t.test('an operator does to a user all that there is to do, and gets back what it became', async t => {
  const { run } = runnerOf(t)
  await t.rejects(run('migrate', '', { check: true }), { code: 'unsupported', message: /run: npx fastify-svc-auth migrate$/ })
  await run('migrate')
  t.strictSame(await run('migrate', '', { check: true }), { migrated: [] })

  const { userId } = await run('create', EMAIL, { claim: ['role=editor', 'teams:=["a"]'] })
  t.match(await run('create', 'grace@example.com', TO), { url: /^https:\/\/app\.example\/auth\/local\/reset-password\?token=/, expiresIn: 1800 })
  t.match(await run('show'), { userId, emailVerified: true, claims: { role: 'editor', teams: ['a'] }, links: [{}], factors: [] })
  t.match(await run('grant', userId, { claim: ['role=admin'] }), { role: 'admin', teams: ['a'] })
  t.strictSame(await run('withdraw', userId, { claim: ['role', 'teams'] }), {})
  t.match(await run('block', userId, { until: '2999-01-01T00:00:00Z', reason: 'spam' }), { blocked: { reason: 'spam' } })
  await t.rejects(run('link', EMAIL, TO), { code: 'blocked' })
  t.match(await run('unblock'), { blocked: null })
  t.match(await run('block'), { blocked: { until: null } })
  await run('unblock')
  t.strictSame(await run('sign-out'), { userId })
  t.match(await run('reset-factors'), { userId })
  t.match(await run('link', EMAIL, TO), { url: /mail-login\?token=/, expiresIn: 600 })
  t.match(await run('export'), { email: EMAIL, hasPassword: false, factors: [], sessions: [] })
  await t.rejects(run('delete'), { name: 'OptionsError', message: /^delete needs --yes/ })
  t.strictSame(await run('delete', EMAIL, { yes: true }), { userId })
  await t.rejects(run('show'), { code: 'unknown_user', message: `No user has the e-mail or the id ${EMAIL}.` })
})

t.test('what cannot be done is refused, and nothing is written', async t => {
  const { store, run } = runnerOf(t)
  await t.rejects(run('show'), { code: 'unsupported', message: /^The database lacks .*; run: npx fastify-svc-auth migrate$/ })
  await t.rejects(run('create', EMAIL, { store: 'postgres://ada:secret@localhost/app' }), { message: /^--store has a password/ })
  await run('migrate')
  for (const claim of ['role', '=x', 'role:={']) {
    await t.rejects(run('create', EMAIL, { claim: [claim] }), { name: 'OptionsError', message: /^--claim must be name=value/ })
  }
  const users = new SqlAuthStore(store)
  t.teardown(() => users.close())
  t.equal(await users.findUser({ email: EMAIL }), null)

  new Sqlite(store).exec("insert into svc_auth_migrations values ('9999_later')").close()
  await t.rejects(run('show'), { code: 'unsupported', message: 'The database is of a newer version, with 9999_later; install that version.' })
})

t.test('a key is made, from a time on', async t => {
  const { run } = runnerOf(t)
  t.match(await run('key', '', { alg: 'EdDSA', 'not-before': '2999-01-01T00:00:00Z' }), { crv: 'Ed25519', notBefore: '2999-01-01T00:00:00Z' })
})
