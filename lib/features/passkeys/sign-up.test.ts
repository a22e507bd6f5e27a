/** Registration with a passkey alone. */
import t, { type Test } from 'tap'
import {
  type AuthPluginOptions, LocalIdentityProvider, type LocalIdentityProviderOptions, MemoryAuthStore, SignInRefused
} from '../../index.js'
import { USED_REGISTRATION, capabilitiesOf } from '../../session/store.js'
import { Pages, de, en, es, fr } from '../../pages.js'
import { SecondFactor } from '../../second-factor.js'
import type { Lies, SoftwareAuthenticator } from '../../../test/fakes/authenticator.js'
import { LOCAL_SECRET, localProvider, startApp, userIdIn } from '../../../test/helpers/app.js'
import { eventsOf } from '../../../test/helpers/audit-events.js'
import { Browser } from '../../../test/helpers/browser.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import { deferred } from '../../../test/helpers/deferred.js'
import { ADA, BASE_URL, type MailApp, NEW_PASSWORD, resetTokenOf } from '../../../test/helpers/mail-app.js'
import { addAt, newDevice, optionsAt, signInBy, startPasskeyApp } from '../../../test/helpers/passkey-app.js'
import { STORES } from '../../../test/helpers/stores.js'
import { pageOf } from '../../../test/pages/page.js'

const REGISTER = '/auth/local/register'
const OPTIONS = '/auth/local/passkeys/options'
const MINUTE_MS = 60_000

/** An application of passkeys and mails, without passwords. */
const WITHOUT_PASSWORDS: LocalIdentityProviderOptions = {
  registration: { passkey: true, roles: ['member'] }, password: false, signInByMail: true, mails: { limits: false }
}

/** Codes need limits, here wide ones. */
const LIMITS = { register: 1000, mail: 1000, factor: 1000, challenge: 1000, code: 1000 }

async function start (
  t: Test, options: AuthPluginOptions = {}, local: LocalIdentityProviderOptions = {}
): Promise<MailApp> {
  return startPasskeyApp(t, { rateLimit: LIMITS, ...options }, { ...WITHOUT_PASSWORDS, ...local })
}

async function tokenFor ({ app, mails }: MailApp, email = ADA.email): Promise<string> {
  await new Browser(app).post(REGISTER, { email })
  return (await mails.next('register')).token
}

/** The options for the passkey of the user of a link. */
async function begin (browser: Browser, token: string): Promise<Record<string, unknown>> {
  const answer = await browser.post(OPTIONS, { for: 'register', token })
  if (answer.statusCode !== 200) throw new Error(`options answered ${answer.statusCode} ${answer.body}`)
  return answer.json()
}

async function signUpAt (
  browser: Browser, token: string, device: SoftwareAuthenticator, { lies, ...fields }: { lies?: Lies, [name: string]: unknown } = {}
) {
  const response = device.create(await begin(browser, token), lies)
  return browser.post(REGISTER, { token, response, ...fields })
}

const codeOf = (answer: { statusCode: number, json: () => { code?: string } }) => [answer.statusCode, answer.json().code]

