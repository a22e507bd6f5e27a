import t, { type Test } from 'tap'
import { type AuthPluginOptions, MemoryAuthStore } from '../../index.js'
import { Pages, type Texts, de, en, es, fr } from '../../pages.js'
import { SecondFactor } from '../../second-factor.js'
import type { Lies } from '../../../test/fakes/authenticator.js'
import { principalIn, userIdIn } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import { enrolAt, waitAt } from '../../../test/helpers/factor-app.js'
import { ADA, type MailApp, confirmAddress, registerAt } from '../../../test/helpers/mail-app.js'
import { addAt, newDevice, optionsAt, startPasskeyApp } from '../../../test/helpers/passkey-app.js'
import { type ShownPage, pageOf } from '../../../test/pages/page.js'

const MINUTE_MS = 60_000

async function start (t: Test, options: AuthPluginOptions = {}): Promise<MailApp> {
  return startPasskeyApp(t, { pages: new Pages({ name: 'Shop' }), ...options })
}

async function open (browser: Browser, path: string): Promise<{ source: string, policy: string, script: string | undefined }> {
  const { statusCode, body, headers } = await browser.get(path, { accept: 'text/html' })
  if (statusCode !== 200) throw new Error(`${path} answered ${statusCode} ${headers.location}`)
  const [, script] = /<script type="module" src="([^"]+)"><\/script>/.exec(body) ?? []
  return { source: body, policy: String(headers['content-security-policy']), script }
}

/** What the script of a page tells password managers. */
function signalOn (source: string, name: string): unknown {
  const [, json] = new RegExp(`data-signal-${name}="([^"]*)"`).exec(source) ?? []
  return json === undefined ? null : JSON.parse(json.replaceAll('&#34;', '"'))
}

t.test('a page with passkeys has their script, which its policy admits, and no other page does', async t => {
  const made = await start(t, { secondFactor: new SecondFactor({ issuer: 'Shop' }) })
  const { browser, app } = made
  await registerAt(made)
  const pages = async (browser: Browser, ...paths: string[]) => {
    return Promise.all(paths.map(async path => [path, await open(browser, path)] as const))
  }
  const without = [
    ...await pages(browser, '/auth/pages/account', '/auth/pages/confirm', '/auth/pages/sign-in'),
    ...await pages(new Browser(app), '/auth/pages/register', '/auth/pages/link-sent')
  ]
  for (const [path, { policy, script }] of without) {
    t.equal(script, undefined, path)
    t.notMatch(policy, /script-src|connect-src/, path)
  }

  await addAt(browser, newDevice())
  await enrolAt(t, browser)
  const waiting = new Browser(app)
  await waitAt(t, waiting)
  const scripts = [
    ...await pages(browser, '/auth/pages/account', '/auth/pages/confirm', '/auth/pages/factors'),
    ...await pages(new Browser(app), '/auth/pages/sign-in'),
    ...await pages(waiting, '/auth/local/second-factor')
  ]
  for (const [path, { source, policy, script }] of scripts) {
    t.match(script, /^\/auth\/local\/passkeys\/script\.js\?v=[0-9a-f]{16}$/, path)
    t.match(policy, /^default-src 'none'; .*; script-src 'self'; connect-src 'self'$/, path)
    t.match(source, /data-passkey=|data-signal-/, path)
  }
  t.equal(new Set(scripts.map(([, { script }]) => script)).size, 1)
})

t.test('the script is kept by browsers under the name that has its hash alone', async t => {
  const { browser } = await start(t)
  const { script = '' } = await open(browser, '/auth/pages/sign-in')

  const { statusCode, headers, body } = await browser.get(script)
  t.match([statusCode, headers], [200, {
    'content-type': 'text/javascript; charset=utf-8',
    'cache-control': 'public, max-age=31536000, immutable',
    'x-content-type-options': 'nosniff'
  }])
  t.match(body, 'data-passkey')
  for (const other of ['/auth/local/passkeys/script.js', '/auth/local/passkeys/script.js?v=0123456789abcdef', `${script}&v=1`]) {
    t.equal((await browser.get(other)).headers['cache-control'], 'no-store, no-transform', other)
  }
})

t.test('without the option no page has passkeys', async t => {
  const { browser } = await startPasskeyApp(t, { pages: new Pages({ name: 'Shop' }), passkeys: undefined })
  const { source, script } = await open(browser, '/auth/pages/sign-in')
  t.equal(script, undefined)
  t.notMatch(source, 'data-passkey=')
  t.equal((await browser.get('/auth/local/passkeys/script.js')).statusCode, 404)
})

