import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import t, { type Test } from 'tap'
import type { AccountQuery, Rule, UniqueKeys } from '../../accounts/auth-store.js'
import { AuthError, type AuditEvents, type AuthStore, MemoryAuthStore } from '../../index.js'
import { userIdIn } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import {
  ADA, type MailApp, NEW_PASSWORD, confirmAddress, formsOn, mailsInTheEnd, registerAt, startMailApp
} from '../../../test/helpers/mail-app.js'
import { signInAt } from '../../../test/helpers/own-provider.js'
import { sessionIdOf } from '../../../test/helpers/shared-apps.js'

const NEW_EMAIL = 'ada@new.example'
const HOUR_MS = 3_600_000

/** The events of a name, in the audit and on the channel of an application, from now on. */
function eventsOf<E extends keyof AuditEvents> (t: Test, event: E): Array<AuditEvents[E]> {
  const events: Array<AuditEvents[E]> = []
  const listener = (message: unknown): void => { events.push(message as AuditEvents[E]) }
  subscribe(`fastify-svc-auth.${event}`, listener)
  t.teardown(() => { unsubscribe(`fastify-svc-auth.${event}`, listener) })
  return events
}

interface SignedInApp extends MailApp {
  userId: string
  /** Another browser of the same user. */
  other: Browser
  revoked: string[]
}

/** Starts an application in which a user with a confirmed address is signed in in two browsers. */
async function startSignedIn (t: Test, store: AuthStore = new MemoryAuthStore()): Promise<SignedInApp> {
  const start = await startMailApp(t, { store })
  const { app, browser } = start
  await confirmAddress(browser, await registerAt(start))
  const other = new Browser(app)
  await other.post('/auth/local/login', ADA)
  const revoked: string[] = []
  app.auth.channel.on('revoke', userId => { revoked.push(userId) })
  return { ...start, userId: await userIdIn(browser) ?? '', other, revoked }
}

/** Asks for a link to a new address, and returns its token. */
async function newEmailToken ({ browser, mails }: MailApp, email = NEW_EMAIL): Promise<string> {
  await browser.post('/auth/local/change-email', { email })
  return (await mails.next('change-email')).token
}

t.test('a new password ends all other sessions, and the own one goes on with a new id', async t => {
  const start = await startSignedIn(t)
  const { browser, other, userId, mails, revoked } = start
  const old = new Browser(browser.app, browser.cookies)
  const passwords = eventsOf(t, 'password')

  const answer = await browser.post('/auth/local/change-password', { current: ADA.password, password: NEW_PASSWORD })

  t.strictSame([answer.statusCode, answer.body, answer.cookies.length], [204, '', 1])
  t.not(sessionIdOf(browser), sessionIdOf(old))
  t.equal((await browser.get('/private')).statusCode, 200)
  t.equal((await old.get('/private')).statusCode, 401, 'the old id is dead')
  t.equal((await other.get('/private')).statusCode, 401)
  t.equal((await other.post('/auth/local/login', ADA)).json().code, 'invalid')
  t.equal((await other.post('/auth/local/login', { ...ADA, password: NEW_PASSWORD })).statusCode, 200)
  t.strictSame(revoked, [userId])
  t.match(passwords, [{ userId, requestId: String, ip: String }])
  t.match(await mails.next('password-changed'), { to: ADA.email, url: null, token: null })
})

t.test('a recent sign-in changes the password without the present one; a form goes on to next', async t => {
  const { browser } = await startSignedIn(t)

  const fields = { current: '', password: NEW_PASSWORD, next: '/account' }
  const { statusCode, headers } = await browser.submit('/auth/local/change-password', fields)

  t.strictSame([statusCode, headers.location], [303, '/account'])
  t.equal((await new Browser(browser.app).post('/auth/local/login', { ...ADA, password: NEW_PASSWORD })).statusCode, 200)
})

t.test('a user of a provider sets a password, and signs in by it as the same user', async t => {
  const { app, browser, mails } = await startMailApp(t)
  await signInAt(browser, 'a', { subject: 'ada', email: ADA.email, emailVerified: true })
  const userId = await userIdIn(browser) ?? ''
  const other = new Browser(app)
  await signInAt(other, 'a', { subject: 'ada', email: ADA.email, emailVerified: true })

  t.equal((await browser.post('/auth/local/set-password', { password: ADA.password })).statusCode, 204)

  t.equal((await browser.get('/private')).statusCode, 200)
  t.equal((await other.get('/private')).statusCode, 401)
  t.equal((await other.post('/auth/local/login', ADA)).json().userId, userId)
  t.strictSame((await app.auth.links(userId)).map(({ provider }) => provider), ['a', 'local'])
  t.match(await mails.next('password-changed'), { to: ADA.email })
})

