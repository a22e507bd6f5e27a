import t, { type Test } from 'tap'
import { MemoryAuthStore, SignInRefused, SqlAuthStore } from '../../index.js'
import { Passkeys } from '../../passkeys.js'
import { SecondFactor } from '../../second-factor.js'
import { principalIn, startApp, userIdIn } from '../../../test/helpers/app.js'
import { eventsOf } from '../../../test/helpers/audit-events.js'
import { Browser } from '../../../test/helpers/browser.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import { enrolAt, nextCode, waitAt } from '../../../test/helpers/factor-app.js'
import { ADA, BASE_URL, type MailApp, NEW_PASSWORD, confirmAddress, registerAt, resetTokenOf } from '../../../test/helpers/mail-app.js'
import { OwnProvider, signInAt } from '../../../test/helpers/own-provider.js'
import { addAt, finishBy, newDevice, optionsAt, proveBy, signInBy, startPasskeyApp } from '../../../test/helpers/passkey-app.js'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

/** Registers Ada with a confirmed address and a passkey. */
async function adaWith (t: Test, made: MailApp, device = newDevice()) {
  const token = await registerAt(made)
  t.equal((await confirmAddress(made.browser, token)).statusCode, 204)
  const added = await addAt(made.browser, device)
  t.equal(added.statusCode, 201, added.body)
  await made.mails.next('factor-added')
  return { device, id: String(added.json().id), userId: await userIdIn(made.browser) ?? '' }
}

function withSecondFactor (options: Partial<ConstructorParameters<typeof SecondFactor>[0]> = {}) {
  return { secondFactor: new SecondFactor({ issuer: 'Shop', ...options }) }
}

t.test('a user adds a passkey, and signs in by it alone', async t => {
  const made = await startPasskeyApp(t)
  const [added, signIns] = [eventsOf(t, 'factor-added'), eventsOf(t, 'sign-in')]
  await registerAt(made)
  const [cookies, userId] = [new Map(made.browser.cookies), await userIdIn(made.browser) ?? '']
  const device = newDevice()

  const answer = await addAt(made.browser, device)

  const id = device.id.toString('base64url')
  t.strictSame([answer.statusCode, answer.json()], [201, { id, name: `Passkey, ${new Date().toISOString().slice(0, 10)}` }])
  t.match(added, [{ userId, method: 'passkey' }])
  t.strictSame(made.browser.cookies, cookies, 'the session goes on as it is')
  t.match(await made.app.auth.factors(userId), [{ id, kind: 'passkey', lastUsedAt: null }])

  const browser = new Browser(made.app)
  const signedIn = await signInBy(browser, device)
  t.match([signedIn.statusCode, signedIn.json()], [200, { userId, provider: 'local', claims: { email: ADA.email } }])
  t.equal(await userIdIn(browser), userId)
  t.match((await browser.get('/authentication')).json(), { methods: [{ method: 'passkey' }], secondFactor: true })
  t.strictSame(signIns.at(-1)?.methods, ['passkey'])
  t.not((await made.app.auth.factors(userId))[0]?.lastUsedAt, null)
  t.equal((await new Browser(made.app).post('/auth/local/login', ADA)).statusCode, 200, 'other sign-ins do not ask for it')
})

t.test('the owner is told of a new passkey, at an address that is confirmed', async t => {
  const made = await startPasskeyApp(t)
  const token = await registerAt(made)
  await confirmAddress(made.browser, token)
  await addAt(made.browser, newDevice())
  t.match(await made.mails.next('factor-added'), { to: ADA.email })
})

t.test('a passkey takes the name that the user gives it', async t => {
  const made = await startPasskeyApp(t)
  await registerAt(made)
  t.equal((await addAt(made.browser, newDevice(), { name: '  Phone ' })).json().name, 'Phone')
})

