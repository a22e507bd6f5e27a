/** Attacks on the sign-in by mail, by number: see docs/threats.md. */
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import {
  type AuthPluginOptions, type AuthStore, type LocalIdentityProviderOptions, MemoryAuthStore, SignInRefused
} from '../../lib/index.js'
import { Pages } from '../../lib/pages.js'
import { SESSION_SECRET, userIdIn } from '../helpers/app.js'
import { eventsOf } from '../helpers/audit-events.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { deferred } from '../helpers/deferred.js'
import { enrolAda, enrolAt, nextCode, startFactorApp } from '../helpers/factor-app.js'
import { ADA, BASE_URL, type MailApp, formsOn, mailsInTheEnd, registerAt, startMailApp } from '../helpers/mail-app.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'
import { linkAt } from '../helpers/own-provider.js'
import { SOME_STORES } from '../helpers/stores.js'

const MINUTE_MS = 60_000
const ASK = '/auth/local/mail-login'
const CONFIRM = '/auth/local/mail-login/confirm'

async function start (t: Test, options: AuthPluginOptions = {}, local: LocalIdentityProviderOptions = {}): Promise<MailApp> {
  return startMailApp(t, { rateLimit: {}, ...options }, { signInByMail: true, mails: { limits: false }, ...local })
}

/** Asks for a mail in a browser, and returns it. */
async function mailFor (browser: Browser, { mails }: MailApp, email = ADA.email): Promise<{ token: string, code: string | null }> {
  t.equal((await browser.post(ASK, { email })).statusCode, 202)
  return mails.next('sign-in')
}

function otherThan (code: string | null): string {
  return String((Number(code) + 1) % 1_000_000).padStart(6, '0')
}