for (const kind of ['memory', 'SQLite', 'Postgres'] as const) {
  t.test(`a registration with a passkey alone with ${kind}`, async t => {
    t.test('the link of the mail with a passkey makes a verified user with that passkey, and signs them in', async t => {
      const [registrations, signIns] = [eventsOf(t, 'registration'), eventsOf(t, 'sign-in')]
      const made = await start(t, { store: await STORES[kind](t) })
      const { app, browser } = made
      const token = await tokenFor(made)
      t.equal(await app.auth.findUser({ email: ADA.email }), null)

      const options = await begin(browser, token)
      t.match(options, {
        user: { name: ADA.email },
        excludeCredentials: [],
        authenticatorSelection: { residentKey: 'required', userVerification: 'required' }
      })
      const device = newDevice()
      const answer = await browser.post(REGISTER, { token, response: device.create(options), name: ' Ada ', role: 'member' })

      t.equal(answer.statusCode, 201)
      t.match(answer.json(), { provider: 'application', claims: { email: ADA.email, email_verified: true, name: 'Ada', role: 'member' } })
      const { userId } = answer.json()
      t.match(await app.auth.findUser({ userId }), { email: ADA.email, emailVerified: true, name: 'Ada', claims: { role: 'member' } })
      t.equal(Object(await app.auth.findUser({ userId })).isNew, undefined)
      t.match(await app.auth.factors(userId), [{ kind: 'passkey', name: /^Passkey, / }])
      t.match(await app.auth.links(userId), [{ provider: 'application', subject: userId }])
      t.match((await browser.get('/authentication')).json(), { methods: [{ method: 'passkey' }], secondFactor: true })
      t.equal((await browser.get('/recent')).statusCode, 200)

      const other = new Browser(app)
      t.equal((await signInBy(other, device)).statusCode, 200)
      t.equal(await userIdIn(other), userId)
      t.match(registrations, [{ userId, provider: 'application' }])
      t.match(signIns, [{ userId, methods: ['passkey'] }, { userId, methods: ['passkey'] }])
    })

    t.test('attack 205: one link that is finished many times at once makes one user with one passkey', async t => {
      const made = await start(t, { store: await STORES[kind](t) })
      const { app } = made
      const token = await tokenFor(made)
      const begun = await Promise.all(Array.from({ length: 5 }, async () => {
        const [browser, device] = [new Browser(app), newDevice()]
        return { browser, device, response: device.create(await begin(browser, token)) }
      }))

      const answers = await Promise.all(begun.map(async ({ browser, response }) => browser.post(REGISTER, { token, response })))

      t.equal(answers.filter(({ statusCode }) => statusCode === 201).length, 1)
      t.ok(answers.every(({ statusCode }) => [201, 401, 409].includes(statusCode)), 'taken, or the link was used')
      const { userId } = Object(await app.auth.findUser({ email: ADA.email }))
      t.equal((await app.auth.factors(userId)).length, 1)
      const signedIn = await Promise.all(begun.map(async ({ device }) => signInBy(new Browser(app), device)))
      t.strictSame(signedIn.map(({ statusCode }) => statusCode), answers.map(({ statusCode }) => statusCode === 201 ? 200 : 401))
      t.strictSame(codeOf(await new Browser(app).post(OPTIONS, { for: 'register', token })), [401, 'invalid_token'])

      await app.auth.deleteUser(userId)
      const [late] = begun.filter((_, index) => answers[index]?.statusCode !== 201)
      t.match(codeOf(await late?.browser.post(REGISTER, { token, response: late.response }) ?? Object({})), [401])
      t.equal(await app.auth.findUser({ email: ADA.email }), null, 'the link makes no second account')
    })

    t.test('attack 205: with an address that is taken meanwhile nothing is written', async t => {
      const store = await STORES[kind](t)
      const made = await start(t, { store })
      const { app, browser } = made
      const token = await tokenFor(made)
      const response = newDevice().create(await begin(browser, token))
      const taken = await app.auth.createUser({ email: ADA.email, emailVerified: true })

      t.strictSame(codeOf(await browser.post(REGISTER, { token, response })), [409, 'exists'])
      t.strictSame(codeOf(await browser.post(OPTIONS, { for: 'register', token })), [409, 'exists'], 'before a passkey is made')
      t.strictSame(await app.auth.factors(taken.userId), [])
      t.equal(await userIdIn(browser), null)

      await app.auth.deleteUser(taken.userId)
      t.equal((await signUpAt(browser, token, newDevice())).statusCode, 201, 'the link was not used')
    })

    t.test('the passkey of another user is refused, and makes no user', async t => {
      const made = await start(t, { store: await STORES[kind](t) })
      const device = newDevice()
      await signUpAt(made.browser, await tokenFor(made), device)

      const other = new Browser(made.app)
      const token = await tokenFor(made, 'grace@example.com')
      const refused = await signUpAt(other, token, newDevice({ id: device.id }))

      t.match([refused.statusCode, refused.json()], [409, { code: 'exists', message: /passkey/ }])
      t.equal(await made.app.auth.findUser({ email: 'grace@example.com' }), null)
      t.equal((await signUpAt(other, token, newDevice())).statusCode, 201)
    })

    t.test('a user whom onSignIn refuses leaves no trace, and the link works again', async t => {
      let isOpen = false
      const store = await STORES[kind](t)
      const made = await start(t, { store, onSignIn () { if (!isOpen) throw new SignInRefused('closed') } })
      const { app, browser } = made
      const [token, device] = [await tokenFor(made), newDevice()]

      t.strictSame(codeOf(await signUpAt(browser, token, device)), [403, 'closed'])
      t.equal(await app.auth.findUser({ email: ADA.email }), null)
      isOpen = true
      t.equal((await signUpAt(browser, token, device)).statusCode, 201)
    })
  })
}

