import Sqlite from 'better-sqlite3'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { type AuthPluginOptions, AuthError, type Principal, SqlAuthStore } from '../../index.js'
import { localProvider, startApp } from '../../../test/helpers/app.js'
import { eventsOf } from '../../../test/helpers/audit-events.js'
import { Browser } from '../../../test/helpers/browser.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import { ALL_SESSIONS } from '../../../test/helpers/session-stores.js'

const MINUTE_MS = 60_000
const PASSWORD = 'correct horse'

const allow: NonNullable<AuthPluginOptions['impersonation']>['allow'] = ({ actor }) => actor.claims.role === 'support'

export function addImpersonation (app: FastifyInstance): void {
  const { auth } = app
  app.post<{ Body: { userId: string } }>('/support', { preHandler: auth.requireUser }, async request => {
    const { userId, ...options } = request.body
    return auth.impersonate(request, userId, { reason: 'ticket 4711', ...options })
  })
  app.post('/support/end', async request => auth.stopImpersonating(request))
  app.get('/guarded', { preHandler: auth.requireUser }, async request => ({
    principal: request.principal, methods: request.authentication?.methods.map(({ method }) => method)
  }))
  app.get('/recent', { preHandler: auth.requireRecent({ within: 600 }) }, async () => 'recent')
  app.get('/recent-anyway', { preHandler: auth.requireRecent({ within: 600, impersonated: true }) }, async () => 'recent')
  app.get('/refreshed', { preHandler: [auth.refresh, auth.requireUser] }, async request => request.principal)
  app.get('/devices', async request => auth.sessions(String(request.principal?.userId), { current: request }))
  app.get('/bar', async request => auth.impersonationBar(request, { next: '/customers' }))
}

interface Setting {
  app: FastifyInstance
  /** In which Sue of the support is signed in. */
  browser: Browser
  sue: string
  ada: string
  start: (fields?: object) => ReturnType<Browser['post']>
  shown: () => Promise<Principal | null>
}

/** An application with Sue of the support, and Ada, whom she may see. */
async function withSupport (t: Test, options: AuthPluginOptions = {}): Promise<Setting> {
  const app = await startApp(t, {
    local: localProvider(), rateLimit: false, impersonation: { allow }, ...options
  }, {}, addImpersonation)
  const [browser, other] = [new Browser(app), new Browser(app)]
  const register = async (browser: Browser, name: string): Promise<string> =>
    (await browser.post('/auth/local/register', { email: `${name}@example.com`, password: PASSWORD })).json().userId
  const [sue, ada] = [await register(browser, 'sue'), await register(other, 'ada')]
  await app.auth.grant(sue, { role: 'support' })
  await app.auth.grant(ada, { plan: 'gold' })
  return {
    app,
    browser,
    sue,
    ada,
    start: async fields => browser.post('/support', { userId: ada, ...fields }),
    shown: async () => (await browser.get('/guarded')).json().principal ?? null
  }
}

