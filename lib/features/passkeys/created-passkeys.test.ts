/** Passkeys that a browser makes by itself after a sign-in by password. */
import t, { type Test } from 'tap'
import { type AuthPluginOptions, MemoryAuthStore } from '../../index.js'
import { Pages } from '../../pages.js'
import { SecondFactor } from '../../second-factor.js'
import type { Lies } from '../../../test/fakes/authenticator.js'
import { userIdIn } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { enrolAt } from '../../../test/helpers/factor-app.js'
import { ADA, BASE_URL, confirmAddress, registerAt } from '../../../test/helpers/mail-app.js'
import { addAt, newDevice, optionsAt, signInBy, startPasskeyApp } from '../../../test/helpers/passkey-app.js'

const SIGN_IN = '/auth/local/login'
const FORM = { ...ADA, createPasskey: 'on', next: '/cart?id=5' }
const SAME_ORIGIN = { referer: `${BASE_URL}/auth/pages/sign-in`, origin: BASE_URL }

/** What an authenticator says that nobody has touched. */
const SILENT: Lies = { flags: { up: false, uv: false } }

/** An application whose user Ada has a confirmed address and no factor. */
async function start (t: Test, options: AuthPluginOptions = {}, createOnSignIn = true) {
  const store = new MemoryAuthStore()
  const made = await startPasskeyApp(t, { pages: new Pages({ name: 'Shop' }), store, ...options }, {}, { createOnSignIn })
  await confirmAddress(made.browser, await registerAt(made))
  return { ...made, store, userId: await userIdIn(made.browser) ?? '' }
}

t.test('after a sign-in by password on the page, the browser makes a passkey by itself and goes on', async t => {
  const { app, mails, store, userId } = await start(t)
  const browser = new Browser(app)
  const page = await browser.get('/auth/pages/sign-in', { accept: 'text/html' })
  t.match(page.body, '<input type="hidden" name="createPasskey" value="on" data-passkey-create disabled>')

  const signedIn = await browser.submit(SIGN_IN, FORM, SAME_ORIGIN)
  t.match([signedIn.statusCode, signedIn.headers.location], [303, '/auth/pages/create-passkey?next=%2Fcart%3Fid%3D5'])
  const between = await browser.get(String(signedIn.headers.location), { accept: 'text/html' })
  t.match(between.body, /data-passkey="create".+name="next" value="\/cart\?id=5".+<a [^>]*href="\/cart\?id=5"/s)

  const options = await optionsAt(browser, 'create')
  t.match(options, { authenticatorSelection: { residentKey: 'required', userVerification: 'preferred' }, excludeCredentials: [] })
  const device = newDevice()
  const response = JSON.stringify(device.create(options, SILENT))
  const added = await browser.submit('/auth/local/passkeys/register', { response, next: '/cart?id=5' }, SAME_ORIGIN)
  t.match([added.statusCode, added.headers.location], [303, '/cart?id=5'])

  const { methods, secondFactor } = (await browser.get('/authentication')).json()
  t.match([methods, secondFactor], [[{ method: 'password' }], false], 'nobody has proven anything by it')
  await mails.next('factor-added')
  t.match(await app.auth.factors(userId), [{ kind: 'passkey', name: /^Passkey, / }])
  t.match(await store.factors(userId), [{ data: { userVerified: false } }], 'it is recorded as it was')
  t.equal((await signInBy(new Browser(app), device)).statusCode, 200)
  t.equal((await signInBy(new Browser(app), device, SILENT)).statusCode, 401, 'a sign-in takes the user')

  const again = await new Browser(app).submit(SIGN_IN, FORM, SAME_ORIGIN)
  t.equal(again.headers.location, '/cart?id=5', 'a user with a factor is not asked')
})

