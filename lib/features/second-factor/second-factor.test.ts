import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { Accounts, type Factor, MemoryAuthStore, SignInRefused } from '../../index.js'
import { SecondFactor } from '../../second-factor.js'
import { totp } from '../../testing.js'
import { SESSION_SECRET, localProvider, principalIn, startApp, userIdIn } from '../../../test/helpers/app.js'
import { eventsOf } from '../../../test/helpers/audit-events.js'
import { Browser } from '../../../test/helpers/browser.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import { DATA_SECRET, enrolAda, nextCode, startFactorApp, waitAt } from '../../../test/helpers/factor-app.js'
import {
  ADA, type MailApp, NEW_PASSWORD, confirmAddress, registerAt, resetTokenOf, startMailApp
} from '../../../test/helpers/mail-app.js'
import { type AdmittedUser, leaveFor, linkAt, postLogin, signInAt } from '../../../test/helpers/own-provider.js'

const MINUTE_MS = 60_000

t.test('a user with an authenticator app signs in by password and code, and is a visitor until then', async t => {
  const made = await startFactorApp(t)
  const signIns = eventsOf(t, 'sign-in')
  const { secret, userId } = await enrolAda(t, made)
  const browser = new Browser(made.app)

  const waiting = await browser.post('/auth/local/login', ADA)
  t.match(waiting.json(), {
    statusCode: 401, code: 'second_factor_required', methods: ['recovery', 'totp'], expiresIn: 600
  })
  t.equal(await principalIn(browser), null)
  t.equal((await browser.post('/auth/local/token')).statusCode, 401)
  t.equal((await browser.get('/private')).statusCode, 401)

  const finished = await browser.post('/auth/local/second-factor', { code: nextCode(t, secret) })
  t.match([finished.statusCode, finished.json()], [200, { userId, provider: 'local' }])
  t.equal(await userIdIn(browser), userId)
  t.strictSame(signIns.at(-1)?.methods, ['password', 'totp'])
})

t.test('attack 92: nothing of the account changes until a code confirms the app; then all other sessions end', async t => {
  const made = await startFactorApp(t)
  const added = eventsOf(t, 'factor-added')
  await registerAt(made)
  const other = new Browser(made.app)
  await other.post('/auth/local/login', ADA)

  const begun = await made.browser.post('/auth/local/totp/enroll')
  t.match(begun.json(), { uri: /^otpauth:\/\/totp\/Shop:ada%40example\.com\?/, secret: /^[A-Z2-7]{32}$/, svg: /^<svg/ })
  t.equal((await new Browser(made.app).post('/auth/local/login', ADA)).statusCode, 200, 'a code is not asked yet')
  const wrong = await made.browser.post('/auth/local/totp/confirm', { code: '000000' })
  t.match([wrong.statusCode, wrong.json().code], [401, 'invalid_code'])
  t.equal((await other.get('/private')).statusCode, 200)

  const confirmed = await made.browser.post('/auth/local/totp/confirm', { code: totp(begun.json().secret) })
  t.match([confirmed.statusCode, confirmed.json().recoveryCodes.length], [200, 10])
  t.match(new Set(confirmed.json().recoveryCodes).size, 10)
  t.equal((await other.get('/private')).statusCode, 401)
  t.equal((await made.browser.get('/private')).statusCode, 200)
  t.strictSame(added.map(({ method }) => method), ['totp'])
  t.equal((await made.app.auth.factors(await userIdIn(made.browser) ?? '')).map(({ kind }) => kind).sort().join(), 'recovery,totp')
})

t.test('attack 88: a code of an app works once, and no earlier one after it', async t => {
  const made = await startFactorApp(t)
  const { secret } = await enrolAda(t, made)
  advanceClock(t, 2 * MINUTE_MS)
  const [earlier, code] = [totp(secret, { step: -1 }), totp(secret)]
  const browser = new Browser(made.app)
  await waitAt(t, browser)
  t.equal((await browser.post('/auth/local/second-factor', { code })).statusCode, 200)

  for (const spent of [code, earlier]) {
    const again = new Browser(made.app)
    await waitAt(t, again)
    const refused = await again.post('/auth/local/second-factor', { code: spent })
    t.match([refused.statusCode, refused.json().code], [401, 'invalid_code'])
    t.equal(await principalIn(again), null)
  }
})

