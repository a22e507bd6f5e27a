/** Attacks 62, 63 and 124: how many mails a mailbox gets, and that its owner's are among them. */
import t, { type Test } from 'tap'
import { type Mail, SqlAuthStore } from '../../lib/index.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock, stopTime } from '../helpers/clock.js'
import { deferred } from '../helpers/deferred.js'
import {
  ADA, type MailApp, NEW_PASSWORD, confirmAddress, mailsInTheEnd, registerAt, startMailApp
} from '../helpers/mail-app.js'
import { signInAt } from '../helpers/own-provider.js'
import { emptyDatabase } from '../helpers/postgres.js'

const MINUTE_MS = 60_000
const FORGOT = '/auth/local/forgot-password'
const REGISTER = '/auth/local/register'
const VERIFY = '/auth/local/verify-email'
const CHANGE_EMAIL = '/auth/local/change-email'
const CHANGE_PASSWORD = '/auth/local/change-password'
const MALLORY = { subject: 'mallory', email: 'mallory@example.com' }

/** A browser in which a user of a provider is signed in. */
async function signedInAs ({ app }: MailApp, { subject, email }: { subject: string, email: string }): Promise<Browser> {
  const browser = new Browser(app)
  await signInAt(browser, 'a', { subject, email, emailVerified: true })
  return browser
}

/** Does something once a minute, by the clock of this process. */
async function everyMinute (t: Test, times: number, act: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < times; i++) {
    await act()
    advanceClock(t, MINUTE_MS + 1)
  }
}

/** The kinds of mails that an address got, in order. */
function kindsTo (address: string, mails: readonly Mail[]): string[] {
  return mails.filter(({ to }) => to === address).map(({ kind }) => kind)
}

for (const [verify, own] of [['later', 'verify-email'], ['required', 'verify-email'], ['first', 'register']] as const) {
  t.test(`attack 124: requests of strangers leave the mail of a registration to its owner, with registration.verify ${verify}`, async t => {
    const start = await startMailApp(t, { rateLimit: {} }, { registration: { verify } })
    const mallory = await signedInAs(start, MALLORY)
    await everyMinute(t, 5, async () => {
      t.equal((await mallory.post(FORGOT, { email: ADA.email })).statusCode, 202)
      t.equal((await mallory.post(CHANGE_EMAIL, { email: ADA.email })).statusCode, 202)
    })

    await start.browser.post(REGISTER, verify === 'first' ? { email: ADA.email } : ADA)

    t.equal(kindsTo(ADA.email, await mailsInTheEnd(start)).filter(kind => kind === own).length, 1)
  })
}

t.test('attack 124: registrations with the address of an account leave its owner the mail of a forgotten password', async t => {
  const start = await startMailApp(t, { rateLimit: {} }, { registration: { verify: 'first' } })
  await start.app.auth.createUser({ ...ADA, emailVerified: true })
  for (let i = 0; i < 5; i++) await new Browser(start.app).post(REGISTER, { email: ADA.email })

  await start.browser.post(FORGOT, { email: ADA.email })

  t.strictSame(kindsTo(ADA.email, await mailsInTheEnd(start)), ['exists', 'reset-password'])
})

t.test('attack 124: a forgotten password that no mail answers leaves no count', async t => {
  const start = await startMailApp(t, { rateLimit: {} })
  const { app, browser } = start
  for (let i = 0; i < 5; i++) await browser.post(FORGOT, { email: ADA.email })
  const { userId } = await app.auth.createUser({ ...ADA, emailVerified: true })
  await app.auth.block(userId)
  for (let i = 0; i < 5; i++) await browser.post(FORGOT, { email: ADA.email })
  await app.auth.unblock(userId)

  await browser.post(FORGOT, { email: ADA.email })

  t.strictSame(kindsTo(ADA.email, await mailsInTheEnd(start)), ['reset-password'])
})

t.test('attack 124: a stranger who asks for a link to an address leaves those of its owner, and many get five an hour', async t => {
  const start = await startMailApp(t, { rateLimit: {} })
  const { mails } = start
  const wanted = 'ada@new.example'
  const mallory = await signedInAs(start, MALLORY)
  await everyMinute(t, 5, async () => mallory.post(CHANGE_EMAIL, { email: wanted }))
  const ada = await signedInAs(start, { subject: 'ada', email: ADA.email })

  for (let i = 0; i < 3; i++) await mails.next('change-email')

  await ada.post(CHANGE_EMAIL, { email: wanted })
  const { token } = await mails.next('change-email')
  for (let i = 0; i < 9; i++) {
    const other = await signedInAs(start, { subject: `${i}`, email: `${i}@example.com` })
    t.equal((await other.post(CHANGE_EMAIL, { email: wanted })).statusCode, 202)
  }

  t.equal((await ada.post(`${CHANGE_EMAIL}/confirm`, { token })).statusCode, 204)
  t.equal(kindsTo(wanted, await mailsInTheEnd(start)).length, 5)
})