t.test('a request that comes too late for a link leaves no mark on it: the user of the other one may be refused', async t => {
  const [asked, refusal, held, goOn] = [deferred(), deferred(), deferred(), deferred()]
  const store = new MemoryAuthStore()
  let isOpen = false
  const made = await start(t, {
    store,
    async onSignIn () {
      if (isOpen) return
      asked.resolve()
      await refusal.promise
      throw new SignInRefused('closed')
    }
  })
  const token = await tokenFor(made)
  const other = new Browser(made.app)
  const [late, early] = [newDevice().create(await begin(made.browser, token)), newDevice().create(await begin(other, token))]
  const { entries } = capabilitiesOf(store)
  if (entries === null) throw new Error('the store has no entries')
  const put = entries.put.bind(entries)
  entries.put = async (entry, most) => {
    if (entry.kind === USED_REGISTRATION) {
      entries.put = put
      held.resolve()
      await goOn.promise
    }
    return put(entry, most)
  }

  const first = made.browser.post(REGISTER, { token, response: late })
  await held.promise
  const second = other.post(REGISTER, { token, response: early })
  await asked.promise
  goOn.resolve()
  t.strictSame(codeOf(await first), [409, 'exists'])
  refusal.resolve()
  t.strictSame(codeOf(await second), [403, 'closed'])
  isOpen = true
  t.equal((await signUpAt(other, token, newDevice())).statusCode, 201)
})

t.test('attack 206: the passkey of a new user is made by a user who is there and verified', async t => {
  const made = await start(t)
  const { app, browser } = made
  const token = await tokenFor(made)
  const refusedLies: Lies[] = [
    { flags: { up: false, uv: false } }, { flags: { up: false, uv: true } }, { flags: { up: true, uv: false } },
    { clientData: { origin: 'https://evil.example' } }, { clientData: { topOrigin: BASE_URL } }, { rpId: 'evil.example' },
    { clientData: { type: 'webauthn.get' } }
  ]
  for (const lies of refusedLies) {
    t.strictSame(codeOf(await signUpAt(browser, token, newDevice(), { lies })), [401, 'invalid'], JSON.stringify(lies))
  }
  t.equal(await app.auth.findUser({ email: ADA.email }), null)
  t.equal((await signUpAt(browser, token, newDevice())).statusCode, 201, 'the link was not used')
})

t.test('attack 206: a challenge works once, for its link, its session and its ceremony', async t => {
  const made = await start(t)
  const { app, browser } = made
  const [token, ofGrace] = [await tokenFor(made), await tokenFor(made, 'grace@example.com')]
  const refused = async (by: Browser, response: unknown, used = token) =>
    t.strictSame(codeOf(await by.post(REGISTER, { token: used, response })), [400, 'invalid_state'])
  const create = async () => newDevice().create(await begin(browser, token))

  await refused(new Browser(app), await create())
  await refused(browser, await create(), ofGrace)
  const wrong = newDevice().create(await begin(browser, token), { rpId: 'evil.example' })
  t.equal((await browser.post(REGISTER, { token, response: wrong })).statusCode, 401)
  await refused(browser, { ...wrong, response: { ...wrong.response, transports: [] } })
  const response = await create()
  advanceClock(t, 6 * MINUTE_MS)
  await refused(browser, response)

  const device = newDevice()
  await signUpAt(browser, token, device)
  const other = newDevice().create(await begin(browser, ofGrace))
  t.strictSame(codeOf(await browser.post('/auth/local/passkeys/register', { response: other })), [400, 'invalid_state'])
  const own = newDevice().create(await optionsAt(browser, 'register'))
  await refused(browser, own, ofGrace)
  t.equal((await app.auth.factors(String(await userIdIn(browser)))).length, 1)
  t.equal(await app.auth.findUser({ email: 'grace@example.com' }), null)
})

t.test('a form that is sent twice gets the outcome of the first one', async t => {
  const made = await start(t)
  const { browser } = made
  const token = await tokenFor(made)
  const fields = { token, response: JSON.stringify(newDevice().create(await begin(browser, token))), next: '/cart' }
  const twin = new Browser(made.app, new Map(browser.cookies))

  const [first, second] = await Promise.all([browser.submit(REGISTER, fields), twin.submit(REGISTER, fields)])

  t.match([first, second].map(({ statusCode, headers }) => [statusCode, headers.location]), [[303, '/cart'], [303, '/cart']])
  t.equal(await userIdIn(twin) ?? await userIdIn(browser), (await made.app.auth.findUser({ email: ADA.email }))?.userId)
})