t.test('a new address is the user\'s once they confirm it where they are signed in', async t => {
  const start = await startSignedIn(t)
  const { app, browser, other, userId, mails, revoked } = start
  const events = eventsOf(t, 'email')

  const asked = await browser.post('/auth/local/change-email', { email: ' ADA@new.example', current: ADA.password })
  t.strictSame([asked.statusCode, asked.body], [202, ''])
  const link = await mails.next('change-email')
  t.match(link, { to: NEW_EMAIL, expiresIn: 1800 })
  t.equal(link.url, `https://app.example/auth/local/change-email/confirm?token=${link.token}`)
  t.match(await mails.next('email-change-requested'), { to: ADA.email, url: null, token: null })
  t.equal((await app.auth.findUser({ userId }))?.email, ADA.email, 'nothing is stored until then')
  const id = sessionIdOf(browser)

  const confirmed = await browser.post('/auth/local/change-email/confirm', { token: link.token })

  t.strictSame([confirmed.statusCode, confirmed.body], [204, ''])
  t.match(await app.auth.findUser({ userId }), { email: NEW_EMAIL, emailVerified: true })
  t.not(sessionIdOf(browser), id)
  t.equal((await browser.get('/private')).statusCode, 200)
  t.match((await browser.get('/me')).json().principal, { userId, claims: { email: NEW_EMAIL, email_verified: true } })
  t.equal((await other.get('/private')).statusCode, 401)
  t.equal((await other.post('/auth/local/login', ADA)).json().code, 'invalid', 'the old address is unknown')
  t.equal((await other.post('/auth/local/login', { ...ADA, email: NEW_EMAIL })).json().userId, userId)
  t.strictSame(revoked, [userId])
  t.match(events, [{ userId, requestId: String, ip: String }])
  t.match(await mails.next('email-changed'), { to: ADA.email, url: null })
})

t.test('a new address is confirmed elsewhere with the password, which signs no user in', async t => {
  const start = await startSignedIn(t)
  const { app, browser, userId } = start
  const token = await newEmailToken(start)
  const elsewhere = new Browser(app)
  await elsewhere.post('/auth/local/register', { email: 'grace@example.com', password: ADA.password })
  const grace = await userIdIn(elsewhere)

  const answer = await elsewhere.post('/auth/local/change-email/confirm', { token, password: ADA.password })

  t.equal(answer.statusCode, 204)
  t.equal((await app.auth.findUser({ userId }))?.email, NEW_EMAIL)
  t.equal(await userIdIn(elsewhere), grace, 'the other user stays signed in')
  t.equal((await elsewhere.get('/private')).statusCode, 200)
  t.equal((await browser.get('/private')).statusCode, 401, 'the sessions of the user have ended')
})

t.test('a user deletes their account and is signed out', async t => {
  const { app, browser, other, userId, revoked } = await startSignedIn(t)
  const deletions = eventsOf(t, 'deletion')

  const answer = await browser.post('/auth/local/delete-account', { current: ADA.password })

  t.strictSame([answer.statusCode, answer.body], [204, ''])
  t.match(answer.headers['set-cookie'], /svc_session=;/)
  t.equal(await app.auth.findUser({ userId }), null)
  t.equal((await browser.get('/private')).statusCode, 401)
  t.equal((await other.get('/private')).statusCode, 401)
  t.equal((await other.post('/auth/local/login', ADA)).json().code, 'invalid')
  t.strictSame(revoked, [userId])
  t.match(deletions, [{ userId, requestId: String, ip: String }])
})

t.test('without sendMail the routes are not mounted', async t => {
  const { app } = await startMailApp(t, {}, { sendMail: undefined })

  for (const path of ['change-password', 'set-password', 'change-email', 'change-email/confirm', 'delete-account']) {
    t.equal((await new Browser(app).post(`/auth/local/${path}`, {})).json().code, 'not_found', path)
  }
})

t.test('a visitor who is not signed in changes nothing', async t => {
  const { app } = await startMailApp(t)
  for (const [path, body] of [
    ['change-password', { password: NEW_PASSWORD }], ['set-password', { password: NEW_PASSWORD }],
    ['change-email', { email: NEW_EMAIL }], ['delete-account', {}]
  ] as const) {
    const answer = await new Browser(app).post(`/auth/local/${path}`, body)
    t.strictSame([answer.statusCode, answer.json().code], [401, 'unauthenticated'], path)
  }
})

