import t, { type Test } from 'tap'
import Fastify from 'fastify'
import authPlugin, { type AuthPluginOptions, MemoryAuthStore } from '../../index.js'
import { Pages } from '../../pages.js'
import { Passkeys } from '../../passkeys.js'
import { SESSION_SECRET, localProvider } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { enrolAda, nextCode, startFactorApp } from '../../../test/helpers/factor-app.js'
import { ADA, type MailApp, confirmAddress, registerAt, startMailApp } from '../../../test/helpers/mail-app.js'
import { signInAt } from '../../../test/helpers/own-provider.js'
import { addAt, newDevice, signInBy } from '../../../test/helpers/passkey-app.js'
import { STORES } from '../../../test/helpers/stores.js'

const NOTICES: AuthPluginOptions = { notices: { newBrowser: true }, pages: new Pages({ name: 'Shop' }) }
const YEAR_S = 400 * 24 * 60 * 60
const GRACE = { email: 'grace@example.com', password: 'a nanosecond of wire' }

const newBrowsers = async ({ app, mails }: Pick<MailApp, 'app' | 'mails'>): Promise<number> => {
  await app.auth.mailsSent()
  return mails.all.filter(({ kind }) => kind === 'new-browser').length
}

/** Ada, with a confirmed address, who has signed in nowhere. */
async function withAda (t: Test, options: AuthPluginOptions = {}): Promise<MailApp & { userId: string }> {
  const made = await startMailApp(t, { ...NOTICES, ...options })
  const { userId } = await made.app.auth.createUser({ ...ADA, emailVerified: true })
  return { ...made, userId }
}

async function login (browser: Browser, user = ADA, headers = {}): Promise<void> {
  const { statusCode, body } = await browser.post('/auth/local/login', user, headers)
  if (statusCode !== 200) throw new Error(body)
}

const known = (browser: Browser): string[] => browser.cookies.get('svc_known')?.split('.') ?? []

t.test('attack 208: the first sign-in is silent, one from another browser is told, with a link to the devices', async t => {
  const made = await withAda(t)
  const [laptop, phone] = [new Browser(made.app), new Browser(made.app)]
  await login(laptop)
  t.equal(await newBrowsers(made), 0)
  await login(laptop)
  t.equal(await newBrowsers(made), 0, 'the browser is known')

  await login(phone, ADA, { 'user-agent': 'Mozilla/5.0 (iPhone) Version/26 Safari/1', 'accept-language': 'de' })

  t.match(await made.mails.next('new-browser'), {
    to: ADA.email,
    userId: made.userId,
    url: null,
    accountUrl: 'https://app.example/auth/pages/account?open=devices',
    about: { userAgent: /iPhone/, language: 'de' }
  })
  await login(phone)
  t.equal(await newBrowsers(made), 1, 'the phone is known from then on')
})

t.test('the page of the account in a notice is that of the application, if it has one', async t => {
  const made = await withAda(t, { accountPage: '/me' })
  for (let browser = 0; browser < 2; browser++) await login(new Browser(made.app))
  t.equal((await made.mails.next('new-browser')).accountUrl, 'https://app.example/me')

  const bare = await withAda(t, { pages: undefined })
  for (let browser = 0; browser < 2; browser++) await login(new Browser(bare.app))
  t.equal((await bare.mails.next('new-browser')).accountUrl, null)
})

t.test('the cookie is for 400 days, hidden from scripts, renewed at each sign-in, and says nothing', async t => {
  const { app, userId } = await withAda(t)
  const browser = new Browser(app)
  for (let time = 0; time < 2; time++) {
    const { cookies } = await browser.post('/auth/local/login', ADA)
    t.match(cookies.find(({ name }) => name === 'svc_known'),
      { httpOnly: true, secure: true, sameSite: 'Lax', path: '/', maxAge: YEAR_S, value: /^[\w-]{16}$/ })
  }
  t.equal((await browser.get('/private')).cookies.some(({ name }) => name === 'svc_known'), false)
  t.notOk(known(browser).join().includes(userId.slice(0, 8)))
})

t.test('a browser is known for eight users, and the one who came first goes', async t => {
  const made = await withAda(t)
  const shared = new Browser(made.app)
  await login(shared)
  const [adas] = known(shared)
  for (let count = 1; count <= 8; count++) {
    const user = { email: `user${count}@example.com`, password: 'a password of theirs' }
    await made.app.auth.createUser({ ...user, emailVerified: true })
    await login(shared, user)
    t.equal(known(shared).length, Math.min(8, count + 1))
  }
  t.notOk(known(shared).includes(String(adas)))
  await login(shared)
  t.match(await made.mails.next('new-browser'), { to: ADA.email })
})

