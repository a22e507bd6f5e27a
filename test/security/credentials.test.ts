/** Attacks 63, 66, 69, 73 to 76 on the routes that change credentials, and on a registration by mail. */
import t, { type Test } from 'tap'
import { type AuthStore, MemoryAuthStore } from '../../lib/index.js'
import { userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { ADA, type MailApp, NEW_PASSWORD, mailsInTheEnd, startMailApp } from '../helpers/mail-app.js'
import { linkAt, signInAt } from '../helpers/own-provider.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'
import { SOME_STORES } from '../helpers/stores.js'

const NEW_EMAIL = 'ada@new.example'
const MALLORY = { email: 'mallory@example.com', password: 'the password of mallory' }
const CONFIRM = '/auth/local/change-email/confirm'
const HOUR_MS = 3_600_000

interface SignedInApp extends MailApp {
  userId: string
}

async function startSignedIn (t: Test, store: AuthStore = new MemoryAuthStore()): Promise<SignedInApp> {
  const start = await startMailApp(t, { store, session: { secret: 'the-session-secret-of-the-tests-32+', store: new SlowSessionStore() } })
  await start.browser.post('/auth/local/register', ADA)
  return { ...start, userId: await userIdIn(start.browser) ?? '' }
}

async function newEmailToken ({ browser, mails }: MailApp, email = NEW_EMAIL): Promise<string> {
  await browser.post('/auth/local/change-email', { email })
  return (await mails.next('change-email')).token
}

for (const [kind, createStore] of Object.entries(SOME_STORES)) {
  t.test(`the rules hold with ${kind}`, async t => {
    t.test('attack 66: a link to a new address that is used ten times at once changes it once', async t => {
      const start = await startSignedIn(t, await createStore(t))
      const { app, userId } = start
      const token = await newEmailToken(start)
      const redeem = async (index: number) => new Browser(app).post(CONFIRM, { token, password: ADA.password, next: `/${index}` })

      const answers = await Promise.all(Array.from({ length: 10 }, async (_, index) => redeem(index)))

      t.strictSame(answers.map(({ statusCode }) => statusCode).sort(), [204, ...Array(9).fill(401)])
      t.strictSame([...new Set(answers.filter(({ statusCode }) => statusCode === 401).map(answer => answer.json().code))], ['invalid_token'])
      t.equal((await redeem(10)).json().code, 'invalid_token')
      t.equal((await app.auth.findUser({ userId }))?.generation, 1)
    })

    t.test('attack 73: of two changes at once no address is taken that was not confirmed', async t => {
      const start = await startSignedIn(t, await createStore(t))
      const { app, browser, mails, userId } = start
      const own = 'mallory@own.example'

      for (let round = 0; round < 10; round++) {
        const before = (await app.auth.findUser({ userId }))?.email
        await Promise.all([own, 'victim@example.com'].map(async email =>
          new Browser(app, browser.cookies).post('/auth/local/change-email', { email })))
        const sent = [await mails.next('change-email'), await mails.next('change-email')]
        const { token } = sent.find(({ to }) => to === own) ?? {}

        await browser.post(CONFIRM, { token, email: 'victim@example.com', to: 'victim@example.com' })

        t.equal((await app.auth.findUser({ userId }))?.email, own, `round ${round}`)
        t.equal(await app.auth.findUser({ email: 'victim@example.com' }), null)
        t.strictSame((await app.auth.links(userId)).map(({ subject, claims }) => [subject, claims.email]), [[own, own]], before ?? '')
      }
    })

    t.test('attack 74: a taken address is told to who confirms it, and nothing is half-written', async t => {
      const start = await startSignedIn(t, await createStore(t))
      const { app, browser, userId, mails } = start
      await new Browser(app).post('/auth/local/register', MALLORY)
      const before = [await app.auth.findUser({ userId }), await app.auth.links(userId)]
      const free = await browser.post('/auth/local/change-email', { email: NEW_EMAIL })
      const taken = await browser.post('/auth/local/change-email', { email: MALLORY.email })
      t.strictSame([taken.statusCode, taken.body], [free.statusCode, free.body])
      const tokens = [(await mails.next('change-email')).token, (await mails.next('change-email')).token]
      await new Browser(app).post('/auth/local/register', { email: NEW_EMAIL, password: MALLORY.password })

      for (const token of tokens) {
        const answer = await browser.post(CONFIRM, { token })
        t.strictSame([answer.statusCode, answer.json().code], [409, 'exists'])
      }

      t.strictSame([await app.auth.findUser({ userId }), await app.auth.links(userId)], before)
      t.equal((await browser.get('/private')).statusCode, 200)
      t.equal((await new Browser(app).post('/auth/local/login', ADA)).statusCode, 200)
    })

    t.test('attack 75: a stolen session of an hour changes nothing without the password', async t => {
      const start = await startSignedIn(t, await createStore(t))
      const { app, browser, userId } = start
      const before = [await app.auth.findUser({ userId }), await app.auth.links(userId)]
      advanceClock(t, HOUR_MS)

      for (const [path, body] of [
        ['change-password', { password: NEW_PASSWORD }], ['set-password', { password: NEW_PASSWORD }],
        ['change-email', { email: NEW_EMAIL }], ['delete-account', {}]
      ] as const) {
        const stolen = new Browser(app, browser.cookies)
        const answer = await stolen.post(`/auth/local/${path}`, body)
        t.strictSame([answer.statusCode, answer.json().code, answer.json().methods], [403, 'reauthenticate', ['password']], path)
        if (path === 'set-password') continue
        const wrong = await stolen.post(`/auth/local/${path}`, { ...body, current: 'wrong password' })
        t.strictSame([wrong.statusCode, wrong.json().code], [401, 'invalid'], path)
      }

      t.strictSame([await app.auth.findUser({ userId }), await app.auth.links(userId)], before)
      t.equal(await app.auth.checkPassword(userId, ADA.password), true)
      t.strictSame((await mailsInTheEnd(start)).filter(({ kind }) => kind !== 'verify-email'), [])
    })

    t.test('attack 76: a first password needs a verified e-mail, and no other password', async t => {
      const { app } = await startMailApp(t, { store: await createStore(t) })
      for (const [what, person] of [
        ['an unverified e-mail', { subject: '1', email: 'one@example.com', emailVerified: false }], ['no e-mail', { subject: '2' }]
      ] as const) {
        const browser = new Browser(app)
        await signInAt(browser, 'a', person)
        const answer = await browser.post('/auth/local/set-password', { password: NEW_PASSWORD })
        t.strictSame([answer.statusCode, answer.json().code], [403, 'email_missing'], what)
      }
      const stripped = new Browser(app)
      await signInAt(stripped, 'a', { subject: '3', email: 'three@example.com' })
      await linkAt(stripped, 'b', { subject: '3' })
      await app.auth.unlink(await userIdIn(stripped) ?? '', 'a')
      await signInAt(stripped, 'b', { subject: '3' })
      t.equal((await stripped.post('/auth/local/set-password', { password: NEW_PASSWORD })).json().code, 'unverified',
        'an e-mail that no provider vouches for any more')
      const browser = new Browser(app)
      await browser.post('/auth/local/register', ADA)
      const answer = await browser.post('/auth/local/set-password', { password: NEW_PASSWORD })
      t.strictSame([answer.statusCode, answer.json().code], [409, 'exists'])
      t.equal((await new Browser(app).post('/auth/local/login', ADA)).statusCode, 200)
    })

    t.test('attack 76: of two first passwords at once one wins', async t => {
      const { app, browser } = await startMailApp(t, { store: await createStore(t) })
      await signInAt(browser, 'a', { subject: 'ada', email: ADA.email })
      const userId = await userIdIn(browser) ?? ''
      const passwords = ['the first password', 'the second password']

      const answers = await Promise.all(passwords.map(async password =>
        new Browser(app, browser.cookies).post('/auth/local/set-password', { password })))

      // The other one finds a password, or sessions that the first one has ended.
      t.match(answers.map(({ statusCode }) => statusCode).sort(), [204, /^(?:401|409)$/])
      const winner = passwords[answers.findIndex(({ statusCode }) => statusCode === 204)] ?? ''
      t.equal(await app.auth.checkPassword(userId, winner), true)
    })
  })
}

t.test('attack 69: a link to a new address acts on its user alone, whatever else is sent', async t => {
  const start = await startSignedIn(t)
  const { app, browser: victim, userId } = start
  const mallory = new Browser(app)
  await mallory.post('/auth/local/register', MALLORY)
  const malloryId = await userIdIn(mallory) ?? ''
  const token = await newEmailToken({ ...start, browser: mallory })

  t.equal((await victim.post(CONFIRM, { token })).json().code, 'unauthenticated', 'in the session of another user')
  for (const body of [`token=${token}&token=${token}`, `token[]=${token}`]) {
    const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }
    const answer = await mallory.send({ method: 'POST', url: CONFIRM, payload: body, headers })
    t.equal(answer.json().code, 'invalid_request', body.slice(0, 10))
  }
  t.equal((await mallory.post(CONFIRM, { token: [token] })).json().code, 'invalid_request')
  t.equal((await victim.post(CONFIRM, { token, password: ADA.password })).json().code, 'invalid', 'the password of the other user')

  const extra = { user_id: userId, sub: userId, userId, email: ADA.email, to: 'victim@example.com' }
  t.equal((await mallory.send({
    method: 'POST',
    url: `${CONFIRM}?user_id=${userId}&to=victim@example.com`,
    headers: { accept: 'application/json', 'content-type': 'application/json' },
    payload: JSON.stringify({ token, ...extra })
  })).statusCode, 204)

  t.equal((await app.auth.findUser({ userId: malloryId }))?.email, NEW_EMAIL)
  t.equal((await app.auth.findUser({ userId }))?.email, ADA.email)
  t.equal(await userIdIn(victim), userId)
})