t.test('a passkey is added after a recent authentication alone, by the second factor of a user who has one', async t => {
  const made = await startPasskeyApp(t, withSecondFactor())
  await registerAt(made)
  const options = await optionsAt(made.browser, 'register')
  advanceClock(t, 11 * MINUTE_MS)
  const [early, late] = [
    await made.browser.post('/auth/local/passkeys/options', { for: 'register' }),
    await made.browser.post('/auth/local/passkeys/register', { response: newDevice().create(options) })
  ]
  for (const refused of [early, late]) {
    t.match([refused.statusCode, refused.json()], [403, { code: 'reauthenticate', methods: ['password'] }])
  }
  await made.browser.post('/auth/local/reauthenticate', { password: ADA.password })
  t.equal((await addAt(made.browser, newDevice())).statusCode, 201)

  const { secret } = await enrolAt(t, made.browser)
  advanceClock(t, 11 * MINUTE_MS)
  await made.browser.post('/auth/local/reauthenticate', { password: ADA.password })
  const asked = await made.browser.post('/auth/local/passkeys/options', { for: 'register' })
  t.match([asked.statusCode, asked.json()], [403, { code: 'reauthenticate', methods: ['passkey', 'recovery', 'totp'] }])
  await made.browser.post('/auth/local/reauthenticate', { code: nextCode(t, secret) })
  t.equal((await addAt(made.browser, newDevice())).statusCode, 201)
})

t.test('no visitor begins to add a passkey, or to use one as a factor', async t => {
  const { app } = await startPasskeyApp(t)
  const begin = async (ceremony: string) => (await new Browser(app).post('/auth/local/passkeys/options', { for: ceremony })).json().code
  t.strictSame([await begin('register'), await begin('factor')], ['unauthenticated', 'invalid_state'])
})

t.test('a challenge works for five minutes, and a session has sixteen', async t => {
  const made = await startPasskeyApp(t)
  const { device, userId } = await adaWith(t, made)
  const browser = new Browser(made.app)
  const challenges: Array<Record<string, unknown>> = []
  for (let number = 0; number < 17; number++) challenges.push(await optionsAt(browser, 'login'))
  const send = async (options = challenges[0] ?? {}) => {
    const { statusCode, body } = await browser.post('/auth/local/passkeys/login', { response: device.get(options) })
    return [statusCode, JSON.parse(body).code ?? JSON.parse(body).userId]
  }
  t.strictSame(await send(challenges[0]), [400, 'invalid_state'], 'the oldest of seventeen')
  t.strictSame(await send(challenges[1]), [200, userId])

  const options = await optionsAt(browser, 'login')
  advanceClock(t, 5 * MINUTE_MS + 1000)
  t.strictSame(await send(options), [400, 'invalid_state'])
})

t.test('a passkey is the second factor of a sign-in by password', async t => {
  const made = await startPasskeyApp(t, withSecondFactor())
  const { device, id, userId } = await adaWith(t, made)
  await enrolAt(t, made.browser)
  const browser = new Browser(made.app)
  t.match((await browser.post('/auth/local/login', ADA)).json(), { methods: ['passkey', 'recovery', 'totp'] })

  t.match(await optionsAt(browser, 'factor'), { allowCredentials: [{ id, transports: ['internal'] }], userVerification: 'required' })
  const finished = await finishBy(browser, device)

  t.match([finished.statusCode, finished.json()], [200, { userId }])
  t.match((await browser.get('/authentication')).json(), {
    methods: [{ method: 'password' }, { method: 'passkey' }], secondFactor: true
  })
  t.equal((await signInBy(new Browser(made.app), device)).statusCode, 200, 'a passkey alone is both factors')
})

t.test('the passkey of another user finishes no sign-in, and the sign-in stays', async t => {
  const made = await startPasskeyApp(t, withSecondFactor())
  const { device } = await adaWith(t, made)
  await enrolAt(t, made.browser)
  const other = new Browser(made.app)
  await other.post('/auth/local/register', { email: 'mallory@example.com', password: ADA.password })
  const theirs = newDevice()
  await addAt(other, theirs)

  const browser = new Browser(made.app)
  await waitAt(t, browser)
  const refused = await finishBy(browser, theirs)
  t.match([refused.statusCode, refused.json().code], [401, 'invalid'])
  t.equal(await principalIn(browser), null)
  t.equal((await finishBy(browser, device)).statusCode, 200)
})

t.test('a sign-in that waits takes five responses', async t => {
  const made = await startPasskeyApp(t, withSecondFactor())
  const { device } = await adaWith(t, made)
  await enrolAt(t, made.browser)
  const browser = new Browser(made.app)
  await waitAt(t, browser)
  for (let attempt = 0; attempt < 5; attempt++) {
    await browser.post('/auth/local/second-factor', { response: newDevice().get(await optionsAt(browser, 'factor')) })
  }
  t.equal((await finishBy(browser, device)).json().code, 'invalid_state')
})