for (const [kept, keep] of ALL_SESSIONS) {
  t.test(`the support sees the application as a user and comes back, with ${kept}`, async t => {
    const { store, sessions } = await keep(t)
    const { browser, sue, ada, start, shown } = await withSupport(t, {
      store, session: { secret: 'the-session-secret-of-the-tests-32+', store: sessions }
    })
    const [started, ended] = [eventsOf(t, 'impersonation'), eventsOf(t, 'impersonation-end')]
    const before = new Browser(browser.app, browser.cookies)

    const answer = await start()

    t.equal(answer.statusCode, 200, answer.body)
    t.match(await shown(), { userId: ada, impersonator: sue, claims: { plan: 'gold' } })
    t.equal((await before.get('/guarded')).statusCode, 401, 'the session has a new id')
    t.match(started, [{ userId: ada, actor: sue, impersonating: ada, reason: 'ticket 4711' }])
    t.match((await browser.get('/auth/session')).json(), { principal: { userId: ada, impersonator: sue }, offers: { impersonating: true } })

    const during = new Browser(browser.app, browser.cookies)
    t.match((await browser.post('/auth/local/impersonation/end')).json(), { userId: sue, impersonator: undefined })
    t.match(await shown(), { userId: sue, impersonator: undefined })
    t.equal((await during.get('/guarded')).statusCode, 401, 'the session has a new id')
    t.match(ended, [{ userId: ada, actor: sue, impersonating: ada }])
  })

  t.test(`an impersonation ends with each side, and the request is nobody's, with ${kept}`, async t => {
    const { store, sessions } = await keep(t)
    const { app, browser, sue, ada, start, shown } = await withSupport(t, {
      store, session: { secret: 'the-session-secret-of-the-tests-32+', store: sessions }
    })
    await start()
    await app.auth.signOutEverywhere(ada)
    t.equal((await browser.get('/guarded')).statusCode, 401, 'attack 193: the other user is signed out everywhere')
    t.match(await shown(), { userId: sue, impersonator: undefined })

    await start()
    await app.auth.block(ada)
    t.equal((await browser.get('/guarded')).statusCode, 401, 'the other user is blocked')
    t.match(await shown(), { userId: sue, impersonator: undefined })
    t.match((await start()).json(), { statusCode: 403, code: 'blocked' })
    await app.auth.unblock(ada)

    await start()
    await app.auth.deleteUser(ada)
    t.equal((await browser.get('/guarded')).statusCode, 401, 'the other user is deleted')
    t.match((await start()).json(), { statusCode: 404, code: 'unknown_user' })

    const bob = (await new Browser(app).post('/auth/local/register', { email: 'bob@example.com', password: PASSWORD })).json().userId
    await start({ userId: bob })
    await app.auth.signOutEverywhere(sue)
    t.equal((await browser.get('/guarded')).statusCode, 401)
    t.equal(await shown(), null, 'all of it ends with the sessions of the one who has started it')
  })
}

for (const [kept, keep] of ALL_SESSIONS) {
  t.test(`attack 193: of several requests that meet the end of an impersonation one sets a cookie, with ${kept}`, async t => {
    const { store, sessions } = await keep(t)
    const { app, browser, sue, ada, start } = await withSupport(t, {
      store, session: { secret: 'the-session-secret-of-the-tests-32+', store: sessions }
    })
    const ended = eventsOf(t, 'impersonation-end')
    await start()
    await app.auth.signOutEverywhere(ada)
    const tabs = Array.from({ length: 5 }, () => new Browser(app, browser.cookies))

    const answers = await Promise.all(tabs.map(async (tab, index) =>
      index === 0 ? tab.post('/auth/local/impersonation/end') : tab.get('/guarded')))

    const given = tabs.filter((_, index) => answers[index]?.headers['set-cookie'] !== undefined)
    t.equal(given.length, 1)
    t.match((await given[0]?.get('/guarded'))?.json(), { principal: { userId: sue, impersonator: undefined } })
    t.equal(ended.length, 1)
    t.equal((await browser.get('/guarded')).statusCode, 401)
  })
}

for (const [kept, keep] of ALL_SESSIONS.filter(([name]) => !name.includes('serialises'))) {
  t.test(`attack 195: the list of a user's sessions has an impersonation, and its user can end it, with ${kept}`, async t => {
    const { store } = await keep(t)
    const { app, browser, sue, ada, start } = await withSupport(t, { store })
    const user = new Browser(app)
    await user.post('/auth/local/login', { email: 'ada@example.com', password: PASSWORD })
    await start()
    const seen: Array<{ current: boolean, impersonator: string | null }> = (await browser.get('/devices')).json()
    t.match(seen.filter(({ current }) => current), [{ impersonator: sue }])

    const [own, , showing] = await app.auth.sessions(ada)
    t.match([own, showing], [{ impersonator: null, impersonating: null }, { impersonator: sue, impersonating: null }])
    t.match(await app.auth.sessions(sue), [{ impersonator: null, impersonating: ada }])

    const ended = await user.post('/auth/local/sessions/end', { id: showing?.id })
    t.equal(ended.statusCode, 204)
    t.equal((await browser.get('/guarded')).statusCode, 401)
    t.equal((await browser.get('/me')).json().principal, null, 'the session of the one who looked has ended, too')
    t.equal((await app.auth.sessions(ada)).length, 2)
  })
}