for (const [kind, createStore] of Object.entries(SOME_STORES)) {
  t.test(`sign-in by mail with ${kind}`, async t => {
    t.test('a code signs its browser in, as a new user whose address is confirmed', async t => {
      const start_ = await start(t, { store: await createStore(t) })
      const { browser, app } = start_
      const { code } = await mailFor(browser, start_)

      const answer = await browser.post(CONFIRM, { code })

      t.equal(answer.statusCode, 200)
      t.match(answer.json(), { provider: 'application', claims: { email: ADA.email, email_verified: true } })
      t.match((await browser.get('/authentication')).json(), { methods: [{ method: 'mail' }], secondFactor: false })
      t.match(await app.auth.findUser({ email: ADA.email }), { emailVerified: true, generation: 0 })
      t.equal((await browser.post(CONFIRM, { code })).json().code, 'invalid_state', 'it works once')
    })

    t.test('the link signs in the browser that asked for it, as the same user', async t => {
      const start_ = await start(t, { store: await createStore(t) })
      const { browser, app } = start_
      const { userId } = await app.auth.createUser({ email: ADA.email, emailVerified: true, password: ADA.password })
      const { token } = await mailFor(browser, start_)

      const [form] = formsOn((await browser.get(`${ASK}?token=${token}`)).body)
      const answer = await browser.submit(form?.action ?? '', form?.fields ?? {})

      t.equal(answer.statusCode, 303)
      t.equal(await userIdIn(browser), userId)
      t.equal((await new Browser(app).post('/auth/local/login', ADA)).statusCode, 200, 'the password stays')
    })

    t.test('attack 113: of a squatter nothing is left once the owner signs in by mail', async t => {
      const start_ = await start(t, { store: await createStore(t) })
      const { app, browser: squatter } = start_
      await registerAt(start_)
      await linkAt(squatter, 'b', { subject: 'the squatter' })
      const userId = await userIdIn(squatter) ?? ''
      const recoveries = eventsOf(t, 'recovery')
      const revoked: string[] = []
      app.auth.channel.on('revoke', id => { revoked.push(id) })
      const owner = new Browser(app)
      const { code } = await mailFor(owner, start_)

      t.equal((await owner.post(CONFIRM, { code })).statusCode, 200)

      t.equal(await userIdIn(owner), userId)
      t.equal((await owner.get('/private')).statusCode, 200)
      t.equal((await squatter.get('/private')).statusCode, 401)
      t.match(await app.auth.links(userId), [{ provider: 'application' }])
      t.equal((await app.auth.links(userId)).length, 1)
      t.equal((await new Browser(app).post('/auth/local/login', ADA)).json().code, 'invalid')
      t.match(recoveries, [{ userId, removed: ['b', 'local'] }])
      t.strictSame(revoked, [userId])
      t.match(await mailsInTheEnd(start_), { length: 3 })
    })

    t.test('the next mail is sent within the minute when the last one was used, five an hour all the same', async t => {
      const start_ = await start(t, { store: await createStore(t) }, { mails: {}, signInByMail: { anyBrowser: true } })
      const { app, mails } = start_
      const email = `${randomUUID()}@example.com`
      const phone = { remoteAddress: '198.51.100.7' }
      for (const by of ['code', 'token', 'token', 'code', 'code'] as const) {
        const browser = new Browser(app)
        const { [by]: value } = await mailFor(browser, start_, email)
        const dropped = await new Browser(app).submit(ASK, { email })
        t.match(dropped.headers.location, /retry_at=/, 'one that was not used holds the next back')
        const answer = by === 'token'
          ? await new Browser(app).send({ method: 'POST', url: CONFIRM, payload: { token: value }, ...phone })
          : await browser.post(CONFIRM, { code: value })
        t.equal(answer.statusCode, 200)
        await browser.post('/auth/logout')
      }
      t.match((await new Browser(app).submit(ASK, { email })).headers.location, /retry_at=/)
      await app.close()
      t.equal(mails.all.length, 5)
    })

    t.test('two sign-ins of a new address at once end as one user', async t => {
      const start_ = await start(t, { store: await createStore(t) })
      const { app } = start_
      const browsers = [new Browser(app), new Browser(app)]
      const codes: Array<string | null> = []
      for (const browser of browsers) codes.push((await mailFor(browser, start_)).code)

      const answers = await Promise.all(browsers.map(async (browser, index) => browser.post(CONFIRM, { code: codes[index] })))

      t.strictSame(answers.map(({ statusCode }) => statusCode), [200, 200])
      t.equal(new Set(answers.map(answer => answer.json().userId)).size, 1)
    })

    t.test('of one code that is sent to two processes at once, one signs in', async t => {
      const store = await createStore(t)
      const [start_, other] = [await start(t, { store }), await start(t, { store })]
      const { browser } = start_
      const { code } = await mailFor(browser, start_)
      const browsers = [browser, new Browser(other.app, browser.cookies)]

      const answers = await Promise.all(browsers.map(async (browser, index) => browser.post(CONFIRM, { code, next: `/${index}` })))

      t.strictSame(answers.map(({ statusCode }) => statusCode).sort(), [200, 400])
      t.match(await start_.app.auth.users(), { users: { length: 1 } })
    })

    t.test('attack 112: five codes a mail, ten in fifteen minutes and twenty a day for an address, and the link still works', async t => {
      const start_ = await start(t, { store: await createStore(t) })
      const email = `${randomUUID()}@example.com`
      const { app } = start_
      const codesOf = async (browser: Browser, code: string | null, count: number): Promise<string[]> => {
        const answers: string[] = []
        for (let index = 0; index < count; index++) answers.push((await browser.post(CONFIRM, { code })).json().code)
        return answers
      }
      const [first, second] = [new Browser(app), new Browser(app)]
      const mail = await mailFor(first, start_, email)
      t.strictSame(await codesOf(first, otherThan(mail.code), 6), [...Array(5).fill('invalid_code'), 'invalid_state'])
      const again = await mailFor(second, start_, email)
      t.strictSame(await codesOf(second, otherThan(again.code), 5), Array(5).fill('invalid_code'))

      const third = new Browser(app)
      const linkOnly = await mailFor(third, start_, email)
      t.equal(linkOnly.code, null)
      t.strictSame(await codesOf(third, '000000', 1), ['rate_limited'])
      advanceClock(t, 16 * MINUTE_MS)
      const later = await mailFor(third, start_, email)
      t.not(later.code, null)
      t.strictSame(await codesOf(third, otherThan(later.code), 5), Array(5).fill('invalid_code'))
      const fourth = new Browser(app)
      const last = await mailFor(fourth, start_, email)
      t.strictSame(await codesOf(fourth, otherThan(last.code), 5), [...Array(4).fill('invalid_code'), 'rate_limited'])
      advanceClock(t, 32 * MINUTE_MS)
      const owner = new Browser(app)
      const ofOwner = await mailFor(owner, start_, email)
      t.equal(ofOwner.code, null, 'the bound of a day')
      t.equal((await owner.post(CONFIRM, { token: ofOwner.token })).statusCode, 200)
    })

    t.test('attack 112: of fifty codes at once for one address, ten are compared', async t => {
      const start_ = await start(t, { store: await createStore(t) })
      const email = `${randomUUID()}@example.com`
      const { app } = start_
      const browsers = Array.from({ length: 10 }, () => new Browser(app))
      const codes: string[] = []
      for (const browser of browsers) codes.push(otherThan((await mailFor(browser, start_, email)).code))

      const answers = await Promise.all(browsers.flatMap((browser, index) =>
        Array.from({ length: 5 }, async (_, time) => (await browser.post(CONFIRM, { code: codes[index], next: `/${time}` })).json().code)))

      t.ok(answers.filter(code => code === 'invalid_code').length <= 10)
      t.ok(answers.includes('rate_limited'))
    })

    t.test('attack 70: a scanner of mails signs nobody in and uses nothing', async t => {
      const start_ = await start(t, { store: await createStore(t) })
      const { app, browser: owner } = start_
      const { token } = await mailFor(owner, start_)
      const scanner = new Browser(app)
      for (const method of ['HEAD', 'GET', 'GET'] as const) await scanner.send({ method, url: `${ASK}?token=${token}` })
      const page = await scanner.get(`${ASK}?token=${token}`, { accept: 'text/html' })
      t.equal(page.statusCode, 200)
      t.strictSame(formsOn(page.body), [], 'there is nothing to press')
      t.equal((await scanner.post(CONFIRM, { token })).json().code, 'invalid_state')
      await scanner.submit(CONFIRM, { token })
      t.equal(await userIdIn(scanner), null)

      t.equal((await owner.post(CONFIRM, { token })).statusCode, 200)
    })

    t.test('a link that was forwarded signs in nowhere, even where another one was asked for', async t => {
      const start_ = await start(t, { store: await createStore(t) })
      const { app, browser: owner } = start_
      const { token } = await mailFor(owner, start_)
      const other = new Browser(app)
      await mailFor(other, start_)

      t.equal((await other.post(CONFIRM, { token })).json().code, 'invalid_state')
      t.equal((await owner.post(CONFIRM, { token })).statusCode, 200)
    })

    t.test('with anyBrowser a link signs in where it is opened, once', async t => {
      const start_ = await start(t, { store: await createStore(t) }, { signInByMail: { anyBrowser: true } })
      const { app, browser: phone } = start_
      const { token } = await mailFor(phone, start_)
      const desk = new Browser(app)
      const [form] = formsOn((await desk.get(`${ASK}?token=${token}`)).body)

      t.equal((await desk.submit(form?.action ?? '', form?.fields ?? {})).statusCode, 303)
      t.not(await userIdIn(desk), null)
      t.equal((await phone.post(CONFIRM, { token })).json().code, 'invalid_state')
      t.equal((await new Browser(app).post(CONFIRM, { token })).json().code, 'invalid_state')
    })

    t.test('a change of e-mail and a deletion end what waits', async t => {
      const start_ = await start(t, { store: await createStore(t) }, { registration: false })
      const { app, browser } = start_
      const { userId } = await app.auth.createUser({ email: ADA.email, emailVerified: true })
      const { code } = await mailFor(browser, start_)
      await app.auth.signOutEverywhere(userId)
      t.equal((await browser.post(CONFIRM, { code })).json().code, 'invalid_state')
      const again = await mailFor(browser, start_)
      await app.auth.block(userId)
      t.equal((await browser.post(CONFIRM, { code: again.code })).json().code, 'invalid_state')
      await app.auth.unblock(userId)
      const last = await mailFor(browser, start_)
      await app.auth.deleteUser(userId)
      t.equal((await browser.post(CONFIRM, { code: last.code })).json().code, 'invalid_state')
    })
  })
}

