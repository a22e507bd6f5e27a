/** What the pages of factors show, in each language and each state of an account. */
import t, { type Test } from 'tap'
import { Accounts, type AuthPluginOptions, MemoryAuthStore, type User } from '../../index.js'
import { Pages, ar, de, en, es, fr, ja } from '../../pages.js'
import { html, usernameField } from '../../core/pages/elements.js'
import { Passkeys } from '../../passkeys.js'
import { SecondFactor, type SecondFactorOptions } from '../../second-factor.js'
import { totp } from '../../testing.js'
import { SESSION_SECRET, startApp, userIdIn } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import { DATA_SECRET, nextCode, enrolAt, waitAt } from '../../../test/helpers/factor-app.js'
import { ADA, BASE_URL, type MailApp, confirmAddress, registerAt } from '../../../test/helpers/mail-app.js'
import { addAt, newDevice, proveBy, signInBy, startPasskeyApp } from '../../../test/helpers/passkey-app.js'
import { type Reader, type ShownPage, pageOf, readerOf } from '../../../test/pages/page.js'

const LANGUAGES = [en, de, es, fr, ar, ja]
const SIGN_IN = '/auth/pages/sign-in'
const FACTORS = '/auth/pages/factors'
const CONFIRM = '/auth/pages/confirm'
const SECOND_FACTOR = '/auth/local/second-factor'
const TOTP = '/auth/local/totp'
const ENROL = '/auth/local/totp/enroll'
const OPTIONS = '/auth/local/passkeys/options'
const REGISTER = '/auth/local/passkeys/register'
const MINUTE_MS = 60_000

async function start (
  t: Test, factor: Partial<SecondFactorOptions> = {}, options: AuthPluginOptions = {}
): Promise<MailApp & Reader> {
  const made = await startPasskeyApp(t, {
    secondFactor: new SecondFactor({ issuer: 'Shop', ...factor }), pages: new Pages({ name: 'Shop' }), ...options
  })
  return { ...made, ...readerOf(t, made.browser) }
}

/** Registers Ada, whose address is confirmed. */
async function confirmAt (made: MailApp): Promise<void> {
  const token = await registerAt(made)
  await confirmAddress(made.browser, token)
}

/** The text as it is written into HTML, without the values in braces. */
const piecesOf = (text: string): string[] => text.split(/\{\w+\}/).map(piece => html`${piece}`.source)
const count = (text: string, part: string): number => text.split(part).length - 1

/** The opening tag of a field. */
function inputOf ({ html }: ShownPage, name: string): string {
  return new RegExp(`<input [^>]*name="${name}"[^>]*>`).exec(html)?.[0] ?? ''
}

/** The form that the script uses for a ceremony. */
function passkeyFormOf ({ html }: ShownPage, ceremony: string): string {
  return new RegExp(`<form [^>]*data-passkey="${ceremony}"[^]*?</form>`).exec(html)?.[0] ?? ''
}

