import { spawnSync } from 'node:child_process'
import { buffer } from 'node:stream/consumers'
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { FastifyInstance } from 'fastify'
import { SMTPServer, type SMTPServerDataStream } from 'smtp-server'
import t, { type Test } from 'tap'
import { signedIn } from '../../lib/testing.js'
import { Browser } from '../helpers/browser.js'
import { listening } from '../helpers/loopback.js'
import { confirmAddress } from '../helpers/mail-app.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { isSoon } from '../helpers/soon.js'
import { isThorough } from '../helpers/thorough.js'

const FOLDER = join(import.meta.dirname, '../../examples')
const ADA = { email: 'ada@example.com', password: 'a correct horse' }

Object.assign(process.env, {
  PORT: '0',
  SVC_SESSION_SECRET: 'a-secret-for-the-sessions-of-examples',
  LOCAL_IDP_SECRET: 'a-secret-for-the-tokens-of-examples',
  LOCAL_AUTH_DB: ':memory:',
  FIRST_ADMIN: 'ada@example.com',
  ...Object.fromEntries(['GOOGLE', 'GITHUB', 'GITLAB'].flatMap(name => [[`${name}_CLIENT_ID`, 'id'], [`${name}_CLIENT_SECRET`, 'secret']]))
})

/** Starts an example, as it is written. */
async function start (t: Test, name: string): Promise<FastifyInstance> {
  const { app } = await import(join(FOLDER, `${name}.ts`))
  t.teardown(() => app.close())
  app.log.level = 'silent'
  return app
}

async function register (app: FastifyInstance, credentials = ADA): Promise<{ browser: Browser, userId: string }> {
  const browser = new Browser(app)
  return { browser, userId: (await browser.post('/auth/local/register', credentials)).json().userId }
}

t.test('01: a registered user is known', async t => {
  const app = await start(t, '01-basic')
  const { browser } = await register(app)

  t.equal((await app.inject('/me')).statusCode, 401)
  t.match((await browser.get('/me')).json(), { provider: 'local', claims: { email: ADA.email } })
  t.equal((await browser.get('/')).body, 'You are ada@example.com.')
})

t.test('02: a password needs 12 characters, and a user chooses a role', async t => {
  const app = await start(t, '02-passwords')
  const browser = new Browser(app)

  t.match((await browser.post('/auth/local/register', { ...ADA, password: 'too short' })).json(), { code: 'weak_password' })
  t.equal((await browser.post('/auth/local/register', { ...ADA, role: 'writer' })).statusCode, 201)
  t.match((await browser.get('/')).body, 'You are a writer.')
  t.match((await app.inject('/login')).body, 'action="/auth/local/register"')
})