t.test('attack 75: guesses of the present password are limited for the user, over all routes', async t => {
  const { app, browser, userId } = await startMailApp(t, { rateLimit: {} }).then(async start => {
    await start.browser.post('/auth/local/register', ADA)
    return { ...start, userId: await userIdIn(start.browser) ?? '' }
  })
  const codes: string[] = []
  for (let guess = 0; guess < 30; guess++) {
    const path = ['change-password', 'change-email', 'delete-account'][guess % 3]
    const body = { current: `guess ${guess} of thirty`, password: NEW_PASSWORD, email: NEW_EMAIL }
    const answer = await browser.send({
      method: 'POST',
      url: `/auth/local/${path}`,
      remoteAddress: `198.51.100.${guess}`,
      headers: { accept: 'application/json', 'content-type': 'application/json' },
      payload: JSON.stringify(body)
    })
    codes.push(answer.json().code)
  }

  t.strictSame(codes, [...Array(10).fill('invalid'), ...Array(20).fill('rate_limited')])
  t.equal(await app.auth.checkPassword(userId, ADA.password), true)
  t.equal((await browser.post('/auth/local/reauthenticate', { password: ADA.password })).json().code, 'rate_limited')
})

t.test('attack 75: guesses of the present password count as sign-ins to the account', async t => {
  const { browser } = await startMailApp(t, { rateLimit: { account: 3 } })
  await browser.post('/auth/local/register', ADA)
  for (let guess = 0; guess < 3; guess++) {
    await browser.post('/auth/local/delete-account', { current: `guess ${guess} of three` })
  }

  t.equal((await browser.post('/auth/local/delete-account', { current: ADA.password })).json().code, 'rate_limited')
  t.equal((await new Browser(browser.app).post('/auth/local/login', ADA)).json().code, 'rate_limited')
})