t.test('each text of the second factors is on a page in each language, and no page needs a script or style of its own', async t => {
  let isRequired = false
  const made = await start(t, { required: () => isRequired, trustedBrowser: { days: 30 } })
  const { browser, app } = made
  const shown = new Map<string, ShownPage[]>(LANGUAGES.map(({ language }) => [language, []]))
  const inEach = async (get: (headers: Record<string, string>) => ReturnType<Browser['get']>): Promise<void> => {
    for (const [language, pages] of shown) pages.push(pageOf(await get({ accept: 'text/html', 'accept-language': language })))
  }
  const show = async (path: string, reader = browser): Promise<void> => inEach(async headers => reader.get(path, headers))

  await confirmAt(made)
  await show(SIGN_IN, new Browser(app))
  await show(FACTORS)
  const device = newDevice()
  await addAt(browser, device, { name: 'Phone' })
  const lost = new Browser(app)
  await lost.post('/auth/local/login', ADA)
  await show(FACTORS, lost)
  await lost.post(ENROL, { lost: true })
  await show(`${TOTP}?lost=true`, lost)
  isRequired = true
  await app.auth.createUser({ email: 'bob@example.com', password: ADA.password })
  const enrolling = new Browser(app)
  await waitAt(t, enrolling, { ...ADA, email: 'bob@example.com' })
  await show(TOTP, enrolling)
  isRequired = false
  await proveBy(browser, device)
  await browser.post(ENROL)
  await show(TOTP)
  await enrolAt(t, browser)
  await inEach(async headers => browser.submit('/auth/local/recovery-codes', {}, headers))
  const { body } = await browser.get('/auth/pages/account', { accept: 'text/html' })
  t.match(body, 'Authenticator app · Passkey', 'no comma of one script')
  const waiting = new Browser(app)
  await waitAt(t, waiting)
  await show(SECOND_FACTOR, waiting)
  advanceClock(t, 11 * MINUTE_MS)
  await show(FACTORS)

  for (const { language, factors } of LANGUAGES) {
    const pages = shown.get(language) ?? []
    const all = pages.map(({ html }) => html.replace(/^[^]*<main [^>]*>/, '')).join('')
    for (const [name, text] of Object.entries(factors)) {
      for (const piece of piecesOf(text)) t.ok(all.includes(piece), `${language}: ${name}`)
    }
    t.notMatch(all, /\{\w+\}/)
    t.notMatch(all, /<script|<style|\sstyle=|\son\w+=/)
    t.ok(pages.every(({ lang, status }) => lang === language && status === 200))
  }
  for (const [language, words] of [
    ['en', '30 days'], ['de', '30 Tage'], ['fr', '30\u00a0jours'], ['es', '30 días'], ['ar', '30 يومًا'], ['ja', '30 日']
  ] as const) {
    t.ok(shown.get(language)?.some(({ html }) => html.includes(words)), words)
  }
})

t.test('one field takes the code of an app and a recovery code, in the way that browsers and phones know', async t => {
  let isRequired = false
  const made = await start(t, { required: () => isRequired })
  await confirmAt(made)
  isRequired = true
  const browser = new Browser(made.app)
  const { open, send } = readerOf(t, browser)
  await waitAt(t, browser)
  const scan = await send((await open(TOTP)).formOf(ENROL))
  t.match(inputOf(scan, 'code'), /autocomplete="one-time-code" required inputmode="numeric"/)
  t.match(inputOf(scan, 'mailCode'), /autocomplete="one-time-code" required inputmode="numeric"/)
  for (const text of [en.factors.mailCode, en.factors.mailText]) t.match(scan.text, text)

  isRequired = false
  const own = await made.send((await made.open(TOTP)).formOf(ENROL))
  t.equal(inputOf(own, 'mailCode'), '')
  const { secret } = await enrolAt(t, made.browser)
  t.ok(nextCode(t, secret))
  const waiting = new Browser(made.app)
  await waitAt(t, waiting)
  t.match(
    inputOf(await readerOf(t, waiting).open(SECOND_FACTOR), 'code'),
    / type="text" .*autocomplete="one-time-code" required inputmode="text" dir="ltr" autocapitalize="off" spellcheck="false"/
  )
})

t.test('a user with passkeys alone is not asked for a code, and a user without any is not offered one', async t => {
  let isRequired = false
  const made = await start(t, { required: () => isRequired, trustedBrowser: { days: 30 } })
  await confirmAt(made)
  const device = newDevice()
  await addAt(made.browser, device)
  isRequired = true
  const open = async (): Promise<ShownPage> => {
    const browser = new Browser(made.app)
    await waitAt(t, browser)
    return readerOf(t, browser).open(SECOND_FACTOR)
  }
  const passkeys = await open()
  t.equal(passkeys.forms.find(({ names }) => names.includes('code')), undefined)
  t.match(passkeyFormOf(passkeys, 'factor'), 'name="trust"', 'the browser can be trusted')

  await proveBy(made.browser, device)
  await enrolAt(t, made.browser)
  const both = await open()
  t.match(inputOf(both, 'trust'), 'type="checkbox"')
  t.notMatch(passkeyFormOf(both, 'factor'), 'name="trust"', 'the page asks once')

  await made.app.auth.resetFactors(String(await userIdIn(made.browser)))
  const enrol = await open()
  t.notMatch(enrol.html, 'data-passkey="factor"')
  t.ok(enrol.formOf('/auth/logout'))
})

