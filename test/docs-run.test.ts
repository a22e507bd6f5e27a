import { spawn } from 'node:child_process'
import { createHash, randomBytes, randomUUID, scryptSync } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { ClientRequest, createServer } from 'node:http'
import { join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import Sqlite from 'better-sqlite3'
import { drizzle as drizzleSqlite } from 'drizzle-orm/better-sqlite3'
import { drizzle as drizzlePool } from 'drizzle-orm/node-postgres'
import { type PostgresJsDatabase, drizzle } from 'drizzle-orm/postgres-js'
import Fastify, { type FastifyInstance } from 'fastify'
import pg from 'pg'
import postgres from 'postgres'
import { SMTPServer, type SMTPServerDataStream } from 'smtp-server'
import t, { type Test } from 'tap'
import { Accounts } from '../lib/accounts/accounts.js'
import authPlugin, { type AuthPluginOptions, LocalIdentityProvider, MemoryAuthStore, type NewUser, SignInRefused, SqlAuthStore } from '../lib/index.js'
import { SecondFactor } from '../lib/second-factor.js'
import { mailbox, totp } from '../lib/testing.js'
import { CHEAP_ARGON2, LOCAL_SECRET, SESSION_SECRET, localProvider, userIdIn } from './helpers/app.js'
import { Browser } from './helpers/browser.js'
import { DATA_SECRET } from './helpers/factor-app.js'
import { freePort, listen, listening } from './helpers/loopback.js'
import { Documentation } from './helpers/markdown.js'
import { OwnProvider, signInAt } from './helpers/own-provider.js'
import { emptyDatabase } from './helpers/postgres.js'

const ROOT = join(import.meta.dirname, '..')
const TYPESCRIPT = pathToFileURL(join(ROOT, 'test/typescript.mjs')).href
const BASE_URL = 'http://localhost:3000'

/** The files that blocks of code are, by a first line such as `// schema.ts`. */
const FILES = new Map((await Documentation.read()).texts.flatMap(page => page.blocks('ts')).flatMap((code): Array<[string, string]> => {
  const [, name] = /^\/\/ (\S+\.ts)\n/.exec(code) ?? []
  return name === undefined ? [] : [[name, code]]
}))

const FOLDER = t.testdir()
await Promise.all([...FILES].map(([name, code]) => writeFile(join(FOLDER, name), code)))

/** What a file of the documentation exports. */
async function load (name: string): Promise<Record<string, any>> {
  return import(pathToFileURL(join(FOLDER, name)).href)
}

t.test('the tests of the page on testing pass', async t => {
  const tests = [...FILES.keys()].filter(name => name.endsWith('.test.ts'))
  t.equal(tests.length, 4)
  await writeFile(join(FOLDER, 'all.ts'), tests.map(name => `import './${name}'\n`).join(''))
  t.match(await run('all.ts'), / pass 4\n/)
})

const PASSWORD = 'correct horse'

/** Starts an application on a file of the documentation. */
async function start (options: AuthPluginOptions, extend: (app: FastifyInstance) => void | Promise<void> = () => {}): Promise<FastifyInstance> {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(authPlugin, { baseUrl: BASE_URL, session: { secret: SESSION_SECRET }, ...options })
  app.get('/me', async request => ({ principal: request.principal }))
  await extend(app)
  return app
}

t.test('a password with a hash of another library signs in, and is hashed anew', async t => {
  const { ImportingProvider } = await load('importing-provider.ts')
  const { importUser } = await load('import-user.ts')
  const store = new MemoryAuthStore()
  const local: LocalIdentityProvider = new ImportingProvider({ secret: LOCAL_SECRET, argon2: CHEAP_ARGON2 })
  const app = await start({ store, local })
  const salt = randomBytes(16).toString('hex')
  const key = scryptSync(PASSWORD, salt, 64, { N: 16_384, r: 16, p: 1, maxmem: 64 * 1024 * 1024 }).toString('hex')
  const old = {
    email: 'Ada@Example.com',
    emailVerified: true,
    name: 'Ada',
    passwordHash: `${salt}:${key}`,
    accounts: [{ provider: 'github', subject: '583231' }]
  }

  const userId = await importUser(store, old)
  t.equal(await importUser(store, old), null, 'the second time nothing is imported')
  const wrong = await new Browser(app).post('/auth/local/login', { email: 'ada@example.com', password: 'another horse' })
  const login = () => new Browser(app).post('/auth/local/login', { email: 'ada@example.com', password: PASSWORD })
  const first = await login()
  const credential = await store.findCredential('ada@example.com')
  const second = await login()

  t.equal(wrong.json().code, 'invalid')
  t.match([first.json(), second.json()], [{ userId }, { userId }])
  t.match(credential?.passwordHash, /^\$argon2id\$/)
  t.match(await store.links(userId), [{ provider: 'github', subject: '583231' }, { provider: 'local' }])
  t.match(await store.findUser({ email: 'ada@example.com' }), { emailVerified: true })
})

t.test('where a process is frozen after its answer, its mails are waited for', async t => {
  const { handlerOf } = await load('lambda.ts')
  const { keepAwake } = await load('wait-until.ts')
  const sent: string[] = []
  const sendMail = async ({ kind }: { kind: string }): Promise<void> => {
    await new Promise(setImmediate)
    sent.push(kind)
  }
  const waiting: Array<Promise<unknown>> = []
  const app = Fastify()
  t.teardown(() => app.close())
  keepAwake(app, (work: Promise<unknown>) => { waiting.push(work) })
  await app.register(authPlugin, { baseUrl: BASE_URL, session: { secret: SESSION_SECRET }, local: localProvider({ sendMail }) })

  const handler = handlerOf(app, async (payload: object) => app.inject({ method: 'POST', url: '/auth/local/register', payload }))
  const { statusCode } = await handler({ email: 'ada@example.com', password: PASSWORD }, {})
  t.strictSame([statusCode, sent], [201, ['verify-email']])

  await new Browser(app).post('/auth/local/forgot-password', { email: 'ada@example.com' })
  t.strictSame(sent, ['verify-email'], 'the answer does not wait')
  await waiting.at(-1)
  t.strictSame(sent, ['verify-email', 'reset-password'])
})

t.test('a bcrypt hash of PHP is imported by the name that the package bcrypt knows, and others are as they were', async t => {
  const { importUser } = await load('import-user.ts')
  const rest = '10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy'
  for (const [given, kept] of [['$2y$', '$2b$'], ['$2b$', '$2b$'], ['$2a$', '$2a$']]) {
    const store = new MemoryAuthStore()
    await importUser(store, { email: 'ada@example.com', emailVerified: true, name: null, passwordHash: `${given}${rest}`, accounts: [] })
    t.equal((await store.findCredential('ada@example.com'))?.passwordHash, `${kept}${rest}`)
  }
})

t.test('a script makes a user with a password', async t => {
  const { makeUser } = await load('make-user.ts')
  const store = new MemoryAuthStore()
  const local = localProvider()
  const app = await start({ store, local })

  const user = await makeUser(store, local, { email: 'Ada@Example.com', name: 'Ada', password: PASSWORD })
  const { statusCode } = await new Browser(app).post('/auth/local/login', { email: 'ada@example.com', password: PASSWORD })

  t.match(user, { email: 'ada@example.com', claims: { role: 'member' } })
  t.equal(statusCode, 200)
  t.equal(await makeUser(store, local, { email: 'not an address', name: 'Ada', password: PASSWORD }), null)
})

t.test('an invitation admits a user of a provider, and others stay out', async t => {
  const { setUpInvitations } = await load('invitations.ts')
  const local = localProvider()
  const app = Fastify()
  t.teardown(() => app.close())
  await setUpInvitations(app, { local, baseUrl: BASE_URL, session: { secret: SESSION_SECRET }, providers: [new OwnProvider('google')] })
  app.get('/me', async request => ({ principal: request.principal }))
  const invitation = await local.issueIdToken('an administrator', {}, 60, { purpose: 'invitation' })
  const [invited, stranger] = [new Browser(app), new Browser(app)]

  await invited.get(`/invitation?token=${invitation}`, { accept: 'text/html' })
  await signInAt(invited, 'google', { subject: '1' })
  const refused = await signInAt(stranger, 'google', { subject: '2' })

  const userId = await userIdIn(invited)
  t.ok(userId)
  t.match(await app.auth.findUser({ userId: userId ?? '' }), { claims: { role: 'member' } })
  t.match(refused.headers.location ?? refused.body, 'not_invited')
  t.equal(await app.auth.findUser({ provider: 'google', subject: '2' }), null)
})

t.test('an invited administrator sets up the second factor that the application requires, and stays', async t => {
  const { setUpInvitations } = await load('invitations.ts')
  const local = localProvider()
  const app = Fastify()
  t.teardown(() => app.close())
  await setUpInvitations(app, {
    local,
    baseUrl: BASE_URL,
    session: { secret: SESSION_SECRET },
    dataSecret: DATA_SECRET,
    secondFactor: new SecondFactor({ issuer: 'Shop', required: () => true })
  })
  app.get('/me', async request => ({ principal: request.principal }))
  const invitation = await local.issueIdToken('first-invitation', { role: 'admin' }, 60, { purpose: 'invitation' })
  const register = async (browser: Browser, email: string) => {
    const begun = await browser.post('/auth/local/register', { email, password: PASSWORD })
    t.equal(begun.json().code, 'second_factor_required')
    const { secret } = (await browser.post('/auth/local/totp/enroll')).json()
    return browser.post('/auth/local/totp/confirm', { code: totp(secret) })
  }
  const [invited, stranger] = [new Browser(app), new Browser(app)]

  await invited.get(`/invitation?token=${invitation}`, { accept: 'text/html' })
  const registered = await register(invited, 'ada@example.com')
  const refused = await register(stranger, 'eve@example.com')

  t.equal(registered.statusCode, 200)
  t.match(await app.auth.findUser({ userId: await userIdIn(invited) ?? '' }), { email: 'ada@example.com', claims: { role: 'admin' } })
  t.equal(refused.json().code, 'not_invited')
  t.equal(await app.auth.findUser({ email: 'eve@example.com' }), null)
})

t.test('the first invitation comes from a script, and makes an administrator', async t => {
  const { setUpInvitations } = await load('invitations.ts')
  const app = Fastify()
  t.teardown(() => app.close())
  await setUpInvitations(app, { local: localProvider(), baseUrl: BASE_URL, session: { secret: SESSION_SECRET } })
  const { pathname, search } = new URL(await run('first-invitation.ts', { LOCAL_IDP_SECRET: LOCAL_SECRET }))
  const browser = new Browser(app)

  await browser.get(pathname + search.trim(), { accept: 'text/html' })
  const registered = await browser.post('/auth/local/register', { email: 'ada@example.com', password: PASSWORD })
  const invitation = await browser.post('/invitations', {})

  t.match(registered.json(), { claims: { role: 'admin' } })
  t.match(invitation.json().path, /^\/invitation\?token=/)
})

t.test('an invited user chooses the first password by a link that works once, and others do not', async t => {
  const { mountPasswordInvitations } = await load('password-invitations.ts')
  const mails: string[] = []
  const local = localProvider({ registration: false })
  const app = await start({ local }, async app => {
    app.get<{ Params: { userId: string } }>('/as/:userId', async request => app.auth.signIn(request, request.params.userId))
    await mountPasswordInvitations(app, local, async (to: string, path: string) => { mails.push(`${to} ${path}`) })
  })
  const [admin, ada, eve] = [new Browser(app), new Browser(app), new Browser(app)]
  const { userId } = await app.auth.createUser({ email: 'admin@example.com', claims: { role: 'admin' } })
  await admin.get(`/as/${userId}`)

  const refused = await eve.post('/members', { email: 'eve@example.com' })
  const invited = await admin.post('/members', { email: 'Ada@Example.com' })
  const [, token = ''] = /^ada@example\.com \/first-password\?token=(\S+)$/.exec(mails[0] ?? '') ?? []
  const page = await ada.get(`/first-password?token=${token}`)
  const weak = await ada.submit('/first-password', { token, password: 'short' })
  const chosen = await ada.submit('/first-password', { token, password: PASSWORD })
  const again = await eve.submit('/first-password', { token, password: 'of another user' })
  const forged = await eve.get('/first-password?token="><script>')

  t.strictSame([refused, invited, page, weak, chosen, again, forged].map(({ statusCode }) => statusCode), [401, 201, 200, 400, 303, 401, 401])
  t.equal(await userIdIn(ada), invited.json().userId)
  t.match(await app.auth.findUser({ email: 'ada@example.com' }), { emailVerified: true, claims: { role: 'member' } })
  t.equal((await eve.post('/auth/local/login', { email: 'ada@example.com', password: PASSWORD })).statusCode, 200)
})

t.test('an invited user who chooses the first password sets up the second factor that the application requires', async t => {
  const { mountPasswordInvitations } = await load('password-invitations.ts')
  const local = localProvider({ registration: false })
  const secondFactor = new SecondFactor({ issuer: 'Shop', required: () => true })
  let path = ''
  const app = await start({ local, secondFactor, dataSecret: DATA_SECRET }, async app => {
    app.get<{ Params: { userId: string } }>('/as/:userId', async request =>
      app.auth.signIn(request, request.params.userId, { secondFactor: 'skip' }))
    await mountPasswordInvitations(app, local, async (_to: string, invitation: string) => { path = invitation })
  })
  const [admin, ada] = [new Browser(app), new Browser(app)]
  const { userId } = await app.auth.createUser({ email: 'admin@example.com', claims: { role: 'admin' } })
  await admin.get(`/as/${userId}`)
  await admin.post('/members', { email: 'ada@example.com' })

  const chosen = await ada.submit('/first-password', { token: path.replace(/.*=/, ''), password: PASSWORD })

  t.strictSame([chosen.statusCode, chosen.headers.location], [303, '/auth/local/second-factor'])
  t.equal(await userIdIn(ada), null)
  const { secret } = (await ada.post('/auth/local/totp/enroll')).json()
  t.equal((await ada.post('/auth/local/totp/confirm', { code: totp(secret) })).statusCode, 200)
  t.ok(await userIdIn(ada))
})

/** The service of a captcha: confirms each solved one once. */
async function captchaService (t: Test): Promise<{ verifyUrl: string, asked: Array<Record<string, string>> }> {
  const asked: Array<Record<string, string>> = []
  const used = new Set<string>()
  const server = createServer(async (request, response) => {
    const form = Object.fromEntries(new URLSearchParams(await text(request)))
    asked.push(form)
    const { secret, response: captcha = '' } = form
    const success = secret === 'the secret' && captcha.startsWith('solved') && used.size < used.add(captcha).size
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ success }))
  })
  return { verifyUrl: `http://127.0.0.1:${await listen(t, server)}/siteverify`, asked }
}

