import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import SqliteDatabase from 'better-sqlite3'
import type { TransactionSql } from 'postgres'
import t, { type Test } from 'tap'
import { type AuthPluginOptions, SignInRefused, SqlAuthStore, type UserCreation } from '../../lib/index.js'
import { Passkeys } from '../../lib/passkeys.js'
import { signedIn } from '../../lib/testing.js'
import { LOCAL_SECRET, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { command } from '../helpers/command.js'
import { DATA_SECRET } from '../helpers/factor-app.js'
import { ADA, startMailApp } from '../helpers/mail-app.js'
import { newDevice } from '../helpers/passkey-app.js'
import { emptyDatabase, query } from '../helpers/postgres.js'
import { signInAt } from '../helpers/own-provider.js'

const MEMBERS = 'create table members (user_id text primary key references svc_auth_users (user_id) on delete cascade, method text)'

/** An application on SQLite with a table of its own. */
async function startMembersApp (t: Test, options: AuthPluginOptions<SqliteDatabase.Database> = {}, local = {}) {
  const file = join(t.testdir(), 'users.db')
  const connection = new SqliteDatabase(file)
  connection.pragma('foreign_keys = on')
  t.teardown(() => connection.close())
  const store = new SqlAuthStore(connection)
  await store.migrate()
  connection.exec(MEMBERS)
  const created: Array<Omit<UserCreation, 'tx'>> = []
  const onCreateUser = ({ tx, ...creation }: UserCreation<SqliteDatabase.Database>) => {
    created.push(creation)
    tx.prepare('insert into members values (?, ?)').run(creation.user.userId, creation.method)
    return { claims: { org: 'one' } }
  }
  const all = { store, onCreateUser, rateLimit: undefined, ...options } as AuthPluginOptions
  const mailApp = await startMailApp(t, all, { signInByMail: { anyBrowser: true }, ...local })
  const count = (table: string) => connection.prepare(`select count(*) from ${table}`).pluck().get()
  return { ...mailApp, file, created, count, members: () => connection.prepare('select method from members').pluck().all() }
}

t.test('the hook runs whichever way a user comes, and its claims are in the first session', async t => {
  const { app, mails, browser, created, members } = await startMembersApp(t)
  const claimsAt = async (browser: Browser) => (await browser.get('/me')).json().principal?.claims.org

  await browser.post('/auth/local/register', ADA)
  t.equal(await claimsAt(browser), 'one', 'by a form')
  t.match(created.at(-1), { method: 'password', user: { email: ADA.email } })
  t.ok(created.at(-1)?.request?.id)

  const atProvider = new Browser(app)
  await signInAt(atProvider, 'a', { subject: 'bob', email: 'bob@example.com' })
  t.equal(await claimsAt(atProvider), 'one', 'by a provider')
  t.match(created.at(-1), { method: 'provider', identity: { provider: 'a', subject: 'bob', emailVerified: true } })

  const byMail = new Browser(app)
  await byMail.post('/auth/local/mail-login', { email: 'eve@example.com' })
  await byMail.post('/auth/local/mail-login/confirm', { token: (await mails.next('sign-in')).token })
  t.equal(await claimsAt(byMail), 'one', 'by mail')
  t.match(created.at(-1), { method: 'mail', user: { email: 'eve@example.com' } })

  t.match(await app.auth.createUser({ email: 'invited@example.com' }), { claims: { org: 'one' } })
  t.match(created.at(-1), { method: 'application' })
  await signedIn(app)
  t.strictSame(members(), ['password', 'provider', 'mail', 'application', 'password'])

  await signInAt(new Browser(app), 'a', { subject: 'bob', email: 'bob@example.com' })
  t.equal(created.length, 5, 'not at the next sign-in')
})

t.test('a registration behind the link in a mail runs the hook when the user is made', async t => {
  const { mails, browser, members } = await startMembersApp(t, {}, { registration: { verify: 'first' } })
  await browser.post('/auth/local/register', { email: ADA.email })
  t.strictSame(members(), [])
  await browser.post('/auth/local/register', { token: (await mails.next('register')).token, password: ADA.password })
  t.strictSame(members(), ['password'])
})

t.test('a registration with a passkey runs the hook', async t => {
  const options = { passkeys: new Passkeys({ name: 'Shop' }), dataSecret: DATA_SECRET }
  const { mails, browser, created, members } = await startMembersApp(t, options, { registration: { passkey: true } })
  await browser.post('/auth/local/register', { email: ADA.email })
  const { token } = await mails.next('register')
  const asked = await browser.post('/auth/local/passkeys/options', { for: 'register', token })
  const answer = await browser.post('/auth/local/register', { token, response: newDevice().create(asked.json()) })
  t.match([answer.statusCode, answer.json()], [201, { claims: { org: 'one' } }])
  t.strictSame(members(), ['passkey'])
  t.match(created, [{ user: { userId: answer.json().userId, factors: ['passkey'] } }])
})

t.test('a sign-up that the hook refuses answers its code, others 500, and leaves no user', async t => {
  const refusals: Array<[() => never, number, string]> = [
    [() => { throw new SignInRefused('no_seat') }, 403, 'no_seat'],
    [() => { throw new Error('a mistake') }, 500, 'internal_error']
  ]
  for (const [onCreateUser, status, code] of refusals) {
    const { app, browser, count } = await startMembersApp(t, { onCreateUser })
    const answer = await browser.post('/auth/local/register', ADA)
    t.match([answer.statusCode, answer.json().code], [status, code])
    t.match((await signInAt(new Browser(app), 'a', { subject: 'bob' })).headers.location ?? code, new RegExp(code))
    t.strictSame([count('svc_auth_users'), count('members')], [0, 0])
  }
})

t.test('a user whom onSignIn refuses is deleted with the rows', async t => {
  const { browser, count, created } = await startMembersApp(t, { onSignIn () { throw new SignInRefused('closed') } })
  t.equal((await browser.post('/auth/local/register', ADA)).json().code, 'closed')
  t.equal(created.length, 1)
  t.strictSame([count('svc_auth_users'), count('members')], [0, 0])
})

t.test('a user whom onSignIn refuses and whose rows forbid the deletion stays, and the log says so', async t => {
  const lines: string[] = []
  const connection = new SqliteDatabase(':memory:')
  connection.pragma('foreign_keys = on')
  t.teardown(() => connection.close())
  const store = new SqlAuthStore(connection)
  await store.migrate()
  connection.exec(MEMBERS.replace('on delete cascade', ''))
  const options = {
    store,
    onCreateUser: ({ tx, user, method }: UserCreation) => {
      (tx as SqliteDatabase.Database).prepare('insert into members values (?, ?)').run(user.userId, method)
    },
    onSignIn () { throw new SignInRefused('closed') }
  }
  const log = { logger: { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } } }
  const { browser } = await startMailApp(t, options, {}, log)

  t.equal((await browser.post('/auth/local/register', ADA)).json().code, 'closed')
  t.equal(connection.prepare('select count(*) from svc_auth_users').pluck().get(), 1)
  t.match(lines.join(''), /"code":"user_in_use".*a new user who was not signed in could not be deleted/)
})