t.test('where a second factor is required, a user with a passkey is asked for it, and a passkey alone suffices', async t => {
  const made = await startPasskeyApp(t, withSecondFactor({ required: ({ principal }) => principal.claims.role === 'admin' }))
  const { device, userId } = await adaWith(t, made)
  await made.app.auth.grant(userId, { role: 'admin' })

  const browser = new Browser(made.app)
  const waiting = await browser.post('/auth/local/login', ADA)
  t.match([waiting.statusCode, waiting.json().methods], [401, ['passkey']])
  t.equal((await browser.post('/auth/local/second-factor', { code: '123456' })).json().code, 'invalid_code', 'there is no app')
  t.equal((await finishBy(browser, device)).statusCode, 200)
  t.equal((await signInBy(new Browser(made.app), device)).statusCode, 200)
})

t.test('a user who needs a second factor and has none may add a passkey, which completes the sign-in', async t => {
  const calls: boolean[] = []
  const made = await startPasskeyApp(t, { ...withSecondFactor({ required: () => true }), onSignIn: ({ created }) => { calls.push(created) } })
  await made.browser.post('/auth/local/register', ADA)
  t.equal(await principalIn(made.browser), null)

  t.equal((await addAt(made.browser, newDevice())).statusCode, 201)

  t.equal((await principalIn(made.browser))?.claims.email, ADA.email)
  t.match((await made.browser.get('/authentication')).json(), {
    methods: [{ method: 'password' }, { method: 'passkey' }], secondFactor: true
  })
  t.strictSame(calls, [true])
})

t.test('a user who existed before also types the code that is mailed to their confirmed address', async t => {
  let isRequired = false
  const made = await startPasskeyApp(t, withSecondFactor({ required: () => isRequired }))
  const token = await registerAt(made)
  await confirmAddress(made.browser, token)
  isRequired = true
  const browser = new Browser(made.app)
  t.match((await browser.post('/auth/local/login', ADA)).json(), { enrolment: true, methods: [] })

  for (const mailCode of [undefined, '', '12345']) {
    const refused = await addAt(browser, newDevice(), { ...(mailCode !== undefined && { mailCode }) })
    t.match([refused.statusCode, refused.json().code], [401, 'invalid_code'], String(mailCode))
  }
  const { code: mailCode } = await made.mails.next('enrolment')
  t.equal((await addAt(browser, newDevice(), { mailCode })).statusCode, 201)
  t.equal((await principalIn(browser))?.claims.email, ADA.email)
  await made.app.close()
  t.equal(made.mails.all.filter(({ kind }) => kind === 'enrolment').length, 1, 'one code for all ceremonies of the sign-in')
})

t.test('a process without second factors completes no sign-in that waits for a mailed code', async t => {
  const store = new SqlAuthStore(':memory:')
  t.teardown(() => store.close())
  let isRequired = false
  const made = await startPasskeyApp(t, { store, ...withSecondFactor({ required: () => isRequired }) })
  const token = await registerAt(made)
  await confirmAddress(made.browser, token)
  isRequired = true
  const browser = new Browser(made.app)
  await browser.post('/auth/local/login', ADA)
  await optionsAt(browser, 'register')
  const { code: mailCode } = await made.mails.next('enrolment')
  const { app } = await startPasskeyApp(t, { store })

  const refused = await addAt(new Browser(app, browser.cookies), newDevice(), { mailCode })
  t.match([refused.statusCode, refused.json().code], [503, 'unavailable'])
  t.equal((await addAt(browser, newDevice(), { mailCode })).statusCode, 201)
})

t.test('the mailed code takes five attempts', async t => {
  let isRequired = false
  const made = await startPasskeyApp(t, withSecondFactor({ required: () => isRequired }))
  const token = await registerAt(made)
  await confirmAddress(made.browser, token)
  isRequired = true
  const browser = new Browser(made.app)
  await browser.post('/auth/local/login', ADA)
  const codes = []
  for (let attempt = 0; attempt < 5; attempt++) codes.push((await addAt(browser, newDevice(), { mailCode: 'wrong' })).json().code)
  t.strictSame(codes, Array(5).fill('invalid_code'))
  const { code: spent } = await made.mails.next('enrolment')
  t.match((await addAt(browser, newDevice(), { mailCode: spent })).json().code, /^invalid_(code|state)$/)
  t.equal(await principalIn(browser), null)
  const { code: mailCode } = await made.mails.next('enrolment')
  t.equal((await addAt(browser, newDevice(), { mailCode })).statusCode, 201, 'attack 158: beginning again has mailed another one')
})

