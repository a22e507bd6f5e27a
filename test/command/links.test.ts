/** The links of the command line, and the application that they lead to. */
import { join } from 'node:path'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { type AuthPluginOptions, type LocalIdentityProviderOptions, SqlAuthStore } from '../../lib/index.js'
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
  await run('create', EMAIL)
  const { stdout: replaced } = await run('link', EMAIL)
  const { code, stdout, stderr } = await run('link', EMAIL)
  t.equal(code, 0)
  t.match(JSON.parse(stderr), { event: 'fastify-svc-auth.sign-in-link', actor: /^command:/ })
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
  const { userId } = JSON.parse((await run('create', EMAIL)).stdout)
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

t.test('where the application has a signing key, no passwords, another prefix and a path, its links are made with the data secret', async t => {
  const dataSecret = 'd'.repeat(32)
  const local = { secret: undefined, signingKey: ecKey(), issuer: 'https://id.example', password: false } as const
  const { app, run } = await start(t, { prefix: '/sign/in', dataSecret }, local)
  const withKey = run.with({ SVC_AUTH_DATA_SECRET: dataSecret, LOCAL_IDP_SECRET: '' })
  await withKey('create', EMAIL)
  const { code, stdout } = await withKey('link', EMAIL, '--prefix', '/sign/in', '--issuer', 'https://id.example')
  t.match([code, stdout], [0, '/sign/in/local/mail-login?token='])
  t.match((await redeem(app, stdout, '/sign/in')).json(), { claims: { email: EMAIL } })
})

t.test('a link of other settings or of another database does not sign in, and a user without an e-mail has none', async t => {
  const { app, run, file } = await start(t)
  await run('create', EMAIL)
  const elsewhere = { LOCAL_AUTH_DB: `${file}.other.db` }
  await command(['migrate'], elsewhere)
  await run.with(elsewhere)('create', EMAIL)
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
  const to = ['--base-url', baseUrl]
  const withSettings = (settings: Record<string, string>) => async (name: string, ...args: string[]): Promise<Ended> => {
    const url = name === 'link' ? to : []
    const given = Object.entries({ LOCAL_AUTH_DB: file, LOCAL_IDP_SECRET: LOCAL_SECRET, ...settings })
    return command([name, ...args, ...url], Object.fromEntries(given.filter(([, value]) => value !== '')))
  }
  return { app, file, to, run: Object.assign(withSettings({}), { with: withSettings }) }
}

function tokenIn (link: string): string {
  return new URL(link.trim()).searchParams.get('token') ?? ''
}

async function redeem (app: FastifyInstance, link: string, prefix = '/auth') {
  return new Browser(app).post(`${prefix}/local/mail-login/confirm`, { token: tokenIn(link) })
}
