/** The page after a form that asks for a mail: it names the address that was typed in this browser. */
import t, { type Test } from 'tap'
import type { AuthPluginOptions, LocalIdentityProviderOptions } from '../../lib/index.js'
import { Pages, de, en, es, fr } from '../../lib/pages.js'
import { advanceClock } from '../helpers/clock.js'
import { Browser } from '../helpers/browser.js'
import { ADA, type MailApp, NEW_PASSWORD, mailsInTheEnd, startMailApp } from '../helpers/mail-app.js'
import { type Reader, type ShownPage, readerOf } from './page.js'

const PAGE = '/auth/pages/link-sent'
const FORGOT = '/auth/local/forgot-password'
const REGISTER = '/auth/local/register'
const COOKIE = 'svc_asked'

async function start (t: Test, local: LocalIdentityProviderOptions = {}, options: AuthPluginOptions = {}): Promise<MailApp & Reader> {
  const app = await startMailApp(t, { pages: new Pages({ name: 'Shop' }), ...options }, local)
  return { ...app, ...readerOf(t, app.browser) }
}

/** Each form that asks for a link, by its page. */
const FORMS = {
  'forgot-password': { action: FORGOT, local: {}, kind: 'reset-password', sentence: en.forgotPassword.sentTo },
  register: { action: REGISTER, local: { registration: { verify: 'first' } }, kind: 'register', sentence: en.register.sentTo }
} as const

/** The time to wait that a page names. */
const waitOn = ({ text }: ShownPage): string | undefined => /another e-mail in (.+?) at/.exec(text)?.[1]

const spoken = (sentence: string, email = ADA.email): string => sentence.replace('{email}', ` ${email} `).replaceAll(/ +(?=[.\s])/g, '')

for (const [form, { action, local, kind, sentence }] of Object.entries(FORMS)) {
  const ask = async ({ open, send }: Reader, email: string, query = '') =>
    send((await open(`/auth/pages/${form}${query}`)).formOf(action), { email })

  t.test(`the page after ${form} names the address, sends again and leads back to the form`, async t => {
    const app = await start(t, local)
    if (form === 'forgot-password') await app.app.auth.createUser(ADA)
    const sent = await ask(app, ' Ada@Example.com', '?next=/cart')
    t.match(sent, { url: `${PAGE}?next=%2Fcart`, status: 200, title: 'Check your inbox', alert: null })
    t.match(sent.text.replaceAll(/ +(?=[.\s])/g, ''), spoken(sentence))
    t.strictSame(sent.links, [`/auth/pages/${form}?next=%2Fcart`, '/auth/pages/sign-in?next=%2Fcart'])
    t.match(sent.text, /Send another e-mail Use another address/)
    t.notMatch(sent.text, 'at the earliest', 'mailboxes have no limits here')
    await app.mails.next(kind)

    const again = await app.send(sent.formOf(action))
    t.match(again, { url: `${PAGE}?next=%2Fcart`, title: 'Check your inbox' })
    t.equal(again.text, sent.text)
    t.equal((await app.mails.next(kind)).to, ADA.email)
  })

  t.test(`attack 232: the page after ${form} says the same for each address, also when it sends again, and when`, async t => {
    const app = await start(t, local, { rateLimit: {} })
    await app.app.auth.createUser(ADA)
    const shown: string[] = []
    for (const email of [ADA.email, 'nobody@example.com']) {
      const visitor = readerOf(t, new Browser(app.app))
      const sent = await ask(visitor, email)
      const again = await visitor.send(sent.formOf(action))
      shown.push(...[sent, again].map(({ html }) => html.replaceAll(email, ADA.email).replaceAll(/\d+ seconds|1 minute/g, 'TIME')))
    }
    t.equal(new Set(shown).size, 1)
    t.match(shown[0], 'You can ask for another e-mail in TIME at the earliest.')
  })

  t.test(`the page after ${form} says how long the limit of the mailbox lasts, as the mails follow it`, async t => {
    const app = await start(t, local, { rateLimit: {} })
    if (form === 'forgot-password') await app.app.auth.createUser(ADA)
    const sent = await ask(app, ADA.email)
    t.match(waitOn(sent), /^1 minute$|^59 seconds$/)
    advanceClock(t, 40_000)
    const early = await app.send(sent.formOf(action))
    t.match(waitOn(early), /^(?:20|19) seconds$/, 'one that is too early does not make it longer')
    const other = await ask(app, 'other@example.com')
    t.match(waitOn(other), /^1 minute$|^59 seconds$/, 'of another mailbox')
    await ask(app, ADA.email)
    advanceClock(t, 61_000)
    t.equal(waitOn(await app.open(PAGE)), undefined)
    t.match(waitOn(await app.send((await app.open(PAGE)).formOf(action))), /^1 minute$|^59 seconds$/)
    t.equal((await mailsInTheEnd(app)).filter(mail => mail.kind === kind && mail.to === ADA.email).length, 2)
  })

  t.test(`attack 232: after ${form} the address is in a cookie of this browser, for minutes, and in no URL`, async t => {
    const { app, browser } = await start(t, local)
    const fields = { email: ADA.email, next: PAGE }
    const answer = await browser.submit(action, fields)
    t.match(answer.cookies.find(({ name }) => name === COOKIE), {
      path: '/auth/', httpOnly: true, secure: true, sameSite: 'Lax', maxAge: 600
    })
    t.equal(answer.headers.location, PAGE)
    t.notMatch((await readerOf(t, new Browser(app)).open(PAGE)).text, ADA.email, 'another browser')
    for (const other of [
      await new Browser(app).post(action, { email: ADA.email }), await new Browser(app).submit(action, { ...fields, next: '/own-page' }),
      await new Browser(app).submit(action, { ...fields, email: 'nobody' })
    ]) t.notOk(other.cookies.some(({ name }) => name === COOKIE), 'for scripts, for pages of the application, and for no address')
  })

  t.test(`a failure of another mail after ${form} is shown there`, async t => {
    const app = await start(t, local)
    const sent = await ask(app, ADA.email)
    const again = sent.formOf(action)
    const refused = await app.send(again && { ...again, hidden: { ...again.hidden, email: 'nobody' } })
    t.match(refused, { status: 400, title: 'Check your inbox', alert: en.errors.invalid_email })
    t.match(refused.formOf(action)?.hidden, { email: ADA.email })
  })
}