t.test('the mailed code takes ten attempts of a user, in all sessions; then they are told', async t => {
  let isRequired = false
  const made = await startPasskeyApp(t, withSecondFactor({ required: () => isRequired }))
  const token = await registerAt(made)
  await confirmAddress(made.browser, token)
  isRequired = true
  const codes = []
  for (let attempt = 0; attempt < 11; attempt++) {
    const browser = new Browser(made.app)
    await browser.post('/auth/local/login', ADA)
    codes.push((await addAt(browser, newDevice(), { mailCode: 'wrong' })).json().code)
  }
  t.strictSame(codes, [...Array(10).fill('invalid_code'), 'rate_limited'])
  t.match(await made.mails.next('too-many-codes'), { to: ADA.email })
})

t.test('an application may refuse a user after their passkey: a new one is deleted with it', async t => {
  const made = await startPasskeyApp(t, {
    ...withSecondFactor({ required: () => true }), onSignIn: () => { throw new SignInRefused('not_invited') }
  })
  await made.browser.post('/auth/local/register', ADA)

  const refused = await addAt(made.browser, newDevice())

  t.match([refused.statusCode, refused.json().code], [403, 'not_invited'])
  t.equal(await made.app.auth.findUser({ email: ADA.email }), null)
})

t.test('a signed-in user authenticates again by a passkey; the session gets a new id', async t => {
  const made = await startPasskeyApp(t)
  const { device } = await adaWith(t, made)
  advanceClock(t, 11 * MINUTE_MS)
  const asked = await made.browser.post('/auth/local/passkeys/rename', { id: 'x', name: 'y' })
  t.match(asked.json(), { code: 'reauthenticate', methods: ['password', 'passkey'] })
  const before = made.browser.cookies.get('svc_session')

  t.equal((await proveBy(made.browser, device)).statusCode, 204)

  t.not(made.browser.cookies.get('svc_session'), before)
  t.match((await made.browser.get('/authentication')).json(), { methods: [{ method: 'password' }, { method: 'passkey' }] })
  t.equal((await made.browser.post('/auth/local/passkeys/rename', { id: 'x', name: 'y' })).json().code, 'not_found')
})

t.test('a signed-in user does not authenticate by the passkey of another one', async t => {
  const made = await startPasskeyApp(t)
  const { device } = await adaWith(t, made)
  const other = new Browser(made.app)
  await other.post('/auth/local/register', { email: 'mallory@example.com', password: ADA.password })
  const refused = await proveBy(other, device)
  t.match([refused.statusCode, refused.json().code], [401, 'invalid'])
})

t.test('a passkey is renamed; the sessions of the user go on', async t => {
  const made = await startPasskeyApp(t)
  const { id, userId } = await adaWith(t, made)
  const other = new Browser(made.app)
  await other.post('/auth/local/login', ADA)
  const before = made.browser.cookies.get('svc_session')

  t.equal((await made.browser.post('/auth/local/passkeys/rename', { id, name: 'Phone' })).statusCode, 204)

  t.match(await made.app.auth.factors(userId), [{ id, name: 'Phone' }])
  t.equal((await other.get('/private')).statusCode, 200)
  t.equal(made.browser.cookies.get('svc_session'), before)
})

t.test('a passkey is removed; other sessions end, and this one goes on with a new id', async t => {
  const made = await startPasskeyApp(t)
  const removed = eventsOf(t, 'factor-removed')
  const { device, id, userId } = await adaWith(t, made)
  const kept = newDevice()
  await addAt(made.browser, kept)
  const other = new Browser(made.app)
  await other.post('/auth/local/login', ADA)
  const before = made.browser.cookies.get('svc_session')

  const answer = await made.browser.post('/auth/local/passkeys/remove', { id })

  const handle = Buffer.from(userId.replaceAll('-', ''), 'hex').toString('base64url')
  t.strictSame([answer.statusCode, answer.json()], [200, { userId: handle, accepted: [kept.id.toString('base64url')] }])
  t.match(removed, [{ userId, method: 'passkey', by: 'user' }])
  t.match(await made.mails.next('factor-removed'), { to: ADA.email })
  t.equal((await other.get('/private')).statusCode, 401)
  t.equal((await made.browser.get('/private')).statusCode, 200)
  t.not(made.browser.cookies.get('svc_session'), before)
  const refused = await signInBy(new Browser(made.app), device)
  t.match([refused.statusCode, refused.json().code], [401, 'unknown_passkey'])
  t.equal((await signInBy(new Browser(made.app), kept)).statusCode, 200)
})

