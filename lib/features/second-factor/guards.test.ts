import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import type { AuthPluginOptions } from '../../index.js'
import { SecondFactor } from '../../second-factor.js'
import { localProvider, startApp } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import { DATA_SECRET, type Enrolled, enrolAt, nextCode, waitAt } from '../../../test/helpers/factor-app.js'
import { ADA, BASE_URL } from '../../../test/helpers/mail-app.js'

const MINUTE_MS = 60_000
const AS_PAGE = { accept: 'text/html' }
const PAGES = { loginPage: '/login', reauthenticatePage: '/confirm', secondFactorPage: '/factors' }

/** An application with guarded routes, and a browser in which Ada has registered. */
async function guarded (t: Test, options: AuthPluginOptions = {}): Promise<Browser> {
  const app = await startApp(t, {
    baseUrl: BASE_URL, local: localProvider(), dataSecret: DATA_SECRET, secondFactor: new SecondFactor({ issuer: 'Shop' }), ...options
  }, {}, app => {
    const { auth } = app
    const isRecent = auth.requireRecent({ within: 600, secondFactor: true })
    const isCaller = auth.requireCaller({ by: ['session', 'token'] })
    const isAdmin = auth.requireClaims({ role: 'admin' })
    const guards = {
      '/vault': auth.requireSecondFactor,
      '/payout': isRecent,
      '/recent': auth.requireRecent({ within: 600 }),
      '/vault-or-admin': auth.anyOf(auth.requireSecondFactor, isAdmin),
      '/api/vault': [auth.requireBearer, auth.requireSecondFactor],
      '/api/payout': [auth.requireBearer, isRecent],
      '/api/recent': [auth.requireBearer, auth.requireRecent({ within: 600 })],
      '/callers/vault': [isCaller, auth.requireSecondFactor],
      '/callers/payout': [isCaller, isRecent]
    }
    for (const [url, preHandler] of Object.entries(guards)) app.get(url, { preHandler }, async () => 'passed')
    app.get('/caller', { preHandler: isCaller }, async request => auth.caller(request).authentication)
    app.get('/authentication', async request => request.authentication)
  })
  const browser = new Browser(app)
  await browser.post('/auth/local/register', ADA)
  return browser
}

/** The same, with an app that the user has set up. */
async function enrolled (t: Test, options: AuthPluginOptions = {}): Promise<Enrolled & { browser: Browser }> {
  const browser = await guarded(t, options)
  return { ...await enrolAt(t, browser), browser }
}

async function answerAt (browser: Browser, url: string, headers: Record<string, string> = {}): Promise<unknown[]> {
  const { statusCode, body, headers: { location } } = await browser.get(url, headers)
  if (location !== undefined) return [statusCode, location]
  return statusCode === 200 ? [200] : [statusCode, JSON.parse(body).code]
}

async function tokenOf (browser: Browser): Promise<string> {
  return (await browser.post('/auth/local/token')).json().token
}

t.test('a user who signed in by a second factor passes, and others are asked for theirs', async t => {
  const { browser, secret } = await enrolled(t, { ...PAGES, secondFactor: new SecondFactor({ issuer: 'Shop', trustedBrowser: { days: 1 } }) })
  t.strictSame(await answerAt(browser, '/vault'), [200])
  await waitAt(t, browser)
  await browser.post('/auth/local/second-factor', { code: nextCode(t, secret), trust: true })
  t.strictSame(await answerAt(browser, '/vault'), [200])
  t.match((await browser.get('/authentication')).json(), { secondFactor: true, methods: [{ method: 'password' }, { method: 'totp' }] })

  // A trusted browser signs in by the password alone.
  t.equal((await browser.post('/auth/local/login', ADA)).statusCode, 200)
  t.match((await browser.get('/authentication')).json(), { secondFactor: false })
  const refused = await browser.get('/vault')
  t.match([refused.statusCode, refused.json()], [403, { statusCode: 403, code: 'reauthenticate', error: 'Forbidden', methods: ['recovery', 'totp'] }])
  t.strictSame(await answerAt(browser, '/vault', AS_PAGE), [302, '/confirm?second_factor=true&next=%2Fvault'])
  t.strictSame(await answerAt(browser, '/vault-or-admin'), [403, 'forbidden'], 'the last guard decides')
  t.equal((await browser.post('/auth/local/reauthenticate', { password: ADA.password })).statusCode, 204)
  t.strictSame(await answerAt(browser, '/vault'), [403, 'reauthenticate'], 'a password is no second factor')
  t.equal((await browser.post('/auth/local/reauthenticate', { code: nextCode(t, secret) })).statusCode, 204)
  t.strictSame(await answerAt(browser, '/vault'), [200])
})

t.test('requireRecent with secondFactor looks at the time of the second factor alone', async t => {
  const { browser, secret } = await enrolled(t, PAGES)
  t.strictSame(await answerAt(browser, '/payout'), [200])

  advanceClock(t, 11 * MINUTE_MS)
  t.equal((await browser.post('/auth/local/reauthenticate', { password: ADA.password })).statusCode, 204)

  t.strictSame(await answerAt(browser, '/recent'), [200])
  t.strictSame(await answerAt(browser, '/vault'), [200], 'in this session')
  t.strictSame(await answerAt(browser, '/payout'), [403, 'reauthenticate'])
  t.strictSame(await answerAt(browser, '/payout', AS_PAGE), [302, '/confirm?second_factor=true&next=%2Fpayout'])
  t.equal((await browser.post('/auth/local/reauthenticate', { code: nextCode(t, secret) })).statusCode, 204)
  t.strictSame(await answerAt(browser, '/payout'), [200])
  t.strictSame(await answerAt(browser, '/recent'), [200])
})

