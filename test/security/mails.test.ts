/** Attacks 61 to 70 and 75 to 78 over all routes that send mails, and how mails are sent. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mock } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import fastifySwagger from '@fastify/swagger'
import Fastify, { type LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, {
  AuthError, type LocalIdentityProviderOptions, type Mail, MemoryAuthStore
} from '../../lib/index.js'
import type { AccountQuery, Rule, UniqueKeys } from '../../lib/accounts/auth-store.js'
import { Accounts } from '../../lib/accounts/accounts.js'
import { hashing } from '../../lib/features/password/hashing.js'
import { mailbox } from '../../lib/testing.js'
import { SESSION_SECRET, localProvider, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { deferred } from '../helpers/deferred.js'
import {
  ADA, BASE_URL, type MailApp, NEW_PASSWORD, confirmAddress, formsOn, mailsInTheEnd, registerAt, resetTokenOf, startMailApp
} from '../helpers/mail-app.js'
import { linkAt, signInAt } from '../helpers/own-provider.js'

const MINUTE_MS = 60_000
const FORGOT = '/auth/local/forgot-password'
const RESET = '/auth/local/reset-password'
const VERIFY = '/auth/local/verify-email'
const REGISTER = '/auth/local/register'
const CHANGE = '/auth/local/change-email'
const CONFIRM = '/auth/local/change-email/confirm'
const NEW_EMAIL = 'ada@new.example'
const FIRST: LocalIdentityProviderOptions = { registration: { verify: 'first' } }

const EVIL_HEADERS: ReadonlyArray<Record<string, string>> = [
  { host: 'evil.example' }, { 'x-forwarded-host': 'evil.example' }, { forwarded: 'host=evil.example;proto=http' }
]

/** Addresses of each kind of user; `unknown` is that of none. */
async function addAddresses ({ app }: MailApp): Promise<Record<string, string>> {
  const { password } = ADA
  await app.auth.createUser({ email: 'verified@example.com', emailVerified: true, password })
  await app.auth.createUser({ email: 'unverified@example.com', password })
  await signInAt(new Browser(app), 'a', { subject: '1', email: 'provider@example.com' })
  const { userId } = await app.auth.createUser({ email: 'blocked@example.com', emailVerified: true, password })
  await app.auth.block(userId)
  return {
    unknown: 'unknown@example.com',
    verified: 'verified@example.com',
    unverified: 'unverified@example.com',
    'of a provider': 'provider@example.com',
    blocked: 'blocked@example.com'
  }
}

/** What an answer shows, without its time. */
function shown ({ statusCode, headers: { date, ...headers }, body }: LightMyRequestResponse): object {
  return { statusCode, headers, body }
}

for (const [path, local] of [[FORGOT, {}], [REGISTER, FIRST]] as const) {
  t.test(`attack 61, attack 62: ${path} answers alike for each address, also beyond its limit and while no mail is sent`, async t => {
    const hangs = deferred()
    for (const sendMail of [
      () => {}, async () => hangs.promise, async () => { throw new Error('down') }, () => { throw new Error('down') }
    ]) {
      const start = await startMailApp(t, { rateLimit: { mail: 1000, register: 1000 } }, { ...local, sendMail })
      const answers = new Map<string, object[]>()
      for (const [kind, email] of Object.entries(await addAddresses(start))) {
        const seen: object[] = []
        for (let i = 0; i < 3; i++) {
          seen.push(shown(await new Browser(start.app).post(path, { email })))
          seen.push(shown(await new Browser(start.app).submit(path, { email, next: '/sent' })))
        }
        answers.set(kind, seen)
      }
      t.match(answers.get('unknown')?.slice(-2), [{ statusCode: 202, body: '' }, { statusCode: 303, headers: { location: '/sent' } }])
      for (const [kind, answer] of answers) t.strictSame(answer, answers.get('unknown'), kind)
    }
    hangs.resolve()
  })
}

t.test('attack 61: a forgotten password mails the addresses of users who may sign in', async t => {
  const start = await startMailApp(t)
  for (const email of Object.values(await addAddresses(start))) await start.browser.post(FORGOT, { email })

  t.strictSame((await mailsInTheEnd(start)).map(({ kind, to }) => [kind, to]).sort(), [
    ['reset-password', 'provider@example.com'], ['reset-password', 'unverified@example.com'], ['reset-password', 'verified@example.com']
  ])
})

