import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { type AuditEvent, type AuthPluginOptions, Authorization, MemoryAuthStore, SignInRefused } from '../lib/index.js'
import { mailbox } from '../lib/testing.js'
import { secretsIn } from './audited-secrets.mjs'
import { LOCAL_SECRET, SESSION_SECRET, localProvider, startApp } from './helpers/app.js'
import { Browser } from './helpers/browser.js'
import { OwnProvider, leaveFor, linkAt, signInAt } from './helpers/own-provider.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }

/** An application, what it logs, and what is published meanwhile. */
async function audited (t: Test, extend: (app: FastifyInstance) => void = () => {}, options: AuthPluginOptions = {}) {
  const published: Array<[event: string, payload: unknown]> = []
  const listener = (message: unknown): void => {
    const { event, ...payload } = message as AuditEvent
    published.push([event, payload])
  }
  subscribe('fastify-svc-auth.audit', listener)
  t.teardown(() => { unsubscribe('fastify-svc-auth.audit', listener) })
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

t.test('the actor of a link by e-mail is the user of the account, although another user was signed in', async t => {
  const { app, browser, published } = await audited(t)
  const grace = await app.auth.createUser({ email: 'grace@example.com', emailVerified: true })
  await browser.post('/auth/local/register', ADA)
  published.splice(0)

  await signInAt(browser, 'b', { subject: '2', email: 'grace@example.com' })

  const { userId } = grace
  t.match(published, [
    ['link', { userId, provider: 'b', by: 'email', actor: userId, ip: '127.0.0.1', requestId: /^req-/ }],
    ['sign-in', { userId, provider: 'b', actor: userId }]
  ])
  t.equal(published.length, 2)
})

t.test('every failure publishes its provider, its code and its route', async t => {
  const { browser, published, logged } = await audited(t)
  await browser.post('/auth/local/login', ADA)
  await browser.post('/auth/local/login', { email: 5 })
  await browser.submit('/auth/local/login', ADA, { origin: 'https://evil.example' })
  await browser.post('/auth/local/register', { ...ADA, role: 'admin' })
  await browser.get('/auth/a/callback?code=x&state=guess')
  await browser.get('/auth/a/login?link=true')
  const callback = await leaveFor(browser, '/auth/b/login', { subject: '1' })
  await browser.get(`${callback.replace('code=', 'code=nonsense')}`)

  const failures: Array<[string, string, string]> = [
    ['local', 'invalid', 'local/login'], ['local', 'invalid_request', 'local/login'], ['local', 'cross_origin', 'local/login'],
    ['local', 'claim_not_allowed', 'local/register'], ['a', 'invalid_state', 'a/callback'], ['a', 'unauthenticated', 'a/login'],
    ['b', 'provider_error', 'b/callback']
  ]
  const origin = { requestId: /^req-/, ip: '127.0.0.1' }
  t.match(published, failures.map(([provider, code, route]) => ['failure', { provider, code, route: `/auth/${route}`, ...origin }]))
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

/** An application in which a signed-in user, or the bearer of their token, does to a user what the body says. */
async function administered (t: Test) {
  const audited_ = await audited(t, app => {
    const { anyOf, requireBearer, requireUser } = app.auth
    app.post<{ Params: { userId: string, does: string } }>('/:does/:userId', { preHandler: anyOf(requireBearer, requireUser) }, async request => {
      const { userId, does } = request.params
      const acts: Record<string, () => Promise<unknown>> = {
        grant: () => app.auth.grant(userId, { role: 'member' }, { request }),
        withdraw: () => app.auth.withdraw(userId, ['role'], { request }),
        block: () => app.auth.block(userId, { request }),
        unblock: () => app.auth.unblock(userId, { request }),
        password: () => app.auth.setPassword(userId, 'another pass phrase', { request }),
        everywhere: () => app.auth.signOutEverywhere(userId, { request }),
        session: async () => app.auth.endSession(userId, (await app.auth.sessions(userId))[0]?.id ?? '', { request }),
        create: () => app.auth.createUser({ email: 'new@example.com' }, { request }),
        factors: () => app.auth.resetFactors(userId, { request }),
        delete: () => app.auth.deleteUser(userId, { request, actor: 'the owner of the house' })
      }
      await acts[does]?.()
      return {}
    })
  })
  const register = async (browser: Browser, email: string): Promise<string> =>
    (await browser.post('/auth/local/register', { email, password: ADA.password })).json().userId
  const { app, browser, published } = audited_
  const admin = await register(browser, 'admin@example.com')
  const user = new Browser(app)
  const userId = await register(user, ADA.email)
  published.splice(0)
  return { ...audited_, admin, user, userId }
}

t.test('what an administrator does has their id, address, request and browser', async t => {
  const { app, browser, admin, user, userId, published, logged } = await administered(t)
  const userAgent = `Mozilla/5.0 ${'x'.repeat(300)}`
  const origin = { actor: admin, ip: '127.0.0.1', requestId: /^req-/, userAgent: userAgent.slice(0, 256) }
  const act = async (does: string): Promise<unknown[]> => {
    published.splice(0)
    t.equal((await browser.send({ method: 'POST', url: `/${does}/${userId}`, headers: { 'user-agent': userAgent } })).statusCode, 200, does)
    return published
  }

  t.match(await act('session'), [['session-end', { userId, ...origin }], ['revoke', { userId, ...origin }]])
  t.match(await act('grant'), [['grant', { userId, ...origin }]])
  t.match(await act('withdraw'), [['withdraw', { userId, ...origin }]])
  t.match(await act('block'), [['block', { userId, ...origin }], ['revoke', { userId, ...origin }]])
  t.match(await act('unblock'), [['unblock', { userId, ...origin }]])
  t.match(await act('password'), [['password', { userId, ...origin }], ['revoke', { userId, ...origin }]])
  t.match(await act('everywhere'), [['sign-out-everywhere', { userId, ...origin }], ['revoke', { userId, ...origin }]])
  t.match(await act('factors'), [['factor-removed', { userId, method: 'all', ...origin }], ['revoke', { userId, ...origin }]])
  t.match(await act('create'), [['creation', { provider: 'application', ...origin }]])
  t.match(await act('delete'), [
    ['deletion', { ...origin, userId, actor: 'the owner of the house' }], ['revoke', { ...origin, userId, actor: 'the owner of the house' }]
  ])
  t.equal((await user.get('/me')).json().principal, null)
  t.match(logged().at(-1), ['revoke', 30, { userId, actor: 'the owner of the house' }], 'the log has the actor too')
  t.equal(app.auth.channel.listenerCount('revoke'), 0)
})

t.test('behind a token, the actor is its user, whatever session the request has', async t => {
  const { browser, admin, user, userId, published } = await administered(t)
  const { token } = (await user.post('/auth/local/token')).json()
  published.splice(0)

  await browser.send({ method: 'POST', url: `/grant/${admin}`, headers: { authorization: `Bearer ${token}` } })

  t.match(published, [['grant', { userId: admin, actor: userId }]])
})

t.test('a script names itself, and what is not text is refused before anything happens', async t => {
  const { store, userId, published } = await administered(t)
  const script = new Authorization(store)

  await script.grant(userId, { role: 'member' }, { actor: 'import' })
  await t.rejects(script.grant(userId, { role: 'admin' }, { actor: Object(5) }), { code: 'invalid_request' })
  await t.rejects(script.grant(userId, { role: 'admin' }, Object({ by: 'import' })), /by/)

  t.strictSame(published, [['grant', { userId, claims: { role: 'member' }, actor: 'import' }]])
  t.match(await script.findUser({ userId }), { claims: { role: 'member' } })
})

t.test('a user who signs out is the actor of it, though their session has ended', async t => {
  const { app, user, userId, published } = await administered(t)
  const second = new Browser(app)
  await second.post('/auth/local/login', ADA)
  published.splice(0)

  await second.post('/auth/logout')
  await user.post('/auth/logout', { everywhere: true })

  t.match(published, [
    ['revoke', { userId, actor: userId }], ['sign-out-everywhere', { userId, actor: userId }], ['revoke', { userId, actor: userId }]
  ])
})

t.test('a failure names the account that was tried, and its answer does not', async t => {
  const { app, browser, admin, userId, published } = await administered(t)
  const visitor = new Browser(app)
  const failureOf = async (failed: Promise<{ statusCode: number, body: string }>): Promise<unknown> => {
    published.splice(0)
    const { statusCode, body } = await failed
    t.ok(statusCode >= 300 && !body.includes(userId), body)
    return published.map(([event, payload]) => [event, Object(payload).code, Object(payload).userId, Object(payload).actor])
  }
  const wrong = { ...ADA, password: 'wrong password' }

  t.strictSame(await failureOf(visitor.post('/auth/local/login', wrong)), [['failure', 'invalid', userId, undefined]])
  t.strictSame(await failureOf(visitor.post('/auth/local/login', { ...wrong, email: 'x@example.com' })), [['failure', 'invalid', undefined, undefined]])
  t.strictSame(
    await failureOf(browser.post('/auth/local/login', { ...wrong, email: 'x@example.com' })), [['failure', 'invalid', undefined, admin]],
    'of an unknown account not the present user'
  )
  t.strictSame(await failureOf(browser.post('/auth/local/login', wrong)), [['failure', 'invalid', userId, admin]])
  t.strictSame(await failureOf(browser.post('/auth/local/reauthenticate', { password: 'wrong password' })), [['failure', 'invalid', admin, admin]])
  const callback = await leaveFor(visitor, '/auth/a/login', { subject: '1', email: ADA.email })
  t.strictSame(await failureOf(visitor.get(callback)), [['failure', 'account_exists', userId, undefined]])

  const answers = await Promise.all([ADA.email, 'x@example.com'].map(email => visitor.post('/auth/local/login', { ...wrong, email })))
  t.equal(answers[0]?.body, answers[1]?.body)
  await app.auth.block(userId)
  t.strictSame(await failureOf(visitor.post('/auth/local/login', ADA)), [['failure', 'blocked', userId, undefined]])
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

t.test('attack 60: an event with a secret ends the process of a test', async t => {
  const publish = (payload: object): number | null => spawnSync(process.execPath, [
    '--import', './test/typescript.mjs', '-e',
    `require('node:diagnostics_channel').channel('fastify-svc-auth.audit').publish(${JSON.stringify({ event: 'grant', ...payload })})`
  ]).status
  t.equal(publish({ userId: randomUUID(), provider: 'local', userAgent: 'a@example.com' }), 0)
  t.not(publish({ claims: { note: ['ada@example.com'] } }), 0)
  const secrets = ['ada@example.com', 'correct horse', 'eyJhbGciOiJI.eyJz', '$argon2id$v=19', '123456', 'ABCD-EFGH-JKMN-PQRS-TVWX-YZ01', 'x'.repeat(43)]
  for (const secret of secrets) t.equal(secretsIn({ event: 'grant', claims: { note: [secret] } }).length > 0, true, secret)
})