t.test('a user without a second factor is sent to the page that sets one up', async t => {
  const browser = await guarded(t, PAGES)

  for (const url of ['/vault', '/payout']) {
    t.strictSame(await answerAt(browser, url), [403, 'second_factor_missing'])
    t.strictSame(await answerAt(browser, url, AS_PAGE), [302, `/factors?error=second_factor_missing&next=${encodeURIComponent(url)}`])
  }
  const plain = await guarded(t)
  t.strictSame(await answerAt(plain, '/vault', AS_PAGE), [302, '/auth/local/totp?error=second_factor_missing&next=%2Fvault'], "the plugin's page")
  const { statusCode, body } = await plain.get('/auth/local/totp?next=%2Fvault', AS_PAGE)
  t.equal(statusCode, 200)
  t.match(body, 'action="/auth/local/totp/enroll"')
})

t.test('a page that is guarded by what it is for answers the refusal, and never redirects to itself', async t => {
  const { browser } = await enrolled(t, { ...PAGES, reauthenticatePage: '/recent' })
  advanceClock(t, 11 * MINUTE_MS)
  t.strictSame(await answerAt(browser, '/recent', AS_PAGE), [403, 'reauthenticate'])

  const other = await guarded(t, { ...PAGES, secondFactorPage: '/vault' })
  t.strictSame(await answerAt(other, '/vault', AS_PAGE), [403, 'second_factor_missing'])
})

t.test('a visitor signs in first, and one whose sign-in waits is a visitor', async t => {
  const { browser } = await enrolled(t, PAGES)
  await waitAt(t, browser)

  for (const visitor of [new Browser(browser.app), browser]) {
    for (const url of ['/vault', '/payout']) {
      t.strictSame(await answerAt(visitor, url), [401, 'unauthenticated'])
      t.strictSame(await answerAt(visitor, url, AS_PAGE), [302, `/login?next=${encodeURIComponent(url)}`])
    }
  }
})

t.test('a token says by which methods its user authenticated, and guards behind requireBearer read it', async t => {
  const { browser, secret } = await enrolled(t)
  const asBearer = async (url: string, token: string): Promise<unknown[]> => {
    const { statusCode, headers } = await browser.app.inject({ url, headers: { authorization: `Bearer ${token}` } })
    return statusCode === 200 ? [200] : [statusCode, headers['www-authenticate']]
  }
  const lacking = 'Bearer error="insufficient_user_authentication"'
  const enrolling = decodeJwt(await tokenOf(browser))
  t.match(enrolling, { amr: ['pwd', 'otp', 'mfa'], svc_factor_time: Number })

  await browser.app.auth.resetFactors(enrolling.sub ?? '')
  await browser.post('/auth/local/login', ADA)
  const { secret: another } = await enrolAt(t, browser)
  t.not(another, secret)
  advanceClock(t, 11 * MINUTE_MS)
  await browser.post('/auth/local/reauthenticate', { password: ADA.password })
  const token = await tokenOf(browser)

  t.strictSame(await asBearer('/api/vault', token), [200])
  t.strictSame(await asBearer('/api/recent', token), [200])
  t.strictSame(await asBearer('/callers/vault', token), [200])
  for (const url of ['/api/payout', '/callers/payout']) {
    t.strictSame(await asBearer(url, token), [401, `${lacking}, max_age=600`], 'the second factor is older')
  }
  const { body } = await browser.app.inject({ url: '/caller', headers: { authorization: `Bearer ${token}` } })
  const { auth_time: authTime = 0 } = decodeJwt<{ auth_time: number }>(token)
  t.strictSame(JSON.parse(body), { at: new Date(authTime * 1000).toISOString(), secondFactor: true })
  await browser.post('/auth/local/reauthenticate', { code: nextCode(t, another) })
  for (const url of ['/api/payout', '/callers/payout']) t.strictSame(await asBearer(url, await tokenOf(browser)), [200])
})

t.test('a token of a sign-in without a second factor has none, whatever claims its user has', async t => {
  const browser = await guarded(t)
  const userId = (await browser.app.auth.findUser({ email: ADA.email }))?.userId ?? ''
  await browser.app.auth.grant(userId, { amr: ['mfa'], svc_factor_time: Math.floor(Date.now() / 1000) })

  const token = await tokenOf(browser)

  const { amr, svc_factor_time: factorTime } = decodeJwt(token)
  t.strictSame([amr, factorTime], [['pwd'], undefined])
  const { statusCode, headers } = await browser.app.inject({ url: '/api/vault', headers: { authorization: `Bearer ${token}` } })
  t.strictSame([statusCode, headers['www-authenticate']], [401, 'Bearer error="insufficient_user_authentication"'])
})

t.test('mistakes are refused when the guard is made', async t => {
  const { app: { auth } } = await guarded(t)
  for (const required of [{ within: 600, secondFactor: 'totp' }, { secondFactor: true }, { within: 600, second: true }]) {
    t.throws(() => auth.requireRecent(required as never), { name: 'OptionsError' }, JSON.stringify(required))
  }
  const plain = await startApp(t, { local: localProvider() })
  t.throws(() => plain.auth.requireRecent({ within: 600, secondFactor: true }), {
    name: 'OptionsError', message: /needs the option secondFactor or passkeys/
  })
})