t.test('answers and mails are the same for each address', async t => {
  const start_ = await start(t, {}, { registration: false })
  const { app } = start_
  const { userId } = await app.auth.createUser({ email: 'blocked@example.com', emailVerified: true })
  await app.auth.block(userId)
  await app.auth.createUser({ email: ADA.email, emailVerified: true })
  for (const email of [ADA.email, 'blocked@example.com', 'nobody@example.com']) {
    const browser = new Browser(app)
    const answer = await browser.post(ASK, { email })
    t.equal(answer.statusCode, 202)
    t.equal(answer.body, '')
    t.equal(answer.cookies.length, 1)
    const page = await browser.get(ASK, { accept: 'text/html' })
    t.match(page.body, email)
    t.equal((await browser.post(CONFIRM, { code: '12345' })).json().code, 'invalid_code')
  }
  t.match(await mailsInTheEnd(start_), { length: 1 })
})

t.test('attack 86: with a second factor the sign-in waits, and nothing is written before', async t => {
  const asked: string[] = []
  const start_ = await startFactorApp(t, {}, {
    rateLimit: {}, onSignIn: ({ principal }) => { asked.push(principal.userId) }
  }, { signInByMail: true, mails: { limits: false } })
  const { app } = start_
  const { userId, secret } = await enrolAda(t, start_)
  asked.length = 0
  const before = await app.auth.findUser({ userId })
  const browser = new Browser(app)
  const { code } = await mailFor(browser, start_)

  const waiting = await browser.post(CONFIRM, { code })

  t.match([waiting.statusCode, waiting.json()], [401, { code: 'second_factor_required', methods: ['recovery', 'totp'] }])
  for (const url of ['/private', '/recent']) t.equal((await browser.get(url)).statusCode, 401)
  t.strictSame([asked, await app.auth.findUser({ userId })], [[], before])
  t.equal((await browser.post('/auth/local/second-factor', { code: nextCode(t, secret) })).statusCode, 200)
  t.match((await browser.get('/authentication')).json(), { methods: [{ method: 'mail' }, { method: 'totp' }], secondFactor: true })
  t.strictSame(asked, [userId])
})