t.test('forms without a solved captcha are refused, before a password is verified or its attempt counted', async t => {
  const { requireCaptcha } = await load('captcha.ts')
  const { verifyUrl, asked } = await captchaService(t)
  let verified = 0
  class CountingProvider extends LocalIdentityProvider {
    override async verifyPassword (...given: Parameters<LocalIdentityProvider['verifyPassword']>) {
      verified++
      return super.verifyPassword(...given)
    }
  }
  const mails = mailbox()
  const local = new CountingProvider({ secret: LOCAL_SECRET, argon2: CHEAP_ARGON2, sendMail: mails.sendMail })
  const app = await start({ local, rateLimit: { login: 1, account: 1 } }, app => {
    requireCaptcha(app, { verifyUrl, secret: 'the secret', field: 'captcha', verifiesFirst: false })
  })
  const ada = { email: 'ada@example.com', password: PASSWORD }
  const register = async (fields: object) => new Browser(app).post('/auth/local/register', { ...ada, ...fields })
  const login = async (fields: object, path = 'login') => new Browser(app).post(`/auth/local/${path}`, { ...ada, ...fields })
  const forgot = async (fields: object) => new Browser(app).post('/auth/local/forgot-password', { email: ada.email, ...fields })

  for (const fields of [{}, { captcha: '' }, { captcha: 'wrong' }, { captcha: ['solved'] }, { token: 'of no link' }]) {
    const refused = [await register(fields), await login(fields), await forgot(fields)]
    t.strictSame(refused.map(({ statusCode }) => statusCode), Array.isArray(fields.captcha) ? [400, 400, 403] : [403, 403, 403])
  }
  t.match((await login({})).json(), { code: 'captcha', statusCode: 403 })
  t.equal((await login({}, '%6Cogin')).json().code, 'captcha', 'in any spelling of the path')
  t.equal(await app.auth.findUser({ email: ada.email }), null)
  t.strictSame([verified, mails.all.length], [0, 0])

  const form = new Browser(app)
  const shown = await form.submit('/auth/local/login', { ...ada, error_next: '/sign-in?tab=2' })
  t.strictSame([shown.statusCode, shown.headers.location], [303, '/sign-in?tab=2&error=captcha'])

  t.equal((await register({ captcha: 'solved 1' })).statusCode, 201)
  t.equal((await register({ captcha: 'solved 1' })).json().code, 'captcha', 'each captcha works once')
  t.equal((await form.submit('/auth/local/login', { ...ada, captcha: 'solved 2', next: '/account' })).headers.location, '/account')
  t.equal((await login({ captcha: 'solved 3' })).json().code, 'rate_limited', 'the one attempt was that before')
  t.equal((await forgot({ captcha: 'solved 4' })).statusCode, 202)
  t.match(await mails.next('reset-password'), { to: ada.email })
  t.match(asked.at(-1), { secret: 'the secret', response: 'solved 4', remoteip: '127.0.0.1' })
  t.ok(asked.length > 0 && asked.every(({ response }) => response !== ''), 'the service is not asked without a captcha')
})

