/** The pages of second factors, as a browser without scripts reads them. */
import t, { type Test } from 'tap'
import { Accounts, type AuthPluginOptions, MemoryAuthStore } from '../../index.js'
import { Pages, de, en, es, fr } from '../../pages.js'
import { SecondFactor, type SecondFactorOptions } from '../../second-factor.js'
import { mailbox, totp } from '../../testing.js'
import { localProvider, principalIn, startApp, userIdIn } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import { DATA_SECRET, enrolAt, nextCode } from '../../../test/helpers/factor-app.js'
import { ADA, BASE_URL, type MailApp, confirmAddress, registerAt } from '../../../test/helpers/mail-app.js'
import { OwnProvider, linkAt, signInAt } from '../../../test/helpers/own-provider.js'
import { type Reader, type ShownPage, pageOf, readerOf } from '../../../test/pages/page.js'

const SIGN_IN = '/auth/pages/sign-in'
const FACTORS = '/auth/pages/factors'
const SECOND_FACTOR = '/auth/local/second-factor'
const TOTP = '/auth/local/totp'
const ENROL = '/auth/local/totp/enroll'
const CONFIRM = '/auth/local/totp/confirm'
const REMOVE = '/auth/local/totp/remove'
const NEW_CODES = '/auth/local/recovery-codes'
const REAUTHENTICATE = '/auth/local/reauthenticate'
const MINUTE_MS = 60_000
const HOSTILE = '<img src=x onerror="alert(1)">'

async function start (
  t: Test, factor: Partial<SecondFactorOptions> = {}, options: AuthPluginOptions = {}
): Promise<MailApp & Reader> {
  const mails = mailbox()
  const app = await startApp(t, {
    baseUrl: BASE_URL,
    providers: [new OwnProvider('a')],
    local: localProvider({ sendMail: mails.sendMail, mails: { limits: false } }),
    rateLimit: false,
    dataSecret: DATA_SECRET,
    secondFactor: new SecondFactor({ issuer: 'Shop', ...factor }),
    pages: new Pages({ name: 'Shop' }),
    ...options
  }, {}, app => {
    app.get('/vault', { preHandler: app.auth.requireRecent({ within: 60, secondFactor: true }) }, async () => 'gold')
  })
  const browser = new Browser(app)
  return { app, mails, browser, ...readerOf(t, browser) }
}

/** The secret that a page shows for an authenticator app. */
function secretOn ({ links }: ShownPage): string {
  const uri = links.find(link => link.startsWith('otpauth:'))
  if (uri === undefined) throw new Error('the page has no otpauth: URI')
  return new URL(uri).searchParams.get('secret') ?? ''
}

/** The recovery codes on a page. */
function codesOn ({ html }: ShownPage): string[] {
  return Array.from(html.matchAll(/<li><code dir="ltr" translate="no">([^<]*)<\/code><\/li>/g), ([, code = '']) => code)
}

/** Signs in by password on the page, of which the second factor is still asked. */
async function wait ({ open, send }: Reader, next: string): Promise<ShownPage> {
  return send((await open(`${SIGN_IN}?next=${next}`)).formOf('/auth/local/login'), ADA)
}