t.test('attack 193: an impersonation ends after its time, and never lasts longer than an hour', async t => {
  const { browser, sue, ada, start, shown } = await withSupport(t)
  await start({ minutes: 10 })
  advanceClock(t, 9 * MINUTE_MS)
  t.match(await shown(), { userId: ada })
  advanceClock(t, MINUTE_MS)
  t.equal((await browser.get('/me')).json().principal, null, 'also without a guard')
  t.equal((await browser.post('/auth/local/token')).statusCode, 403)
  t.equal((await browser.get('/guarded')).statusCode, 401)
  t.match(await shown(), { userId: sue, impersonator: undefined })
  for (const minutes of [0, 61, 1.5, Infinity, '10']) t.equal((await start({ minutes })).statusCode, 400, String(minutes))
})

t.test('the time over, the session can be ended as ever', async t => {
  const { browser, sue, start } = await withSupport(t)
  await start()
  advanceClock(t, 60 * MINUTE_MS)
  t.match((await browser.post('/auth/local/impersonation/end')).json(), { userId: sue })
})

t.test('attack 192: the rule is asked again each minute with what the store has, and its refusal ends the impersonation', async t => {
  const asked: string[][] = []
  let isThrown = false
  const { app, browser, sue, ada, start, shown } = await withSupport(t, {
    impersonation: {
      allow: async asking => {
        if (isThrown) throw new Error('the rule is broken')
        asked.push([asking.actor.userId, asking.user.userId])
        return allow(asking)
      }
    }
  })
  await start()
  t.strictSame(asked, [[sue, ada], [ada, sue]])
  advanceClock(t, 59_000)
  await shown()
  t.equal(asked.length, 2, 'not within a minute')
  advanceClock(t, 2000)
  await shown()
  await shown()
  t.equal(asked.length, 4, 'once')

  advanceClock(t, MINUTE_MS)
  isThrown = true
  t.equal((await browser.get('/guarded')).statusCode, 500, 'a rule that fails lets nothing pass')
  isThrown = false
  t.match(await shown(), { userId: ada })
  advanceClock(t, MINUTE_MS)
  await app.auth.grant(ada, { role: 'support' })
  t.equal((await browser.get('/guarded')).statusCode, 401, 'the other user may see this one, too, by now')
  t.match(await shown(), { userId: sue, impersonator: undefined })
})

t.test('attack 192: nobody is shown to a user whom the rule does not allow it, in a chain or both ways', async t => {
  const { app, browser, sue, ada, start } = await withSupport(t)
  const other = new Browser(app)
  await other.post('/auth/local/login', { email: 'ada@example.com', password: PASSWORD })
  const refused = async (answer: ReturnType<Browser['post']>, code: string, message: string): Promise<void> => {
    t.equal((await answer).json().code, code, message)
  }
  await refused(other.post('/support', { userId: sue }), 'forbidden', 'the rule says no')
  await refused(start({ userId: sue }), 'forbidden', 'oneself')
  await refused(start({ userId: 'nobody' }), 'unknown_user', 'no user')
  await refused(start({ userId: '00000000-0000-4000-8000-000000000000' }), 'unknown_user', 'no user')
  await refused(new Browser(app).post('/support', { userId: ada }), 'unauthenticated', 'a visitor')
  for (const reason of [undefined, '', ' ', 7, 'x'.repeat(201)]) {
    if (reason !== undefined) await refused(start({ reason }), 'invalid_request', `the reason ${String(reason)}`)
  }
  await app.auth.grant(ada, { role: 'support' })
  await refused(start(), 'forbidden', 'one who may do the same')
  await app.auth.withdraw(ada, ['role'])
  t.equal((await start()).statusCode, 200)
  await refused(start(), 'impersonating', 'in a chain')
  await refused(start({ userId: sue }), 'impersonating', 'back')
  t.match((await browser.get('/me')).json().principal, { userId: ada, impersonator: sue })

  const without = await startApp(t, { local: localProvider() }, {}, addImpersonation)
  const visitor = new Browser(without)
  await visitor.post('/auth/local/register', { email: 'sue@example.com', password: PASSWORD })
  t.equal((await visitor.post('/support', { userId: ada })).statusCode, 500, 'a mistake of the programmer')
  t.equal((await visitor.post('/auth/local/impersonation/end')).statusCode, 404)
})

