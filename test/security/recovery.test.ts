/** Attacks on recovery and on the confirmation of addresses, by number: see docs/threats.md. */
import t, { type Test } from 'tap'
import type { AuthPluginOptions } from '../../lib/index.js'
import { localProvider, startApp, userIdIn } from '../helpers/app.js'
import { eventsOf } from '../helpers/audit-events.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { deferred } from '../helpers/deferred.js'
import {
  ADA, BASE_URL, type MailApp, NEW_PASSWORD, formsOn, mailsInTheEnd, registerAt, resetTokenOf, startMailApp
} from '../helpers/mail-app.js'
import { linkAt, signInAt } from '../helpers/own-provider.js'
import { SOME_STORES } from '../helpers/stores.js'

const MINUTE_MS = 60_000
const FORGOT = '/auth/local/forgot-password'
const RESET = '/auth/local/reset-password'
const VERIFY = '/auth/local/verify-email'
const AS_BROWSER = { accept: 'text/html' }

/** Users of each kind by their address; the last is that of no user. */
const ADDRESSES = {
  verified: 'verified@example.com',
  unverified: 'unverified@example.com',
  'of a provider': 'provider@example.com',
  blocked: 'blocked@example.com',
  unknown: 'unknown@example.com'
}

async function startWithAddresses (t: Test, ...[options, local, server]: [AuthPluginOptions?, object?, object?]): Promise<MailApp> {
  const start = await startMailApp(t, options, local, server)
  const { app } = start
  const password = ADA.password
  await app.auth.createUser({ email: ADDRESSES.verified, emailVerified: true, password })
  await app.auth.createUser({ email: ADDRESSES.unverified, password })
  await signInAt(new Browser(app), 'a', { subject: '1', email: ADDRESSES['of a provider'] })
  const { userId } = await app.auth.createUser({ email: ADDRESSES.blocked, emailVerified: true, password })
  await app.auth.block(userId)
  return start
}

