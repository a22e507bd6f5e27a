import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { type AuditEvents, type AuthPluginOptions, Authorization, MemoryAuthStore, SignInRefused } from '../lib/index.js'
import { mailbox } from '../lib/testing.js'
import { LOCAL_SECRET, SESSION_SECRET, localProvider, startApp } from './helpers/app.js'
import { Browser } from './helpers/browser.js'
import { OwnProvider, leaveFor, linkAt, signInAt } from './helpers/own-provider.js'

const EVENTS = ['registration', 'sign-in', 'failure', 'link', 'unlink', 'grant', 'withdraw', 'deletion', 'revoke'] as const satisfies Array<keyof AuditEvents>
const ADA = { email: 'ada@example.com', password: 'correct horse' }

/** An application, what it logs, and what is published meanwhile. */
async function audited (t: Test, extend: (app: FastifyInstance) => void = () => {}, options: AuthPluginOptions = {}) {
  const published: Array<[event: string, payload: unknown]> = []
  for (const event of EVENTS) {
    const name = `fastify-svc-auth.${event}`
    const listener = (payload: unknown) => { published.push([event, payload]) }
    subscribe(name, listener)
    t.teardown(() => { unsubscribe(name, listener) })
  }
  const lines: string[] = []
  const store = new MemoryAuthStore()
  const app = await startApp(t, {
    baseUrl: 'https://app.example',
    providers: [new OwnProvider('a'), new OwnProvider('b')],
    local: localProvider(),
    store,
    ...options
  },
  { logger: { level: 'info', stream: { write: (line: string) => { lines.push(line) } } } }, extend)
  /** The events in the log, without what every line has. */
  const logged = () => lines.map(line => JSON.parse(line)).filter(({ event }) => event !== undefined)
    .map(({ event, level, time: _, pid: _pid, hostname: _host, ...rest }) => [event.replace('fastify-svc-auth.', ''), level, rest])
  const browser = new Browser(app)
  return { app, store, browser, published, logged, lines }
}

t.test('a registration, a sign-in and a sign-out publish an event each', async t => {
  const { browser, published, logged } = await audited(t)
  const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()
  await browser.post('/auth/local/login', ADA)
  await browser.post('/auth/local/revoke')
  await browser.post('/auth/local/revoke')

  const origin = { requestId: /^req-/, ip: '127.0.0.1' }
  t.match(published, [
    ['registration', { userId, provider: 'local', ...origin }],
    ['sign-in', { userId, provider: 'local', by: 'provider', ...origin }],
    ['sign-in', { userId, provider: 'local', by: 'provider', ...origin }],
    ['revoke', { userId, ...origin }]
  ])
  t.equal(published.length, 4)
  t.match(logged(), [
    ['registration', 30, { reqId: /^req-/, userId, provider: 'local', msg: 'registration' }],
    ['sign-in', 30, { reqId: /^req-/, userId, provider: 'local', msg: 'sign-in' }],
    ['sign-in', 30, { userId }],
    ['revoke', 30, { reqId: /^req-/, userId, msg: 'revoke' }]
  ])
  t.equal(logged().length, 4)
})

t.test('the first sign-in of an identity registers a user, an e-mail or a wish links another one', async t => {
  const { app, browser, published } = await audited(t)
  await signInAt(browser, 'a', { subject: '1', email: 'grace@example.com' })
  await signInAt(new Browser(app), 'b', { subject: '2', email: 'grace@example.com' })
  const userId = (await browser.get('/me')).json().principal.userId
  await app.auth.unlink(userId, 'b')
  await signInAt(browser, 'a', { subject: '1', email: 'grace@example.com' })
  await linkAt(browser, 'b', { subject: '3' })
  await linkAt(browser, 'b', { subject: '3' })

  t.match(published, [
    ['registration', { userId, provider: 'a' }],
    ['sign-in', { userId, provider: 'a' }],
    ['link', { userId, provider: 'b', by: 'email' }],
    ['sign-in', { userId, provider: 'b' }],
    ['unlink', { userId, provider: 'b' }],
    ['revoke', { userId }],
    ['sign-in', { userId, provider: 'a' }],
    ['link', { userId, provider: 'b', by: 'request' }]
  ])
  t.equal(published.length, 8)
})

t.test('every failure publishes its provider and its code', async t => {
  const { browser, published, logged } = await audited(t)
  await browser.post('/auth/local/login', ADA)
  await browser.post('/auth/local/login', { email: 5 })
  await browser.submit('/auth/local/login', ADA, { origin: 'https://evil.example' })
  await browser.post('/auth/local/register', { ...ADA, role: 'admin' })
  await browser.get('/auth/a/callback?code=x&state=guess')
  await browser.get('/auth/a/login?link=true')
  const callback = await leaveFor(browser, '/auth/b/login', { subject: '1' })
  await browser.get(`${callback.replace('code=', 'code=nonsense')}`)

  const failures: Array<[string, string]> = [
    ['local', 'invalid'], ['local', 'invalid_request'], ['local', 'cross_origin'], ['local', 'claim_not_allowed'],
    ['a', 'invalid_state'], ['a', 'cross_origin'], ['b', 'provider_error']
  ]
  const origin = { requestId: /^req-/, ip: '127.0.0.1' }
  t.match(published, failures.map(([provider, code]) => ['failure', { provider, code, ...origin }]))
  t.equal(published.length, failures.length)
  t.match(logged(), failures.map(([provider, code]) => ['failure', code === 'provider_error' ? 50 : 30, { provider, code }]))
  t.equal(logged().length, failures.length)
})