t.test('a passkey that was removed is refused in the language of the page, which tells password managers of it', async t => {
  const { app, browser, ...made } = await start(t)
  await registerAt({ app, browser, ...made })
  const device = newDevice()
  const { id } = (await addAt(browser, device)).json()
  const refused = async (texts: Texts, lies: Lies = {}): Promise<ShownPage & { unknown: unknown }> => {
    const visitor = new Browser(app)
    const response = JSON.stringify(device.get(await optionsAt(visitor, 'login'), lies))
    const answer = await visitor.submit(
      '/auth/local/passkeys/login', { response, error_next: '/auth/pages/sign-in' }, { 'accept-language': texts.language }
    )
    return { ...pageOf(answer), unknown: signalOn(answer.body, 'unknown-credential') }
  }
  const forged = await refused(en, { clientData: { origin: 'https://evil.example' } })
  t.match(forged, { status: 401, alert: en.errors.passkey_refused, unknown: null }, 'a passkey that a user has stays')

  await browser.post('/auth/local/passkeys/remove', { id })

  for (const texts of [en, de, es, fr]) {
    t.match(await refused(texts), {
      status: 401, alert: texts.errors.unknown_passkey, unknown: { rpId: 'app.example', credentialId: id }
    }, texts.language)
  }
})

t.test('a response to a challenge that is gone has the script ask once more, and no second time', async t => {
  const made = await start(t)
  await registerAt(made)
  const device = newDevice()
  await addAt(made.browser, device)
  const visitor = new Browser(made.app)
  const old = JSON.stringify(device.get(await optionsAt(visitor, 'login')))
  for (let tabs = 0; tabs < 16; tabs++) await optionsAt(visitor, 'login')
  const send = async (fields: Record<string, string>) =>
    visitor.submit('/auth/local/passkeys/login', { error_next: '/auth/pages/sign-in', ...fields })

  const refused = await send({ response: old })
  t.match(pageOf(refused), { status: 400, alert: en.errors.invalid_state })
  t.match(refused.body, '<p class="error" data-part="error" role="alert" id="failure" data-passkey-again>')
  t.notMatch((await send({ response: old, again: 'on' })).body, 'data-passkey-again')
  t.notMatch((await visitor.get('/auth/pages/sign-in?error=invalid_state', { accept: 'text/html' })).body, 'data-passkey-again')
  const response = JSON.stringify(device.get(await optionsAt(visitor, 'login')))
  t.equal((await send({ response, again: 'on', next: '/cart' })).headers.location, '/cart')
})

t.test('a passkey that an account has is refused in words about it', async t => {
  const { browser } = await start(t)
  await browser.post('/auth/local/register', ADA)
  const device = newDevice()
  await addAt(browser, device)
  const response = JSON.stringify(newDevice({ id: device.id }).create(await optionsAt(browser, 'register')))
  const answer = await browser.submit('/auth/local/passkeys/register', { response, error_next: '/auth/pages/factors' })
  t.match(pageOf(answer), { status: 409, alert: en.errors.passkey_exists })
})

t.test('the page of the factors lists passkeys and tells password managers which there are', async t => {
  const made = await start(t)
  const { browser } = made
  await registerAt(made)
  const before = await open(browser, '/auth/pages/factors')
  const userId = Buffer.from(String(await userIdIn(browser)).replaceAll('-', ''), 'hex').toString('base64url')
  t.strictSame(signalOn(before.source, 'all-accepted-credentials'), { rpId: 'app.example', userId, allAcceptedCredentialIds: [] })
  t.match(before.source, 'data-passkey="register"')

  const { id } = (await addAt(browser, newDevice(), { name: 'Phone <1>' })).json()
  const { source } = await open(browser, '/auth/pages/factors')
  t.match(source, 'Phone &#60;1&#62;')
  t.strictSame(signalOn(source, 'all-accepted-credentials'), { rpId: 'app.example', userId, allAcceptedCredentialIds: [id] })
  const user = { rpId: 'app.example', userId, name: ADA.email, displayName: ADA.email }
  t.strictSame(signalOn(source, 'current-user-details'), user)
  t.strictSame(signalOn((await open(browser, '/auth/pages/account')).source, 'current-user-details'), user)

  const renamed = await browser.submit('/auth/local/passkeys/rename', { id, name: 'Key', next: '/auth/pages/factors' })
  t.equal(renamed.headers.location, '/auth/pages/factors')
  t.match((await open(browser, '/auth/pages/factors')).source, 'value="Key"')
})