for (const [kind, createStore] of Object.entries(SOME_STORES)) {
  t.test(`attacks on recovery with ${kind}`, async t => {
    t.test('attack 19, attack 20: the owner of an address recovers it from a squatter, and their provider joins', async t => {
      const start = await startMailApp(t, { store: await createStore(t) })
      const { app, browser: squatter, mails } = start
      await registerAt(start)
      await linkAt(squatter, 'b', { subject: 'the squatter' })
      const { token: bearer } = (await squatter.post('/auth/local/token')).json()
      const userId = await userIdIn(squatter) ?? ''
      const recoveries = eventsOf(t, 'recovery')
      const owner = new Browser(app)

      const refused = await signInAt(owner, 'a', { subject: 'the owner', email: ADA.email })
      t.match(refused.headers.location ?? refused.body, /account_exists/)
      await owner.post(FORGOT, { email: ADA.email })
      const { token } = await mails.next('reset-password')
      t.equal((await owner.post(RESET, { token, password: NEW_PASSWORD })).statusCode, 204)
      await signInAt(owner, 'a', { subject: 'the owner', email: ADA.email })

      t.equal(await userIdIn(owner), userId)
      t.strictSame((await app.auth.links(userId)).map(({ provider, subject }) => [provider, subject]), [
        ['a', 'the owner'], ['local', ADA.email]
      ])
      t.equal((await squatter.get('/private')).statusCode, 401, 'the session of the squatter')
      t.equal((await squatter.post('/auth/local/token')).statusCode, 401)
      t.equal((await squatter.post('/auth/local/verify-token', { token: bearer })).statusCode, 401, 'their token')
      t.equal((await squatter.post('/auth/local/login', ADA)).statusCode, 401, 'their password')
      await signInAt(squatter, 'b', { subject: 'the squatter' })
      t.not(await userIdIn(squatter), userId, 'their link')
      t.match(recoveries, [{ userId, removed: ['b'], claims: {} }])
    })

    t.test('attack 66: of ten redemptions at once one resets the password, and one confirms an address', async t => {
      const start = await startMailApp(t, { store: await createStore(t) })
      const { app, browser } = start
      const verifyToken = await registerAt(start)
      const verifications = eventsOf(t, 'verification')
      const ten = async (post: (index: number) => Promise<{ statusCode: number }>) =>
        (await Promise.all(Array.from({ length: 10 }, (_, index) => post(index)))).map(({ statusCode }) => statusCode)

      const { keep: existing } = (await browser.post(VERIFY, { token: verifyToken })).json()
      const fields = { token: verifyToken, password: ADA.password, existing }
      t.strictSame((await ten(index => new Browser(app).post(VERIFY, { ...fields, next: `/${index}` }))).sort(), [204, ...Array.from({ length: 9 }, () => 401)])
      t.equal(verifications.length, 1)

      const token = await resetTokenOf(start)
      const statuses = await ten(index => new Browser(app).post(RESET, { token, password: `${NEW_PASSWORD} ${index}` }))
      t.strictSame([...statuses].sort(), [204, ...Array.from({ length: 9 }, () => 401)])
      const password = `${NEW_PASSWORD} ${statuses.indexOf(204)}`
      t.equal((await browser.post('/auth/local/login', { ...ADA, password })).statusCode, 200, 'the password of the winner')
      t.equal((await browser.post(RESET, { token, password: NEW_PASSWORD })).json().code, 'invalid_token')
    })

    t.test('attack 67: of several links one is used, also after the same password got a new hash', async t => {
      const store = await createStore(t)
      const start = await startMailApp(t, { store })
      const { browser } = start
      await registerAt(start)
      const isGood = async (token: string) => (await browser.get(`${RESET}?token=${token}`)).statusCode === 200

      const costlier = { argon2: { memoryCost: 16, timeCost: 1, parallelism: 1 } }
      const other = await startApp(t, { baseUrl: BASE_URL, store, local: localProvider(costlier) })
      const before = await resetTokenOf(start)
      const { passwordHash } = await store.findCredential(ADA.email) ?? {}
      await new Browser(other).post('/auth/local/login', ADA)
      t.not((await store.findCredential(ADA.email))?.passwordHash, passwordHash, 'the hash was renewed')
      t.ok(await isGood(before))

      const [first, second, third] = [before, await resetTokenOf(start), await resetTokenOf(start)]
      t.equal((await browser.post(RESET, { token: second, password: NEW_PASSWORD })).statusCode, 204)
      t.equal((await browser.post(RESET, { token: first, password: 'short' })).json().code, 'invalid_token', 'before all else')
      t.strictSame([await isGood(first), await isGood(second), await isGood(third)], [false, false, false])
    })

    t.test('attack 72: nothing that a squatter prepared works after the owner recovered the address', async t => {
      const start = await startMailApp(t, { store: await createStore(t) })
      const { app, browser: squatter } = start
      const verifyToken = await registerAt(start)
      await linkAt(squatter, 'b', { subject: 'the squatter' })
      const userId = await userIdIn(squatter) ?? ''
      const revoked: string[] = []
      app.auth.channel.on('revoke', id => { if (id === userId) revoked.push(id) })
      const earlier = await resetTokenOf(start)

      await new Browser(app).post(RESET, { token: await resetTokenOf(start), password: NEW_PASSWORD })

      for (const body of [{ token: verifyToken, password: ADA.password }, { token: verifyToken, not_me: true, email: ADA.email }]) {
        t.equal((await squatter.post(VERIFY, body)).json().code, 'invalid_token')
      }
      t.equal((await squatter.post(RESET, { token: earlier, password: ADA.password })).json().code, 'invalid_token')
      t.equal((await squatter.get('/private')).statusCode, 401)
      await signInAt(squatter, 'b', { subject: 'the squatter' })
      t.not(await userIdIn(squatter), userId)
      t.strictSame((await app.auth.links(userId)).map(({ provider }) => provider), ['local'])
      t.strictSame(revoked, [userId])
    })
  })
}

t.test('attack 72: a squatter adds no identity while the owner recovers the address', async t => {
  let recover = async (): Promise<unknown> => undefined
  const start = await startMailApp(t, { onLink: async () => { await recover() } })
  const { app, browser: squatter } = start
  await registerAt(start)
  const userId = await userIdIn(squatter) ?? ''
  const token = await resetTokenOf(start)
  recover = async () => new Browser(app).post(RESET, { token, password: NEW_PASSWORD })

  const refused = await linkAt(squatter, 'b', { subject: 'the squatter' })

  t.match(refused.headers.location ?? refused.body, /unauthenticated/)
  t.strictSame((await app.auth.links(userId)).map(({ provider }) => provider), ['local'])
})

