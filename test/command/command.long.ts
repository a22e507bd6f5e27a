/** The command line, each command as a process of its own. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import t, { type Test } from 'tap'
import { Accounts } from '../../lib/accounts/accounts.js'
import { Authorization, LocalIdentityProvider, SqlAuthStore } from '../../lib/index.js'
import { COMMANDS } from '../../lib/command/commands.js'
import { COMMAND, command, ended } from '../helpers/command.js'
import { emptyDatabase, query } from '../helpers/postgres.js'
import { freePort } from '../helpers/loopback.js'

const EMAIL = 'ada@example.com'
const DEFAULTS = ['--issuer', 'svc-auth-local', '--prefix', '/auth']
const FOLDER = mkdtempSync(join(tmpdir(), 'svc-auth-command-'))
t.teardown(() => { rmSync(FOLDER, { recursive: true }) })

/** Each makes an empty database. */
const DATABASES: Record<string, (t: Test) => Promise<string>> = {
  SQLite: async t => join(t.testdir(), 'users.db'),
  Postgres: emptyDatabase
}

for (const [engine, emptyDatabase] of Object.entries(DATABASES)) {
  t.test(`on ${engine}, an operator makes the tables, then a user, and does all to them that there is to do`, async t => {
    const database = await emptyDatabase(t)
    const run = async (...args: string[]) => command(args, { LOCAL_AUTH_DB: database })
    const json = async (...args: string[]) => {
      const { code, stdout, stderr } = await run(...args, '--json')
      t.equal(code, 0, args.join(' '))
      t.equal(stdout.split('\n').length, 2, 'on one line')
      return { ...JSON.parse(stdout), audited: stderr }
    }

    t.match(await run('migrate', '--check'), { code: 1, stderr: /^(?:The database lacks 0000_|The database cannot be used: .*the file does not exist).*\n$/ })
    t.match((await json('migrate')).migrated.length, 5)
    t.match(await run('migrate', '--check'), { code: 0, stderr: '' })

    const created = await json('create', 'Ada@Example.com', '--claim', 'role=admin', '--claim', 'teams:=["a","b"]')
    t.match(created, { email: EMAIL, emailVerified: true, claims: { role: 'admin', teams: ['a', 'b'] } })
    const [event = '', sentence = ''] = created.audited.split('\n')
    t.equal(sentence, 'A hook onCreateUser of the application runs only with --app.')
    const line = JSON.parse(event)
    t.match(line, { event: 'fastify-svc-auth.creation', userId: created.userId, actor: /^command:\w+$/, time: /^20/ })
    t.match(await run('create', EMAIL), { code: 1, stdout: '', stderr: /^An account with this e-mail already exists/ })

    t.match(await json('show', created.userId), { email: EMAIL, links: [{ provider: 'application' }], factors: [] })
    t.match(await json('grant', EMAIL, '--claim', 'role=owner=x'), { role: 'owner=x', teams: ['a', 'b'], audited: '.grant' })
    t.strictSame(JSON.parse((await run('withdraw', EMAIL, '--claim', 'role')).stdout), { teams: ['a', 'b'] })
    t.match(await json('block', EMAIL, '--until', '2099-01-01T00:00:00Z', '--reason', 'spam'), {
      blocked: { until: '2099-01-01T00:00:00.000Z', reason: 'spam' }, generation: 1, audited: '.block'
    })
    t.notMatch(await json('unblock', EMAIL), { blocked: {} })
    t.match(await json('sign-out', EMAIL), { userId: created.userId, audited: '.sign-out-everywhere' })

    const store = new SqlAuthStore(database)
    t.teardown(() => store.close())
    await new Accounts(store).changeFactors(created.userId, {
      endsSessions: false,
      change: () => [{ id: 'a-key', kind: 'passkey', name: 'Key', secret: 'sealed', data: { publicKey: 'public' }, counter: 1, createdAt: 1, usedAt: null }]
    })
    const local = new LocalIdentityProvider({ secret: 's'.repeat(32), argon2: { memoryCost: 8, timeCost: 1, parallelism: 1 } })
    await new Authorization(store, undefined, local).setPassword(created.userId, 'correct horse')
    const user = { userId: created.userId, provider: 'local', claims: { sub: EMAIL }, generation: 3, proofs: { at: 1, methods: [] } }
    await store.sessions.insert({
      idHash: 'a-hash-of-a-session-of-32-chars.', user, data: null, userAgent: 'Firefox', createdAt: Date.now(), expiresAt: Date.now() + 60_000
    }, null)
    const { stdout: exported } = await run('export', EMAIL)
    t.match(JSON.parse(exported), {
      userId: created.userId,
      email: EMAIL,
      claims: { teams: ['a', 'b'] },
      hasPassword: true,
      links: [{ provider: 'application' }, { provider: 'local', subject: EMAIL }],
      factors: [{ id: 'a-key', kind: 'passkey', name: 'Key' }],
      sessions: [{ userAgent: 'Firefox' }],
      emailVerified: true
    })
    t.notMatch(exported, /argon2|sealed|publicKey|a-hash-of/, 'without secrets and hashes')
    t.notMatch(await json('reset-factors', EMAIL), { factors: [] })
    t.strictSame(await store.factors(created.userId), [])

    t.match(await run('delete', EMAIL), { code: 2, stdout: '', stderr: /^delete needs --yes/ })
    t.match(await json('delete', EMAIL, '--yes'), { audited: '.deletion' })
    t.match(await run('show', EMAIL), { code: 1, stdout: '', stderr: `No user has the e-mail or the id ${EMAIL}.\n` })
    t.strictSame(JSON.parse((await run('show', created.userId, '--json')).stderr).code, 'unknown_user')
  })

  t.test(`on ${engine}, a database of a newer version is left alone, by one sentence; tables of the application's own are taken`, async t => {
    const database = await emptyDatabase(t)
    const run = async (...args: string[]) => command(args, { LOCAL_AUTH_DB: database })
    const execute = async (statement: string): Promise<void> => executeOn(engine, database, statement)
    await run('migrate')
    await execute("insert into svc_auth_migrations values ('9999_later')")
    for (const args of [['show', EMAIL], ['migrate'], ['migrate', '--check']]) {
      t.match(await run(...args), { code: 1, stdout: '', stderr: 'The database is of a newer version, with 9999_later; install that version.\n' })
    }
    await execute("delete from svc_auth_migrations where name <> '0000_tables-users'")
    t.match(await run('show', EMAIL), { code: 1, stderr: 'The database lacks 0000_tables-sessions; run: npx fastify-svc-auth migrate\n' })
    await execute('drop table svc_auth_migrations')
    t.match(await run('create', EMAIL), { code: 0 })
    t.match(await run('migrate', '--check'), { code: 0 })
  })

  t.test(`on ${engine}, the tables of a feature that no application uses need not be there`, async t => {
    const database = await emptyDatabase(t)
    const run = async (...args: string[]) => command([...args, '--json'], { LOCAL_AUTH_DB: database })
    await run('migrate')
    await run('create', EMAIL)
    await executeOn(engine, database, 'drop table svc_auth_clients; drop table svc_auth_grants')
    await executeOn(engine, database, "delete from svc_auth_migrations where name = '0000_tables-grants'")
    const shown = async () => JSON.parse((await run('show', EMAIL)).stdout)
    t.notOk('clients' in await shown())
    t.match(await run('migrate', '--check'), { code: 0 })
    t.match(await run('migrate'), { code: 0 })
    t.strictSame((await shown()).clients, [])
  })
}