t.test('an address gets the same answer whether or not an account has it, and nothing works without a link', async t => {
  const made = await start(t)
  await signUpAt(made.browser, await tokenFor(made), newDevice())
  const answers = await Promise.all([ADA.email, 'grace@example.com'].map(async email =>
    new Browser(made.app).post(REGISTER, { email })))
  t.strictSame(answers.map(({ statusCode, body, headers }) => [statusCode, body, headers['set-cookie']]), [[202, '', undefined], [202, '', undefined]])
  await made.mails.next('exists')

  const visitor = new Browser(made.app)
  const token = (await made.mails.next('register')).token
  for (const forged of ['', 'x', `${token}x`]) {
    t.equal((await visitor.post(OPTIONS, { for: 'register', token: forged })).statusCode, 401, forged)
    t.equal((await visitor.post(REGISTER, { token: forged, response: '{}' })).statusCode, 401, forged)
  }
  t.equal((await visitor.post(OPTIONS, { for: 'register' })).statusCode, 401, 'without a token')
  for (const fields of [
    { email: ADA.email, response: '{}' }, { token }, { token, response: '' }, { token, password: ADA.password },
    { token, response: '{}', password: ADA.password }, { token, response: '{}' }, {}
  ]) t.strictSame(codeOf(await visitor.post(REGISTER, fields)), [400, 'invalid_request'], JSON.stringify(fields))
  const response = newDevice().create(await begin(visitor, token))
  t.strictSame(codeOf(await visitor.post(REGISTER, { token, response, role: 'admin' })), [403, 'claim_not_allowed'])
})

t.test('without the option, a token begins no passkey of a new user, and a passkey does not register', async t => {
  const made = await start(t, {}, { registration: { verify: 'first' }, password: true })
  const token = await tokenFor(made)
  t.equal((await made.browser.post(OPTIONS, { for: 'register', token })).statusCode, 401)
  t.strictSame(codeOf(await made.browser.post(REGISTER, { token, response: '{}' })), [400, 'invalid_request'])
  const { html } = pageOf(await made.browser.get(`${REGISTER}?token=${token}`, { accept: 'text/html' }))
  t.notMatch(html, /data-passkey=|<script/)
})

t.test('a user without a password who has lost the passkey signs in by mail, or sets a first password', async t => {
  const made = await start(t)
  await signUpAt(made.browser, await tokenFor(made), newDevice())
  const userId = await userIdIn(made.browser)
  const other = new Browser(made.app)
  await other.post('/auth/local/mail-login', { email: ADA.email })
  const { code } = await made.mails.next('sign-in')
  t.equal((await other.post('/auth/local/mail-login/confirm', { code })).json().userId, userId)
  t.equal((await made.app.auth.factors(String(userId))).length, 1, 'the address was proven at the registration')

  const both = await start(t, {}, { password: true })
  await signUpAt(both.browser, await tokenFor(both), newDevice())
  const token = await resetTokenOf(both)
  t.equal((await new Browser(both.app).post('/auth/local/reset-password', { token, password: NEW_PASSWORD })).statusCode, 204)
  const byPassword = new Browser(both.app)
  t.equal((await byPassword.post('/auth/local/login', { email: ADA.email, password: NEW_PASSWORD })).statusCode, 200)
  t.equal((await both.app.auth.factors(String(await userIdIn(byPassword)))).length, 1)
})

t.test('a new user with a passkey satisfies a required second factor', async t => {
  const made = await start(t, { secondFactor: new SecondFactor({ issuer: 'Shop', required: () => true }) })
  t.equal((await signUpAt(made.browser, await tokenFor(made), newDevice())).statusCode, 201)
  t.equal((await addAt(made.browser, newDevice())).statusCode, 201, 'another one is added at once')
})

t.test('the page behind the link makes a passkey by its script, and offers a mail where that is not possible', async t => {
  for (const texts of [en, de, es, fr]) {
    const made = await start(t, { pages: new Pages({ name: 'Shop' }), session: { secret: LOCAL_SECRET, remember: { days: 30 } } })
    const headers = { accept: 'text/html', 'accept-language': texts.language }
    const token = await tokenFor(made)
    const answer = await made.browser.get(`${REGISTER}?token=${token}`, headers)
    const page = pageOf(answer)

    t.match([page.status, page.lang, page.title], [200, texts.language, texts.titles.register])
    t.match(answer.headers['content-security-policy'], /script-src 'self'; connect-src 'self'/)
    t.match(page.html, /data-passkey="register" data-options="\/auth\/local\/passkeys\/options" hidden>/)
    for (const text of [texts.register.passkey, texts.factors.passkeysText, texts.factors.noScript, texts.factors.passkeyMissing, ADA.email]) {
      t.ok(page.text.includes(text), text)
    }
    const form = page.formOf(REGISTER)
    t.strictSame(form?.names.filter(name => name !== 'token'), ['response', 'name', 'role', 'remember'])
    const mail = page.formOf('/auth/local/mail-login')
    t.strictSame(mail?.hidden, { email: ADA.email })

    const response = JSON.stringify(newDevice().create(await begin(made.browser, token)))
    const wrong = await made.browser.submit(REGISTER, { ...form?.hidden, response: '{}', name: 'Ada' }, headers)
    t.match([pageOf(wrong).status, pageOf(wrong).alert], [400, texts.errors.invalid_request])
    t.equal(pageOf(wrong).formOf(REGISTER)?.values.name, 'Ada')
    const done = await made.browser.submit(REGISTER, { ...form?.hidden, response, remember: 'on' }, headers)
    t.match([done.statusCode, done.headers.location], [303, '/'])
    const used = pageOf(await made.browser.submit(REGISTER, { ...form?.hidden, response: '{}' }, headers))
    t.match([used.status, used.alert], [401, texts.errors.invalid_token])
  }
})