t.test('attack 86: each way of signing in asks for the second factor', async t => {
  const made = await startFactorApp(t)
  const { app, browser } = made
  const { userId } = await enrolAda(t, made)
  const asked = async (browser: Browser, provider: string, person: AdmittedUser): Promise<void> => {
    const callback = await leaveFor(browser, `/auth/${provider}/login?next=/after`, person)
    const { statusCode, headers: { location } } = await browser.get(callback, { accept: 'text/html' })
    t.strictSame([statusCode, location], [302, '/auth/local/second-factor?next=%2Fafter'], provider)
    t.equal(await principalIn(browser), null)
  }
  await linkAt(browser, 'a', { subject: 'ada-a' })

  await asked(new Browser(app), 'a', { subject: 'ada-a' })
  await asked(new Browser(app), 'b', { subject: 'ada-b', email: ADA.email })
  t.strictSame((await app.auth.links(userId)).map(({ provider }) => provider), ['a', 'local'], 'not linked before the code')

  const reset = new Browser(app)
  const token = await resetTokenOf(made)
  t.equal((await reset.post('/auth/local/reset-password', { token, password: NEW_PASSWORD })).statusCode, 204)
  t.equal(await principalIn(reset), null)
  await waitAt(t, reset, { ...ADA, password: NEW_PASSWORD })
})

t.test('attack 86: app.auth.signIn asks for the second factor, unless the application spares it', async t => {
  const { app, browser, userId, secret } = await withVouching(t)

  const waiting = await browser.post('/vouch', { userId })
  t.match([waiting.statusCode, waiting.json().code], [401, 'second_factor_required'])
  t.equal(await principalIn(browser), null)
  t.equal((await browser.post('/auth/local/second-factor', { code: nextCode(t, secret) })).statusCode, 200)
  t.equal(await userIdIn(browser), userId)

  const spared = new Browser(app)
  t.equal((await spared.post('/vouch', { userId, secondFactor: 'skip' })).statusCode, 200)
  t.equal(await userIdIn(spared), userId)
})

t.test('attack 87, attack 105: a sign-in that waits is bound to its session, its user and ten minutes', async t => {
  const made = await startFactorApp(t)
  const { app } = made
  const { secret, userId } = await enrolAda(t, made)
  const finish = async (browser: Browser): Promise<void> => {
    const answer = await browser.post('/auth/local/second-factor', { code: nextCode(t, secret) })
    t.match([answer.statusCode, answer.json().code], [400, 'invalid_state'])
    t.equal(await principalIn(browser), null)
  }
  await finish(new Browser(app))

  const before = new Browser(app)
  await waitAt(t, before)
  const former = new Browser(app, before.cookies)
  await waitAt(t, before)
  await finish(new Browser(app, new Map()))
  const late = new Browser(app)
  await waitAt(t, late)
  await app.auth.block(userId)
  const blocked = await late.post('/auth/local/second-factor', { code: nextCode(t, secret) })
  t.match([blocked.statusCode, blocked.json().code], [400, 'invalid_state'])
  await app.auth.unblock(userId)

  const left = new Browser(app)
  await waitAt(t, left)
  const copied = new Browser(app, left.cookies)
  t.equal((await left.post('/auth/logout')).statusCode, 204)
  await finish(copied)

  const old = new Browser(app)
  await waitAt(t, old)
  advanceClock(t, 10 * MINUTE_MS)
  await finish(old)
  await finish(former)
})

t.test('a sign-in that waits ends when the sessions of the user end', async t => {
  const made = await startFactorApp(t)
  const { secret, userId } = await enrolAda(t, made)
  const browser = new Browser(made.app)
  await waitAt(t, browser)

  await made.app.auth.signOutEverywhere(userId)

  const refused = await browser.post('/auth/local/second-factor', { code: nextCode(t, secret) })
  t.match([refused.statusCode, refused.json().code], [400, 'invalid_state'])
})

t.test('attack 87: a sign-in that waits can only be finished or left', async t => {
  const made = await startFactorApp(t)
  const { userId } = await enrolAda(t, made)
  const browser = new Browser(made.app)
  await waitAt(t, browser)

  for (const [path, body] of [
    ['totp/enroll', {}], ['totp/confirm', { code: '123456' }], ['totp/remove', {}], ['recovery-codes', {}],
    ['change-password', { password: NEW_PASSWORD, current: ADA.password }], ['change-email', { email: 'k@example.com' }],
    ['delete-account', { current: ADA.password }], ['reauthenticate', { password: ADA.password }], ['token', {}]
  ] as const) {
    const answer = await browser.post(`/auth/local/${path}`, body)
    t.match([answer.statusCode, answer.json().code], [401, 'unauthenticated'], path)
  }
  const link = await postLogin(browser, '/auth/a/login?link=true')
  t.equal(link.json().code, 'unauthenticated')
  t.equal((await made.app.auth.factors(userId)).length, 2)
})