t.test('a link to register works without a captcha, and what asks for the link needs one', async t => {
  const { requireCaptcha } = await load('captcha.ts')
  const { verifyUrl } = await captchaService(t)
  const mails = mailbox()
  const local = localProvider({ sendMail: mails.sendMail, registration: { verify: 'first' } })
  const app = await start({ local }, app => {
    requireCaptcha(app, { verifyUrl, secret: 'the secret', field: 'captcha', verifiesFirst: true })
  })
  const browser = new Browser(app)
  const email = 'ada@example.com'

  t.equal((await browser.post('/auth/local/register', { email })).json().code, 'captcha')
  t.equal((await browser.post('/auth/local/login', { email, password: PASSWORD, token: 'a token' })).json().code, 'captcha')
  t.equal((await browser.post('/auth/local/forgot-password', { email, token: 'a token' })).json().code, 'captcha')
  t.equal((await browser.post('/auth/local/register', { token: 'a token', password: PASSWORD })).json().code, 'invalid_token')
  t.equal((await browser.post('/auth/local/register', { email, captcha: 'solved' })).statusCode, 202)
  const { token } = await mails.next('register')
  t.equal((await browser.get(`/auth/local/register?token=${token}`, { accept: 'text/html' })).statusCode, 200)
  t.equal((await browser.post('/auth/local/register', { token, password: PASSWORD })).statusCode, 201)
})