t.test('what a first proof removes is removed at once, also where a second factor is required', async t => {
  const start_ = await startFactorApp(t, { required: () => true }, { rateLimit: {} }, { signInByMail: true, mails: { limits: false } })
  const { app } = start_
  const { userId } = await app.auth.createUser(ADA)
  const browser = new Browser(app)
  const { code } = await mailFor(browser, start_)

  t.match((await browser.post(CONFIRM, { code })).json(), { code: 'second_factor_required', enrolment: true })

  t.match(await app.auth.links(userId), [{ provider: 'application' }])
  t.equal((await new Browser(app).post('/auth/local/login', ADA)).json().code, 'invalid')
  await enrolAt(t, browser)
  t.equal((await browser.get('/private')).statusCode, 200)
})

t.test('what has changed while a second factor was due ends the sign-in', async t => {
  const start_ = await startFactorApp(t, {}, { rateLimit: {} }, { signInByMail: true, mails: { limits: false } })
  const { app } = start_
  const { userId, secret } = await enrolAda(t, start_)
  const browser = new Browser(app)
  const { code } = await mailFor(browser, start_)
  await browser.post(CONFIRM, { code })
  await app.auth.signOutEverywhere(userId)

  t.equal((await browser.post('/auth/local/second-factor', { code: nextCode(t, secret) })).json().code, 'invalid_state')
})