t.test('attack 61, attack 62: an address to register gets one mail a minute, about an account or to register', async t => {
  const start = await startMailApp(t, { rateLimit: {} }, FIRST)
  await addAddresses(start)
  for (const email of ['unknown@example.com', 'verified@example.com']) {
    for (let i = 0; i < 3; i++) await start.browser.post(REGISTER, { email })
  }

  t.strictSame((await mailsInTheEnd(start)).map(({ kind, to }) => [kind, to]).sort(), [
    ['exists', 'verified@example.com'], ['register', 'unknown@example.com']
  ])
})

t.test('attack 62: the link to confirm an address is sent once a minute', async t => {
  const start = await startMailApp(t, { rateLimit: {} })
  await start.browser.post(REGISTER, ADA)
  for (let i = 0; i < 3; i++) t.equal((await start.browser.post(VERIFY)).statusCode, 202)

  t.equal((await mailsInTheEnd(start)).length, 1)
})

t.test('attack 62: the links of several users are counted each for its own address', async t => {
  const start = await startMailApp(t, { rateLimit: {} })
  const browsers = [start.browser, new Browser(start.app)]
  const emails = [ADA.email, 'grace@example.com']
  for (const [index, browser] of browsers.entries()) await browser.post(REGISTER, { ...ADA, email: emails[index] })
  advanceClock(t, MINUTE_MS + 1000)
  for (const browser of browsers) t.equal((await browser.post(VERIFY)).statusCode, 202)

  t.strictSame((await mailsInTheEnd(start)).map(({ to }) => to), [...emails, ...emails])
})

t.test('attack 63: new addresses are counted for the user, and not for those beside them', async t => {
  const start = await startMailApp(t, { rateLimit: {} })
  const other = new Browser(start.app)
  await start.browser.post(REGISTER, ADA)
  await other.post(REGISTER, { ...ADA, email: 'grace@example.com' })
  for (let i = 0; i < 5; i++) await start.browser.post(CHANGE, { email: `${i}@new.example` })

  t.equal((await start.browser.post(CHANGE, { email: NEW_EMAIL })).statusCode, 429)
  t.equal((await other.post(CHANGE, { email: NEW_EMAIL })).statusCode, 202)
})

t.test('attack 63: 500 requests from 50 addresses in 20 spellings cause five mails an hour, and other routes answer', async t => {
  const start = await startMailApp(t, { rateLimit: {} }, {}, { trustProxy: true })
  const { app, mails } = start
  await addAddresses(start)
  const spellings = Array.from({ length: 20 }, (_, index) => {
    const upper = Array.from('verified', (letter, place) => (index >> (place % 5)) & 1 ? letter.toUpperCase() : letter)
    return `${' '.repeat(index % 3)}${upper.join('')}@Example.com${' '.repeat(index % 2)}`
  })
  for (let batch = 0; batch < 10; batch++) {
    advanceClock(t, batch * 1.1 * MINUTE_MS)
    const asked = Promise.all(Array.from({ length: 50 }, async (_, client) => app.inject({
      method: 'POST',
      url: FORGOT,
      headers: { 'x-forwarded-for': client % 2 === 0 ? `192.0.2.${client}` : `2001:db8:0:${client}::${batch}` },
      payload: { email: spellings[(client + batch) % 20] }
    })))
    t.equal((await app.inject('/me')).statusCode, 200)
    t.strictSame(new Set((await asked).map(({ statusCode }) => statusCode)), new Set([202]))
    if (batch < 5) await mails.next('reset-password')
  }

  t.strictSame((await mailsInTheEnd(start)).map(({ to }) => to), Array(5).fill('verified@example.com'))
})

t.test('attack 63: routes that cause a mail, or use a token, count it for the client', async t => {
  for (const [limit, local, path, body] of [
    ['mail', FIRST, REGISTER, { email: NEW_EMAIL }], ['register', FIRST, REGISTER, { email: NEW_EMAIL }],
    ['code', FIRST, REGISTER, { token: 'x', password: NEW_PASSWORD }], ['code', {}, CONFIRM, { token: 'x' }],
    ['code', {}, RESET, { token: 'x', password: NEW_PASSWORD }], ['code', {}, VERIFY, { token: 'x' }],
    ['mail', {}, CHANGE, { email: NEW_EMAIL }], ['mail', {}, VERIFY, {}], ['mail', {}, FORGOT, { email: NEW_EMAIL }]
  ] as const) {
    const { browser } = await startMailApp(t, { rateLimit: { [limit]: 2 } }, local)
    const codes: unknown[] = []
    for (let i = 0; i < 3; i++) codes.push((await browser.post(path, body)).statusCode)
    t.equal(codes.indexOf(429), 2, `${limit} ${path}: ${codes}`)
  }
})