t.test('attack 208: a changed cookie, that of another user and that of another key do not make a browser known', async t => {
  const store = new MemoryAuthStore()
  const made = await withAda(t, { store })
  await made.app.auth.createUser({ ...GRACE, emailVerified: true })
  const [adas, graces] = [new Browser(made.app), new Browser(made.app)]
  await login(adas)
  await login(graces, GRACE)
  const [mark = ''] = known(adas)
  const changed = `${mark.slice(0, -1)}${mark.endsWith('A') ? 'B' : 'A'}`
  const elsewhere = await startMailApp(t, { ...NOTICES, store }, { secret: 'another secret of the tests, 32 and more' })
  const ofOtherKey = new Browser(elsewhere.app)
  await login(ofOtherKey)

  const values = [
    ...known(graces), ...known(ofOtherKey), changed, mark.slice(1), '', `${mark}x`, '....', 'x'.repeat(4000)
  ]
  for (const [index, value] of values.entries()) {
    const thief = new Browser(made.app, new Map([['svc_known', value]]))
    await login(thief)
    t.equal(await newBrowsers(made), index + 1, value.slice(0, 20))
    t.ok(known(thief).includes(mark), 'it is known from then on')
    t.ok(known(thief).every(other => other.length === 16), 'what is no mark goes')
  }
})

t.test('a rotated secret keeps browsers known, and the next sign-in marks them by the new one', async t => {
  const store = new MemoryAuthStore()
  const [old, fresh] = ['the old secret of the tests, 32 and more', 'the new secret of the tests, 32 and more']
  const before = await startMailApp(t, { ...NOTICES, store }, { secret: old })
  await before.app.auth.createUser({ ...ADA, emailVerified: true })
  const browser = new Browser(before.app)
  await login(browser)
  const after = await startMailApp(t, { ...NOTICES, store }, { secret: [fresh, old] })
  const moved = new Browser(after.app, new Map([['svc_known', String(browser.cookies.get('svc_known'))]]))
  await login(moved)

  t.equal(await newBrowsers(after), 0)
  t.equal(known(moved).length, 1)
  t.not(known(moved)[0], known(browser)[0])
})

/** The ways of signing in, each in a browser that the user has not used. */
const WAYS: Record<string, (made: MailApp, browser: Browser) => Promise<unknown>> = {
  password: async (_made, browser) => login(browser),
  provider: async (_made, browser) => signInAt(browser, 'a', { subject: 'ada-at-a', email: ADA.email }),
  async mail ({ mails }, browser) {
    await browser.post('/auth/local/mail-login', { email: ADA.email })
    const { code } = await mails.next('sign-in')
    return browser.post('/auth/local/mail-login/confirm', { code })
  }
}

for (const [way, signIn] of Object.entries(WAYS)) {
  t.test(`a sign-in by ${way} from a new browser is told, and makes the browser known`, async t => {
    const made = await startMailApp(t, { ...NOTICES, rateLimit: {} }, { signInByMail: true, mails: { limits: false } })
    const { userId } = await made.app.auth.createUser({ ...ADA, emailVerified: true })
    await login(made.browser)
    const browser = new Browser(made.app)
    await signIn(made, browser)
    t.match(await browser.get('/private'), { statusCode: 200 })
    t.match(await made.mails.next('new-browser'), { userId })
    t.equal(known(browser).length, 1)
  })
}

t.test('a sign-in in a route of the application from a new browser is told', async t => {
  const app = Fastify()
  t.teardown(() => app.close())
  const kinds: string[] = []
  await app.register(authPlugin, {
    baseUrl: 'https://app.example',
    notices: { newBrowser: true },
    session: { secret: SESSION_SECRET },
    local: localProvider({ sendMail: ({ kind }) => { kinds.push(kind) } })
  })
  const { userId } = await app.auth.createUser({ ...ADA, emailVerified: true })
  app.post('/own-sign-in', async request => app.auth.signIn(request, userId))
  for (let count = 0; count < 2; count++) {
    const browser = new Browser(app)
    await browser.post('/own-sign-in', {})
    t.equal(known(browser).length, 1)
  }
  await app.auth.mailsSent()
  t.strictSame(kinds, ['new-browser'])
})

t.test('attack 208: with a second factor, the browser is told of and known once the factor was sent', async t => {
  const made = await startFactorApp(t, {}, NOTICES)
  const { secret } = await enrolAda(t, made)
  await made.app.auth.mailsSent()
  const before = await newBrowsers(made)
  const browser = new Browser(made.app)
  t.equal((await browser.post('/auth/local/login', ADA)).statusCode, 401)
  t.equal(await newBrowsers(made), before)
  t.strictSame(known(browser), [], 'a password alone marks nothing')

  t.equal((await browser.post('/auth/local/second-factor', { code: nextCode(t, secret) })).statusCode, 200)

  t.equal(await newBrowsers(made), before + 1)
  t.equal(known(browser).length, 1)
})