t.test('a passkey is removed after a recent authentication alone', async t => {
  const made = await startPasskeyApp(t)
  const { id, userId } = await adaWith(t, made)
  advanceClock(t, 11 * MINUTE_MS)
  t.equal((await made.browser.post('/auth/local/passkeys/remove', { id })).json().code, 'reauthenticate')
  t.equal((await made.app.auth.factors(userId)).length, 1)
})

t.test('the passkey of a user whom the application alone signs in is not removed, unless they have another', async t => {
  const app = await startApp(t, { baseUrl: BASE_URL, passkeys: new Passkeys({ name: 'Shop' }) }, {}, app => {
    app.post<{ Body: { userId: string } }>('/vouch', async request => app.auth.signIn(request, request.body.userId))
  })
  const { userId = '' } = await app.auth.createUser({ email: ADA.email })
  const browser = new Browser(app)
  t.match((await browser.post('/vouch', { userId })).json(), { provider: 'application' })
  const device = newDevice()
  const { id } = (await addAt(browser, device)).json()

  const refused = await browser.post('/auth/local/passkeys/remove', { id })
  t.match([refused.statusCode, refused.json().code], [409, 'last_link'])
  t.match((await signInBy(new Browser(app), device)).json(), { provider: 'application' })
  await addAt(browser, newDevice())
  t.equal((await browser.post('/auth/local/passkeys/remove', { id })).statusCode, 200)
})

t.test('a user who signs in by mail may remove the last passkey', async t => {
  const made = await startPasskeyApp(t, { rateLimit: {} }, { signInByMail: true })
  await made.browser.post('/auth/local/mail-login', { email: ADA.email })
  const { code } = await made.mails.next('sign-in')
  t.equal((await made.browser.post('/auth/local/mail-login/confirm', { code })).statusCode, 200)
  const { id } = (await addAt(made.browser, newDevice())).json()

  t.equal((await made.browser.post('/auth/local/passkeys/remove', { id })).statusCode, 200)
})

t.test('the last factor that the application requires is not removed', async t => {
  const made = await startPasskeyApp(t, withSecondFactor({ required: ({ principal }) => principal.claims.role === 'admin' }))
  const { id, userId } = await adaWith(t, made)
  await made.app.auth.grant(userId, { role: 'admin' })

  const refused = await made.browser.post('/auth/local/passkeys/remove', { id })
  t.match([refused.statusCode, refused.json().code], [403, 'forbidden'])
  await addAt(made.browser, newDevice())
  t.equal((await made.browser.post('/auth/local/passkeys/remove', { id })).statusCode, 200)
})

t.test('recovery codes stay with a passkey, and go with the last factor', async t => {
  const made = await startPasskeyApp(t, withSecondFactor())
  const { id, userId } = await adaWith(t, made)
  const kinds = async () => (await made.app.auth.factors(userId)).map(({ kind }) => kind).sort()
  await enrolAt(t, made.browser)
  t.equal((await made.browser.post('/auth/local/totp/remove')).statusCode, 204)
  t.strictSame(await kinds(), ['passkey', 'recovery'])

  t.equal((await made.browser.post('/auth/local/passkeys/remove', { id })).statusCode, 200)
  t.strictSame(await kinds(), [])
})

t.test('a user has twenty passkeys at most', async t => {
  const made = await startPasskeyApp(t)
  await registerAt(made)
  for (let number = 0; number < 20; number++) t.equal((await addAt(made.browser, newDevice())).statusCode, 201)
  const refused = await addAt(made.browser, newDevice())
  t.match([refused.statusCode, refused.json().code], [409, 'too_many'])
})

t.test('a passkey is added once, and to one account', async t => {
  const made = await startPasskeyApp(t)
  const { id } = await adaWith(t, made)
  const other = new Browser(made.app)
  await other.post('/auth/local/register', { email: 'mallory@example.com', password: ADA.password })
  t.match(await optionsAt(made.browser, 'register'), { excludeCredentials: [{ id }] })

  for (const browser of [made.browser, other]) {
    const refused = await addAt(browser, newDevice({ id: Buffer.from(id, 'base64url') }))
    t.match([refused.statusCode, refused.json().code], [409, 'exists'])
  }
})