t.test('attack 90: a sign-in takes five codes, a user ten in fifteen minutes, whatever their sign-ins', async t => {
  const made = await startFactorApp(t)
  const { app, mails } = made
  const guesses = eventsOf(t, 'too-many-codes')
  const { secret } = await enrolAda(t, made)
  advanceClock(t, 15 * MINUTE_MS)
  const guess = async (browser: Browser, code: string): Promise<unknown> =>
    (await browser.post('/auth/local/second-factor', { code })).json().code
  const [first, second, third] = [new Browser(app), new Browser(app), new Browser(app)]
  await waitAt(t, first)
  await waitAt(t, second)

  const codes = []
  for (const browser of [first, second]) {
    for (let attempt = 0; attempt < 5; attempt++) codes.push(await guess(browser, wrong(secret)))
  }
  t.strictSame(codes, Array(10).fill('invalid_code'))
  t.equal(await guess(second, totp(secret)), 'invalid_state', 'a sixth code')
  await waitAt(t, third)
  const refused = await third.post('/auth/local/second-factor', { code: totp(secret) })
  t.match([refused.statusCode, refused.json().code], [429, 'rate_limited'])
  t.match(Number(refused.headers['retry-after']), 900)
  t.equal(await guess(third, totp(secret)), 'rate_limited')
  t.equal(guesses.length, 1)
  t.match(await mails.next('too-many-codes'), { to: ADA.email, url: null, code: null })

  advanceClock(t, 15 * MINUTE_MS)
  await waitAt(t, third)
  t.equal(await guess(third, totp(secret)), undefined)
})

/** A code as a phone types it: with digits of another script, and what copying adds. */
const typedElsewhere = (code: string): string =>
  `\u200e${[...code].map(digit => String.fromCharCode(0x660 + Number(digit))).join('').replace(/^.../, '$&-')} `

t.test('attack 89: only six digits are a code of an app, and anything else costs no attempt', async t => {
  const made = await startFactorApp(t)
  const { secret } = await enrolAda(t, made)
  const browser = new Browser(made.app)
  await waitAt(t, browser)
  const send = async (code: unknown): Promise<unknown> => (await browser.post('/auth/local/second-factor', { code })).json().code

  for (const code of [null, 7, ['123456'], {}, true, undefined]) t.equal(await send(code), 'invalid_request', JSON.stringify(code))
  t.equal(await send('1'.repeat(20_000)), 'invalid_request')
  for (const code of ['', '12345', '1234567', '1e5', '１２３４５', '-12345', '12345\ufffd']) t.equal(await send(code), 'invalid_code', code)
  const code = nextCode(t, secret)
  t.equal(await send(typedElsewhere(code)), undefined)
  const again = new Browser(made.app)
  await waitAt(t, again)
  for (const spent of [code, ` ${code} `, typedElsewhere(code)]) {
    t.equal((await again.post('/auth/local/second-factor', { code: spent })).json().code, 'invalid_code', spent)
  }
})

t.test('what is not a code of an app confirms none', async t => {
  const made = await startFactorApp(t)
  await registerAt(made)
  const { secret } = (await made.browser.post('/auth/local/totp/enroll')).json<{ secret: string }>()
  const refused = await made.browser.post('/auth/local/totp/confirm', { code: '0123-4567-89AB-CDEF-GHJK-MNPQ' })
  t.match([refused.statusCode, refused.json().code], [401, 'invalid_code'])
  t.equal((await made.browser.post('/auth/local/totp/confirm', { code: totp(secret) })).statusCode, 200)
})

t.test('of two requests of one session that confirm an app at once, one does, and both are told so', async t => {
  const made = await startFactorApp(t)
  await registerAt(made)
  const { secret } = (await made.browser.post('/auth/local/totp/enroll')).json<{ secret: string }>()
  const code = totp(secret)
  const tabs = [new Browser(made.app, made.browser.cookies), new Browser(made.app, made.browser.cookies)]
  const answers = await Promise.all(tabs.map(async tab => tab.post('/auth/local/totp/confirm', { code })))
  t.strictSame(answers.map(answer => answer.json().code ?? 'confirmed').sort(), ['confirmed', 'confirmed'])
  t.strictSame(new Set(answers.map(answer => answer.body)).size, 2, 'the codes of one are good')
})