t.test('attack 79: a sign-in by mail that the end of all sessions overtakes is refused', async t => {
  const [asked, goOn] = [deferred(), deferred()]
  const start_ = await start(t, { onSignIn: async () => { asked.resolve(); await goOn.promise } })
  const { app, browser } = start_
  const { userId } = await app.auth.createUser({ email: ADA.email, emailVerified: true })
  const { code } = await mailFor(browser, start_)
  const answer = browser.post(CONFIRM, { code })
  await asked.promise
  await app.auth.signOutEverywhere(userId)
  goOn.resolve()
  await answer

  t.equal((await browser.get('/private')).statusCode, 401)
})

t.test('attack 68, attack 64: tokens of other kinds do not sign in, and the link begins with baseUrl', async t => {
  const start_ = await start(t)
  const { app, browser, mails } = start_
  const { userId } = await app.auth.createUser({ email: ADA.email, emailVerified: true, password: ADA.password })
  const reset = await browser.post('/auth/local/forgot-password', { email: ADA.email }).then(async () => mails.next('reset-password'))
  const issued = await app.localIdp?.issueIdToken(userId, {}, 60, { purpose: 'sign-in' })
  await browser.post(ASK, { email: ADA.email, next: '//evil.example' }, { host: 'evil.example', 'x-forwarded-host': 'evil.example' })
  const { url, token } = await mails.next('sign-in')

  t.ok(url.startsWith(`${BASE_URL}${ASK}?token=`))
  t.equal((await browser.post('/auth/local/reset-password', { token, password: 'another password' })).json().code, 'invalid_token')
  for (const other of [reset.token, issued, 'x']) t.equal((await browser.post(CONFIRM, { token: other })).json().code, 'invalid_token')
  const answer = await browser.submit(CONFIRM, { token })
  t.match([answer.statusCode, answer.headers.location], [303, '/'])
})

t.test('a user who is blocked meanwhile is refused, and a refused new user is deleted', async t => {
  const start_ = await start(t, { onSignIn: () => { throw new SignInRefused('not_invited') } })
  const { app, browser } = start_
  const { code } = await mailFor(browser, start_)
  t.equal((await browser.post(CONFIRM, { code })).json().code, 'not_invited')
  t.equal(await app.auth.findUser({ email: ADA.email }), null)

  const again = await mailFor(browser, start_)
  const { userId } = await app.auth.createUser({ email: ADA.email, emailVerified: true })
  await app.auth.block(userId)
  t.equal((await browser.post(CONFIRM, { code: again.code })).json().code, 'blocked')
})

t.test('a code is taken as it was typed, and an old one of the session is not', async t => {
  const start_ = await start(t)
  const { browser } = start_
  const first = await mailFor(browser, start_)
  const { code } = await mailFor(browser, start_)

  t.equal((await browser.post(CONFIRM, { token: first.token })).json().code, 'invalid_state')
  const typed = String(code).replace(/^.../, digits => `${digits}-`)
  t.equal((await browser.post(CONFIRM, { code: ` ${typed}\u200b` })).statusCode, 200)
})

t.test('remember and next are those of the form that asked', async t => {
  const start_ = await start(t, { session: { secret: 'k7Qm2vX9pL4tR8wZ1cN6bH3jF5gD0sAy', remember: { days: 30 } } })
  const { browser, mails } = start_
  const asked = await browser.submit(ASK, { email: ADA.email, next: '/orders', remember: 'on' })
  t.match([asked.statusCode, asked.headers.location], [303, `${ASK}?next=%2Forders`])
  const { token } = await mails.next('sign-in')
  const answer = await browser.submit(CONFIRM, { token })

  t.equal(answer.headers.location, '/orders')
  t.ok(answer.cookies.some(({ name, expires }) => name === 'svc_session' && expires !== undefined))
})

