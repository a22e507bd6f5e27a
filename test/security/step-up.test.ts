/** Attack 83: a session that passes for a recent authentication. */
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { Accounts } from '../../lib/accounts/accounts.js'
import type { AuthError } from '../../lib/index.js'
import { startFakeOpenIdProvider } from '../fakes/openid-provider.js'
import { localProvider, startApp, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { holdAnswers } from '../helpers/holding-store.js'
import { startOpenIdProvider } from '../helpers/openid-provider.js'
import { FROM_OWN_PAGE, leaveFor, postLogin, signInAt, startAt } from '../helpers/own-provider.js'
import { SOME_SHARED_SESSIONS } from '../helpers/session-stores.js'
import { ADA, GRACE, type Shared, editRecord, sessionIdOf, startTwoApps } from '../helpers/shared-apps.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'

const HOUR_MS = 3_600_000
const FROM_PAGE = { ...FROM_OWN_PAGE, referer: 'http://app.example/account' }
const AS_SCRIPT = { ...FROM_PAGE, accept: 'application/json' }

/** A browser whose user signed in an hour ago. */
async function anHourLater (t: Test, shared: Shared): Promise<Browser> {
  const [app] = await startTwoApps(t, shared)
  const browser = new Browser(app)
  await browser.post('/auth/local/register', ADA)
  t.equal((await browser.get('/transfer')).statusCode, 200, 'a sign-in is a recent authentication')
  advanceClock(t, HOUR_MS)
  t.equal((await browser.get('/transfer')).statusCode, 403)
  return browser
}

async function assertNotRecent (t: Test, browser: Browser, what: string): Promise<void> {
  const answer = await browser.get('/transfer', { accept: 'application/json' })
  t.strictSame([answer.statusCode, answer.json().code], [403, 'reauthenticate'], what)
  t.equal((await browser.get('/private')).statusCode, 200, `${what}: the user stays signed in`)
}

for (const [kind, keep] of SOME_SHARED_SESSIONS) {
  t.test(`the rules hold with ${kind}`, async t => {
    t.test('attack 83: neither requests, nor a refresh, nor a failed reauthentication make an old session recent', async t => {
      const browser = await anHourLater(t, await keep(t))

      for (const url of ['/me', '/private', '/refreshed', '/authentication', '/cart']) await browser.get(url)
      await browser.post('/cart')
      await assertNotRecent(t, browser, 'after visits')
      await browser.app.auth.grant(await userIdIn(browser) ?? '', { role: 'admin' })
      t.equal((await browser.get('/refreshed')).statusCode, 200)
      await assertNotRecent(t, browser, 'after a refresh that saves')
      const id = sessionIdOf(browser)
      const wrong = await browser.post('/auth/local/reauthenticate', { password: 'wrong password' })
      t.strictSame([wrong.statusCode, wrong.json().code], [401, 'invalid'])
      t.equal(sessionIdOf(browser), id)
      await assertNotRecent(t, browser, 'after a wrong password')
    })

    t.test('attack 83: a cookie that is renewed at each request makes no old session recent', async t => {
      const session = { secret: 'the-session-secret-of-the-tests-32+', rolling: true }
      const browser = await anHourLater(t, { ...await keep(t), options: { session } })

      const visit = await browser.get('/private')

      t.match(visit.headers['set-cookie'], /svc_session=/, 'the cookie is new')
      await assertNotRecent(t, browser, 'after a visit')
    })

    t.test('attack 83: a proof in the future is none, as after the clock was set back', async t => {
      const [app] = await startTwoApps(t, await keep(t))
      const browser = new Browser(app)
      await browser.post('/auth/local/register', ADA)
      advanceClock(t, -4000)
      t.equal((await browser.get('/transfer')).statusCode, 200, 'clocks of machines differ by some seconds')

      advanceClock(t, -HOUR_MS)

      await assertNotRecent(t, browser, 'an hour back')
    })

    t.test('attack 83: the password of another user proves nothing', async t => {
      const browser = await anHourLater(t, await keep(t))
      await new Browser(browser.app).post('/auth/local/register', GRACE)
      const id = sessionIdOf(browser)

      for (const body of [GRACE, { password: GRACE.password }, { ...GRACE, user_id: 'grace', sub: 'grace' }]) {
        const answer = await browser.post('/auth/local/reauthenticate', body)
        t.strictSame([answer.statusCode, answer.json().code], [401, 'invalid'])
      }

      t.equal(sessionIdOf(browser), id, 'the session is unchanged')
      await assertNotRecent(t, browser, 'after the other password')
    })

    t.test('attack 83: the identity of another user, or a new one, proves nothing and is not linked', async t => {
      const browser = await anHourLater(t, await keep(t))
      const { auth } = browser.app
      const userId = await userIdIn(browser) ?? ''
      await signInAt(new Browser(browser.app), 'proving', { subject: 'grace-at-proving' })
      const grace = await auth.findUser({ provider: 'proving', subject: 'grace-at-proving' })
      const id = sessionIdOf(browser)

      for (const subject of ['grace-at-proving', 'new-at-proving']) {
        const callback = await leaveFor(browser, '/auth/proving/login?reauthenticate=true', { subject, email: ADA.email }, FROM_PAGE)
        const answer = await browser.get(callback, { accept: 'application/json' })
        t.strictSame([answer.statusCode, answer.json().code], [400, 'invalid_state'], subject)
      }

      t.equal(sessionIdOf(browser), id, 'the session is unchanged')
      t.equal(await userIdIn(browser), userId)
      t.strictSame((await auth.links(userId)).map(({ provider }) => provider), ['local'])
      t.equal((await auth.findUser({ provider: 'proving', subject: 'grace-at-proving' }))?.userId, grace?.userId)
      t.equal(await auth.findUser({ provider: 'proving', subject: 'new-at-proving' }), null)
      await assertNotRecent(t, browser, 'after the identities')
    })

    t.test('attack 83: a proof that one user started finishes for no other user', async t => {
      const [app] = await startTwoApps(t, await keep(t))
      const browser = new Browser(app)
      await browser.post('/auth/local/register', GRACE)
      const callback = await leaveFor(browser, '/auth/proving/login?reauthenticate=true', { subject: 'ada-at-proving' }, FROM_PAGE)
      await signInAt(browser, 'proving', { subject: 'ada-at-proving' })
      const id = sessionIdOf(browser)

      t.equal((await browser.get(callback, { accept: 'application/json' })).json().code, 'invalid_state')

      t.equal(sessionIdOf(browser), id)
    })

    t.test('attack 83: a user reauthenticates by password: a new id, the old one is dead, content and claims stay', async t => {
      const browser = await anHourLater(t, await keep(t))
      await browser.post('/cart')
      const before = (await browser.get('/me')).json()
      const old = new Browser(browser.app, browser.cookies)

      const answer = await browser.post('/auth/local/reauthenticate', { password: ADA.password })

      t.strictSame([answer.statusCode, answer.body, answer.cookies.length], [204, '', 1])
      t.not(sessionIdOf(browser), sessionIdOf(old))
      t.equal((await browser.get('/transfer')).statusCode, 200)
      t.strictSame((await browser.get('/me')).json(), before)
      t.equal((await browser.get('/cart')).json().cart, 'apples')
      t.equal(await userIdIn(old), null)
      t.equal((await old.get('/private')).statusCode, 401)
      const { statusCode, headers: { location } } =
        await browser.submit('/auth/local/reauthenticate', { password: ADA.password, next: '/transfer' })
      t.strictSame([statusCode, location], [303, '/transfer'], 'a form goes on to next')
    })

    t.test('attack 79: a reauthentication that the end of all sessions overtakes is dead at its first guard', async t => {
      const kept = await keep(t)
      const held = holdAnswers(kept.store)
      const [app, other] = await startTwoApps(t, kept)
      const browser = new Browser(app)
      await browser.post('/auth/local/register', ADA)
      const userId = await userIdIn(browser) ?? ''

      held.holds = true
      const answer = browser.post('/auth/local/reauthenticate', { password: ADA.password })
      await held.read.promise
      await other.auth.signOutEverywhere(userId)
      held.goOn.resolve()
      await answer

      for (const url of ['/transfer', '/private', '/refreshed']) {
        t.equal((await new Browser(app, browser.cookies).get(url)).statusCode, 401, url)
      }
    })

    t.test('attack 83: a proof in a session that has ended is refused', async t => {
      const [app, other] = await startTwoApps(t, await keep(t))
      const browser = new Browser(app)
      await browser.post('/auth/local/register', ADA)
      const userId = await userIdIn(browser) ?? ''
      const callback = await leaveFor(browser, '/auth/proving/login?reauthenticate=true', { subject: 'x' }, FROM_PAGE)
      await other.auth.signOutEverywhere(userId)

      t.equal((await new Browser(app, browser.cookies).get(callback, AS_SCRIPT)).json().code, 'unauthenticated')
      const answer = await new Browser(app, browser.cookies).post('/auth/local/reauthenticate', { password: ADA.password })
      t.equal(answer.json().code, 'unauthenticated')
    })
  })
}

for (const [what, at] of [
  ['a text', 'just now'], ['an object', {}], ['missing', undefined], ['null', null]
] as const) {
  t.test(`attack 83: a session whose time of the proof is ${what} signs no user in`, async t => {
    const sessions = new SlowSessionStore()
    const [app] = await startTwoApps(t, { sessions })
    const browser = new Browser(app)
    await browser.post('/auth/local/register', ADA)
    await editRecord(sessions, browser, record => { record.at = at })

    t.equal(await userIdIn(browser), null)
    t.strictSame((await browser.get('/transfer', { accept: 'application/json' })).statusCode, 401)
  })
}

t.test('request.authentication tells how and when the user authenticated', async t => {
  const sessions = new SlowSessionStore()
  const [app] = await startTwoApps(t, { sessions })
  const browser = new Browser(app)
  const authentication = async () => (await browser.get('/authentication')).json().authentication
  t.equal(await authentication(), null)

  const start = Date.now()
  await browser.post('/auth/local/register', ADA)
  const first = await authentication()
  t.strictSame(Object.keys(first), ['at', 'methods', 'secondFactor'])
  t.ok(new Date(first.at).getTime() >= start)
  t.strictSame(first.methods, [{ method: 'password', at: first.at }])

  const userId = await userIdIn(browser) ?? ''
  const claims = { sub: 'ada-at-proving' }
  await new Accounts(app.auth.store).addLink(userId, { provider: 'proving', subject: 'ada-at-proving', claims, verifiedEmail: null })
  advanceClock(t, HOUR_MS)
  const callback = await leaveFor(browser, '/auth/proving/login?reauthenticate=true', { subject: 'ada-at-proving' }, FROM_PAGE)
  await browser.get(callback)
  const second = await authentication()
  t.ok(new Date(second.at).getTime() >= start + HOUR_MS)
  t.strictSame(second.methods, [...first.methods, { method: 'provider', at: second.at }], 'an old proof keeps its time')

  await browser.post('/auth/local/reauthenticate', { password: ADA.password })
  const third = await authentication()
  t.strictSame(third.methods, [second.methods[1], { method: 'password', at: third.at }], 'one entry for each method')

  await browser.post(`/sign-in/${userId}`)
  t.match(await authentication(), { methods: [{ method: 'application' }] })
})

t.test('requireRecent answers scripts with the methods of the user, and takes browsers to a page', async t => {
  const options = { loginPage: '/sign-in', reauthenticatePage: '/confirm?from=guard' }
  const browser = await anHourLater(t, { options })
  const { app } = browser
  const userId = await userIdIn(browser) ?? ''
  for (const provider of ['a', 'proving']) {
    await new Accounts(app.auth.store).addLink(userId, { provider, subject: 'ada', claims: { sub: 'ada' }, verifiedEmail: null })
  }

  const answer = await browser.get('/transfer?amount=1', { accept: 'application/json' })
  t.equal(answer.statusCode, 403)
  const { message, ...body } = answer.json()
  t.strictSame(body, { statusCode: 403, code: 'reauthenticate', error: 'Forbidden', methods: ['password', 'proving'] })
  t.type(message, 'string')

  const page = await browser.get('/transfer?amount=1', { accept: 'text/html' })
  t.strictSame([page.statusCode, page.headers.location], [302, '/confirm?from=guard&next=%2Ftransfer%3Famount%3D1'])
  t.equal(page.headers['cache-control'], 'no-store')

  const anonymous = await new Browser(app).get('/transfer', { accept: 'text/html' })
  t.strictSame([anonymous.statusCode, anonymous.headers.location], [302, '/sign-in?next=%2Ftransfer'])
  t.equal((await new Browser(app).get('/transfer', { accept: 'application/json' })).json().code, 'unauthenticated')
})

t.test('the error handler of the application answers a refusal of requireRecent, and scripts get the methods whatever it sends', async t => {
  const seen: unknown[] = []
  const app = await startApp(t, { local: localProvider() }, {}, app => {
    app.setErrorHandler<AuthError>(async ({ code, statusCode, details }, request, reply) => {
      seen.push(details)
      reply.code(statusCode)
      return request.url.includes('page') ? reply.type('text/html').send(`<p>${code}`) : { code, own: true }
    })
    app.get('/transfer', { preHandler: app.auth.requireRecent({ within: 600 }) }, async () => 'done')
  })
  const browser = new Browser(app)
  await browser.post('/auth/local/register', ADA)
  t.equal((await browser.get('/transfer')).body, 'done')
  advanceClock(t, HOUR_MS)

  const json = await browser.get('/transfer', { accept: 'application/json' })
  t.strictSame([json.statusCode, json.json()], [403, { methods: ['password'], code: 'reauthenticate', own: true }])
  t.equal(json.headers['cache-control'], 'no-store')
  t.equal((await browser.get('/transfer?page', { accept: 'text/html' })).body, '<p>reauthenticate')
  t.strictSame(seen, [{ methods: ['password'] }, { methods: ['password'] }])
})

t.test('requireRecent names no method to a user whose only provider proves none', async t => {
  const [app] = await startTwoApps(t)
  const browser = new Browser(app)
  await signInAt(browser, 'a', { subject: 'ada-at-a' })
  advanceClock(t, HOUR_MS)

  t.strictSame((await browser.get('/transfer', { accept: 'application/json' })).json().methods, [])
  t.equal((await browser.post('/auth/local/reauthenticate', { password: ADA.password })).json().code, 'invalid', 'there is no password')
})

t.test('requireRecent behind requireBearer looks at the auth_time of the token', async t => {
  const [app] = await startTwoApps(t)
  const browser = new Browser(app)
  await browser.post('/auth/local/register', ADA)
  const userId = await userIdIn(browser) ?? ''
  const { localIdp } = app
  const signedInAt = Math.floor(Date.now() / 1000)
  const send = async (url: string, token: string) =>
    app.inject({ url, headers: { authorization: `Bearer ${token}`, accept: 'application/json' } })
  const tokenWith = async (claims: object): Promise<string> => localIdp?.issueIdToken(userId, { ...claims }) ?? ''
  const ofSession = async (): Promise<string> => (await browser.post('/auth/local/token')).json().token

  const { auth_time: authTime = 0 } = decodeJwt<{ auth_time: number }>(await ofSession())
  t.ok(Math.abs(authTime - signedInAt) <= 1, 'the token tells when the user authenticated')
  t.equal((await send('/api/transfer', await ofSession())).statusCode, 200)

  const now = Date.now() / 1000
  for (const [what, claims] of [
    ['an old one', { auth_time: now - 601 }], ['one in the future', { auth_time: now + 60 }], ['a string', { auth_time: `${now}` }], ['none', {}]
  ] as const) {
    const answer = await send('/api/transfer', await tokenWith(claims))
    t.strictSame([answer.statusCode, answer.json().code], [401, 'reauthenticate'], what)
    t.equal(answer.headers['www-authenticate'], 'Bearer error="insufficient_user_authentication", max_age=600', what)
  }

  advanceClock(t, HOUR_MS)
  t.equal((await send('/api/transfer', await ofSession())).statusCode, 401, 'a new token of an old sign-in')
  await browser.post('/auth/local/reauthenticate', { password: ADA.password })
  t.equal((await send('/api/transfer', await ofSession())).statusCode, 200, 'after a reauthentication')
})

t.test('requireRecent in anyOf is a refusal like others', async t => {
  const [app] = await startTwoApps(t)
  const browser = new Browser(app)
  await browser.post('/auth/local/register', ADA)
  await app.auth.grant(await userIdIn(browser) ?? '', { role: 'admin' })
  t.equal((await browser.get('/recent-or-admin')).statusCode, 200)
  advanceClock(t, HOUR_MS)

  const refused = await browser.get('/recent-or-admin', { accept: 'text/html' })
  t.strictSame([refused.statusCode, refused.json().code], [403, 'forbidden'], 'the last guard answers')
  const first = await browser.get('/admin-or-recent', { accept: 'application/json' })
  t.strictSame([first.statusCode, first.json().code, first.json().methods], [403, 'reauthenticate', ['password']])
  await browser.get('/refreshed')
  t.equal((await browser.get('/recent-or-admin')).statusCode, 200, 'the other guard lets the request pass')
})

t.test('requireRecent refuses wrong options in a sentence', async t => {
  const [{ auth }] = await startTwoApps(t)
  for (const required of [undefined, null, 600]) {
    t.throws(() => auth.requireRecent(required as never), {
      name: 'OptionsError', message: 'requireRecent takes an object of options, such as { within: 600 }'
    })
  }
  for (const required of [{}, { within: 0 }, { within: -1 }, { within: NaN }, { within: Infinity }, { within: '600' }]) {
    t.throws(() => auth.requireRecent(required as { within: number }), {
      name: 'OptionsError', message: 'requireRecent: within must be a number of seconds, such as 600'
    })
  }
  t.throws(() => auth.requireRecent({ within: 600, secondFactr: true } as { within: number }), {
    name: 'OptionsError', message: 'requireRecent has no option "secondFactr"; expected one of within, secondFactor'
  })
})

t.test('attack 83: the attempts of one user are counted over all addresses, those of another user apart', async t => {
  const [app] = await startTwoApps(t, { options: { rateLimit: { reauthenticate: 3 } } })
  const [ada, grace] = [new Browser(app), new Browser(app)]
  await ada.post('/auth/local/register', ADA)
  await grace.post('/auth/local/register', GRACE)
  const attempt = async ({ cookies }: Browser, remoteAddress: string, password: string) => app.inject({
    method: 'POST',
    url: '/auth/local/reauthenticate',
    remoteAddress,
    headers: { accept: 'application/json', cookie: [...cookies].map(cookie => cookie.join('=')).join('; ') },
    payload: { password }
  })

  for (let address = 1; address <= 3; address++) {
    t.equal((await attempt(ada, `203.0.113.${address}`, 'wrong password')).statusCode, 401)
  }
  const limited = await attempt(ada, '203.0.113.4', ADA.password)

  t.strictSame([limited.statusCode, limited.json().code], [429, 'rate_limited'])
  t.ok(Number(limited.headers['retry-after']) > 0)
  t.equal((await attempt(grace, '203.0.113.1', GRACE.password)).statusCode, 204)
  t.equal((await attempt(new Browser(app), '203.0.113.1', GRACE.password)).json().code, 'unauthenticated')
})

t.test('attack 83: a provider that proves no time is not asked', async t => {
  const [app] = await startTwoApps(t)
  const browser = new Browser(app)
  await browser.post('/auth/local/register', ADA)

  const answer = await postLogin(browser, '/auth/a/login?reauthenticate=true')

  t.strictSame([answer.statusCode, answer.json().code], [400, 'invalid_request'])
})

t.test('attack 175: only a form of the signed-in user in the application starts a reauthentication', async t => {
  const fake = await startFakeOpenIdProvider(t)
  const [app] = await startTwoApps(t, { providers: [fake.provider()] })
  const browser = new Browser(app)
  const start = async (headers?: Record<string, string>) => postLogin(browser, '/auth/fake/login?reauthenticate=true', headers)
  t.equal((await start()).json().code, 'unauthenticated')
  await browser.post('/auth/local/register', ADA)

  t.equal((await start({ 'sec-fetch-site': 'cross-site' })).json().code, 'cross_origin')
  t.equal((await browser.get('/auth/fake/login?reauthenticate=true', AS_SCRIPT)).json().code, 'invalid_request')
  t.match((await browser.get('/auth/fake/login?reauthenticate=true')).body, /Sign in again as <bdi translate="no">ada@example.com</)
  t.equal((await start()).statusCode, 200)
})

t.test('attack 83: an auth_time that is absent, old, in the future or not a number proves nothing', async t => {
  const fake = await startFakeOpenIdProvider(t)
  const [app] = await startTwoApps(t, { providers: [fake.provider()] })
  const browser = new Browser(app)
  await browser.get(fake.consent((await browser.get('/auth/fake/login')).headers.location ?? ''))
  t.ok(await userIdIn(browser))
  advanceClock(t, HOUR_MS)
  const seconds = Math.floor(Date.now() / 1000)
  const id = sessionIdOf(browser)
  const prove = async () => {
    const location = await startAt(browser, '/auth/fake/login?reauthenticate=true', FROM_PAGE)
    const { searchParams } = new URL(location)
    t.strictSame([searchParams.get('prompt'), searchParams.get('max_age')], ['login', '0'])
    return browser.get(fake.consent(location), { accept: 'application/json' })
  }

  for (const authTime of [undefined, null, 0, -1, seconds - 3600, seconds + 3600, `${seconds}`, [seconds], true]) {
    fake.idTokenClaims = { auth_time: authTime }
    const answer = await prove()
    t.strictSame([answer.statusCode, answer.json().code], [502, 'provider_error'], String(authTime))
    t.equal(sessionIdOf(browser), id)
    await assertNotRecent(t, browser, String(authTime))
  }
  fake.idTokenClaims = { auth_time: seconds }
  t.equal((await prove()).statusCode, 302)
  t.equal((await browser.get('/transfer')).statusCode, 200)
})

t.test('attack 83: a user reauthenticates at oidc-provider', async t => {
  const idp = await startOpenIdProvider(t, { redirectUris: ['http://app.example/auth/dev/callback'] })
  const [app] = await startTwoApps(t, { providers: [idp.provider()] })
  const browser = new Browser(app)
  const goTo = async (url: string) => {
    const location = await startAt(browser, url, FROM_PAGE)
    const { pathname, search } = await idp.authorize(location)
    return [new URL(location), await browser.get(pathname + search)] as const
  }
  await goTo('/auth/dev/login')
  const before = (await browser.get('/me')).json()
  const old = new Browser(app, browser.cookies)
  advanceClock(t, HOUR_MS)
  await assertNotRecent(t, browser, 'an hour later')

  const [request, answer] = await goTo('/auth/dev/login?reauthenticate=true&next=/transfer')

  t.strictSame([request.searchParams.get('prompt'), request.searchParams.get('max_age')], ['login', '0'])
  t.strictSame([answer.statusCode, answer.headers.location, answer.cookies.length], [302, '/transfer', 1])
  t.not(sessionIdOf(browser), sessionIdOf(old))
  t.equal((await browser.get('/transfer')).statusCode, 200)
  t.strictSame((await browser.get('/me')).json(), before, 'the claims are kept')
  t.equal((await app.auth.links(before.principal.userId)).length, 1, 'nothing is linked')
  t.equal(await userIdIn(old), null)
})