t.test('a user sets up an authenticator app on the pages, signs in by its code and removes it; next survives', async t => {
  const { app, browser, mails, open, send } = await start(t)
  await registerAt({ app, browser, mails })
  t.ok((await open('/auth/pages/account')).links.includes(FACTORS))

  const none = await open(FACTORS)
  t.match(none, { status: 200, title: en.factors.title })
  t.notOk(none.formOf(NEW_CODES))
  const scan = await send(none.formOf(ENROL))
  t.match(scan, { url: new RegExp(`^${TOTP}\\?next=`), status: 200, title: en.factors.setUp })
  const secret = secretOn(scan)
  t.match(scan.text, secret.replace(/.{4}(?!$)/g, '$& '))
  t.match(scan.html, /<svg[^>]* viewBox/)
  const wrong = await send(scan.formOf(CONFIRM), { code: '12345' })
  t.match(wrong, { status: 401, title: en.factors.setUp, alert: en.errors.invalid_code })
  t.equal(secretOn(wrong), secret, 'the app has it already')

  const shown = await send(wrong.formOf(CONFIRM), { code: totp(secret) })
  t.match(shown, { status: 200, title: en.factors.recoveryTitle })
  t.equal(new Set(codesOn(shown)).size, 10)
  const [way = ''] = shown.links
  t.match(await open(way), { url: FACTORS, notice: en.common.saved, text: /Codes left: 10/ })

  t.equal((await send((await open('/auth/pages/account')).formOf('/auth/logout'))).url, SIGN_IN)
  const asked = await wait({ open, send }, '/cart')
  t.match(asked, { url: `${SECOND_FACTOR}?next=%2Fcart`, status: 200, title: en.factors.secondTitle })
  t.equal(await principalIn(browser), null)
  const refused = await send(asked.formOf(SECOND_FACTOR), { code: '000000' })
  t.match(refused, { status: 401, title: en.factors.secondTitle, alert: en.errors.invalid_code })
  const form = refused.formOf(SECOND_FACTOR)
  t.strictSame([form?.hidden.next, form?.names.includes('trust')], ['/cart', false], 'no browser is trusted here')
  t.equal((await send(form, { code: nextCode(t, secret) })).url, '/cart')

  const renewed = await send((await open(FACTORS)).formOf(NEW_CODES))
  t.match(renewed, { status: 200, title: en.factors.recoveryTitle })
  t.strictSame(codesOn(renewed).filter(code => codesOn(shown).includes(code)), [])
  const removed = await send((await open(FACTORS)).formOf(REMOVE))
  t.match(removed, { url: FACTORS, notice: en.common.saved })
  t.ok(removed.formOf(ENROL))
})

t.test('a code of an earlier set-up, or of a wrong clock, is refused in words about both', async t => {
  const { app, browser, mails, open, send } = await start(t)
  await registerAt({ app, browser, mails })
  const earlier = secretOn(await send((await open(FACTORS)).formOf(ENROL)))
  await browser.post(ENROL)
  for (const texts of [en, de, es, fr]) {
    const headers = { 'accept-language': texts.language }
    const form = (await open(TOTP, headers)).formOf(CONFIRM)
    const refused = pageOf(await browser.submit(CONFIRM, { ...form?.hidden, code: totp(earlier) }, headers))
    t.match(refused, { status: 401, title: texts.factors.setUp, alert: texts.errors.wrong_set_up_code })
    t.match(refused.html, 'aria-invalid="true" aria-describedby="failure" autofocus name="code"')
  }
})

t.test('recovery codes are saved as a text file of the same page', async t => {
  const { app, browser, mails, open, send } = await start(t)
  await registerAt({ app, browser, mails })
  const scan = await send((await open(FACTORS)).formOf(ENROL))
  const shown = await send(scan.formOf(CONFIRM), { code: totp(secretOn(scan)) })
  const codes = codesOn(shown)
  t.strictSame(shown.files, { 'recovery-codes.txt': `Shop: Recovery codes\n\n${codes.join('\n')}\n` })
  for (const code of codes) t.match(code, /^(?:[0-9A-Z]{4}-){5}[0-9A-Z]{4}$/)
})

t.test('a page that needs a second factor leads a user without one to set it up, and back', async t => {
  const { app, browser, mails, open, send } = await start(t)
  await registerAt({ app, browser, mails })

  const factors = await open('/vault')
  t.match(factors, { url: `${FACTORS}?error=second_factor_missing&next=%2Fvault`, alert: en.errors.second_factor_missing })
  const scan = await send(factors.formOf(ENROL))
  const shown = await send(scan.formOf(CONFIRM), { code: totp(secretOn(scan)) })

  t.strictSame(shown.links, ['/vault'])
  t.match(await open('/vault'), { status: 200, html: 'gold' })
})