t.test('forms are refused while the service of the captcha is away, and by hooks that are older than the plugin', async t => {
  const { requireCaptcha } = await load('captcha.ts')
  const verifyUrl = `http://127.0.0.1:${await freePort()}/siteverify`
  const app = Fastify()
  t.teardown(() => app.close())
  app.addHook('onRequest', async ({ headers }) => { if (headers['x-spam'] !== undefined) throw new SignInRefused('spam') })
  requireCaptcha(app, { verifyUrl, secret: 'the secret', field: 'captcha', verifiesFirst: false })
  await app.register(authPlugin, { baseUrl: BASE_URL, session: { secret: SESSION_SECRET }, local: localProvider(), rateLimit: { register: 1 } })
  const register = async (headers: Record<string, string> = {}) =>
    new Browser(app).post('/auth/local/register', { email: 'ada@example.com', password: PASSWORD, captcha: 'solved' }, headers)

  t.equal((await register({ 'x-spam': '1' })).json().code, 'spam')
  t.match((await register()).json(), { statusCode: 500, code: 'internal_error' })
  t.equal(await app.auth.findUser({ email: 'ada@example.com' }), null)
})

t.test('spans of requests have no query, those of the HTTP server and those of Fastify', async t => {
  const { hideQuery } = await load('traces.ts')
  const url = '/auth/google/callback?code=a code&state=a state'
  const attributesFor = (request: object): object => {
    const attributes = { 'url.query': 'code=a code' }
    hideQuery({ setAttributes: (given: object) => Object.assign(attributes, given) }, request)
    return attributes
  }
  const app = Fastify()
  t.teardown(() => app.close())
  app.get('/auth/google/callback', async request => [attributesFor(request), attributesFor(request.raw)])

  const path = '/auth/google/callback'
  const hidden = { 'url.query': '', 'url.path': path, 'http.target': path, 'http.url': path }
  t.strictSame((await app.inject(url)).json(), [hidden, hidden])
  const sent = new ClientRequest('http://127.0.0.1/token?code=a%20code')
  sent.on('error', () => {}).destroy()
  t.strictSame(attributesFor(sent), { 'url.query': 'code=a code' }, 'requests of the application itself are left as they are')
})

