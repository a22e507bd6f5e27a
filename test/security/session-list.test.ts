/** Attack 85: the sessions of other users, and ids that are not of the list. */
import { createHash } from 'node:crypto'
import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { type AuthStore, MemoryAuthStore, type SessionOptions, type UserSession } from '../../lib/index.js'
import { digestOf } from '../../lib/base/values.js'
import { SESSION_SECRET, localProvider, startApp, userIdIn } from '../helpers/app.js'
import { eventsOf } from '../helpers/audit-events.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { ADA, GRACE, sessionIdOf } from '../helpers/shared-apps.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'
import { isSoon } from '../helpers/soon.js'
import { STORES } from '../helpers/stores.js'
import { isThorough } from '../helpers/thorough.js'

const END = '/auth/local/sessions/end'
const MINUTE = 60 * 1000

/** The stores that keep sessions. */
const KEPT = isThorough ? STORES : { memory: STORES.memory, SQLite: STORES.SQLite }

async function start (t: Test, store: AuthStore, session: SessionOptions = {}): Promise<FastifyInstance> {
  const app = await startApp(t, {
    local: localProvider(),
    store,
    rateLimit: false,
    session: { secret: SESSION_SECRET, ...session }
  }, {}, app => {
    app.get('/private', { preHandler: app.auth.requireUser }, async () => 'private')
    app.get('/sessions', async request => app.auth.sessions(app.auth.user(request).userId, { current: request }))
    app.get('/left', async request => {
      const { userId } = app.auth.user(request)
      await request.session.destroy()
      return app.auth.sessions(userId, { current: request })
    })
  })
  await app.auth.createUser(ADA)
  await app.auth.createUser(GRACE)
  return app
}

async function logIn (app: FastifyInstance, user = ADA, agent = 'a browser'): Promise<Browser> {
  const browser = new Browser(app)
  const { statusCode } = await browser.post('/auth/local/login', user, { 'user-agent': agent })
  if (statusCode !== 200) throw new Error(`the login answered ${statusCode}`)
  return browser
}

async function idOf ({ auth }: FastifyInstance, email: string): Promise<string> {
  const user = await auth.findUser({ email })
  if (user === null) throw new Error(`no user has ${email}`)
  return user.userId
}

/** Counts what the channel announces of a user; it may announce users of an earlier test on the database. */
async function announcedOf (app: FastifyInstance, email: string): Promise<{ count: number }> {
  const [announced, user] = [{ count: 0 }, await idOf(app, email)]
  app.auth.channel.on('revoke', userId => { if (userId === user) announced.count++ })
  return announced
}

/** The id by which the list names the session of a browser. */
async function listedAs (browser: Browser): Promise<string> {
  const sessions: UserSession[] = (await browser.get('/sessions')).json()
  const present = sessions.find(({ current }) => current)
  if (present === undefined) throw new Error('the session is not in the list')
  return present.id
}

