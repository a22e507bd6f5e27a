/** What a session has begun and not finished: whoever has its cookie goes on with it, once, for ten minutes. */
import fastifyCookie from '@fastify/cookie'
import fastifySession, { MemoryStore } from '@fastify/session'
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { MemoryAuthStore } from '../../lib/index.js'
import { attemptEntry, findEntry, keyOf, putEntry, takeEntry, startPendingSession } from '../../lib/session/lifecycle.js'
import { CHALLENGE, ENROLMENT, SECOND_STEP } from '../../lib/session/store.js'
import { SESSION_SECRET, localProvider, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { SHARED_SESSIONS, type Kept } from '../helpers/session-stores.js'
import { ADA, sessionIdOf, stored } from '../helpers/shared-apps.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'

const TEN_MINUTES_MS = 600_000

interface Place extends Kept {
  /** Whether the application has registered the session. */
  isOwn?: boolean
}

const PLACES: ReadonlyArray<readonly [name: string, keep: (t: Test) => Promise<Place>]> = [
  ...SHARED_SESSIONS,
  ['a session store in the process', async () => ({ store: new MemoryAuthStore(), sessions: new MemoryStore(new Map()) })],
  ['a session of the application', async () => ({ store: new MemoryAuthStore(), sessions: new SlowSessionStore(), isOwn: true })],
  ['a session of the application in the process', async () => ({ store: new MemoryAuthStore(), sessions: undefined, isOwn: true })]
]

interface Step {
  kind: string
  content?: Record<string, unknown>
  key?: string
  most?: number
}

async function start (t: Test, { store, sessions, isOwn = false }: Place): Promise<FastifyInstance> {
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  const session = { secret: SESSION_SECRET, ...(sessions !== undefined && { store: sessions }) }
  if (isOwn) {
    await app.register(fastifyCookie)
    const ofApplication = typeof sessions === 'object' ? { store: sessions } : {}
    await app.register(fastifySession, {
      secret: SESSION_SECRET, saveUninitialized: false, cookieName: 'svc_session', cookie: { secure: false, path: '/' }, ...ofApplication
    })
  }
  const plugin = { baseUrl: 'http://app.example', rateLimit: false, local: localProvider(), store } as const
  await app.register(authPlugin, { ...plugin, ...(!isOwn && { session }) })
  const step = (url: string, work: (request: FastifyRequest, step: Step) => Promise<unknown>) => {
    app.post<{ Body: Step }>(url, async request => ({ found: await work(request, request.body) ?? null, principal: request.principal }))
  }
  app.get('/me', async request => ({ principal: request.principal }))
  app.get('/cart', async ({ session }) => ({ cart: Reflect.get(session, 'cart') ?? null }))
  app.post('/cart', async ({ session }) => Object.assign(session, { cart: 'apples' }).cart)
  app.post('/more', async ({ session }) => Object.assign(session, { cart: 'pears' }).cart)
  app.post('/wish', async ({ session }) => Object.assign(session, { wish: new Date().toISOString() }).wish)
  app.post('/cart-and-wait', async request => {
    Object.assign(request.session, { cart: 'apples' })
    await startPendingSession(request, SECOND_STEP, {})
    return {}
  })
  step('/wait', async (request, { kind, content = {} }) => startPendingSession(request, kind, content))
  step('/put', async (request, { kind, content = {}, ...options }) => putEntry(request, kind, content, options))
  const named = ({ session }: FastifyRequest, { kind, key }: Step) =>
    key === undefined ? kind : keyOf(session.sessionId, kind, key)
  step('/find', async (request, entry) => findEntry(request, named(request, entry)))
  step('/attempt', async (request, entry) => attemptEntry(request, named(request, entry), entry.most ?? 5))
  step('/take', async (request, entry) => takeEntry(request, named(request, entry)))
  app.post('/sign-out-and-wait', async request => {
    await new Browser(app, new Map(Object.entries(request.cookies).map(([name, value = '']) => [name, value]))).post('/auth/logout')
    await startPendingSession(request, SECOND_STEP, {})
    return {}
  })
  return app
}

/** What a step resolves to; null for nothing. */
async function ask (browser: Browser, url: string, step: Step): Promise<unknown> {
  const answer = await browser.post(url, step)
  if (answer.statusCode !== 200) throw new Error(`${url} answered ${answer.statusCode} ${answer.body}`)
  return answer.json().found
}

const tenTimes = async <T>(work: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: 10 }, (_, index) => work(index)))