t.test('attack 63: while mails cannot be counted, none is sent, with the same answer for each address', async t => {
  class BrokenForMailboxes {
    incr (key: string, done: (error: Error | null, result?: { current: number, ttl: number }) => void): void {
      if (key.startsWith('svc-auth-mailbox')) done(new Error('the store of counts is down'))
      else done(null, { current: 1, ttl: 1000 })
    }

    child (): this { return this }
  }
  const start = await startMailApp(t, { rateLimit: { store: BrokenForMailboxes } })
  await addAddresses(start)

  for (const email of ['verified@example.com', 'unknown@example.com']) {
    t.equal((await start.browser.post(FORGOT, { email })).statusCode, 202)
  }
  t.strictSame(await mailsInTheEnd(start), [])
})

for (const prefix of ['svc-auth-reauthenticate', 'svc-auth-new-email']) {
  t.test(`attack 63: a store of counts that is silent about ${prefix} is waited for five seconds`, async t => {
    const asked = deferred()
    class Silent {
      incr (key: string, done: (error: Error | null, result?: { current: number, ttl: number }) => void): void {
        if (isSilent && key.startsWith(prefix)) asked.resolve()
        else done(null, { current: 1, ttl: 1000 })
      }

      child (): this { return this }
    }
    let isSilent = false
    const { browser } = await startMailApp(t, { rateLimit: { store: Silent } })
    await browser.post(REGISTER, ADA)
    isSilent = true
    mock.timers.enable({ apis: ['setTimeout'] })
    t.teardown(() => { mock.timers.reset() })

    const answer = browser.post(CHANGE, { email: NEW_EMAIL })
    await asked.promise
    mock.timers.tick(5000)

    t.equal((await answer).json().code, 'unavailable')
  })
}

t.test('attack 64: every link begins with baseUrl, whatever a request says about the host', async t => {
  for (const trustProxy of [false, true]) {
    for (const headers of EVIL_HEADERS) {
      const start = await startMailApp(t, {}, {}, { trustProxy })
      const { app, browser, mails } = start
      await browser.post(REGISTER, ADA, headers)
      await browser.post(VERIFY, {}, headers)
      await browser.post(CHANGE, { email: NEW_EMAIL }, headers)
      await browser.post(FORGOT, { email: ADA.email }, headers)
      const first = await startMailApp(t, {}, FIRST, { trustProxy })
      await first.browser.post(REGISTER, { email: ADA.email }, headers)
      const links = ['verify-email', 'verify-email', 'change-email', 'reset-password'] as const
      for (const kind of links) t.ok((await mails.next(kind)).url.startsWith(`${BASE_URL}/auth/local/`), kind)
      t.ok((await first.mails.next('register')).url.startsWith(`${BASE_URL}/auth/local/register?`))
      await app.close()
      t.notMatch(JSON.stringify(mails.all), 'evil')
    }
  }
})

t.test('attack 64: a request target in absolute form sends no mail', async t => {
  const start = await startMailApp(t)
  const { app } = start
  await addAddresses(start)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo

  const { statusCode } = await post(port, `http://evil.example${FORGOT}`, { email: 'verified@example.com' }, { host: 'evil.example' })

  t.equal(statusCode, 400)
  t.strictSame(await mailsInTheEnd(start), [])
})

t.test('attack 65: an address with a header or several recipients gets no mail', async t => {
  const first = await startMailApp(t, {}, FIRST)
  const start = await startMailApp(t)
  await registerAt(start)
  for (const [{ browser }, path] of [[first, REGISTER], [start, CHANGE], [start, FORGOT]] as const) {
    for (const email of [
      'a@x.example\r\nBcc: b@x.example', 'a@x.example,b@y.example', '"a@evil.example x"@y.example', 'a@x.example b@y.example',
      'a\uFF20x.example', 'Ada <a@x.example>', 'a@x.example\0'
    ]) t.equal((await browser.post(path, { email })).json().code, 'invalid_email', email)
    for (const email of [['a@x.example', 'b@x.example'], { to: 'a@x.example' }, 1, null]) {
      t.equal((await browser.post(path, { email })).json().code, 'invalid_request')
    }
  }

  t.strictSame([...await mailsInTheEnd(first), ...(await mailsInTheEnd(start)).slice(1)], [])
})

