import t from 'tap'
import { Accounts } from '../accounts/accounts.js'
import type { AccountQuery, Rule, UniqueKeys } from '../accounts/auth-store.js'
import { MemoryAuthStore } from '../index.js'
import { userIdIn } from '../../test/helpers/app.js'
import { eventsOf } from '../../test/helpers/audit-events.js'
import { Browser } from '../../test/helpers/browser.js'
import {
  ADA, NEW_PASSWORD, confirmAddress, mailsInTheEnd, registerAt, resetTokenOf, startMailApp
} from '../../test/helpers/mail-app.js'
import { linkAt, signInAt } from '../../test/helpers/own-provider.js'

t.test('a forgotten password is replaced by a link, and all sessions end', async t => {
  const start = await startMailApp(t)
  const { app, browser, mails } = start
  await browser.post('/auth/local/login', ADA)
  await registerAt(start)
  const userId = await userIdIn(browser) ?? ''
  const revoked: string[] = []
  app.auth.channel.on('revoke', userId => { revoked.push(userId) })
  const passwords = eventsOf(t, 'password')

  const other = new Browser(app)
  const asked = await other.post('/auth/local/forgot-password', { email: ' ADA@Example.com' })
  t.strictSame([asked.statusCode, asked.body], [202, ''])
  const link = await mails.next('reset-password')
  t.match(link, { to: ADA.email, expiresIn: 1800 })
  t.equal(link.url, `https://app.example/auth/local/reset-password?token=${link.token}`)

  const reset = await other.post('/auth/local/reset-password', { token: link.token, password: NEW_PASSWORD })

  t.equal(reset.statusCode, 204)
  t.equal(await userIdIn(other), null, 'the link signs nobody in')
  t.equal((await browser.get('/private')).statusCode, 401, 'sessions from before have ended')
  t.equal((await other.post('/auth/local/login', ADA)).json().code, 'invalid')
  const signedIn = await other.post('/auth/local/login', { ...ADA, password: NEW_PASSWORD })
  t.strictSame([signedIn.statusCode, signedIn.json().userId], [200, userId])
  t.match(signedIn.json().claims, { email: ADA.email, email_verified: true })
  t.match(await mails.next('password-changed'), { to: ADA.email, url: null })
  t.strictSame(revoked, [userId])
  t.match(passwords, [{ userId, requestId: String, ip: String }])
})

t.test('recovery of an address that was not verified removes all other links, and names the claims that stay', async t => {
  const start = await startMailApp(t)
  const { app, browser } = start
  await registerAt(start)
  await linkAt(browser, 'a', { subject: '1' })
  await linkAt(browser, 'b', { subject: '2' })
  const userId = await userIdIn(browser) ?? ''
  await app.auth.grant(userId, { role: 'member' })
  const recoveries = eventsOf(t, 'recovery')

  const token = await resetTokenOf(start)
  await new Browser(app).post('/auth/local/reset-password', { token, password: NEW_PASSWORD })

  t.strictSame((await app.auth.links(userId)).map(({ provider }) => provider), ['local'])
  t.match(recoveries, [{ userId, removed: ['a', 'b'], claims: { role: 'member' } }])
  t.match(await app.auth.findUser({ userId }), { emailVerified: true, claims: { role: 'member' } })
})

t.test('a user with a verified address gets their first password by the link, and keeps their links', async t => {
  const start = await startMailApp(t)
  const { app, browser } = start
  await signInAt(browser, 'a', { subject: '1', email: ADA.email })
  const userId = await userIdIn(browser) ?? ''
  const recoveries = eventsOf(t, 'recovery')

  const token = await resetTokenOf(start)
  await new Browser(app).post('/auth/local/reset-password', { token, password: NEW_PASSWORD })

  const { statusCode, body } = await browser.post('/auth/local/login', { ...ADA, password: NEW_PASSWORD })
  t.equal(statusCode, 200, body)
  t.equal(await userIdIn(browser), userId)
  t.strictSame((await app.auth.links(userId)).map(({ provider }) => provider), ['a', 'local'])
  t.strictSame(recoveries, [])
})