t.test('mails go to the mail server of the application', async t => {
  const received: Array<{ to: string[], raw: string }> = []
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS'],
    onAuth ({ username, password }, _session, answer) {
      if (username === 'shop' && password === 'secret') answer(null, { user: username })
      else answer(new Error('wrong password'))
    },
    onRcptTo ({ address }, _session, answer) {
      answer(address === 'full@example.com' ? new Error('mailbox full') : undefined)
    },
    onData (stream: SMTPServerDataStream, { envelope }, answer) {
      buffer(stream).then(raw => {
        received.push({ to: envelope.rcptTo.map(({ address }) => address), raw: raw.toString() })
        answer()
      }, answer)
    }
  })
  t.teardown(() => new Promise<void>(resolve => { server.close(resolve) }))
  const port = await listening(server.server)
  Object.assign(process.env, { SMTP_URL: `smtp://shop:secret@127.0.0.1:${port}`, MAIL_FROM: 'Shop <accounts@shop.example>' })
  const { sendMail } = await load('send-mail.ts')
  const nobody = { userId: null, name: null, accountUrl: null }
  const about = { requestId: 'req-1', ip: '127.0.0.1', userAgent: null, language: null }
  const url = `https://app.example/auth/local/reset-password?token=${'a'.repeat(300)}`

  await sendMail({ kind: 'reset-password', to: 'ada@example.com', ...nobody, url, token: 'a'.repeat(300), code: null, expiresIn: 1800, about })
  await sendMail({ kind: 'password-changed', to: 'ada+shop@example.com', ...nobody, url: null, token: null, code: null, expiresIn: null, about })
  await sendMail({ kind: 'enrolment', to: 'ada@example.com', ...nobody, url: null, token: null, code: '123456', expiresIn: 600, about })
  await t.rejects(async () => sendMail({ kind: 'exists', to: 'full@example.com', ...nobody, url: null, token: null, code: null, expiresIn: null, about }))

  t.strictSame(received.map(({ to }) => to), [['ada@example.com'], ['ada+shop@example.com'], ['ada@example.com']])
  const [reset = '', notice = '', code = ''] = received.map(({ raw }) => raw)
  t.match(reset, /^From: Shop <accounts@shop\.example>\r\n/m)
  t.match(reset, /^Subject: Choose a new password - Shop\r\n/m)
  t.match(reset, /^Auto-Submitted: auto-generated\r\n/m)
  t.match(reset.replaceAll('=\r\n', '').replaceAll('=3D', '='), `\r\n${url}\r\n`)
  t.match(reset, /works for 30 minutes/)
  t.match(code, /\r\n123456\r\n/)
  t.notMatch(notice, /http/)
})