t.test('attack 65: look-alikes of an address are other addresses', async t => {
  const start = await startMailApp(t)
  await start.app.auth.createUser({ email: 'kiss@example.com', emailVerified: true, password: ADA.password })
  for (const email of ['k\u0131ss@example.com', 'K\u0130SS@example.com', 'ki\u00df@example.com']) {
    t.ok([202, 400].includes((await start.browser.post(FORGOT, { email })).statusCode), email)
  }
  t.strictSame(await mailsInTheEnd(start), [])
})

t.test('attack 66: a right password behind a link that is used meanwhile is told that the link is over', async t => {
  let meanwhile = async (): Promise<unknown> => undefined
  class OvertakenStore extends MemoryAuthStore {
    override async findCredential (email: string): ReturnType<MemoryAuthStore['findCredential']> {
      await meanwhile()
      return super.findCredential(email)
    }
  }
  const start = await startMailApp(t, { store: new OvertakenStore() })
  const { app, browser, mails } = start
  await registerAt(start)
  await browser.post(CHANGE, { email: NEW_EMAIL })
  const { token } = await mails.next('change-email')

  meanwhile = async () => browser.post(CONFIRM, { token })
  const answer = await new Browser(app).post(CONFIRM, { token, password: ADA.password })

  t.equal(answer.json().code, 'invalid_token')
  t.equal(await userIdIn(browser), (await app.auth.findUser({ email: NEW_EMAIL }))?.userId)
})

t.test('attack 72: an identity joins no account whose address changes meanwhile', async t => {
  let meanwhile = async (): Promise<unknown> => undefined
  class OvertakenStore extends MemoryAuthStore {
    override async change<T> (find: AccountQuery, wanted: UniqueKeys, rule: Rule<T>): Promise<T> {
      // Before the link is added.
      if (wanted.link != null) await meanwhile()
      return super.change(find, wanted, rule)
    }
  }
  const store = new OvertakenStore()
  const { app, browser } = await startMailApp(t, { store })
  const { userId } = await app.auth.createUser({ email: ADA.email, emailVerified: true, password: ADA.password })

  meanwhile = async () => new Accounts(store).changeEmail({ userId, email: ADA.email, generation: 0 }, NEW_EMAIL)
  await signInAt(browser, 'a', { subject: 'the next owner', email: ADA.email })

  t.strictSame((await app.auth.links(userId)).map(({ provider }) => provider), ['local'])
  t.match(await app.auth.findUser({ email: ADA.email }), { userId: await userIdIn(browser) })
})

t.test('attack 67: links are over after each change that ends the sessions of the user', async t => {
  const OTHER = { subject: 'ada' }
  for (const [what, end] of [
    ['a changed password', async ({ browser }) => browser.post('/auth/local/change-password', { password: NEW_PASSWORD })],
    ['a changed e-mail', async ({ browser, mails }) => {
      await browser.post(CHANGE, { email: 'other@new.example' })
      return browser.post(CONFIRM, { token: (await mails.next('change-email')).token })
    }],
    ['a removed link', async ({ app, browser }) => app.auth.unlink(await userIdIn(browser) ?? '', 'b')],
    ['a reset', async start => new Browser(start.app).post(RESET, { token: await resetTokenOf(start), password: NEW_PASSWORD })],
    ['a sign-out everywhere', async ({ app, browser }) => app.auth.signOutEverywhere(await userIdIn(browser) ?? '')],
    ['a password set by the application', async ({ app, browser }) => app.auth.setPassword(await userIdIn(browser) ?? '', NEW_PASSWORD)],
    ['a block that is over', async ({ app, browser }) => {
      const userId = await userIdIn(browser) ?? ''
      await app.auth.block(userId)
      return app.auth.unblock(userId)
    }]
  ] satisfies Array<[string, (start: MailApp) => Promise<unknown>]>) {
    const start = await startMailApp(t)
    const { app, browser } = start
    const verifyToken = await registerAt(start)
    await linkAt(browser, 'b', OTHER)
    const resetToken = await resetTokenOf(start)
    t.equal((await browser.get(`${RESET}?token=${resetToken}`)).statusCode, 200)
    await browser.post(CHANGE, { email: NEW_EMAIL })
    const { token: changeToken } = await start.mails.next('change-email')

    await end(start)

    for (const [path, body] of [
      [RESET, { token: resetToken, password: 'another password' }], [VERIFY, { token: verifyToken, password: ADA.password }],
      [VERIFY, { token: verifyToken, not_me: true, email: ADA.email }],
      [CONFIRM, { token: changeToken, password: ADA.password }]
    ] as const) t.equal((await new Browser(app).post(path, body)).json().code, 'invalid_token', what)
    t.equal(await app.auth.findUser({ email: NEW_EMAIL }), null, what)
  }
})