t.test('03: the page has a link for each provider, which leads there', async t => {
  const app = await start(t, '03-google-and-github')

  t.match((await app.inject('/login')).body, /google\/login[^]*github\/login/)
  t.match((await app.inject('/auth/github/login')).headers.location, /^https:\/\/github\.com\//)
})

t.test('04: claims and guards', async t => {
  const mail = new Promise<string>(resolve => { t.intercept(console, 'log', { value: resolve }) })
  const app = await start(t, '04-claims-and-guards')
  const { browser: ada, userId: adasId } = await register(app)
  const { browser: emmy, userId } = await register(app, { ...ADA, email: 'emmy@example.com' })
  const makeEditor = async (browser: Browser) => (await browser.post(`/users/${userId}/editor`, {})).statusCode
  const drafts = async () => (await emmy.get('/drafts')).statusCode

  await t.test('a stranger who typed the address of FIRST_ADMIN becomes no administrator', async t => {
    t.equal(await makeEditor(ada), 403)
    await ada.post('/auth/local/login', ADA)
    t.equal(await makeEditor(ada), 403)
    t.strictSame((await app.auth.findUser({ userId: adasId }))?.claims, {})
  })

  await t.test('a stranger without an address becomes no administrator while FIRST_ADMIN is unset', async t => {
    const { FIRST_ADMIN } = process.env
    t.teardown(() => { process.env.FIRST_ADMIN = FIRST_ADMIN })
    delete process.env.FIRST_ADMIN
    const { userId } = await app.auth.createUser({ name: 'A stranger' })

    await signedIn(app, { userId })

    t.strictSame((await app.auth.findUser({ userId }))?.claims, {})
  })

  await t.test('the user who confirms the address is the administrator, and makes an editor', async t => {
    const [, token] = /token=(\S+)/.exec(await mail) ?? []
    t.equal((await confirmAddress(ada, String(token))).statusCode, 204)
    await ada.post('/auth/local/login', ADA)

    t.equal(await makeEditor(emmy), 403)
    t.equal(await drafts(), 403)
    t.equal(await makeEditor(ada), 200)
    t.equal(await drafts(), 200, 'at once')
    await app.auth.withdraw(userId, ['role'])
    t.equal(await drafts(), 403, 'until withdrawn')
  })
})

t.test('05: notes refer to the users of the store', { skip: isThorough ? false : 'drizzle-kit takes its time' }, async t => {
  const folder = t.testdir()
  const schema = join(FOLDER, '05-postgres-and-migrations.ts')
  const generate = ['drizzle-kit', 'generate', '--dialect', 'postgresql', '--schema', schema, '--out', join(folder, 'migrations')]
  const kit = spawnSync('npx', generate, { cwd: join(FOLDER, '..'), encoding: 'utf8' })
  t.equal(kit.status, 0, kit.stderr)
  const { buildApp } = await import(schema)
  const before = process.cwd()
  process.chdir(folder)
  const app: FastifyInstance = await buildApp(await emptyDatabase(t))
  process.chdir(before)
  t.teardown(() => app.close())
  app.log.level = 'silent'
  const { browser, userId } = await register(app)

  t.match((await browser.post('/notes', { text: 'a note' })).json(), [{ text: 'a note', authorId: userId }])
  await t.resolves(app.auth.deleteUser(userId), 'with the notes')
})

t.test('06: the provider is asked where its host says', async t => {
  await start(t, '06-own-provider')
  const { GitLabProvider } = await import(join(FOLDER, '06-own-provider.ts'))

  t.equal(new GitLabProvider({ clientId: 'id', clientSecret: 'secret' }).name, 'gitlab')
})

t.test('07: a cookie or a token, and a token for one service only', async t => {
  const app = await start(t, '07-api-with-tokens')
  const { browser, userId } = await register(app)
  const tokenFrom = async (path: string): Promise<string> => (await browser.post(path, {})).json().token
  const ask = async (url: string, token: string) => app.inject({ url, headers: { authorization: `Bearer ${token}` } })
  const [token, reportToken] = [await tokenFrom('/auth/local/token'), await tokenFrom('/api/report-token')]

  t.equal((await app.inject('/api/me')).statusCode, 401)
  t.same((await browser.get('/api/me')).json(), { userId })
  t.same((await ask('/api/me', token)).json(), { userId })
  t.equal((await ask('/api/me', reportToken)).statusCode, 401)
  t.equal((await ask('/reports', token)).statusCode, 401)
  t.same((await ask('/reports', reportToken)).json(), { report: `for ${userId}` })
})

t.test('10: a session, a token and a key call one route, and each has a count of its own', async t => {
  const app = await start(t, '10-callers')
  const { browser, userId } = await register(app)
  const { token } = (await browser.post('/auth/local/token', {})).json()
  const { key } = (await browser.post('/keys')).json()
  const ask = async (text: string) => app.inject({ url: '/orders', headers: { authorization: `Bearer ${text}` } })

  t.same((await browser.get('/orders')).json(), { by: 'session', ordersOf: userId })
  t.match((await ask(token)).json(), { code: 'insufficient_scope' })
  t.same((await ask(key)).json(), { by: 'key', ordersOf: userId })
  t.equal((await ask(key)).headers['x-ratelimit-remaining'], '98')
  t.equal((await browser.get('/orders')).headers['x-ratelimit-remaining'], '98')
  t.equal((await app.inject('/orders')).statusCode, 401)
})

t.test('11: a user, a profile and an organization are made and deleted together', async t => {
  const file = join(t.testdir(), 'organizations.db')
  const { LOCAL_AUTH_DB } = process.env
  process.env.LOCAL_AUTH_DB = file
  t.teardown(() => { process.env.LOCAL_AUTH_DB = LOCAL_AUTH_DB })
  const app = await start(t, '11-organizations')
  const connection = new Database(file)
  t.teardown(() => connection.close())
  const count = (table: string) => connection.prepare(`select count(*) from ${table}`).pluck().get()
  const tables = ['svc_auth_users', 'svc_auth_credentials', 'svc_auth_provider_links', 'profiles', 'organizations']
  const rows = () => tables.map(count)
  const [ada, emmy] = [new Browser(app), new Browser(app)]
  const found = async (browser: Browser, name: string, organization?: unknown) =>
    browser.post('/auth/local/register', { ...ADA, email: `${name}@example.com`, name, organization })

  await t.test('a user who names no organization is not created', async t => {
    for (const none of [undefined, ' ', null]) {
      t.match((await found(ada, 'ada', none)).json(), { code: 'no_organization' })
    }
    await t.rejects(app.auth.createUser({ email: ADA.email }), { code: 'no_organization' })
    t.strictSame(rows(), [0, 0, 0, 0, 0])
  })

  await t.test('a registration makes all rows, and the first session has the claim', async t => {
    const { userId, claims: { org } } = (await found(ada, 'ada', 'Analysts')).json()

    t.strictSame(rows(), [1, 1, 1, 1, 1])
    t.strictSame(connection.prepare('select * from organizations').get(), { id: org, name: 'Analysts' })
    const profile = { user_id: userId, organization_id: org, role: 'owner' }
    t.strictSame(connection.prepare('select * from profiles').get(), profile)
    t.strictSame((await ada.get('/members')).json(), [{ name: 'ada', role: 'owner' }])
    t.equal((await app.inject('/members')).statusCode, 401)
  })

  await t.test('a name that is taken leaves no trace, and the client is told a sentence', async t => {
    const refused = await found(emmy, 'emmy', 'Analysts')

    t.equal(refused.statusCode, 403)
    t.match(refused.json(), { code: 'organization_exists', message: 'This name is taken. Choose another name.' })
    t.strictSame(rows(), [1, 1, 1, 1, 1])
    t.equal((await found(emmy, 'emmy', 'Algebra')).statusCode, 201)
    t.strictSame((await emmy.get('/members')).json(), [{ name: 'emmy', role: 'owner' }])
  })

  await t.test('a deletion removes the rows, and the organization with its last member', async t => {
    const idOf = async (name: string) => String((await app.auth.findUser({ email: `${name}@example.com` }))?.userId)
    const names = () => connection.prepare('select name from organizations order by name').pluck().all()
    await found(new Browser(app), 'eve', 'Engines')
    connection.exec(`
      update profiles set role = 'member', organization_id = (select id from organizations where name = 'Algebra')
      where user_id = '${await idOf('eve')}';
      delete from organizations where name = 'Engines';`)
    t.strictSame((await emmy.get('/members')).json(), [{ name: 'emmy', role: 'owner' }, { name: 'eve', role: 'member' }])

    await app.auth.deleteUser(await idOf('ada'))
    t.strictSame(names(), ['Algebra'])
    await app.auth.deleteUser(await idOf('emmy'))
    t.strictSame(names(), ['Algebra'], 'with the member who is left')
    await app.auth.deleteUser(await idOf('eve'))
    t.strictSame(rows(), [0, 0, 0, 0, 0])
    t.equal((await found(new Browser(app), 'ada', 'Analysts')).statusCode, 201, 'the name is free again')
  })
})

t.test('08: the tests pass', async t => {
  const command = [process.execPath, '--import', join(FOLDER, '../test/typescript.mjs'), join(FOLDER, '08-tests.ts')]
  const { status, stdout } = spawnSync('env', ['-i', ...command], { encoding: 'utf8' })

  t.equal(status, 0, stdout)
  t.match(stdout, / pass 1\n/)
})

t.test('09: a whole account, from the first mail to the administrator', async t => {
  const mails: string[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData (stream: SMTPServerDataStream, _session, answer) {
      buffer(stream).then(raw => { mails.push(raw.toString().replaceAll('=\r\n', '').replaceAll('=3D', '=')) }).then(() => { answer() }, answer)
    }
  })
  t.teardown(() => new Promise<void>(resolve => { server.close(resolve) }))
  const port = await listening(server.server)
  Object.assign(process.env, { DATABASE_URL: await emptyDatabase(t), SMTP_URL: `smtp://127.0.0.1:${port}`, MAIL_FROM: 'shop@shop.example' })
  const app = await start(t, '09-whole-account')
  const browser = new Browser(app)
  const page = async (path: string) => browser.get(path, { accept: 'text/html' })
  const follow = async (action: string, fields: Record<string, string>) => browser.submit(action, fields)

  t.equal((await page('/')).headers.location, '/auth/pages/sign-in?next=%2F')
  t.match((await page('/auth/pages/register')).body, /<h1 [^>]*>Create an account<\/h1>/)
  t.equal((await follow('/auth/local/register', { email: ADA.email, next: '/auth/pages/link-sent' })).headers.location, '/auth/pages/link-sent')
  t.ok(await isSoon(async () => mails.length > 0))
  const [, token = ''] = /local\/register\?token=(\S+)/.exec(mails[0] ?? '') ?? []
  t.match((await page(`/auth/local/register?token=${token}`)).body, 'At least 12 characters')
  const weak = await follow('/auth/local/register', { token, password: 'password1234', name: 'Ada' })
  t.match(weak, { statusCode: 400, body: /role="alert"/ })
  t.equal((await follow('/auth/local/register', { token, password: 'a wonderful horse of mine', name: 'Ada' })).statusCode, 303)

  t.equal((await browser.get('/')).body, 'Hello Ada')
  t.equal((await browser.get('/orders')).statusCode, 200)
  t.match((await browser.get('/users')).json(), { users: [{ email: ADA.email, claims: { role: 'admin' } }] }, 'FIRST_ADMIN')
  t.match((await page('/auth/pages/account')).body, /Privacy/)
})

t.test('each numbered example says how to run it, and imports packages alone', async t => {
  const names = (await readdir(FOLDER)).filter(name => /^\d\d-.*\.ts$/.test(name))
  t.equal(names.length, 11)
  for (const name of names) {
    const source = await readFile(join(FOLDER, name), 'utf8')
    const header = source.slice(0, source.indexOf('import '))
    t.match(header, 'npm install fastify fastify-svc-auth', name)
    t.equal(/ npx tsx (?:--test )?(\d\d-.*\.ts)\n/.exec(header)?.[1], name)
    t.notMatch(source, /from '\./, name)
  }
})