t.test('a signature counter that does not grow is refused; the owner is told', async t => {
  const made = await startPasskeyApp(t)
  const cloned = eventsOf(t, 'passkey-cloned')
  const { device, userId } = await adaWith(t, made)
  t.equal((await signInBy(new Browser(made.app), device, { counter: 7 })).statusCode, 200)

  for (const counter of [7, 6]) {
    const refused = await signInBy(new Browser(made.app), device, { counter })
    t.match([refused.statusCode, refused.json().code], [401, 'invalid'])
  }
  t.match(cloned, [{ userId }, { userId }])
  t.match(await made.mails.next('passkey-cloned'), { to: ADA.email })
  t.equal((await signInBy(new Browser(made.app), device, { counter: 8 })).statusCode, 200)
})

t.test('of two sign-ins with one counter at a time, one is refused', async t => {
  const made = await startPasskeyApp(t)
  const { device } = await adaWith(t, made)
  const [one, two] = [new Browser(made.app), new Browser(made.app)]
  const [first, second] = [await optionsAt(one, 'login'), await optionsAt(two, 'login')]
  const answers = await Promise.all([
    one.post('/auth/local/passkeys/login', { response: device.get(first, { counter: 3 }) }),
    two.post('/auth/local/passkeys/login', { response: device.get(second, { counter: 3 }) })
  ])
  t.equal(answers.filter(({ statusCode }) => statusCode === 200).length, 1)
})

t.test('a passkey without a counter is written at most once a day', async t => {
  const store = new MemoryAuthStore()
  let writes = 0
  const change = store.change.bind(store)
  store.change = (find, wanted, rule) => change(find, wanted, (account, owners) => {
    const changed = rule(account, owners)
    if (changed.account !== undefined) writes++
    return changed
  })
  const made = await startPasskeyApp(t, { store })
  const { device } = await adaWith(t, made)
  const writesOf = async () => {
    const before = writes
    t.equal((await signInBy(new Browser(made.app), device)).statusCode, 200)
    return writes - before
  }
  t.equal(await writesOf(), 1, 'the first use')
  t.equal(await writesOf(), 0)
  advanceClock(t, DAY_MS)
  t.equal(await writesOf(), 1)
})

t.test('a blocked user does not sign in by a passkey', async t => {
  const made = await startPasskeyApp(t)
  const { device, userId } = await adaWith(t, made)
  await made.app.auth.block(userId)
  const browser = new Browser(made.app)
  const refused = await signInBy(browser, device)
  t.match([refused.statusCode, refused.json().code], [403, 'blocked'])
  t.equal(await principalIn(browser), null)
})

t.test('a sign-in that waited while the sessions of the user were ended is not finished by a passkey', async t => {
  const made = await startPasskeyApp(t, withSecondFactor())
  const { device, userId } = await adaWith(t, made)
  await enrolAt(t, made.browser)
  const browser = new Browser(made.app)
  await waitAt(t, browser)
  await made.app.auth.signOutEverywhere(userId)
  const refused = await finishBy(browser, device)
  t.match([refused.statusCode, refused.json().code], [400, 'invalid_state'])
})

t.test('a user is not added a passkey by a sign-in that waited while their sessions were ended', async t => {
  const made = await startPasskeyApp(t, withSecondFactor({ required: () => true }))
  await made.browser.post('/auth/local/register', ADA)
  const options = await optionsAt(made.browser, 'register')
  const { userId = '' } = await made.app.auth.findUser({ email: ADA.email }) ?? {}
  await made.app.auth.signOutEverywhere(userId)
  const refused = await made.browser.post('/auth/local/passkeys/register', { response: newDevice().create(options) })
  t.match([refused.statusCode, refused.json().code], [400, 'invalid_state'])
  t.strictSame(await made.app.auth.factors(userId), [])
})

t.test('a passkey whose user is gone is refused as one that nobody has', async t => {
  const made = await startPasskeyApp(t)
  const { device, userId } = await adaWith(t, made)
  await made.app.auth.deleteUser(userId)
  const refused = await signInBy(new Browser(made.app), device)
  t.match([refused.statusCode, refused.json().code], [401, 'unknown_passkey'])
})

