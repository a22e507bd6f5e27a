import t, { type Test } from 'tap'
import type { AuthPluginOptions, LocalIdentityProviderOptions } from '../../index.js'
import { Pages, ar, de, en, es, fr, ja } from '../../pages.js'
import { SESSION_SECRET, userIdIn } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import { ADA, BASE_URL, type MailApp, startMailApp } from '../../../test/helpers/mail-app.js'
import { type Reader, readerOf } from '../../../test/pages/page.js'

const SIGN_IN = '/auth/pages/sign-in'
const ASK = '/auth/local/mail-login'
const CONFIRM = '/auth/local/mail-login/confirm'
const HOUR_MS = 3_600_000
const LANGUAGES = [en, de, fr, es, ar, ja]

async function start (
  t: Test, options: AuthPluginOptions = {}, local: LocalIdentityProviderOptions = {}
): Promise<MailApp & Reader> {
  const pages = new Pages({ name: 'Shop', languages: LANGUAGES })
  const app = await startMailApp(t, { pages, rateLimit: {}, ...options }, { signInByMail: true, mails: { limits: false }, ...local })
  return { ...app, ...readerOf(t, app.browser) }
}

const pathOf = (url: string): string => url.replace(BASE_URL, '')

t.test('a user signs in by the code of a mail on the pages, and next survives', async t => {
  const { open, send, mails, browser } = await start(t)
  const signIn = await open(`${SIGN_IN}?next=/cart`)
  const code = await send(signIn.formOf(ASK), { email: ADA.email })
  t.match(code, { url: `${ASK}?next=%2Fcart`, status: 200, title: 'Sign in by e-mail' })
  t.match(code.text, 'If you can sign in here with ada@example.com')

  const wrong = await send(code.formOf(CONFIRM), { code: '12345' })
  t.match(wrong, { status: 401, title: 'Sign in by e-mail', alert: en.errors.invalid_code })
  await mails.next('sign-in')
  const again = await send(wrong.formOf(ASK))
  const mail = await mails.next('sign-in')
  const there = await send(again.formOf(CONFIRM), { code: String(mail.code) })

  t.equal(there.url, '/cart')
  t.not(await userIdIn(browser), null)
})

t.test('the link of a mail has a button in the browser that asked for it, and none elsewhere', async t => {
  const { app, open, send, mails } = await start(t)
  await send((await open(`${SIGN_IN}?next=/cart`)).formOf(ASK), { email: ADA.email })
  const { url } = await mails.next('sign-in')

  const elsewhere = await readerOf(t, new Browser(app)).open(pathOf(url))
  t.match(elsewhere, { status: 200, forms: [] })
  t.match(elsewhere.text, 'only in the browser where you asked for it')
  const here = await open(pathOf(url))
  t.match(here.text, 'ada@example.com')
  t.equal((await send(here.formOf(CONFIRM))).url, '/cart')
  const over = await open(`${pathOf(url)}x`)
  t.match(over, { status: 401, title: en.failures.refused })
  t.match(over.text, en.errors.invalid_token)
})

t.test('a page for the code without a mail leads to the sign-in', async t => {
  const { open, send, mails } = await start(t)
  t.match(await open(ASK), { url: `${SIGN_IN}?error=invalid_state`, alert: en.errors.invalid_state })
  const code = await send((await open(SIGN_IN)).formOf(ASK), { email: ADA.email })
  await mails.next('sign-in')
  advanceClock(t, HOUR_MS)
  t.match(await send(code.formOf(CONFIRM), { code: '123456' }), { alert: en.errors.invalid_state })
})

t.test('without a sign-in page, the page for the code leads to the root of the application', async t => {
  const { browser } = await startMailApp(t, { rateLimit: {} }, { signInByMail: true })
  t.equal((await browser.get(ASK, { accept: 'text/html' })).headers.location, '/')
})

t.test('another mail asks for a session as long as the first one', async t => {
  const session = { secret: SESSION_SECRET, remember: { days: 30 } }
  const { open, send } = await start(t, { session }, { password: false })
  const code = await send((await open(SIGN_IN)).formOf(ASK), { email: ADA.email, remember: 'on' })
  t.equal(code.formOf(ASK)?.hidden.remember, 'true')
})

t.test('a user without a password signs in by mail again where the page asks for it', async t => {
  const { open, send, mails, browser } = await start(t, {}, { password: false })
  const signIn = await open(SIGN_IN)
  t.strictSame(signIn.forms.map(({ action }) => action), [ASK])
  const code = await send(signIn.formOf(ASK), { email: ADA.email })
  await send(code.formOf(CONFIRM), { code: String((await mails.next('sign-in')).code) })
  advanceClock(t, HOUR_MS)
  t.match((await browser.get('/recent')).json(), { code: 'reauthenticate', methods: ['mail'] })

  const confirm = await open('/auth/pages/confirm?next=/recent')
  const asked = await send(confirm.formOf(ASK))
  t.equal((await send(asked.formOf(CONFIRM), { code: String((await mails.next('sign-in')).code) })).url, '/recent')
  t.equal((await browser.get('/recent')).statusCode, 200)
})

t.test('pages of the application take the place of those of the plugin', async t => {
  const { browser, mails } = await start(t, {}, { pages: { mailLogin: '/by-mail' } })
  const asked = await browser.submit(ASK, { email: ADA.email, next: '/cart' })
  t.equal(asked.headers.location, '/by-mail?next=%2Fcart')
  const { url, token } = await mails.next('sign-in')
  t.equal((await browser.get(pathOf(url))).headers.location, `/by-mail?token=${token}`)
  t.equal((await browser.get(ASK)).headers.location, '/by-mail')
  t.match(await browser.app.auth.openMailToken(token), { valid: true, kind: 'sign-in', email: ADA.email })
  t.equal((await browser.submit(CONFIRM, { token })).headers.location, '/cart')
})

for (const texts of LANGUAGES) {
  t.test(`the page speaks ${texts.language}`, async t => {
    const { browser } = await start(t)
    const headers = { accept: 'text/html', 'accept-language': texts.language }
    const signIn = await browser.get(SIGN_IN, headers)
    t.match(signIn.body, texts.mail.ask)
    await browser.post(ASK, { email: ADA.email })
    const page = await browser.get(ASK, headers)
    t.match(page.body, texts.titles['sign-in'])
    t.match(page.body, texts.mail.again)
  })
}

t.test('a link that signs in nobody says why: a newer mail, a used link, another browser, a user who is signed in', async t => {
  const { app, open, send, mails, browser } = await start(t)
  const elsewhere = readerOf(t, new Browser(app))
  const code = await send((await open(`${SIGN_IN}?next=/cart`)).formOf(ASK), { email: ADA.email })
  t.match(code.links, [`${SIGN_IN}?next=%2Fcart`], 'for another address')
  const first = pathOf((await mails.next('sign-in')).url)
  await send(code.formOf(ASK))
  const second = pathOf((await mails.next('sign-in')).url)

  const replaced = await open(first)
  t.match(replaced.text, en.mail.newer)
  t.ok(replaced.links.includes(ASK), 'leads to the page of the code')
  t.match((await elsewhere.open(second)).text, 'only in the browser where you asked for it')
  await send((await open(second)).formOf(CONFIRM))
  const used = await elsewhere.open(second)
  t.match(used.text, en.mail.used)
  t.match(used.text, en.mail.again)
  const there = await open(`${second}&next=/cart`)
  t.match(there.text, 'You are signed in as ada@example.com')
  t.ok(there.links.includes('/cart'))
  await browser.post('/auth/logout')
  t.match((await open(second)).text, en.mail.used)
})