t.test('the page for another authentication asks for what is needed, shows failures and leads back', async t => {
  const { app, browser, mails, open, send } = await start(t)
  await registerAt({ app, browser, mails })
  await linkAt(browser, 'a', { subject: 'ada-a' })
  const { secret } = await enrolAt(t, browser)
  const any = await open('/auth/pages/confirm?next=/cart')
  t.strictSame(any.forms.map(({ names }) => names.filter(name => name !== 'shown_to' && !name.endsWith('next'))), [['code'], ['password'], []])
  advanceClock(t, 2 * MINUTE_MS)

  const step = await open('/vault')
  t.equal(step.url, '/auth/pages/confirm?second_factor=true&next=%2Fvault')
  t.strictSame(step.forms.map(({ names }) => names.filter(name => name !== 'shown_to' && !name.endsWith('next'))), [['code'], []])
  const wrong = await send(step.formOf(REAUTHENTICATE), { code: '000000' })
  t.match(wrong, { status: 401, title: en.confirm.title, alert: en.errors.invalid_code })
  t.strictSame(wrong.forms.map(({ names }) => names.filter(name => name !== 'shown_to' && !name.endsWith('next'))), [['code'], []])
  t.match(await send(wrong.formOf(REAUTHENTICATE), { code: nextCode(t, secret) }), { url: '/vault', html: 'gold' })

  const left = await send((await open('/auth/pages/confirm?next=/cart')).formOf('/auth/logout'))
  t.equal(left.url, `${SIGN_IN}?next=%2Fcart`)
  t.equal(await principalIn(browser), null)
})

t.test('an old sign-in changes nothing on the page of the factors, which leads to another one and back', async t => {
  const { app, browser, mails, open, send } = await start(t)
  await registerAt({ app, browser, mails })
  const { secret, userId } = await enrolAt(t, browser)
  t.notOk((await open(FACTORS)).links.some(link => link.includes('confirm')))
  advanceClock(t, 11 * MINUTE_MS)

  const factors = await open(FACTORS)
  t.match(factors.text, en.factors.confirmText)
  t.ok(factors.links.includes(`/auth/pages/confirm?second_factor=true&next=${encodeURIComponent(FACTORS)}`))
  for (const path of [REMOVE, NEW_CODES]) {
    const asked = await send(factors.formOf(path))
    t.equal(asked.url, `/auth/pages/confirm?second_factor=true&next=${encodeURIComponent(FACTORS)}`, path)
  }
  t.match(await open(`${TOTP}?next=/cart`), {
    url: `/auth/pages/confirm?second_factor=true&next=${encodeURIComponent(`${TOTP}?next=%2Fcart`)}`
  })
  t.equal((await app.auth.factors(userId)).length, 2)

  const confirmed = await send((await open(FACTORS)).formOf(REMOVE))
  t.match(await send(confirmed.formOf(REAUTHENTICATE), { code: nextCode(t, secret) }), { url: FACTORS, status: 200 })
  t.equal((await send((await open(FACTORS)).formOf(REMOVE))).notice, en.common.saved)
})