t.test('a form for a passkey is hidden until a script shows it, and says so without scripts', async t => {
  const made = await start(t)
  const { browser, app, open } = made
  await registerAt(made)
  const enrol = await open(`${TOTP}?next=/cart`)
  await addAt(browser, newDevice())
  const confirm = await open(`${CONFIRM}?next=/cart`)
  const factors = await open(`${FACTORS}?next=/cart`)
  await enrolAt(t, browser)
  const waiting = new Browser(app)
  await waitAt(t, waiting)
  const visitor = readerOf(t, new Browser(app))
  for (const [page, ceremony, action] of [
    [await readerOf(t, waiting).open(`${SECOND_FACTOR}?next=/cart`), 'factor', SECOND_FACTOR],
    [factors, 'register', REGISTER],
    [enrol, 'register', REGISTER],
    [confirm, 'factor', '/auth/local/reauthenticate'],
    [await visitor.open(`${SIGN_IN}?next=/cart`), 'login', '/auth/local/passkeys/login']
  ] as const) {
    const form = passkeyFormOf(page, ceremony)
    t.ok(form.startsWith(`<form method="post" action="${action}" data-passkey="${ceremony}" data-options="${OPTIONS}" hidden>`), page.url)
    t.match(form, '<input type="hidden" name="response">')
    t.match(form, '<input type="hidden" name="next" value="/cart">')
    t.match(form, `<p class="error" data-part="error" role="alert" data-passkey-failed hidden>${en.factors.passkeyFailed}</p>`)
    t.equal(form.includes('data-passkey-exists hidden'), ceremony === 'register')
    t.notMatch(form, 'mailCode')
    t.match(page.html, `<p class="faint" data-passkey-missing hidden>${en.factors.passkeyMissing}</p>`)
    t.match(page.html, `<noscript><p class="faint">${en.factors.noScript}</p></noscript>`)
    t.match(page.html, '<script type="module" src="/auth/local/passkeys/script.js?v=')
  }
})

t.test('an authenticator app is added by its picture, by a link or by its key; without a picture, by the others', async t => {
  for (const issuer of ['Shop', 'Shop'.repeat(1000)]) {
    const made = await start(t, { issuer })
    await registerAt(made)
    const { html: page, links } = await made.send((await made.open(TOTP)).formOf(ENROL))
    t.equal(/<div class="qr" role="img" aria-label="([^"]*)"><svg [^>]*viewBox=/.exec(page)?.[1] ?? null, issuer === 'Shop' ? en.factors.qrCode : null)
    const { searchParams } = new URL(links[0] ?? '')
    t.match(links[0], /^otpauth:\/\/totp\/Shop/)
    t.match(page, `<code dir="ltr" translate="no">${searchParams.get('secret')?.replace(/.{4}(?!$)/g, '$& ')}</code>`)
  }
})

