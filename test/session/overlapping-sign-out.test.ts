/** A sign-out beside a sign-in that replaces the session of both. */
import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import Fastify, { type FastifyInstance, type Session } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin from '../../lib/index.js'
import { SESSION_SECRET, localProvider, startApp, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { deferred } from '../helpers/deferred.js'
import { SESSION_STORES } from '../helpers/session-stores.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }

/** Holds one read. */
class HoldingSessionStore extends SlowSessionStore {
  readonly held = deferred()
  readonly goesOn = deferred()
  /** Which read is held. */
  holds: 'none' | 'the next one' | 'the next one after a removal' = 'none'

  override destroy (id: string, callback: (error?: unknown) => void): void {
    super.destroy(id, error => {
      if (this.holds === 'the next one after a removal') this.holds = 'the next one'
      callback(error)
    })
  }

  override async get (id: string, callback: (error: unknown, session?: Session | null) => void): Promise<void> {
    if (this.holds === 'the next one') {
      this.holds = 'none'
      this.held.resolve()
      await this.goesOn.promise
    }
    super.get(id, callback)
  }
}

const APPS: Record<string, (t: Test, store: SlowSessionStore) => Promise<FastifyInstance>> = {
  'a session of the plugin': async (t, store) =>
    startApp(t, { local: localProvider(), session: { secret: SESSION_SECRET, store }, rateLimit: false }),
  'cookies as of express-session': async (t, store) =>
    startApp(t, { local: localProvider(), session: { secret: SESSION_SECRET, store, cookiePrefix: 's:' } }),
  'an own signer that fails at other cookies': async (t, store) => {
    const sign = (id: string) => `own.${id}`
    const unsign = (cookie: string) => {
      if (!cookie.startsWith('own.')) throw new Error('this cookie was made elsewhere')
      return { valid: true, renew: false, value: cookie.slice(4) }
    }
    return startApp(t, { local: localProvider(), session: { secret: { sign, unsign }, store } })
  },
  "the application's own session": async (t, store) => {
    const app: FastifyInstance = Fastify()
    t.teardown(() => app.close())
    await app.register(fastifyCookie)
    await app.register(fastifySession, { secret: SESSION_SECRET, store, cookieName: 'mine', cookie: { secure: false }, saveUninitialized: false })
    await app.register(authPlugin, { local: localProvider() })
    app.get('/me', async request => ({ principal: request.principal }))
    return app
  }
}

/** A user signed in to an application, and the users of whom it announces that they signed out. */
async function signedIn (app: FastifyInstance) {
  const revoked: string[] = []
  app.auth.channel.on('revoke', userId => { revoked.push(userId) })
  const browser = new Browser(app)
  const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()
  // A cookie of the application's that is not signed.
  browser.cookies.set('theme', 'dark')
  return { browser, copy: () => new Browser(app, browser.cookies), userId, revoked }
}

for (const [name, start] of Object.entries(APPS)) {
  for (const body of [undefined, { everywhere: true }]) {
    t.test(`attack 35: a sign-out ${body ? 'everywhere ' : ''}that finds its session replaced by a sign-in under way ends that one, with ${name}`, async t => {
      const store = new HoldingSessionStore()
      const { browser, copy, userId, revoked } = await signedIn(await start(t, store))
      const [signingIn, signingOut] = [copy(), copy()]

      store.holds = 'the next one after a removal'
      const login = signingIn.post('/auth/local/login', ADA)
      await store.held.promise
      const signOut = await signingOut.post('/auth/logout', body)
      store.goesOn.resolve()

      t.equal(signOut.statusCode, 204)
      t.equal((await login).json().code, 'invalid_state')
      for (const one of [browser, signingIn]) t.equal(await userIdIn(one), null)
      t.strictSame(store.sessions, [])
      t.strictSame(revoked, [userId])
    })
  }

  t.test(`attack 35: a sign-out that came before a sign-in was over ends its session, and clears the cookie, with ${name}`, async t => {
    const store = new HoldingSessionStore()
    const { copy, userId, revoked } = await signedIn(await start(t, store))
    const [signingIn, signingOut] = [copy(), copy()]

    store.holds = 'the next one'
    const signOut = signingOut.post('/auth/local/revoke')
    await store.held.promise
    t.equal((await signingIn.post('/auth/local/login', ADA)).statusCode, 200)
    store.goesOn.resolve()

    t.equal((await signOut).statusCode, 204)
    t.strictSame([...signingOut.cookies.keys()], ['theme'])
    t.equal(await userIdIn(signingIn), null)
    t.strictSame(revoked, [userId])
  })
}

for (const [kind, createSessions] of SESSION_STORES) {
  t.test(`attack 35: a sign-out with the cookie from before a sign-in ends nothing once the sign-in was answered, with ${kind}`, async t => {
    const app = await startApp(t, { local: localProvider(), session: { secret: SESSION_SECRET, store: createSessions() }, rateLimit: false })
    const { browser, copy, revoked } = await signedIn(app)

    for (let round = 0; round < 10; round++) {
      const before = copy()
      t.equal((await browser.post('/auth/local/login', ADA)).statusCode, 200)
      t.equal((await before.post('/auth/logout', round % 2 === 0 ? undefined : { everywhere: true })).statusCode, 204)
      t.ok(await userIdIn(browser))
    }
    t.strictSame(revoked, [])
  })
}

t.test('a sign-in whose end the session store does not note is answered all the same', async t => {
  const store = new SlowSessionStore()
  const app = await startApp(t, { local: localProvider(), session: { secret: SESSION_SECRET, store } })
  const { browser } = await signedIn(app)
  const failed = deferred()
  const { set } = store
  store.set = (id, session, done) => {
    if (!('overAt' in session)) return set.call(store, id, session, done)
    done(new Error('down'))
    failed.resolve()
  }

  t.equal((await browser.post('/auth/local/login', ADA)).statusCode, 200)
  await failed.promise
  t.ok(await userIdIn(browser))
})