t.test('the signed-in user confirms their address by the link, once, after they have seen what the account has', async t => {
  const start = await startMailApp(t)
  const { app, browser } = start
  const token = await registerAt(start)
  const verifications = eventsOf(t, 'verification')
  const userId = await userIdIn(browser) ?? ''
  t.match(await app.auth.findUser({ userId }), { emailVerified: false })

  const asked = await browser.post('/auth/local/verify-email', { token })
  t.match([asked.statusCode, asked.json()], [409, {
    code: 'choice_required', methods: [{ kind: 'password', provider: 'local', createdAt: null }]
  }])
  t.match(await app.auth.findUser({ userId }), { emailVerified: false })
  const { keep: existing } = asked.json()
  const first = await browser.post('/auth/local/verify-email', { token, existing })
  const second = await browser.post('/auth/local/verify-email', { token, existing })

  t.strictSame([first.statusCode, second.json().code], [204, 'invalid_token'])
  t.match(await app.auth.findUser({ userId }), { emailVerified: true })
  t.match(verifications, [{ userId }], 'one event')
  t.equal((await browser.get('/private')).statusCode, 200, 'the session goes on')
})

t.test('an address is confirmed by the link and the password where the user is not signed in', async t => {
  const start = await startMailApp(t)
  const token = await registerAt(start)
  const { app } = start
  const other = new Browser(app)
  const isVerified = async () => (await app.auth.findUser({ email: ADA.email }))?.emailVerified

  for (const [password, code] of [[undefined, 'unauthenticated'], ['', 'unauthenticated'], ['wrong password', 'invalid']]) {
    const refused = await other.post('/auth/local/verify-email', { token, password })
    t.strictSame([refused.statusCode, refused.json().code, await isVerified()], [401, code, false])
  }
  const confirmed = await confirmAddress(other, token, ADA.password)

  t.strictSame([confirmed.statusCode, await isVerified()], [204, true])
  t.equal(await userIdIn(other), null, 'the link signs nobody in')
})

t.test('the session of another user does not confirm an address', async t => {
  const start = await startMailApp(t)
  const token = await registerAt(start)
  const grace = new Browser(start.app)
  await grace.post('/auth/local/register', { email: 'grace@example.com', password: 'correct horse' })

  t.equal((await grace.post('/auth/local/verify-email', { token })).json().code, 'unauthenticated')
})

t.test('the owner of an address frees it from an account that another person registered', async t => {
  const start = await startMailApp(t)
  const { app, browser } = start
  const token = await registerAt(start)
  const userId = await userIdIn(browser) ?? ''
  const revoked: string[] = []
  app.auth.channel.on('revoke', userId => { revoked.push(userId) })
  const released = eventsOf(t, 'email-released')
  const owner = new Browser(app)

  for (const email of [undefined, '', 'grace@example.com']) {
    const refused = await owner.post('/auth/local/verify-email', { token, not_me: true, email })
    t.strictSame([refused.statusCode, refused.json().code], [400, 'invalid_email'])
  }
  const freed = await owner.post('/auth/local/verify-email', { token, not_me: true, email: 'Ada@example.com ' })

  t.equal(freed.statusCode, 204)
  t.equal(await app.auth.findUser({ userId }), null)
  t.equal((await browser.get('/private')).statusCode, 401)
  t.strictSame(revoked, [userId])
  t.match(released, [{ userId, deleted: true }])
  t.equal((await owner.post('/auth/local/verify-email', { token, not_me: true, email: ADA.email })).json().code, 'invalid_token')
  t.equal((await owner.post('/auth/local/register', { ...ADA, password: NEW_PASSWORD })).statusCode, 201)
})

t.test('an account with other sign-in methods stays without the address that was freed', async t => {
  const start = await startMailApp(t)
  const { app, browser } = start
  const token = await registerAt(start)
  await linkAt(browser, 'a', { subject: '1' })
  const userId = await userIdIn(browser) ?? ''
  const released = eventsOf(t, 'email-released')

  await new Browser(app).post('/auth/local/verify-email', { token, not_me: true, email: ADA.email })

  t.match(await app.auth.findUser({ userId }), { email: null })
  t.strictSame((await app.auth.links(userId)).map(({ provider }) => provider), ['a'])
  t.match(released, [{ userId, deleted: false }])
})

t.test('the signed-in user asks for the link again', async t => {
  const start = await startMailApp(t)
  const { app, browser, mails } = start
  await registerAt(start)

  const asked = await browser.post('/auth/local/verify-email')
  const anonymous = await new Browser(app).post('/auth/local/verify-email')

  t.equal(asked.statusCode, 202)
  const { token, to } = await mails.next('verify-email')
  t.equal(to, ADA.email)
  t.equal((await confirmAddress(browser, token)).statusCode, 204)
  t.strictSame([anonymous.statusCode, anonymous.json().code], [401, 'unauthenticated'])
})