t.test('a user who has to set up a second factor does so with the mailed code, or leaves', async t => {
  let isRequired = false
  const { app, browser, mails, open, send } = await start(t, { required: () => isRequired })
  const token = await registerAt({ app, browser, mails })
  await confirmAddress(browser, token)
  await browser.post('/auth/logout')
  isRequired = true

  const begin = await wait({ open, send }, '/cart')
  t.match(begin, { url: `${SECOND_FACTOR}?next=%2Fcart`, title: en.factors.requiredTitle })
  t.equal((await send(begin.formOf('/auth/logout'))).url, SIGN_IN, 'left')
  t.match(await open(SECOND_FACTOR), { url: `${SIGN_IN}?error=invalid_state`, alert: en.errors.invalid_state })

  const scan = await send((await wait({ open, send }, '/cart')).formOf(ENROL))
  t.match(scan, { url: `${TOTP}?next=%2Fcart`, title: en.factors.requiredTitle })
  const { code: mailCode } = await mails.next('enrolment')
  const wrong = await send(scan.formOf(CONFIRM), { code: totp(secretOn(scan)), mailCode: 'abcdef' })
  t.match(wrong, { status: 401, title: en.factors.requiredTitle, alert: en.errors.invalid_code })
  t.equal(await principalIn(browser), null)
  const shown = await send(wrong.formOf(CONFIRM), { code: totp(secretOn(scan)), mailCode })
  t.equal(codesOn(shown).length, 10)
  t.strictSame(shown.links, ['/cart'])
  t.not(await userIdIn(browser), null)

  t.match((await open(FACTORS)).forms.map(({ action }) => action), [REMOVE, NEW_CODES])
  t.match(await send((await open(FACTORS)).formOf(REMOVE)), { status: 403, title: en.factors.title, alert: en.errors.forbidden })
})

t.test('without a page of factors the way to set up an app is a page of its own', async t => {
  const { app, browser, mails, open, send } = await start(t, {}, { pages: undefined, loginPage: '/login' })
  await registerAt({ app, browser, mails })
  const begin = await open('/vault')
  t.match(begin, {
    url: `${TOTP}?error=second_factor_missing&next=%2Fvault`,
    alert: en.errors.second_factor_missing,
    title: en.factors.setUp,
    links: ['/vault']
  })
  const scan = await send(begin.formOf(ENROL))
  const shown = await send(scan.formOf(CONFIRM), { code: totp(secretOn(scan)) })
  t.strictSame(shown.links, ['/vault'])
})

t.test('without a sign-in that waits the pages lead to the sign-in, or on', async t => {
  const { app, browser, mails, open } = await start(t)
  t.equal((await open(`${SECOND_FACTOR}?next=/cart`)).url, `${SIGN_IN}?next=%2Fcart&error=invalid_state`)
  t.equal((await open(`${TOTP}?next=/cart`)).url, `${SIGN_IN}?next=${encodeURIComponent(`${TOTP}?next=%2Fcart`)}`)
  t.equal((await open(FACTORS)).url, `${SIGN_IN}?next=${encodeURIComponent(FACTORS)}`)
  t.equal((await open('/auth/pages/confirm?next=/cart')).url, `${SIGN_IN}?next=%2Fcart`)

  await registerAt({ app, browser, mails })
  t.equal((await open(`${SECOND_FACTOR}?next=/cart`)).url, '/cart', 'another tab has finished it')
  t.equal((await open(`${SECOND_FACTOR}?next=https://evil.example/`)).url, '/')
  t.match(await open(`${TOTP}?next=//evil.example`), { title: en.factors.setUp, links: ['/'] })
})

t.test('a sign-in that has expired or ended leads to the sign-in page, which says so', async t => {
  const made = await start(t)
  const { app, browser, open, send } = made
  await registerAt(made)
  const { secret } = await enrolAt(t, browser)
  await browser.post('/auth/logout')
  const asked = await wait(made, '/cart')
  const copied = new Browser(app, browser.cookies)
  await browser.post('/auth/logout')

  const code = nextCode(t, secret)
  const gone = await readerOf(t, copied).send(asked.formOf(SECOND_FACTOR), { code })
  t.match(gone, { url: `${SIGN_IN}?next=%2Fcart&error=invalid_state`, alert: en.errors.invalid_state })

  const late = await wait(made, '/cart')
  advanceClock(t, 10 * MINUTE_MS)
  t.match(await send(late.formOf(SECOND_FACTOR), { code: nextCode(t, secret) }), {
    url: `${SIGN_IN}?next=%2Fcart&error=invalid_state`
  })
  t.equal((await open(SIGN_IN)).title, 'Sign in to Shop')
})