t.test('what failed is shown by the page between, which does not try again', async t => {
  const { app } = await start(t)
  const browser = new Browser(app)
  await browser.submit(SIGN_IN, FORM, SAME_ORIGIN)
  const response = JSON.stringify(newDevice().create(await optionsAt(browser, 'create'), { rpId: 'evil.example' }))

  const errorNext = '/auth/pages/create-passkey?next=%2Fcart'
  const refused = await browser.submit('/auth/local/passkeys/register', { response, next: '/cart', error_next: errorNext }, SAME_ORIGIN)

  t.match([refused.statusCode, refused.body], [401, /role="alert".+<a [^>]*href="\/cart"/s])
  t.notMatch(refused.body, 'data-passkey="create"')
})

t.test('a browser that cannot, a client of JSON and an application that does not ask for it go on as ever', async t => {
  const { app } = await start(t)
  for (const createPasskey of ['', 'off']) {
    t.equal((await new Browser(app).submit(SIGN_IN, { ...FORM, createPasskey }, SAME_ORIGIN)).headers.location, '/cart?id=5')
  }
  t.match((await new Browser(app).post(SIGN_IN, FORM)).json(), { provider: 'local' })
  const foreign = await new Browser(app).submit(SIGN_IN, { ...FORM, next: 'https://evil.example' }, SAME_ORIGIN)
  t.equal(foreign.headers.location, '/auth/pages/create-passkey?next=%2F')
  const between = await new Browser(app).get('/auth/pages/create-passkey?next=https://evil.example', { accept: 'text/html' })
  t.match(between.body, 'name="next" value="/"')

  for (const other of [await start(t, {}, false), await start(t, { pages: undefined })]) {
    const browser = new Browser(other.app)
    t.equal((await browser.submit(SIGN_IN, FORM, SAME_ORIGIN)).headers.location, '/cart?id=5')
    t.equal((await browser.get('/auth/pages/create-passkey')).statusCode, 404)
    t.notMatch((await new Browser(other.app).get('/auth/pages/sign-in', { accept: 'text/html' })).body, 'createPasskey')
  }
})

t.test('attack 147: nobody but a user who has just signed in begins to make a passkey in silence', async t => {
  const begin = async (browser: Browser) => {
    const { statusCode, body } = await browser.post('/auth/local/passkeys/options', { for: 'create' })
    return [statusCode, JSON.parse(body).code]
  }
  const { app, browser } = await start(t, { secondFactor: new SecondFactor({ issuer: 'Shop' }) })
  t.strictSame(await begin(new Browser(app)), [400, 'invalid_state'], 'a visitor')
  await enrolAt(t, browser)
  const withApp = new Browser(app)
  t.equal((await withApp.post(SIGN_IN, ADA)).statusCode, 401)
  t.strictSame(await begin(withApp), [400, 'invalid_state'], 'a sign-in that waits for a factor')

  const enrolling = await startPasskeyApp(t, { secondFactor: new SecondFactor({ issuer: 'Shop', required: () => true }) }, {}, { createOnSignIn: true })
  await enrolling.browser.post('/auth/local/register', ADA)
  t.strictSame(await begin(enrolling.browser), [400, 'invalid_state'], 'a sign-in that waits for an enrolment')

  const others = await start(t)
  await addAt(others.browser, newDevice())
  const byPassword = new Browser(others.app)
  await byPassword.post(SIGN_IN, ADA)
  t.strictSame(await begin(byPassword), [403, 'reauthenticate'], 'a user with a passkey who has not used it')

  t.strictSame(await begin((await start(t, {}, false)).browser), [400, 'invalid_state'], 'without the option')
})

t.test('attack 147: the challenge of any other ceremony takes a user who is there', async t => {
  const { browser, app, userId } = await start(t)
  for (const flags of [{ up: false, uv: true }, { up: true, uv: false }]) {
    t.equal((await addAt(browser, newDevice(), { lies: { flags } })).statusCode, 401)
  }
  const created = newDevice().create(await optionsAt(browser, 'create'), SILENT)
  t.equal((await browser.post('/auth/local/passkeys/login', { response: created })).statusCode, 400, 'and is for that ceremony alone')
  t.strictSame(await app.auth.factors(userId), [])
})