t.test('the bounds hold where neither sessions nor counts are in the store', async t => {
  const store: AuthStore = Object.assign(new MemoryAuthStore(), { sessions: null, entries: null })
  const session = { secret: SESSION_SECRET, store: new SlowSessionStore() }
  const start_ = await start(t, { store, session })
  const { app } = start_
  const email = `${randomUUID()}@example.com`
  for (let index = 0; index < 2; index++) {
    const browser = new Browser(app)
    const { code } = await mailFor(browser, start_, email)
    for (let wrong = 0; wrong < 5; wrong++) await browser.post(CONFIRM, { code: otherThan(code) })
  }
  const owner = new Browser(app)
  const { token, code } = await mailFor(owner, start_, email)
  t.equal(code, null)
  t.equal((await owner.post(CONFIRM, { token })).statusCode, 200)

  // Another application in this process has users and counts of its own.
  const other = await start(t, { store: Object.assign(new MemoryAuthStore(), { sessions: null, entries: null }), session })
  t.not((await mailFor(new Browser(other.app), other, email)).code, null, 'attack 161')
})

t.test('a mail that an older secret has signed is taken', async t => {
  const [old, recent] = ['an old secret of 32 characters, and more', 'a new secret of 32 characters, and more']
  const store = new MemoryAuthStore()
  const before = await start(t, { store }, { secret: old })
  const { code } = await mailFor(before.browser, before)
  const after = await start(t, { store }, { secret: [recent, old] })

  t.equal((await new Browser(after.app, before.browser.cookies).post(CONFIRM, { code })).statusCode, 200)
})

t.test('without passwords no route takes one, and an old one signs in nowhere', async t => {
  const start_ = await start(t, { pages: new Pages({ name: 'Shop' }) }, { password: false })
  const { app, browser } = start_
  for (const path of ['login', 'register', 'forgot-password', 'reset-password', 'change-password', 'set-password']) {
    t.equal((await browser.post(`/auth/local/${path}`, ADA)).statusCode, 404, path)
  }
  const { code } = await mailFor(browser, start_)
  t.equal((await browser.post(CONFIRM, { code })).statusCode, 200)
  t.equal((await browser.post('/auth/local/token')).statusCode, 200)
  for (const page of ['sign-in', 'account', 'confirm']) {
    t.notMatch((await browser.get(`/auth/pages/${page}`, { accept: 'text/html' })).body, 'type="password"', page)
  }
  const { userId } = await app.auth.createUser({ email: 'old@example.com', emailVerified: true, password: ADA.password })
  const old = await app.auth.findUser({ userId })
  t.ok(old)
})

t.test('attack 124: strangers leave the owner of a mailbox the mail of a sign-in, and all together get thirty an hour', async t => {
  const start_ = await start(t, {}, { mails: {} })
  const { app, mails } = start_
  const askAt = async (remoteAddress: string): Promise<Browser> => {
    const browser = new Browser(app)
    const answer = await browser.send({ method: 'POST', url: ASK, remoteAddress, payload: { email: ADA.email } })
    t.equal(answer.statusCode, 202)
    return browser
  }
  for (let i = 0; i < 8; i++) {
    await askAt('198.51.100.7')
    await askAt('198.51.100.7')
    if (i < 5) await mails.next('sign-in')
    advanceClock(t, MINUTE_MS + 1)
  }
  const owner = await askAt('192.0.2.1')
  const { code } = await mails.next('sign-in')
  t.equal(mails.all.length, 6, 'a client gets one a minute and five an hour')
  t.equal((await owner.post(CONFIRM, { code })).statusCode, 200)

  for (let i = 0; i < 30; i++) await askAt(`203.0.113.${i}`)
  t.match(await mailsInTheEnd(start_), { length: 30 })
})

