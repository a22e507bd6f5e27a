/** Attack 171, and requests that are sent again: what has succeeded is not told as a failure. */
import type { LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import { AuthError, type AuthPluginOptions, type LocalIdentityProviderOptions, MemoryAuthStore } from '../../lib/index.js'
import { Pages } from '../../lib/pages.js'
import { Passkeys } from '../../lib/passkeys.js'
import { capabilitiesOf } from '../../lib/session/store.js'
import { SESSION_SECRET, userIdIn } from '../helpers/app.js'
import { eventsOf } from '../helpers/audit-events.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { enrolAda, enrolAt, nextCode, startFactorApp, waitAt } from '../helpers/factor-app.js'
import { ADA, type MailApp, NEW_PASSWORD, confirmAddress, registerAt, resetTokenOf } from '../helpers/mail-app.js'
import { leaveFor, signInAt } from '../helpers/own-provider.js'
import { addAt, newDevice, optionsAt } from '../helpers/passkey-app.js'
import { ALL_SESSIONS, type Kept, SHARED_SESSIONS } from '../helpers/session-stores.js'

const GRACE = { email: 'grace@example.com', password: 'a nanosecond of wire' }

type Send = (browser: Browser) => Promise<LightMyRequestResponse>

/** What is prepared in a browser, whose cookies are those of the first request. */
interface Prepared {
  readonly browser: Browser
  readonly send: Send
  /** Whether the user is signed in afterwards; default true. */
  readonly signsIn?: boolean
  /** Whether no cookie tells which session the first one has started; default false. */
  readonly isWithoutCookie?: boolean
}

async function start (
  t: Test, { store, sessions }: Kept, options: AuthPluginOptions = {}, local: LocalIdentityProviderOptions = {}
): Promise<MailApp> {
  return startFactorApp(t, {}, {
    store,
    session: { secret: SESSION_SECRET, store: sessions },
    passkeys: new Passkeys({ name: 'Shop' }),
    pages: new Pages({ name: 'Shop' }),
    rateLimit: {},
    ...options
  }, { signInByMail: true, mails: { limits: false }, ...local })
}

/** What users do with a secret. */
const ACTS: Record<string, (start: MailApp & { t: Test }) => Promise<Prepared>> = {
  async 'a sign-in by password, beside a form that was begun' ({ app, browser }) {
    await app.auth.createUser({ ...ADA, emailVerified: true })
    await optionsAt(browser, 'login')
    return { browser, send: browser => browser.submit('/auth/local/login', { ...ADA, next: '/cart' }) }
  },
  async 'a reauthentication by password' (start) {
    await registerAt(start)
    return { browser: start.browser, send: browser => browser.submit('/auth/local/reauthenticate', { password: ADA.password, next: '/cart' }) }
  },
  async 'a second step by code' (start) {
    const { t } = start
    const { secret } = await enrolAda(t, start)
    const browser = new Browser(start.app)
    await waitAt(t, browser)
    const code = nextCode(t, secret)
    return { browser, send: browser => browser.submit('/auth/local/second-factor', { code, next: '/cart' }) }
  },
  async 'a second step by a recovery code' (start) {
    const { t } = start
    const { recoveryCodes: [code = ''] } = await enrolAda(t, start)
    const browser = new Browser(start.app)
    await waitAt(t, browser)
    return { browser, send: browser => browser.post('/auth/local/second-factor', { code }) }
  },
  async 'a second step by a passkey' (start) {
    const { app, t } = start
    await enrolAda(t, start)
    const device = newDevice()
    t.equal((await addAt(start.browser, device)).statusCode, 201)
    const browser = new Browser(app)
    await waitAt(t, browser)
    const response = device.get(await optionsAt(browser, 'factor'))
    return { browser, send: browser => browser.post('/auth/local/second-factor', { response }) }
  },
  async 'a sign-in by a passkey' (start) {
    const { t } = start
    await registerAt(start)
    const device = newDevice()
    t.equal((await addAt(start.browser, device)).statusCode, 201)
    const browser = new Browser(start.app)
    const response = device.get(await optionsAt(browser, 'login'))
    return { browser, send: browser => browser.post('/auth/local/passkeys/login', { response }) }
  },
  async 'adding a passkey' (start) {
    await registerAt(start)
    const { browser } = start
    const response = newDevice().create(await optionsAt(browser, 'register'))
    return { browser, send: browser => browser.post('/auth/local/passkeys/register', { response, name: 'Phone' }) }
  },
  async 'a sign-in by the code of a mail' ({ app, browser, mails }) {
    await app.auth.createUser({ ...ADA, emailVerified: true })
    await browser.submit('/auth/local/mail-login', { email: ADA.email, next: '/cart' })
    const { code } = await mails.next('sign-in')
    return { browser, send: browser => browser.submit('/auth/local/mail-login/confirm', { code: String(code) }) }
  },
  async 'a sign-in by the link of a mail, as a new user' ({ browser, mails }) {
    await browser.submit('/auth/local/mail-login', { email: ADA.email, next: '/cart' })
    const { token } = await mails.next('sign-in')
    return { browser, send: browser => browser.submit('/auth/local/mail-login/confirm', { token }) }
  },
  async 'a change of the password' (start) {
    await registerAt(start)
    const fields = { current: ADA.password, password: NEW_PASSWORD, next: '/cart' }
    return { browser: start.browser, send: browser => browser.submit('/auth/local/change-password', fields) }
  },
  async 'a new password by a link' (start) {
    await registerAt(start)
    const token = await resetTokenOf(start)
    return {
      browser: new Browser(start.app),
      send: browser => browser.submit('/auth/local/reset-password', { token, password: NEW_PASSWORD, existing: 'remove' }),
      signsIn: false
    }
  },
  async 'a confirmation of the address, with the password' (start) {
    const token = await registerAt(start)
    const fields = { token, password: ADA.password, existing: 'remove' }
    return { browser: new Browser(start.app), send: browser => browser.submit('/auth/local/verify-email', fields), signsIn: false }
  },
  async 'a new address' (start) {
    const { browser, mails, t } = start
    t.equal((await confirmAddress(browser, await registerAt(start))).statusCode, 204)
    await browser.post('/auth/local/change-email', { email: GRACE.email, current: ADA.password })
    const { token } = await mails.next('change-email')
    return { browser, send: browser => browser.submit('/auth/local/change-email/confirm', { token }) }
  },
  async 'a deletion with the password' (start) {
    await registerAt(start)
    const fields = { current: ADA.password, next: '/cart' }
    return { browser: start.browser, send: browser => browser.submit('/auth/local/delete-account', fields), signsIn: false }
  },
  async 'a registration' ({ app }) {
    const fields = { ...ADA, next: '/cart' }
    return { browser: new Browser(app), send: browser => browser.submit('/auth/local/register', fields), isWithoutCookie: true }
  },
  async 'a registration by a link' ({ t }) {
    const other = await startFactorApp(t, {}, { pages: new Pages({ name: 'Shop' }) }, { registration: { verify: 'first' } })
    const browser = new Browser(other.app)
    await browser.submit('/auth/local/register', { email: ADA.email })
    const { token } = await other.mails.next('register')
    return { browser, send: browser => browser.submit('/auth/local/register', { token, password: ADA.password }), isWithoutCookie: true }
  },
  async 'a sign-in at a provider' ({ app }) {
    const browser = new Browser(app)
    const callback = await leaveFor(browser, '/auth/a/login?next=%2Fcart', { subject: 'ada' })
    return { browser, send: browser => browser.get(callback) }
  },
  async 'a sign-in at a provider that waits for a second step' (start) {
    const { app, browser: first, t } = start
    await signInAt(first, 'a', { subject: 'ada' })
    await enrolAt(t, first)
    const browser = new Browser(app)
    const callback = await leaveFor(browser, '/auth/a/login?next=%2Fcart', { subject: 'ada' })
    return { browser, send: browser => browser.get(callback, { accept: 'text/html' }), signsIn: false }
  },
  async 'a linking' (start) {
    await registerAt(start)
    const { browser } = start
    const callback = await leaveFor(browser, '/auth/a/login?link=true&next=%2Fcart', { subject: 'ada' })
    return { browser, send: browser => browser.get(callback) }
  }
}

function cookieOf ({ cookies }: Browser): string | undefined {
  return cookies.get('svc_session')
}

/** What an answer says, without the secrets that differ each time. */
function outcomeOf ({ statusCode, headers: { location }, body }: LightMyRequestResponse): unknown {
  return { statusCode, location, body: statusCode === 200 ? body.replace(/<code.*?<\/code>/g, '') : body }
}

for (const [kind, keep] of SHARED_SESSIONS) {
  for (const [act, prepare] of Object.entries(ACTS)) {
    for (const [how, pause] of Object.entries({ 'at once': null, 'after it': 0, 'after fifty seconds': 50_000 })) {
      t.test(`${act} is done once and told as done twice when it is sent again ${how}, with ${kind}`, async t => {
        const begun = await start(t, await keep(t))
        const { browser, send, signsIn = true, isWithoutCookie = false } = await prepare({ ...begun, t })
        // The answer to the first one is lost, with its cookies.
        const lost = new Browser(browser.app, browser.cookies)

        const sending = send(lost)
        if (pause !== null) {
          await sending
          advanceClock(t, pause)
        }
        const [first, second] = await Promise.all([sending, send(browser)])

        t.strictSame(outcomeOf(second), outcomeOf(first))
        t.ok(first.statusCode < 400, `${first.statusCode} ${first.body}`)
        const users = await Promise.all([browser, lost].map(userIdIn))
        t.equal(users.some(userId => userId !== null), signsIn)
        const isOne = cookieOf(browser) === cookieOf(lost)
        if (isWithoutCookie) return
        if (pause === null && !isOne) t.ok(users.includes(null), 'the session whose answer came first has ended')
        else t.equal(users[1], isOne ? users[0] : null)
      })
    }
  }
}

/** Ada, who has typed her password in a browser, and the code that finishes the sign-in. */
async function waitingAda (t: Test, kept: Kept, options: AuthPluginOptions = {}) {
  const begun = await start(t, kept, options)
  const { secret } = await enrolAda(t, begun)
  const browser = new Browser(begun.app)
  await waitAt(t, browser)
  return { ...begun, browser, code: nextCode(t, secret), secret }
}

const FINISH = '/auth/local/second-factor'

for (const [kind, keep] of SHARED_SESSIONS) {
  t.test(`attack 171: a planted cookie that asks while its victim signs in stays a visitor, with ${kind}`, async t => {
    const { app, browser, code } = await waitingAda(t, await keep(t))
    const planted = new Browser(app, browser.cookies)
    const polls = Array.from({ length: 8 }, async (_, index) => {
      const attacker = new Browser(app, planted.cookies)
      const answer = index % 2 === 0
        ? await attacker.post(FINISH, { code: '000000' })
        : await attacker.get('/auth/pages/sign-in', { accept: 'text/html' })
      return [answer.statusCode === 200 && index % 2 === 0, await userIdIn(attacker)]
    })

    const answer = await browser.post(FINISH, { code })

    for (const [isAccepted, userId] of await Promise.all(polls)) t.strictSame([isAccepted, userId], [false, null])
    t.equal(answer.statusCode, 200)
    t.type(await userIdIn(browser), 'string')
    t.equal(await userIdIn(planted), null)
  })

  t.test(`attack 171: a short code is not guessed against the one that has signed in, with ${kind}`, async t => {
    const { app, browser, code } = await waitingAda(t, await keep(t))
    const planted = new Browser(app, browser.cookies)
    t.equal((await new Browser(app, planted.cookies).post(FINISH, { code })).statusCode, 200)

    const wrong = code === '000000' ? '111111' : '000000'
    t.equal((await new Browser(app, planted.cookies).post(FINISH, { code: wrong })).json().code, 'invalid_state')

    t.equal((await planted.post(FINISH, { code })).json().code, 'invalid_state', 'the right one is no longer good either')
    t.equal(await userIdIn(planted), null)
  })

  t.test(`attack 171: nothing is sent again once its session has come in a request, with ${kind}`, async t => {
    const { app, browser, code } = await waitingAda(t, await keep(t))
    const planted = new Browser(app, browser.cookies)
    t.equal((await browser.post(FINISH, { code })).statusCode, 200)
    t.type(await userIdIn(browser), 'string')

    t.equal((await planted.post(FINISH, { code })).json().code, 'invalid_state')

    t.equal(await userIdIn(planted), null)
    t.type(await userIdIn(browser), 'string')
  })

  t.test(`a request is sent again five times within the minute, with ${kind}`, async t => {
    const { app, browser, code } = await waitingAda(t, await keep(t))
    const again = async () => {
      const sender = new Browser(app, browser.cookies)
      const { statusCode, body } = await sender.submit(FINISH, { code }, { accept: 'application/json' })
      return [statusCode, statusCode === 200 || JSON.parse(body).code]
    }

    for (let sent = 0; sent < 6; sent++) t.strictSame(await again(), [200, true], `the request ${sent}`)

    t.strictSame(await again(), [401, 'unauthenticated'])
  })

  t.test(`what is sent again after the minute is told what has happened, and how to go on, with ${kind}`, async t => {
    const { app, browser, code } = await waitingAda(t, await keep(t))
    const late = new Browser(app, browser.cookies)
    await browser.submit(FINISH, { code })
    advanceClock(t, 61_000)

    const answer = await late.post(FINISH, { code })

    t.match([answer.statusCode, answer.json()], [401, { code: 'unauthenticated', message: /sent twice/ }])
    t.equal(await userIdIn(late), null)
  })

  t.test(`nothing is sent again for a user whose sessions have ended since, with ${kind}`, async t => {
    const { app, browser, code } = await waitingAda(t, await keep(t))
    const again = new Browser(app, browser.cookies)
    await browser.post(FINISH, { code })
    const user = await app.auth.findUser({ email: ADA.email })
    await app.auth.signOutEverywhere(String(user?.userId))

    t.equal((await again.post(FINISH, { code })).statusCode, 401)

    t.equal(await userIdIn(again), null)
  })

  t.test(`what is sent again is not counted, not mailed and not audited again, with ${kind}`, async t => {
    const { app, browser, code, mails } = await waitingAda(t, await keep(t), { rateLimit: { factor: 3 } })
    const signIns = eventsOf(t, 'sign-in')
    const failures = eventsOf(t, 'failure')
    const sent = mails.all.length

    for (let times = 0; times < 5; times++) {
      t.equal((await new Browser(app, browser.cookies).post(FINISH, { code })).statusCode, 200)
    }

    t.equal(signIns.length, 1)
    t.equal(failures.length, 0)
    await app.close()
    t.equal(mails.all.length, sent)
  })

  t.test(`a failure of two requests that were sent at once is counted and audited once, with ${kind}`, async t => {
    const { app, browser } = await waitingAda(t, await keep(t))
    const failures = eventsOf(t, 'failure')

    const answers = await Promise.all([1, 2].map(async () => new Browser(app, browser.cookies).post(FINISH, { code: '000000' })))

    t.strictSame(answers.map(answer => answer.json().code), ['invalid_code', 'invalid_code'])
    t.equal(failures.length, 1)
  })

  t.test(`an app that is confirmed twice shows new recovery codes in place of those that no one has seen, with ${kind}`, async t => {
    const begun = await start(t, await keep(t))
    const { app, browser } = begun
    await registerAt(begun)
    const { secret } = (await browser.post('/auth/local/totp/enroll')).json<{ secret: string }>()
    const code = nextCode(t, secret)
    const lost = await new Browser(app, browser.cookies).post('/auth/local/totp/confirm', { code })
    const { recoveryCodes: [unseen] } = lost.json<{ recoveryCodes: string[] }>()

    const shown = await browser.post('/auth/local/totp/confirm', { code })

    t.equal(shown.statusCode, 200)
    const { recoveryCodes } = shown.json<{ recoveryCodes: string[] }>()
    t.equal(recoveryCodes.length, 10)
    const other = new Browser(app)
    await waitAt(t, other)
    t.equal((await other.post(FINISH, { code: unseen })).json().code, 'invalid_code')
    t.equal((await other.post(FINISH, { code: recoveryCodes[0] })).statusCode, 200)
  })

  t.test(`new recovery codes, which need no secret, are told as done and not made again, with ${kind}`, async t => {
    const begun = await start(t, await keep(t))
    const { browser } = begun
    await enrolAda(t, begun)
    const again = new Browser(begun.app, browser.cookies)
    await browser.submit('/auth/local/recovery-codes', {})

    const answer = await again.post('/auth/local/recovery-codes')

    t.match([answer.statusCode, answer.json()], [401, { code: 'unauthenticated', message: /sent twice/ }])
  })
}

t.test('an act succeeds whose note cannot be written', async t => {
  const store = new MemoryAuthStore()
  const { entries } = capabilitiesOf(store)
  if (entries === null) throw new Error('this store keeps no entries')
  const put = entries.put.bind(entries)
  entries.put = async (entry, most) => {
    if (entry.kind === 'sent-request') throw new AuthError('unavailable')
    return put(entry, most)
  }
  const begun = await start(t, { store, sessions: undefined })
  await registerAt(begun)
  const token = await resetTokenOf(begun)

  const answer = await new Browser(begun.app).post('/auth/local/reset-password', { token, password: NEW_PASSWORD, existing: 'remove' })

  t.equal(answer.statusCode, 204)
  t.equal((await new Browser(begun.app).post('/auth/local/login', { ...ADA, password: NEW_PASSWORD })).statusCode, 200)
})

t.test('a password signs in although the session of the same request goes on meanwhile; a code is told as sent twice', async t => {
  const store = new MemoryAuthStore()
  const { entries } = capabilitiesOf(store)
  if (entries === null) throw new Error('this store keeps no entries')
  const find = entries.find.bind(entries)
  let goOn: (() => Promise<unknown>) | null = null
  entries.find = async key => {
    const found = await find(key)
    const go = key.kind === 'seen-session' ? goOn : null
    if (go !== null) goOn = null
    await go?.()
    return found
  }
  const begun = await start(t, { store, sessions: undefined })
  const { secret } = await enrolAda(t, begun)
  const grace = await begun.app.auth.createUser({ ...GRACE, emailVerified: true })
  const LOGIN = '/auth/local/login'
  const started = new Browser(begun.app)
  await optionsAt(started, 'login')
  const late = new Browser(begun.app, started.cookies)
  t.equal((await started.post(LOGIN, GRACE)).statusCode, 200)
  goOn = async () => started.post(LOGIN, GRACE)

  const answer = await late.post(LOGIN, GRACE)

  t.equal(answer.statusCode, 200, answer.body)
  t.equal(await userIdIn(late), grace.userId)

  const waiting = new Browser(begun.app)
  await waitAt(t, waiting)
  const lost = new Browser(begun.app, waiting.cookies)
  const code = nextCode(t, secret)
  t.equal((await waiting.post(FINISH, { code })).statusCode, 200)
  goOn = async () => waiting.post('/auth/logout')
  t.match((await lost.post(FINISH, { code })).json(), { code: 'unauthenticated', message: /sent twice/ })
  t.equal(await userIdIn(lost), null)
})

t.test('another process answers what is sent again, at once too', async t => {
  for (const [, keep] of ALL_SESSIONS) {
    const kept = await keep(t)
    const { browser, code } = await waitingAda(t, kept)
    const other = await start(t, kept)
    const lost = new Browser(other.app, browser.cookies)

    const [first, second] = await Promise.all([lost.post(FINISH, { code }), browser.post(FINISH, { code })])

    t.strictSame([first.statusCode, second.statusCode], [200, 200], first.body + second.body)
  }
})

/** A store whose calls tests hold. */
function heldStore () {
  const store = new MemoryAuthStore()
  const { entries, sessions } = capabilitiesOf(store)
  if (entries === null || sessions === null) throw new Error('this store keeps no sessions')
  return { store, entries, sessions }
}

t.test('what another application of the process answers is found, although its answer comes during the look-up', async t => {
  const { store, entries, sessions } = heldStore()
  const kept = { store, sessions: undefined }
  const { browser, code } = await waitingAda(t, kept)
  const lost = new Browser((await start(t, kept)).app, browser.cookies)
  const [isOpen, isTaken, isSought] = [gate(), gate(), gate()]
  const [attempt, find] = [entries.attempt.bind(entries), entries.find.bind(entries)]
  const [take, insert] = [entries.take.bind(entries), sessions.insert.bind(sessions)]
  let attempts = 0
  entries.attempt = async (key, most) => {
    // The second one has read the session, and comes after the first one has taken the entry.
    if (++attempts === 2) {
      isOpen.pass()
      await isTaken.passed
    }
    return attempt(key, most)
  }
  entries.take = async (...given) => {
    await isOpen.passed
    const content = await take(...given)
    isTaken.pass()
    return content
  }
  sessions.insert = async (...given) => {
    await isSought.passed
    return insert(...given)
  }
  entries.find = async key => {
    const found = await find(key)
    if (key.kind !== 'sent-request') return found
    isSought.pass()
    await answering
    return found
  }
  const answering = browser.post(FINISH, { code })

  const second = await lost.post(FINISH, { code })

  t.strictSame([(await answering).statusCode, second.statusCode], [200, 200], second.body)
})

function gate () {
  const { promise: passed, resolve: pass } = Promise.withResolvers<void>()
  return { passed, pass }
}

/** The acts that ask `onSignIn` once they have taken what they were begun with. */
const ASKING = [
  'a second step by code', 'a second step by a recovery code', 'a second step by a passkey', 'a sign-in by a passkey',
  'a sign-in by the code of a mail', 'a sign-in by the link of a mail, as a new user', 'a sign-in at a provider'
]

const AFTER_A_WRONG_CODE: typeof ACTS = {
  async 'a second step by code, after a wrong one' (start) {
    const { secret } = await enrolAda(start.t, start)
    const browser = new Browser(start.app)
    await waitAt(start.t, browser)
    start.t.equal((await browser.post(FINISH, { code: '000000' })).json().code, 'invalid_code')
    const code = nextCode(start.t, secret)
    return { browser, send: browser => browser.post(FINISH, { code }) }
  }
}

for (const [act, prepare] of Object.entries({ ...ACTS, ...AFTER_A_WRONG_CODE })) {
  if (act in ACTS && !ASKING.includes(act)) continue
  t.test(`another process, which no longer finds what was taken, waits for its answer: ${act}`, async t => {
    const { store, entries } = heldStore()
    const kept = { store, sessions: undefined }
    const [isAsked, isSought] = [gate(), gate()]
    let isHeld = false
    const begun = await start(t, kept, {
      async onSignIn () {
        if (!isHeld) return
        isAsked.pass()
        await isSought.passed
      }
    })
    const { browser, send } = await prepare({ ...begun, t })
    const lost = new Browser((await start(t, kept)).app, browser.cookies)
    const takenAt = entries.takenAt.bind(entries)
    entries.takenAt = async key => {
      isSought.pass()
      return takenAt(key)
    }
    isHeld = true

    const answering = send(browser)
    await Promise.race([isAsked.passed, answering])
    const sending = send(lost)
    await Promise.race([isSought.passed, sending])
    isSought.pass()
    const [first, second] = await Promise.all([answering, sending])

    t.strictSame(outcomeOf(second), outcomeOf(first))
    t.ok(first.statusCode < 400, `${first.statusCode} ${first.body}`)
    t.equal((await Promise.all([browser, lost].map(userIdIn))).filter(userId => userId !== null).length, 1)
  })
}
