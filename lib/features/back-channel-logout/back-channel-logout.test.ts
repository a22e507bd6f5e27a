/** OpenID Connect Back-Channel Logout 1.0: what a logout token ends, in every process. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { MemoryAuthStore } from '../../../lib/index.js'
import { SecondFactor } from '../../../lib/second-factor.js'
import { sessionAt } from '../../session/at-provider.js'
import { entryId } from '../../session/express.js'
import { SESSION_SECRET, startApp, userIdIn } from '../../../test/helpers/app.js'
import { eventsOf } from '../../../test/helpers/audit-events.js'
import {
  type LogoutWorld, comeBack, logoutToken, sendLogout, signInAtFake, startLogoutWorld
} from '../../../test/helpers/back-channel.js'
import { Browser } from '../../../test/helpers/browser.js'
import { deferred } from '../../../test/helpers/deferred.js'
import { DATA_SECRET, enrolAt, nextCode } from '../../../test/helpers/factor-app.js'
import { listen } from '../../../test/helpers/loopback.js'
import { openStore } from '../../../test/helpers/revocations.js'
import { emptyDatabase } from '../../../test/helpers/postgres.js'
import { startOpenIdProvider } from '../../../test/helpers/openid-provider.js'
import { linkAt, signInAt, startAt } from '../../../test/helpers/own-provider.js'
import { ALL_SESSIONS, SHARED_SESSIONS } from '../../../test/helpers/session-stores.js'
import { SlowSessionStore } from '../../../test/helpers/slow-session-store.js'

/** Sends a logout token, and checks the answer. */
async function end (t: Test, { fake, app }: Pick<LogoutWorld, 'fake' | 'app'>, claims: Record<string, unknown>): Promise<void> {
  const answer = await sendLogout(app, await logoutToken(fake, claims))
  t.strictSame([answer.statusCode, answer.body], [200, ''])
  t.match(answer.headers['cache-control'], /no-store/)
  t.equal(answer.headers['set-cookie'], undefined)
}

for (const [name, keep] of ALL_SESSIONS) {
  t.test(`with ${name}, a sid ends the sessions that began in that session, in every application`, async t => {
    const world = await startLogoutWorld(t, await keep(t))
    const { fake, app } = world
    const other = await world.start()
    const events = eventsOf(t, 'back-channel-logout')
    const one = await signInAtFake(app, fake, 'sid-1')
    const same = await signInAtFake(other, fake, 'sid-1')
    const second = await signInAtFake(other, fake, 'sid-2')
    const userId = await userIdIn(one)

    await end(t, world, { sid: 'sid-1', sub: 'ada' })

    t.strictSame([await userIdIn(one), await userIdIn(same), await userIdIn(second)], [null, null, userId])
    t.strictSame(events.map(({ provider, userId }) => [provider, userId]), [['fake', userId]])
    await end(t, { fake, app: other }, { sid: 'sid-2' })
    t.equal((await second.get('/guarded')).statusCode, 401)
  })

  t.test(`with ${name}, a sub ends all sessions that began as that user, and no others`, async t => {
    const world = await startLogoutWorld(t, await keep(t))
    const { fake, app } = world
    const other = await world.start()
    const browsers = [await signInAtFake(app, fake, 'sid-1'), await signInAtFake(other, fake)]
    await linkAt(new Browser(app, browsers[0]?.cookies), 'other', { subject: 'ada-elsewhere' })
    const byOther = new Browser(app)
    await signInAt(byOther, 'other', { subject: 'ada-elsewhere' })
    fake.profile = { ...fake.profile, sub: 'bob', email: 'bob@example.com' }
    const bob = await signInAtFake(app, fake, 'sid-3')
    t.equal(await userIdIn(byOther), await userIdIn(browsers[1] ?? bob))

    await end(t, world, { sub: 'ada' })

    for (const browser of browsers) t.equal(await userIdIn(browser), null)
    t.not(await userIdIn(byOther), null, 'they signed in at another provider')
    t.not(await userIdIn(bob), null)
    fake.profile = { ...fake.profile, sub: 'ada', email: 'ada@example.com' }
    t.not(await userIdIn(await signInAtFake(other, fake)), null, 'a later sign-in is a new session')
  })
}