t.test('attack 67: a link that is asked for while the sessions of the user end is over', async t => {
  let meanwhile = async (): Promise<unknown> => undefined
  class OvertakenStore extends MemoryAuthStore {
    override async findCredential (email: string): ReturnType<MemoryAuthStore['findCredential']> {
      const credential = await super.findCredential(email)
      await meanwhile()
      return credential
    }
  }
  const start = await startMailApp(t, { store: new OvertakenStore() })
  const { app, browser, mails } = start
  await registerAt(start)
  const userId = await userIdIn(browser) ?? ''

  meanwhile = async () => app.auth.signOutEverywhere(userId)
  await browser.post(CHANGE, { email: NEW_EMAIL })
  meanwhile = async () => undefined

  const { token } = await mails.next('change-email')
  t.equal((await browser.post(CONFIRM, { token, password: ADA.password })).json().code, 'invalid_token')
})

t.test('attack 68: a route accepts tokens of its own mails alone, and no token of a mail is one of the application', async t => {
  const first = await startMailApp(t, {}, FIRST)
  await first.browser.post(REGISTER, { email: NEW_EMAIL })
  const start = await startMailApp(t)
  const { app, browser } = start
  const verifyToken = await registerAt(start)
  const userId = await userIdIn(browser) ?? ''
  const resetToken = await resetTokenOf(start)
  await browser.post(CHANGE, { email: NEW_EMAIL })
  const tokens: Record<string, string> = {
    [REGISTER]: (await first.mails.next('register')).token,
    [VERIFY]: verifyToken,
    [RESET]: resetToken,
    [CONFIRM]: (await start.mails.next('change-email')).token
  }
  const claims = { email: ADA.email, generation: 0, to: NEW_EMAIL }
  const purposes = ['register', 'verify-email', 'reset-password', 'change-email']
  for (const [index, path] of Object.keys(tokens).entries()) {
    const forged = await app.localIdp?.issueIdToken(userId, claims, 60, { purpose: purposes[index] ?? '' })
    const { browser } = path === REGISTER ? first : start
    for (const token of [forged, ...Object.entries(tokens).flatMap(([own, token]) => own === path ? [] : [token])]) {
      t.equal((await browser.post(path, { token, password: NEW_PASSWORD })).json().code, 'invalid_token', path)
    }
  }

  for (const token of Object.values(tokens)) {
    t.equal((await browser.post('/auth/local/verify-token', { token })).json().code, 'invalid_token')
    t.equal((await new Browser(app).get('/bearer', { authorization: `Bearer ${token}` })).statusCode, 401)
  }
  t.match(await app.auth.findUser({ userId }), { email: ADA.email, emailVerified: false })
})

t.test('attack 69: a link frees an address only if the box says so', async t => {
  const start = await startMailApp(t)
  const { app, browser } = start
  const token = await registerAt(start)

  const { keep: existing } = (await browser.post(VERIFY, { token })).json()
  t.equal((await browser.submit(VERIFY, { token, existing, not_me: 'false', email: ADA.email })).statusCode, 303)
  t.match(await app.auth.findUser({ email: ADA.email }), { emailVerified: true })
})

t.test('attack 69: the link of one user frees the address of no other one', async t => {
  const start = await startMailApp(t)
  const { app, mails } = start
  await registerAt(start)
  const mallory = new Browser(app)
  await mallory.post(REGISTER, { email: 'mallory@example.com', password: ADA.password })
  const { token } = await mails.next('verify-email')

  t.equal((await mallory.post(VERIFY, { token, not_me: true, email: ADA.email })).json().code, 'invalid_email')
  t.equal((await mallory.post(VERIFY, { token, not_me: true })).json().code, 'invalid_email')
  t.equal((await app.auth.users()).users.length, 2)
})

