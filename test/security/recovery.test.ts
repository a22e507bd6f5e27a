/** Attacks on recovery and on the confirmation of addresses, by number: see SECURITY.md. */
import t, { type Test } from 'tap'
import { type AuthPluginOptions, LocalIdentityProvider, MemoryAuthStore } from '../../lib/index.js'
import { LOCAL_SECRET, localProvider, startApp, userIdIn } from '../helpers/app.js'
import { eventsOf } from '../helpers/audit-events.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { deferred } from '../helpers/deferred.js'
import {
  ADA, BASE_URL, type MailApp, NEW_PASSWORD, formsOn, mailsInTheEnd, registerAt, resetTokenOf, startMailApp
} from '../helpers/mail-app.js'
import { linkAt, signInAt } from '../helpers/own-provider.js'
import { STORES } from '../helpers/stores.js'

const MINUTE_MS = 60_000
const FORGOT = '/auth/local/forgot-password'
const RESET = '/auth/local/reset-password'
const VERIFY = '/auth/local/verify-email'
const AS_BROWSER = { accept: 'text/html' }

/** Users of each kind by their address: each but the last may have a mail. */
const ADDRESSES = {
  verified: 'verified@example.com',
  unverified: 'unverified@example.com',
  'of a provider': 'provider@example.com',
  blocked: 'blocked@example.com',
  unknown: 'unknown@example.com'
}
const WITH_MAIL = [ADDRESSES.verified, ADDRESSES.unverified, ADDRESSES['of a provider']]

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

