import Fastify from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { type AuthPluginOptions, type LocalIdentityProviderOptions, OidcProvider } from '../../lib/index.js'
import { Pages, ar, de, en, es, fr, ja } from '../../lib/pages.js'
import { signedIn } from '../../lib/testing.js'
import { SESSION_SECRET, localProvider, startApp, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { ADA, BASE_URL, type MailApp, NEW_PASSWORD, startMailApp } from '../helpers/mail-app.js'
import { OwnProvider, leaveFor, linkAt, signInAt } from '../helpers/own-provider.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'
import { type Reader, type ShownPage, pageOf, readerOf } from './page.js'

const SIGN_IN = '/auth/pages/sign-in'
const HOUR_MS = 3_600_000

async function start (
  t: Test, options: AuthPluginOptions = {}, local: LocalIdentityProviderOptions = {}, pages = new Pages({ name: 'Shop' })
): Promise<MailApp & Reader> {
  const app = await startMailApp(t, { pages, ...options }, local)
  return { ...app, ...readerOf(t, app.browser) }
}

/** The text of a mail's link. */
const linkOf = (url: string | null): string => String(url).replace('https://app.example', '')

t.test('an account lives from registration to deletion on the pages', async t => {
  const { open, send, mails, app } = await start(t)
  const registration = await open('/auth/pages/register?next=/cart')
  t.match(registration, { status: 200, title: 'Create an account', lang: 'en' })

  const weak = await send(registration.forms[0], { email: ADA.email, password: 'short', name: 'Ada' })
  t.match(weak, { status: 400, title: 'Create an account', alert: en.errors.weak_password })
  t.match(weak.forms[0]?.values, { email: ADA.email, name: 'Ada' }, 'what was typed is there')
  t.notOk('password' in (weak.forms[0]?.values ?? {}), 'but for the password')
  const there = await send(weak.forms[0], { email: ADA.email, password: ADA.password, name: 'Ada' })
  t.equal(there.url, '/cart', 'next survives')

  const confirmation = await open(linkOf((await mails.next('verify-email')).url))
  t.match(confirmation.title, 'Confirm your e-mail address')
  await send(confirmation.forms[0])

  const account = await open('/auth/pages/account')
  t.match(account.text, /ada@example\.com confirmed/)
  t.equal(account.formOf('/auth/pages/name')?.values.name, 'Ada')
  const renamed = await send(account.formOf('/auth/pages/name'), { name: 'Countess' })
  t.match(renamed, { url: '/auth/pages/account', status: 200, notice: en.common.saved })
  t.match(await app.auth.findUser({ email: ADA.email }), { name: 'Countess' })

  const wrong = await send(account.formOf('/auth/local/change-password'), { current: 'wrong password', password: NEW_PASSWORD })
  t.match(wrong, { status: 401, title: 'Your account', alert: en.errors.wrong_password })
  const changed = await send(account.formOf('/auth/local/change-password'), { current: ADA.password, password: NEW_PASSWORD })
  t.equal(changed.notice, en.common.saved)

  const asked = await send(account.formOf('/auth/local/change-email'), { email: 'ada@new.example', current: NEW_PASSWORD })
  t.equal(asked.notice, en.common.sent)
  await send((await open(linkOf((await mails.next('change-email')).url))).forms[0])
  t.match((await open('/auth/pages/account')).text, 'ada@new.example')

  const out = await send((await open('/auth/pages/account')).formOf('/auth/logout'))
  t.match(out, { url: SIGN_IN, title: 'Sign in' })
  const refused = await send(out.forms[0], { email: 'ada@new.example', password: ADA.password })
  t.match(refused, { status: 401, alert: en.errors.invalid })
  t.equal(refused.forms[0]?.values.email, 'ada@new.example')
  t.notMatch(refused.url, 'ada', 'no e-mail in a URL')
  const again = await send(refused.forms[0], { email: 'ada@new.example', password: NEW_PASSWORD })
  t.equal(again.url, '/', 'without next, the root')

  const last = await open('/auth/pages/account')
  const gone = await send(last.formOf('/auth/local/delete-account'), { current: NEW_PASSWORD })
  t.match(gone, { url: SIGN_IN })
  t.equal(await app.auth.findUser({ email: 'ada@new.example' }), null)
})

t.test('a forgotten password is recovered on the pages, which say the same for each address', async t => {
  const { open, send, mails, app } = await start(t)
  await app.auth.createUser({ email: ADA.email, password: ADA.password })
  const signIn = await open(SIGN_IN)
  t.ok(signIn.links.includes('/auth/pages/forgot-password'))

  const pages = []
  for (const email of ['nobody@example.com', ADA.email]) {
    const forgot = await open('/auth/pages/forgot-password')
    pages.push((await send(forgot.forms[0], { email })).html.replaceAll(email, ADA.email))
  }
  t.equal(pages[0], pages[1])

  const reset = await open(linkOf((await mails.next('reset-password')).url))
  t.match(reset.text, /At least 8 characters/)
  const there = await send(reset.forms[0], { password: NEW_PASSWORD })
  t.match(there, { url: SIGN_IN, title: 'Sign in' }, 'the sign-in page is the login page')
})

t.test('guards, password managers and forms lead to the pages, and pages of the application come first', async t => {
  const { app, browser, open } = await start(t)
  t.match(await open('/private', { accept: 'text/html' }), { url: `${SIGN_IN}?next=%2Fprivate` })
  t.equal((await browser.get('/.well-known/change-password')).headers.location, '/auth/pages/account')
  await app.close()

  const own = await start(t, { loginPage: '/login' })
  t.equal((await own.browser.get('/private', { accept: 'text/html' })).headers.location, '/login?next=%2Fprivate')
  t.equal((await own.browser.get('/.well-known/change-password')).headers.location, '/auth/pages/account')
  t.equal((await own.browser.get('/auth/pages/account')).headers.location, '/login?next=%2Fauth%2Fpages%2Faccount')
  t.equal((await own.browser.get('/auth/pages/confirm?next=/cart')).headers.location, '/login?next=%2Fcart')
  for (const name of ['register', 'forgot-password', 'link-sent']) {
    t.strictSame((await own.open(`/auth/pages/${name}?next=/cart`)).links, ['/login?next=%2Fcart'], name)
  }
  await own.browser.post('/auth/local/register', ADA)
  t.equal((await own.send((await own.open('/auth/pages/account')).formOf('/auth/logout'))).url, '/login')
  await own.app.close()

  const silent = await start(t, { loginPage: '/auth/a/login' })
  t.match(await silent.open('/auth/pages/account'), { title: 'Sign in' }, 'not a page that starts a sign-in: it would undo a sign-out')
})

t.test('the page after a sign-in is the one that was asked for, whichever pages are between', async t => {
  const { open, send, app } = await start(t)
  await app.auth.createUser({ email: ADA.email, password: ADA.password })
  const signIn = await open(`${SIGN_IN}?next=/cart`)
  const [, , forgot = '', register = ''] = signIn.links

  const asked = await send((await open(forgot)).forms[0], { email: ADA.email })
  t.match(asked, { title: en.forgotPassword.sentTitle, links: [forgot, `${SIGN_IN}?next=%2Fcart`] })
  t.strictSame((await open(forgot)).links, [`${SIGN_IN}?next=%2Fcart`])
  t.strictSame((await open(register)).links, [`${SIGN_IN}?next=%2Fcart`])
  const wrong = await send((await open(asked.links[1] ?? '')).forms[0], { email: ADA.email, password: 'wrong password' })
  t.equal((await send(wrong.forms[0], ADA)).url, '/cart')
})

t.test('a form that names no page is answered by the one in Referer', async t => {
  const { browser } = await start(t)
  const referer = `https://app.example${SIGN_IN}?next=/cart`
  const page = pageOf(await browser.submit('/auth/local/login', ADA, { referer }))
  t.match(page, { status: 401, title: 'Sign in', alert: en.errors.invalid })
  t.match(page.forms[0], { values: { email: ADA.email }, hidden: { next: '/cart' } })
})

t.test('each field has the name by which password managers and browsers fill it in', async t => {
  const { open, browser } = await start(t)
  const fieldsOf = ({ html }: ShownPage, action: string): string[] => {
    const form = html.split(`action="${action}"`)[1]?.split('</form>')[0] ?? ''
    const inputs = form.matchAll(/<input (?:class="input" [^>]*)?type="(\w+)"(?:[^>]*? name="(\w+)")?[^>]* autocomplete="([\w-]+)"/g)
    return Array.from(inputs, ([, ...parts]) => parts.join(' '))
  }
  const [email, name] = ['text email username', 'text name name']
  t.strictSame(fieldsOf(await open(SIGN_IN), '/auth/local/login'), [email, 'password password current-password'])
  t.strictSame(fieldsOf(await open('/auth/pages/register'), '/auth/local/register'), [name, email, 'password password new-password'])
  t.strictSame(fieldsOf(await open('/auth/pages/forgot-password'), '/auth/local/forgot-password'), [email])

  await browser.post('/auth/local/register', ADA)
  t.strictSame(fieldsOf(await open('/auth/pages/confirm'), '/auth/local/reauthenticate'), ['text  username', 'password password current-password'])
  const account = await open('/auth/pages/account')
  t.strictSame(fieldsOf(account, '/auth/pages/name'), [name])
  t.strictSame(fieldsOf(account, '/auth/local/change-email'), ['text  username', 'text email email', 'password current current-password'])
  t.strictSame(fieldsOf(account, '/auth/local/change-password'),
    ['text  username', 'password current current-password', 'password password new-password'])
  t.strictSame(fieldsOf(account, '/auth/local/delete-account'), ['text  username', 'password current current-password'])
})

t.test('an address that another account has is refused at a provider with the ways on that the sign-in page has', async t => {
  const options = { providers: [new OwnProvider('a')] }
  const { app, open } = await start(t, options)
  const without = await startApp(t, { ...options, local: localProvider(), baseUrl: BASE_URL, pages: new Pages({ name: 'Shop' }) })
  for (const texts of [en, de, es, fr]) {
    const refused = async (app: MailApp['app']): Promise<ShownPage> => {
      const browser = new Browser(app)
      await browser.post('/auth/local/register', ADA)
      const visitor = new Browser(app)
      const callback = await leaveFor(visitor, `/auth/a/login?error_next=${SIGN_IN}`, { subject: '1', email: ADA.email })
      const { headers: { location = '' } } = await visitor.get(callback)
      return readerOf(t, visitor).open(location, { 'accept-language': texts.language })
    }
    const { alert, links } = await refused(app)
    t.equal(alert, texts.errors.account_exists_forgot.replace('{forgot}', texts.signIn.forgot))
    t.ok(links.some(link => link.startsWith('/auth/pages/forgot-password')), 'the link of that name is there')
    t.equal((await refused(without)).alert, texts.errors.account_exists, 'without mails')
  }
  t.equal((await open(`${SIGN_IN}?error=account_exists_forgot`)).status, 200)
})

t.test('a page keeps the headers that the application has named in Vary', async t => {
  const app = Fastify()
  t.teardown(() => app.close())
  app.addHook('onRequest', async (_request, reply) => { reply.header('Vary', 'X-Tenant, cookie') })
  await app.register(authPlugin, { session: { secret: SESSION_SECRET }, pages: new Pages({ name: 'Shop' }) })
  t.equal((await app.inject('/auth/pages/sign-in')).headers.vary, 'X-Tenant, Cookie, Accept-Language')
})

t.test('a page that cannot be made says why, and has no form', async t => {
  const store = new SlowSessionStore()
  const { open, browser } = await start(t, { session: { secret: SESSION_SECRET, store } })
  await browser.post('/auth/local/register', ADA)
  store.failure = new Error('down')
  const page = await open(SIGN_IN, { accept: 'text/html' })
  t.match(page, { status: 503, title: en.failures.wait, forms: [] })
  t.match(page.text, en.errors.unavailable)
})

t.test('a change that needs a recent sign-in leads to the page confirm, and back', async t => {
  const { open, send, app, browser } = await start(t)
  await browser.post('/auth/local/register', ADA)
  await browser.get((await leaveFor(browser, '/auth/a/login?link=true', { subject: 'ada-at-a' }, { 'sec-fetch-site': 'same-origin' })))
  advanceClock(t, HOUR_MS)

  const account = await open('/auth/pages/account')
  const confirm = await send(account.forms.find(({ hidden }) => hidden.provider === 'a'))
  t.match(confirm, { title: en.confirm.title, url: '/auth/pages/confirm?next=%2Fauth%2Fpages%2Faccount%3Fopen%3Dmethods' })
  const wrong = await send(confirm.formOf('/auth/local/reauthenticate'), { password: 'wrong password' })
  t.match(wrong, { status: 401, title: en.confirm.title, alert: en.errors.wrong_password })
  const back = await send(wrong.formOf('/auth/local/reauthenticate'), { password: ADA.password })
  t.match(back, { url: '/auth/pages/account?open=methods', open: [/^Sign-in methods/] }, 'what was about to be done is open')

  const removed = await send(back.forms.find(({ hidden }) => hidden.provider === 'a'))
  t.equal(removed.notice, en.common.saved)
  const { userId = '' } = await app.auth.findUser({ email: ADA.email }) ?? {}
  t.strictSame((await app.auth.links(userId)).map(({ provider }) => provider), ['local'])
  t.match(removed.text, en.account.onlyMethod)
})

t.test('the account page is rows with their state, of which that with a failed form is open, with what was typed', async t => {
  const { open, send, browser } = await start(t)
  await browser.post('/auth/local/register', ADA)
  const account = await open('/auth/pages/account')
  const rows = account.html.matchAll(/<h2>([^<]*)<\/h2> <span class="state">(?:<bdi translate="no">)?([^<]*)/g)
  t.strictSame(Array.from(rows, ([, ...row]) => row.join(': ').trim()), [
    'Name: Not set', `E-mail: ${ADA.email}`, 'Password: Set', 'Sign-in methods: Password', 'Devices: Signed in: 1',
    `Delete account: ${en.account.deleteText}`
  ])
  t.strictSame(account.open, [])
  const sendTo = async (action: string, typed: Record<string, string>) => send(account.formOf(action), typed)

  const email = await sendTo('/auth/local/change-email', { email: 'new@example.com', current: 'wrong password' })
  t.match(email, { status: 401, open: [/^E-mail/], alert: en.errors.wrong_password })
  t.equal(email.formOf('/auth/local/change-email')?.values.email, 'new@example.com')
  const name = await sendTo('/auth/pages/name', { name: 'a'.repeat(1001) })
  t.match(name, { status: 400, open: [/^Name/] })
  t.equal(name.formOf('/auth/pages/name')?.values.name, 'a'.repeat(1001))
  t.equal(name.formOf('/auth/local/change-email')?.values.email, undefined)
  for (const [action, title] of [['change-password', 'Password'], ['delete-account', 'Delete account']] as const) {
    const typed = { current: 'wrong password', ...action === 'change-password' && { password: NEW_PASSWORD } }
    const failed = await sendTo(`/auth/local/${action}`, typed)
    t.match(failed, { status: 401, open: [new RegExp(`^${title}`)] })
    t.notMatch(failed.html, /wrong password|battery staple/, 'no password is shown again')
  }
})

t.test('on the account page only what deletes or removes is red, and what cannot be changed is text', async t => {
  const { open, browser } = await start(t)
  await browser.post('/auth/local/register', ADA)
  await linkAt(browser, 'a', { subject: 'ada-at-a' })
  const { html } = await open('/auth/pages/account')
  const red = Array.from(html.matchAll(/<form method="post" action="([^"]*)"((?!<\/form>)[^])*class="button (?:small )?danger"/g), ([, action]) => action)
  t.strictSame(red, ['/auth/pages/unlink', '/auth/pages/unlink', '/auth/local/delete-account'])
  t.notMatch(html, / readonly| disabled/)
  t.match(html, `<input type="text" value="${ADA.email}" autocomplete="username" hidden>`, 'for password managers')
})

t.test('the name of the application leads back to it, also below the path of a proxy', async t => {
  for (const [baseUrl, path] of [[BASE_URL, '/'], [`${BASE_URL}/shop`, '/shop/']] as const) {
    const { browser } = await start(t, { baseUrl }, {}, new Pages({ name: 'Shop & Co', logo: '/logo.svg' }))
    const { body } = await browser.get(SIGN_IN)
    t.match(body, `<a href="${path}"><picture><img class="logo" src="/logo.svg" alt=""></picture><span>Shop &#38; Co</span></a></header>`)
  }
})

t.test('a checkbox that was checked is checked after a refusal, as are the other fields', async t => {
  const remember = { session: { secret: SESSION_SECRET, remember: { days: 30 } } }
  const { open, send } = await start(t, remember)
  const fields = { email: ADA.email, password: 'short', remember: 'on' }
  t.match((await send((await open(SIGN_IN)).forms[0], fields)).forms[0], { checked: ['remember'], values: { email: ADA.email } })
  t.match((await send((await open(SIGN_IN)).forms[0], { ...fields, remember: '' })).forms[0]?.checked, [])
  const registration = await send((await open('/auth/pages/register')).forms[0], { ...fields, name: 'Ada' })
  t.match(registration.forms[0], { checked: ['remember'], values: { email: ADA.email, name: 'Ada' } })
})

t.test('the pages behind links keep what was typed, but for passwords', async t => {
  const { open, send, mails } = await start(t, { session: { secret: SESSION_SECRET, remember: { days: 30 } } }, {
    registration: { verify: 'first', roles: ['buyer', 'seller'] }
  })
  await send((await open('/auth/pages/register')).forms[0], { email: ADA.email })
  const register = await open(linkOf((await mails.next('register')).url))
  const weak = await send(register.forms[0], { name: 'Ada', password: 'tiny', role: 'seller', remember: 'on' })
  t.match(weak, { status: 400, alert: en.errors.weak_password })
  t.match(weak.forms[0], { checked: ['remember'], values: { name: 'Ada' } })
  t.match(weak.html, '<option selected>seller</option>')
  t.notMatch(weak.html, 'tiny')

  const other = await start(t)
  await other.browser.post('/auth/local/register', ADA)
  const verify = await other.open(linkOf((await other.mails.next('verify-email')).url))
  const refused = await other.send(verify.forms[1], { email: 'other@example.com' })
  t.equal(refused.forms[1]?.values.email, 'other@example.com')
})

t.test('a failed sign-in at a provider is shown on the page of its start, with next', async t => {
  const { open, browser } = await start(t)
  const signIn = await open(`${SIGN_IN}?next=/cart`)
  const login = signIn.links.find(link => link.startsWith('/auth/a/login')) ?? ''
  const callback = await leaveFor(browser, login, { subject: 'ada-at-a' })
  const failed = await open(callback.replace(/code=[^&]*/, 'code='))
  t.match(failed, { title: 'Sign in', alert: en.errors.provider_error, url: `${SIGN_IN}?next=%2Fcart&error=provider_error` })
})

t.test('what password.check says is shown, and the sentence of a length in each language', async t => {
  const { open, send } = await start(t, {}, { password: { minLength: 12, check: () => 'No <horses>, please.' } })
  const registration = await open('/auth/pages/register')
  t.match((await send(registration.forms[0], { email: ADA.email, password: 'correct horse' })).alert, 'No <horses>, please.')
  t.equal((await send(registration.forms[0], { email: ADA.email, password: 'short' })).alert, en.errors.weak_password)
})

t.test('with verify: first no page shows whether an address has an account', async t => {
  const { open, send, app, mails } = await start(t, {}, { registration: { verify: 'first' } })
  await app.auth.createUser({ email: 'taken@example.com', password: ADA.password })
  const answers = []
  for (const email of ['taken@example.com', ADA.email]) {
    const registration = await open('/auth/pages/register')
    t.strictSame(registration.forms[0]?.names.filter(name => !(name in (registration.forms[0]?.hidden ?? {}))), ['email'])
    answers.push((await send(registration.forms[0], { email })).html.replaceAll(email, ADA.email))
  }
  t.equal(answers[0], answers[1])
  const register = await open(linkOf((await mails.next('register')).url))
  t.match(register.title, 'Create an account')
  await send(register.forms[0], { name: 'Ada', password: ADA.password })
  t.match(await app.auth.findUser({ email: ADA.email }), { name: 'Ada', emailVerified: true })
})

t.test('the pages speak the language that the browser prefers, else the first one', async t => {
  const { open } = await start(t)
  for (const [accepted, texts] of [
    ['de-AT, en;q=0.5', de], ['fr', fr], ['es-MX', es], ['ar-EG', ar], ['ja-JP', ja], ['nl', en], ['en-GB, de', en]
  ] as const) {
    const page = await open(SIGN_IN, { 'accept-language': accepted })
    t.match(page, { lang: texts.language, title: texts.signIn.titleAt.replace('{name}', 'Shop') }, accepted)
  }
  const german = await start(t, {}, {}, new Pages({ name: 'Laden', languages: [de] }))
  t.match(await german.open(SIGN_IN, { 'accept-language': 'en' }), { lang: 'de', title: 'Bei Laden anmelden' })
  const rightToLeft = await start(t, {}, {}, new Pages({ name: 'Shop', languages: [{ ...en, language: 'ar', direction: 'rtl' }] }))
  t.match((await rightToLeft.open(SIGN_IN)).html, '<html lang="ar" dir="rtl">')
})

t.test('a signed-in user sees so on the sign-in page, and can go on or sign out', async t => {
  const { open, send, browser } = await start(t)
  await browser.post('/auth/local/register', ADA)
  const page = await open(`${SIGN_IN}?next=/cart`)
  t.match(page.text, /You are signed in as ada@example\.com/)
  t.strictSame(page.links, ['/cart'])
  t.match((await open(`${SIGN_IN}?next=//evil.example/`)).links, ['/'], 'next stays on this origin')
  t.match(await send(page.forms[0]), { url: `${SIGN_IN}?next=%2Fcart` })
})

t.test('only what is mounted is offered', async t => {
  const { open, browser, app } = await start(t, { providers: [] }, {
    sendMail: undefined, registration: false, accountRoutes: { sessionsEnd: false }
  })
  const page = await open(SIGN_IN)
  t.strictSame(page.links, [])
  for (const name of ['register', 'forgot-password', 'link-sent']) {
    t.equal((await browser.get(`/auth/pages/${name}`)).statusCode, 404, name)
  }
  await app.auth.createUser({ email: ADA.email, password: ADA.password })
  await browser.post('/auth/local/login', ADA)
  const account = await open('/auth/pages/account')
  t.strictSame(account.forms.map(({ action }) => action), ['/auth/logout', '/auth/pages/name', '/auth/logout'])
})

t.test('a page of a visitor who has to sign in leads to the sign-in page', async t => {
  const { open } = await start(t)
  t.match(await open('/auth/pages/account'), { url: `${SIGN_IN}?next=%2Fauth%2Fpages%2Faccount` })
  t.match(await open('/auth/pages/confirm?next=/cart'), { url: `${SIGN_IN}?next=%2Fcart` })
})

t.test('an unknown error code, and a message that is none, are a sentence of the language', async t => {
  const { open } = await start(t)
  t.equal((await open(`${SIGN_IN}?error=not_invited`)).alert, en.errors.other)
  t.equal((await open(`${SIGN_IN}?error=constructor`)).alert, en.errors.other)
  t.equal((await open(`${SIGN_IN}?done=%3Cb%3E`)).notice, null)
})

t.test('another device is signed out on the account page, and all of them', async t => {
  const { open, send, browser, app } = await start(t)
  await browser.post('/auth/local/register', ADA)
  const [phone, desk] = [new Browser(app), new Browser(app)]
  await phone.post('/auth/local/login', ADA, { 'user-agent': 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0) Version/18.0 Safari/604.1' })
  await desk.post('/auth/local/login', ADA, { 'user-agent': 'Mozilla/5.0 (Windows NT 10.0) Chrome/140.0 Safari/537.36 Edg/140.0' })

  const account = await open('/auth/pages/account')
  t.match(account.text, /Safari · iPhone Last used on/)
  t.match(account.text, /Edge · Windows Last used on/)
  t.match(account.html, /aria-label="Sign out on Safari · iPhone"/)
  t.equal((await send(account.formOf('/auth/local/sessions/end'))).notice, en.common.saved)
  const answers = await Promise.all([phone, desk].map(async device => (await device.get('/private')).statusCode))
  t.strictSame(answers.sort(), [200, 401], 'one of them')

  t.match(await send(account.forms.find(({ hidden }) => hidden.everywhere === 'on')), { url: SIGN_IN })
  for (const device of [browser, phone, desk]) t.equal((await device.get('/private')).statusCode, 401)
})

t.test('who removes the method by which they signed in stays on the account page', async t => {
  const { open, browser } = await start(t, { providers: [new OwnProvider('a')] })
  await browser.post('/auth/local/register', ADA)
  await linkAt(browser, 'a', { subject: 'ada-at-a' })
  t.equal((await browser.post('/auth/pages/unlink', { provider: 'local' })).statusCode, 204)

  for (const url of ['/auth/pages/account', '/auth/pages/confirm']) t.match(await open(url), { status: 200, url })
})

t.test('the only sign-in method stays, also for a form of one\'s own', async t => {
  const { browser, app } = await start(t)
  await browser.post('/auth/local/register', ADA)
  t.match((await browser.post('/auth/pages/unlink', { provider: 'local' })).json(), { statusCode: 409, code: 'last_link' })
  t.match((await browser.post('/auth/pages/unlink', { provider: 'google' })).json(), { statusCode: 404, code: 'not_found' })
  t.match((await new Browser(app).post('/auth/pages/unlink', { provider: 'local' })).json(), { code: 'unauthenticated' })
  t.match((await new Browser(app).post('/auth/pages/name', { name: 'Eve' })).json(), { code: 'unauthenticated' })
  t.match((await browser.post('/auth/pages/name', { name: '\ud800' })).json(), { code: 'invalid_request' })
  t.equal((await browser.post('/auth/pages/name', { name: ' ' })).statusCode, 204)
  t.match(await app.auth.findUser({ email: ADA.email }), { name: null })
  const referer = 'https://app.example/auth/pages/account'
  t.equal((await browser.submit('/auth/pages/name', { name: 'Eve' }, { referer, origin: 'https://evil.example' })).statusCode, 403)
})

t.test('another address at a released link is said to be another one', async t => {
  const { open, send, browser, mails } = await start(t)
  await browser.post('/auth/local/register', ADA)
  const page = await open(linkOf((await mails.next('verify-email')).url))
  const refused = await send(page.forms[1], { email: 'other@example.com' })
  t.match(refused, { status: 400, alert: en.errors.not_this_address })
})

t.test('a limit says how long to wait', async t => {
  const { open, send } = await start(t, { rateLimit: { login: 1 } })
  await send((await open(SIGN_IN)).forms[0], { email: ADA.email, password: ADA.password })
  const limited = await send((await open(SIGN_IN)).forms[0], { email: ADA.email, password: ADA.password })
  t.match(limited, { status: 429, alert: /^Too many attempts\. Try again in 15 minutes\.$/ })
})

t.test('a user without a password is asked for none, and may set one once their address is confirmed', async t => {
  const { open, send, browser, app } = await start(t)
  await signInAt(browser, 'a', { subject: 'ada-1', email: ADA.email })
  const account = await open('/auth/pages/account')
  const paths = ['set-password', 'change-email', 'delete-account'].map(name => `/auth/local/${name}`)
  for (const path of paths) t.notOk(account.formOf(path)?.names.includes('current') ?? true, path)

  const set = await send(account.formOf('/auth/local/set-password'), { password: NEW_PASSWORD })
  t.equal(set.notice, en.common.saved)
  t.equal((await new Browser(app).post('/auth/local/login', { email: ADA.email, password: NEW_PASSWORD })).statusCode, 200)

  await signInAt(browser, 'b', { subject: 'grace-1', email: 'grace@example.com', emailVerified: false })
  t.equal((await open('/auth/pages/account')).formOf('/auth/local/set-password'), undefined)
})

t.test('an application with providers alone has pages without passwords, and shows what there is of a user', async t => {
  const session = { secret: SESSION_SECRET, store: new SlowSessionStore() }
  const app = await startApp(t, {
    baseUrl: BASE_URL, providers: [new OwnProvider('a')], rateLimit: false, pages: new Pages({ name: 'Shop' }), session
  })
  const browser = new Browser(app)
  const open = async (path: string): Promise<ShownPage> => pageOf(await browser.get(path))
  t.match(await open(SIGN_IN), { status: 200, forms: [], links: [`/auth/a/login?error_next=${encodeURIComponent(SIGN_IN)}`] })
  for (const page of ['register', 'forgot-password', 'link-sent']) t.equal((await browser.get(`/auth/pages/${page}`)).statusCode, 404, page)
  t.equal((await browser.get('/auth/pages/confirm')).headers.location, SIGN_IN)

  await signInAt(browser, 'a', { subject: 'ada-1' })
  const userId = String(await userIdIn(browser))
  t.match((await open(SIGN_IN)).text, userId, 'a user without name and e-mail')
  const confirm = await open('/auth/pages/confirm')
  t.match(confirm.text, userId)
  t.strictSame(confirm.forms.map(({ action }) => action), ['/auth/logout'])
  const account = await open('/auth/pages/account')
  t.strictSame(account.forms.map(({ action }) => action), ['/auth/logout', '/auth/pages/name', '/auth/logout'], 'no list of devices, no password, no deletion')
  t.match(account.text, en.account.onlyMethod)
})

t.test('a user whom the application has created has their address as sign-in method', async t => {
  const app = await startApp(t, { baseUrl: BASE_URL, local: localProvider(), pages: new Pages({ name: 'Shop' }) })
  const { userId } = await app.auth.createUser({ email: ADA.email, emailVerified: true })
  const headers = await signedIn(app, { userId })

  const { text } = pageOf(await app.inject({ url: '/auth/pages/account', headers }))

  t.match(text, new RegExp(`${en.common.email} ${en.account.onlyMethod}`))
  t.notMatch(text, 'Application')
})

t.test('providers have their own label and picture on each page, and pages without one load none', async t => {
  const at = (label?: string, icon?: string) => new OidcProvider({
    name: 'entra-id', discoveryUrl: 'https://id.example/.well-known/openid-configuration', clientId: 'a', clientSecret: 'b', label, icon
  })
  const pageWith = async (provider: OidcProvider) => {
    const app = await startApp(t, { baseUrl: BASE_URL, providers: [provider], pages: new Pages({ name: 'Shop' }) })
    return app.inject('/auth/pages/sign-in')
  }

  const labelled = await pageWith(at('Our <Company>', '/company.svg?v=2&w=3'))
  t.match(labelled.body, '<img src="/company.svg?v=2&#38;w=3" alt="">Continue with Our &#60;Company&#62;</a>')
  t.match(labelled.headers['content-security-policy'], "; img-src 'self'")
  const plain = await pageWith(at())
  t.match(plain.body, '>Continue with Entra Id</a>')
  t.notMatch(plain.headers['content-security-policy'], 'img-src')
  for (const icon of ['https://id.example/logo.svg', 'logo.svg', '//id.example/logo.svg']) {
    t.throws(() => at('Company', icon), { name: 'OptionsError', message: /^entra-id: icon must be a path of this application/ })
  }
})

t.test('a form that is sent after its session has ended says so, and its page is behind the sign-in', async t => {
  const { open, send, browser } = await start(t)
  await browser.post('/auth/local/register', ADA)
  const account = await open('/auth/pages/account')
  await new Browser(browser.app, browser.cookies).post('/auth/logout')

  const refused = await send(account.formOf('/auth/pages/name'), { name: 'Countess' })
  t.match(refused, { status: 200, title: /Sign in/, alert: 'You were signed out. Nothing was saved.' })
  const again = await send(refused.forms[0], ADA)
  t.match(again, { url: '/auth/pages/account?open=name', open: [/^Name/] })
})

t.test('who never was signed in is not told that they were signed out', async t => {
  const { app, mails, browser } = await start(t)
  await browser.post('/auth/local/register', ADA)
  const { open, send } = readerOf(t, new Browser(app))
  const link = await open(linkOf((await mails.next('verify-email')).url))
  t.match(await send(link.forms[0], { password: '' }), { status: 401, alert: en.errors.unauthenticated })
})

t.test('a failure begins the title of its page, and its field is marked and has the focus', async t => {
  const { open, send, browser } = await start(t)
  const marked = (html: string): string[] =>
    Array.from(html.matchAll(/<input[^>]* aria-invalid="true" aria-describedby="failure" autofocus name="(\w+)"/g), ([, name = '']) => name)
  const titleOf = (html: string): string => /<title>([^<]*)/.exec(html)?.[1] ?? ''
  const page = await open('/auth/pages/register')
  t.match([titleOf(page.html), marked(page.html)], ['Create an account · Shop', []])
  for (const [typed, field, sentence] of [
    [{ email: 'ada', password: ADA.password }, 'email', en.errors.invalid_email],
    [{ email: ADA.email, password: 'short' }, 'password', en.errors.weak_password],
    [{ email: ADA.email, password: 'password' }, 'password', en.errors.common_password]
  ] as const) {
    const failed = await send(page.forms[0], typed)
    t.strictSame([titleOf(failed.html), marked(failed.html)], [`${sentence} · Create an account · Shop`, [field]])
    t.match(failed.html, `<p class="error" data-part="error" role="alert" id="failure">${sentence}</p>`)
  }

  await browser.post('/auth/local/register', ADA)
  const account = await open('/auth/pages/account')
  const failed = await send(account.formOf('/auth/local/change-password'), { current: 'wrong horse', password: NEW_PASSWORD })
  t.strictSame(marked(failed.html), ['current'], 'one, in the row that is open')
  t.match(failed.html, /<details open>(?:(?!<\/details>)[^])*aria-invalid/)
})

t.test('a code of the application marks no field, whatever it is called', async t => {
  const check = (): never => { throw Object.assign(new Error('Not today.'), { statusCode: 422, code: 'constructor' }) }
  const { open, send } = await start(t, {}, { password: { check } })
  const failed = await send((await open('/auth/pages/register')).forms[0], ADA)
  t.match(failed, { status: 422, alert: 'Not today.' })
  t.notMatch(failed.html, 'aria-invalid=')
})

t.test('no program translates names and addresses, and addresses of every script can be typed', async t => {
  const { open, send, browser } = await start(t)
  const { html } = await open('/auth/pages/register')
  t.match(html, 'type="text" inputmode="email" dir="ltr" autocapitalize="off" spellcheck="false" name="email"', 'browsers refuse jörg@ in type="email"')
  const email = 'jörg@xn--bcher-kva.example'
  const form = (await open('/auth/pages/register')).forms[0]
  t.equal((await send(form, { email: '\u202aJörg@bücher.example\u202c', password: ADA.password, name: 'Jörg' })).url, '/')
  t.match((await browser.get('/me')).json().principal.claims, { email, name: 'Jörg' })
  const account = await open('/auth/pages/account')
  t.match(account.html, '<bdi translate="no">jörg@bücher.example</bdi>')
  t.match(account.html, '<bdi translate="no">Jörg</bdi>')
})