t.test('attack 70: programs that open links and send the forms on their pages redeem nothing', async t => {
  const first = await startMailApp(t, {}, FIRST)
  await first.browser.post(REGISTER, { email: ADA.email })
  const registerToken = (await first.mails.next('register')).token
  const start = await startMailApp(t)
  const verifyToken = await registerAt(start)
  const resetToken = await resetTokenOf(start)
  // The first proof of an address ends the other links.
  const other = await startMailApp(t)
  await registerAt(other)
  await other.browser.post(CHANGE, { email: NEW_EMAIL })
  const changeToken = (await other.mails.next('change-email')).token

  for (const [{ app }, url] of [
    [first, `${REGISTER}?token=${registerToken}`], [start, `${VERIFY}?token=${verifyToken}`],
    [start, `${RESET}?token=${resetToken}`], [other, `${CONFIRM}?token=${changeToken}`]
  ] as const) {
    const scanner = new Browser(app)
    for (let i = 0; i < 5; i++) {
      await scanner.send({ method: 'HEAD', url })
      const { body } = await scanner.get(url, { accept: 'text/html', 'sec-purpose': 'prefetch', 'sec-fetch-site': 'cross-site' })
      t.notMatch(body, '<script')
      for (const { action, fields } of formsOn(body)) {
        for (const filled of [fields, { ...fields, password: '', name: '', email: '' }]) {
          t.ok([400, 401].includes((await scanner.submit(action, filled)).statusCode))
        }
      }
    }
    t.equal(await userIdIn(scanner), null)
  }
  t.strictSame((await first.app.auth.users()).users, [])
  t.equal(await other.app.auth.findUser({ email: NEW_EMAIL }), null)
  t.match(await start.app.auth.findUser({ email: ADA.email }), { emailVerified: false })

  t.equal((await first.browser.post(REGISTER, { token: registerToken, password: ADA.password })).statusCode, 201)
  t.equal((await confirmAddress(start.browser, verifyToken)).statusCode, 204)
  t.equal((await other.browser.post(CONFIRM, { token: changeToken })).statusCode, 204)
})

t.test('attack 75: a sign-in is a recent authentication for ten minutes', async t => {
  const { browser } = await startMailApp(t)
  await browser.post(REGISTER, ADA)

  advanceClock(t, 10 * MINUTE_MS - 1000)
  t.equal((await browser.post(CHANGE, { email: NEW_EMAIL })).statusCode, 202)
  advanceClock(t, 2000)
  t.equal((await browser.post(CHANGE, { email: NEW_EMAIL })).json().code, 'reauthenticate')
})

t.test('attack 76: a first password that is not text is refused', async t => {
  const { app, browser } = await startMailApp(t)
  await signInAt(browser, 'a', { subject: 'ada', email: ADA.email })

  t.equal((await browser.post('/auth/local/set-password', { password: 'longer\ufffdlonger' })).json().code, 'invalid_request')
  t.strictSame((await app.auth.links(await userIdIn(browser) ?? '')).map(({ provider }) => provider), ['a'])
})