for (const [name, keep] of SHARED_SESSIONS) {
  t.test(`attack 225: with ${name}, a session that got another id ends too`, async t => {
    const world = await startLogoutWorld(t, await keep(t))
    const browser = await signInAtFake(world.app, world.fake, 'sid-1')
    const before = new Map(browser.cookies)
    t.equal((await browser.post('/end-others')).statusCode, 200)
    t.notSame(browser.cookies, before)
    t.not(await userIdIn(browser), null)

    await end(t, world, { sid: 'sid-1' })

    t.equal(await userIdIn(browser), null)
  })

  t.test(`with ${name}, a reauthentication there takes the session in which it was`, async t => {
    const world = await startLogoutWorld(t, await keep(t))
    const { fake } = world
    const browser = await signInAtFake(world.app, fake, 'sid-1')
    const url = await startAt(browser, '/auth/fake/login?reauthenticate=true')
    fake.idTokenClaims = { sid: 'sid-2', auth_time: Math.floor(Date.now() / 1000) + 1 }
    t.equal((await browser.get(fake.consent(url))).statusCode, 302)

    await end(t, world, { sid: 'sid-1' })
    t.not(await userIdIn(browser), null)
    await end(t, world, { sid: 'sid-2' })
    t.equal(await userIdIn(browser), null)
  })
}

t.test('a session store of the application is asked about the sessions of such providers alone', async t => {
  const sessions = new SlowSessionStore()
  const world = await startLogoutWorld(t, { store: new MemoryAuthStore(), sessions })
  const byOther = new Browser(world.app)
  await signInAt(byOther, 'other', { subject: 'eve' })
  const byFake = await signInAtFake(world.app, world.fake, 'sid-1')
  const { session = '', user } = sessionAt('fake', { sid: 'sid-1', sub: 'ada' }, 0)
  const notes = [session, user].map(hash => entryId('ended-at-provider', hash))
  const { get } = sessions
  const read: string[] = []
  sessions.get = (id, done) => {
    if (notes.includes(id)) read.push(id)
    get.call(sessions, id, done)
  }
  await byOther.get('/me')
  t.strictSame(read, [])
  await byFake.get('/me')
  t.strictSame(read, notes)
})

t.test('sessions that the application has registered itself are refused, too', async t => {
  const { fake } = await startLogoutWorld(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(fastifyCookie)
  await app.register(fastifySession, { secret: SESSION_SECRET, cookie: { maxAge: 30 * 86_400_000, secure: false }, store: new SlowSessionStore() })
  const provider = fake.provider({ backChannelLogout: true, allowInsecureRequests: false, fetch: fake.fetch })
  await app.register(authPlugin, { baseUrl: 'http://localhost', providers: [provider] })
  app.get('/me', async request => ({ principal: request.principal }))
  const [one, other] = [await signInAtFake(app, fake, 'sid-1'), await signInAtFake(app, fake, 'sid-2')]
  await end(t, { fake, app }, { sid: 'sid-1' })
  t.equal(await userIdIn(one), null)
  t.not(await userIdIn(other), null)
})

t.test('a store whose sessions cannot end at a provider is refused at the start', async t => {
  const { fake } = await startLogoutWorld(t)
  const store = new MemoryAuthStore()
  Object.assign(Object(store.sessions), { endAtProvider: undefined })
  await t.rejects(startApp(t, { baseUrl: 'http://localhost', providers: [fake.provider({ backChannelLogout: true })], store }), {
    name: 'OptionsError', message: /^store\.sessions needs endAtProvider: .* has backChannelLogout$/
  })
})

t.test('a user who signs out there is announced in every process on Postgres', async t => {
  const url = await emptyDatabase(t)
  const [one, other] = [openStore(t, url), openStore(t, url)]
  const world = await startLogoutWorld(t, { store: one, sessions: undefined })
  const elsewhere = await world.start({ store: other })
  const heard = [world.app, elsewhere].map(async app => once(app.auth.channel, 'revoke'))
  const browser = await signInAtFake(elsewhere, world.fake, 'sid-1')
  const userId = await userIdIn(browser)
  await end(t, world, { sid: 'sid-1' })
  t.strictSame((await Promise.all(heard)).flat(), [userId, userId])
  t.equal(await userIdIn(browser), null)
})

t.test('the real oidc-provider ends the session of a user who signs out there', async t => {
  const browsers: Array<[Browser, Map<string, string>]> = []
  const server = createServer(async (request, response) => {
    const { method, url = '', headers } = request
    const answer = await browsers[0]?.[0].app.inject({
      method: method === 'POST' ? 'POST' : 'GET', url, headers: { 'content-type': headers['content-type'] ?? '' }, payload: await text(request)
    })
    response.writeHead(answer?.statusCode ?? 500).end(answer?.body)
  })
  const baseUrl = `http://127.0.0.1:${await listen(t, server)}`
  const idp = await startOpenIdProvider(t, {
    redirectUris: [`${baseUrl}/auth/dev/callback`],
    client: { backchannel_logout_uri: `${baseUrl}/auth/dev/backchannel-logout`, backchannel_logout_session_required: true },
    configuration: {
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'picture'] },
      features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
      // Its own refuses addresses of this machine.
      async fetch (url, options) {
        const { dispatcher: _, ...others } = Object(options)
        return fetch(url, others)
      }
    }
  })
  const app = await startApp(t, { baseUrl, providers: [idp.provider({ backChannelLogout: true })], dataSecret: DATA_SECRET })
  for (const browser of [new Browser(app), new Browser(app)]) {
    const there = new Map<string, string>()
    browsers.push([browser, there])
    const { headers: { location = '' } } = await browser.get('/auth/dev/login')
    const callback = await idp.authorize(location, there)
    t.equal((await browser.get(callback.pathname + callback.search)).headers.location, '/')
    t.not(await userIdIn(browser), null)
  }
  await idp.endSession(browsers[0]?.[1] ?? new Map())

  t.strictSame(await Promise.all(browsers.map(async ([browser]) => await userIdIn(browser) === null)), [true, false])
})

