/** What follows a form or a link: the page after it says what happened, and no page is a dead end. */
import t, { type Test } from 'tap'
import type { AuthPluginOptions, EndSessionRequest, LocalIdentityProviderOptions } from '../../lib/index.js'
import { Pages, ar, de, en, es, fr, ja } from '../../lib/pages.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { SESSION_SECRET } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { DATA_SECRET } from '../helpers/factor-app.js'
import { ADA, BASE_URL, type MailApp, NEW_PASSWORD, registerAt, resetTokenOf, startMailApp } from '../helpers/mail-app.js'
import { OwnProvider, callbackOf, leaveFor, signInAt } from '../helpers/own-provider.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'
import { type Reader, readerOf } from './page.js'

const SIGN_IN = '/auth/pages/sign-in'
const REGISTER = '/auth/pages/register'
const FORGOT = '/auth/pages/forgot-password'
const ACCOUNT = '/auth/pages/account'
const FACTORS = '/auth/pages/factors'
const LOGOUT = '/auth/logout'
const DELETE = '/auth/local/delete-account'
const DAY_MS = 24 * 3_600_000

async function start (
  t: Test, options: AuthPluginOptions = {}, local: LocalIdentityProviderOptions = {}
): Promise<MailApp & Reader> {
  const app = await startMailApp(t, { pages: new Pages({ name: 'Shop' }), ...options }, local)
  return { ...app, ...readerOf(t, app.browser) }
}

const pathOf = (url: string | null): string => String(url).replace(BASE_URL, '')

t.test('the page after a sign-out and a deletion says so, once', async t => {
  const { open, send, browser } = await start(t)
  await browser.post('/auth/local/register', ADA)

  const out = await send((await open(ACCOUNT)).formOf(LOGOUT))
  t.match(out, { url: SIGN_IN, notice: en.notices.signed_out })
  t.equal((await open(SIGN_IN)).notice, null, 'once')

  await browser.post('/auth/local/login', ADA)
  t.match(await send((await open(SIGN_IN)).formOf(LOGOUT)), { url: SIGN_IN, notice: en.notices.signed_out })
  await browser.post('/auth/local/login', ADA)
  t.match(await send((await open(ACCOUNT)).formOf(DELETE)), { url: SIGN_IN, notice: en.notices.deleted })
  t.equal((await open(SIGN_IN)).notice, null)
})

t.test('the page after a link says what it did: to a visitor that of the sign-in, to a user that of the account', async t => {
  const { open, send, browser, app, mails } = await start(t)
  const token = await registerAt({ app, browser, mails })
  const confirmed = await send((await open(`/auth/local/verify-email?token=${token}`)).forms[0])
  t.match(confirmed, { url: ACCOUNT, notice: en.notices.email_confirmed })

  await send((await open(ACCOUNT)).formOf('/auth/local/change-email'), { email: 'ada@new.example', current: ADA.password })
  const link = pathOf((await mails.next('change-email')).url)
  t.match(await send((await open(link)).forms[0]), { url: ACCOUNT, notice: en.notices.email_changed })

  const reset = await open(`/auth/local/reset-password?token=${await resetTokenOf({ app, browser, mails }, 'ada@new.example')}`)
  t.match(await send(reset.forms[0], { password: NEW_PASSWORD }), {
    url: `${SIGN_IN}?next=${encodeURIComponent(ACCOUNT)}`, notice: en.notices.password_changed
  }, 'the session has ended')

  const visitor = new Browser(app)
  const reader = readerOf(t, visitor)
  const again = await reader.open(`/auth/local/reset-password?token=${await resetTokenOf({ app, browser, mails }, 'ada@new.example')}`)
  const { url, notice } = await reader.send(again.forms[0], { password: ADA.password })
  t.strictSame([url, notice], [SIGN_IN, en.notices.password_changed])
})

t.test('who frees an address that another person registered sees that it was removed', async t => {
  const { app, mails, browser } = await start(t)
  const token = await registerAt({ app, browser, mails })
  const owner = readerOf(t, new Browser(app))
  const released = await owner.send((await owner.open(`/auth/local/verify-email?token=${token}`)).forms[1], { email: ADA.email })
  t.match(released, { url: SIGN_IN, notice: en.notices.email_released })
})