t.test('attack 77: no token is in the log, the audit events, a redirect or the documentation, also when a mail fails', async t => {
  for (const verify of ['later', 'first'] as const) {
    const seen: string[] = []
    const box = mailbox()
    const app = Fastify({ logger: { level: 'trace', stream: { write: (line: string) => { seen.push(line) } } } })
    t.teardown(() => app.close())
    for (const event of ['failure', 'email', 'password', 'verification', 'email-released', 'registration', 'sign-in', 'deletion']) {
      const listener = (payload: unknown): void => { seen.push(JSON.stringify(payload)) }
      subscribe(`fastify-svc-auth.${event}`, listener)
      t.teardown(() => { unsubscribe(`fastify-svc-auth.${event}`, listener) })
    }
    await app.register(fastifySwagger, { openapi: { openapi: '3.1.0' } })
    await app.register(authPlugin, {
      baseUrl: BASE_URL,
      session: { secret: SESSION_SECRET },
      store: new MemoryAuthStore(),
      rateLimit: false,
      loginPage: '/login',
      local: localProvider({
        registration: { verify },
        sendMail (mail: Mail) {
          box.sendMail(mail)
          throw Object.assign(new Error(`550 refused: ${mail.to} ${mail.url}`), { code: 'EENVELOPE', command: mail.url })
        }
      })
    })
    await app.ready()
    const browser = new Browser(app)
    const tokens: string[] = []
    /** Opens a link and sends its form, wrong and right, as a browser and as a script. */
    const follow = async (path: string, token: string, body: Record<string, string>): Promise<void> => {
      tokens.push(token)
      const referer = `${BASE_URL}${path}?token=${token}`
      const page = await browser.get(`${path}?token=${token}`, { accept: 'text/html' })
      t.match(page.headers, {
        'content-security-policy': /default-src 'none'/, 'referrer-policy': 'no-referrer', 'cache-control': 'no-store, no-transform'
      })
      t.notMatch(page.body, /(?:src|href|url\()\s*=?\s*["'(]?(?:https?:)?\/\//)
      for (const answer of [
        await new Browser(app).submit(path, { token, ...body, password: 'short' }),
        await new Browser(app).post(path, { token, ...body, password: 'short' }),
        await browser.submit(path, { token, ...body }),
        await browser.submit(path, { token, ...body }),
        await browser.get(`${path}?token=${token}x`, { accept: 'text/html', referer }),
        await browser.get(`${path}?token=${token}x`, { accept: 'application/json' })
      ]) {
        seen.push(JSON.stringify(answer.headers))
        if (!/html/.test(String(answer.headers['content-type']))) seen.push(answer.body)
      }
    }

    if (verify === 'first') {
      await browser.post(REGISTER, { email: ADA.email })
      await follow(REGISTER, (await box.next('register')).token, { password: ADA.password })
    } else {
      await browser.post(REGISTER, ADA)
      await follow(VERIFY, (await box.next('verify-email')).token, {})
    }
    await browser.post(CHANGE, { email: NEW_EMAIL })
    await follow(CONFIRM, (await box.next('change-email')).token, {})
    await browser.post(FORGOT, { email: NEW_EMAIL })
    await follow(RESET, (await box.next('reset-password')).token, { password: NEW_PASSWORD })
    await app.close()
    seen.push(JSON.stringify(app.swagger()))

    const all = seen.join('\n')
    for (const secret of [...tokens, ADA.password, NEW_PASSWORD]) t.notOk(all.includes(secret))
    t.notOk(seen.some(line => line.includes('550 refused')), 'the words of the mail server')
    t.ok(seen.some(line => line.includes('"code":"EENVELOPE"')), 'a mail that fails is logged')
  }
})

t.test('attack 78: a password that is refused leaves the links of a reset and a registration as they were', async t => {
  const check = (password: string): boolean => {
    if (password === 'a breached password') throw new AuthError('breached_password')
    return password !== 'a common password'
  }
  const start = await startMailApp(t, {}, { password: { check } })
  await registerAt(start)
  const resetToken = await resetTokenOf(start)
  const first = await startMailApp(t, {}, { ...FIRST, password: { check } })
  await first.browser.post(REGISTER, { email: ADA.email })
  const { token } = await first.mails.next('register')

  for (const [{ browser }, path, body, status] of [
    [start, RESET, { token: resetToken }, 204], [first, REGISTER, { token }, 201]
  ] as const) {
    for (const [password, code] of [
      ['short', 'weak_password'], ['a common password', 'weak_password'], ['a breached password', 'breached_password'],
      ['\ufffd'.repeat(9), 'invalid_request'], ['x'.repeat(1025), 'weak_password'], ['x'.repeat(2_000_000), 'invalid_request'],
      [12345678, 'invalid_request']
    ] as const) t.equal((await browser.post(path, { ...body, password })).json().code, code)
    t.equal((await browser.post(path, { ...body, password: `${NEW_PASSWORD}\0` })).statusCode, status)
  }
})

t.test('attack 42: while too many passwords wait, the routes that always take one are refused before their body is read', async t => {
  const { app } = await startMailApp(t)
  t.intercept(hashing, 'refusalFor', { value: () => new AuthError('busy', { retryAfter: 3 }) })
  const refused = async (url: string): Promise<void> => {
    const headers = { accept: 'application/json', 'content-type': 'application/json' }
    const { statusCode, json } = await app.inject({ method: 'POST', url, headers, payload: 'not JSON' })
    t.strictSame([statusCode, json().code], [503, 'busy'], url)
  }

  await Promise.all([REGISTER, RESET, ...['change', 'set'].map(verb => `/auth/local/${verb}-password`)].map(refused))
})

t.test('a mail is sent once its answer was sent', async t => {
  const [reached, held] = [deferred(), deferred()]
  const start = await startHeld(t, { reached, held })

  const answer = start.app.inject({ method: 'POST', url: FORGOT, payload: { email: ADA.email } })
  await reached.promise
  for (let i = 0; i < 10; i++) await turn()
  t.strictSame(start.mails.all, [])

  held.resolve()
  await answer
  t.match(await start.mails.next('reset-password'), { to: ADA.email })
})

t.test('a mail is sent for a client that did not wait for its answer', async t => {
  const [reached, held] = [deferred(), deferred()]
  const { app, mails } = await startHeld(t, { reached, held })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const leaving = new AbortController()
  const answer = post(port, FORGOT, { email: ADA.email }, {}, leaving.signal).catch(() => null)
  await reached.promise

  leaving.abort()
  await answer

  t.match(await mails.next('reset-password'), { to: ADA.email })
  held.resolve()
})

t.test('a mail that is not sent within half a minute gives up its place, and is logged', async t => {
  const reached = deferred()
  const lines: string[] = []
  const start = await startMailApp(t, {}, {
    async sendMail () {
      reached.resolve()
      return deferred().promise
    }
  }, { logger: { level: 'error', stream: { write: (line: string) => { lines.push(line) } } } })
  await addAddresses(start)
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => { mock.timers.reset() })
  await start.browser.post(FORGOT, { email: 'verified@example.com' })
  await reached.promise

  mock.timers.tick(30_000)
  await mailsInTheEnd(start)

  t.match(lines.map(line => JSON.parse(line)), [{ event: 'fastify-svc-auth.mail', msg: 'a mail could not be sent' }])
})

t.test('mails.notices leaves out notices about an account alone', async t => {
  const first = await startMailApp(t, {}, { ...FIRST, mails: { notices: false, unknownAddress: true } })
  await first.app.auth.createUser({ email: ADA.email, password: ADA.password })
  await first.browser.post(REGISTER, { email: ADA.email })
  await first.browser.post(FORGOT, { email: NEW_EMAIL })

  t.strictSame((await mailsInTheEnd(first)).map(({ kind }) => kind).sort(), ['exists', 'unknown-address'])
})

t.test('a mail repeats 256 characters of a header at most', async t => {
  const start = await startMailApp(t)
  await addAddresses(start)
  await start.browser.post(FORGOT, { email: 'verified@example.com' }, { 'user-agent': 'u'.repeat(1000), 'accept-language': 'e'.repeat(1000) })

  const { about: { userAgent, language } } = await start.mails.next('reset-password')
  t.strictSame([userAgent, language], ['u'.repeat(256), 'e'.repeat(256)])
})

/** An application with Ada whose answers are held once they are ready. */
async function startHeld (t: Test, { reached, held }: Record<'reached' | 'held', ReturnType<typeof deferred>>): Promise<MailApp> {
  const mails = mailbox()
  const app = Fastify({ forceCloseConnections: true })
  t.teardown(() => app.close())
  app.addHook('onSend', async () => {
    reached.resolve()
    await held.promise
  })
  await app.register(authPlugin, {
    baseUrl: BASE_URL,
    local: localProvider({ sendMail: mails.sendMail }),
    store: new MemoryAuthStore(),
    session: { secret: SESSION_SECRET },
    rateLimit: false
  })
  await app.ready()
  await app.auth.createUser({ email: ADA.email, emailVerified: true, password: ADA.password })
  return { app, mails, browser: new Browser(app) }
}

/** Sends JSON with any request target. */
async function post (
  port: number,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
  signal?: AbortSignal
): Promise<IncomingMessage> {
  const options = { host: '127.0.0.1', port, path, method: 'POST', agent: false as const, ...(signal !== undefined && { signal }) }
  return new Promise((resolve, reject) => {
    httpRequest({ ...options, headers: { accept: 'application/json', 'content-type': 'application/json', ...headers } }, answer => {
      answer.resume()
      resolve(answer)
    }).once('error', reject).end(JSON.stringify(body))
  })
}