t.test('of two requests that finish one sign-in at once by different codes, one does', async t => {
  const made = await startFactorApp(t)
  const { secret, recoveryCodes: [recovery] } = await enrolAda(t, made)
  const browser = new Browser(made.app)
  await waitAt(t, browser)
  const codes = [nextCode(t, secret), recovery]
  const answers = await Promise.all(codes.map(async code =>
    new Browser(made.app, browser.cookies).post('/auth/local/second-factor', { code })))
  t.strictSame(answers.map(answer => answer.json().code ?? 'signed in').sort(), ['invalid_state', 'signed in'])
})

t.test('an app is named after the e-mail of the user, else after their name, else after their id', async t => {
  const { app, browser } = await startFactorApp(t)
  await signInAt(browser, 'a', { subject: 'ada-1' })
  const userId = await userIdIn(browser) ?? ''
  const named = async () => (await browser.post('/auth/local/totp/enroll')).json().uri
  t.match(await named(), `otpauth://totp/Shop:${userId}?`)
  await app.auth.updateUser(userId, { name: 'Ada' })
  t.match(await named(), 'otpauth://totp/Shop:Ada?')
})

t.test('a user without a second factor has no recovery codes to renew', async t => {
  const made = await startFactorApp(t)
  await registerAt(made)
  const refused = await made.browser.post('/auth/local/recovery-codes')
  t.match([refused.statusCode, refused.json().code], [403, 'second_factor_missing'])
})

t.test('an end of all sessions that overtakes a change of factors refuses it', async t => {
  const store = new MemoryAuthStore()
  const made = await startFactorApp(t, {}, { store })
  const { userId } = await enrolAda(t, made)
  const endSessions = async () => new Accounts(store).changeUser(userId, { endSessions: true })

  const change = store.change.bind(store)
  store.change = async (...asked) => {
    store.change = change
    await endSessions()
    return change(...asked)
  }
  const overtaken = await made.browser.post('/auth/local/recovery-codes')
  t.match([overtaken.statusCode, overtaken.json().code], [401, 'unauthenticated'], 'before the change')

  const other = new Browser(made.app)
  await other.post('/auth/local/register', { email: 'grace@example.com', password: ADA.password })
  const graceId = await userIdIn(other) ?? ''
  const findUser = store.findUser.bind(store)
  store.findUser = async query => {
    store.findUser = findUser
    await new Accounts(store).changeUser(graceId, { endSessions: true })
    return findUser(query)
  }
  const refused = await other.post('/auth/local/totp/enroll')
  t.match([refused.statusCode, refused.json().code], [401, 'unauthenticated'], 'before the account is read')
})

t.test('a user who is blocked without an end of their sessions finishes no sign-in that waits', async t => {
  const store = new MemoryAuthStore()
  let isRequired = false
  const made = await startFactorApp(t, { required: () => isRequired }, { store })
  const { userId, secret } = await enrolAda(t, made)
  await new Browser(made.app).post('/auth/local/register', { email: 'grace@example.com', password: ADA.password })
  const grace = await made.app.auth.findUser({ email: 'grace@example.com' })
  isRequired = true
  const [finishing, enrolling] = [new Browser(made.app), new Browser(made.app)]
  await waitAt(t, finishing)
  t.match((await enrolling.post('/auth/local/login', { email: 'grace@example.com', password: ADA.password })).json(), { enrolment: true })
  for (const id of [userId, grace?.userId ?? '']) await new Accounts(store).changeUser(id, { blocked: { at: new Date() } })

  const answers = [
    await finishing.post('/auth/local/second-factor', { code: nextCode(t, secret) }), await enrolling.post('/auth/local/totp/enroll')
  ]
  for (const answer of answers) t.match([answer.statusCode, answer.json().code], [403, 'blocked'])
})

t.test('a form without anything to authenticate by is refused', async t => {
  const made = await startFactorApp(t)
  await registerAt(made)
  for (const fields of [{}, { code: '', password: '' }]) {
    const refused = await made.browser.post('/auth/local/reauthenticate', fields)
    t.match([refused.statusCode, refused.json()], [400, { code: 'invalid_request', message: 'The form has nothing to authenticate the user by.' }])
  }
})