t.test('on Postgres the function is awaited, and its claims are in the first session', async t => {
  const url = await emptyDatabase(t)
  const store = new SqlAuthStore(url)
  await store.migrate()
  await query(url, MEMBERS.replace('user_id text', 'user_id uuid'))
  const options = {
    store,
    rateLimit: undefined,
    onCreateUser: async ({ tx, user, method }: UserCreation) => {
      await (tx as TransactionSql)`insert into members values (${user.userId}, ${method})`
      if (user.email === 'full@example.com') throw new SignInRefused('no_seat')
      return { claims: { org: 'one' } }
    }
  }
  const { app, mails, browser } = await startMailApp(t, options, { signInByMail: { anyBrowser: true } })
  const [atProvider, byMail, refused] = [new Browser(app), new Browser(app), new Browser(app)]

  await browser.post('/auth/local/register', ADA)
  await signInAt(atProvider, 'a', { subject: 'bob', email: 'bob@example.com' })
  await byMail.post('/auth/local/mail-login', { email: 'eve@example.com' })
  await byMail.post('/auth/local/mail-login/confirm', { token: (await mails.next('sign-in')).token })
  t.equal((await refused.post('/auth/local/register', { ...ADA, email: 'full@example.com' })).json().code, 'no_seat')

  for (const user of [browser, atProvider, byMail]) t.equal((await user.get('/me')).json().principal?.claims.org, 'one')
  t.strictSame(await query(url, 'select method from members join svc_auth_users using (user_id) order by method'),
    [{ method: 'mail' }, { method: 'password' }, { method: 'provider' }])
  t.strictSame(await query(url, 'select count(*)::int from svc_auth_users'), [{ count: 3 }])
})

t.test('an async function on SQLite, and what is no function, are refused at the start', async t => {
  const onSqlite = { store: new SqlAuthStore(':memory:'), async onCreateUser () {} }
  await t.rejects(startApp(t, onSqlite), { name: 'OptionsError', message: /^onCreateUser must not be an async function with SQLite/ })
  await t.rejects(startApp(t, { onCreateUser: 'members' as never }), { name: 'OptionsError', message: /^onCreateUser must be a function/ })
})

t.test('the command line runs the hook of --app, and says that it runs none without', async t => {
  const { file, members } = await startMembersApp(t)
  const library = new URL('../../lib/index.ts', import.meta.url).href
  const module = join(t.testdirName, 'options.mjs')
  writeFileSync(module, `import { LocalIdentityProvider, SqlAuthStore } from '${library}'
    export default {
      baseUrl: 'https://app.example',
      local: new LocalIdentityProvider({ sendMail () {} }),
      store: new SqlAuthStore('${file}'),
      onCreateUser ({ tx, user, method }) { tx.prepare('insert into members values (?, ?)').run(user.userId, method) }
    }`)

  const without = await command(['create', 'bob@example.com', '--store', file])
  t.match(without, { code: 0, stderr: /A hook onCreateUser of the application runs only with --app\./ })
  t.strictSame(members(), [])
  t.match(await command(['create', 'eve@example.com', '--app', module], { LOCAL_IDP_SECRET: LOCAL_SECRET }), { code: 0, stderr: /^(?!.*onCreateUser)/s })
  t.strictSame(members(), ['application'])
})
