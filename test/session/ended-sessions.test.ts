import { EventEmitter, once } from 'node:events'
import fastifyCookie from '@fastify/cookie'
import fastifySession, { type SessionStore } from '@fastify/session'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { TIMEOUT_MS } from '../../lib/base/concurrency.js'
import authPlugin from '../../lib/index.js'
import { SESSION_SECRET, localProvider, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { stopTime } from '../helpers/clock.js'
import { deferred } from '../helpers/deferred.js'
import { SESSION_STORES } from '../helpers/session-stores.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'

declare module 'fastify' {
  interface Session {
    cart?: string
  }
}

const USER = { email: 'ada@example.com', password: 'correct horse' }

/** `/slow` holds its session until `gate` says so; with `?write` it changes it before it answers. */
function slowRoute (gate: EventEmitter) {
  return (app: FastifyInstance): void => {
    app.get('/end', async request => {
      await request.session.destroy()
      return {}
    })
    app.get('/slow', async request => {
      gate.emit('arrived')
      await once(gate, 'go on')
      if (request.url.includes('write')) request.session.cart = 'apples'
      return { principal: request.principal }
    })
  }
}

const APPS = {
  'the own session': async (t: Test, gate: EventEmitter) =>
    startApp(t, { local: localProvider() }, {}, slowRoute(gate)),
  'the own session, rolling': async (t: Test, gate: EventEmitter) =>
    startApp(t, { local: localProvider(), session: { secret: SESSION_SECRET, rolling: true } }, {}, slowRoute(gate)),
  'the own session on a store in another process': async (t: Test, gate: EventEmitter) =>
    startApp(t, { local: localProvider(), session: { secret: SESSION_SECRET, store: new SlowSessionStore() } }, {}, slowRoute(gate)),
  'the own session on a store in another process, rolling': async (t: Test, gate: EventEmitter) =>
    startApp(t, { local: localProvider(), session: { secret: SESSION_SECRET, rolling: true, store: new SlowSessionStore() } }, {}, slowRoute(gate)),
  "the application's own session, rolling": async (t: Test, gate: EventEmitter) => {
    const app: FastifyInstance = Fastify()
    t.teardown(() => app.close())
    await app.register(fastifyCookie)
    await app.register(fastifySession, { secret: SESSION_SECRET, cookieName: 'mine', cookie: { secure: false, path: '/' } })
    await app.register(authPlugin, { local: localProvider() })
    app.get('/me', async request => ({ principal: request.principal }))
    slowRoute(gate)(app)
    return app
  }
}

for (const [name, start] of Object.entries(APPS)) {
  t.test(`the rules hold with ${name}`, async t => {
    for (const path of ['/slow', '/slow?write']) {
      t.test(`a session that was ended stays ended, although ${path} was under way`, async t => {
        const gate = new EventEmitter()
        const app = await start(t, gate)
        const browser = new Browser(app)
        await browser.submit('/auth/local/register', USER)
        const cookies = new Map(browser.cookies)

        const arrived = once(gate, 'arrived')
        const slow = browser.get(path)
        await arrived
        await browser.submit('/auth/local/revoke', {})
        gate.emit('go on')
        t.ok((await slow).json().principal, 'the request under way had its principal')

        const oldCookie = new Browser(app, cookies)
        t.equal((await oldCookie.get('/me')).json().principal, null)
      })

      t.test(`the session from before a sign-in stays anonymous, although ${path} was under way`, async t => {
        const gate = new EventEmitter()
        const app = await start(t, gate)
        const browser = new Browser(app)
        await browser.submit('/auth/local/register', USER)
        const firstSession = new Map(browser.cookies)

        const arrived = once(gate, 'arrived')
        const slow = browser.get(path)
        await arrived
        await browser.submit('/auth/local/login', USER)
        const secondSession = new Map(browser.cookies)
        gate.emit('go on')
        await slow

        const [old, current] = [new Browser(app, firstSession), new Browser(app, secondSession)]
        t.equal((await old.get('/me')).json().principal, null)
        t.ok((await current.get('/me')).json().principal)
      })
    }

    t.test('signing out clears the cookie with the attributes it was set with, and works twice', async t => {
      const app = await start(t, new EventEmitter())
      const browser = new Browser(app)
      const set = (await browser.submit('/auth/local/register', USER)).cookies.at(-1)

      const first = await browser.submit('/auth/local/revoke', {})
      const second = await browser.submit('/auth/local/revoke', {})

      const cleared = first.cookies.find(({ name }) => name === set?.name)
      t.match(cleared, { name: set?.name, value: '', maxAge: 0, path: set?.path, httpOnly: set?.httpOnly })
      t.equal(cleared?.sameSite, set?.sameSite)
      t.equal(cleared?.secure, set?.secure)
      t.equal(second.statusCode, 303)
    })
  })
}

for (const [kind, createSessions] of SESSION_STORES) {
  t.test(`a session that the application itself ends stays ended too, with ${kind}`, async t => {
    const gate = new EventEmitter()
    const app = await startApp(t, { session: { secret: SESSION_SECRET, rolling: true, store: createSessions() } }, {}, app => {
      slowRoute(gate)(app)
      app.get('/start', async request => { request.session.cart = 'pears'; return {} })
      app.get('/cart', async request => ({ cart: request.session.cart ?? null }))
    })
    const browser = new Browser(app)
    await browser.get('/start')

    const arrived = once(gate, 'arrived')
    const slow = browser.get('/slow?write')
    await arrived
    await browser.get('/end')
    gate.emit('go on')
    await slow

    t.strictSame((await browser.get('/cart')).json(), { cart: null })
  })
}

t.test('a request without a session is answered: a hook answers first, or the handler destroys a new session', async t => {
  const app = Fastify()
  t.teardown(() => app.close())
  app.addHook('onRequest', async ({ url }, reply) => url === '/early' ? reply.code(400).send('early') : undefined)
  await app.register(authPlugin, { session: { secret: SESSION_SECRET } })
  app.get('/early', async () => 'late')
  app.get('/destroyed', async request => {
    request.session.cart = 'plums'
    await request.session.destroy()
    return 'destroyed'
  })

  const early = await app.inject('/early')
  const destroyed = [await app.inject('/destroyed'), await app.inject('/destroyed')]

  t.match(early, { statusCode: 400, body: 'early' })
  t.match(destroyed, [{ statusCode: 200, body: 'destroyed' }, { statusCode: 200, body: 'destroyed' }])
})

t.test('a sign-in that fails because the session store does leaves nothing behind', async t => {
  const store = new SlowSessionStore()
  const app = await startApp(t, { local: localProvider(), session: { secret: SESSION_SECRET, store } })
  const browser = new Browser(app)
  await browser.post('/auth/local/register', USER)
  await browser.post('/auth/local/revoke')
  store.failure = new Error('the store is down')

  const response = await browser.post('/auth/local/login', USER)

  t.equal(response.statusCode, 503)
  t.equal(response.json().code, 'unavailable')
  t.notOk(response.body.includes('the store is down'))
  store.failure = null
  t.equal((await browser.get('/me')).json().principal, null)
  t.strictSame(store.sessions, [])
})

t.test('a sign-out that the session store does not take is unavailable, and does not sign out', async t => {
  const store = new SlowSessionStore()
  const app = await startApp(t, { local: localProvider(), session: { secret: SESSION_SECRET, store } })
  const browser = new Browser(app)
  await browser.post('/auth/local/register', USER)
  const readOnly: SessionStore = {
    get: store.get.bind(store),
    set: (_id, _session, done) => { done(new Error('read-only')) },
    destroy: (_id, done) => { done(new Error('read-only')) }
  }
  const fresh = new Browser(await startApp(t, { local: localProvider(), session: { secret: SESSION_SECRET, store: readOnly } }), browser.cookies)

  t.equal((await fresh.post('/auth/local/revoke')).json().code, 'unavailable')
  t.ok((await fresh.get('/me')).json().principal)
})

for (const [kind, createSessions] of SESSION_STORES) {
  t.test(`a session id is never kept across a sign-in, with ${kind}`, async t => {
    const store = createSessions()
    const app = await startApp(t, { local: localProvider(), session: { secret: SESSION_SECRET, store } }, {}, app => {
      app.get('/plant', async request => { request.session.cart = 'planted'; return {} })
      app.get('/cart', async request => ({ cart: request.session.cart ?? null }))
    })
    const browser = new Browser(app)
    const seen = new Map<string | undefined, Browser>()
    const note = () => seen.set(browser.cookies.get('svc_session'), new Browser(app, browser.cookies))

    await browser.get('/plant')
    note()
    await browser.submit('/auth/local/register', USER)
    note()
    await browser.submit('/auth/local/login', USER)
    note()

    t.equal(seen.size, 3)
    for (const old of seen.values()) t.equal((await old.get('/cart')).json().cart, null, 'nothing of the anonymous session is carried over')
    if (store instanceof SlowSessionStore) t.equal(store.sessions.length, 1, 'the old ones are gone from the store')
  })
}

/** A store that may forget to answer. */
class ForgetfulSessionStore extends SlowSessionStore {
  readonly forgotten = deferred()
  forgets = false

  override destroy (id: string, callback: (error?: unknown) => void): void {
    super.destroy(id, this.forgets ? this.forgotten.resolve : callback)
  }
}

t.test('attack 59: a sign-out whose answer gets lost is unavailable, and does not hold up the next one', async t => {
  const store = new ForgetfulSessionStore()
  const browser = new Browser(await startApp(t, { local: localProvider(), session: { secret: SESSION_SECRET, store } }))
  await browser.post('/auth/local/register', USER)
  const copy = new Browser(browser.app, browser.cookies)

  const letPass = stopTime(t)
  store.forgets = true
  const lost = browser.post('/auth/local/revoke')
  await store.forgotten.promise
  store.forgets = false
  const next = copy.post('/auth/local/revoke')
  letPass(TIMEOUT_MS)

  t.strictSame([(await lost).statusCode, (await lost).json().code], [503, 'unavailable'])
  t.equal((await next).statusCode, 204)
  t.equal((await copy.get('/me')).json().principal, null)
})
