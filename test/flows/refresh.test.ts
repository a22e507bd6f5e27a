import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { AuthError, type AuthPluginOptions, type AuthStore, MemoryAuthStore } from '../../lib/index.js'
import { SESSION_SECRET, localProvider, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { OwnProvider, linkAt, signInAt } from '../helpers/own-provider.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'
import { SOME_STORES } from '../helpers/stores.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }

/** Ada, signed in with a password, in an application that refreshes at /refreshed and guards /guarded with a refresh. */
async function withAda (t: Test, store: AuthStore = new MemoryAuthStore(), sessions = new SlowSessionStore(), options: AuthPluginOptions = {}) {
  const app = await startApp(t, {
    baseUrl: 'http://localhost:3000',
    providers: [new OwnProvider('a')],
    local: localProvider(),
    store,
    session: { secret: SESSION_SECRET, store: sessions },
    ...options
  }, {}, app => { addRoutes(app, sessions) })
  const browser = new Browser(app)
  const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()
  return { app, browser, userId, sessions }
}

function addRoutes (app: FastifyInstance, sessions: SlowSessionStore): void {
  app.addHook<{ Querystring: { fails?: string, cart?: string } }>('preHandler', async request => {
    const { fails, cart } = request.query
    if (cart !== undefined) request.session.set('cart' as never, cart as never)
    if (fails !== undefined) sessions.failure = new Error('the network is down')
  })
  app.addHook('onError', async () => { sessions.failure = null })
  app.get(
    '/refreshed',
    async request => ({
      returned: await app.auth.refresh(request),
      principal: request.principal,
      hasSession: request.session.sessionId !== undefined
    })
  )
  app.get('/guarded', { preHandler: [app.auth.refresh, app.auth.requireUser] }, async request => {
    if (request.headers['x-handler-fails'] !== undefined) throw new Error('the handler ran')
    return request.principal
  })
  app.get('/admin', { preHandler: [app.auth.refresh, app.auth.requireClaims({ role: 'admin' })] }, async () => 'welcome')
}

for (const [kind, newStore] of Object.entries(SOME_STORES)) {
  t.test(`the rules hold on ${kind}`, async t => {
    t.test('a grant is seen by an open session at the next refresh, and from then on', async t => {
      const { app, browser, userId } = await withAda(t, await newStore(t))
      await app.auth.grant(userId, { role: 'admin' })
      t.notOk('role' in (await browser.get('/me')).json().principal.claims)

      const { returned, principal } = (await browser.get('/refreshed')).json()

      t.match(returned, { userId, provider: 'local', claims: { email: ADA.email, role: 'admin' } })
      t.strictSame(principal, returned)
      t.strictSame((await browser.get('/me')).json().principal, returned)
    })

    t.test('a claim that was withdrawn passes no guard at the next refresh', async t => {
      const { app, browser, userId } = await withAda(t, await newStore(t))
      await app.auth.grant(userId, { role: 'admin' })
      t.equal((await browser.get('/admin')).statusCode, 200)

      await app.auth.withdraw(userId, ['role'])

      t.equal((await browser.get('/admin')).statusCode, 403)
      t.equal((await browser.get('/guarded')).statusCode, 200)
    })

    t.test('identity claims of another browser\'s sign-in are seen too', async t => {
      const { app, browser } = await withAda(t, await newStore(t))
      const [here, there] = [new Browser(app), browser]
      await signInAt(here, 'a', { subject: '1', email: 'one@example.com' })
      await signInAt(there, 'a', { subject: '1', email: 'two@example.com' })

      t.match((await here.get('/refreshed')).json().returned.claims, { email: 'two@example.com' })
    })

    t.test('attack 37: a user who was deleted while signed in is signed out for good', async t => {
      const { app, browser, userId, sessions } = await withAda(t, await newStore(t))
      const stolen = new Browser(app, browser.cookies)
      await app.auth.deleteUser(userId)

      t.equal((await browser.get('/guarded')).statusCode, 401)

      t.equal(browser.cookies.size, 0, 'the cookie is cleared')
      t.equal((await stolen.get('/me')).json().principal, null, 'the session is gone, not only the cookie')
      t.notOk(sessions.sessions.join().includes(userId))
    })

    t.test('attack 37: unlinking ends every session of the user', async t => {
      const { app, browser, userId } = await withAda(t, await newStore(t))
      await linkAt(browser, 'a', { subject: '1' })
      const other = new Browser(app)
      await signInAt(other, 'a', { subject: '1' })

      await app.auth.unlink(userId, 'a')

      t.equal((await other.get('/guarded')).statusCode, 401)
      t.equal((await browser.get('/guarded')).statusCode, 401)
    })

    t.test('attack 37: no token is issued to a session that a refresh would end', async t => {
      const { app, browser, userId } = await withAda(t, await newStore(t))
      await linkAt(browser, 'a', { subject: '1' })
      await app.auth.unlink(userId, 'local')

      t.equal((await browser.post('/auth/local/token')).statusCode, 401)
    })
  })
}

t.test('a token that is issued has the claims of now, not those of the sign-in', async t => {
  const { app, browser, userId } = await withAda(t)
  await app.auth.grant(userId, { role: 'admin' })
  await browser.get('/refreshed')
  await app.auth.withdraw(userId, ['role'])

  const { token } = (await browser.post('/auth/local/token')).json()

  t.notOk('role' in (await localProvider().verifyIdToken(token)))
})

t.test('an anonymous user stays anonymous, and no session is created', async t => {
  const { app, sessions } = await withAda(t)
  const before = sessions.sessions.length

  const response = await app.inject('/refreshed')

  t.match(response.json(), { returned: null, principal: null })
  t.strictSame(response.cookies, [])
  t.equal(sessions.sessions.length, before)
})

t.test('the rest of a request whose session ended has an empty one', async t => {
  const { app, browser, userId } = await withAda(t)
  await app.auth.deleteUser(userId)

  t.strictSame((await browser.get('/refreshed')).json(), { returned: null, principal: null, hasSession: true })
})

t.test('a refresh that finds nothing new writes nothing', async t => {
  const { app, browser, userId, sessions } = await withAda(t)
  await app.auth.grant(userId, { nested: { b: 1, a: [2] } })
  await browser.get('/refreshed')
  const written = t.capture(sessions, 'set', sessions.set.bind(sessions))

  await browser.get('/guarded')

  t.strictSame(written(), [])
})

t.test('what else the session holds stays, and its id too', async t => {
  const { app, browser, userId, sessions } = await withAda(t)
  await browser.get('/refreshed?cart=full')
  const cookies = [...browser.cookies]
  await app.auth.grant(userId, { role: 'admin' })

  await browser.get('/refreshed')

  t.strictSame([...browser.cookies], cookies)
  t.match(sessions.sessions.map(text => JSON.parse(text)), [{ cart: 'full', svcAuth: { principal: { claims: { role: 'admin' } } } }])
})

t.test('attack 35: a session that ends while it is refreshed stays ended', async t => {
  for (const own of [true, false]) {
    const sessions = new SlowSessionStore()
    const store = new MemoryAuthStore()
    const app: FastifyInstance = Fastify()
    t.teardown(() => app.close())
    if (!own) {
      await app.register(fastifyCookie)
      await app.register(fastifySession, { secret: SESSION_SECRET, store: sessions, cookie: { secure: false }, saveUninitialized: false })
    }
    await app.register(authPlugin, { local: localProvider(), store, ...(own && { session: { secret: SESSION_SECRET, store: sessions } }) })
    app.get('/me', async request => ({ principal: request.principal }))
    addRoutes(app, sessions)
    const browser = new Browser(app)
    const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()
    const stolen = new Browser(app, browser.cookies)

    for (let round = 0; round < 5; round++) await app.auth.grant(userId, { [`role_${round}`]: true })
    await Promise.all([
      ...Array.from({ length: 5 }, () => stolen.get('/refreshed')),
      browser.post('/auth/local/revoke'),
      ...Array.from({ length: 5 }, () => stolen.get('/refreshed'))
    ])

    t.equal((await stolen.get('/me')).json().principal, null)
  }
})

t.test('attack 59: while a store fails no request passes a guard with a refresh, and no user is signed out', async t => {
  class FailingStore extends MemoryAuthStore {
    fails = false
    override async links (userId: string) {
      if (this.fails) throw new AuthError('unavailable')
      return super.links(userId)
    }
  }
  const store = new FailingStore()
  const { browser } = await withAda(t, store)

  store.fails = true
  t.equal((await browser.get('/guarded')).statusCode, 503)
  store.fails = false
  t.equal((await browser.get('/guarded')).statusCode, 200)
})

t.test('attack 59: a session store that fails while it is written is unavailable, and the handler does not run', async t => {
  const { app, browser, userId, sessions } = await withAda(t)
  const code = async () => (await browser.get('/guarded?fails', { 'x-handler-fails': 'yes' })).json().code

  await app.auth.grant(userId, { role: 'admin' })
  t.equal(await code(), 'unavailable')
  await app.auth.deleteUser(userId)
  t.equal(await code(), 'unavailable')

  t.equal(sessions.failure, null)
  t.equal((await browser.get('/guarded')).statusCode, 401)
})