t.test('a database that is away, cannot be opened or is none is one sentence, without a stack and a password', async t => {
  const folder = t.testdir({ 'notes.txt': 'this is not a database, however long it may be' })
  const port = await freePort()
  for (const [target, code, sentence] of [
    [`postgres://app:the-password@127.0.0.1:${port}/app`, 1, /^The database cannot be used: .*ECONNREFUSED.*start the server/],
    [join(folder, 'nothing.db'), 1, /^The database cannot be used: .*the file does not exist; .*migrate/],
    [join(folder, 'notes.txt'), 1, /^The database cannot be used: .*not a database/],
    ['users', 2, /^target must name an SQLite file/]
  ] as const) {
    const { stderr, ...rest } = await command(['show', EMAIL], { LOCAL_AUTH_DB: target })
    t.strictSame(rest, { code, stdout: '' })
    t.match(stderr, sentence)
    assertSentence(t, stderr)
    t.notMatch(stderr, 'the-password')
  }
  t.notOk(existsSync(join(folder, 'nothing.db')), 'and no file is made')
  const { code, stderr } = await command(['show', EMAIL, '--store', 'postgres://app:the-password@localhost/app'])
  t.equal(code, 2)
  t.match(stderr, /^--store has a password, .*set LOCAL_AUTH_DB/)
  t.notMatch(stderr, 'the-password')
})