t.test('a failure outside a sign-in is logged and publishes no event', async t => {
  const { browser, published, logged, lines } = await audited(t)

  await browser.post('/auth/local/token')
  await browser.post('/auth/local/verify-token', { token: 'x' })

  t.strictSame(published, [])
  t.strictSame(logged(), [])
  t.match(lines.map(line => JSON.parse(line).code).filter(code => code !== undefined), ['unauthenticated', 'invalid_token'])
})

t.test('what the application changes is in its own log, without a request', async t => {
  const { app, browser, published, logged } = await audited(t)
  const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()
  published.splice(0)

  await app.auth.grant(userId, { role: 'admin', tier: 1 })
  await app.auth.grant(userId, { tier: 2 })
  await app.auth.withdraw(userId, ['role', 'tier'])
  await app.auth.deleteUser(userId)

  const expected = [
    ['grant', { userId, claims: { role: 'admin', tier: 1 } }],
    ['grant', { userId, claims: { tier: 2 } }],
    ['withdraw', { userId, names: ['role', 'tier'] }],
    ['deletion', { userId }],
    ['revoke', { userId }]
  ] as const
  t.strictSame(published, expected)
  t.strictSame(logged().slice(2), expected.map(([event, payload]) => [event, 30, { ...payload, msg: event }]))
})

t.test('a user is registered when the application admits them, and by two tabs at once only once', async t => {
  let asked = 0
  let decide = (): void => {}
  const decided = new Promise<void>(resolve => { decide = resolve })
  const { app, published } = await audited(t, () => {}, {
    onSignIn: async ({ identity }) => {
      if (identity.subject === 'refused') throw new SignInRefused('not_invited')
      if (++asked === 2) decide()
      await decided
    }
  })

  await signInAt(new Browser(app), 'a', { subject: 'refused' })
  await Promise.all([1, 2].map(async () => signInAt(new Browser(app), 'a', { subject: '1' })))

  t.strictSame(published.map(([event]) => event).sort(), ['failure', 'registration', 'sign-in', 'sign-in'])
})

t.test('a sign-in by other means says so', async t => {
  const { browser, published } = await audited(t, app => {
    app.get<{ Params: { userId: string } }>(
      '/as/:userId',
      async request => app.auth.signIn(request, request.params.userId)
    )
  })
  const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()
  published.splice(0)

  await browser.get(`/as/${userId}`)

  t.match(published, [['sign-in', { userId, provider: 'local', by: 'application' }]])
})

t.test('what was refused did not happen', async t => {
  const { app, browser, published } = await audited(t)
  const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()
  published.splice(0)

  await t.rejects(app.auth.grant(userId, JSON.parse('{"sub":"x"}')))
  await t.rejects(app.auth.withdraw(userId, 'role' as never))
  await t.rejects(app.auth.unlink(userId, 'local'))
  await app.auth.unlink(userId, 'nowhere')
  await t.rejects(app.auth.deleteUser('nobody'))

  t.strictSame(published, [])
})

t.test('a script publishes too, and logs where it is told to', async t => {
  const { store, browser, published } = await audited(t)
  const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()
  published.splice(0)
  const entries: unknown[] = []

  await new Authorization(store).grant(userId, { role: 'admin' })
  await new Authorization(store, { info: (entry, message) => { entries.push([entry, message]) } }).grant(userId, { role: 'member' })

  t.strictSame(published, [['grant', { userId, claims: { role: 'admin' } }], ['grant', { userId, claims: { role: 'member' } }]])
  t.strictSame(entries, [[{ event: 'fastify-svc-auth.grant', userId, claims: { role: 'member' } }, 'grant']])
})

t.test('a wrong password beside the link of a mail is a failed sign-in, and opening a link is none', async t => {
  const mails = mailbox()
  const { app, browser, published } = await audited(t, () => {}, { local: localProvider({ sendMail: mails.sendMail }) })
  await browser.post('/auth/local/register', ADA)
  const { token } = await mails.next('verify-email')
  published.length = 0
  const visitor = new Browser(app)

  await visitor.get('/auth/local/verify-email?token=unknown')
  t.strictSame(published, [])
  t.equal((await visitor.post('/auth/local/verify-email', { token, password: 'wrong password' })).statusCode, 401)

  t.match(published, [['failure', { provider: 'local', code: 'invalid' }]])
})

t.test('attack 60: neither log nor events hold a password, a token, a code, a state or an address', async t => {
  const { browser, published, lines } = await audited(t)
  const secrets: string[] = [
    ADA.password, ADA.email, 'wrong password', LOCAL_SECRET, SESSION_SECRET, 'the-access-token', 'the-refresh-token',
    'the.id.token', 'grace@example.com'
  ]
  await browser.post('/auth/local/register', ADA)
  await browser.post('/auth/local/login', { ...ADA, password: 'wrong password' })
  secrets.push((await browser.post('/auth/local/token')).json().token)
  for (const login of ['/auth/a/login', '/auth/a/login?link=true']) {
    const callback = await leaveFor(browser, login, { subject: '1', email: 'grace@example.com' })
    const { searchParams } = new URL(callback, 'https://app.example')
    secrets.push(searchParams.get('state') ?? '', searchParams.get('code') ?? '')
    await browser.get(callback)
  }
  secrets.push(...browser.cookies.values())
  await browser.post('/auth/local/revoke')

  const kept = [...lines, JSON.stringify(published)].join('\n')
  t.match(kept, /failure/)
  for (const secret of secrets) {
    t.ok(secret.length > 8)
    t.notOk(kept.includes(secret) || kept.includes(encodeURIComponent(secret)), secret)
  }
})
