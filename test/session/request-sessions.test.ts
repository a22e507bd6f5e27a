/** What requests of several applications may do to one session and its store. */
import { setImmediate } from 'node:timers/promises'
import fastifyCookie, { Signer } from '@fastify/cookie'
import fastifySession, { type FastifySessionOptions, type SessionStore } from '@fastify/session'
import Fastify, { type FastifyInstance, type LightMyRequestResponse, type Session } from 'fastify'
import t from 'tap'
import { TIMEOUT_MS } from '../../lib/base/concurrency.js'
import authPlugin, { MemoryAuthStore } from '../../lib/index.js'
import type { SessionCookieOptions, SessionOptions } from '../../lib/session/session-options.js'
import { SESSION_SECRET, localProvider, principalIn, startApp, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { stopTime } from '../helpers/clock.js'
import { deferred } from '../helpers/deferred.js'
import { OwnProvider, leaveFor, linkAt, signInAt } from '../helpers/own-provider.js'
import { ADA, sessionIdOf, startTwoApps, stored } from '../helpers/shared-apps.js'
import { SESSION_STORES, SHARED_SESSIONS } from '../helpers/session-stores.js'
import { SlowSessionStore, isEntryId } from '../helpers/slow-session-store.js'

const TEN_MINUTES_MS = 600_000
const SEVEN_DAYS_MS = 7 * 86_400_000
const BASE = { baseUrl: 'http://app.example', rateLimit: false } as const

type Callback<T = void> = (error?: unknown, answer?: T) => void

/** A session store that takes promises and callbacks, as several of today do. */
class PromisingStore {
  readonly entries = new Map<string, string>()

  async get (id: string, done?: Callback<Session | null>): Promise<Session | null> {
    const session: Session | null = JSON.parse(this.entries.get(id) ?? 'null')
    done?.(null, session)
    return session
  }

  async set (id: string, session: Session, done?: Callback): Promise<void> {
    this.entries.set(id, JSON.stringify(session))
    done?.()
  }

  async destroy (id: string, done?: Callback): Promise<void> {
    this.entries.delete(id)
    done?.()
  }
}

/** A store that counts its calls. */
class CountingStore extends SlowSessionStore {
  calls: string[] = []

  override set (...of: Parameters<SlowSessionStore['set']>): void {
    this.calls.push('set')
    super.set(...of)
  }

  override get (...of: Parameters<SlowSessionStore['get']>): void {
    this.calls.push('get')
    super.get(...of)
  }

  override destroy (...of: Parameters<SlowSessionStore['destroy']>): void {
    this.calls.push('destroy')
    super.destroy(...of)
  }
}

function addSlowRoute (app: FastifyInstance) {
  const [arrived, goOn] = [deferred(), deferred()]
  app.get('/slow', async request => {
    arrived.resolve()
    await goOn.promise
    return Object.assign(request.session, { cart: 'apples' }).cart
  })
  return { arrived, goOn }
}

for (const isOwn of [true, false]) {
  t.test(`the store object of the application stays as it is, with the session of the ${isOwn ? 'plugin' : 'application'}`, async t => {
    const store = new PromisingStore()
    const sessions = store as unknown as SessionStore
    const app: FastifyInstance = Fastify()
    t.teardown(() => app.close())
    if (!isOwn) {
      await app.register(fastifyCookie)
      const cookie = { secure: false, path: '/' }
      await app.register(fastifySession, { secret: SESSION_SECRET, cookieName: 'svc_session', store: sessions, cookie })
    }
    const session = { secret: SESSION_SECRET, store: sessions }
    await app.register(authPlugin, { local: localProvider(), ...(isOwn && { session }) })
    app.get('/mine', async request => {
      const id = request.session.sessionId
      const [direct, asked] = [await store.get(id), await request.sessionStore.get(id, undefined as never)]
      return { direct: direct?.svcAuth?.principal.userId, asked: Object(asked).svcAuth?.principal.userId }
    })
    app.get('/destroy', async request => {
      await store.destroy(request.session.sessionId)
      return {}
    })
    const browser = new Browser(app)
    const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()

    t.strictSame(Object.keys(store), ['entries'])
    t.equal(store.get, PromisingStore.prototype.get)
    t.strictSame((await browser.get('/mine')).json(), { direct: userId, asked: userId })
    t.equal((await browser.get('/destroy')).statusCode, 200)
    t.equal([...store.entries.keys()].filter(id => !isEntryId(id)).length, 0, 'what the application removes is removed')
  })
}

for (const [kind, keep] of SHARED_SESSIONS) {
  t.test(`an ended session does not come back by a request of an application that served no route of the plugin, with ${kind}`, async t => {
    const { sessions, store } = await keep(t)
    const [one] = await startTwoApps(t, { sessions, store })
    const session = { secret: SESSION_SECRET, store: sessions }
    let slow: ReturnType<typeof addSlowRoute> | undefined
    const fresh = await startApp(t, { store, session }, {}, app => { slow = addSlowRoute(app) })
    const browser = new Browser(one)
    await browser.post('/auth/local/register', ADA)
    const old = new Browser(one, browser.cookies)

    const answer = new Browser(fresh, browser.cookies).get('/slow')
    await slow?.arrived.promise
    await browser.post('/auth/logout')
    slow?.goOn.resolve()

    t.equal((await answer).statusCode, 200)
    t.equal(await userIdIn(old), null)
    t.equal(await stored({ sessions, store }, sessionIdOf(old)), null)
  })
}

for (const [kind, keep] of SHARED_SESSIONS) {
  t.test(`a claim that was withdrawn and refreshed does not come back with a late save of the application, with ${kind}`, async t => {
    const { sessions, store } = await keep(t)
    const [one] = await startTwoApps(t, { sessions, store })
    const session = { secret: SESSION_SECRET, store: sessions }
    let slow: ReturnType<typeof addSlowRoute> | undefined
    const other = await startApp(t, { store, session }, {}, app => { slow = addSlowRoute(app) })
    const browser = new Browser(one)
    const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()
    await one.auth.grant(userId, { role: 'admin' })
    await browser.get('/refreshed')
    t.equal((await principalIn(browser))?.claims.role, 'admin')

    const answer = new Browser(other, browser.cookies).get('/slow')
    await slow?.arrived.promise
    await one.auth.withdraw(userId, ['role'])
    await browser.get('/refreshed')
    slow?.goOn.resolve()
    await answer

    t.equal((await principalIn(browser))?.claims.role, undefined)
    t.equal((await browser.get('/cart')).json().cart, 'apples', 'what the application wrote is saved')
  })
}

for (const [kind, keep] of SHARED_SESSIONS) {
  t.test(`sign-ins that two applications start at once in one session both finish, at either application, with ${kind}`, async t => {
    for (const finishers of [[0, 1], [1, 0]]) {
      const apps = await startTwoApps(t, await keep(t))
      const browser = new Browser(apps[0])
      await browser.post('/cart')
      const tabs = apps.map(app => new Browser(app, browser.cookies))
      const callbacks = await Promise.all(tabs.map(async tab => leaveFor(tab, '/auth/a/login', { subject: 'ada-at-a' })))

      for (const [index, callback] of callbacks.entries()) {
        const tab = new Browser(apps[finishers[index] ?? 0] ?? apps[0], browser.cookies)
        const { statusCode, headers: { location } } = await tab.get(callback)
        t.strictSame([statusCode, location], [302, '/'])
        for (const [name, value] of tab.cookies) browser.cookies.set(name, value)
      }
      t.ok(await userIdIn(browser))
    }
  })
}

t.test('a callback that another process claims later goes on there, not here', async t => {
  const sessions = new SlowSessionStore()
  const { set } = sessions
  sessions.set = (id, session, done) => {
    const { pending }: { pending?: { takenBy?: string } } = Object(session)
    if (pending?.takenBy !== undefined) pending.takenBy = 'another process'
    set.call(sessions, id, session, done)
  }
  const [app] = await startTwoApps(t, { sessions })
  const browser = new Browser(app)

  const answer = await signInAt(browser, 'a', { subject: 'ada-at-a' })

  t.equal(answer.json().code, 'invalid_state')
  t.equal(await userIdIn(browser), null)
})

t.test('a sign-out after the application destroyed the session answers as asked', async t => {
  const app = await startApp(t, { local: localProvider() }, {}, app => {
    app.post('/leave', async (request, reply) => {
      await request.session.destroy()
      await app.auth.signOut(request, reply)
      return {}
    })
  })
  const browser = new Browser(app)
  await browser.post('/auth/local/register', ADA)

  t.equal((await browser.post('/leave')).statusCode, 200)

  t.equal(await userIdIn(browser), null)
})

for (const hanging of [['get', 'set', 'destroy'], ['set'], ['destroy']] as const) {
  t.test(`a session store that hangs on ${hanging.join(', ')} holds requests for five seconds in all`, async t => {
    const sessions = new SlowSessionStore()
    const [app] = await startTwoApps(t, { sessions })
    const signedIn = new Browser(app)
    await signedIn.post('/auth/local/register', ADA)
    let calls = 0
    for (const method of hanging) sessions[method] = () => { calls++ }
    const letPass = stopTime(t)
    /** Lets five seconds pass at the first call that hangs, and next to nothing at each later one. */
    const endsInTime = async (what: string, answer: Promise<LightMyRequestResponse>): Promise<void> => {
      let waited = 0
      for (calls = 0; await Promise.race([answer, setImmediate(null)]) === null;) {
        if (calls > waited) letPass(waited++ === 0 ? TIMEOUT_MS : 1)
      }
      t.pass(`${what} is answered`)
    }

    await endsInTime('a login', new Browser(app).post('/auth/local/login', ADA))
    await endsInTime('a login in a session', new Browser(app, signedIn.cookies).post('/auth/local/login', ADA))
    await endsInTime('a start', new Browser(app).get('/auth/a/login'))
    await endsInTime('a start in a session', new Browser(app, signedIn.cookies).get('/auth/a/login'))
    await endsInTime('a reauthentication', new Browser(app, signedIn.cookies).post('/auth/local/reauthenticate', { password: ADA.password }))
    await endsInTime('a write of the application', new Browser(app, signedIn.cookies).post('/cart'))
    await endsInTime('a sign-out', new Browser(app, signedIn.cookies).post('/auth/logout'))
  })
}

t.test('what an anonymous start writes expires within ten minutes', async t => {
  const sessions = new SlowSessionStore()
  const [app] = await startTwoApps(t, { sessions })
  const browser = new Browser(app)
  for (let start = 0; start < 3; start++) await browser.get('/auth/a/login')

  const entries = [...sessions.entries.values()].map(text => JSON.parse(text))
  t.equal(entries.length, 5, 'the session, three sign-ins and their list')
  for (const { cookie } of entries) {
    t.ok(new Date(cookie.expires).getTime() <= Date.now() + TEN_MINUTES_MS)
    t.ok(cookie.originalMaxAge <= TEN_MINUTES_MS)
  }
})

t.test('a session that never was leaves no mark when it is ended or replaced', async t => {
  const sessions = new SlowSessionStore()
  const [app] = await startTwoApps(t, { sessions })
  const unknown = new Map([['svc_session', new Signer(SESSION_SECRET).sign('a session that never was')]])

  await new Browser(app).post('/auth/logout')
  await new Browser(app, unknown).post('/auth/logout')
  await new Browser(app, unknown).post('/auth/logout', { everywhere: true })
  await new Browser(app, unknown).get('/private')
  await new Browser(app, unknown).get('/auth/a/callback?state=unknown&code=x')
  t.equal(sessions.entries.size, 0)

  await new Browser(app, unknown).post('/auth/local/register', ADA)
  t.equal(sessions.entries.size, 1, 'the session of the sign-in alone')
})

/** The lifetimes that a session may have; `lives` is what remains of it in milliseconds. */
const LIFETIMES: ReadonlyArray<readonly [what: string, cookie: SessionCookieOptions, lives: number | null]> = [
  ['seven days', {}, SEVEN_DAYS_MS],
  ['an hour', { maxAge: 3_600_000 }, 3_600_000],
  ['no limit', { maxAge: null }, null],
  // Of the present, as the files of a group are loaded before they run.
  ['a fixed end', { get expires () { return new Date(Date.now() + 7_200_000) } }, 7_200_000]
]

for (const [what, cookie, lives] of LIFETIMES) {
  t.test(`a session of ${what} that outgrows the sign-in it was saved for gets its full lifetime`, async t => {
    for (const outgrow of ['/cart', '/auth/a/callback']) {
      const sessions = new SlowSessionStore()
      const [app] = await startTwoApps(t, { sessions, options: { session: { secret: SESSION_SECRET, cookie } } })
      const browser = new Browser(app)
      const callback = await leaveFor(browser, '/auth/a/login', { subject: 'ada-at-a' })
      const lifeOf = (): number | null => {
        const { expires } = JSON.parse(sessions.entries.get(sessionIdOf(browser)) ?? '').cookie
        return expires === null || expires === undefined ? null : new Date(expires).getTime() - Date.now()
      }
      t.ok(Number(lifeOf()) <= TEN_MINUTES_MS, 'it is short at first')

      const answer = await (outgrow === '/cart' ? browser.post('/cart') : browser.get(callback))

      const life = lifeOf()
      if (lives === null) t.equal(life, null, outgrow)
      else t.ok(Math.abs(Number(life) - lives) < 60_000, `${outgrow}: ${life}`)
      const set = answer.cookies.find(({ name }) => name === 'svc_session')
      t.equal(set?.expires === undefined, lives === null, 'the cookie says so too')
      if (outgrow === '/cart') {
        t.equal((await browser.get(callback)).headers.location, '/', 'the sign-in finishes')
        t.equal((await browser.get('/private')).statusCode, 200)
      }
    }
  })
}

for (const [what, cookie, lives] of LIFETIMES) {
  t.test(`a visitor who starts a sign-in has no row, and a session of ${what} once there is more`, async t => {
    for (const outgrow of ['/cart', '/auth/a/callback']) {
      const store = new MemoryAuthStore()
      const [app] = await startTwoApps(t, { store, options: { session: { secret: SESSION_SECRET, cookie } } })
      const browser = new Browser(app)
      const kept = { store, sessions: undefined }
      const callback = await leaveFor(browser, '/auth/a/login', { subject: 'ada-at-a' })
      t.equal(await stored(kept, sessionIdOf(browser)), null)

      const answer = await (outgrow === '/cart' ? browser.post('/cart') : browser.get(callback))

      const { expiresAt } = Object(await stored(kept, sessionIdOf(browser)))
      t.ok(Math.abs(expiresAt - Date.now() - (lives ?? SEVEN_DAYS_MS)) < 60_000, `${outgrow}: ${expiresAt}`)
      const set = answer.cookies.find(({ name }) => name === 'svc_session')
      t.equal(set?.expires === undefined, lives === null, 'the cookie of a session without a limit says nothing')
      if (outgrow === '/cart') {
        t.equal((await browser.get('/cart')).json().cart, 'apples')
        t.equal((await browser.get(callback)).headers.location, '/', 'the sign-in finishes')
        t.equal((await browser.get('/private')).statusCode, 200)
      }
    }
  })
}

for (const [kind, keep] of SHARED_SESSIONS) {
  t.test(`a lifetime that the application changes is saved, although nothing else in the session is new, with ${kind}`, async t => {
    const { sessions, store } = await keep(t)
    const session = { secret: SESSION_SECRET, store: sessions }
    const app = await startApp(t, { local: localProvider(), store, session }, {}, app => {
      app.post('/remember-less', async request => {
        request.session.cookie.maxAge = 60_000
        return {}
      })
    })
    const browser = new Browser(app)
    await browser.post('/auth/local/register', ADA)

    const { cookies: [set] } = await browser.post('/remember-less')

    t.ok(Number(set?.expires?.getTime()) <= Date.now() + 61_000, 'the browser knows')
    const { cookie, data, expiresAt } = Object(await stored({ sessions, store }, sessionIdOf(browser)))
    t.equal((cookie ?? data.cookie).originalMaxAge, 60_000)
    t.ok(new Date(cookie?.expires ?? expiresAt).getTime() <= Date.now() + 60_000, 'so does the store')
    t.ok(await userIdIn(browser))
  })
}

/** Text that `jsonb` of Postgres cannot hold. */
const NUL = 'a\u0000b\ud800c'

for (const [kind, keep] of SHARED_SESSIONS) {
  t.test(`the application may write any text into a session, with ${kind}`, async t => {
    const { sessions, store } = await keep(t)
    const app = await startApp(t, { local: localProvider(), store, session: { secret: SESSION_SECRET, store: sessions } }, {}, app => {
      app.post('/note', async ({ session }) => Object.assign(session, { note: NUL }).note)
      app.get('/note', async ({ session }) => ({ note: Reflect.get(session, 'note') }))
    })
    const browser = new Browser(app)
    await browser.post('/auth/local/register', ADA)

    t.equal((await browser.post('/note')).statusCode, 200)
    t.equal((await browser.get('/note')).json().note, NUL)
  })
}

/** Applications with the session of the plugin or their own. */
const SESSIONS: ReadonlyArray<readonly [what: string, own: FastifySessionOptions | null, plugin: SessionOptions]> = [
  ['the session of the plugin in its store', null, { store: 'memory' }],
  ['the session of the plugin in its store, rolling', null, { store: 'memory', rolling: true }],
  ['the session of the plugin', null, {}],
  ['the session of the plugin, rolling', null, { rolling: true }],
  ['the session of the plugin, with a prefix', null, { cookiePrefix: 's:' }],
  ['a session of the application', { secret: SESSION_SECRET }, {}],
  ['a session of the application, not rolling', { secret: SESSION_SECRET, rolling: false, saveUninitialized: false }, {}]
]

for (const [what, own, plugin] of SESSIONS) {
  t.test(`each answer that signs a user in sets one session cookie, with ${what}`, async t => {
    const app: FastifyInstance = Fastify()
    t.teardown(() => app.close())
    const sessions = new SlowSessionStore()
    if (own !== null) {
      await app.register(fastifyCookie)
      await app.register(fastifySession, { ...own, store: sessions, cookieName: 'svc_session', cookie: { secure: false, path: '/' } })
    }
    const session = { secret: SESSION_SECRET, store: sessions, ...plugin }
    await app.register(authPlugin, {
      ...BASE, local: localProvider(), providers: [new OwnProvider('a')], ...(own === null && { session })
    })
    app.get('/me', async request => ({ principal: request.principal }))
    app.post('/cart', async ({ session }) => Object.assign(session, { cart: 'apples' }).cart)
    app.post('/sign-in/:userId', async request => app.auth.signIn(request, Object(request.params).userId))
    const { userId }: { userId: string } = (await new Browser(app).post('/auth/local/register', ADA)).json()
    let count = 0
    const ways: Record<string, (browser: Browser) => Promise<LightMyRequestResponse>> = {
      register: async browser => browser.post('/auth/local/register', { ...ADA, email: `ada+${count++}@example.com` }),
      'register by form': async browser => browser.submit('/auth/local/register', { ...ADA, email: `ada+${count++}@example.com` }),
      login: async browser => browser.post('/auth/local/login', ADA),
      callback: async browser => signInAt(browser, 'a', { subject: 'ada-at-a' }),
      'app.auth.signIn': async browser => browser.post(`/sign-in/${userId}`),
      reauthenticate: async browser => {
        await browser.post('/auth/local/login', ADA)
        return browser.post('/auth/local/reauthenticate', { password: ADA.password })
      }
    }
    const before: Record<string, (browser: Browser) => Promise<unknown>> = {
      'no cookie': async () => {},
      'an anonymous session': async browser => browser.post('/cart'),
      'a user': async browser => browser.post('/auth/local/login', ADA),
      'an unknown session': async browser => browser.cookies.set('svc_session', new Signer(SESSION_SECRET).sign('unknown'))
    }

    for (const [way, signIn] of Object.entries(ways)) {
      for (const [state, prepare] of Object.entries(before)) {
        const browser = new Browser(app)
        await prepare(browser)
        const answer = await signIn(browser)
        const names = [answer.headers['set-cookie']].flat().map(cookie => String(cookie).split('=', 1)[0] ?? '')
          .filter(name => !name.startsWith('svc_start_'))
        // A session of the application, which alone knows the name of its cookie, clears an unknown one first.
        const isCleared = own?.saveUninitialized === false && state === 'an unknown session' && names.length === 2
        if (!isCleared) t.strictSame(names, ['svc_session'], `${way} after ${state}`)
        t.ok(await userIdIn(browser), `${way} after ${state}: signed in`)
      }
    }
  })
}

t.test('attack 36: two registrations on one server need session cookies of their own', async t => {
  const session = { secret: SESSION_SECRET }
  const register = async (app: FastifyInstance, prefix: string, cookie: object) => app.register(async scope => {
    await scope.register(authPlugin, { prefix, local: localProvider(), session: { ...session, ...cookie } })
  })
  const refused: Array<[object, object]> = [
    [{}, {}],
    [{ cookieName: 'mine' }, { cookieName: 'mine' }],
    [{ cookie: { path: '/' } }, { cookieName: 'svc_session' }]
  ]
  for (const [first, second] of refused) {
    const app: FastifyInstance = Fastify()
    t.teardown(() => app.close())
    await register(app, '/one', first)
    await t.rejects(async () => register(app, '/two', second), {
      name: 'OptionsError',
      message: /^this server has a session cookie (svc_session|mine) for the path \/ already, .*; set session.cookieName/
    })
  }

  const accepted: Array<[object, object]> = [
    [{}, { cookieName: 'other' }],
    [{ cookie: { path: '/one' } }, { cookie: { path: '/two' } }],
    [{ cookie: { domain: 'one.example' } }, { cookie: { domain: 'two.example' } }]
  ]
  for (const [first, second] of accepted) {
    const app: FastifyInstance = Fastify()
    t.teardown(() => app.close())
    await register(app, '/one', first)
    await register(app, '/two', second)
    await app.ready()
    t.pass('different cookies')
  }
})

for (const [kind, create, rolling] of SESSION_STORES.flatMap(store => [[...store, false], [...store, true]] as const)) {
  t.test(`a request that deletes its own user answers as asked, with ${kind}${rolling ? ', rolling' : ''}`, async t => {
    const session = { secret: SESSION_SECRET, store: create(), rolling }
    const app = await startApp(t, { local: localProvider(), session }, {}, app => {
      const { requireUser } = app.auth
      app.post('/delete-me', { preHandler: requireUser }, async request => {
        await app.auth.deleteUser(app.auth.user(request).userId)
        Object.assign(request.session, { cart: 'apples' })
        return { deleted: true }
      })
      app.post('/delete-me-and-leave', { preHandler: requireUser }, async (request, reply) => {
        await app.auth.deleteUser(app.auth.user(request).userId)
        await app.auth.signOut(request, reply)
        return { deleted: true }
      })
      app.get('/private', { preHandler: requireUser }, async () => 'passed')
    })
    for (const url of ['/delete-me', '/delete-me-and-leave']) {
      const browser = new Browser(app)
      await browser.post('/auth/local/register', ADA)

      const answer = await browser.post(url)

      t.strictSame([answer.statusCode, answer.json()], [200, { deleted: true }], url)
      t.equal((await browser.get('/private')).statusCode, 401)
      t.equal(await userIdIn(browser), null)
    }
  })
}

t.test('a store that takes ids of at most 36 characters serves all routes', async t => {
  const sessions = new SlowSessionStore()
  const { set } = sessions
  const written: string[] = []
  sessions.set = (id, session, done) => {
    if (id.length > 36) throw new Error(`the column is too short for ${id}`)
    written.push(id)
    set.call(sessions, id, session, done)
  }
  const [app] = await startTwoApps(t, { sessions })
  const browser = new Browser(app)

  t.equal((await signInAt(browser, 'a', { subject: 'ada-at-a' })).statusCode, 302)
  t.equal((await linkAt(browser, 'proving', { subject: 'ada' })).statusCode, 302)
  t.equal((await browser.get('/auth/a/login')).statusCode, 302)
  t.equal((await browser.get('/auth/a/login')).statusCode, 302)
  t.equal((await browser.post('/end-others')).statusCode, 200)
  t.equal((await browser.post('/auth/logout')).statusCode, 204)
  t.equal((await browser.post('/auth/local/register', ADA)).statusCode, 201)
  t.ok(written.filter(isEntryId).length > 5, 'entries of each kind were written')
})

t.test('a sign-in takes few calls of the session store', async t => {
  const sessions = new CountingStore()
  const [app] = await startTwoApps(t, { sessions })
  await new Browser(app).post('/auth/local/register', ADA)
  const callsOf = async (browser: Browser): Promise<number> => {
    sessions.calls = []
    t.equal((await browser.post('/auth/local/login', ADA)).statusCode, 200)
    return sessions.calls.length
  }

  const browser = new Browser(app)
  t.ok(await callsOf(browser) <= 3, `without a cookie: ${sessions.calls}`)
  // The last one is not waited for.
  t.ok(await callsOf(browser) <= 6, `with the session of a user: ${sessions.calls}`)
  const visitor = new Browser(app)
  await visitor.post('/cart')
  t.ok(await callsOf(visitor) <= 6, `with an anonymous session: ${sessions.calls}`)
  const other = new Browser(app)
  await callsOf(other)
  sessions.calls = []
  await other.get('/private')
  t.strictSame(sessions.calls, ['get'], 'a guarded request reads once')
})