t.test('attack 75: guesses behind the link to a new address count as sign-ins to the account', async t => {
  const start = await startMailApp(t, { rateLimit: { account: 3 } })
  await start.browser.post('/auth/local/register', ADA)
  const token = await newEmailToken(start)
  const other = new Browser(start.app)
  for (let guess = 0; guess < 3; guess++) {
    t.equal((await other.post(CONFIRM, { token, password: `guess ${guess} of three` })).json().code, 'invalid')
  }

  t.equal((await other.post(CONFIRM, { token, password: ADA.password })).json().code, 'rate_limited')
  t.equal((await start.browser.post(CONFIRM, { token })).statusCode, 204, 'the session needs no password')
})

t.test('attack 63: a user sends five links an hour to new addresses, and one mailbox gets one a minute', async t => {
  const start = await startMailApp(t, { rateLimit: {} })
  const { browser } = start
  await browser.post('/auth/local/register', ADA)
  const ask = async (email: string) => browser.post('/auth/local/change-email', { email })

  t.equal((await ask(NEW_EMAIL)).statusCode, 202)
  t.equal((await ask(NEW_EMAIL)).statusCode, 202, 'the same answer')
  for (const email of ['1@new.example', '2@new.example', '3@new.example']) t.equal((await ask(email)).statusCode, 202)
  const refused = await ask('4@new.example')
  t.strictSame([refused.statusCode, refused.json().code], [429, 'rate_limited'])

  const sent = (await mailsInTheEnd(start)).filter(({ kind }) => kind === 'change-email').map(({ to }) => to)
  t.strictSame(sent.sort(), ['1@new.example', '2@new.example', '3@new.example', NEW_EMAIL])
})

for (const [kind, createStore] of Object.entries(SOME_STORES)) {
  t.test(`attack 66: a link to register that is used ten times at once creates one user with ${kind}`, async t => {
    const { app, mails } = await startMailApp(t, { store: await createStore(t) }, { registration: { verify: 'first' } })
    await new Browser(app).post('/auth/local/register', { email: ADA.email })
    const { token } = await mails.next('register')
    const passwords = Array.from({ length: 10 }, (_, index) => `the password number ${index}`)

    const answers = await Promise.all(passwords.map(async password =>
      new Browser(app).post('/auth/local/register', { token, password })))

    // One that begins when the user is there finds the link used.
    const refusals = answers.filter(({ statusCode }) => statusCode !== 201).map(answer => answer.json().code)
    t.equal(refusals.length, 9)
    t.ok(refusals.every(code => ['exists', 'invalid_token'].includes(code)), refusals.join())
    const { users } = await app.auth.users()
    t.equal(users.length, 1)
    const winner = answers.findIndex(({ statusCode }) => statusCode === 201)
    t.equal(await app.auth.checkPassword(users[0]?.userId ?? '', passwords[winner] ?? ''), true, 'the password of the winner')
  })
}

t.test('attack 69: a link to register creates the user of its address alone, whatever else is sent', async t => {
  const { app, browser, mails } = await startMailApp(t, {}, { registration: { verify: 'first' } })
  await browser.post('/auth/local/register', { email: MALLORY.email })
  const { token } = await mails.next('register')

  const extra = { email: 'victim@example.com', sub: 'victim', user_id: 'victim' }
  t.equal((await browser.post('/auth/local/register', { token, password: MALLORY.password, ...extra })).statusCode, 201)

  t.strictSame((await app.auth.users()).users.map(({ email }) => email), [MALLORY.email])
})