t.test('a change of a password says what is wrong, and changes nothing', async t => {
  const { app, browser, userId, revoked } = await startSignedIn(t)
  for (const [what, body, code] of [
    ['a wrong password', { current: 'wrong password', password: NEW_PASSWORD }, 'invalid'],
    ['a short new one', { current: ADA.password, password: 'short' }, 'weak_password'],
    ['one that is not text', { current: ADA.password, password: 'longer\ufffdlonger' }, 'invalid_request'],
    ['a present one that is not text', { current: 'longer\ufffdlonger', password: NEW_PASSWORD }, 'invalid_request'],
    ['no new one', { current: ADA.password }, 'invalid_request']
  ] as const) {
    t.equal((await browser.post('/auth/local/change-password', body)).json().code, code, what)
  }
  t.equal(await app.auth.checkPassword(userId, ADA.password), true)
  t.strictSame(revoked, [])
})

t.test('a user without a password is told to set the first one', async t => {
  const { browser } = await startMailApp(t)
  await signInAt(browser, 'a', { subject: 'ada', email: ADA.email, emailVerified: true })

  const answer = await browser.post('/auth/local/change-password', { password: NEW_PASSWORD })

  t.strictSame([answer.statusCode, answer.json().code], [400, 'invalid_request'])
  t.match(answer.json().message, /set the first one/)
  const given = await browser.post('/auth/local/delete-account', { current: ADA.password })
  t.strictSame([given.statusCode, given.json().code], [401, 'invalid'], 'no password is theirs')
})

t.test('of two changes of a password at once one wins', async t => {
  const start = await startSignedIn(t)
  const passwords = ['the first password', 'the second password']

  const answers = await Promise.all(passwords.map(async password =>
    new Browser(start.app, start.browser.cookies).post('/auth/local/change-password', { current: ADA.password, password })))

  t.strictSame(answers.map(({ statusCode }) => statusCode).sort(), [204, 401])
  const winner = passwords[answers.findIndex(({ statusCode }) => statusCode === 204)] ?? ''
  t.equal(await start.app.auth.checkPassword(start.userId, winner), true)
})

t.test('a form that asks for a new address goes on to next', async t => {
  const { browser } = await startSignedIn(t)

  const fields = { email: NEW_EMAIL, current: '', next: '/look-into-your-mail' }
  const { statusCode, headers } = await browser.submit('/auth/local/change-email', fields)

  t.strictSame([statusCode, headers.location], [303, '/look-into-your-mail'])
})

t.test('a new address must be one plain address', async t => {
  const { browser } = await startSignedIn(t)
  t.equal((await browser.post('/auth/local/change-email', { email: 'ada@x, eve@x' })).json().code, 'invalid_email')
})

t.test('the page of a new address asks for the password unless its user is signed in', async t => {
  const start = await startSignedIn(t)
  const token = await newEmailToken(start)
  const url = `/auth/local/change-email/confirm?token=${token}`

  const own = await start.browser.get(url, { accept: 'text/html' })
  t.equal(own.statusCode, 200)
  t.match(own.body, NEW_EMAIL)
  t.notMatch(own.body, /type="password"/)
  const elsewhere = new Browser(start.app)
  const page = await elsewhere.get(url, { accept: 'text/html' })
  t.match(page.body, /type="password"/)
  t.match(page.headers, { 'referrer-policy': 'no-referrer', 'cache-control': 'no-store, no-transform' })

  const [form = { action: '', fields: {} }] = formsOn(page.body)
  const wrong = await elsewhere.submit(form.action, { ...form.fields, password: 'wrong password' })
  t.equal(wrong.statusCode, 401)
  t.match(wrong.body, /The password is wrong/)
  t.strictSame(formsOn(wrong.body), [form], 'the page again')
  const right = await elsewhere.submit(form.action, { ...form.fields, password: ADA.password })
  t.strictSame([right.statusCode, right.headers.location], [303, '/'])
  const again = await elsewhere.get(url, { accept: 'text/html' })
  t.equal(again.statusCode, 401)
  t.strictSame(formsOn(again.body), [], 'the link works once')
})