t.test('wrong usage is one sentence and exit code 2', async t => {
  const database = await prepared(EMAIL)
  for (const [args, sentence] of [
    [[], /^There is no command ""\. See/],
    [['gratn', EMAIL], /Did you mean grant\?/],
    [['sing-out', EMAIL], /Did you mean sign-out\?/],
    [['__proto__'], /^There is no command/],
    [['telephone'], /^There is no command "telephone"\. See/],
    [['show'], /^Usage: npx fastify-svc-auth show <user>\n$/],
    [['grant', EMAIL, 'role=admin'], /^Usage: npx fastify-svc-auth grant <user> --claim k=v\.\.\.\n$/],
    [['show', EMAIL, '--yes'], /^Usage: npx fastify-svc-auth show/],
    [['show', EMAIL, '--nothing'], /^Unknown option '--nothing'/],
    [['key', '--alg', 'RS256'], /^alg must be ES256 or EdDSA/],
    [['key', '--not-before', 'tomorrow'], /^notBefore must be a time/],
    [['link', EMAIL], /^A link needs --base-url, --issuer, --prefix as the application has them .*, or --app/],
    [['create', EMAIL, '--base-url', 'https://app.example'], /^A link needs --issuer, --prefix as/],
    [['link', EMAIL, '--base-url', 'app.example', ...DEFAULTS], /^baseUrl must be/],
    [['link', EMAIL, '--base-url', 'https://app.example', ...DEFAULTS, '--prefix', 'x'], /^prefix must be/]
  ] as const) {
    const { stderr, ...rest } = await command(args, { LOCAL_AUTH_DB: database, LOCAL_IDP_SECRET: 's'.repeat(32) })
    t.strictSame(rest, { code: 2, stdout: '' }, args.join(' '))
    t.match(stderr, sentence)
    assertSentence(t, stderr)
  }
  const { code, stderr } = await command(['create', EMAIL, '--base-url', 'https://app.example', ...DEFAULTS], { LOCAL_AUTH_DB: await prepared() })
  t.match([code, stderr], [2, /set LOCAL_IDP_SECRET/])
  t.match(await command(['show', EMAIL], { LOCAL_AUTH_DB: await prepared() }), { code: 1 }, 'and no user was made')
  for (const claim of ['role', 'r:=x']) {
    const ended = await command(['grant', EMAIL, '--claim', claim], { LOCAL_AUTH_DB: database })
    t.match(ended, { code: 2, stderr: /^--claim must be name=value/ })
  }
})

t.test('the help fits a screen and names all commands; no output has a color, whatever asks for one', async t => {
  const { code, stdout } = await command(['--help'], { FORCE_COLOR: '3' })
  const lines = stdout.trimEnd().split('\n')
  t.equal(code, 0)
  t.ok(lines.length <= 24 && lines.every(line => line.length <= 80), `${lines.length} lines of ${Math.max(...lines.map(line => line.length))}`)
  for (const name of COMMANDS.keys()) t.match(stdout, new RegExp(`^  ${name} `, 'm'))
  t.match(await command(['grant', '--help'], {}), { code: 0, stdout: /^Usage: npx fastify-svc-auth grant <user> --claim k=v\.\.\.\nGrant claims/ })
  t.notMatch(stdout + (await command(['show', EMAIL], { FORCE_COLOR: '3', LOCAL_AUTH_DB: await prepared(EMAIL) })).stdout, '\u001b')
})

t.test('a reader that leaves early, such as head, leaves no stack', async t => {
  const script = `"$@" export ${EMAIL} | head -1; exit \${PIPESTATUS[0]}`
  const { code, stdout, stderr } = await ended(['bash', '-c', script, 'bash', ...COMMAND], { LOCAL_AUTH_DB: await prepared(EMAIL) })
  t.strictSame({ code, stdout, stderr }, { code: 0, stdout: '{\n', stderr: '' })
  const unread = script.replace('head -1', 'true')
  const closed = await ended(['bash', '-c', unread, 'bash', ...COMMAND], { LOCAL_AUTH_DB: await prepared(EMAIL) })
  t.strictSame(closed, { code: 0, stdout: '', stderr: '' })
})

t.test('a claim for an address that is not confirmed comes with a warning', async t => {
  const database = await prepared()
  const store = new SqlAuthStore(database)
  await new Authorization(store).createUser({ email: EMAIL })
  await store.close()
  t.match(await command(['grant', EMAIL, '--claim', 'role=admin'], { LOCAL_AUTH_DB: database }), {
    code: 0, stderr: /^The e-mail is not confirmed: make sure that it is theirs\.\n/
  })
})

t.test('a key that the command makes signs tokens, from its time on', async t => {
  for (const alg of ['ES256', 'EdDSA']) {
    const { stdout } = await command(['key', '--alg', alg, '--not-before', '2099-01-01T00:00:00Z'])
    const coming = JSON.parse(stdout)
    const now = JSON.parse((await command(['key', '--json'])).stdout)
    const local = new LocalIdentityProvider({ signingKey: [coming, now] })
    t.strictSame(local.jwks?.keys.map(({ alg }) => alg), [alg, 'ES256'])
    t.match(await local.verifyIdToken(await local.issueIdToken('a program')), { sub: 'a program' })
  }
})

let count = 0

async function executeOn (engine: string, database: string, statement: string): Promise<void> {
  if (engine === 'Postgres') await query(database, statement)
  else new Sqlite(database).exec(statement).close()
}

/** A database with tables, and with a user if one is named. */
async function prepared (email?: string): Promise<string> {
  const file = join(FOLDER, `${++count}.db`)
  const store = new SqlAuthStore(file)
  await store.migrate()
  if (email !== undefined) await new Authorization(store).createUser({ email, emailVerified: true })
  await store.close()
  return file
}

function assertSentence (t: Test, text: string): void {
  t.match(text, /^[^\n]+\n$/, 'one line')
  t.notMatch(text, /^ +at /m)
}
