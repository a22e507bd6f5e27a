/** Attacks 79 to 82: sessions and tokens that outlive their end, and users who are blocked. */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import { Accounts } from '../../lib/accounts/accounts.js'
import type { SignIn } from '../../lib/index.js'
import { digestOf } from '../../lib/base/values.js'
import { userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { deferred } from '../helpers/deferred.js'
import { holdAnswers } from '../helpers/holding-store.js'
import { leaveFor, postLogin, signInAt } from '../helpers/own-provider.js'
import { SOME_SHARED_SESSIONS } from '../helpers/session-stores.js'
import { ADA, editRecord, rowsOf, sessionIdOf, startTwoApps, stored, openSession } from '../helpers/shared-apps.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'
import { SOME_STORES } from '../helpers/stores.js'
import { some } from '../helpers/thorough.js'

const ADA_AT_A = { subject: 'ada-at-a', email: ADA.email }
const ADA_AT_PROVING = { subject: 'ada-at-proving' }
const GUARDED = ['/private', '/anyone', '/refreshed', '/transfer'] as const

/** What ends all sessions of a user. */
const ENDINGS = {
  signOutEverywhere: async ({ auth }, userId) => auth.signOutEverywhere(userId),
  setPassword: async ({ auth }, userId) => auth.setPassword(userId, 'another password'),
  block: async ({ auth }, userId) => auth.block(userId)
} satisfies Record<string, (app: FastifyInstance, userId: string) => Promise<unknown>>

/** A user with a password and two identities. */
async function createAda ({ auth }: FastifyInstance): Promise<string> {
  const { userId } = await auth.createUser({ ...ADA, emailVerified: true })
  for (const [provider, person] of [['a', ADA_AT_A], ['proving', ADA_AT_PROVING]] as const) {
    const claims = { sub: person.subject }
    await new Accounts(auth.store).addLink(userId, { provider, subject: person.subject, claims, verifiedEmail: null })
  }
  return userId
}

async function logIn (app: FastifyInstance, password = ADA.password): Promise<Browser> {
  const browser = new Browser(app)
  const { statusCode } = await browser.post('/auth/local/login', { ...ADA, password })
  if (statusCode !== 200) throw new Error(`the login answered ${statusCode}`)
  return browser
}

/** The same session at another application, with a jar of its own. */
const at = (app: FastifyInstance, { cookies }: Browser): Browser => new Browser(app, cookies)

async function assertDead (t: Test, browser: Browser, what: string): Promise<void> {
  for (const url of GUARDED) t.equal((await at(browser.app, browser).get(url)).statusCode, 401, `${what}: ${url}`)
  const token = await at(browser.app, browser).post('/auth/local/token')
  t.equal(token.statusCode, 401, `${what}: the token route`)
  await at(browser.app, browser).get('/private')
  t.equal(await userIdIn(browser), null, `${what}: the guard has signed the user out`)
}

async function withToken (app: FastifyInstance, url: string, token: string): Promise<LightMyRequestResponse> {
  return app.inject({ url, headers: { authorization: `Bearer ${token}`, accept: 'application/json' } })
}

const SIGN_INS = {
  'a login': async browser => browser.post('/auth/local/login', ADA),
  'an external callback': async browser => signInAt(browser, 'a', ADA_AT_A)
} satisfies Record<string, (browser: Browser) => Promise<LightMyRequestResponse>>

for (const [kind, keep] of SOME_SHARED_SESSIONS) {
  t.test(`the rules hold with ${kind}`, async t => {
    for (const [number, [ending, end]] of Object.entries(ENDINGS).entries()) {
      for (const [way, signIn] of some(Object.entries(SIGN_INS), 2, number)) {
        t.test(`attack 79: ${way} that ${ending} overtakes writes a session that is dead at its first guard`, async t => {
          const kept = await keep(t)
          const held = holdAnswers(kept.store)
          const [one, other] = await startTwoApps(t, kept)
          const userId = await createAda(one)
          const browser = new Browser(one)

          held.holds = true
          const answer = signIn(browser)
          await held.read.promise
          await end(other, userId)
          held.goOn.resolve()
          t.ok((await answer).statusCode < 400, 'the answer is as ever')
          t.equal(await userIdIn(browser), userId, 'no guard has looked yet')

          await assertDead(t, browser, 'here')
          await assertDead(t, at(other, browser), 'at the other application')
        })

        t.test(`attack 79: ${way} that ${ending} overtakes in the hook onSignIn is dead at its first guard`, async t => {
          const [asked, goOn] = [deferred(), deferred()]
          const onSignIn = async ({ principal }: SignIn): Promise<void> => {
            if (principal.claims.email !== ADA.email) return
            asked.resolve()
            await goOn.promise
          }
          const [one, other] = await startTwoApps(t, { ...await keep(t), options: { onSignIn } })
          const userId = await createAda(one)
          const browser = new Browser(one)

          const answer = signIn(browser)
          await asked.promise
          await end(other, userId)
          goOn.resolve()
          await answer

          await assertDead(t, browser, 'here')
        })
      }

      t.test(`attack 80: after ${ending} no session, token or pending step of the user is accepted by any application`, async t => {
        const kept = await keep(t)
        const [one, other] = await startTwoApps(t, kept)
        const userId = await createAda(one)
        const heard: string[] = []
        one.auth.channel.on('revoke', userId => { heard.push(userId) })
        const browsers = await Promise.all([one, other, one, other, one].map(async app => logIn(app)))
        const tokens = await Promise.all(browsers.slice(0, 3).map(async browser => {
          return (await browser.post('/auth/local/token')).json().token as string
        }))
        const [linking, proving] = browsers as [Browser, Browser]
        const link = await leaveFor(linking, '/auth/a/login?link=true', { subject: 'another identity' })
        const proof = await leaveFor(proving, '/auth/proving/login?reauthenticate=true', ADA_AT_PROVING)
        for (const app of [one, other]) {
          for (const token of tokens) t.equal((await withToken(app, '/api', token)).statusCode, 200)
          for (const browser of browsers) t.equal((await at(app, browser).get('/private')).statusCode, 200)
        }

        await end(one, userId)

        t.strictSame(heard, [userId], 'one event')
        for (const [callback, browser] of [[link, linking], [proof, proving]] as const) {
          const answer = await at(other, browser).get(callback, { accept: 'application/json' })
          t.match(answer, { statusCode: 401 }, callback)
          t.equal(answer.json().code, 'unauthenticated')
        }
        t.equal(await one.auth.findUser({ provider: 'a', subject: 'another identity' }), null, 'no identity is linked')
        for (const app of [one, other]) {
          for (const token of tokens) {
            t.match(await withToken(app, '/api', token), { statusCode: 401, body: /invalid_token/ })
            t.equal((await new Browser(app).post('/auth/local/verify-token', { token })).statusCode, 401)
          }
          for (const browser of browsers) {
            t.equal((await new Browser(app, browser.cookies).get('/private')).statusCode, 401)
          }
        }
        for (const browser of browsers) t.equal(await stored(kept, sessionIdOf(browser)), null, 'nothing is left of it')
      })
    }

    for (const [url, body] of [['/end-others', {}], ['/change-password', { password: 'another password' }]] as const) {
      t.test(`attack 80: with except, ${url} leaves the session of the request alone, with a new id`, async t => {
        const kept = await keep(t)
        const [one, other] = await startTwoApps(t, kept)
        const userId = await createAda(one)
        const heard: string[] = []
        one.auth.channel.on('revoke', userId => { heard.push(userId) })
        const [own, second] = [await logIn(one), await logIn(other)]
        await own.post('/cart')
        const before = at(one, own)

        t.equal((await own.post(url, body)).statusCode, 200)

        t.not(sessionIdOf(own), sessionIdOf(before))
        t.equal(await stored(kept, sessionIdOf(before)), null)
        for (const app of [one, other]) {
          t.equal((await at(app, own).get('/private')).statusCode, 200)
          t.equal((await at(app, before).get('/private')).statusCode, 401)
          t.equal((await at(app, second).get('/private')).statusCode, 401)
        }
        t.equal((await own.get('/cart')).json().cart, 'apples', 'the content of the session is kept')
        t.equal(await userIdIn(own), userId)
        t.strictSame(heard, [userId])
        t.equal((await own.post('/end-others')).statusCode, 200, 'and once more')
        t.equal((await own.get('/private')).statusCode, 200)
      })
    }

    t.test('attack 80: each guard notices by itself that a session has ended, and so does the token route', async t => {
      const [one] = await startTwoApps(t, await keep(t))
      const userId = await createAda(one)
      const routes = [...GUARDED.map(url => ['GET', url] as const), ['POST', '/auth/local/token'] as const]
      const browsers = await Promise.all(routes.map(async () => logIn(one)))
      await one.auth.signOutEverywhere(userId)

      for (const [index, [method, url]] of routes.entries()) {
        const browser = browsers[index] ?? new Browser(one)
        t.equal(await userIdIn(browser), userId, 'the session is there')
        t.equal((await browser.send({ method, url })).statusCode, 401, url)
      }
    })

    t.test('attack 80: a session that had ended before is not kept by except', async t => {
      const [one] = await startTwoApps(t, await keep(t))
      const userId = await createAda(one)
      const old = await logIn(one)
      await one.auth.signOutEverywhere(userId)

      await old.post('/end-others')

      await assertDead(t, old, 'the old session')
    })

    t.test('attack 80: the session of another user is not changed by except', async t => {
      const [one] = await startTwoApps(t, await keep(t))
      const ada = await createAda(one)
      const { userId } = await one.auth.createUser({ email: 'grace@example.com' })
      const [grace, hers] = [new Browser(one), await logIn(one)]
      await grace.post(`/sign-in/${userId}`)
      const id = sessionIdOf(grace)

      t.equal((await grace.post('/end-others', { userId: ada })).statusCode, 200)

      t.equal(sessionIdOf(grace), id)
      t.equal((await grace.get('/private')).statusCode, 200)
      await assertDead(t, hers, 'the session of the user')
    })

    t.test('attack 81: sessions that a block ended stay dead when the user is unblocked', async t => {
      const [one, other] = await startTwoApps(t, await keep(t))
      const userId = await createAda(one)
      const [browser, token] = [await logIn(one), await logIn(other)]
      const { token: bearer } = (await token.post('/auth/local/token')).json()

      await one.auth.block(userId)
      await other.auth.unblock(userId)

      await assertDead(t, browser, 'here')
      await assertDead(t, at(other, token), 'at the other application')
      t.equal((await withToken(one, '/api', bearer)).statusCode, 401)
      t.equal((await (await logIn(other)).get('/private')).statusCode, 200, 'a new sign-in is good')
    })

    t.test('attack 82: a blocked user gets in by no method, and only a proof tells that they are blocked', async t => {
      const kept = await keep(t)
      const [one, other] = await startTwoApps(t, kept)
      const userId = await createAda(one)
      const earlier = await logIn(one)
      const { token } = (await earlier.post('/auth/local/token')).json()
      const link = await leaveFor(earlier, '/auth/a/login?link=true', { subject: 'another identity' })
      await one.auth.block(userId, { reason: 'a note of the application' })

      const refused: Array<[what: string, status: number, code: string, ask: (browser: Browser) => Promise<LightMyRequestResponse>]> = [
        ['the password', 403, 'blocked', async browser => browser.post('/auth/local/login', ADA)],
        ['a wrong password', 401, 'invalid', async browser => browser.post('/auth/local/login', { ...ADA, password: 'wrong password' })],
        ['a registration', 409, 'exists', async browser => browser.post('/auth/local/register', { ...ADA, password: 'another one' })],
        ['a provider', 403, 'blocked', async browser => signInAt(browser, 'a', ADA_AT_A)],
        ['app.auth.signIn', 403, 'blocked', async browser => browser.post(`/sign-in/${userId}`)]
      ]
      for (const [what, status, code, ask] of refused) {
        const browser = new Browser(other)
        const answer = await ask(browser)
        t.strictSame([answer.statusCode, answer.json().code], [status, code], what)
        t.notMatch(answer.body, /a note of the application/)
        t.equal(answer.headers['set-cookie'], undefined, `${what}: no session`)
        t.equal(await userIdIn(browser), null)
      }

      const callback = await at(other, earlier).get(link, { accept: 'application/json' })
      t.equal(callback.json().code, 'unauthenticated', 'a linking that was started before')
      const start = await postLogin(at(other, earlier), '/auth/a/login?link=true')
      t.equal(start.json().code, 'unauthenticated', 'a linking that is started now')
      t.equal((await withToken(other, '/api', token)).statusCode, 401, 'a token')
      t.equal((await at(one, earlier).post('/auth/local/token')).statusCode, 401, 'the token route')
      t.equal((await at(one, earlier).post('/auth/local/reauthenticate', { password: ADA.password })).statusCode, 401)
      await assertDead(t, earlier, 'the session')
    })

    t.test('attack 82: an identity that a verified e-mail joins to a blocked user gets in neither', async t => {
      const [one] = await startTwoApps(t, await keep(t))
      const { userId } = await one.auth.createUser({ email: ADA.email, emailVerified: true })
      await one.auth.block(userId)
      const browser = new Browser(one)

      const answer = await signInAt(browser, 'proving', { subject: 'new', email: ADA.email })

      t.strictSame([answer.statusCode, answer.json().code], [403, 'blocked'])
      t.equal(await userIdIn(browser), null)
    })

    t.test('attack 82: a block that is over lets the user in again', async t => {
      const [one] = await startTwoApps(t, await keep(t))
      const userId = await createAda(one)
      await one.auth.block(userId, { until: new Date(Date.now() + 60_000) })
      t.equal((await new Browser(one).post('/auth/local/login', ADA)).statusCode, 403)

      advanceClock(t, 60_001)

      t.equal((await new Browser(one).post('/auth/local/login', ADA)).statusCode, 200)
    })

    for (const [kind, send] of [
      ['JSON', async (browser: Browser) => browser.post('/auth/logout', { everywhere: true })],
      ['a checked box', async (browser: Browser) => browser.submit('/auth/logout', { everywhere: 'on', next: '/bye' })],
      ['the local path', async (browser: Browser) => browser.post('/auth/local/revoke', { everywhere: true })]
    ] as const) {
      t.test(`attack 80: a user signs out everywhere by ${kind}`, async t => {
        const kept = await keep(t)
        const [one, other] = await startTwoApps(t, kept)
        const userId = await createAda(one)
        const heard: string[] = []
        one.auth.channel.on('revoke', userId => { heard.push(userId) })
        const [own, second] = [await logIn(one), await logIn(other)]
        const before = at(one, own)

        const answer = await send(own)

        t.strictSame([answer.statusCode, answer.headers.location], kind === 'a checked box' ? [303, '/bye'] : [204, undefined])
        t.equal(own.cookies.size, 0, 'the cookie is cleared')
        await assertDead(t, before, 'the own session')
        await assertDead(t, at(other, second), 'the other session')
        t.strictSame(heard, [userId])
        t.equal((await send(own)).statusCode, answer.statusCode, 'an anonymous session answers the same')
        t.equal((await send(before)).statusCode, answer.statusCode)
        t.strictSame(heard, [userId])
      })
    }

    t.test('attack 80: a session that has ended does not end those of a later sign-in', async t => {
      const [one] = await startTwoApps(t, await keep(t))
      const userId = await createAda(one)
      const old = await logIn(one)
      await one.auth.signOutEverywhere(userId)
      const present = await logIn(one)

      t.equal((await old.post('/auth/logout', { everywhere: true })).statusCode, 204)

      t.equal((await present.get('/private')).statusCode, 200)
    })

    t.test('signing out without everywhere leaves the other sessions alone', async t => {
      for (const everywhere of [undefined, false, '', 'off', 'false']) {
        const [one] = await startTwoApps(t, await keep(t))
        await createAda(one)
        const [own, other] = [await logIn(one), await logIn(one)]

        t.equal((await own.post('/auth/logout', { everywhere })).statusCode, 204)

        t.equal((await other.get('/private')).statusCode, 200, String(everywhere))
      }
    })
  })
}

for (const [what, generation, isAlive] of [
  ['a higher', 2, false], ['a lower', 0, false], ['a negative', -1, false], ['a string', '1', false],
  ['no', undefined, false], ['a null', null, false], ['its own', 1, true]
] as const) {
  t.test(`attack 81: a session that is edited to have ${what} generation is ${isAlive ? 'good' : 'dead'}`, async t => {
    const sessions = new SlowSessionStore()
    const [one] = await startTwoApps(t, { sessions })
    await one.auth.signOutEverywhere(await createAda(one))
    const browser = await logIn(one)
    await editRecord(sessions, browser, record => { record.generation = generation })

    if (isAlive) t.equal((await browser.get('/private')).statusCode, 200)
    else await assertDead(t, browser, 'the session')
  })
}

t.test('attack 81: a record without a generation is no session', async t => {
  const sessions = new SlowSessionStore()
  const [one] = await startTwoApps(t, { sessions })
  await createAda(one)
  const browser = await logIn(one)
  await editRecord(sessions, browser, record => { delete record.generation })

  t.equal((await browser.get('/private')).statusCode, 401)
})

for (const [kind, newStore] of Object.entries(SOME_STORES)) {
  for (const [generation, isAlive] of [[2, false], [0, false], [-1, false], [1, true]] as const) {
    t.test(`attack 81: a row that is edited to have generation ${generation} is ${isAlive ? 'good' : 'dead'}, on ${kind}`, async t => {
      const store = await newStore(t)
      const [one] = await startTwoApps(t, { store })
      await one.auth.signOutEverywhere(await createAda(one))
      const browser = await logIn(one)
      const idHash = digestOf(sessionIdOf(browser))
      const user = (await openSession(rowsOf(store), idHash))?.user
      if (user == null) throw new Error('there is no session')
      await rowsOf(store).update(idHash, { user: { ...user, generation } })

      if (isAlive) t.equal((await browser.get('/private')).statusCode, 200)
      else await assertDead(t, browser, 'the session')
    })
  }
}

for (const [kind, newStore] of Object.entries(SOME_STORES)) {
  t.test(`attack 81: each of many simultaneous ends counts once, on ${kind}`, async t => {
    const [one, other] = await startTwoApps(t, { store: await newStore(t) })
    const { userId } = await one.auth.createUser(ADA)
    const browser = await logIn(one)

    await Promise.all(Array.from({ length: 200 }, async (_, index) => {
      const { auth } = index % 2 === 0 ? one : other
      return auth.signOutEverywhere(userId)
    }))

    t.equal((await one.auth.findUser({ userId }))?.generation, 200)
    await assertDead(t, browser, 'the session')
    t.equal((await (await logIn(other)).get('/private')).statusCode, 200)
  })
}
