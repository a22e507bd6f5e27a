/** Attack 84: sessions that outlive what their users asked for. */
import fastifySession from '@fastify/session'
import SqliteDatabase from 'better-sqlite3'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import { MemoryAuthStore, type SessionOptions, SqlAuthStore } from '../../lib/index.js'
import { digestOf } from '../../lib/base/values.js'
import { SESSION_SECRET, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { leaveFor } from '../helpers/own-provider.js'
import type { Kept } from '../helpers/session-stores.js'
import { ADA, editRecord, sessionIdOf, startTwoApps, openSession } from '../helpers/shared-apps.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'
import { STORES } from '../helpers/stores.js'
import { isThorough } from '../helpers/thorough.js'

const HOUR = 60 * 60 * 1000
const DAY = 24 * HOUR
const DAYS = 30

const KEPT: Readonly<Record<string, (t: Test) => Promise<Kept>>> = {
  'sessions in memory': async () => ({ store: new MemoryAuthStore(), sessions: undefined }),
  'sessions in SQLite': async t => ({ store: await STORES.SQLite(t), sessions: undefined }),
  ...(isThorough && { 'sessions in Postgres': async (t: Test) => ({ store: await STORES.Postgres(t), sessions: undefined }) }),
  'a session store that serialises': async () => ({ store: new MemoryAuthStore(), sessions: new SlowSessionStore() }),
  'a session store that hands out live objects': async () =>
    ({ store: new MemoryAuthStore(), sessions: new fastifySession.MemoryStore() })
}

/** Sessions that slide without the choice of the user, which is the harder case. */
async function start (t: Test, { store, sessions }: Kept, given: SessionOptions = {}): Promise<FastifyInstance> {
  const session = { secret: SESSION_SECRET, store: sessions, rolling: true, remember: { days: DAYS }, ...given }
  const [app] = await startTwoApps(t, { store, options: { session } })
  await app.auth.createUser({ ...ADA, emailVerified: true })
  return app
}

async function logIn (app: FastifyInstance, remember: boolean): Promise<{ browser: Browser, end: Date | null }> {
  const browser = new Browser(app)
  const answer = await browser.submit('/auth/local/login', { ...ADA, ...(remember && { remember: 'on' }) })
  if (answer.statusCode !== 303) throw new Error(`the login answered ${answer.statusCode}`)
  return { browser, end: cookieEnd(answer) }
}

/** When the browser forgets the only cookie of an answer, besides that of a start; null for when it is closed. */
function cookieEnd ({ cookies }: LightMyRequestResponse): Date | null {
  const [cookie, ...others] = cookies.filter(({ name }) => !name.includes('svc_start_'))
  if (cookie === undefined || others.length > 0) throw new Error(`there are ${cookies.length} cookies`)
  if (cookie.maxAge !== undefined) throw new Error('there is a Max-Age')
  return cookie.expires ?? null
}

for (const [name, keep] of Object.entries(KEPT)) {
  t.test(`the rules hold with ${name}`, async t => {
    t.test('attack 84: a session that is not remembered ends after a day, although a browser restores its cookie', async t => {
      const app = await start(t, await keep(t))
      const { browser, end } = await logIn(app, false)
      t.equal(end, null, 'the browser forgets the cookie when it is closed')
      await browser.post('/cart')

      advanceClock(t, 23 * HOUR)
      const visit = await browser.get('/private')
      t.equal(visit.statusCode, 200, 'within the day')
      t.equal(cookieEnd(visit), null, 'a visit gives the cookie no lifetime')
      advanceClock(t, 2 * HOUR)

      t.equal((await browser.get('/private')).statusCode, 401, 'a visit does not move the end')
      t.equal(await userIdIn(browser), null)
      t.strictSame((await browser.get('/cart')).json(), { cart: null }, 'what the application kept is gone too')
    })

    t.test('attack 84: a remembered session ends after its days, however often the user visits', async t => {
      const app = await start(t, await keep(t))
      const { browser, end } = await logIn(app, true)
      t.ok(Math.abs(Number(end) - Date.now() - DAYS * DAY) < 10_000, 'the browser keeps the cookie for the days')

      for (const days of [8, 21.9]) {
        advanceClock(t, days * DAY)
        const visit = await browser.get('/private')
        t.equal(visit.statusCode, 200, 'within the days')
        t.strictSame(cookieEnd(visit), end, 'a visit does not move the end of the cookie')
      }
      advanceClock(t, 0.2 * DAY)

      t.equal((await browser.get('/private')).statusCode, 401)
    })

    t.test('attack 84: a new password and a reauthentication move neither the end of a session nor that of its cookie', async t => {
      const app = await start(t, await keep(t))
      const [forgotten, remembered] = await Promise.all([logIn(app, false), logIn(app, true)])

      advanceClock(t, 12 * HOUR)
      for (const { browser, end } of [forgotten, remembered]) {
        const id = sessionIdOf(browser)
        const proof = await browser.post('/auth/local/reauthenticate', { password: ADA.password })
        t.not(sessionIdOf(browser), id, 'the session has a new id')
        t.strictSame(cookieEnd(proof), end, 'a reauthentication')
      }
      const change = await forgotten.browser.post('/change-password', { password: ADA.password })
      t.equal(cookieEnd(change), null, 'a new password')
      t.equal((await forgotten.browser.get('/private')).statusCode, 200)
      advanceClock(t, 13 * HOUR)

      t.equal((await forgotten.browser.get('/private')).statusCode, 401)
    })

    for (const [cookie, what] of [[undefined, 'seven days'], [{ maxAge: null }, 'no lifetime of its cookie']] as const) {
      t.test(`attack 162: a new id each day does not move the end of a session with ${what}`, async t => {
        const app = await start(t, await keep(t), { remember: undefined, rolling: false, cookie })
        const { browser, end } = await logIn(app, false)

        for (let day = 1; day <= 6; day++) {
          advanceClock(t, DAY)
          const id = sessionIdOf(browser)
          const url = day % 2 === 0 ? '/end-others' : '/auth/local/reauthenticate'
          const answer = await browser.post(url, { password: ADA.password })
          t.ok(answer.statusCode < 300, answer.body)
          t.not(sessionIdOf(browser), id, 'the session has a new id')
          t.strictSame(cookieEnd(answer), end)
          // What the application writes does not move it either.
          await browser.post('/cart')
        }
        t.equal((await browser.get('/private')).statusCode, 200)
        advanceClock(t, DAY + HOUR)

        t.equal((await browser.get('/private')).statusCode, 401)
        t.strictSame((await browser.get('/cart')).json(), { cart: null })
      })
    }

    t.test('a sign-in in a session begins another seven days, whatever the application writes beside it', async t => {
      const app = await start(t, await keep(t), { remember: undefined, rolling: false })
      const { browser } = await logIn(app, false)
      const user = await app.auth.findUser({ email: ADA.email })
      advanceClock(t, 6 * DAY)

      const answer = await browser.post(`/sign-in-alone/${user?.userId}`)

      t.ok(Number(cookieEnd(answer)) > Date.now() + 6.9 * DAY)
      advanceClock(t, 6 * DAY)
      t.equal((await browser.get('/private')).statusCode, 200)
    })

    t.test('attack 84: a lifetime that the application gives the cookie does not move the end', async t => {
      const app = await start(t, await keep(t), { cookie: { maxAge: 90 * DAY } })
      const { browser } = await logIn(app, false)

      await browser.post('/long-cookie')
      advanceClock(t, 25 * HOUR)

      t.equal((await browser.get('/private')).statusCode, 401)
    })

    t.test('a request that signs in and ends all other sessions leaves the cookie as the user chose', async t => {
      const app = await start(t, await keep(t))
      const user = await app.auth.findUser({ email: ADA.email })

      const answer = await new Browser(app).post(`/sign-in-alone/${user?.userId}`)

      t.equal(cookieEnd(answer), null)
    })

    t.test('a user who signs in again in a session chooses again', async t => {
      const app = await start(t, await keep(t))
      const { browser } = await logIn(app, false)

      const again = await browser.post('/auth/local/login', { ...ADA, remember: true })
      t.ok(Number(cookieEnd(again)) > Date.now() + 29 * DAY)
      const oneMore = await browser.post('/auth/local/login', { ...ADA, remember: false })
      t.equal(cookieEnd(oneMore), null)
    })
  })
}

t.test('attack 84: a session whose end is not a number in the store has no user', async t => {
  const sessions = new SlowSessionStore()
  const app = await start(t, { store: new MemoryAuthStore(), sessions })
  for (const until of [null, 'tomorrow', 0]) {
    const { browser } = await logIn(app, false)
    await editRecord(sessions, browser, record => { record.until = until })
    t.equal((await browser.get('/private')).statusCode, 401, String(until))
  }
})

t.test('the choice survives the way to a provider, and a session that only a sign-in was pending in', async t => {
  for (const [name, keep] of Object.entries(KEPT)) {
    const app = await start(t, await keep(t))
    for (const [query, isRemembered] of [['', false], ['?remember=on', true], ['?remember=false', false]] as const) {
      const browser = new Browser(app)
      const callback = await leaveFor(browser, `/auth/a/login${query}`, { subject: 'grace' })
      const end = cookieEnd(await browser.get(callback.replace(query, '')))
      t.equal(end !== null, isRemembered, `${name}: ${query}`)
      t.type(await userIdIn(browser), 'string')
    }
  }
})

t.test('visits of a session that is not remembered write nothing', async t => {
  const database = new SqliteDatabase(':memory:')
  t.teardown(() => database.close())
  const app = await start(t, { store: new SqlAuthStore(database), sessions: undefined })
  const { browser } = await logIn(app, false)
  const changes = () => database.prepare('SELECT total_changes()').pluck().get()
  const before = changes()

  for (let visit = 0; visit < 3; visit++) await browser.get('/private')

  t.equal(changes(), before)
})

t.test('without the option the field is ignored, and the cookie is as configured', async t => {
  const store = new MemoryAuthStore()
  const app = await start(t, { store, sessions: undefined }, { remember: undefined, rolling: false })
  const [forgotten, remembered] = await Promise.all([logIn(app, false), logIn(app, true)])

  for (const { browser, end } of [forgotten, remembered]) {
    t.ok(Math.abs(Number(end) - Date.now() - 7 * DAY) < 10_000)
    const session = await openSession(store.sessions, digestOf(sessionIdOf(browser)))
    t.strictSame(Object.keys(session?.user?.proofs ?? {}).sort(), ['at', 'methods'])
  }
})