t.test('attack 91: a recovery code works once, in any spelling; the answer says how many are left', async t => {
  const made = await startFactorApp(t)
  const used = eventsOf(t, 'recovery-code')
  const { recoveryCodes: [first = '', ...others] } = await enrolAda(t, made)
  const browser = new Browser(made.app)
  await waitAt(t, browser)
  const spelt = first.toLowerCase().replaceAll('-', ' ').replaceAll('0', 'o').replaceAll('1', 'l')

  t.match((await browser.post('/auth/local/second-factor', { code: spelt })).json(), { recoveryCodesLeft: 9 })
  t.match(await made.mails.next('recovery-code-used'), { to: ADA.email })
  const again = new Browser(made.app)
  await waitAt(t, again)
  t.equal((await again.post('/auth/local/second-factor', { code: first })).json().code, 'invalid_code')
  t.strictSame(used.map(({ left }) => left), [9])

  for (const code of others.slice(0, 6)) {
    await waitAt(t, again)
    t.equal((await again.post('/auth/local/second-factor', { code })).statusCode, 200)
    advanceClock(t, 2 * MINUTE_MS)
  }
  const form = new Browser(made.app)
  await waitAt(t, form)
  const { headers: { location } } = await form.submit('/auth/local/second-factor', { code: others[6] ?? '', next: '/home' })
  t.equal(location, '/home?recovery_codes_left=2')
})

t.test('attack 91: new recovery codes replace the old ones, after a recent second factor', async t => {
  const made = await startFactorApp(t)
  const { recoveryCodes: [old = ''], secret } = await enrolAda(t, made)
  advanceClock(t, 11 * MINUTE_MS)
  const stale = await made.browser.post('/auth/local/recovery-codes')
  t.match([stale.statusCode, stale.json()], [403, { code: 'reauthenticate', methods: ['recovery', 'totp'] }])
  await made.browser.post('/auth/local/reauthenticate', { password: ADA.password })
  t.equal((await made.browser.post('/auth/local/recovery-codes')).statusCode, 403, 'a password is not enough')

  t.equal((await made.browser.post('/auth/local/reauthenticate', { code: nextCode(t, secret) })).statusCode, 204)
  const { recoveryCodes: [renewed = ''] } = (await made.browser.post('/auth/local/recovery-codes')).json()
  t.match(await made.mails.next('recovery-codes-renewed'), { to: ADA.email })
  const browser = new Browser(made.app)
  await waitAt(t, browser)
  t.equal((await browser.post('/auth/local/second-factor', { code: old })).json().code, 'invalid_code')
  t.equal((await browser.post('/auth/local/second-factor', { code: renewed })).statusCode, 200)
})

t.test('an app is removed after a recent second factor, with the recovery codes; other sessions end', async t => {
  const made = await startFactorApp(t)
  const { userId, secret } = await enrolAda(t, made)
  const other = new Browser(made.app)
  await waitAt(t, other)
  t.equal((await other.post('/auth/local/second-factor', { code: nextCode(t, secret) })).statusCode, 200)

  t.equal((await made.browser.post('/auth/local/totp/remove')).statusCode, 204)

  t.strictSame(await made.app.auth.factors(userId), [])
  t.match(await made.mails.next('factor-removed'), { to: ADA.email })
  t.equal((await other.get('/private')).statusCode, 401)
  t.equal((await made.browser.get('/private')).statusCode, 200)
  t.equal((await other.post('/auth/local/login', ADA)).statusCode, 200)
  t.equal((await made.browser.post('/auth/local/totp/remove')).json().code, 'not_found')
})

t.test('the operator resets the factors of a user, who is told', async t => {
  const made = await startFactorApp(t)
  const removed = eventsOf(t, 'factor-removed')
  const { userId } = await enrolAda(t, made)

  await made.app.auth.resetFactors(userId)

  t.match(await made.mails.next('factor-removed'), { to: ADA.email, about: { requestId: null, ip: null } })
  t.equal((await made.browser.get('/private')).statusCode, 401)
  t.equal((await made.browser.post('/auth/local/login', ADA)).statusCode, 200)
  t.match(removed, [{ userId, method: 'all', by: 'application' }])
  await t.rejects(made.app.auth.resetFactors('8b4d9d5e-6f1c-4e0b-9d84-2f5a2b1c0d3e'), { code: 'unknown_user' })
  await t.rejects(made.app.auth.factors('8b4d9d5e-6f1c-4e0b-9d84-2f5a2b1c0d3e'), { code: 'unknown_user' })
})

t.test('onSignIn runs after the second factor, with the tokens of the provider', async t => {
  const calls: unknown[] = []
  const made = await startFactorApp(t, {}, {
    onSignIn: ({ tokens, created }) => { calls.push({ refreshToken: tokens?.refreshToken, created }) }
  })
  const { secret } = await enrolAda(t, made)
  await linkAt(made.browser, 'a', { subject: 'ada-a' })
  calls.length = 0
  const browser = new Browser(made.app)
  await signInAt(browser, 'a', { subject: 'ada-a' })
  t.strictSame(calls, [])

  await browser.post('/auth/local/second-factor', { code: nextCode(t, secret) })

  t.strictSame(calls, [{ refreshToken: 'the-refresh-token', created: false }])
})