t.test('no link makes a page say that something happened, and no form of another site', async t => {
  const { open, browser } = await start(t)
  for (const word of ['deleted', 'saved', 'sent']) {
    t.equal((await open(`${SIGN_IN}?done=${word}&notice=${word}`)).notice, null, word)
    const form = { next: SIGN_IN, done: word }
    const foreign = await browser.submit(LOGOUT, form, { origin: 'https://evil.example' })
    t.match([foreign.statusCode, foreign.headers['set-cookie']], [403, undefined])
    await browser.get(`${LOGOUT}?${new URLSearchParams(form)}`)
    t.equal((await open(SIGN_IN)).notice, null, word)
  }
  // A sign-in is no change, wherever it leads.
  await browser.post('/auth/local/register', ADA)
  const next = `${ACCOUNT}?done=sent`
  t.equal((await open(`/auth/local/login?next=${encodeURIComponent(next)}`)).notice, null)
  const signedIn = await browser.submit('/auth/local/login', { ...ADA, next })
  t.strictSame(signedIn.cookies.map(({ name }) => name), ['svc_session'])
  t.equal((await open(next)).notice, null)
})

t.test('what is said is kept in a cookie for the pages alone, ten minutes at most, and only for one of them', async t => {
  const { browser } = await start(t)
  const cookiesOf = async (fields: Record<string, string>): Promise<object[]> =>
    (await browser.submit(LOGOUT, fields)).cookies.filter(({ name }) => name === 'svc_notice')
  t.match(await cookiesOf({ next: SIGN_IN, done: 'signed_out' }), [{
    name: 'svc_notice', value: 'signed_out', path: '/auth/', httpOnly: true, secure: true, sameSite: 'Lax', maxAge: 600
  }])
  t.strictSame(await cookiesOf({ next: '/cart', done: 'signed_out' }), [], 'a page of the application')
  t.strictSame(await cookiesOf({ next: SIGN_IN, done: 'constructor' }), [], 'a word without a sentence')
  t.strictSame(await cookiesOf({ next: SIGN_IN }), [])
  const json = await browser.post(LOGOUT, { next: SIGN_IN, done: 'signed_out' })
  t.notOk(json.cookies.some(({ name }) => name === 'svc_notice'), 'a script shows it itself')
})

t.test('a provider that was added is said, and a sign-in at a provider is not', async t => {
  const { open, send, browser } = await start(t)
  await browser.post('/auth/local/register', ADA)
  const leaving = await send((await open(ACCOUNT)).formOf('/auth/a/login'))
  t.match(leaving, { title: en.signIn.withProvider.replace('{provider}', 'A'), notice: null })
  const linked = await open(callbackOf(leaving.links[0] ?? '', { subject: 'ada-at-a' }))
  t.match(linked, { url: ACCOUNT, notice: en.common.saved })

  const callback = await leaveFor(browser, `/auth/a/login?next=${ACCOUNT}&done=saved`, { subject: 'ada-at-a' })
  t.match(await open(callback), { url: ACCOUNT, notice: null })
})

t.test('a sign-out at the provider is said once the browser is back', async t => {
  class Provider extends OwnProvider {
    readonly signOut = true
    async endSessionUrl ({ state }: EndSessionRequest): Promise<URL> { return new URL(`https://a.example/end?state=${state}`) }
  }
  const { open, send, browser } = await start(t, { providers: [new Provider('a')], dataSecret: DATA_SECRET })
  await signInAt(browser, 'a', { subject: 'ada-at-a' })

  const leaving = await send((await open(ACCOUNT)).formOf(LOGOUT))
  const [there = ''] = leaving.links
  t.match(leaving, { title: en.signOut.title, notice: null })
  t.match(await open(`/auth/a/signed-out${new URL(there).search}`), { url: SIGN_IN, notice: en.notices.signed_out })
})

t.test('a page that cannot be made leads to the sign-in page and to the application', async t => {
  const store = new SlowSessionStore()
  const { open, browser } = await start(t, { session: { secret: SESSION_SECRET, store } })
  await browser.post('/auth/local/register', ADA)
  store.failure = new Error('down')
  t.match(await open(ACCOUNT), { status: 503, title: en.failures.wait, links: [SIGN_IN, '/'] })
})