for (const [name, keep] of ALL_SESSIONS) {
  for (const [what, claims] of [['sid', { sid: 'sid-1', sub: 'ada' }], ['sub', { sub: 'ada' }]] as const) {
    t.test(`attack 225: with ${name}, a logout by ${what} that arrives before the callback has written its session counts`, async t => {
      const hook = { reached: deferred(), go: deferred(), isHeld: false }
      const world = await startLogoutWorld(t, await keep(t), {
        async onSignIn () {
          if (!hook.isHeld) return
          hook.reached.resolve()
          await hook.go.promise
        }
      })
      const { fake, app } = world
      const other = await world.start()
      await signInAtFake(app, fake, 'sid-0')
      const [early, late] = [new Browser(app), new Browser(app)]
      const [before, during] = [await comeBack(early, fake, 'sid-1'), await comeBack(late, fake, 'sid-1')]

      hook.isHeld = true
      const sent = late.get(during)
      await hook.reached.promise
      await end(t, { fake, app: other }, claims)
      hook.isHeld = false
      hook.go.resolve()

      for (const answer of [await sent, await early.get(before)]) t.match([answer.statusCode, answer.body], [400, /invalid_state/])
      t.strictSame([await userIdIn(late), await userIdIn(early)], [null, null])
      t.not(await userIdIn(await signInAtFake(app, fake, 'sid-2')), null)
    })
  }

  t.test(`attack 225: with ${name}, a sign-in that waits for a second factor ends with its session there`, async t => {
    const world = await startLogoutWorld(t, await keep(t), { secondFactor: new SecondFactor({ issuer: 'Shop' }) })
    const { fake, app } = world
    const { secret } = await enrolAt(t, await signInAtFake(app, fake, 'sid-0'))
    const waiting = new Browser(app)
    const waitAt = async (sid: string): Promise<void> => {
      const answer = await waiting.get(await comeBack(waiting, fake, sid))
      t.match([answer.statusCode, answer.body], [401, /second_factor_required/])
    }
    await waitAt('sid-1')
    await end(t, world, { sid: 'sid-1' })
    t.match((await waiting.post('/auth/local/second-factor', { code: nextCode(t, secret) })).json(), { code: 'invalid_state' })
    t.equal(await userIdIn(waiting), null)

    await waitAt('sid-2')
    t.equal((await waiting.post('/auth/local/second-factor', { code: nextCode(t, secret) })).statusCode, 200)
    await end(t, world, { sid: 'sid-2' })
    t.equal(await userIdIn(waiting), null, 'the session has it, too')
  })
}

t.test('attack 225: a logout between the checks and the write of a session ends it, and one before creates no user', async t => {
  const store = new MemoryAuthStore()
  const world = await startLogoutWorld(t, { store, sessions: undefined })
  const { fake, app } = world
  const { sessions } = store
  const insert = sessions.insert.bind(sessions)
  const browser = await signInAtFake(app, fake, 'sid-0')
  const callback = await comeBack(browser, fake, 'sid-1')
  sessions.insert = async (...given) => {
    sessions.insert = insert
    await end(t, world, { sid: 'sid-1' })
    return insert(...given)
  }
  t.equal((await browser.get(callback)).statusCode, 400)
  t.equal(await userIdIn(browser), null)

  fake.profile = { ...fake.profile, sub: 'new', email: 'new@example.com' }
  const registrations = eventsOf(t, 'registration')
  t.equal((await browser.get(await comeBack(browser, fake, 'sid-1'))).statusCode, 400)
  t.strictSame([registrations, await app.auth.findUser({ provider: 'fake', subject: 'new' })], [[], null])
})