t.test('attack 124: who gets an address back from a squatter gets the link that confirms it', async t => {
  const start = await startMailApp(t, { rateLimit: {} })
  const { app, browser: squatter, mails } = start
  const token = await registerAt(start)
  await everyMinute(t, 5, async () => squatter.post(VERIFY))
  for (let i = 0; i < 2; i++) await mails.next('verify-email')
  const owner = new Browser(app)
  t.equal((await owner.post(VERIFY, { token, not_me: true, email: ADA.email })).statusCode, 204)

  await owner.post(REGISTER, ADA)

  t.equal((await confirmAddress(owner, (await mails.next('verify-email')).token)).statusCode, 204)
  t.equal((await mailsInTheEnd(start)).length, 4)
})

t.test('attack 124: changes of a password are counted, and send no mail to an address that its user has not confirmed', async t => {
  for (const [rateLimit, changes] of [[{}, 10], [false, 200]] as const) {
    const start = await startMailApp(t, { rateLimit })
    await start.browser.post(REGISTER, ADA)
    const statuses: number[] = []
    for (let i = 0; i < 200; i++) statuses.push((await start.browser.post(CHANGE_PASSWORD, { password: `battery ${i} staple` })).statusCode)

    t.strictSame(statuses, [...Array(changes).fill(204), ...Array(200 - changes).fill(429)])
    t.strictSame(kindsTo(ADA.email, await mailsInTheEnd(start)), ['verify-email'])
  }
})

t.test('attack 124: a first password is counted as a change, and a request without a proof is not', async t => {
  const { browser } = await startMailApp(t, { rateLimit: { reauthenticate: 2 } })
  await browser.post(REGISTER, ADA)
  advanceClock(t, 11 * MINUTE_MS)
  for (let i = 0; i < 4; i++) t.equal((await browser.post(CHANGE_PASSWORD, { password: NEW_PASSWORD })).json().code, 'reauthenticate')
  await browser.post('/auth/local/login', ADA)

  const codes: unknown[] = []
  for (let i = 0; i < 3; i++) codes.push((await browser.post('/auth/local/set-password', { password: NEW_PASSWORD })).json().code)
  t.strictSame(codes, ['exists', 'exists', 'rate_limited'])
})

t.test('attack 124: a confirmed address gets five notices of a kind in an hour, without limits of clients too', async t => {
  const start = await startMailApp(t, { rateLimit: false }, { mails: { limits: true } })
  const { browser } = start
  await confirmAddress(browser, await registerAt(start))
  for (let i = 0; i < 20; i++) t.equal((await browser.post(CHANGE_PASSWORD, { password: `battery ${i} staple` })).statusCode, 204)
  await browser.post(CHANGE_EMAIL, { email: 'ada@new.example' })
  advanceClock(t, 61 * MINUTE_MS)
  await browser.post('/auth/local/login', { ...ADA, password: 'battery 19 staple' })
  await browser.post(CHANGE_PASSWORD, { password: NEW_PASSWORD })

  t.strictSame(kindsTo(ADA.email, await mailsInTheEnd(start)), [
    'verify-email', ...Array(5).fill('password-changed'), 'email-change-requested', 'password-changed'
  ])
})

t.test('attack 124: a user whose address changes again and again causes five notices of a kind in an hour', async t => {
  const start = await startMailApp(t, { rateLimit: false }, { mails: { limits: true } })
  const { browser, mails } = start
  await confirmAddress(browser, await registerAt(start))
  for (let i = 0; i < 8; i++) {
    await browser.post(CHANGE_EMAIL, { email: `${i}@new.example` })
    const { token } = await mails.next('change-email')
    t.equal((await browser.post(`${CHANGE_EMAIL}/confirm`, { token })).statusCode, 204)
  }

  const notices = (await mailsInTheEnd(start)).filter(({ kind }) => kind === 'email-changed')
  t.strictSame(notices.map(({ to }) => to), [ADA.email, ...[0, 1, 2, 3].map(i => `${i}@new.example`)])
})

t.test('attack 124: users who have one address after the other cause five notices of a kind in an hour', async t => {
  const start = await startMailApp(t, { rateLimit: false }, { mails: { limits: true } })
  const { browser } = start
  for (let user = 0; user < 3; user++) {
    await confirmAddress(browser, await registerAt(start))
    for (let i = 0; i < 3; i++) t.equal((await browser.post(CHANGE_PASSWORD, { password: `battery ${i} staple` })).statusCode, 204)
    t.equal((await browser.post('/auth/local/delete-account')).statusCode, 204)
  }

  t.equal(kindsTo(ADA.email, await mailsInTheEnd(start)).filter(kind => kind === 'password-changed').length, 5)
})