for (const [name, keep] of PLACES) {
  t.test(`steps that wait, with ${name}`, async t => {
    const place = await keep(t)
    const app = await start(t, place)
    await new Browser(app).post('/auth/local/register', ADA)

    t.test('of ten requests, one takes an entry', async t => {
      const browser = new Browser(app)
      const content = { userId: 'ada', methods: ['password'] }
      await ask(browser, '/wait', { kind: SECOND_STEP, content })

      t.strictSame(await ask(browser, '/find', { kind: SECOND_STEP }), content)
      const taken = await tenTimes(() => ask(new Browser(app, browser.cookies), '/take', { kind: SECOND_STEP }))

      t.strictSame(taken.filter(found => found !== null), [content])
      t.equal(await ask(browser, '/find', { kind: SECOND_STEP }), null)
      t.equal(await ask(browser, '/take', { kind: SECOND_STEP }), null)
    })

    t.test('attempts are counted up to the most, and anew for an entry that replaces another one', async t => {
      const browser = new Browser(app)
      await ask(browser, '/put', { kind: SECOND_STEP, content: { round: 1 } })

      const attempts = await tenTimes(() => ask(new Browser(app, browser.cookies), '/attempt', { kind: SECOND_STEP, most: 5 }))

      t.strictSame(attempts.filter(found => found !== null), Array(5).fill({ round: 1 }))
      t.equal(await ask(browser, '/attempt', { kind: SECOND_STEP, most: 5 }), null)
      t.strictSame(await ask(browser, '/find', { kind: SECOND_STEP }), { round: 1 })
      await ask(browser, '/put', { kind: SECOND_STEP, content: { round: 2 } })
      t.strictSame(await ask(browser, '/attempt', { kind: SECOND_STEP, most: 1 }), { round: 2 })
      t.equal(await ask(browser, '/attempt', { kind: SECOND_STEP, most: 1 }), null)
      const again = tenTimes(() => ask(new Browser(app, browser.cookies), '/attempt', { kind: SECOND_STEP, most: 99 }))
      await Promise.all([again, ask(browser, '/put', { kind: SECOND_STEP, content: { round: 3 } })])
      t.strictSame(await ask(browser, '/take', { kind: SECOND_STEP }), { round: 3 }, 'no attempt writes the old one over the new one')
    })

    t.test('a session has one entry of a kind, or as many with keys of their own as it may', async t => {
      const browser = new Browser(app)
      await ask(browser, '/put', { kind: ENROLMENT, content: { secret: 's' } })
      for (const key of ['a', 'b', 'b', 'c']) await ask(browser, '/put', { kind: CHALLENGE, key, most: 2, content: { key } })

      t.equal(await ask(browser, '/find', { kind: CHALLENGE }), null)
      t.equal(await ask(browser, '/find', { kind: CHALLENGE, key: 'a' }), null, 'the oldest is removed')
      t.strictSame(await ask(browser, '/attempt', { kind: CHALLENGE, key: 'b' }), { key: 'b' }, 'one that is written twice is one')
      t.strictSame(await ask(browser, '/take', { kind: CHALLENGE, key: 'c' }), { key: 'c' })
      t.strictSame(await ask(browser, '/take', { kind: CHALLENGE, key: 'b' }), { key: 'b' })
      t.strictSame(await ask(browser, '/take', { kind: ENROLMENT }), { secret: 's' }, 'another kind is not counted')
    })

    t.test('an entry of another session, or of one that a sign-in or a wait replaced, is not found', async t => {
      const [browser, other] = [new Browser(app), new Browser(app)]
      await other.post('/auth/local/login', ADA)
      const nothingIn = async (browser: Browser, what: string) => {
        for (const url of ['/find', '/attempt', '/take']) t.equal(await ask(browser, url, { kind: ENROLMENT }), null, `${url} ${what}`)
      }

      await ask(browser, '/put', { kind: ENROLMENT })
      await nothingIn(other, 'in another session')
      await ask(other, '/put', { kind: ENROLMENT, content: { is: 'of another' } })
      t.strictSame(await ask(browser, '/find', { kind: ENROLMENT }), {}, 'each session has its own')
      const visitor = new Browser(app, browser.cookies)
      await browser.post('/auth/local/login', ADA)
      await nothingIn(browser, 'after a sign-in')
      await nothingIn(visitor, 'with the cookie from before')
      await ask(browser, '/put', { kind: ENROLMENT })
      await ask(browser, '/wait', { kind: SECOND_STEP })
      await nothingIn(browser, 'after a wait')
      await ask(browser, '/put', { kind: ENROLMENT })
      const waiting = new Browser(app, browser.cookies)
      await browser.post('/auth/logout')
      await nothingIn(waiting, 'after a sign-out')
      t.equal(await ask(waiting, '/take', { kind: SECOND_STEP }), null)
    })

    t.test('an entry is not found after ten minutes', async t => {
      const browser = new Browser(app)
      await browser.post('/auth/local/login', ADA)
      await ask(browser, '/put', { kind: ENROLMENT, content: { secret: 's' } })

      advanceClock(t, TEN_MINUTES_MS - 1000)
      for (const url of ['/find', '/attempt']) t.ok(await ask(browser, url, { kind: ENROLMENT }), url)
      advanceClock(t, 1001)
      for (const url of ['/find', '/attempt', '/take']) t.equal(await ask(browser, url, { kind: ENROLMENT }), null, url)
      t.ok(await userIdIn(browser), 'the session goes on')
    })

    t.test('the session that waits is a new one, without a user, and the one before has ended', async t => {
      const before: Record<string, (browser: Browser) => Promise<unknown>> = {
        'no session': async () => {},
        'a visitor': async browser => ask(browser, '/put', { kind: ENROLMENT }),
        'an anonymous session': async browser => browser.post('/cart'),
        'a user': async browser => {
          await browser.post('/auth/local/login', ADA)
          await browser.post('/cart')
        },
        'another wait': async browser => ask(browser, '/wait', { kind: SECOND_STEP, content: { is: 'old' } })
      }

      for (const [what, prepare] of Object.entries(before)) {
        const browser = new Browser(app)
        await prepare(browser)
        const old = new Browser(app, browser.cookies)
        const answer = await browser.post('/wait', { kind: SECOND_STEP, content: { is: 'new' } })

        t.match(answer, { statusCode: 200, cookies: { length: 1 } }, `${what}: one cookie is set`)
        t.ok(Number(answer.cookies[0]?.expires) - Date.now() <= TEN_MINUTES_MS, what)
        t.equal(answer.json().principal, null)
        t.not(sessionIdOf(browser), sessionIdOf(old))
        t.strictSame(await ask(browser, '/find', { kind: SECOND_STEP }), { is: 'new' }, what)
        const cart = what === 'an anonymous session' ? 'apples' : null
        t.equal((await browser.get('/cart')).json().cart, cart, 'of a visitor the application\'s part is kept, of a user nothing')
        for (const one of [browser, old]) t.equal(await userIdIn(one), null, what)
        t.equal(await ask(old, '/find', { kind: SECOND_STEP }), null)
        if (old.cookies.size > 0 && place.sessions !== undefined) t.equal(await stored(place, sessionIdOf(old)), null)

        const waiting = new Browser(app, browser.cookies)
        t.equal((await browser.post('/auth/local/login', ADA)).statusCode, 200, 'the sign-in goes on from there')
        t.ok(await userIdIn(browser))
        t.equal((await browser.get('/cart')).json().cart, null)
        for (const one of [waiting, old]) t.equal(await userIdIn(one), null, what)
        t.equal(await ask(waiting, '/find', { kind: SECOND_STEP }), null)
      }
    })

    t.test('the session of a visitor lives as long as the step waits, and longer with something of the application', async t => {
      const browser = new Browser(app)
      const { cookies: [cookie] } = await browser.post('/wait', { kind: SECOND_STEP })
      if (place.isOwn !== true) t.ok(Number(cookie?.expires) - Date.now() <= TEN_MINUTES_MS)
      if (place.sessions === undefined && place.isOwn !== true) t.equal(await stored(place, sessionIdOf(browser)), null, 'it has no row')

      await browser.post('/cart')

      advanceClock(t, TEN_MINUTES_MS + 1000)
      t.equal((await browser.get('/cart')).json().cart, 'apples')
    })

    t.test('what a visitor\'s session passes on lives as long as the step waits, unless the application writes something else', async t => {
      const prepare: Record<string, (browser: Browser) => Promise<unknown>> = {
        'from an earlier request': async browser => {
          await browser.post('/cart')
          return browser.post('/wait', { kind: SECOND_STEP })
        },
        'from this request': async browser => browser.post('/cart-and-wait', {}),
        'from another wait': async browser => {
          await browser.post('/cart-and-wait', {})
          return browser.post('/wait', { kind: SECOND_STEP })
        }
      }
      const later = async (how: string, ...written: string[]): Promise<Browser> => {
        const browser = new Browser(app)
        t.match(await prepare[how]?.(browser), { statusCode: 200 })
        for (const url of written) await browser.post(url)
        t.equal((await browser.get('/cart')).json().cart, written.includes('/more') ? 'pears' : 'apples', how)
        advanceClock(t, TEN_MINUTES_MS + 1000)
        return browser
      }

      for (const how of Object.keys(prepare)) {
        for (const written of [[], ['/more']]) t.equal((await (await later(how, ...written)).get('/cart')).json().cart, null, `${how} ${written}`)
        const longer = await later(how, '/wish')
        for (let day = 1; day < 6; day++) {
          advanceClock(t, 24 * 60 * 60_000)
          await longer.post('/wish')
          t.equal((await longer.get('/cart')).json().cart, 'apples', how)
        }
        // Its session is rolling.
        if (place.isOwn === true) continue
        advanceClock(t, 2 * 24 * 60 * 60_000)
        t.equal((await longer.get('/cart')).json().cart, null, 'no longer than others')
      }
    })

    t.test('a user who signs out meanwhile does not wait', async t => {
      const browser = new Browser(app)
      await browser.post('/auth/local/login', ADA)

      const answer = await browser.post('/sign-out-and-wait', {})

      t.equal(answer.json().code, 'invalid_state')
      t.equal(await ask(browser, '/find', { kind: SECOND_STEP }), null)
    })
  })
}
