/** The links of the command line, and the application that they lead to. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { type AuthPluginOptions, Authorization, type LocalIdentityProviderOptions, SqlAuthStore } from '../../lib/index.js'
import { LOCAL_SECRET, SESSION_SECRET, localProvider } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { type Ended, command } from '../helpers/command.js'
import { ecKey } from '../helpers/signing-key.js'
import { freePort } from '../helpers/loopback.js'

const EMAIL = 'ada@example.com'
const PASSWORD = 'correct horse battery'
const WITH_MAILS = { sendMail () {}, signInByMail: true }

t.test('the link of a new user sets their first password', async t => {
  const { app, run, to } = await start(t)
  const { code, stdout, stderr } = await run('create', EMAIL, '--claim', 'role=admin', ...to)
  t.match([code, stdout], [0, /^http:\/\/127\.0\.0\.1:\d+\/auth\/local\/reset-password\?token=[\w.-]+\n$/])
  t.notMatch(stderr, tokenIn(stdout), 'the link is in no audit event')

  const browser = new Browser(app)
  await browser.post('/auth/local/reset-password', { token: tokenIn(stdout), password: PASSWORD })
  const { statusCode, body } = await browser.post('/auth/local/login', { email: EMAIL, password: PASSWORD })
  t.match([statusCode, JSON.parse(body)], [200, { claims: { role: 'admin', email: EMAIL, email_verified: true } }])
})

t.test('attack 148: a link signs in once, in any browser, process and session store, and a new one replaces it', async t => {
  const { app, file, run } = await start(t)
  const { app: other } = await start(t, { session: { secret: SESSION_SECRET, store: 'memory' } }, {}, file)
  await createAda(app)
  const { stdout: replaced } = await run('link', EMAIL)
  const { code, stdout, stderr } = await run('link', EMAIL)
  t.equal(code, 0)
  const [needs = '', audited = ''] = stderr.split('\n')
  t.match(needs, /^The link works where the application has sendMail and signInByMail; --app checks that\.$/)
  t.match(JSON.parse(audited), { event: 'fastify-svc-auth.sign-in-link', actor: /^command:/ })
  t.notMatch(stderr, tokenIn(stdout))

  t.match((await redeem(app, replaced)).json(), { code: 'invalid_state' })
  const page = await app.inject({ url: new URL(stdout).pathname + new URL(stdout).search, headers: { accept: 'text/html' } })
  t.match([page.statusCode, page.body], [200, EMAIL], 'opening it uses nothing')
  const answers = await Promise.all([other, app, other, app].map(async app => redeem(app, stdout)))
  t.strictSame(answers.map(({ statusCode }) => statusCode).sort(), [200, 400, 400, 400])
  t.match(answers.find(({ statusCode }) => statusCode === 200)?.json(), { claims: { email: EMAIL } })
})

t.test('attack 148: a link is refused once all sessions of the user have ended, and for a blocked user none is made', async t => {
  const { app, run } = await start(t)
  const { userId } = await createAda(app)
  for (const [end, undo] of [['signOutEverywhere', null], ['block', 'unblock']] as const) {
    const { stdout } = await run('link', EMAIL)
    await app.auth[end](userId)
    t.match((await redeem(app, stdout)).json(), { code: 'invalid_state' })
    if (undo !== null) {
      t.match(await run('link', EMAIL), { code: 1, stdout: '', stderr: /^This account is blocked/ })
      await app.auth[undo](userId)
      t.match((await redeem(app, stdout)).json(), { code: 'invalid_state' })
    }
  }
  const { stdout } = await run('link', EMAIL)
  await app.auth.deleteUser(userId)
  t.match((await redeem(app, stdout)).json(), { code: 'invalid_state' })
})

t.test('attack 148: a link proves no address: what an account has without a proven one stays, and the address is not confirmed', async t => {
  const { app, run } = await start(t)
  const { userId } = await app.auth.createUser({ email: EMAIL, password: PASSWORD })
  const { stdout } = await run('link', EMAIL)
  t.match((await redeem(app, stdout)).json(), { userId })
  t.match(await app.auth.findUser({ userId }), { emailVerified: false, generation: 0 })
  t.match(await app.auth.links(userId), [{ provider: 'local' }])
})

t.test('where the application has a signing key, another prefix and a path, its links are made with the data secret', async t => {
  const dataSecret = 'd'.repeat(32)
  const local = { secret: undefined, signingKey: ecKey(), issuer: 'https://id.example' }
  const { app, run } = await start(t, { prefix: '/sign/in', dataSecret }, local)
  const withKey = run.with({ SVC_AUTH_DATA_SECRET: dataSecret, LOCAL_IDP_SECRET: '' })
  await createAda(app)
  const { code, stdout } = await withKey('link', EMAIL, '--prefix', '/sign/in', '--issuer', 'https://id.example')
  t.match([code, stdout], [0, '/sign/in/local/mail-login?token='])
  t.match((await redeem(app, stdout, '/sign/in')).json(), { claims: { email: EMAIL } })
})

t.test('a link of other settings or of another database does not sign in, and a user without an e-mail has none', async t => {
  const { app, run, file } = await start(t)
  await createAda(app)
  const elsewhere = { LOCAL_AUTH_DB: `${file}.other.db` }
  await command(['migrate'], elsewhere)
  const users = new SqlAuthStore(elsewhere.LOCAL_AUTH_DB)
  t.teardown(() => users.close())
  await createAda({ auth: new Authorization(users, undefined, localProvider()) })
  for (const [ended, code] of [
    [run.with({ LOCAL_IDP_SECRET: 'x'.repeat(32) })('link', EMAIL), 'invalid_token'],
    [run('link', EMAIL, '--issuer', 'another'), 'invalid_token'],
    [run.with(elsewhere)('link', EMAIL), 'invalid_state']
  ] as const) {
    const { stdout } = await ended
    t.match((await redeem(app, stdout)).json(), { code })
  }

  const { userId } = await app.auth.createUser({ name: 'Ada' })
  t.match(await run('link', userId), { code: 1, stdout: '', stderr: /^The user has no e-mail/ })
})

t.test('a new link sets the first password of an account that has no sign-in method, and signs in to others', async t => {
  const { app, run, to } = await start(t, {}, { signInByMail: false })
  await run('create', EMAIL, ...to)
  const { code, stdout } = await run('link', EMAIL)
  t.match([code, stdout], [0, '/auth/local/reset-password?token='])
  const browser = new Browser(app)
  t.equal((await browser.post('/auth/local/reset-password', { token: tokenIn(stdout), password: PASSWORD })).statusCode, 204)
  t.equal((await browser.post('/auth/local/login', { email: EMAIL, password: PASSWORD })).statusCode, 200)

  t.match(await run('link', EMAIL), { code: 0, stdout: '/mail-login?token=', stderr: /^The link works where .* signInByMail;/ })
  await app.auth.createUser({ email: 'grace@example.com' })
  t.match(await run('link', 'grace@example.com'), { stdout: '/mail-login?token=' }, 'no link proves an address that nobody has confirmed')
})

t.test('links of the module of an application work: its issuer, secret, prefix, URL, database and routes are read', async t => {
  const local = { issuer: 'https://id.example', secret: 'x'.repeat(32) }
  const { app, file, baseUrl, run } = await start(t, { prefix: '/sign/in' }, local)
  const settings = { LOCAL_IDP_SECRET: '', LOCAL_AUTH_DB: '' }
  const remedy = /^--app cannot be loaded \(NODE_OPTIONS=--import=tsx loads TypeScript that Node.js does not\): .*enum/
  const moduleOf = (name: string, options: string, provider: object = {}, end = ''): string[] => {
    const module = join(t.testdirName, name)
    writeFileSync(module, `
import { LocalIdentityProvider, SqlAuthStore } from ${JSON.stringify(join(import.meta.dirname, '../../lib/index.ts'))}
setInterval(() => {}, 1000)
const local = new LocalIdentityProvider({ sendMail () {}, signInByMail: true, ...${JSON.stringify({ ...local, ...provider })} })
const store = new SqlAuthStore(${JSON.stringify(file)})
export default { baseUrl: ${JSON.stringify(baseUrl)}, prefix: '/sign/in', session: { secret: 's'.repeat(32) }, local, store, ${options} }${end}
`)
    return ['--app', module]
  }
  const whole = moduleOf('whole.mjs', '')
  const created = await run.with(settings)('create', EMAIL, ...whole)
  t.match(created, { code: 0, stdout: '/sign/in/local/reset-password?token=' })
  const form = { token: tokenIn(created.stdout), password: PASSWORD }
  t.equal((await new Browser(app).post('/sign/in/local/reset-password', form)).statusCode, 204)
  const { stdout, stderr } = await run.with(settings)('link', EMAIL, ...whole)
  t.match((await redeem(app, stdout, '/sign/in')).json(), { claims: { email: EMAIL } })
  t.notMatch(stderr, /--app checks that/)

  const typed = moduleOf('typed.ts', '', {}, ' satisfies object')
  t.match((await redeem(app, (await run.with(settings)('link', EMAIL, ...typed)).stdout, '/sign/in')).json(), { claims: { email: EMAIL } })

  const noPasswords = moduleOf('no-passwords.mjs', '', { password: false })
  t.match(await run.with(settings)('create', 'grace@example.com', ...noPasswords), { code: 0, stdout: '/sign/in/local/mail-login?token=' })
  const link = await run.with(settings)('link', 'grace@example.com', ...noPasswords)
  t.match((await redeem(app, link.stdout, '/sign/in')).json(), { claims: { email: 'grace@example.com' } })

  const noMailSignIn = moduleOf('no-mail-sign-in.mjs', '', { signInByMail: false })
  await app.auth.createUser({ email: 'new@example.com', emailVerified: true })
  for (const [args, code, sentence] of [
    [['link', EMAIL, ...noMailSignIn], 2, /^The application lacks signInByMail, which a link needs/],
    [['create', 'a@example.com', ...moduleOf('no-mails.mjs', 'local: undefined')], 2, /^The application has no such links: they need sendMail/],
    [['link', EMAIL, ...moduleOf('memory.mjs', 'store: undefined')], 2, /^--app must export a SqlAuthStore as its store/],
    [['link', EMAIL, '--issuer', 'x', ...whole], 2, /^--issuer must be absent: --app has it/],
    [['show', EMAIL, '--app', join(t.testdirName, 'none.mjs')], 2, /^--app cannot be loaded: Cannot find module/],
    [['show', EMAIL, ...moduleOf('unread.ts', '', {}, '\nenum A { B }')], 2, remedy],
    [['show', EMAIL, ...moduleOf('throws.mjs', 'pages: Pages')], 2, /^--app cannot be loaded: Pages is not defined/],
    [['show', EMAIL, '--app', join(import.meta.dirname, '../../lib/index.ts')], 2, /^--app must name a module whose default export/]
  ] as const) {
    const [name, ...others] = args
    t.match(await run.with(settings)(name, ...others), { code, stdout: '', stderr: sentence })
  }
  t.equal(await app.auth.findUser({ email: 'a@example.com' }), null)
  t.match(await run.with(settings)('link', 'new@example.com', ...noMailSignIn), { stdout: '/sign/in/local/reset-password?token=' })
})

t.test('the database of an application that is not there is told, and not made', async t => {
  const folder = t.testdir({})
  const module = join(folder, 'app.mjs')
  writeFileSync(module, `
import { SqlAuthStore } from ${JSON.stringify(join(import.meta.dirname, '../../lib/index.ts'))}
export default { store: new SqlAuthStore(${JSON.stringify(join(folder, 'users.db'))}) }
`)
  t.match(await command(['show', EMAIL, '--app', module]), { code: 1, stderr: /the file does not exist/ })
  t.notOk(existsSync(join(folder, 'users.db')))
  t.match(await command(['migrate', '--app', module]), { code: 0 })
  t.ok(existsSync(join(folder, 'users.db')))
})

/** An application that listens, and the command line with its settings. */
async function start (t: Test, options: AuthPluginOptions = {}, local: LocalIdentityProviderOptions = {}, file = join(t.testdir(), 'users.db')) {
  const port = await freePort()
  const baseUrl = `http://127.0.0.1:${port}`
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  const store = new SqlAuthStore(file)
  await store.migrate()
  await app.register(authPlugin, {
    baseUrl, store, session: { secret: SESSION_SECRET }, local: localProvider({ ...WITH_MAILS, ...local }), ...options
  })
  await app.listen({ port, host: '127.0.0.1' })
  const to = ['--base-url', baseUrl, '--issuer', 'svc-auth-local', '--prefix', '/auth']
  const withSettings = (settings: Record<string, string>) => async (name: string, ...args: string[]): Promise<Ended> => {
    const url = name === 'link' && !args.includes('--app') ? to : []
    const given = Object.entries({ LOCAL_AUTH_DB: file, LOCAL_IDP_SECRET: LOCAL_SECRET, ...settings })
    return command([name, ...url, ...args], Object.fromEntries(given.filter(([, value]) => value !== '')))
  }
  return { app, file, baseUrl, to, run: Object.assign(withSettings({}), { with: withSettings }) }
}

async function createAda ({ auth }: { auth: Authorization }) {
  return auth.createUser({ email: EMAIL, emailVerified: true, password: PASSWORD })
}

function tokenIn (link: string): string {
  return new URL(link.trim()).searchParams.get('token') ?? ''
}

async function redeem (app: FastifyInstance, link: string, prefix = '/auth') {
  return new Browser(app).post(`${prefix}/local/mail-login/confirm`, { token: tokenIn(link) })
}