t.test('with passwords the page offers both, and the script sends the name and the role with a passkey', async t => {
  const made = await start(t, {}, { password: true })
  const token = await tokenFor(made)
  const { forms, html } = pageOf(await made.browser.get(`${REGISTER}?token=${token}`, { accept: 'text/html' }))
  t.strictSame(forms.map(({ names }) => names.filter(name => name !== 'token')), [['name', 'password', 'role'], ['response']])
  t.match(html, /name="name"[^>]* data-passkey-along>[^]*<select [^>]*name="role" data-passkey-along>/)
  t.equal((await made.browser.post(REGISTER, { token, password: ADA.password })).statusCode, 201)
})

t.test('an application without passwords says nothing of them and has no route for them', async t => {
  const made = await start(t, { pages: new Pages({ name: 'Shop' }), secondFactor: new SecondFactor({ issuer: 'Shop' }) })
  const { app, browser, mails } = made
  const visitor = new Browser(app)
  const link = `${REGISTER}?token=${await tokenFor(made)}`
  await signUpAt(browser, await tokenFor(made), newDevice())
  await browser.post('/auth/local/change-email', { email: 'new@example.com' })
  const change = new URL((await mails.next('change-email')).url)
  await visitor.post('/auth/local/mail-login', { email: ADA.email })
  const paths = [
    ...['sign-in', 'register', 'link-sent', 'confirm', 'account', 'factors'].map(page => `/auth/pages/${page}`),
    '/auth/local/mail-login', link, change.pathname + change.search
  ]
  for (const { language } of [en, de, es, fr]) {
    for (const path of paths) {
      for (const by of [visitor, browser]) {
        const { html, status, forms } = pageOf(await by.get(path, { accept: 'text/html', 'accept-language': language }))
        const shown = html.replace(/<style>[^]*<\/style>/, '')
        t.notMatch(shown, /passwor[dt]|mot de passe|contraseña/i, `${path} ${language} ${status}`)
        for (const { action } of forms) t.ok(app.hasRoute({ method: 'POST', url: action }), `${action} on ${path}`)
      }
    }
  }
  for (const path of ['login', 'forgot-password', 'reset-password', 'change-password', 'set-password']) {
    t.equal((await browser.post(`/auth/local/${path}`, ADA)).statusCode, 404, path)
  }
  t.equal((await visitor.get('/.well-known/change-password')).statusCode, 404)
  t.match((await visitor.get('/auth/session')).json(), { offers: { password: false, registration: true, passwordReset: false, mail: true, passkeys: true } })
  const signIn = pageOf(await new Browser(app).get('/auth/pages/sign-in', { accept: 'text/html' }))
  t.ok(signIn.links.includes('/auth/pages/register'))
})

t.test('what the option needs is said at the start', async t => {
  const sendMail = (): void => {}
  const refused = (options: LocalIdentityProviderOptions, message: RegExp) =>
    t.throws(() => new LocalIdentityProvider({ secret: LOCAL_SECRET, ...options }), { name: 'OptionsError', message })
  refused({ registration: { passkey: true } }, /registration\.passkey needs sendMail/)
  refused({ sendMail, registration: { passkey: true, verify: 'later' } }, /registration\.verify must be 'first' with registration\.passkey/)
  refused({ sendMail, registration: { passkey: true }, password: false }, /registration\.passkey with password: false needs signInByMail/)
  const local = localProvider({ sendMail, registration: { passkey: true } })
  t.strictSame(local.registration, { roles: [], emailVerified: false, passkey: true, verify: 'first' })
  await t.rejects(startApp(t, { baseUrl: BASE_URL, local }), { name: 'OptionsError', message: /^passkeys is required with registration\.passkey/ })
})