t.test('a link that is over leads to another one, to the sign-in page and to the application, in each language', async t => {
  const { app, browser, mails } = await start(t, { rateLimit: {} }, {
    signInByMail: true, registration: { verify: 'first' }, mails: { limits: false }
  })
  const visitor = readerOf(t, new Browser(app))
  await app.auth.createUser({ email: ADA.email, password: ADA.password })
  await browser.post('/auth/local/login', ADA)
  await browser.post('/auth/local/verify-email', {})
  await browser.post('/auth/local/change-email', { email: 'ada@new.example' })
  await browser.post('/auth/local/forgot-password', { email: ADA.email })
  await browser.post('/auth/local/register', { email: 'bob@example.com' })
  await browser.post('/auth/local/mail-login', { email: ADA.email })
  const links = {
    'verify-email': ACCOUNT, 'change-email': ACCOUNT, 'reset-password': FORGOT, register: REGISTER, 'sign-in': null
  } as const
  const urls = await Promise.all(Object.keys(links).map(async kind => (await mails.next(kind as keyof typeof links)).url))
  const elsewhere = await visitor.open(pathOf(urls[4] ?? ''))
  t.match(elsewhere, { status: 200, links: [SIGN_IN, '/'] }, 'a link of another browser')

  advanceClock(t, 2 * DAY_MS)
  for (const [index, [kind, again]] of Object.entries(links).entries()) {
    const own = again === null ? [] : [again]
    for (const texts of [en, de, fr, es, ar, ja]) {
      const page = await visitor.open(pathOf(urls[index] ?? ''), { 'accept-language': texts.language })
      t.equal(page.status, 401, kind)
      t.match(page.text, texts.errors.invalid_token)
      t.strictSame(page.links, [...own, SIGN_IN, '/'], kind)
      t.match(page.text, texts.common.home)
      if (again !== null) t.match(page.text, texts.links.askAgain)
    }
  }
  await browser.post('/auth/local/login', ADA)
  t.strictSame((await readerOf(t, browser).open(pathOf(urls[2] ?? ''))).links, [FORGOT, '/'], 'a user has signed in')
})

t.test('without pages of the plugin a link that is over leads to the pages of the application', async t => {
  const open = async (options: AuthPluginOptions): Promise<string[]> =>
    (await start(t, { pages: undefined, ...options })).open('/auth/local/reset-password?token=x').then(({ links }) => links)
  t.strictSame(await open({}), ['/'])
  t.strictSame(await open({ loginPage: '/login', forgotPasswordPage: '/forgot' }), ['/forgot', '/login', '/'])
})

t.test('a page of the application takes the place of each page, and the others lead to it, with next', async t => {
  const { open, send, browser } = await start(t, {
    registerPage: '/join', forgotPasswordPage: '/forgot', accountPage: '/me'
  })
  t.strictSame((await open(`${SIGN_IN}?next=/cart`)).links.slice(-2), ['/forgot?next=%2Fcart', '/join?next=%2Fcart'])
  t.strictSame((await open(SIGN_IN)).links.slice(-2), ['/forgot', '/join'])
  t.equal((await browser.get('/.well-known/change-password')).headers.location, '/me')
  const over = { reset: '/auth/local/reset-password?token=x', verify: '/auth/local/verify-email?token=x' }
  t.strictSame([(await open(over.reset)).links[0], (await open(over.verify)).links[0]], ['/forgot', '/me'])
  const email = await start(t, { accountPage: '/me' })
  const token = await registerAt(email)
  t.equal((await email.send((await email.open(`/auth/local/verify-email?token=${token}`)).forms[0])).url, '/me')
  const wrong = await send((await open(SIGN_IN)).forms[0], { email: ADA.email, password: 'wrong password' })
  t.ok(wrong.links.includes('/join'), 'after a failure too')
})

t.test('the pages of the account and of its factors lead to each other, or to those in their place', async t => {
  const options = { dataSecret: DATA_SECRET, secondFactor: new SecondFactor({ issuer: 'Shop' }) }
  for (const [pages, account, factors] of [
    [{}, ACCOUNT, FACTORS], [{ accountPage: '/me', secondFactorPage: '/factors' }, '/me', '/factors']
  ] as const) {
    const { open, browser } = await start(t, { ...options, ...pages })
    await browser.post('/auth/local/register', ADA)
    t.ok((await open(ACCOUNT)).links.includes(factors), factors)
    t.ok((await open(FACTORS)).links.includes(account), account)
  }
})

t.test('an application without passwords has no link to register or to a forgotten password', async t => {
  const { open } = await start(t, { rateLimit: {}, providers: [] }, { password: false, signInByMail: true })
  t.strictSame((await open(SIGN_IN)).links, [])
})

t.test('a page that replaces another one may be one of a trusted origin, which gets next with the origin of this one', async t => {
  const front = 'https://front.example'
  const { open } = await start(t, { trustedOrigins: [front], registerPage: `${front}/join` })
  t.ok((await open(`${SIGN_IN}?next=/cart`)).links.includes(`${front}/join?next=${encodeURIComponent(`${BASE_URL}/cart`)}`))
})