t.test('who asks again within a minute gets no other mail, and the last one stays good', async t => {
  const start_ = await start(t, {}, { mails: {} })
  const { browser, mails } = start_
  for (const [by, email] of [['code', ADA.email], ['token', 'grace@example.com']] as const) {
    const mail = await mailFor(browser, start_, email)
    const again = await browser.submit(ASK, { email, next: '/orders' })

    t.match(again.headers.location, /^\/auth\/local\/mail-login\?next=%2Forders&retry_at=\d+$/)
    t.equal((await browser.post(CONFIRM, { [by]: mail[by] })).statusCode, 200)
  }
  advanceClock(t, MINUTE_MS + 1)
  const last = await mailFor(browser, start_)
  await browser.post(ASK, { email: 'grace@example.com' })
  t.equal((await browser.post(CONFIRM, { token: last.token })).json().code, 'invalid_state', 'another address')
  t.equal(mails.all.length, 4)
})

t.test('attack 62: the page says when the next mail may be asked for, by what this client has asked for alone', async t => {
  for (const registration of [false, {}] as const) {
    const start_ = await start(t, { pages: new Pages({ name: 'Shop' }) }, { mails: {}, registration })
    const { app } = start_
    await app.auth.createUser({ email: ADA.email, emailVerified: true })
    const now = Math.ceil(Date.now() / 1000) * 1000
    t.intercept(Date, 'now', { value: () => now, writable: true, configurable: true })
    const [known, unknown, grace] = [ADA.email, 'nobody@example.com', 'grace@example.com']
    /** What a browser is shown that asks, whose address another client has asked for meanwhile or not. */
    const shownTo = async (browser: Browser, email: string, language = 'en'): Promise<string> => {
      const { headers: { location = '' } } = await browser.submit(ASK, { email })
      const { statusCode, body } = await browser.get(location, { accept: 'text/html', 'accept-language': language })
      t.equal(statusCode, 200, location)
      return body.replaceAll(email, known).replaceAll(/[\w-]{36,}/g, '')
    }
    const told = /You can ask for another e-mail in (\d+ \w+) at the earliest\./
    const timeIn = (page: string): string | undefined => told.exec(page)?.[1]
    const [ofKnown, ofUnknown] = [new Browser(app), new Browser(app)]
    t.notMatch(await shownTo(ofKnown, known), told, 'a mail that is sent needs no wait')
    await shownTo(ofUnknown, unknown)
    for (const email of [unknown, grace]) {
      await app.inject({ method: 'POST', url: ASK, remoteAddress: '198.51.100.7', payload: { email } })
    }

    advanceClock(t, 20_000)
    const page = await shownTo(ofKnown, known)
    t.equal(timeIn(page), '40 seconds')
    t.equal(page, await shownTo(ofUnknown, unknown))
    t.notMatch(await shownTo(new Browser(app), grace), told, 'what another client asks for is not told')
    t.match(await shownTo(ofKnown, known, 'de'), 'Eine weitere E-Mail können Sie frühestens in 40 Sekunden anfordern.')
    const third = new Browser(app)
    t.equal(timeIn(await shownTo(third, unknown)), '40 seconds', 'also in a browser that has no code to type')
    const { headers: { location = '' } } = await third.submit(ASK, { email: unknown })
    advanceClock(t, 50_000)
    t.equal((await third.get(location)).statusCode, 302, 'a page that is opened later does not say it')
    for (const value of ['0', 'x', '9'.repeat(12)]) t.notMatch((await ofKnown.get(`${ASK}?retry_at=${value}`)).body, told)

    for (let asked = 0; asked < 4; asked++) {
      await shownTo(ofKnown, known)
      advanceClock(t, MINUTE_MS + 1)
    }
    t.match(timeIn(await shownTo(ofKnown, known)), /^5\d minutes$/, 'the five of an hour')
    await app.close()
  }
})