t.test('a user who has lost their passkeys sets up an app instead, with the code from an e-mail', async t => {
  const made = await start(t)
  const { app, mails } = made
  await confirmAt(made)
  await addAt(made.browser, newDevice())
  const browser = new Browser(app)
  const { open, send } = readerOf(t, browser)
  await browser.post('/auth/local/login', ADA)
  const [lost = ''] = (await open(`${FACTORS}?next=/cart`)).links.filter(link => link.includes('lost=true'))
  const enrol = await open(lost)
  t.match(enrol, { title: en.factors.setUp, links: [`${FACTORS}?next=%2Fcart`] })
  t.equal(passkeyFormOf(enrol, 'register'), '', 'a passkey takes the code too')
  t.match(enrol.formOf(OPTIONS)?.hidden, { next: lost, error_next: lost, lost: 'true', for: 'register' })

  const scan = await send(enrol.formOf(ENROL))
  const here = `${TOTP}?next=${encodeURIComponent(`${FACTORS}?next=%2Fcart`)}&lost=true`
  t.equal(scan.url, here)
  const form = scan.formOf('/auth/local/totp/confirm')
  t.match(form?.hidden, { next: `${FACTORS}?next=%2Fcart`, error_next: here, lost: 'true' })
  const { code: mailCode } = await mails.next('enrolment')
  const secret = String(new URL(scan.links[0] ?? '').searchParams.get('secret'))
  const wrong = await send(form, { code: totp(secret), mailCode: 'abcdef' })
  t.match(wrong, { status: 401, title: en.factors.setUp, alert: en.errors.invalid_code })
  const shown = await send(wrong.formOf('/auth/local/totp/confirm'), { code: totp(secret), mailCode })
  t.match(shown, { title: en.factors.recoveryTitle, links: [`${FACTORS}?next=%2Fcart`] })
  t.notMatch(shown.html, '<form')
})

t.test('the page shows what a user has, with what they can do about it', async t => {
  const made = await start(t)
  const { browser, open } = made
  await registerAt(made)
  const before = await open(FACTORS)
  t.ok(before.formOf(ENROL))
  t.notOk(before.formOf('/auth/local/totp/remove'))
  await enrolAt(t, browser)
  const phone = newDevice()
  await addAt(browser, phone, { name: 'Phone' })
  await addAt(browser, newDevice(), { name: 'Key' })
  await proveBy(browser, phone)

  const page = await open(FACTORS)
  const date = new Intl.DateTimeFormat('en', { dateStyle: 'long', timeZone: 'UTC' }).format(new Date())
  t.equal(count(page.text, `Added on ${date}`), 3)
  t.equal(count(page.text, `Last used on ${date}`), 2, 'the app and one passkey')
  t.match(page.text, 'Codes left: 10')
  t.equal(page.forms.filter(({ action }) => action === '/auth/local/passkeys/rename').length, 2)
  t.match(page.html, 'aria-label="Remove Phone"')
  t.match(page.html, 'aria-label="Rename: Phone"')
  t.match(page.html, 'name="name" autocomplete="off" value="Phone" required maxlength="64"')
  t.notOk(page.formOf(ENROL))
})

t.test('apps and passkeys are one list: what it is, since when, and last what to do with it', async t => {
  const made = await start(t)
  const { browser, open, send } = made
  await registerAt(made)
  await enrolAt(t, browser)
  const { id } = (await addAt(browser, newDevice(), { name: 'Phone' })).json()
  const page = await open(FACTORS)
  const items = Array.from(page.html.matchAll(/<li class="item" [^>]*>([^]*?)<\/li>/g), ([, item = '']) => item.replaceAll(/(?:\s*<[^>]*>\s*)+/g, '|'))
  t.equal(items.length, 2)
  t.match(items[0], /^\|Authenticator app\|Added on .* · Last used on .*\|Remove\|$/)
  t.match(items[1], /^\|Phone\|Passkey · Added on .*\|Rename\|.*\|Remove\|$/)

  const rename = page.forms.find(({ action }) => action === '/auth/local/passkeys/rename')
  const failed = await send(rename, { name: 'a'.repeat(1001) })
  t.match(failed, { status: 400, alert: en.errors.invalid_request })
  const kept = failed.forms.find(({ action, hidden }) => action === '/auth/local/passkeys/rename' && hidden.id === id)
  t.equal(kept?.values.name, 'a'.repeat(1001))
  t.match(failed.html, '<details class="names" open><summary class="button small"\n aria-label="Rename: Phone">')
})