t.test('a rule that answers anything but true refuses', async t => {
  // @ts-expect-error a rule of JavaScript
  const { start } = await withSupport(t, { impersonation: { allow: ({ actor }) => actor.claims.role === 'support' && 'yes' } })
  t.equal((await start()).json().code, 'forbidden')
})

t.test('a sign-in ends an impersonation, and its session is that of the user who has signed in', async t => {
  const { browser, ada, start } = await withSupport(t)
  await start()
  const during = new Browser(browser.app, browser.cookies)
  t.equal((await browser.post('/auth/local/login', { email: 'ada@example.com', password: PASSWORD })).statusCode, 200)
  const { principal } = (await browser.get('/guarded')).json()
  t.match(principal, { userId: ada, impersonator: undefined })
  t.equal((await during.get('/guarded')).statusCode, 401)
})

t.test('attack 195: a step-up is refused, unless the guard says otherwise; then the proof of the one who looks counts', async t => {
  const { browser, start } = await withSupport(t)
  t.equal((await browser.get('/recent')).statusCode, 200)
  await start()
  t.match((await browser.get('/recent', { accept: 'text/html' })).json(), { statusCode: 403, code: 'impersonating' })
  t.equal((await browser.get('/recent-anyway')).statusCode, 200)
  t.strictSame((await browser.get('/guarded')).json().methods, ['password'])
  advanceClock(t, 11 * MINUTE_MS)
  t.match((await browser.get('/recent-anyway')).json(), { code: 'impersonating' })
})

t.test('a refresh shows the present claims of the user who is shown', async t => {
  const { app, browser, sue, ada, start } = await withSupport(t)
  await start()
  await app.auth.grant(ada, { plan: 'silver' })
  t.match((await browser.get('/me')).json().principal, { userId: ada, claims: { plan: 'gold' } })
  for (const path of ['/refreshed', '/refreshed']) {
    t.match((await browser.get(path)).json(), { userId: ada, impersonator: sue, claims: { plan: 'silver' } })
  }
  await app.auth.signOutEverywhere(ada)
  t.equal((await browser.get('/refreshed')).statusCode, 401)
  t.match((await browser.get('/refreshed')).json(), { userId: sue, impersonator: undefined })
})

t.test('the bar names the user and ends the impersonation; other sessions have none', async t => {
  const { app, browser, ada, start } = await withSupport(t)
  await app.auth.updateUser(ada, { name: '<b>Ada</b>' })
  t.equal((await browser.get('/bar')).body, '')
  await start()
  const { body } = await browser.get('/bar', { 'accept-language': 'de' })
  t.match(body, 'action="/auth/local/impersonation/end"')
  t.match(body, '<input type="hidden" name="next" value="/customers">')
  t.notMatch(body, '<b>')
  const answer = await browser.submit('/auth/local/impersonation/end', { next: '/customers' })
  t.strictSame([answer.statusCode, answer.headers.location], [303, '/customers'])
})

t.test('a guarded request reads the session, and in an impersonation the status of the user who is shown', async t => {
  const statements: string[] = []
  const database = new Sqlite(':memory:')
  t.teardown(() => database.close())
  const store = new SqlAuthStore(drizzle(database, { logger: { logQuery: statement => { statements.push(statement) } } }))
  const { browser, start } = await withSupport(t, { store })
  const asked = async (): Promise<number> => {
    // The first request in a session notes that it was seen.
    await browser.get('/guarded')
    statements.length = 0
    t.equal((await browser.get('/guarded')).statusCode, 200)
    return statements.length
  }
  t.equal(await asked(), 1)
  await start()
  t.equal(await asked(), 2)
  await browser.post('/auth/local/impersonation/end')
  t.equal(await asked(), 1)
})

t.test('the option is checked at the start', async t => {
  for (const impersonation of [{}, { allow: true }, { allow, minutes: 61 }, { allow, minutes: 0 }, { allow, notify: 'yes' }, { allow, reason: '' }]) {
    // @ts-expect-error options of JavaScript
    await t.rejects(startApp(t, { impersonation }), { code: 'invalid_options', message: /^impersonation/ })
  }
  t.equal(new AuthError('impersonating').statusCode, 403)
})