t.test('a user who needs a second factor and has none sets it up before they are signed in', async t => {
  const calls: boolean[] = []
  const made = await startFactorApp(t, { required: () => true }, { onSignIn: ({ created }) => { calls.push(created) } })
  const { app, browser } = made

  const registered = await browser.post('/auth/local/register', ADA)
  t.match([registered.statusCode, registered.json()], [401, { code: 'second_factor_required', methods: [], enrolment: true }])
  t.equal(await principalIn(browser), null)
  t.match(await made.mails.next('verify-email'), { to: ADA.email }, 'the user is created')
  t.equal((await browser.post('/auth/local/second-factor', { code: '123456' })).json().code, 'invalid_state')

  // They left, and come again.
  const later = new Browser(app)
  await later.post('/auth/local/login', ADA)
  const { secret } = (await later.post('/auth/local/totp/enroll')).json()
  const confirmed = await later.post('/auth/local/totp/confirm', { code: totp(secret) })
  t.match([confirmed.statusCode, confirmed.json().recoveryCodes.length], [200, 10])
  t.equal((await principalIn(later))?.claims.email, ADA.email)
  t.strictSame(calls, [true], 'still new')
  t.match((await later.get('/authentication')).json(), { secondFactor: true })
})

t.test('attack 102: a user who existed before also types the code that is mailed to their confirmed address', async t => {
  let isRequired = false
  const made = await startFactorApp(t, { required: () => isRequired })
  const { app, mails } = made
  const token = await registerAt(made)
  await confirmAddress(made.browser, token)
  isRequired = true
  const browser = new Browser(app)
  t.match((await browser.post('/auth/local/login', ADA)).json(), { enrolment: true })

  const { secret } = (await browser.post('/auth/local/totp/enroll')).json()
  const { code: mailCode } = await mails.next('enrolment')
  t.match(mailCode, /^[0-9]{6}$/)
  for (const other of [undefined, '', '12345', wrongDigits(mailCode)]) {
    const refused = await browser.post('/auth/local/totp/confirm', { code: totp(secret), mailCode: other })
    t.match([refused.statusCode, refused.json().code], [401, 'invalid_code'], String(other))
  }
  const typed = { code: totp(secret), mailCode: typedElsewhere(mailCode) }
  t.equal((await browser.post('/auth/local/totp/confirm', typed)).statusCode, 200)
  t.equal((await principalIn(browser))?.claims.email, ADA.email)
})

t.test('attack 102: the mailed code takes five attempts', async t => {
  let isRequired = false
  const made = await startFactorApp(t, { required: () => isRequired })
  const token = await registerAt(made)
  await confirmAddress(made.browser, token)
  isRequired = true
  const browser = new Browser(made.app)
  await browser.post('/auth/local/login', ADA)
  const { secret } = (await browser.post('/auth/local/totp/enroll')).json()
  const { code: mailCode } = await made.mails.next('enrolment')
  const codes = []
  for (let attempt = 0; attempt < 5; attempt++) {
    codes.push((await browser.post('/auth/local/totp/confirm', { code: totp(secret), mailCode: wrongDigits(mailCode) })).json().code)
  }
  t.strictSame(codes, Array(5).fill('invalid_code'))
  t.equal((await browser.post('/auth/local/totp/confirm', { code: totp(secret), mailCode })).json().code, 'invalid_state')
  t.strictSame(await made.app.auth.factors(await userIdOf(made)), [])
})

t.test('attack 158: a code that a limit of the mailbox drops replaces none', async t => {
  let isRequired = false
  const made = await startFactorApp(t, { required: () => isRequired }, { rateLimit: {} }, { mails: {} })
  const { app, mails } = made
  const token = await registerAt(made)
  await confirmAddress(made.browser, token)
  isRequired = true
  const browser = new Browser(app)
  await browser.post('/auth/local/login', ADA)
  let mailCode = ''
  for (let mail = 1; mail <= 5; mail++) {
    await browser.post('/auth/local/totp/enroll')
    mailCode = (await mails.next('enrolment')).code
  }

  const { secret } = (await browser.post('/auth/local/totp/enroll')).json()

  t.equal((await browser.post('/auth/local/totp/confirm', { code: totp(secret), mailCode })).statusCode, 200)
  await app.close()
  t.equal(mails.all.filter(({ kind }) => kind === 'enrolment').length, 5)
})

