import { spawnSync } from 'node:child_process'
import { buffer } from 'node:stream/consumers'
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
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
  t.match((await page('/auth/pages/register')).body, /<h1>Create an account<\/h1>/)
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
  t.equal(names.length, 10)
  for (const name of names) {
    const source = await readFile(join(FOLDER, name), 'utf8')
    const header = source.slice(0, source.indexOf('import '))
    t.match(header, 'npm install fastify fastify-svc-auth', name)
    t.equal(/ npx tsx (?:--test )?(\d\d-.*\.ts)\n/.exec(header)?.[1], name)
    t.notMatch(source, /from '\./, name)
  }
})