t.test('attack 124: an address that its user has not confirmed is not told that it was given up', async t => {
  const start = await startMailApp(t)
  await start.browser.post(REGISTER, ADA)
  await start.browser.post(CHANGE_EMAIL, { email: 'ada@new.example' })
  const { token } = await start.mails.next('change-email')
  t.equal((await start.browser.post(`${CHANGE_EMAIL}/confirm`, { token })).statusCode, 204)

  t.strictSame(kindsTo(ADA.email, await mailsInTheEnd(start)), ['verify-email'])
})

t.test('attack 63: rateLimit: false keeps the limits of mailboxes, and mails.limits: false removes them', async t => {
  for (const [limits, mails] of [[true, 1], [false, 8]] as const) {
    const start = await startMailApp(t, { rateLimit: false }, { mails: { limits } })
    await start.app.auth.createUser({ ...ADA, emailVerified: true })
    for (let i = 0; i < 8; i++) t.equal((await start.browser.post(FORGOT, { email: ADA.email })).statusCode, 202)

    t.equal((await mailsInTheEnd(start)).length, mails, `mails.limits: ${limits}`)
  }
})

t.test('attack 63: on Postgres all processes share the limits of mailboxes, without limits of clients too', async t => {
  const url = await emptyDatabase(t)
  const started: MailApp[] = []
  for (const store of [new SqlAuthStore(url), new SqlAuthStore(url)]) {
    started.push(await startMailApp(t, { store, rateLimit: false }, { mails: { limits: true } }))
  }
  await started[0]?.app.auth.createUser({ ...ADA, emailVerified: true })

  await Promise.all([...started, ...started].map(async ({ app }) => new Browser(app).post(FORGOT, { email: ADA.email })))

  t.equal((await Promise.all(started.map(mailsInTheEnd))).flat().length, 1)
})

t.test('attack 63: registrations count as requests for a mail, because one mailbox may have many addresses', async t => {
  const start = await startMailApp(t, { rateLimit: { mail: 3 } })
  const statuses: number[] = []
  for (let i = 0; i < 5; i++) statuses.push((await new Browser(start.app).post(REGISTER, { ...ADA, email: `ada+${i}@example.com` })).statusCode)

  t.strictSame(statuses, [201, 201, 201, 429, 429])
  t.equal((await mailsInTheEnd(start)).length, 3)
})

t.test('registrations do not count as requests for a mail where none is sent', async t => {
  const { app } = await startMailApp(t, { rateLimit: { mail: 1 } }, { sendMail: undefined })
  for (let i = 0; i < 3; i++) {
    t.equal((await new Browser(app).post(REGISTER, { ...ADA, email: `ada+${i}@example.com` })).statusCode, 201)
  }
})

t.test('attack 62: the answer does not wait for the count of a mailbox, and without a count no mail is sent', async t => {
  const asked = deferred()
  class SilentAboutMailboxes {
    incr (key: string, done: (error: Error | null, result?: { current: number, ttl: number }) => void): void {
      if (key.startsWith('svc-auth-mailbox')) asked.resolve()
      else done(null, { current: 1, ttl: 1000 })
    }

    child (): this { return this }
  }
  const { lines, server } = logged()
  const start = await startMailApp(t, { rateLimit: { store: SilentAboutMailboxes } }, {}, server)
  await start.app.auth.createUser({ ...ADA, emailVerified: true })
  const pass = stopTime(t)

  t.equal((await start.browser.post(FORGOT, { email: ADA.email })).statusCode, 202)
  await asked.promise
  pass(5000)

  t.strictSame(await mailsInTheEnd(start), [])
  t.match(lines(), [{ level: 50, kind: 'reset-password', msg: 'a mail could not be sent' }])
})

t.test('a mail that is not sent is in the log with its reason, and without an address', async t => {
  const { lines, server } = logged()
  const start = await startMailApp(t, { rateLimit: {} }, {}, server)
  const { app, browser } = start
  const { userId } = await app.auth.createUser({ email: 'blocked@example.com', emailVerified: true, password: ADA.password })
  await app.auth.block(userId)
  await browser.post(REGISTER, ADA)
  await browser.post(VERIFY)
  await browser.post(CHANGE_PASSWORD, { password: NEW_PASSWORD })
  for (const email of ['unknown@example.com', 'blocked@example.com']) await browser.post(FORGOT, { email })
  await app.close()

  t.match(lines(), [
    { kind: 'verify-email', reason: 'limit' },
    { kind: 'password-changed', reason: 'unconfirmed' },
    { kind: 'reset-password', reason: 'unknown' },
    { kind: 'reset-password', reason: 'blocked' }
  ].map(line => ({ level: 30, requestId: /^req-/, msg: 'a mail was not sent', ...line })))
  t.equal(lines().length, 4)
  t.notMatch(JSON.stringify(lines()), '@')
})

/** The options of a server whose lines about mails are kept. */
function logged () {
  const written: string[] = []
  const server = { logger: { level: 'info', stream: { write: (line: string) => { written.push(line) } } } }
  const lines = (): object[] => written.map(line => JSON.parse(line)).filter(({ event }) => event === 'fastify-svc-auth.mail')
  return { lines, server }
}