t.test('attack 207: password managers are told no list of passkeys that failed to be read, or lacks some', async t => {
  const store = new MemoryAuthStore()
  const made = await start(t, { store })
  const { app, browser } = made
  await registerAt(made)
  const [phone, key] = [newDevice(), newDevice()]
  await addAt(browser, phone)
  const { id } = (await addAt(browser, key)).json()
  const factors = store.factors.bind(store)
  const signIn = async (fields: Record<string, string> = {}) => {
    const visitor = new Browser(app)
    const response = JSON.stringify(phone.get(await optionsAt(visitor, 'login')))
    return visitor.submit('/auth/local/passkeys/login', { response, error_next: '/auth/pages/sign-in', ...fields })
  }
  const page = async () => browser.get('/auth/pages/factors', { accept: 'text/html' })

  // As behind a policy that hides the rows, or with a table that was dropped.
  store.factors = async () => []
  const [incomplete, unknown] = [await page(), await signIn()]
  t.equal(incomplete.statusCode, 200)
  t.equal(signalOn(incomplete.body, 'all-accepted-credentials'), null)
  t.not(signalOn(incomplete.body, 'current-user-details'), null)
  t.match(pageOf(unknown), { status: 503, alert: en.errors.unavailable }, 'never a passkey that no user has')
  t.notMatch(unknown.body, 'data-signal-')

  store.factors = async () => { throw new Error('the database is away') }
  for (const answer of [await page(), await signIn()]) {
    t.equal(answer.statusCode, 503)
    t.notMatch(answer.body, 'data-signal-')
  }

  // As another tab adds a passkey after this one has read them.
  store.factors = async userId => (await factors(userId)).filter(factor => factor.id !== phone.id.toString('base64url'))
  const removed = await browser.post('/auth/local/passkeys/remove', { id })
  t.strictSame(removed.json().accepted, [phone.id.toString('base64url')], 'the list is what was written')

  store.factors = factors
  t.strictSame(Object(signalOn((await page()).body, 'all-accepted-credentials')).allAcceptedCredentialIds, removed.json().accepted)
  t.equal((await signIn({ next: '/cart' })).headers.location, '/cart')
})

t.test('a form whose options were refused leads to where the user signs in again', async t => {
  const made = await start(t)
  await registerAt(made)
  advanceClock(t, 11 * MINUTE_MS)
  const { headers: { location } } = await made.browser.submit('/auth/local/passkeys/register', {
    response: '{}', error_next: '/auth/pages/factors'
  })
  t.equal(location, '/auth/pages/confirm?next=%2Fauth%2Fpages%2Ffactors')
})

t.test('a user who needs a second factor adds a passkey on the page of that step, with the code from an e-mail', async t => {
  let isRequired = false
  const made = await start(t, { secondFactor: new SecondFactor({ issuer: 'Shop', required: () => isRequired }) })
  const token = await registerAt(made)
  await confirmAddress(made.browser, token)
  isRequired = true
  const browser = new Browser(made.app)
  await browser.post('/auth/local/login', ADA)
  const here = '/auth/local/totp?next=%2Fcart'
  const page = async () => pageOf(await browser.get(here, { accept: 'text/html' }))
  const options = (await page()).forms.find(({ action }) => action === '/auth/local/passkeys/options')
  t.strictSame(options?.hidden, { next: here, error_next: here, for: 'register' })
  t.notOk((await page()).forms.some(({ action }) => action === '/auth/local/passkeys/register'))

  const begun = await browser.submit('/auth/local/passkeys/options', { ...options?.hidden })
  t.strictSame([begun.statusCode, begun.headers.location], [303, here])

  const form = (await page()).forms.find(({ action }) => action === '/auth/local/passkeys/register')
  t.ok(form?.names.includes('mailCode'))
  const { code: mailCode } = await made.mails.next('enrolment')
  const response = JSON.stringify(newDevice().create(await optionsAt(browser, 'register')))
  const done = await browser.submit('/auth/local/passkeys/register', { ...form?.hidden, response, mailCode })
  t.strictSame([done.statusCode, done.headers.location], [303, '/cart'])
  t.equal((await principalIn(browser))?.claims.email, ADA.email)
})