t.test('the id of a token is noted once, also by two requests at once', async t => {
  const { useOnce } = await load('used-tokens.ts')
  const client = postgres(await emptyDatabase(t))
  t.teardown(() => client.end())
  await client`create table used_tokens (id text primary key, expires timestamp not null)`
  const db = drizzle({ client })
  const later = new Date(Date.now() + 60_000)

  t.strictSame((await Promise.all([useOnce(db, 'a', later), useOnce(db, 'a', later)])).sort(), [false, true])
  t.equal(await useOnce(db, 'b', new Date(0)), true)
  t.equal(await useOnce(db, 'a', later), false)
  t.strictSame([...await client`select id from used_tokens`], [{ id: 'a' }], 'expired ids are deleted')
})

t.test('a page of the application signs in by the code and by the link of a mail', async t => {
  const { mountMailLoginPage } = await load('mail-login-page.ts')
  const mails = mailbox()
  const local = localProvider({
    sendMail: mails.sendMail, signInByMail: true, mails: { limits: false }, pages: { mailLogin: '/sign-in-by-mail' }
  })
  const app = await start({ local, rateLimit: {} }, app => { mountMailLoginPage(app) })
  const browser = new Browser(app)
  const ask = async () => {
    const asked = await browser.submit('/auth/local/mail-login', { email: 'ada@example.com' })
    t.equal(asked.headers.location, '/sign-in-by-mail')
    return mails.next('sign-in')
  }
  const { code } = await ask()

  t.match((await browser.get('/sign-in-by-mail')).body, 'name="code"')
  const wrong = await browser.submit('/auth/local/mail-login/confirm', { code: 'x', error_next: '/sign-in-by-mail' })
  t.match((await browser.get(String(wrong.headers.location))).body, 'The code is wrong.')
  t.equal((await browser.submit('/auth/local/mail-login/confirm', { code: String(code) })).headers.location, '/')
  const userId = await userIdIn(browser)
  const { token } = await ask()
  t.match((await browser.get(`/sign-in-by-mail?token=${token}`)).body, `name="token" value="${token}"`)
  t.equal((await browser.submit('/auth/local/mail-login/confirm', { token })).headers.location, '/')
  t.equal(await userIdIn(browser), userId)
})

t.test('a mobile application gets a session with code and verifier', async t => {
  const { mountPhoneRoutes } = await load('phone.ts')
  const local = localProvider()
  const app = await start({ local }, app => { mountPhoneRoutes(app, local) })
  const [browser, phone] = [new Browser(app), new Browser(app)]
  await browser.post('/auth/local/register', { email: 'ada@example.com', password: PASSWORD })
  const verifier = randomBytes(32).toString('base64url')

  const { headers: { location = '' } } = await browser.get(`/phone?challenge=${createHash('sha256').update(verifier).digest('base64url')}`)
  const code = new URL(location).searchParams.get('code')
  const stolen = await new Browser(app).post('/phone/session', { code, verifier: 'guessed' })
  await phone.post('/phone/session', { code, verifier })

  t.equal(stolen.json().code, 'invalid_token')
  t.equal(await userIdIn(phone), await userIdIn(browser))
})

t.test('a phone gets its session from a browser in which the second factor was asked', async t => {
  const { mountPhoneRoutes } = await load('phone.ts')
  const local = localProvider()
  const secondFactor = new SecondFactor({ issuer: 'Shop', required: () => true })
  const app = await start({ local, secondFactor, dataSecret: DATA_SECRET }, app => { mountPhoneRoutes(app, local) })
  const [browser, phone] = [new Browser(app), new Browser(app)]
  const verifier = randomBytes(32).toString('base64url')
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  await browser.post('/auth/local/register', { email: 'ada@example.com', password: PASSWORD })
  t.equal((await browser.get(`/phone?challenge=${challenge}`)).statusCode, 401, 'the sign-in waits for the factor')
  const { secret } = (await browser.post('/auth/local/totp/enroll')).json()
  await browser.post('/auth/local/totp/confirm', { code: totp(secret) })

  const { headers: { location = '' } } = await browser.get(`/phone?challenge=${challenge}`)
  await phone.post('/phone/session', { code: new URL(location).searchParams.get('code'), verifier })

  t.equal(await userIdIn(phone), await userIdIn(browser))
  t.ok(await userIdIn(phone))
})

t.test('users change in a transaction of the application: with its own tables, or not at all', async t => {
  process.env.DATABASE_URL = await emptyDatabase(t)
  const { db, foundTeam, teams } = await load('teams.ts')
  t.teardown(() => db.$client.end())
  const store = new SqlAuthStore(db)
  const [userId, unknown] = [randomUUID(), randomUUID()]
  await new Accounts(store).createUser({
    userId,
    email: null,
    emailVerified: false,
    name: null,
    claims: {},
    link: { provider: 'github', subject: '1', claims: { sub: '1' } }
  })
  await db.execute('create table teams (id integer primary key generated always as identity, name text not null, owner uuid not null)')

  await foundTeam('a team', userId)
  await t.rejects(foundTeam('a team of a user who does not exist', unknown), { code: 'unknown_user' })

  t.match(await db.select().from(teams), [{ name: 'a team', owner: userId }])
  t.match(await store.findUser({ userId }), { claims: { role: 'admin' } })
})