t.test('an application may refuse a user after the second factor: a new one is deleted with their factors', async t => {
  const made = await startFactorApp(t, { required: () => true }, { onSignIn: () => { throw new SignInRefused('not_invited') } })
  await made.browser.post('/auth/local/register', ADA)
  const { secret } = (await made.browser.post('/auth/local/totp/enroll')).json()

  const refused = await made.browser.post('/auth/local/totp/confirm', { code: totp(secret) })

  t.match([refused.statusCode, refused.json().code], [403, 'not_invited'])
  t.equal(await made.app.auth.findUser({ email: ADA.email }), null)
  t.equal(await principalIn(made.browser), null)
})

t.test('an app that the application requires cannot be removed', async t => {
  const made = await startFactorApp(t, { required: ({ principal }) => principal.claims.role === 'admin' })
  const { userId } = await enrolAda(t, made)
  await made.app.auth.grant(userId, { role: 'admin' })
  const refused = await made.browser.post('/auth/local/totp/remove')
  t.match([refused.statusCode, refused.json().code], [403, 'forbidden'])
  await made.app.auth.withdraw(userId, ['role'])
  t.equal((await made.browser.post('/auth/local/totp/remove')).statusCode, 204)
})

t.test('attack 103: a trusted browser is not asked again for some days, until the sessions of the user end', async t => {
  const made = await startFactorApp(t, { trustedBrowser: { days: 30 } })
  const { app } = made
  const { userId, secret } = await enrolAda(t, made)
  const browser = new Browser(app)
  await waitAt(t, browser)
  const trusted = await browser.post('/auth/local/second-factor', { code: nextCode(t, secret), trust: true })
  t.match(trusted.cookies.find(({ name }) => name === 'svc_trusted'), {
    httpOnly: true, sameSite: 'Lax', secure: true, path: '/', maxAge: 30 * 86_400
  })
  await browser.post('/auth/logout')

  const spared = await browser.post('/auth/local/login', ADA)
  t.equal(spared.statusCode, 200)
  t.notOk(spared.cookies.some(({ name }) => name === 'svc_trusted'), 'a sign-in does not renew it')
  t.match((await browser.get('/authentication')).json(), { secondFactor: false })
  t.equal((await browser.post('/auth/local/recovery-codes')).json().code, 'reauthenticate', 'a step-up is never spared')

  const edited = new Browser(app, new Map([['svc_trusted', `${browser.cookies.get('svc_trusted')}x`]]))
  await waitAt(t, edited)
  advanceClock(t, 31 * 86_400_000)
  await waitAt(t, new Browser(app, new Map([...browser.cookies].filter(([name]) => name === 'svc_trusted'))))
  advanceClock(t, -31 * 86_400_000)
  await app.auth.signOutEverywhere(userId)
  await waitAt(t, browser)
})

t.test('the cookie of a trusted browser has the domain and the path of the session cookie', async t => {
  const session = { secret: SESSION_SECRET, cookie: { domain: 'app.example', path: '/auth' } }
  const made = await startFactorApp(t, { trustedBrowser: { days: 30 } }, { session })
  const { secret } = await enrolAda(t, made)
  const browser = new Browser(made.app)
  await waitAt(t, browser)
  const { cookies } = await browser.post('/auth/local/second-factor', { code: nextCode(t, secret), trust: true })
  t.match(cookies.find(({ name }) => name === 'svc_trusted'), { domain: 'app.example', path: '/auth', secure: true })
})

t.test('without the option no browser is trusted', async t => {
  const made = await startFactorApp(t)
  const { secret } = await enrolAda(t, made)
  const browser = new Browser(made.app)
  await waitAt(t, browser)
  const answer = await browser.post('/auth/local/second-factor', { code: nextCode(t, secret), trust: 'on' })
  t.strictSame(answer.cookies.map(({ name }) => name), ['svc_session'])
})

t.test('a process without the option signs in no user with a second factor', async t => {
  const store = new MemoryAuthStore()
  const made = await startFactorApp(t, {}, { store })
  await enrolAda(t, made)
  const other = await startMailApp(t, { store })

  const refused = await other.browser.post('/auth/local/login', ADA)

  t.match([refused.statusCode, refused.json().code], [503, 'unavailable'])
})

