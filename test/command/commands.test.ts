/** What each command does, in this process; command.long.ts has them as processes, on each database. */
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import t, { type Test } from 'tap'
import { Authorization, SqlAuthStore } from '../../lib/index.js'
import { ar, de, en, es, fr, ja } from '../../lib/mails.js'
import { html } from '../../lib/core/pages/elements.js'
import { COMMANDS, run } from '../../lib/command/commands.js'
import type { ParsedOptions } from '../../lib/command/options.js'
import { LOCAL_SECRET } from '../helpers/app.js'
import { setEnv } from '../helpers/environment.js'

const EMAIL = 'ada@example.com'
const TO = { 'base-url': 'https://app.example', issuer: 'svc-auth-local', prefix: '/auth' }

/** Runs commands on a database of their own; what they note beside their output is kept apart. */
function runnerOf (t: Test) {
  const store = join(t.testdir({ 'users.db': '' }), 'users.db')
  setEnv(t, { LOCAL_IDP_SECRET: LOCAL_SECRET })
  const notes: string[] = []
  t.intercept(process.stderr, 'write', { value: (text: string) => notes.push(text) })
  return {
    store,
    notes,
    async run (name: string, who = EMAIL, values: Partial<ParsedOptions> = {}): Promise<Record<string, any>> {
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
  t.match(await run('link', EMAIL, TO), { url: /reset-password\?token=/, expiresIn: 1800 })
  t.match(await run('export'), { email: EMAIL, hasPassword: false, factors: [], sessions: [] })
  const { id } = await run('api-key create', EMAIL, { name: 'Laptop', scope: ['notes:read'], 'key-prefix': 'shop' })
  for (const name of ['show', 'export']) {
    const { keys: [key] } = await run(name)
    t.match(key, { id, name: 'Laptop', scopes: ['notes:read'], userId, owner: null, lastUsedAt: null, expiresAt: null })
    t.strictSame(Object.keys(key).length, 8, 'neither its hash nor its secret')
  }
  await t.rejects(run('delete'), { name: 'OptionsError', message: /^delete needs --yes/ })
  t.strictSame(await run('delete', EMAIL, { yes: true }), { userId })
  await t.rejects(run('show'), { code: 'unknown_user', message: `No user has the e-mail or the id ${EMAIL}.` })
})

t.test('attack 164: what cannot be done is refused, a password in --store too, and nothing is written', async t => {
  const { store, run } = runnerOf(t)
  await t.rejects(run('show'), { code: 'unsupported', message: /^The database lacks .*; run: npx fastify-svc-auth migrate$/ })
  for (const target of [
    'postgres://ada:secret@localhost/app', 'postgres://ada:secret@one:1,two:2/app', 'postgres://localhost/app?password=secret',
    'postgres://localhost/app?sslmode=require&pass%77ord=secret', 'postgres://localhost/app?sslpassword=secret',
    'postgres://localhost/app?PASSWORD=secret', 'postgres://ada:@localhost/app?password=secret', 'postgres://:secret@localhost/app'
  ]) {
    for (const name of ['create', 'show', 'migrate']) {
      await t.rejects(run(name, EMAIL, { store: target }), { name: 'OptionsError', message: /^--store has a password(?!.*secret)/ }, target)
    }
  }
  for (const target of ['postgres://ada@localhost:1/app?connect_timeout=1', 'postgres://ada@localhost:1,localhost:2/app']) {
    await t.rejects(run('show', EMAIL, { store: target }), { code: 'unavailable' }, target)
  }
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

t.test('a file that does not exist is told, and not made', async t => {
  const { run } = runnerOf(t)
  const store = join(t.testdir({}), 'none.db')
  for (const [name, values] of [['show', {}], ['create', {}], ['migrate', { check: true }]] as const) {
    await t.rejects(run(name, EMAIL, { store, ...values }), { code: 'unavailable', cause: { message: /the file does not exist; .* migrate$/ } }, name)
  }
  t.notOk(existsSync(store))
})

t.test('link warns as grant does before it opens an account whose address nobody has confirmed', async t => {
  const { store, run, notes } = runnerOf(t)
  await run('migrate')
  const users = new SqlAuthStore(store)
  t.teardown(() => users.close())
  const auth = new Authorization(users)
  await auth.createUser({ email: EMAIL })
  await auth.createUser({ email: 'grace@example.com', emailVerified: true })
  const attempts: Array<[string, Partial<ParsedOptions>]> = [['grant', { claim: ['role=admin'] }], ['link', TO]]
  for (const [name, values] of attempts) {
    notes.length = 0
    await run(name, EMAIL, values)
    t.match(notes[0], /^The e-mail is not confirmed: make sure that it is theirs/, `${name}, before all else`)
    notes.length = 0
    await run(name, 'grace@example.com', values)
    t.notMatch(notes.join(''), /not confirmed/, name)
  }
})

t.test('attack 163: control characters of names and browsers reach no terminal, and the text is the same', async t => {
  const { store, run: runCommand } = runnerOf(t)
  await runCommand('migrate')
  const users = new SqlAuthStore(store)
  t.teardown(() => users.close())
  const hostile = Array.from({ length: 0xa0 }, (_, code) => String.fromCharCode(code)).join('').replace('\0', '') + '\u202e\u2028\u2069'
  const { userId, generation } = await new Authorization(users).createUser({ email: EMAIL, emailVerified: true, claims: { note: hostile } })
  const now = Date.now()
  const user = { userId, provider: 'application', claims: { sub: userId }, generation, proofs: { at: now, methods: [] } }
  await users.sessions.insert({ idHash: 'a', user, data: null, userAgent: hostile, createdAt: now, expiresAt: now + 60_000 }, null)
  const printed: string[] = []
  for (const stream of [process.stdout, process.stderr]) {
    t.intercept(stream, 'write', { value: (text: string) => printed.push(text) })
  }
  const runs = [
    ['show', EMAIL], ['export', EMAIL], ['export', EMAIL, '--json'], ['grant', EMAIL, '--claim', `name=${hostile}`],
    ['block', EMAIL, '--reason', hostile], ['show', `x${hostile}@example.com`], ['show', hostile, '--json'], [hostile], ['show', `--${hostile}`]
  ]
  const outputs = []
  for (const args of runs) {
    printed.length = 0
    await run([...args, '--store', store])
    outputs.push(printed.join(''))
  }
  for (const output of outputs) t.notMatch(output, /(?!\n)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u)
  t.equal(JSON.parse(outputs[1] ?? '').claims.note, hostile)
  t.equal(JSON.parse(outputs[2] ?? '').sessions[0].userAgent, hostile)
})

t.test('a key is made, from a time on', async t => {
  const { run } = runnerOf(t)
  t.match(await run('key', '', { alg: 'EdDSA', 'not-before': '2999-01-01T00:00:00Z' }), { crv: 'Ed25519', notBefore: '2999-01-01T00:00:00Z' })
})

t.test('mails writes each mail in each language, with the options of the application, and leaves other files', async t => {
  const { run } = runnerOf(t)
  const folder = t.testdir({ 'readme.md': 'mine', 'options.mjs': "export const mails = { name: 'Acme', brand: '#ffd400' }" })
  const out = join(folder, 'mails')
  const { written, index } = await run('mails', '', { out })
  const files = readdirSync(out)
  t.equal(written, files.length)
  t.equal(index, join(out, 'index.html'))
  const page = readFileSync(index, 'utf8')
  for (const { language, kinds } of [en, de, es, fr, ar, ja]) {
    for (const [kind, { subject }] of Object.entries(kinds)) {
      const [document = '', text = ''] = ['html', 'txt'].map(type => readFileSync(join(out, `${kind}.${language}.${type}`), 'utf8'))
      t.match(document, `<title>${html`${subject}`.source}</title>`)
      t.match(document, `<html lang="${language}"`)
      t.match(text, /\n-- \nShop\n$/)
      t.match(page, `<a href="${kind}.${language}.html">`)
      t.match(page, `<a href="${kind}.${language}.txt">`)
    }
  }
  t.equal(files.length, 6 * 2 * Object.keys(en.kinds).length + 1)

  await run('mails', '', { out: folder, app: join(folder, 'options.mjs') })
  t.match(readFileSync(join(folder, 'sign-in.en.html'), 'utf8'), /bgcolor="#ffd400"[^]*color: #000000/)
  t.match(readFileSync(join(folder, 'sign-in.en.txt'), 'utf8'), /\n-- \nAcme\n$/)
  t.equal(readFileSync(join(folder, 'readme.md'), 'utf8'), 'mine')
})

t.test('mails says what is wrong with its folder, and with the options of the application', async t => {
  const { run } = runnerOf(t)
  const folder = t.testdir({})
  const attempts: Array<[string, RegExp]> = [
    ['export default {}', /^--app must name a module that exports the options of mailTexts as mails/],
    ["export const mails = { name: 'Acme', brand: 'red' }", /^mailTexts: brand must be a color/],
    ['export const mails = {}', /^mailTexts: name must be/],
    ["export const mails = { name: 'Acme', languages: 'en' }", /^mailTexts: languages must be/]
  ]
  for (const [index, [source, message]] of attempts.entries()) {
    const app = join(folder, `${index}.mjs`)
    writeFileSync(app, source)
    await t.rejects(run('mails', '', { out: join(folder, 'none'), app }), { name: 'OptionsError', message })
  }
  t.notOk(existsSync(join(folder, 'none')))
  await t.rejects(run('mails'), { name: 'OptionsError', message: /^mails needs --out/ })
  await t.rejects(run('mails', '', { out: join(folder, '0.mjs', 'mails') }), { name: 'OptionsError', message: /^--out cannot be written: ENOTDIR/ })
})
