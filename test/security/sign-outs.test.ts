/** Attack 133: a sign-out beside a sign-in that finishes in a session without a user. */
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import type { AuthorizationResponse } from '../../lib/index.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { capabilitiesOf } from '../../lib/session/store.js'
import { SESSION_SECRET, localProvider, startApp, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { deferred } from '../helpers/deferred.js'
import { DATA_SECRET, enrolAt, nextCode } from '../helpers/factor-app.js'
import { OwnProvider, leaveFor } from '../helpers/own-provider.js'
import { SHARED_SESSIONS, type Kept } from '../helpers/session-stores.js'
import { ADA, GRACE } from '../helpers/shared-apps.js'

type Point = 'provider' | 'hook'

/** Holds one sign-in at a point, once it is told to. */
class Gate {
  holds: Point | null = null
  #arrived = deferred()
  #goOn = deferred()

  async pass (point: Point): Promise<void> {
    if (this.holds !== point) return
    this.holds = null
    this.#arrived.resolve()
    await this.#goOn.promise
  }

  /** Runs work while a request is held at a point, and returns what the request is answered. */
  async during<T> (point: Point, request: () => Promise<T>, work: () => Promise<void>): Promise<T> {
    [this.holds, this.#arrived, this.#goOn] = [point, deferred(), deferred()]
    const answer = request()
    await Promise.race([this.#arrived.promise, answer.then(() => { throw new Error(`nothing was held at the ${point}`) })])
    await work()
    this.#goOn.resolve()
    return answer
  }
}

/** A sign-in that can be held: what a browser does before, and the request that finishes it. */
interface Finish {
  prepare: (browser: Browser) => Promise<() => ReturnType<Browser['post']>>
  points: Point[]
}

/** Starts two applications that share users and sessions, as two processes do. */
async function start (t: Test, { store, sessions }: Kept) {
  const gate = new Gate()
  class HeldProvider extends OwnProvider {
    override async authenticate (response: AuthorizationResponse) {
      await gate.pass('provider')
      return super.authenticate(response)
    }
  }
  const startOne = async (): Promise<FastifyInstance> => startApp(t, {
    baseUrl: 'http://app.example',
    providers: [new HeldProvider('a')],
    local: localProvider(),
    dataSecret: DATA_SECRET,
    secondFactor: new SecondFactor({ issuer: 'Shop' }),
    onSignIn: async () => gate.pass('hook'),
    store,
    rateLimit: false,
    session: { secret: SESSION_SECRET, store: sessions }
  })
  const [app, other] = [await startOne(), await startOne()]
  const owner = new Browser(app)
  await owner.post('/auth/local/register', GRACE)
  const { secret } = await enrolAt(t, owner)
  await new Browser(app).post('/auth/local/register', ADA)

  const visit = async (browser: Browser) => leaveFor(browser, '/auth/a/login', { subject: 'lovelace', email: 'lovelace@example.com' })
  const awaitCode = async (browser: Browser) => {
    t.equal((await browser.post('/auth/local/login', GRACE)).json().code, 'second_factor_required')
    return async () => browser.post('/auth/local/second-factor', { code: nextCode(t, secret) })
  }
  const finishes: Record<string, Finish> = {
    'by password': {
      async prepare (browser) {
        await visit(browser)
        return async () => browser.post('/auth/local/login', ADA)
      },
      points: ['hook']
    },
    'by password and code': { prepare: awaitCode, points: ['hook'] },
    'by password and code, in the session of a visitor': {
      async prepare (browser) {
        await visit(browser)
        return awaitCode(browser)
      },
      points: ['hook']
    },
    'by the callback of a provider': {
      async prepare (browser) {
        const callback = await visit(browser)
        return async () => browser.get(callback, { accept: 'application/json' })
      },
      points: ['provider', 'hook']
    }
  }
  return { app, other, gate, finishes, visit }
}

/** Signs out with these cookies. */
async function signOut (app: FastifyInstance, cookies: ReadonlyMap<string, string>): Promise<void> {
  const { statusCode, body } = await new Browser(app, cookies).post('/auth/logout')
  if (statusCode !== 204) throw new Error(`the sign-out answered ${statusCode} ${body}`)
}

for (const [kind, keep] of SHARED_SESSIONS) {
  t.test(`a visitor signs out, with ${kind}`, async t => {
    const kept = await keep(t)
    const { app, other, gate, finishes, visit } = await start(t, kept)

    for (const [how, { prepare, points }] of Object.entries(finishes)) {
      for (const point of points) {
        t.test(`attack 133: a sign-in ${how} that is held at the ${point} leaves the browser signed out`, async t => {
          const browser = new Browser(app)
          const finish = await prepare(browser)
          const before = new Browser(app, browser.cookies)

          const answer = await gate.during(point, finish, async () => { await signOut(other, before.cookies) })

          t.strictSame([answer.statusCode, answer.json().code], [400, 'invalid_state'])
          for (const one of [browser, before]) t.equal(await userIdIn(one), null)
          t.equal(await kept.store.findUser({ email: 'lovelace@example.com' }), null, 'the user who was created is deleted')
          for (const one of [browser, before]) t.equal((await one.post('/auth/local/login', ADA)).statusCode, 200, 'a later sign-in succeeds')
        })
      }
    }

    t.test('attack 133: the cookie from before a sign-in ends nothing once the sign-in was answered', async t => {
      const browser = new Browser(app)
      await visit(browser)
      const { cookies } = new Browser(app, browser.cookies)
      t.equal((await browser.post('/auth/local/login', ADA)).statusCode, 200)

      await signOut(app, cookies)

      t.ok(await userIdIn(browser))
    })

    t.test('attack 133: a sign-out by a cookie that this application has not signed writes nothing', async t => {
      const written: unknown[] = []
      const { sessions } = capabilitiesOf(kept.store)
      if (sessions !== null) t.intercept(sessions, 'end', { value: async (...call: unknown[]) => { written.push(call) } })
      const browser = new Browser(app)
      await visit(browser)
      const forged = new Map(Array.from(browser.cookies, ([name, value]) => [name, value.replace(/.$/, last => last === 'A' ? 'B' : 'A')]))

      for (const cookies of [new Map<string, string>(), forged]) await signOut(app, cookies)

      t.strictSame(written, [])
    })
  })
}