t.test('a user without an e-mail who asks for the link is told to add one, and gets no mail', async t => {
  const start = await startMailApp(t)
  await signInAt(start.browser, 'a', { subject: '1', email: 'ada@example.com', emailVerified: false })

  const answer = await start.browser.post('/auth/local/verify-email')
  t.strictSame([answer.statusCode, answer.json().code], [403, 'email_missing'])
  t.strictSame(await mailsInTheEnd(start), [])
})

t.test('an address that no account has gets a mail if the application wants that', async t => {
  for (const [unknownAddress, kinds] of [[false, []], [true, ['unknown-address']]] as const) {
    const start = await startMailApp(t, {}, { mails: { unknownAddress } })

    const { statusCode } = await start.browser.post('/auth/local/forgot-password', ADA)

    t.equal(statusCode, 202)
    t.strictSame((await mailsInTheEnd(start)).map(({ kind }) => kind), kinds)
  }
})

t.test('with registration.verify required, a user signs in once their address is confirmed', async t => {
  const hook: boolean[] = []
  const start = await startMailApp(
    t,
    { onSignIn: ({ created }) => { hook.push(created) } },
    { registration: { verify: 'required' } }
  )
  const { browser, mails } = start
  const registrations = eventsOf(t, 'registration')

  const registered = await browser.post('/auth/local/register', ADA)
  t.strictSame([registered.statusCode, registered.body, await userIdIn(browser)], [202, '', null])
  await mails.next('verify-email')

  const wrong = await browser.post('/auth/local/login', { ...ADA, password: 'wrong password' })
  t.equal(wrong.json().code, 'invalid', 'the answer tells only who knows the password')
  const refused = await browser.post('/auth/local/login', ADA)
  t.strictSame([refused.statusCode, refused.json().code, await userIdIn(browser)], [403, 'unverified', null])
  t.strictSame([hook, registrations], [[], []])

  const { token } = await mails.next('verify-email')
  await confirmAddress(browser, token, ADA.password)
  t.equal((await browser.post('/auth/local/login', ADA)).statusCode, 200)
  t.strictSame(hook, [true], 'the hook is asked at the first sign-in')
  t.equal(registrations.length, 1)
})

t.test('with registration.verify required, the form redirects to next without a session', async t => {
  const { browser } = await startMailApp(t, {}, { registration: { verify: 'required' } })

  const { statusCode, headers } = await browser.submit('/auth/local/register', { ...ADA, next: '/look-into-your-mailbox' })

  t.strictSame([statusCode, headers.location, await userIdIn(browser)], [303, '/look-into-your-mailbox', null])
})

t.test('with registration.verify required, a blocked user is told so and gets no link', async t => {
  const start = await startMailApp(t, {}, { registration: { verify: 'required' } })
  const { app, browser } = start
  await registerAt(start)
  const user = await app.auth.findUser({ email: ADA.email })
  await app.auth.block(user?.userId ?? '')

  t.equal((await browser.post('/auth/local/login', ADA)).json().code, 'blocked')
  t.equal((await mailsInTheEnd(start)).length, 1)
})

t.test('without mails, registration sends nothing and none of the routes is there', async t => {
  const { app, browser } = await startMailApp(t, {}, { sendMail: undefined })

  t.equal((await browser.post('/auth/local/register', ADA)).statusCode, 201)
  for (const route of ['forgot-password', 'reset-password', 'verify-email']) {
    t.notOk(app.hasRoute({ method: 'POST', url: `/auth/local/${route}` }), route)
  }
})

t.test('a link whose account changes while it is used is refused', async t => {
  class RacingStore extends MemoryAuthStore {
    meanwhile = async (): Promise<unknown> => undefined

    override async change<T> (find: AccountQuery, wanted: UniqueKeys, rule: Rule<T>): Promise<T> {
      await this.meanwhile()
      return super.change(find, wanted, rule)
    }
  }
  const store = new RacingStore()
  const start = await startMailApp(t, { store })
  const verifyToken = await registerAt(start)
  const { userId } = await store.findUser({ email: ADA.email }) ?? {}
  const passwords = eventsOf(t, 'password')
  const redeem = async (path: string, body: object) => {
    store.meanwhile = async () => {
      store.meanwhile = async () => undefined
      await new Accounts(store).changeUser(String(userId), { endSessions: true })
    }
    const { statusCode, json } = await start.browser.post(`/auth/local/${path}`, body)
    return [statusCode, json().code]
  }

  t.strictSame(await redeem('verify-email', { token: verifyToken, password: ADA.password }), [401, 'invalid_token'])
  t.strictSame(await redeem('reset-password', { token: await resetTokenOf(start), password: NEW_PASSWORD }), [401, 'invalid_token'])
  t.strictSame(passwords, [])
})