for (const [kind, open] of Object.entries(KEPT)) {
  t.test(`the list of sessions with ${kind}`, async t => {
    t.test('has each open session with its browser and its proofs, and the last visit', async t => {
      const app = await start(t, await open(t))
      const before = Date.now()
      const [phone, desk] = [await logIn(app, ADA, 'a phone'), await logIn(app, ADA, 'x'.repeat(300))]
      await logIn(app, GRACE)
      advanceClock(t, 24 * 60 * MINUTE)
      await phone.get('/private')
      await desk.post('/auth/local/reauthenticate', { password: ADA.password }, { 'user-agent': 'a desk' })

      const userId = await idOf(app, ADA.email)
      // A visit is noted in the background.
      t.ok(await isSoon(async () => {
        return (await app.auth.sessions(userId)).every(({ lastSeenAt }) => lastSeenAt.getTime() >= before + 24 * 60 * MINUTE)
      }))
      const listed = await app.auth.sessions(userId)

      t.strictSame(listed.map(({ userAgent, current }) => [userAgent, current]).sort(), [['a desk', false], ['a phone', false]])
      for (const { createdAt, lastSeenAt, methods } of listed) {
        t.ok(createdAt instanceof Date && lastSeenAt instanceof Date && createdAt.getTime() >= before)
        t.match(methods, [{ method: 'password', at: Date }])
      }
      const present: UserSession[] = (await phone.get('/sessions')).json()
      t.strictSame(present.filter(({ current }) => current).map(({ userAgent }) => userAgent), ['a phone'])
      t.equal((await phone.get('/left')).json().some(({ current }: UserSession) => current), false, 'a request without a session')
      t.strictSame((await app.auth.sessions(userId)).map(({ userAgent }) => userAgent), ['a desk'])
    })

    t.test('attack 85: neither the id of a session nor a hash of it is anywhere in the list', async t => {
      const app = await start(t, await open(t))
      const browsers = [await logIn(app), await logIn(app)]
      for (const browser of browsers) await browser.post('/auth/local/reauthenticate', { password: ADA.password })

      const text = JSON.stringify(await app.auth.sessions(await idOf(app, ADA.email)))

      for (const browser of browsers) {
        const id = sessionIdOf(browser)
        const [signed = ''] = browser.cookies.values()
        const hashes = (['hex', 'base64', 'base64url'] as const).map(encoding => createHash('sha256').update(id).digest(encoding))
        for (const secret of [id, signed, digestOf(id), ...hashes]) t.notOk(text.includes(secret))
        const listed = await listedAs(browser)
        t.ok(text.includes(listed))
        const thief = new Browser(app, new Map([['svc_session', signed.replace(id, listed)]]))
        t.equal(await userIdIn(thief), null, 'the id of the list is no cookie')
      }
    })

    t.test('attack 85: a user ends their own sessions alone, and unknown ids are answered like those of others', async t => {
      const app = await start(t, await open(t))
      const revoked = await announcedOf(app, ADA.email)
      const [ada, other, grace] = [await logIn(app), await logIn(app), await logIn(app, GRACE)]
      const [own, foreign] = [await listedAs(other), await listedAs(grace)]
      const hashed = digestOf(sessionIdOf(other))

      const answers = await Promise.all([foreign, hashed, sessionIdOf(other), 'A'.repeat(32)].map(id => ada.post(END, { id })))

      for (const answer of answers) t.strictSame([answer.statusCode, answer.body], [404, answers[0]?.body])
      t.equal(answers[0]?.json().code, 'not_found')
      t.strictSame([await userIdIn(grace), await userIdIn(other)].map(id => typeof id), ['string', 'string'])
      t.equal(revoked.count, 0)

      t.strictSame([(await ada.post(END, { id: own })).statusCode, (await ada.post(END, { id: own })).statusCode], [204, 404])
      t.equal((await other.get('/private')).statusCode, 401, 'the session has ended')
      t.strictSame([await userIdIn(ada), await userIdIn(grace)], [await idOf(app, ADA.email), await idOf(app, GRACE.email)])
      t.equal(revoked.count, 1)
    })

    t.test('attack 85: an id of another form is refused before it is looked for', async t => {
      const app = await start(t, await open(t))
      const [ada, other] = [await logIn(app), await logIn(app)]
      const id = await listedAs(other)

      for (const given of [[id], { id }, '*', '%', '', `${id}x`, `${id.slice(1)}*`, 7, null, undefined, 'A'.repeat(1_000_000)]) {
        t.match((await ada.post(END, { id: given })).json(), { statusCode: 400, code: 'invalid_request' }, String(given).slice(0, 40))
      }
      t.equal((await ada.submit(`${END}?id=${id}`, {})).statusCode, 400, 'the query is not read')
      t.type(await userIdIn(other), 'string')
    })

    t.test('the present session ends as by a sign-out', async t => {
      const app = await start(t, await open(t))
      const revoked = await announcedOf(app, ADA.email)
      const ada = await logIn(app)
      const stolen = new Browser(app, ada.cookies)

      const answer = await ada.submit(END, { id: await listedAs(ada), next: '/bye' })

      t.strictSame([answer.statusCode, answer.headers.location], [303, '/bye'])
      t.match(answer.headers['set-cookie'], /^svc_session=; Max-Age=0; Path=\/; /)
      t.equal(await userIdIn(stolen), null)
      t.equal(revoked.count, 1)
    })

    t.test('a session that signed in too long ago ends no other one, and the answer says how to prove it', async t => {
      const app = await start(t, await open(t))
      const [ada, other] = [await logIn(app), await logIn(app)]
      const id = await listedAs(other)
      advanceClock(t, 11 * MINUTE)

      const refused = await ada.post(END, { id })
      t.strictSame([refused.statusCode, refused.json().code, refused.json().methods], [403, 'reauthenticate', ['password']])
      const page = await ada.submit(END, { id, error_next: '/devices' })
      t.strictSame([page.statusCode, page.headers.location], [303, '/devices?error=reauthenticate'])
      t.type(await userIdIn(other), 'string')

      await ada.post('/auth/local/reauthenticate', { password: ADA.password })
      t.equal((await ada.post(END, { id })).statusCode, 204)
      t.equal(await userIdIn(other), null)
    })

    t.test('no other origin and no visitor ends a session, and nor does one that has ended', async t => {
      const app = await start(t, await open(t))
      const [ada, other] = [await logIn(app), await logIn(app)]
      const id = await listedAs(other)

      t.equal((await ada.post(END, { id }, { origin: 'https://evil.example' })).json().code, 'cross_origin')
      t.equal((await new Browser(app).post(END, { id })).json().code, 'unauthenticated')
      await app.auth.signOutEverywhere(await idOf(app, ADA.email))
      t.equal((await ada.post(END, { id })).json().code, 'unauthenticated')
      t.strictSame(await app.auth.sessions(await idOf(app, ADA.email)), [], 'sessions of an earlier generation have ended')
    })

    t.test('the application ends a session by its id, of the user that it names alone', async t => {
      const app = await start(t, await open(t))
      const [ends, revokes] = [eventsOf(t, 'session-end'), eventsOf(t, 'revoke')]
      const [ada, userId, grace] = [await logIn(app), await idOf(app, ADA.email), await idOf(app, GRACE.email)]
      const id = await listedAs(ada)

      t.equal(await app.auth.endSession(grace, id), false)
      t.type(await userIdIn(ada), 'string')
      t.equal(await app.auth.endSession(userId, id), true)
      t.equal(await app.auth.endSession(userId, id), false)

      t.equal(await userIdIn(ada), null)
      t.strictSame([ends, revokes], [[{ userId }], [{ userId }]])
    })

    t.test('attack 85: a deleted user has no list, and their sessions are not ended once more', async t => {
      const app = await start(t, await open(t))
      const ada = await logIn(app)
      const [userId, id] = [await idOf(app, ADA.email), await listedAs(ada)]
      await app.auth.deleteUser(userId)

      for (const unknown of [userId, '*', 'ada']) {
        await t.rejects(app.auth.sessions(unknown), { code: 'unknown_user' })
        await t.rejects(app.auth.endSession(unknown, id), { code: 'unknown_user' })
      }
      await t.rejects(app.auth.sessions(userId, { present: true } as object), { code: 'invalid_options' })
    })
  })
}

t.test('sessions in a session store of the application are not listed, and signing out everywhere works', async t => {
  const app = await start(t, new MemoryAuthStore(), { store: new SlowSessionStore() })
  const ada = await logIn(app)
  const userId = await idOf(app, ADA.email)

  await t.rejects(app.auth.sessions(userId), { code: 'unsupported', statusCode: 501 })
  await t.rejects(app.auth.endSession(userId, 'A'.repeat(32)), { code: 'unsupported', statusCode: 501 })
  t.strictSame((await ada.post(END, { id: 'A'.repeat(32) })).json().code, 'unsupported')
  await app.auth.signOutEverywhere(userId)
  t.equal((await ada.get('/private')).statusCode, 401)
})

t.test('sessions of a plugin that the application registered are not listed', async t => {
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  await app.register(fastifyCookie)
  await app.register(fastifySession, { secret: SESSION_SECRET, cookie: { secure: false } })
  await app.register(authPlugin, { local: localProvider() })
  const { userId } = await app.auth.createUser(ADA)

  await t.rejects(app.auth.sessions(userId), { code: 'unsupported' })
})