t.test('a database takes a new token as the password of each connection, and a process outlives one that it does not get', async t => {
  const { openWithToken, passwordOf } = await load('token-password.ts')
  const url = new URL(await emptyDatabase(t))
  const { hostname: host, port, pathname, username: user } = url
  const valid = decodeURIComponent(url.password)
  url.password = ''
  const errors: unknown[] = []
  const passwordsOf = (...tokens: string[]): () => Promise<string> => passwordOf(async () => {
    const token = tokens.shift()
    if (token === undefined) throw new Error('no token')
    return token
  }, (error: unknown) => { errors.push(error) })
  const tokens = (): string[] => ['expired', valid]
  const pool = new pg.Pool({ host, port: Number(port), database: pathname.slice(1), user, password: passwordsOf(...tokens()) })
  pool.on('error', () => {})
  const ofPackagePostgres = openWithToken(url.href, passwordsOf(...tokens()))
  const withoutToken = openWithToken(url.href, passwordsOf())
  t.teardown(() => Promise.all([pool.end(), ofPackagePostgres.client.end(), withoutToken.client.end()]))

  for (const store of [ofPackagePostgres.store, new SqlAuthStore(drizzlePool({ client: pool }))]) {
    await t.rejects(store.findUser({ email: 'ada@example.com' }), { code: 'unavailable' })
    t.equal(await store.findUser({ email: 'ada@example.com' }), null)
  }
  t.strictSame(errors, [])
  await t.rejects(withoutToken.store.findUser({ email: 'ada@example.com' }), { code: 'unavailable' })
  t.match(errors, [{ message: 'no token' }])
})

t.test('a transaction goes on after a user who exists already, behind a savepoint', async t => {
  const db = drizzle({ client: postgres(await emptyDatabase(t), { onnotice: () => {} }) })
  t.teardown(() => db.$client.end())
  const user = (subject: string): NewUser => ({
    userId: randomUUID(),
    email: 'ada@example.com',
    emailVerified: true,
    name: null,
    claims: {},
    link: { provider: 'github', subject, claims: { sub: subject } }
  })
  const createIn = async (db: PostgresJsDatabase) => new Accounts(new SqlAuthStore(db, { createTables: false })).createUser(user('2'))
  await new Accounts(new SqlAuthStore(db)).createUser(user('1'))

  await t.rejects(db.transaction(async tx => {
    t.equal(await createIn(tx), null)
    await tx.execute('select 1')
  }), 'without a savepoint every further statement is refused')
  await db.transaction(async tx => {
    await t.rejects(tx.transaction(async inner => await createIn(inner) ?? inner.rollback()))
    t.ok(await tx.execute('select 1'))
  })
})

t.test('a store takes no transaction of another kind', async t => {
  const sqlite = drizzleSqlite({ client: new Sqlite(':memory:') })
  t.teardown(() => { sqlite.$client.close() })
  const client = postgres(await emptyDatabase(t))
  t.teardown(() => client.end())

  // @ts-expect-error The types refuse it, too.
  t.throws(() => sqlite.transaction(tx => new SqlAuthStore(tx)), { code: 'invalid_options' })
  // @ts-expect-error The types refuse it, too.
  await t.rejects(client.begin(async sql => new SqlAuthStore(sql)), { code: 'invalid_options' })
})

t.test('the script that makes an administrator leaves an unverified address alone', async t => {
  const file = join(t.testdir(), 'users.db')
  const store = new SqlAuthStore(file)
  const make = async (emailVerified: boolean) => {
    const userId = randomUUID()
    await new Accounts(store).createUser({
      userId,
      email: 'ada@example.com',
      emailVerified,
      name: null,
      claims: {},
      link: { provider: 'github', subject: userId, claims: { sub: userId } }
    })
    await run('grant.ts', { LOCAL_AUTH_DB: file })
    const user = await store.findUser({ userId })
    await new Accounts(store).deleteUser(userId)
    return user?.claims
  }

  t.strictSame(await make(false), {})
  t.strictSame(await make(true), { role: 'admin' })
  await store.close()
})

/** Runs a program of the documentation to its end; what it prints. */
async function run (name: string, settings: Record<string, string> = {}): Promise<string> {
  // env -i, not the option env: tap adds its loaders to that.
  const child = spawn(
    'env',
    [
      '-i',
      ...Object.entries(settings).map(([name, value]) => `${name}=${value}`),
      process.execPath,
      '--import',
      TYPESCRIPT,
      join(FOLDER, name)
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] }
  )
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  if (code !== 0) throw new Error(`${name} ended with ${code}: ${output}`)
  return output
}