t.test('a reset of an address that nobody had confirmed removes passkeys; that of a confirmed one keeps them', async t => {
  const made = await startPasskeyApp(t)
  await registerAt(made)
  const stranger = newDevice()
  await addAt(made.browser, stranger)
  const reset = async () => (await new Browser(made.app).post('/auth/local/reset-password', {
    token: await resetTokenOf(made), password: NEW_PASSWORD
  })).statusCode
  t.equal(await reset(), 204)
  t.equal((await signInBy(new Browser(made.app), stranger)).json().code, 'unknown_passkey')

  const owner = new Browser(made.app)
  t.equal((await owner.post('/auth/local/login', { ...ADA, password: NEW_PASSWORD })).statusCode, 200)
  const device = newDevice()
  await addAt(owner, device)
  t.equal(await reset(), 204)
  t.equal((await signInBy(new Browser(made.app), device)).statusCode, 200)
})

t.test('an address that is released takes no passkey along', async t => {
  const made = await startPasskeyApp(t)
  const token = await registerAt(made)
  const stranger = newDevice()
  await addAt(made.browser, stranger)
  t.equal((await new Browser(made.app).post('/auth/local/verify-email', { token, not_me: true, email: ADA.email })).statusCode, 204)
  t.equal((await signInBy(new Browser(made.app), stranger)).json().code, 'unknown_passkey')
})

t.test('passkeys need no passwords: a user adds one after a sign-in at a provider', async t => {
  const app = await startApp(t, {
    baseUrl: BASE_URL, providers: [new OwnProvider('a')], passkeys: new Passkeys({ name: 'Shop' })
  })
  const browser = new Browser(app)
  await signInAt(browser, 'a', { subject: 'ada-a' })
  const device = newDevice()
  t.equal((await addAt(browser, device)).statusCode, 201)
  t.match((await signInBy(new Browser(app), device)).json(), { provider: 'a', userId: await userIdIn(browser) })
})

t.test('a user is signed in by a form as well, and their browser remembered', async t => {
  const made = await startPasskeyApp(t, { session: { secret: 'the-session-secret-of-the-tests-32+', remember: { days: 30 } } })
  const { device } = await adaWith(t, made)
  const browser = new Browser(made.app)
  const response = JSON.stringify(device.get(await optionsAt(browser, 'login')))
  const answer = await browser.submit('/auth/local/passkeys/login', { response, remember: 'on', next: '/cart' })
  t.strictSame([answer.statusCode, answer.headers.location], [303, '/cart'])
  t.match(answer.cookies.find(({ name }) => name === 'svc_session'), { expires: Date })
})

t.test('the operator resets passkeys too', async t => {
  const made = await startPasskeyApp(t)
  const { device, userId } = await adaWith(t, made)
  await made.app.auth.resetFactors(userId)
  t.equal((await signInBy(new Browser(made.app), device)).json().code, 'unknown_passkey')
})

t.test('a guard for second factors leads a user without a passkey to no page that is not there', async t => {
  const app = await startApp(t, { baseUrl: BASE_URL, passkeys: new Passkeys({ name: 'Shop' }) }, {}, app => {
    app.get('/secure', { preHandler: app.auth.requireSecondFactor }, async () => 'passed')
    app.post<{ Body: { userId: string } }>('/vouch', async request => app.auth.signIn(request, request.body.userId))
  })
  const { userId } = await app.auth.createUser({ email: ADA.email })
  const browser = new Browser(app)
  await browser.post('/vouch', { userId })
  const refused = await browser.get('/secure', { accept: 'text/html' })
  t.match([refused.statusCode, refused.json().code], [403, 'second_factor_missing'])
})

t.test('a process with passkeys alone and no data secret lets no sign-in of a user with an app wait', async t => {
  const store = new MemoryAuthStore()
  const made = await startPasskeyApp(t, { store, ...withSecondFactor() })
  const { device } = await adaWith(t, made)
  await enrolAt(t, made.browser)
  const { app } = await startPasskeyApp(t, { store, dataSecret: undefined })

  const refused = await new Browser(app).post('/auth/local/login', ADA)

  t.match([refused.statusCode, refused.json().code], [503, 'unavailable'])
  t.equal((await signInBy(new Browser(app), device)).statusCode, 200, 'a passkey is both factors')
})