t.test('a sign-in by passkey from a new browser is told', async t => {
  const made = await startFactorApp(t, {}, { ...NOTICES, passkeys: new Passkeys({ name: 'Shop' }) })
  await made.app.auth.createUser({ ...ADA, emailVerified: true })
  await login(made.browser)
  const device = newDevice()
  await addAt(made.browser, device)
  const browser = new Browser(made.app)
  t.equal((await signInBy(browser, device)).statusCode, 200)
  t.equal(await newBrowsers(made), 1)
  t.equal(known(browser).length, 1)
})

t.test('a registration is silent and marks its browser; the next browser is told', async t => {
  const made = await startMailApp(t, NOTICES)
  const token = await registerAt(made)
  t.equal(known(made.browser).length, 1)
  await confirmAddress(made.browser, token)
  await login(new Browser(made.app))
  t.equal(await newBrowsers(made), 1)
})

t.test('a wrong password, a blocked user and a sign-in that onSignIn refuses mark nothing', async t => {
  const made = await withAda(t, { async onSignIn ({ request }) { if (request.headers['x-refused']) throw new Error('no') } })
  const browser = new Browser(made.app)
  await browser.post('/auth/local/login', { ...ADA, password: 'a wrong password' })
  await browser.post('/auth/local/login', ADA, { 'x-refused': '1' })
  await made.app.auth.block(made.userId)
  await browser.post('/auth/local/login', ADA)
  t.strictSame(known(browser), [])
  await made.app.auth.unblock(made.userId)
  await login(browser)
  t.equal(await newBrowsers(made), 0, 'none of them was the first')
})

t.test('a request that is sent twice is told once, and both answers make the browser known', async t => {
  const made = await withAda(t)
  await login(new Browser(made.app))
  const first = new Browser(made.app)
  // The session by whose cookie the second one is known.
  await first.get('/auth/a/login')
  const second = new Browser(made.app, first.cookies)
  await Promise.all([first, second].map(browser => browser.post('/auth/local/login', ADA)))

  t.equal(await newBrowsers(made), 1)
  for (const browser of [first, second]) t.equal(known(browser).length, 1)
})

for (const [name, makeStore] of Object.entries(STORES)) {
  t.test(`with ${name}, two first sign-ins at one time are told of as one first and one other`, async t => {
    const made = await withAda(t, { store: await makeStore(t) })
    await Promise.all([login(new Browser(made.app)), login(new Browser(made.app))])
    t.equal(await newBrowsers(made), 1)
  })
}

/** A store that counts the changes of accounts. */
class CountingStore extends MemoryAuthStore {
  changes = 0
  override change: MemoryAuthStore['change'] = (...asked) => {
    this.changes++
    return MemoryAuthStore.prototype.change.apply(this, asked) as never
  }
}

t.test('a sign-in without the option, and one in a known browser, costs no statement more; others cost one', async t => {
  const costOf = async (options: AuthPluginOptions): Promise<number[]> => {
    const store = new CountingStore()
    const { app } = await withAda(t, { ...options, store })
    const costs = []
    const browser = new Browser(app)
    for (const at of [browser, browser, new Browser(app)]) {
      const before = store.changes
      await login(at)
      costs.push(store.changes - before)
    }
    return costs
  }
  t.strictSame(await costOf({ notices: undefined }), [0, 0, 0])
  t.strictSame(await costOf({}), [1, 0, 1])
})

t.test('a store that fails after the sign-in does not fail it, and the next sign-in tries again', async t => {
  const store = new CountingStore()
  const { app } = await withAda(t, { store })
  const browser = new Browser(app)
  const { change } = store
  store.change = async () => { throw new Error('gone') }
  await login(browser)
  t.strictSame(known(browser), [])
  store.change = change
  await login(browser)
  t.equal(known(browser).length, 1)
})

t.test('the option needs mails that send notices, and nothing else is taken for it', async t => {
  const mistakes: Array<[object, RegExp]> = [
    [{ local: localProvider() }, /^notices\.newBrowser needs sendMail of the LocalIdentityProvider/],
    [{}, /^notices\.newBrowser needs sendMail/],
    [{ local: localProvider({ sendMail () {}, mails: { notices: false } }) }, /^notices\.newBrowser needs notices/],
    [{ notices: true }, /^notices must be/],
    [{ notices: { newBrowser: 'on' } }, /^notices\.newBrowser must be true or false/],
    [{ notices: { newDevice: true } }, /^notices has no option "newDevice"/]
  ]
  for (const [options, message] of mistakes) {
    const given = { baseUrl: 'https://app.example', session: { secret: SESSION_SECRET }, notices: { newBrowser: true }, ...options }
    await t.rejects(async () => Fastify().register(authPlugin, given as AuthPluginOptions), { message })
  }
})