t.test('a registration whose address must be confirmed is not sent again, because it needs the password', async t => {
  const { open, send } = await start(t, { registration: { verify: 'required' } }, { rateLimit: {} })
  const sent = await send((await open('/auth/pages/register')).formOf(REGISTER), ADA)
  t.match(sent, { url: PAGE, forms: [], links: ['/auth/pages/register', '/auth/pages/sign-in'] })
  t.match(sent.text, ADA.email)
  t.notMatch(sent.text, 'at the earliest')
})

t.test('each kind of mail has a time to wait of its own', async t => {
  const { open, browser } = await start(t, { registration: { verify: 'first' } }, { rateLimit: {} })
  await browser.submit(FORGOT, { email: ADA.email, next: PAGE })
  advanceClock(t, 40_000)
  await browser.submit(REGISTER, { email: ADA.email, next: PAGE })
  t.match(waitOn(await open(PAGE)), /^1 minute$|^59 seconds$/)
})

t.test('a link that is used ends the cookie', async t => {
  const app = await start(t)
  await app.app.auth.createUser(ADA)
  await app.send((await app.open('/auth/pages/forgot-password')).formOf(FORGOT), { email: ADA.email })
  t.ok(app.browser.cookies.has(COOKIE))
  await app.browser.submit('/auth/local/reset-password', { token: (await app.mails.next('reset-password')).token, password: NEW_PASSWORD })
  t.notOk(app.browser.cookies.has(COOKIE))
})

t.test('the pages of the application are those for another address', async t => {
  const { open, send } = await start(t, {}, { forgotPasswordPage: '/forgot', loginPage: '/login' })
  const sent = await send({ action: FORGOT, names: ['email'], hidden: { next: PAGE }, pressed: {}, values: {}, checked: [] }, { email: ADA.email })
  t.strictSame(sent.links, ['/forgot', '/login'])
  t.match(await open(PAGE), { links: ['/forgot', '/login'] })
})

t.test('attack 232: a cookie that this application has not set names at most an address', async t => {
  const { open, browser } = await start(t, { registration: false }, { rateLimit: {} })
  const plain = await open(PAGE)
  t.match(plain.text, en.forgotPassword.sentText)
  for (const value of [
    '', ' ', 'forgot-password', 'forgot-password 1', 'forgot-password 1 <b>@example.com', 'forgot-password 1 Call +1 555 now',
    `forgot-password 1 ${'a'.repeat(300)}@example.com`, 'constructor 1 ada@example.com', 'mail-login 1 ada@example.com', '%E0%A4%A', '%'
  ]) {
    browser.cookies.set(COOKIE, encodeURIComponent(value).replaceAll('%25', '%'))
    t.equal((await open(PAGE)).html, plain.html, value)
  }
  for (const until of ['x', '-1', '1e400', '99999999999999', 'NaN']) {
    browser.cookies.set(COOKIE, encodeURIComponent(`forgot-password ${until} ada'&@example.com`))
    const page = await open(PAGE)
    t.match(page.html, '<bdi translate="no">ada&#39;&#38;@example.com</bdi>')
    t.notMatch(page.text, 'at the earliest', until)
  }
  browser.cookies.set(COOKIE, encodeURIComponent('register 1 ada@example.com'))
  t.match(await open(PAGE), { status: 200, forms: [], links: ['/auth/pages/sign-in'] }, 'a form that there is not')
})

for (const texts of [en, de, fr, es]) {
  t.test(`the page speaks ${texts.language}`, async t => {
    const { open, browser } = await start(t, { registration: { verify: 'first' } }, { rateLimit: {} })
    for (const [action, { sentTo }] of [[FORGOT, texts.forgotPassword], [REGISTER, texts.register]] as const) {
      await browser.submit(action, { email: ADA.email, next: PAGE })
      const { html } = await open(PAGE, { 'accept-language': texts.language })
      t.match(html, sentTo.replace('{email}', `<bdi translate="no">${ADA.email}</bdi>`))
      t.match(html, texts.mail.otherAddress)
      t.match(html, texts.mail.again)
    }
  })
}