t.test('attack 62: beyond a mail a minute and five an hour, known and unknown addresses get the same answer and no mail', async t => {
  const start = await startWithAddresses(t, { rateLimit: {} }, { mails: { unknownAddress: true } })
  const { app } = start
  for (const email of [ADDRESSES.verified, ADDRESSES.unknown]) {
    for (let minute = 0; minute < 7; minute++) {
      advanceClock(t, minute * MINUTE_MS)
      for (let i = 0; i < 2; i++) t.equal((await new Browser(app).post(FORGOT, { email })).statusCode, 202)
    }
    advanceClock(t, 0)
  }

  const mails = await mailsInTheEnd(start)
  for (const email of [ADDRESSES.verified, ADDRESSES.unknown]) t.equal(mails.filter(({ to }) => to === email).length, 5, email)
})

t.test('attack 63: mails that wait are bounded, then forms that cause one are refused, and other routes answer', async t => {
  const hangs = deferred()
  const { app, browser } = await startMailApp(t, {}, { sendMail: async () => hangs.promise, mails: { unknownAddress: true } })
  let accepted = 0
  let last = await browser.post(FORGOT, { email: 'user@example.com' })
  while (last.statusCode === 202 && accepted < 2000) {
    accepted++
    last = await browser.post(FORGOT, { email: `user${accepted}@example.com` })
  }

  t.match(last.json(), { statusCode: 503, code: 'busy' })
  t.ok(Number(last.headers['retry-after']) > 0)
  t.ok(accepted <= 1032, String(accepted))
  t.equal((await browser.post('/auth/local/login', ADA)).statusCode, 401)
  t.equal((await browser.post('/auth/local/register', ADA)).json().code, 'busy')
  t.equal(await app.auth.findUser({ email: ADA.email }), null, 'nothing was written')
  hangs.resolve()
})

t.test('attack 64: without baseUrl, mails are refused at register', async t => {
  await t.rejects(startApp(t, { local: localProvider({ sendMail () {} }) }), { name: 'OptionsError', message: /^baseUrl is required with sendMail/ })
})

t.test('attack 69: a link acts on the user it was made for, whatever else a request says', async t => {
  const start = await startMailApp(t)
  const { app, mails } = start
  await registerAt(start)
  const victim = start.browser
  const victimsId = await userIdIn(victim) ?? ''
  const mallory = { email: 'mallory@example.com', password: 'mallory knows' }
  await new Browser(app).post('/auth/local/register', mallory)
  const { token } = await mails.next('verify-email')
  const claims = { email: ADA.email, user_id: victimsId, sub: victimsId, userId: victimsId, to: ADA.email }

  t.equal((await victim.post(VERIFY, { token, ...claims })).json().code, 'unauthenticated')
  t.equal((await victim.post(`${VERIFY}?token=${token}`, { token, password: ADA.password })).json().code, 'invalid')
  t.equal((await victim.post(VERIFY, { token: [token, token] })).json().code, 'invalid_request')
  const twice = await victim.send({
    method: 'POST',
    url: VERIFY,
    headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
    payload: `token=${token}&token=${token}`
  })
  t.equal(twice.json().code, 'invalid_request')
  t.match(await app.auth.findUser({ userId: victimsId }), { emailVerified: false })

  const resetToken = await resetTokenOf(start, mallory.email)
  t.equal((await victim.post(RESET, { token: resetToken, password: NEW_PASSWORD, ...claims })).statusCode, 204)
  t.equal((await new Browser(app).post('/auth/local/login', ADA)).statusCode, 200, 'the password of the victim is the same')
})

t.test('attack 71: the owner of an address does not confirm the account of a squatter, and frees the address', async t => {
  const start = await startMailApp(t)
  const { app } = start
  const token = await registerAt(start)
  const squattersId = await userIdIn(start.browser)
  const owner = new Browser(app)

  const page = await owner.get(`${VERIFY}?token=${token}`, AS_BROWSER)
  const [confirm, release] = formsOn(page.body)
  const refused = await owner.submit(VERIFY, confirm?.fields ?? {})
  t.strictSame([refused.statusCode, refused.headers.location], [401, undefined])
  t.match(refused.body, /<p class="error" data-part="error" role="alert" id="failure">Sign in first/)
  t.match(await app.auth.findUser({ email: ADA.email }), { emailVerified: false })

  t.equal((await owner.submit(VERIFY, { ...release?.fields, email: ADA.email })).statusCode, 303)
  await signInAt(owner, 'a', { subject: 'the owner', email: ADA.email })
  const ownersId = await userIdIn(owner)
  t.ok(ownersId)
  t.not(ownersId, squattersId)
})