t.test('a user who was blocked meanwhile is told so on the page of the app', async t => {
  const store = new MemoryAuthStore()
  let isRequired = false
  const made = await start(t, { required: () => isRequired }, { store })
  const { userId = '' } = await made.app.auth.createUser({ email: ADA.email, password: ADA.password }) ?? {}
  isRequired = true
  await made.browser.post('/auth/local/login', ADA)
  t.equal((await made.open(TOTP)).status, 200)
  await new Accounts(store).changeUser(userId, { blocked: { at: new Date() } })
  t.match(await made.open(TOTP), { status: 403, text: en.errors.blocked })
})

t.test('after too many codes the page says so, with the status and the time', async t => {
  const made = await start(t)
  await registerAt(made)
  await enrolAt(t, made.browser)
  await made.browser.post('/auth/logout')
  const guess = async (page: ShownPage): Promise<ShownPage> => made.send(page.formOf(SECOND_FACTOR), { code: '000000' })

  const first = await wait(made, '/cart')
  for (let attempt = 0; attempt < 5; attempt++) t.match(await guess(first), { status: 401, alert: en.errors.invalid_code })
  t.match(await guess(first), { status: 400, title: en.factors.secondTitle, alert: en.errors.invalid_state })
  const second = await wait(made, '/cart')
  for (let attempt = 0; attempt < 5; attempt++) await guess(second)
  t.match(await guess(await wait(made, '/cart')), {
    status: 429, title: en.factors.secondTitle, alert: new RegExp(en.errors.rate_limited)
  })
})

t.test('a wrong code keeps the wish to trust the browser', async t => {
  const made = await start(t, { trustedBrowser: { days: 30 } })
  await registerAt(made)
  await enrolAt(t, made.browser)
  await made.browser.post('/auth/logout')
  const asked = await wait(made, '/cart')
  t.strictSame(asked.formOf(SECOND_FACTOR)?.checked, [])
  const refused = await made.send(asked.formOf(SECOND_FACTOR), { code: '000000', trust: 'on' })
  t.match(refused.formOf(SECOND_FACTOR), { checked: ['trust'], values: {} })
})

t.test('a user can trust the browser, in words of their language, and is not asked there again', async t => {
  const made = await start(t, { trustedBrowser: { days: 30 } }, { pages: new Pages({ name: 'Shop', languages: [en, de] }) })
  const { browser, open, send } = made
  await registerAt(made)
  const { secret } = await enrolAt(t, browser)
  await browser.post('/auth/logout')
  const asked = await wait(made, '/cart')
  t.match(asked.text, 'Don’t ask again on this browser for 30 days')
  t.match(await open(SECOND_FACTOR, { 'accept-language': 'de-AT' }), { lang: 'de', title: de.factors.secondTitle, text: /30 Tage/ })
  await send(asked.formOf(SECOND_FACTOR), { code: nextCode(t, secret), trust: 'on' })
  await browser.post('/auth/logout')
  t.equal((await wait(made, '/cart')).url, '/cart')
})

t.test('attack 118: names stay text on each page of the factors', async t => {
  const { browser, open, send } = await start(t, { issuer: HOSTILE })
  await signInAt(browser, 'a', { subject: 'mallory', claims: { name: HOSTILE } })
  const scan = await send((await open(TOTP)).formOf(ENROL))
  t.match(scan.text, HOSTILE)
  t.equal(new URL(scan.links[0] ?? '').searchParams.get('issuer'), HOSTILE)
  const confirm = await open('/auth/pages/confirm')
  t.match(confirm.text, HOSTILE)
  const shown = await send(scan.formOf(CONFIRM), { code: totp(secretOn(scan)) })
  for (const { html } of [scan, confirm, shown, await open(FACTORS)]) t.notMatch(html, /<img|onerror="/)
})