t.test('the link of a new address leads to the page of the application, which shows its errors', async t => {
  const { browser, mails } = await startMailApp(t, {}, { pages: { changeEmail: '/new-address?from=mail' } })
  await browser.post('/auth/local/register', ADA)
  await browser.post('/auth/local/change-email', { email: NEW_EMAIL })
  const { token } = await mails.next('change-email')

  const { statusCode, headers } = await browser.get(`/auth/local/change-email/confirm?token=${token}`)
  t.strictSame([statusCode, headers.location], [302, `/new-address?from=mail&token=${token}`])

  const referer = 'https://app.example/new-address'
  const failed = await new Browser(browser.app).submit('/auth/local/change-email/confirm', { token }, { referer })
  t.strictSame([failed.statusCode, failed.headers.location], [303, '/new-address?error=unauthenticated'])
})

t.test('an account that the application still refers to stays, and so does its session', async t => {
  class Referring extends MemoryAuthStore {
    isReferring = false

    override async change<T> (find: AccountQuery, wanted: UniqueKeys, rule: Rule<T>): Promise<T> {
      if (this.isReferring) throw new AuthError('user_in_use')
      return super.change(find, wanted, rule)
    }
  }
  const store = new Referring()
  const { browser, other } = await startSignedIn(t, store)
  store.isReferring = true

  const answer = await browser.post('/auth/local/delete-account', { current: ADA.password })

  t.strictSame([answer.statusCode, answer.json().code], [409, 'user_in_use'])
  t.equal((await browser.get('/private')).statusCode, 200)
  t.equal((await other.get('/private')).statusCode, 200)
})

t.test('a missing proof tells scripts the methods of the user, and takes browsers to the page of the form', async t => {
  const { browser } = await startSignedIn(t)
  advanceClock(t, HOUR_MS)

  const answer = await browser.post('/auth/local/change-password', { password: NEW_PASSWORD })
  t.equal(answer.statusCode, 403)
  t.match(answer.json(), { statusCode: 403, code: 'reauthenticate', error: 'Forbidden', methods: ['password'] })

  const referer = 'https://app.example/account'
  const { statusCode, headers } = await browser.submit('/auth/local/change-password', { password: NEW_PASSWORD }, { referer })
  t.strictSame([statusCode, headers.location], [303, '/account?error=reauthenticate'])

  t.equal((await browser.post('/auth/local/reauthenticate', { password: ADA.password })).statusCode, 204)
  t.equal((await browser.post('/auth/local/change-password', { password: NEW_PASSWORD })).statusCode, 204)
})

t.test('a form that needs a recent sign-in leads to reauthenticatePage, and from there back to its page', async t => {
  const start = await startMailApp(t, { reauthenticatePage: '/confirm?from=form' })
  const { browser } = start
  await registerAt(start)
  advanceClock(t, HOUR_MS)
  const referer = 'https://app.example/account?tab=2'
  const locationOf = async (fields: object): Promise<unknown> => {
    const answer = await browser.submit('/auth/local/delete-account', { ...fields }, { referer })
    return [answer.statusCode, answer.headers.location]
  }

  t.strictSame(await locationOf({}), [303, '/confirm?from=form&next=%2Faccount%3Ftab%3D2'])
  t.strictSame(await locationOf({ error_next: '/settings' }), [303, '/settings?error=reauthenticate'], 'a page that was asked for comes first')
  t.strictSame(await locationOf({ current: 'wrong' }), [303, '/account?tab=2&error=invalid'])
  t.match((await browser.post('/auth/local/delete-account')).json(), { code: 'reauthenticate', methods: ['password'] })
})

t.test('the option mails.notices leaves the notices out', async t => {
  const start = await startMailApp(t, {}, { mails: { notices: false } })
  await start.browser.post('/auth/local/register', ADA)
  const token = await newEmailToken(start)
  await start.browser.post('/auth/local/change-email/confirm', { token })
  await start.browser.post('/auth/local/change-password', { password: NEW_PASSWORD })

  const kinds = (await mailsInTheEnd(start)).map(({ kind }) => kind)

  t.strictSame(kinds.filter(kind => kind !== 'verify-email'), ['change-email'])
})

t.test('a reset that overtakes a change of the password wins', async t => {
  let meanwhile: (() => Promise<unknown>) | null = null
  class OvertakenStore extends MemoryAuthStore {
    override async findCredential (email: string): ReturnType<MemoryAuthStore['findCredential']> {
      const overtake = meanwhile
      meanwhile = null
      await overtake?.()
      return super.findCredential(email)
    }
  }
  const { app, browser, userId } = await startSignedIn(t, new OvertakenStore())

  meanwhile = async () => app.auth.setPassword(userId, 'the password of the owner')
  const answer = await browser.post('/auth/local/change-password', { password: NEW_PASSWORD })

  t.equal(answer.json().code, 'unauthenticated')
  t.equal(await app.auth.checkPassword(userId, 'the password of the owner'), true)
})