t.test('a table of the audit events says who did what, with each client that the page names', async t => {
  const { TABLE, byPg, byPostgres, bySqlite, keepAudit } = await load('audit-table.ts')
  const failures: unknown[] = []
  const failed = (error: unknown): void => { failures.push(error) }
  type Ask = (query: string, parameters?: string[]) => Promise<Array<Record<string, unknown>>>
  const clients: Record<string, Ask> = {}
  const add = async (name: string, insert: unknown, create: unknown, ask: Ask): Promise<void> => {
    await create
    keepAudit(insert, failed)
    clients[name] = ask
  }
  // One connection each, so that what is asked comes after what was inserted.
  const connect = async (): Promise<postgres.Sql> => {
    const sql = postgres(await emptyDatabase(t), { max: 1, onnotice: () => {} })
    t.teardown(() => sql.end())
    return sql
  }
  const asking = (sql: postgres.Sql): Ask => async (query, parameters) => (await sql.unsafe(query, parameters)).map(row => ({ ...row }))
  const [sql, db] = [await connect(), drizzle({ client: await connect() })]
  await add('postgres', byPostgres(sql), sql.unsafe(TABLE), asking(sql))
  await add('Drizzle on postgres', byPostgres(db.$client), db.$client.unsafe(TABLE), asking(db.$client))
  const pool = new pg.Pool({ connectionString: await emptyDatabase(t), max: 1 })
  t.teardown(() => pool.end())
  await add('pg', byPg(pool), pool.query(TABLE), async (query, parameters) => (await pool.query(query, parameters)).rows)
  const database = new Sqlite(':memory:')
  t.teardown(() => database.close())
  await add('better-sqlite3', bySqlite(database), database.exec(TABLE), async query => database.prepare<[], Record<string, unknown>>(query).all())

  const app = await start({ store: new MemoryAuthStore(), local: localProvider() }, app => {
    app.post<{ Params: { userId: string } }>('/block/:userId', async request =>
      app.auth.block(request.params.userId, { request, until: new Date('2100-01-01') }))
  })
  const admin = new Browser(app)
  const register = async (browser: Browser, email: string): Promise<string> =>
    (await browser.post('/auth/local/register', { email, password: PASSWORD })).json().userId
  const adminId = await register(admin, 'admin@example.com')
  const userId = await register(new Browser(app), 'ada@example.com')
  await new Browser(app).post('/auth/local/login', { email: 'ada@example.com', password: 'another horse' })
  await admin.post(`/block/${userId}`)

  const page = (await Documentation.read()).pages.get('docs/audit.md')
  const [blocks = '', failedSignIns = '', acts = ''] = page?.blocks('sql').join('').split(';') ?? []
  for (const [name, ask] of Object.entries(clients)) {
    const events = await ask('select event, details from audit order by at')
    t.equal(events.length, 7, name)
    const { details } = events.find(({ event }) => event === 'block') ?? {}
    t.match(typeof details === 'string' ? JSON.parse(details) : details, { ip: '127.0.0.1', until: '2100-01-01T00:00:00.000Z' }, name)
    const ip = await ask("select details ->> 'ip' as ip, count(*) > 1 as many from audit where at is not null group by 1")
    t.match(ip, [{ ip: '127.0.0.1' }], name)
    if (name === 'better-sqlite3') continue
    t.match(await ask(blocks, [userId]), [{ actor: adminId, ip: '127.0.0.1' }], name)
    t.match(await ask(failedSignIns, [userId]), [{ code: 'invalid', ip: '127.0.0.1' }], name)
    t.match((await ask(acts, [adminId])).slice(-2), [{ event: 'block', user_id: userId }, { event: 'revoke', user_id: userId }], name)
  }
  t.strictSame(failures, [])
  database.exec('drop table audit')
  await admin.post(`/block/${userId}`)
  t.match(failures, [/no such table/, /no such table/], 'what cannot be written is told, and the process goes on')
})

t.test('the secret of an authenticator app is decrypted for another system, for its row and with its data secret alone', async t => {
  const { openSecret } = await load('open-secret.ts')
  const store = new MemoryAuthStore()
  const app = await start({ store, local: localProvider(), secondFactor: new SecondFactor({ issuer: 'Shop' }), dataSecret: DATA_SECRET })
  const browser = new Browser(app)
  await browser.post('/auth/local/register', { email: 'ada@example.com', password: PASSWORD })
  const { secret } = (await browser.post('/auth/local/totp/enroll')).json()
  await browser.post('/auth/local/totp/confirm', { code: totp(secret) })
  const kept = (await store.factors(await userIdIn(browser) ?? '')).find(({ kind }) => kind === 'totp')

  t.equal(await openSecret(kept?.secret, kept?.id, DATA_SECRET), secret)
  await t.rejects(openSecret(kept?.secret, randomUUID(), DATA_SECRET), { message: 'the secret belongs to another row' })
  await t.rejects(openSecret(kept?.secret, kept?.id, `${DATA_SECRET} of before`))
})