t.test('a passkey without a name is shown by its id', async t => {
  const store = new MemoryAuthStore()
  const made = await start(t, {}, { store })
  await registerAt(made)
  const { id } = (await addAt(made.browser, newDevice())).json()
  const user = await made.app.auth.findUser({ email: ADA.email }) as User
  await new Accounts(store).changeFactors(user.userId, {
    generation: 0, endsSessions: false, change: factors => factors.map(factor => ({ ...factor, name: null }))
  })
  t.match((await made.open(FACTORS)).html, `<span class="what"><bdi translate="no">${id}</bdi> <small>`)
})

t.test('the page has no button for what this application does not have', async t => {
  const store = new MemoryAuthStore()
  const made = await start(t, {}, { store })
  await registerAt(made)
  const device = newDevice()
  await addAt(made.browser, device)
  await enrolAt(t, made.browser)
  const other = await start(t, {}, { store, secondFactor: undefined })
  await signInBy(other.browser, device)
  const page = await other.open(FACTORS)
  for (const text of [en.factors.app, 'Codes left: 10']) t.match(page.text, text)
  t.notMatch(page.html, /totp|recovery-codes/)

  const third = await start(t, {}, { store, passkeys: undefined })
  await waitAt(t, third.browser)
  const waiting = await third.open(SECOND_FACTOR)
  t.ok(waiting.formOf(SECOND_FACTOR))
  t.notMatch(waiting.html, /data-passkey=|noscript/)
})

t.test('the sign-in page offers passkeys where the application has them, in the field of the e-mail too', async t => {
  const session = { secret: SESSION_SECRET, remember: { days: 30 } }
  const { open } = await start(t, {}, { session })
  const page = await open(SIGN_IN)
  t.match(inputOf(await open('/auth/pages/register'), 'remember'), 'type="checkbox"')
  t.match(inputOf(page, 'email'), 'autocomplete="username webauthn"')
  t.match(passkeyFormOf(page, 'autofill'), `data-options="${OPTIONS}" hidden>`)
  t.equal(count(page.html, 'name="remember"'), 1, 'the page asks once')
  t.notMatch(passkeyFormOf(page, 'login'), 'name="remember"')

  const alone = await startApp(t, {
    baseUrl: BASE_URL, dataSecret: DATA_SECRET, passkeys: new Passkeys({ name: 'Shop' }), pages: new Pages({ name: 'Shop' }), session
  })
  const passkeysAlone = await readerOf(t, new Browser(alone)).open(SIGN_IN)
  t.match(passkeysAlone.html, 'name="remember"', 'the script sends it along')
  t.equal(passkeyFormOf(passkeysAlone, 'autofill'), '', 'there is no field')

  const without = await (await start(t, {}, { passkeys: undefined })).open(SIGN_IN)
  t.match(inputOf(without, 'email'), 'autocomplete="username"')
  t.notMatch(without.html, /data-passkey=|noscript/)
})

t.test('without a login page a user who leaves a sign-in that waits goes to the root', async t => {
  const made = await start(t, {}, { pages: undefined })
  await registerAt(made)
  await enrolAt(t, made.browser)
  const browser = new Browser(made.app)
  await waitAt(t, browser)
  t.equal((await readerOf(t, browser).open(SECOND_FACTOR)).formOf('/auth/logout')?.hidden.next, '/')
})

t.test('without an e-mail there is no field that names the user', async t => {
  t.equal(usernameField(en.common.email, null), false)
})

t.test('the account page leads to the page of the factors, where it is mounted', async t => {
  for (const options of [{}, { secondFactor: undefined, passkeys: undefined }]) {
    const made = await start(t, {}, options)
    await registerAt(made)
    t.equal((await made.open('/auth/pages/account')).links.includes(FACTORS), !('passkeys' in options))
    t.equal((await made.open(FACTORS)).status, 'passkeys' in options ? 404 : 200)
  }
})