for (const kind of ['memory', 'SQLite'] as const) {
  t.test(`attacks on recovery with ${kind}`, async t => {
    t.test('attack 19 and attack 20: the owner of an address recovers it from a squatter, and their provider joins', async t => {
      const start = await startMailApp(t, { store: await STORES[kind](t) })
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

    t.test('attack 66: of ten redemptions at once one resets the password, and all confirm an address', async t => {
      const start = await startMailApp(t, { store: await STORES[kind](t) })
      const { app, browser } = start
      const verifyToken = await registerAt(start)
      const verifications = eventsOf(t, 'verification')
      const ten = async (post: (index: number) => Promise<{ statusCode: number }>) =>
        (await Promise.all(Array.from({ length: 10 }, (_, index) => post(index)))).map(({ statusCode }) => statusCode)

      t.strictSame(await ten(() => browser.post(VERIFY, { token: verifyToken })), Array.from({ length: 10 }, () => 204))
      t.equal(verifications.length, 1)

      const token = await resetTokenOf(start)
      const statuses = await ten(index => new Browser(app).post(RESET, { token, password: `${NEW_PASSWORD} ${index}` }))
      t.strictSame([...statuses].sort(), [204, ...Array.from({ length: 9 }, () => 401)])
      const password = `${NEW_PASSWORD} ${statuses.indexOf(204)}`
      t.equal((await browser.post('/auth/local/login', { ...ADA, password })).statusCode, 200, 'the password of the winner')
      t.equal((await browser.post(RESET, { token, password: NEW_PASSWORD })).json().code, 'invalid_token')
    })

    t.test('attack 67: whatever ends the sessions ends the links, and a new hash of the same password does not', async t => {
      const store = await STORES[kind](t)
      const start = await startMailApp(t, { store })
      const { app, browser } = start
      await registerAt(start)
      const userId = await userIdIn(browser) ?? ''
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

      const events: Array<[string, () => Promise<unknown>]> = [
        ['a sign-out everywhere', () => app.auth.signOutEverywhere(userId)],
        ['a password set by the application', () => app.auth.setPassword(userId, NEW_PASSWORD)],
        ['a block', async () => {
          await app.auth.block(userId)
          await app.auth.unblock(userId)
        }]
      ]
      for (const [what, happens] of events) {
        const token = await resetTokenOf(start)
        await happens()
        t.equal((await browser.post(RESET, { token, password: 'another password' })).json().code, 'invalid_token', what)
      }
    })

    t.test('attack 72: nothing that a squatter prepared works after the owner recovered the address', async t => {
      const start = await startMailApp(t, { store: await STORES[kind](t) })
      const { app, browser: squatter } = start
      const verifyToken = await registerAt(start)
      await linkAt(squatter, 'b', { subject: 'the squatter' })
      const userId = await userIdIn(squatter) ?? ''
      const revoked: string[] = []
      app.auth.channel.on('revoke', userId => { revoked.push(userId) })
      const earlier = await resetTokenOf(start)

      await new Browser(app).post(RESET, { token: await resetTokenOf(start), password: NEW_PASSWORD })

      for (const body of [{ token: verifyToken, password: ADA.password }, { token: verifyToken, disown: true, email: ADA.email }]) {
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

t.test('attack 61: the answer to a forgotten password is the same for each address, and mails go where they belong', async t => {
  const start = await startWithAddresses(t)
  const { app } = start
  const answers = new Map<string, unknown>()
  for (const [kind, email] of Object.entries(ADDRESSES)) {
    const form = await new Browser(app).submit(FORGOT, { email, next: '/sent' })
    const json = await new Browser(app).post(FORGOT, { email })
    answers.set(kind, [form, json].map(({ statusCode, headers: { date, ...headers }, body }) => ({ statusCode, headers, body })))
  }

  for (const [kind, answer] of answers) t.strictSame(answer, answers.get('unknown'), kind)
  t.match(answers.get('unknown'), [{ statusCode: 303, headers: { location: '/sent' } }, { statusCode: 202, body: '' }])
  const mails = await mailsInTheEnd(start)
  t.strictSame(mails.map(({ kind }) => kind), Array.from({ length: 6 }, () => 'reset-password'))
  t.strictSame([...new Set(mails.map(({ to }) => to))].sort(), WITH_MAIL.toSorted())
})

t.test('attack 61: a mail server that hangs or fails neither delays nor changes an answer', async t => {
  const hangs = deferred()
  for (const sendMail of [async () => hangs.promise, async () => { throw new Error('down') }, () => { throw new Error('down') }]) {
    const { app } = await startWithAddresses(t, {}, { sendMail })

    for (const email of Object.values(ADDRESSES)) {
      const { statusCode, body } = await new Browser(app).post(FORGOT, { email })
      t.strictSame([statusCode, body], [202, ''])
    }
  }
  hangs.resolve()
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

t.test('attack 63: many addresses of clients and many spellings cause one mail', async t => {
  const start = await startWithAddresses(t, { rateLimit: {} }, {}, { trustProxy: true })
  const requests = Array.from({ length: 200 }, (_, index) => start.app.inject({
    method: 'POST',
    url: FORGOT,
    headers: { 'x-forwarded-for': index % 2 === 0 ? `192.0.2.${index}` : `2001:db8:${index}::1` },
    payload: { email: [' verified@example.com', 'VERIFIED@example.com', 'Verified@EXAMPLE.com '][index % 3] }
  }))

  const statuses = new Set((await Promise.all(requests)).map(({ statusCode }) => statusCode))

  t.strictSame([...statuses], [202])
  t.strictSame((await mailsInTheEnd(start)).map(({ to }) => to), [ADDRESSES.verified])
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

t.test('attack 64: links begin with baseUrl, whatever a request says about the host', async t => {
  for (const trustProxy of [false, true]) {
    const { app, mails } = await startWithAddresses(t, {}, {}, { trustProxy })
    for (const headers of [
      { host: 'evil.example' }, { 'x-forwarded-host': 'evil.example' }, { forwarded: 'host=evil.example' }
    ] as Array<Record<string, string>>) {
      const answer = await new Browser(app).submit(FORGOT, { email: ADDRESSES.verified, next: '//evil.example' }, headers)
      t.equal(answer.headers.location, '/')
      t.match(await mails.next('reset-password'), { url: /^https:\/\/app\.example\/auth\/local\/reset-password\?token=[\w.-]+$/ })
    }
  }
})

t.test('attack 64: without baseUrl, mails are refused at register', async t => {
  await t.rejects(startApp(t, { local: localProvider({ sendMail () {} }) }), { name: 'OptionsError', message: /^baseUrl is required with sendMail/ })
})

t.test('attack 65: mails go to the stored address alone, never to what was typed beside it', async t => {
  const start = await startWithAddresses(t)
  const { app } = start
  for (const email of [
    'verified@example.com\r\nBcc: mallory@evil.example', 'verified@example.com,mallory@evil.example',
    '"mallory@evil.example"@example.com', 'verified@example.com <mallory@evil.example>', 'ver\u0131fied@ex\uFF41mple.com', 'verified\uFF20example.com'
  ]) {
    const { statusCode, json } = await new Browser(app).post(FORGOT, { email })
    t.strictSame([statusCode, json().code], [400, 'invalid_email'], email)
  }
  for (const email of [[ADDRESSES.verified, 'mallory@evil.example'], { verified: 1 }, null, true]) {
    t.equal((await new Browser(app).post(FORGOT, { email })).json().code, 'invalid_request')
  }
  t.equal((await new Browser(app).post(FORGOT, { email: 'ver\u0131fied@example.com' })).statusCode, 202, 'another address')
  t.equal((await new Browser(app).post(FORGOT, { email: ' VERIFIED@example.com ' })).statusCode, 202)

  t.strictSame((await mailsInTheEnd(start)).map(({ to }) => to), [ADDRESSES.verified])
})

t.test('attack 66: a link works until it expires', async t => {
  const start = await startMailApp(t)
  const verifyToken = await registerAt(start)
  const token = await resetTokenOf(start)

  advanceClock(t, 30 * MINUTE_MS - 2000)
  t.equal((await start.browser.get(`${RESET}?token=${token}`)).statusCode, 200)
  advanceClock(t, 3000)
  t.equal((await start.browser.post(RESET, { token, password: NEW_PASSWORD })).json().code, 'invalid_token')
  advanceClock(t, 24 * 60 * MINUTE_MS + 1000)
  t.equal((await start.browser.post(VERIFY, { token: verifyToken })).json().code, 'invalid_token')
})

t.test('attack 68: no token of the application acts as one of a mail, and none of a mail as another', async t => {
  const start = await startMailApp(t)
  const { app, browser } = start
  const verifyToken = await registerAt(start)
  const userId = await userIdIn(browser) ?? ''
  const resetToken = await resetTokenOf(start)
  const claims = { email: ADA.email, generation: 0 }
  const issue = async (purpose: string) => new LocalIdentityProvider({ secret: LOCAL_SECRET })
    .issueIdToken(userId, claims, 60, { purpose })

  for (const [what, url, body] of [
    ['a token of the application at a reset', RESET, { token: await issue('reset-password'), password: NEW_PASSWORD }],
    ['a token of the application at a confirmation', VERIFY, { token: await issue('verify-email') }],
    ['the link of a confirmation at a reset', RESET, { token: verifyToken, password: NEW_PASSWORD }],
    ['the link of a reset at a confirmation', VERIFY, { token: resetToken }],
    ['the link of a reset at verify-token', '/auth/local/verify-token', { token: resetToken }]
  ] as const) {
    const { statusCode, json } = await browser.post(url, body)
    t.strictSame([statusCode, json().code], [401, 'invalid_token'], what)
  }
  for (const token of [verifyToken, resetToken]) {
    t.equal((await new Browser(app).get('/bearer', { authorization: `Bearer ${token}` })).statusCode, 401)
  }
  t.match(await app.auth.findUser({ userId }), { emailVerified: false })
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

t.test('attack 70: programs that open links and send the forms on their pages redeem nothing', async t => {
  const start = await startMailApp(t)
  const { app, browser } = start
  const verifyToken = await registerAt(start)
  const resetToken = await resetTokenOf(start)
  const scanner = new Browser(app)
  for (const url of [`${VERIFY}?token=${verifyToken}`, `${RESET}?token=${resetToken}`]) {
    for (let i = 0; i < 20; i++) {
      await scanner.send({ method: 'HEAD', url })
      const { body } = await scanner.get(url, { ...AS_BROWSER, 'sec-purpose': 'prefetch', 'sec-fetch-site': 'cross-site' })
      t.notMatch(body, '<script')
      for (const { action, fields } of formsOn(body)) {
        for (const filled of [fields, { ...fields, password: '', email: '' }]) {
          const { statusCode } = await scanner.submit(action, filled)
          t.ok(statusCode === 400 || statusCode === 401, String(statusCode))
        }
      }
    }
  }

  t.equal(await userIdIn(scanner), null)
  t.match(await app.auth.findUser({ email: ADA.email }), { emailVerified: false })
  t.equal((await browser.post(VERIFY, { token: verifyToken })).statusCode, 204)
  t.equal((await browser.post(RESET, { token: resetToken, password: NEW_PASSWORD })).statusCode, 204)
})

t.test('attack 71: the owner of an address does not confirm the account of a squatter, and frees the address', async t => {
  const start = await startMailApp(t)
  const { app } = start
  const token = await registerAt(start)
  const squattersId = await userIdIn(start.browser)
  const owner = new Browser(app)

  const page = await owner.get(`${VERIFY}?token=${token}`, AS_BROWSER)
  const [confirm, disown] = formsOn(page.body)
  const refused = await owner.submit(VERIFY, confirm?.fields ?? {})
  t.strictSame([refused.statusCode, refused.headers.location], [401, undefined])
  t.match(refused.body, /<p role="alert">Sign in first/)
  t.match(await app.auth.findUser({ email: ADA.email }), { emailVerified: false })

  t.equal((await owner.submit(VERIFY, { ...disown?.fields, email: ADA.email })).statusCode, 303)
  await signInAt(owner, 'a', { subject: 'the owner', email: ADA.email })
  const ownersId = await userIdIn(owner)
  t.ok(ownersId)
  t.not(ownersId, squattersId)
})

t.test('attack 77: neither tokens nor passwords are in the log, in redirects or in answers, and pages load nothing', async t => {
  const lines: string[] = []
  const server = { logger: { level: 'trace', stream: { write: (line: string) => { lines.push(line) } } } }
  const start = await startMailApp(t, { loginPage: '/login' }, {}, server)
  const { app, browser } = start
  const answers: string[] = []
  const keep = ({ headers, body }: { headers: object, body: string }, isPage = false): void => {
    answers.push(JSON.stringify(headers))
    if (!isPage) answers.push(body)
    t.notMatch(body, /(?:src|href|url\()\s*=?\s*["'(]?(?:https?:)?\/\//)
  }
  const verifyToken = await registerAt(start)
  const resetToken = await resetTokenOf(start)

  keep(await browser.get(`${VERIFY}?token=${verifyToken}`, AS_BROWSER), true)
  keep(await new Browser(app).submit(VERIFY, { token: verifyToken, password: 'wrong password' }), true)
  keep(await new Browser(app).post(VERIFY, { token: verifyToken, password: 'wrong password' }))
  keep(await browser.submit(VERIFY, { token: verifyToken }))
  keep(await browser.get(`${RESET}?token=${resetToken}`, AS_BROWSER), true)
  keep(await browser.submit(RESET, { token: resetToken, password: 'short' }), true)
  keep(await browser.post(RESET, { token: resetToken, password: 'short' }))
  keep(await browser.submit(RESET, { token: resetToken, password: NEW_PASSWORD }))
  keep(await browser.submit(RESET, { token: resetToken, password: NEW_PASSWORD }))
  await app.close()

  const seen = [...lines, ...answers].join('\n')
  for (const secret of [verifyToken, resetToken, ADA.password, NEW_PASSWORD, 'wrong password']) t.notOk(seen.includes(secret))
  t.ok(lines.some(line => line.includes(RESET)), 'the requests are logged')
})

t.test('attack 78: a refused password leaves the link as it is', async t => {
  const check = (password: string): boolean => password !== 'breached password'
  const start = await startMailApp(t, {}, { password: { check } })
  await registerAt(start)
  const token = await resetTokenOf(start)
  const { browser } = start

  for (const [password, code] of [
    ['short', 'weak_password'], ['', 'weak_password'], ['breached password', 'weak_password'], ['\ufffd'.repeat(9), 'invalid_request'],
    ['x'.repeat(1025), 'weak_password'], ['x'.repeat(2_000_000), 'invalid_request'], [12345678, 'invalid_request']
  ] as const) {
    t.equal((await browser.post(RESET, { token, password })).json().code, code)
  }
  t.equal((await browser.post('/auth/local/login', ADA)).statusCode, 200, 'the old password works on')

  t.equal((await browser.post(RESET, { token, password: `${NEW_PASSWORD}\0` })).statusCode, 204)
})

t.test('sendMail needs a store that redeems links', async t => {
  class BareStore extends MemoryAuthStore {
    override readonly standing = undefined as never
    override readonly disownEmail = undefined as never
  }
  await t.rejects(startMailApp(t, { store: new BareStore() }), {
    name: 'OptionsError',
    message: /^store lacks the methods standing, disownEmail, which sendMail/
  })
})