t.test('attack 62: a limit that other clients have used up is not told', async t => {
  const start_ = await start(t, { pages: new Pages({ name: 'Shop' }) }, { mails: {} })
  const { app, browser } = start_
  const payload = { email: ADA.email }
  for (let i = 0; i < 30; i++) await app.inject({ method: 'POST', url: ASK, remoteAddress: `203.0.113.${i}`, payload })
  t.equal((await browser.submit(ASK, payload)).headers.location, ASK)
  t.equal((await mailsInTheEnd(start_)).length, 30)
})

for (const registration of [false, {}] as const) {
  t.test(`attack 158: a mail that a limit drops replaces none, and tells nothing${registration === false ? ', where no user may register' : ''}`, async t => {
    const start_ = await start(t, {}, { mails: {}, registration })
    const { app, mails } = start_
    await app.auth.createUser({ email: ADA.email, emailVerified: true })
    const unknown = 'nobody@example.com'
    const shownIn = async (browser: Browser): Promise<string> =>
      (await browser.get(ASK)).body.replaceAll(unknown, ADA.email).replaceAll(/[\w-]{36,}/g, '')
    const [known, other] = [new Browser(app), new Browser(app)]
    let mail = { token: '', code: null as string | null }
    for (let asked = 1; asked <= 5; asked++) {
      mail = await mailFor(known, start_)
      await other.post(ASK, { email: unknown })
      if (registration !== false) await mails.next('sign-in')
      advanceClock(t, MINUTE_MS + 1)
    }

    for (const browser of [known, other]) {
      const answer = await browser.post(ASK, { email: browser === known ? ADA.email : unknown })
      t.strictSame([answer.statusCode, answer.body], [202, ''])
    }
    t.equal(await shownIn(known), await shownIn(other))
    t.match(await shownIn(known), ADA.email)
    const third = new Browser(app)
    for (const email of [ADA.email, unknown]) t.equal((await third.post(ASK, { email })).statusCode, 202)
    t.equal((await third.get(ASK)).statusCode, 302, 'a browser that asked for no mail has no code to type')

    t.equal((await new Browser(app, known.cookies).post(CONFIRM, { code: otherThan(mail.code) })).json().code, 'invalid_code')
    t.equal((await known.post(CONFIRM, { code: mail.code })).statusCode, 200)
    await app.close()
    t.equal(mails.all.filter(({ to }) => to === ADA.email).length, 5)
  })
}

t.test('attack 158: the mail for one address stays good when the one for another is dropped', async t => {
  const start_ = await start(t, {}, { mails: {} })
  const { browser, app } = start_
  await mailFor(new Browser(app), start_, 'grace@example.com')
  const { token } = await mailFor(browser, start_)
  await browser.post(ASK, { email: 'grace@example.com' })
  t.equal((await browser.post(CONFIRM, { token })).statusCode, 200)
})

t.test('attack 158: of two requests at once, the mail that is sent is good', async t => {
  const start_ = await start(t, {}, { mails: {} })
  const { browser, mails } = start_
  await mailFor(browser, start_, 'grace@example.com')
  await Promise.all([1, 2, 3].map(async () => browser.post(ASK, { email: ADA.email })))
  const { code } = await mails.next('sign-in')
  t.equal((await browser.post(CONFIRM, { code })).statusCode, 200)
})

t.test('an unknown address gets a mail that says so where the application wants that', async t => {
  const start_ = await start(t, {}, { registration: false, mails: { limits: false, unknownAddress: true } })
  t.equal((await start_.browser.post(ASK, { email: ADA.email })).statusCode, 202)
  t.match(await start_.mails.next('unknown-address'), { to: ADA.email })
})

t.test('sign-in by mail without limits is refused', async t => {
  await t.rejects(startMailApp(t, { rateLimit: false }, { signInByMail: true }), /rateLimit must not be false with signInByMail/)
  await t.rejects(startMailApp(t, { rateLimit: {} }, { signInByMail: true, sendMail: undefined }), /signInByMail needs sendMail/)
  t.ok(BASE_URL)
})
