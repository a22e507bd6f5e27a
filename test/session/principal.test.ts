import type { FastifyInstance } from 'fastify'
import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { Accounts } from '../../lib/accounts/accounts.js'
import authPlugin, { AuthError, type AuthorizationRequest, type AuthorizationResponse, MemoryAuthStore } from '../../lib/index.js'
import { SESSION_SECRET, localProvider, principalIn, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { deferred } from '../helpers/deferred.js'
import { OwnProvider, leaveFor } from '../helpers/own-provider.js'
import { SESSION_STORES, type SessionStores } from '../helpers/session-stores.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }

/** A provider that waits, before it says where to go or who has come, until it is told to go on. */
class WaitingProvider extends OwnProvider {
  readonly asked = deferred()
  readonly answers = deferred()
  readonly #waitsFor: 'start' | 'end'

  constructor (waitsFor: 'start' | 'end') {
    super('a')
    this.#waitsFor = waitsFor
  }

  override async authorizationUrl (request: AuthorizationRequest) {
    if (this.#waitsFor === 'start') await this.#wait()
    return super.authorizationUrl(request)
  }

  override async authenticate (response: AuthorizationResponse) {
    if (this.#waitsFor === 'end') await this.#wait()
    return super.authenticate(response)
  }

  async #wait (): Promise<void> {
    this.asked.resolve()
    await this.answers.promise
  }
}

/** Fails the operation with this number, counted from when it is set. */
class FailingSessionStore extends SlowSessionStore {
  failsAt = Infinity

  override set (...[id, session, callback]: Parameters<SlowSessionStore['set']>): void {
    if (this.#fails()) callback(new Error('the network is down'))
    else super.set(id, session, callback)
  }

  override get (...[id, callback]: Parameters<SlowSessionStore['get']>): void {
    if (this.#fails()) callback(new Error('the network is down'))
    else super.get(id, callback)
  }

  override destroy (...[id, callback]: Parameters<SlowSessionStore['destroy']>): void {
    if (this.#fails()) callback(new Error('the network is down'))
    else super.destroy(id, callback)
  }

  #fails (): boolean {
    return --this.failsAt === 0
  }
}

const SESSION_METHODS = ['find', 'insert', 'update', 'end', 'ofUser']
const ENTRY_METHODS = ['put', 'find', 'take', 'attempt', 'has']

/** Sessions that fail at an operation, counted from when that is asked for. */
const FAILING_SESSIONS: Record<string, () => { sessions: SessionStores, store: MemoryAuthStore, failAt: (operation: number) => void }> = {
  'the sessions of the store' () {
    const store = new MemoryAuthStore()
    let failsAt = Infinity
    for (const [member, names] of [[store.sessions, SESSION_METHODS], [store.entries, ENTRY_METHODS]] as const) {
      for (const name of names) {
        const method: (...given: unknown[]) => unknown = Reflect.get(member, name)
        Reflect.set(member, name, async (...given: unknown[]) => {
          if (--failsAt === 0) throw new AuthError('unavailable')
          return Reflect.apply(method, member, given)
        })
      }
    }
    return { sessions: undefined, store, failAt: operation => { failsAt = operation } }
  },
  'a session store' () {
    const sessions = new FailingSessionStore()
    return { sessions, store: new MemoryAuthStore(), failAt: operation => { sessions.failsAt = operation } }
  }
}

async function start (
  t: Test,
  sessions: SessionStores,
  provider = new OwnProvider('a'),
  cookie = {},
  store = new MemoryAuthStore()
) {
  const app = await startApp(t, {
    baseUrl: 'http://localhost:3000',
    providers: [provider],
    local: localProvider(),
    store,
    session: { secret: SESSION_SECRET, store: sessions, cookie }
  }, {}, app => {
    app.get('/admin', { preHandler: app.auth.requireClaims({ role: 'admin' }) }, async () => 'administration')
    app.get('/refresh', { preHandler: app.auth.refresh }, async () => 'refreshed')
  })
  return { app, store, browser: new Browser(app) }
}

/** Asserts that no user is signed in in these browsers, nor in what the store has left. */
async function assertNobody (t: Test, sessions: SessionStores, ...browsers: Browser[]): Promise<void> {
  for (const browser of browsers) t.equal(await principalIn(browser), null)
  if (sessions instanceof SlowSessionStore) t.strictSame(sessions.sessions.filter(text => text.includes('userId')), [])
}

for (const [kind, keep] of Object.entries(FAILING_SESSIONS)) {
  t.test(`attack 33: a user whose sign-in was reported as failed is not signed in, whichever operation of ${kind} failed`, async t => {
    let failed = 0
    for (let operation = 1; operation < 20; operation++) {
      const { sessions, store, failAt } = keep()
      const { app, browser } = await start(t, sessions, undefined, undefined, store)
      await new Browser(app).post('/auth/local/register', ADA)
      await browser.get('/auth/a/login')
      const stolen = new Browser(browser.app, browser.cookies)

      failAt(operation)
      const response = await browser.post('/auth/local/login', ADA)
      failAt(Infinity)

      const { principal } = (await browser.get('/me')).json()
      t.equal(principal === null, response.statusCode !== 200, `operation ${operation}: ${response.statusCode}`)
      t.equal((await stolen.get('/me')).json().principal, null)
      if (response.statusCode !== 200) failed++
    }
    t.ok(failed > 0, 'there were failures')
  })
}

for (const [kind, createSessions] of SESSION_STORES) {
  t.test(`attack 35: a sign-in under way ends when the user signs out meanwhile, with ${kind}`, async t => {
    const sessions = createSessions()
    const provider = new WaitingProvider('end')
    const { browser } = await start(t, sessions, provider)
    await browser.post('/auth/local/register', ADA)
    const tab = new Browser(browser.app, browser.cookies)
    const callback = await leaveFor(tab, '/auth/a/login', { subject: 'ada-1' })

    const landing = tab.get(callback)
    await provider.asked.promise
    await browser.post('/auth/local/revoke')
    provider.answers.resolve()

    t.equal((await landing).json().code, 'invalid_state')
    await assertNobody(t, sessions, tab, browser)
  })
}

t.test('attack 35: a sign-in that is just about to write its session ends when the user signs out', async t => {
  class WaitingSessionStore extends SlowSessionStore {
    waits = false
    readonly asked = deferred()
    readonly answers = deferred()

    override async destroy (...[id, callback]: Parameters<SlowSessionStore['destroy']>): Promise<void> {
      if (this.waits) {
        this.waits = false
        this.asked.resolve()
        await this.answers.promise
      }
      super.destroy(id, callback)
    }
  }
  const sessions = new WaitingSessionStore()
  const { browser } = await start(t, sessions)
  await browser.post('/auth/local/register', ADA)
  const tab = new Browser(browser.app, browser.cookies)

  sessions.waits = true
  const login = tab.post('/auth/local/login', ADA)
  await sessions.asked.promise
  await browser.post('/auth/local/revoke')
  sessions.answers.resolve()

  t.equal((await login).json().code, 'invalid_state')
  await assertNobody(t, sessions, tab, browser)
})

for (const [kind, keep] of Object.entries(FAILING_SESSIONS)) {
  t.test(`attack 35: a user whose sign-out was reported as failed stays signed in, and can sign out and in again, with ${kind}`, async t => {
    for (let operation = 1; operation < 10; operation++) {
      const { sessions, store, failAt } = keep()
      const { browser } = await start(t, sessions, undefined, undefined, store)
      await browser.post('/auth/local/register', ADA)
      const stolen = new Browser(browser.app, browser.cookies)

      failAt(operation)
      const response = await browser.post('/auth/local/revoke')
      failAt(Infinity)

      if (response.statusCode === 204) t.equal((await stolen.get('/me')).json().principal, null, `operation ${operation}`)
      t.equal((await browser.post('/auth/local/login', ADA)).statusCode, 200, `operation ${operation}: ${response.statusCode}`)
      t.equal((await browser.post('/auth/local/revoke')).statusCode, 204)
      t.equal((await browser.get('/me')).json().principal, null)
    }
  })
}

for (const [kind, createSessions] of SESSION_STORES) {
  t.test(`a form that is sent twice at once signs in both times, with ${kind}`, async t => {
    const { app, browser } = await start(t, createSessions())
    await new Browser(app).post('/auth/local/register', ADA)
    await browser.get('/auth/a/login')
    t.ok(browser.cookies.has('svc_session'), 'there is a session already')

    for (let round = 0; round < 5; round++) {
      const responses = await Promise.all([new Browser(browser.app, browser.cookies), browser].map(async tab => tab.post('/auth/local/login', ADA)))
      t.strictSame(responses.map(({ statusCode }) => statusCode), [200, 200])
    }
  })
}

for (const [kind, createSessions] of SESSION_STORES) {
  t.test(`attack 35: the linking of an identity ends when the user signs out meanwhile, with ${kind}`, async t => {
    const provider = new WaitingProvider('end')
    const { app, store, browser } = await start(t, createSessions(), provider)
    const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()
    const tab = new Browser(browser.app, browser.cookies)
    const callback = await leaveFor(tab, '/auth/a/login?link=true', { subject: 'ada-1' }, { 'sec-fetch-site': 'same-origin' })

    const landing = tab.get(callback)
    await provider.asked.promise
    await browser.post('/auth/local/revoke')
    provider.answers.resolve()

    t.equal((await landing).json().code, 'invalid_state')
    t.strictSame((await store.links(userId)).map(({ provider }) => provider), ['local'])
    t.equal(await app.auth.findUser({ provider: 'a', subject: 'ada-1' }), null)
  })
}

for (const [kind, createSessions] of SESSION_STORES) {
  t.test(`attack 37: a sign-in that is started brings back no claim that was withdrawn meanwhile, with ${kind}`, async t => {
    for (const [what, cookie] of [
      ['a session of seven days', {}], ['one that would end while the user is at the provider', { maxAge: 5 * 60_000 }]
    ] as const) {
      const provider = new WaitingProvider('start')
      const { app, browser } = await start(t, createSessions(), provider, cookie)
      const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()
      await app.auth.grant(userId, { role: 'admin' })
      await browser.get('/refresh')
      t.equal((await browser.get('/admin')).statusCode, 200)

      const starting = new Browser(browser.app, browser.cookies).get('/auth/a/login')
      await provider.asked.promise
      await app.auth.withdraw(userId, ['role'])
      await browser.get('/refresh')
      provider.answers.resolve()

      t.equal((await starting).statusCode, 302)
      t.equal((await browser.get('/admin')).statusCode, 403, what)
    }
  })
}

for (const [kind, createSessions] of SESSION_STORES) {
  t.test(`attack 35: a sign-in that is started during a sign-out fails, with ${kind}`, async t => {
    const provider = new WaitingProvider('start')
    const { browser } = await start(t, createSessions(), provider)
    await browser.post('/auth/local/register', ADA)
    const tab = new Browser(browser.app, browser.cookies)

    const starting = leaveFor(tab, '/auth/a/login', { subject: '1' })
    await provider.asked.promise
    await browser.post('/auth/local/revoke')
    provider.answers.resolve()

    t.equal((await tab.get(await starting)).json().code, 'invalid_state')
    t.equal((await tab.get('/me')).json().principal, null)
  })
}

t.test('a session that would expire while the user is at the provider is kept', async t => {
  const app = await startApp(t, {
    baseUrl: 'https://app.example',
    providers: [new OwnProvider('a')],
    session: { secret: SESSION_SECRET, cookie: { maxAge: 5 * 60_000 } }
  })
  const browser = new Browser(app)
  await leaveFor(browser, '/auth/a/login', { subject: '1' })
  advanceClock(t, 4 * 60_000)

  const callback = await leaveFor(browser, '/auth/a/login', { subject: '1' })
  advanceClock(t, 4 * 60_000)

  t.equal((await browser.get(callback)).headers.location, '/')
})

t.test('a cookie that an own signer makes unreadable is known all the same', async t => {
  const sign = (value: string) => Buffer.from(value).toString('hex')
  const unsign = (value: string) => ({ valid: true, renew: false, value: Buffer.from(value, 'hex').toString() })
  const app = await startApp(t, { local: localProvider(), session: { secret: { sign, unsign }, cookiePrefix: 's:' } })
  const browser = new Browser(app)
  await browser.post('/auth/local/register', ADA)

  const response = await browser.post('/auth/local/revoke')

  t.match(response.cookies, [{ name: 'svc_session', value: '' }])
})

t.test('a cookie that was signed with the secret before the last one is known, and cleared', async t => {
  const store = new SlowSessionStore()
  const local = localProvider()
  const before = await startApp(t, { local, session: { secret: SESSION_SECRET, store } })
  const browser = new Browser(before)
  await browser.post('/auth/local/register', ADA)
  const after = new Browser(await startApp(t, { local, session: { secret: ['the session secret of this year, 32+', SESSION_SECRET], store } }), browser.cookies)

  const response = await after.post('/auth/local/revoke')

  t.match(response.cookies.filter(({ value }) => value === ''), [{ name: 'svc_session' }])
  t.equal((await browser.get('/me')).json().principal, null)
})

t.test('a session ends also when its cookie, which an own signer makes anew each time, cannot be told', async t => {
  const sign = (value: string) => `${Buffer.from(value).toString('hex')}.${Math.random()}`
  const unsign = (value: string) => ({ valid: true, renew: false, value: Buffer.from(value.split('.')[0] ?? '', 'hex').toString() })
  const app = await startApp(t, { local: localProvider(), session: { secret: { sign, unsign } } })
  const browser = new Browser(app)
  await browser.post('/auth/local/register', ADA)
  t.ok((await browser.get('/me')).json().principal)

  t.equal((await browser.post('/auth/local/revoke')).statusCode, 204)

  t.equal((await browser.get('/me')).json().principal, null)
})

t.test('attack 35: a refresh does not bring back a session that another process ended, in applications with sessions of their own', async t => {
  const sessions = new SlowSessionStore()
  const sameSessions = Object.assign(new SlowSessionStore(), { entries: sessions.entries })
  const store = new MemoryAuthStore()
  const [asked, goesOn] = [deferred(), deferred()]
  const [here, elsewhere] = await Promise.all([sessions, sameSessions].map(async sessions => {
    const app: FastifyInstance = Fastify()
    t.teardown(() => app.close())
    await app.register(fastifyCookie)
    await app.register(fastifySession, { secret: SESSION_SECRET, store: sessions, cookie: { secure: false }, saveUninitialized: false })
    await app.register(authPlugin, { store, local: localProvider() })
    app.get('/me', async request => ({ principal: request.principal }))
    app.get('/refresh', async request => {
      asked.resolve()
      await goesOn.promise
      return app.auth.refresh(request)
    })
    return app
  }))
  if (here === undefined || elsewhere === undefined) throw new Error('two applications were started')
  const browser = new Browser(here)
  const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()
  const there = new Browser(elsewhere, browser.cookies)
  await new Accounts(store).grant(userId, { role: 'admin' })

  const refreshing = there.get('/refresh')
  await asked.promise
  await browser.post('/auth/local/revoke')
  goesOn.resolve()
  await refreshing

  t.equal((await there.get('/me')).json().principal, null)
})

t.test('attack 35: a refresh ends a session for good, also when another request saves it meanwhile, in an application with a session of its own', async t => {
  const sessions = new SlowSessionStore()
  const store = new MemoryAuthStore()
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  await app.register(fastifyCookie)
  await app.register(fastifySession, { secret: SESSION_SECRET, store: sessions, cookie: { secure: false }, saveUninitialized: false })
  await app.register(authPlugin, { store })
  const [asked, saves] = [deferred(), deferred()]
  // As somebody who signed in through another process of the application: this one has not seen the store yet.
  app.get('/sign-in', async request => {
    const principal = { userId: '6b1e1c9e-0c51-4c3a-9f44-2f0e8a2f5d11', provider: 'a', claims: { sub: '1' } }
    request.session.svcAuth = { principal, generation: 0, at: 0, methods: [] }
  })
  app.get('/slow', async request => {
    asked.resolve()
    await saves.promise
    request.session.set('visits' as never, 1 as never)
  })
  app.get('/me', async request => ({ principal: request.principal }))
  app.get('/refresh', { preHandler: app.auth.refresh }, async () => 'refreshed')
  const browser = new Browser(app)
  await browser.get('/sign-in')
  const stolen = new Browser(browser.app, browser.cookies)

  const slow = stolen.get('/slow')
  await asked.promise
  await browser.get('/refresh')
  saves.resolve()
  await slow

  t.equal((await stolen.get('/me')).json().principal, null)
})
