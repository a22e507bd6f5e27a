/** The links of the command line, and the application that they lead to. */
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
  const { app, run } = await start(t)
  const { code, stdout, stderr } = await run('create', EMAIL, '--claim', 'role=admin')
  t.match([code, stdout], [0, /^http:\/\/127\.0\.0\.1:\d+\/auth\/local\/reset-password\?token=[\w.-]+\n$/])
  t.notMatch(stderr, tokenIn(stdout), 'the link is in no audit event')

  const browser = new Browser(app)
  await browser.post('/auth/local/reset-password', { token: tokenIn(stdout), password: PASSWORD })
  const { statusCode, body } = await browser.post('/auth/local/login', { email: EMAIL, password: PASSWORD })
  t.match([statusCode, JSON.parse(body)], [200, { claims: { role: 'admin', email: EMAIL, email_verified: true } }])
})

t.test('a link signs in once, in any browser, process and session store, and a new one replaces it', async t => {
  const { app, file, run } = await start(t)
  const { app: other } = await start(t, { session: { secret: SESSION_SECRET, store: 'memory' } }, {}, file)
  await run('create', EMAIL, '--no-link')
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

t.test('a link is refused once all sessions of the user have ended, and for a blocked user none is made', async t => {
  const { app, run } = await start(t)
  const { userId } = JSON.parse((await run('create', EMAIL, '--no-link')).stdout)
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

t.test('a link proves no address: what an account has without a proven one stays, and the address is not confirmed', async t => {
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
  const { code, stdout } = await run.with({ SVC_AUTH_DATA_SECRET: dataSecret, LOCAL_IDP_SECRET: '' })(
    'create', EMAIL, '--prefix', '/sign/in', '--issuer', 'https://id.example')
  t.match([code, stdout], [0, '/sign/in/local/mail-login?token='], 'a link that signs in, for the first passkey')
  t.match((await redeem(app, stdout, '/sign/in')).json(), { claims: { email: EMAIL } })
})

t.test('an application that does not take the link is named, with what it lacks', async t => {
  const { run, file } = await start(t)
  await run('create', EMAIL, '--no-link')
  const unknown = /^http:\S+ does not know the link: it has another database, LOCAL_IDP_SECRET or issuer\.\n$/
  const refused = async (ended: Promise<Ended>, sentence: RegExp) => {
    const { code, stdout, stderr } = await ended
    t.match([code, stdout, stderr], [1, '', sentence])
  }
  await refused(run.with({ LOCAL_IDP_SECRET: 'x'.repeat(32) })('link', EMAIL), unknown)
  await refused(run('link', EMAIL, '--issuer', 'another'), unknown)
  const elsewhere = `${file}.other.db`
  await command(['migrate'], { LOCAL_AUTH_DB: elsewhere })
  await command(['create', EMAIL, '--no-link'], { LOCAL_AUTH_DB: elsewhere })
  await refused(run.with({ LOCAL_AUTH_DB: elsewhere })('link', EMAIL), unknown)
  await refused(run('link', EMAIL, '--prefix', '/other'), /has no page for the link: correct --base-url and --prefix, or give/)
  const { run: withoutMails } = await start(t, {}, { sendMail: undefined, signInByMail: false }, file)
  await refused(withoutMails('link', EMAIL), /has no page for the link: .* sendMail and signInByMail\.\n$/)

  const away = `http://127.0.0.1:${await freePort()}`
  const { code, stdout, stderr } = await run('link', EMAIL, '--base-url', away)
  t.match([code, stdout, stderr], [0, `${away}/auth/local/mail-login`, /^http:\S+ does not answer, so the link was not tried\.\n/])

  const store = new SqlAuthStore(file)
  const { userId } = await new Authorization(store).createUser({ name: 'Ada' })
  await store.close()
  await refused(run('link', userId), /^The user has no e-mail/)
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
  const withSettings = (settings: Record<string, string>) => async (name: string, ...args: string[]): Promise<Ended> => {
    const url = /^(?:create|link)$/.test(name) && !args.includes('--base-url') ? ['--base-url', baseUrl] : []
    const given = Object.entries({ LOCAL_AUTH_DB: file, LOCAL_IDP_SECRET: LOCAL_SECRET, ...settings })
    return command([name, ...args, ...url], Object.fromEntries(given.filter(([, value]) => value !== '')))
  }
  return { app, file, run: Object.assign(withSettings({}), { with: withSettings }) }
}

function tokenIn (link: string): string {
  return new URL(link.trim()).searchParams.get('token') ?? ''
}

async function redeem (app: FastifyInstance, link: string, prefix = '/auth') {
  return new Browser(app).post(`${prefix}/local/mail-login/confirm`, { token: tokenIn(link) })
}
