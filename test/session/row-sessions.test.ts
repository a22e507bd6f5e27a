/** What is written of sessions in rows, and when. */
import t, { type Test } from 'tap'
import { MemoryAuthStore, SqlAuthStore } from '../../lib/index.js'
import { RowSessions } from '../../lib/session/row-sessions.js'
import { digestOf } from '../../lib/base/values.js'
import type { SessionChange } from '../../lib/session/store.js'
import { SESSION_SECRET, localProvider, startApp, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { ADA, openSession, sessionIdOf } from '../helpers/shared-apps.js'

const DAY_MS = 86_400_000

/** A user who is signed in for ten days, and what is written about the session from now on. */
async function signIn (t: Test, { rolling }: { rolling: boolean }) {
  const store = new MemoryAuthStore()
  const session = { secret: SESSION_SECRET, rolling, cookie: { maxAge: 10 * DAY_MS } }
  const app = await startApp(t, { local: localProvider(), store, session }, {}, app => {
    app.get('/private', { preHandler: app.auth.requireUser }, async () => 'passed')
    app.post('/cart', async ({ session }) => Object.assign(session, { cart: 'apples' }).cart)
  })
  const browser = new Browser(app)
  await browser.post('/auth/local/register', ADA)
  const { sessions } = store
  const update = sessions.update.bind(sessions)
  const changes: SessionChange[] = []
  sessions.update = async (idHash, change) => {
    changes.push(change)
    return update(idHash, change)
  }
  const found = async () => openSession(sessions, digestOf(sessionIdOf(browser)))
  return { browser, changes, found }
}

t.test('a visit is noted once in a tenth of the lifetime, and nothing else is written', async t => {
  const { browser, changes, found } = await signIn(t, { rolling: false })
  const end = (await found())?.expiresAt
  for (let visit = 0; visit < 3; visit++) await browser.get('/private')
  t.strictSame(changes, [])

  advanceClock(t, DAY_MS + 60_000)
  for (let visit = 0; visit < 3; visit++) await browser.get('/private')

  t.match(changes, [{ seenAt: Number, user: undefined, data: undefined, expiresAt: undefined }])
  t.ok(Math.abs(Number((await found())?.seenAt) - Date.now()) < 60_000)
  t.equal((await found())?.expiresAt, end)
})

t.test('a sliding end moves once in a tenth of the lifetime', async t => {
  const { browser, changes, found } = await signIn(t, { rolling: true })
  for (let visit = 0; visit < 3; visit++) await browser.get('/private')
  t.strictSame(changes, [])

  for (let days = 2; days <= 20; days += 2) {
    advanceClock(t, 2 * DAY_MS)
    changes.length = 0
    for (let visit = 0; visit < 3; visit++) t.equal((await browser.get('/private')).statusCode, 200, `after ${days} days`)
    t.equal(changes.filter(({ expiresAt }) => expiresAt !== undefined).length, 1, 'written once')
    t.ok(Math.abs(Number((await found())?.expiresAt) - Date.now() - 10 * DAY_MS) < 60_000)
  }

  advanceClock(t, 10 * DAY_MS + 60_000)
  t.equal((await browser.get('/private')).statusCode, 401)
})

t.test('a save of the application writes its part alone', async t => {
  const { browser, changes, found } = await signIn(t, { rolling: false })

  await browser.post('/cart')

  t.match(changes, [{ data: { members: { cart: 'apples' } }, user: undefined }])
  t.match((await found())?.user, { provider: 'local' })
})

t.test('the plugin\'s part of a session that was read is not compared, since the application does not save it', async t => {
  const { browser } = await signIn(t, { rolling: false })
  const backend = new RowSessions(browser.app.auth.store as MemoryAuthStore, {})

  const session = await backend.read(sessionIdOf(browser))

  t.ok(session?.svcAuth?.principal.userId)
  t.strictSame(Object.keys(JSON.parse(JSON.stringify(session))), ['cookie'])
})

t.test('a sign-out ends the sessions of sign-ins that have replaced the session meanwhile, and tells once of it', async t => {
  const backend = new RowSessions(new MemoryAuthStore(), {})
  const session = {
    cookie: { originalMaxAge: null },
    svcAuth: {
      principal: { userId: '6b1e1c9e-0c51-4c3a-9f44-2f0e8a2f5d11', provider: 'local', claims: { sub: 'ada' } },
      generation: 0,
      at: 0,
      methods: []
    }
  }
  await backend.create('1', session)
  // A form that is sent twice.
  await backend.create('2', session, { replaced: '1' })
  await backend.create('3', session, { replaced: '1' })

  const { userId } = session.svcAuth.principal
  t.strictSame(await backend.signOut({ id: '1', userId }, false), { userId, isRecorded: false })

  for (const id of ['1', '2', '3']) t.equal(await backend.read(id), null, id)
  t.equal(await backend.signOut({ id: '1', userId }, false), null)
  await t.rejects(backend.create('4', session, { replaced: '1' }), { code: 'invalid_state' })
})

t.test('a guard relies for one second on what was read of the user with the session', async t => {
  const store = new SqlAuthStore(':memory:')
  let wait = 0
  const app = await startApp(t, { local: localProvider(), store }, {}, app => {
    const endSessions = async (request: { principal: { userId: string } | null }) => {
      await app.auth.signOutEverywhere(request.principal?.userId ?? '')
      advanceClock(t, wait)
    }
    app.get('/late', { preHandler: [endSessions, app.auth.requireUser] }, async () => 'passed')
  })
  const signedIn = async (): Promise<Browser> => {
    const browser = new Browser(app)
    if (await store.findUser({ email: ADA.email }) === null) await browser.post('/auth/local/register', ADA)
    else await browser.post('/auth/local/login', ADA)
    return browser
  }

  for (const [milliseconds, status] of [[60_000, 401], [-60_000, 401]] as const) {
    wait = milliseconds
    const browser = await signedIn()
    t.equal((await browser.get('/late')).statusCode, status, `${milliseconds} ms later`)
    t.equal(await userIdIn(browser), null)
  }
})