t.test('attack 93, attack 116: secrets that cannot be opened are unavailable, and never no factor', async t => {
  const store = new MemoryAuthStore()
  const made = await startFactorApp(t, {}, { store })
  const unreadable = eventsOf(t, 'secret-unreadable')
  const { userId, secret } = await enrolAda(t, made)
  const factors = await new Accounts(store).factors(userId)
  const tamper = async (change: (factor: Factor) => Factor | null): Promise<void> => {
    await store.change({ userId }, {}, account => ({
      result: null, ...(account !== null && { account: { ...account, factors: factors.flatMap(factor => change(factor) ?? []) } })
    }))
  }
  const attempts: Array<(factor: Factor) => Factor | null> = [
    factor => ({ ...factor, secret: factor.secret?.slice(0, -4) ?? null }),
    factor => ({ ...factor, secret: null }),
    factor => factor.kind === 'totp' ? { ...factor, id: randomUUID() } : factor,
    factor => factor.kind === 'totp' ? null : factor
  ]
  for (const [index, change] of attempts.entries()) {
    await tamper(change)
    const browser = new Browser(made.app)
    await waitAt(t, browser)
    const answer = await browser.post('/auth/local/second-factor', { code: nextCode(t, secret) })
    t.match([answer.statusCode, answer.json().code], [503, 'unavailable'], `change ${index}`)
  }
  t.equal(unreadable.length, 3)
})

t.test('attack 116: a recovery code does not make a user whose app was lost one without an app', async t => {
  const store = new MemoryAuthStore()
  const made = await startFactorApp(t, {}, { store })
  const { userId, recoveryCodes: [code = ''] } = await enrolAda(t, made)
  await store.change({ userId }, {}, account => ({
    result: null,
    ...(account !== null && { account: { ...account, factors: account.factors.filter(({ kind }) => kind !== 'totp') } })
  }))
  const browser = new Browser(made.app)
  await waitAt(t, browser)

  const answer = await browser.post('/auth/local/second-factor', { code })

  t.match([answer.statusCode, answer.json().code], [503, 'unavailable'])
  await waitAt(t, new Browser(made.app))
  await made.app.auth.resetFactors(userId)
  t.equal((await browser.post('/auth/local/login', ADA)).statusCode, 200, 'the operator helps')
})

t.test('attack 93: a secret that an old data secret sealed is sealed anew when a code is used', async t => {
  const store = new MemoryAuthStore()
  const made = await startFactorApp(t, {}, { store })
  const { userId, secret } = await enrolAda(t, made)
  const newest = 'a newer data secret of the tests, 32+'
  const signIn = async (dataSecret: string[]): Promise<number> => {
    const { app } = await startFactorApp(t, {}, { store, dataSecret })
    const browser = new Browser(app)
    await waitAt(t, browser)
    return (await browser.post('/auth/local/second-factor', { code: nextCode(t, secret) })).statusCode
  }
  t.equal(await signIn([newest]), 503)
  t.equal(await signIn([newest, DATA_SECRET]), 200)
  t.equal(await signIn([newest]), 200)
  t.equal((await made.app.auth.factors(userId)).length, 2)
})

async function withVouching (t: Test): Promise<MailApp & { userId: string, secret: string }> {
  const store = new MemoryAuthStore()
  const made = await startFactorApp(t, {}, { store })
  const { userId, secret } = await enrolAda(t, made)
  const app = await startApp(t, {
    baseUrl: 'https://app.example',
    store,
    dataSecret: DATA_SECRET,
    secondFactor: new SecondFactor({ issuer: 'Shop' }),
    local: localProvider()
  }, {}, app => {
    app.post<{ Body: { userId: string, secondFactor?: 'skip' } }>('/vouch', async request => {
      const { userId, ...options } = request.body
      return app.auth.signIn(request, userId, options)
    })
  })
  return { ...made, app, browser: new Browser(app), userId, secret }
}

/** A code that is not one of the secret's now. */
function wrong (secret: string): string {
  return wrongDigits(totp(secret, { step: 40 }))
}

function wrongDigits (code: string): string {
  return String((Number(code) + 500_000) % 1_000_000).padStart(6, '0')
}

async function userIdOf ({ app }: MailApp): Promise<string> {
  return (await app.auth.findUser({ email: ADA.email }))?.userId ?? ''
}

t.test('a browser that asks to be trusted is asked again, where the application has no trusted browsers', async t => {
  const made = await startFactorApp(t)
  const { secret } = await enrolAda(t, made)
  const browser = new Browser(made.app)
  await waitAt(t, browser)
  const answer = await browser.post('/auth/local/second-factor', { code: nextCode(t, secret), trust: true })
  t.strictSame([answer.statusCode, answer.cookies.map(({ name }) => name)], [200, ['svc_session']])

  await waitAt(t, new Browser(made.app, browser.cookies))
})
