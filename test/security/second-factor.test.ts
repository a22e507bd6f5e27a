/** Attacks 86 to 93, 101 to 105 and 116: ways round a second factor, its codes, its secrets. */
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { Accounts, type AuthPluginOptions, type AuthStore, type Factor, MemoryAuthStore, SqlAuthStore } from '../../lib/index.js'
import { Sealer } from '../../lib/sealed.js'
import type { SecondFactorOptions } from '../../lib/second-factor.js'
import { totp } from '../../lib/testing.js'
import { startFakeOpenIdProvider } from '../fakes/openid-provider.js'
import { SESSION_SECRET, principalIn, userIdIn } from '../helpers/app.js'
import { eventsOf } from '../helpers/audit-events.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { DATA_SECRET, type Enrolled, enrolAda, enrolAt, nextCode, startFactorApp, waitAt } from '../helpers/factor-app.js'
import { ADA, type MailApp, confirmAddress, registerAt } from '../helpers/mail-app.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { SESSION_STORES, type SessionStores } from '../helpers/session-stores.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'
import { SOME_STORES } from '../helpers/stores.js'
import { isThorough } from '../helpers/thorough.js'
import { type TestDatabase, postgresDatabase, sqliteDatabase } from '../store/database.js'

const MINUTE_MS = 60_000
const STEP_MS = 30_000
const GRACE = { email: 'grace@example.com', password: 'a nanosecond of wire' }
const FINISH = '/auth/local/second-factor'

interface Kept {
  store: AuthStore
  sessions: SessionStores
}

/** Each store with its own sessions; in `test:all` users in memory with each session store too. */
const KEPT: Array<[kind: string, keep: (t: Test) => Promise<Kept>]> = [
  ...Object.entries(SOME_STORES).map(([kind, create]): typeof KEPT[number] =>
    [`users in ${kind}`, async t => ({ store: await create(t), sessions: undefined })]),
  ...(isThorough ? SESSION_STORES : SESSION_STORES.slice(1, 2)).map(([kind, create]): typeof KEPT[number] =>
    [kind, async () => ({ store: new MemoryAuthStore(), sessions: create() })])
]

async function start (
  t: Test,
  { store, sessions }: Kept,
  factor: Partial<SecondFactorOptions> = {},
  options: AuthPluginOptions = {}
): Promise<MailApp> {
  return startFactorApp(t, factor, { store, session: { secret: SESSION_SECRET, store: sessions }, ...options })
}

async function finish (browser: Browser, code: string): Promise<unknown> {
  const { statusCode, body } = await browser.post(FINISH, { code })
  return statusCode === 200 ? 'signed in' : JSON.parse(body).code
}

/** Browsers in which Ada has typed her password, and no code. */
async function waiting (t: Test, app: FastifyInstance, count: number): Promise<Browser[]> {
  const browsers = Array.from({ length: count }, () => new Browser(app))
  for (const browser of browsers) await waitAt(t, browser)
  return browsers
}

/** Enrols another user beside Ada. */
async function enrolGrace (t: Test, { app, mails }: MailApp): Promise<Enrolled> {
  const browser = new Browser(app)
  await registerAt({ app, mails, browser }, GRACE)
  return enrolAt(t, browser)
}

/** How often each answer came. */
function counted (answers: readonly unknown[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const answer of answers) counts[String(answer)] = (counts[String(answer)] ?? 0) + 1
  return counts
}

/** A code that is not one of the secret's now. */
function wrong (secret: string): string {
  return String((Number(totp(secret, { step: 40 })) + 500_000) % 1_000_000).padStart(6, '0')
}

for (const [kind, keep] of KEPT) {
  t.test(`the rules hold with ${kind}`, async t => {
    t.test('attack 86: a session that waits for a code is that of a visitor, and the hook was not asked', async t => {
      const asked: string[] = []
      const made = await start(t, await keep(t), {}, { onSignIn: ({ principal }) => { asked.push(principal.userId) } })
      const { secret, userId } = await enrolAda(t, made)
      asked.length = 0
      const [browser = made.browser] = await waiting(t, made.app, 1)

      for (const path of ['/private', '/recent']) t.equal((await browser.get(path)).statusCode, 401, path)
      for (const path of ['/auth/local/token', '/auth/local/totp/remove']) t.equal((await browser.post(path, {})).statusCode, 401, path)
      t.equal(await principalIn(browser), null)
      t.strictSame(asked, [])

      t.equal(await finish(browser, nextCode(t, secret)), 'signed in')
      t.strictSame(asked, [userId])
    })

    t.test('attack 87, attack 105: what waits is finished by its own user, in its own session alone', async t => {
      const made = await start(t, await keep(t))
      const ada = await enrolAda(t, made)
      const grace = await enrolGrace(t, made)
      const [adas, shared] = [new Browser(made.app), new Browser(made.app)]
      await waitAt(t, adas)
      await waitAt(t, shared)
      const former = new Browser(made.app, shared.cookies)
      await waitAt(t, shared, GRACE)

      t.equal(await finish(shared, nextCode(t, ada.secret)), 'invalid_code', 'the code of another user')
      t.equal(await finish(former, totp(ada.secret)), 'invalid_state', 'a session that was replaced')
      t.equal(await finish(shared, totp(grace.secret)), 'signed in')
      t.equal(await userIdIn(shared), grace.userId)
      t.equal(await finish(shared, totp(ada.secret)), 'invalid_state', 'another user is signed in meanwhile')
      t.equal(await userIdIn(shared), grace.userId)
      t.equal(await finish(adas, totp(ada.secret)), 'signed in', 'and the code of Ada is not spent')
      t.equal(await finish(adas, nextCode(t, ada.secret)), 'invalid_state', 'twice')
      t.equal(await userIdIn(adas), ada.userId)
    })

    t.test('attack 88: of ten requests with one code at once, one signs in', async t => {
      const made = await start(t, await keep(t))
      const { secret } = await enrolAda(t, made)
      const browsers = await waiting(t, made.app, 10)
      const code = nextCode(t, secret)

      const answers = await Promise.all(browsers.map(async browser => finish(browser, code)))

      t.strictSame(counted(answers), { 'signed in': 1, invalid_code: 9 })
      const signedIn = await Promise.all(browsers.map(async browser => await principalIn(browser) !== null))
      t.strictSame(signedIn, answers.map(answer => answer === 'signed in'))
    })

    t.test('attack 88: neither does the code that confirmed the app sign in, nor is another user disturbed by it', async t => {
      const kept = await keep(t)
      const made = await start(t, kept)
      stopClock(t)
      const ada = await enrolAda(t, made)
      const code = totp(ada.secret)
      const [browser = made.browser] = await waiting(t, made.app, 1)
      t.equal(await finish(browser, code), 'invalid_code', 'the code of the enrolment')

      const grace = await enrolGrace(t, made)
      await giveSecret(kept.store, grace.userId, ada.secret)
      const graces = new Browser(made.app)
      await waitAt(t, graces, GRACE)
      const later = nextCode(t, ada.secret)
      t.equal(await finish(browser, later), 'signed in')
      t.equal(await finish(graces, later), 'signed in', 'the same code of another user')
    })

    t.test('attack 89: codes two steps off are refused, and a clock that goes back restores none', async t => {
      const made = await start(t, await keep(t))
      stopClock(t)
      const { secret } = await enrolAda(t, made)
      advanceClock(t, 10 * MINUTE_MS)
      const [browser = made.browser] = await waiting(t, made.app, 1)

      for (const step of [-2, 2]) t.equal(await finish(browser, totp(secret, { step })), 'invalid_code', `step ${step}`)
      const [used, next] = [totp(secret), totp(secret, { step: 1 })]
      t.equal(await finish(browser, next), 'signed in', 'the clock of the phone may be half a minute ahead')

      const [again = made.browser] = await waiting(t, made.app, 1)
      t.equal(await finish(again, used), 'invalid_code', 'an earlier one')
      advanceClock(t, -5 * MINUTE_MS)
      const [back = made.browser] = await waiting(t, made.app, 1)
      t.equal(await finish(back, totp(secret)), 'invalid_code', 'five minutes back')
    })

    t.test('attack 90, attack 101: of fifty codes at once ten are checked, and the owner is told once', async t => {
      const made = await start(t, await keep(t))
      const { secret, recoveryCodes: [recoveryCode = ''] } = await enrolAda(t, made)
      const grace = await enrolGrace(t, made)
      const guesses = eventsOf(t, 'too-many-codes')
      const browsers = await waiting(t, made.app, 10)
      const guess = async (browser: Browser, index: number): Promise<unknown> => {
        const code = index % 2 === 0 ? wrong(secret) : 'AAAA-AAAA-AAAA-AAAA-AAAA-AAAA'
        const headers = { accept: 'application/json', 'x-forwarded-for': `2001:db8::${index}` }
        const fields = { code, next: `/${index}` }
        const answer = index % 3 === 0 ? await browser.submit(FINISH, fields, headers) : await browser.post(FINISH, fields, headers)
        return answer.json().code
      }

      const answers = await Promise.all(Array.from({ length: 50 }, async (_, index) =>
        guess(browsers[index % 10] ?? made.browser, index)))

      t.strictSame(counted(answers), { invalid_code: 10, rate_limited: 40 })
      t.equal(guesses.length, 1)
      t.match(await made.mails.next('too-many-codes'), { to: ADA.email })
      const [right = made.browser] = await waiting(t, made.app, 1)
      t.equal(await finish(right, nextCode(t, secret)), 'rate_limited', 'the right code')
      t.equal(await finish(right, recoveryCode), 'rate_limited', 'and a recovery code')
      const graces = new Browser(made.app)
      await waitAt(t, graces, GRACE)
      t.equal(await finish(graces, totp(grace.secret)), 'signed in', 'another user')
    })

    t.test('attack 101: a success between the codes does not start the count again', async t => {
      const made = await start(t, await keep(t))
      const { secret } = await enrolAda(t, made)
      const answers: unknown[] = []
      for (const [browser, count] of (await waiting(t, made.app, 3)).map((browser, index) => [browser, index < 2 ? 4 : 3] as const)) {
        for (let attempt = 0; attempt < count; attempt++) answers.push(await finish(browser, wrong(secret)))
        answers.push(await finish(browser, nextCode(t, secret)))
      }
      t.strictSame(counted(answers), { invalid_code: 8, 'signed in': 2, rate_limited: 4 })
    })

    t.test('attack 91: of ten requests with one recovery code at once, one signs in; no part of a code does', async t => {
      const made = await start(t, await keep(t))
      const { recoveryCodes: [code = '', other = ''], userId } = await enrolAda(t, made)
      const browsers = await waiting(t, made.app, 10)

      const answers = await Promise.all(browsers.map(async browser => finish(browser, code)))

      t.strictSame(counted(answers), { 'signed in': 1, invalid_code: 9 })
      t.equal((await made.app.auth.factors(userId)).find(({ kind }) => kind === 'recovery')?.codesLeft, 9)
      advanceClock(t, 15 * MINUTE_MS)
      const [browser = made.browser] = await waiting(t, made.app, 1)
      for (const part of [other.slice(0, 4), other.slice(0, -1), `${other}A`]) t.equal(await finish(browser, part), 'invalid_code', part)
    })

    t.test('attack 91: recovery codes are in one answer alone', async t => {
      const made = await start(t, await keep(t))
      const { recoveryCodes, userId } = await enrolAda(t, made)
      const { browser, app, mails } = made
      const later = [
        ...await Promise.all(['/auth/local/totp', FINISH, '/me', '/authentication'].map(async path => browser.get(path, { accept: 'text/html' }))),
        await browser.post('/auth/local/totp/enroll')
      ].map(({ body }) => body)
      const texts = [...later, JSON.stringify(await app.auth.factors(userId)), JSON.stringify(mails.all)].join()

      for (const code of recoveryCodes) t.notMatch(texts, code)
    })

    t.test('attack 92: the app that is active works until another one is confirmed, and not afterwards', async t => {
      const made = await start(t, await keep(t))
      const { secret: old } = await enrolAda(t, made)
      const begun = (await made.browser.post('/auth/local/totp/enroll')).json()
      const [first = made.browser, second = made.browser] = await waiting(t, made.app, 2)

      const oldCode = nextCode(t, old)
      t.equal(await finish(first, totp(begun.secret)), 'invalid_code', 'an app that was not confirmed')
      t.equal(await finish(first, oldCode), 'signed in')
      t.equal((await made.browser.post('/auth/local/totp/confirm', { code: totp(begun.secret) })).statusCode, 200)
      const [last = made.browser] = await waiting(t, made.app, 1)
      t.equal(await finish(last, nextCode(t, old)), 'invalid_code')
      t.equal(await finish(last, totp(begun.secret)), 'signed in')
      t.equal(await finish(second, nextCode(t, begun.secret)), 'invalid_state', 'what waited before has ended')
    })

    t.test('attack 92: a session confirms its own app alone, and of two at once one wins', async t => {
      const made = await start(t, await keep(t))
      await registerAt(made)
      const other = new Browser(made.app)
      await other.post('/auth/local/login', ADA)
      const [mine, others] = [
        (await made.browser.post('/auth/local/totp/enroll')).json().secret, (await other.post('/auth/local/totp/enroll')).json().secret
      ]
      const confirm = async (browser: Browser, secret: string): Promise<number> =>
        (await browser.post('/auth/local/totp/confirm', { code: totp(secret) })).statusCode

      t.equal(await confirm(made.browser, others), 401, 'the app of another session')
      const statuses = await Promise.all([confirm(made.browser, mine), confirm(other, others)])

      t.equal(statuses.filter(status => status === 200).length, 1, statuses.join())
      const [winner, loser] = statuses[0] === 200 ? [made.browser, other] : [other, made.browser]
      t.strictSame([(await winner.get('/private')).statusCode, (await loser.get('/private')).statusCode], [200, 401])
      const [browser = made.browser] = await waiting(t, made.app, 1)
      advanceClock(t, MINUTE_MS)
      t.equal(await finish(browser, totp(statuses[0] === 200 ? others : mine)), 'invalid_code')
      t.equal(await finish(browser, totp(statuses[0] === 200 ? mine : others)), 'signed in')
    })

    t.test('attack 102: with the password alone no factor is set up, by no session that waits', async t => {
      let isRequired = false
      const made = await start(t, await keep(t), { required: () => isRequired })
      const token = await registerAt(made)
      await confirmAddress(made.browser, token)
      isRequired = true
      const [browser, other] = [new Browser(made.app), new Browser(made.app)]
      for (const each of [browser, other]) t.match((await each.post('/auth/local/login', ADA)).json(), { enrolment: true, methods: [] })

      for (const [path, body] of [
        ['/auth/local/totp/confirm', { code: '123456' }], ['/auth/local/totp/remove', {}], ['/auth/local/recovery-codes', {}],
        ['/auth/local/reauthenticate', { password: ADA.password }], ['/auth/local/token', {}], [FINISH, { code: '123456' }]
      ] as const) {
        const { statusCode } = await browser.post(path, body)
        t.ok(statusCode === 400 || statusCode === 401, `${path} ${statusCode}`)
      }
      t.equal((await browser.get('/private')).statusCode, 401)

      const { secret } = (await browser.post('/auth/local/totp/enroll')).json()
      const { code: mailCode } = await made.mails.next('enrolment')
      const confirm = async (browser: Browser, body: object): Promise<unknown> =>
        (await browser.post('/auth/local/totp/confirm', { code: totp(secret), ...body })).json().code
      t.equal(await confirm(browser, {}), 'invalid_code', 'without the code that was mailed')
      t.equal(await confirm(other, { mailCode }), 'invalid_state', 'in a session that has begun nothing')
      const { secret: others } = (await other.post('/auth/local/totp/enroll')).json()
      t.equal(await confirm(other, { code: totp(others), mailCode }), 'invalid_code', 'the code that was mailed for another session')
      const userId = (await made.app.auth.findUser({ email: ADA.email }))?.userId ?? ''
      t.strictSame(await made.app.auth.factors(userId), [])
      t.equal(await principalIn(browser), null)
    })

    t.test('attack 103: the cookie of a browser that is trusted for another user spares nothing', async t => {
      const made = await start(t, await keep(t), { trustedBrowser: { days: 30 } })
      await enrolAda(t, made)
      const grace = await enrolGrace(t, made)
      const graces = new Browser(made.app)
      await waitAt(t, graces, GRACE)
      const trusted = await graces.post(FINISH, { code: nextCode(t, grace.secret), trust: 'on' })
      t.equal(trusted.statusCode, 200)
      const cookies = new Map([...graces.cookies].filter(([name]) => name === 'svc_trusted'))
      t.equal(cookies.size, 1)

      await waitAt(t, new Browser(made.app, cookies))
      t.equal((await new Browser(made.app, cookies).post('/auth/local/login', GRACE)).statusCode, 200)
      const [signed = ''] = cookies.values()
      for (const forged of [signed.replace(/\.[^.]*$/, '.'), `${Buffer.from('{"alg":"none"}').toString('base64url')}.${signed.split('.')[1]}.`, 'x']) {
        await waitAt(t, new Browser(made.app, new Map([['svc_trusted', forged]])), GRACE)
      }
    })
  })
}

t.test('attack 87: a session store that keeps what waits for longer, and says that it is new, lets nobody finish it', async t => {
  const sessions = new SlowSessionStore()
  const made = await start(t, { store: new MemoryAuthStore(), sessions })
  const { secret } = await enrolAda(t, made)
  const [browser = new Browser(made.app)] = await waiting(t, made.app, 1)
  const restart = () => {
    for (const [id, text] of sessions.entries) {
      const entry = JSON.parse(text)
      entry.cookie.expires = new Date(Date.now() + 10 * MINUTE_MS)
      if (entry.pending !== undefined) entry.pending.content.startedAt = Date.now()
      sessions.entries.set(id, JSON.stringify(entry))
    }
  }

  advanceClock(t, 9 * MINUTE_MS)
  restart()
  t.equal(await finish(browser, wrong(secret)), 'invalid_code', 'in time it is found')
  advanceClock(t, MINUTE_MS)
  restart()

  t.equal(await finish(browser, nextCode(t, secret)), 'invalid_state')
  t.equal(await principalIn(browser), null)
})

t.test('attack 104: the word of a provider counts only in a signed ID token, and only where the application trusts it', async t => {
  const [company, stranger] = [await startFakeOpenIdProvider(t), await startFakeOpenIdProvider(t)]
  const asked: unknown[] = []
  const { app } = await startFactorApp(t, {
    required: () => true,
    trusts (proof) {
      asked.push(proof)
      return proof.provider === 'company' && (proof.amr.includes('mfa') || proof.acr === 'urn:company:two')
    }
  }, { providers: [company.provider({ name: 'company' }), stranger.provider({ name: 'stranger' })] })
  const signIn = async (provider: 'company' | 'stranger', said: { idToken?: object, userinfo?: object }): Promise<boolean> => {
    const fake = provider === 'company' ? company : stranger
    const subject = `${provider}-${asked.length}`
    fake.profile = { sub: subject, email: `${subject}@example.com`, email_verified: true }
    fake.idTokenClaims = { ...said.idToken }
    fake.userinfo = { ...said.userinfo }
    const browser = new Browser(app)
    const { headers: { location = '' } } = await browser.get(`/auth/${provider}/login`)
    const answer = await browser.get(fake.consent(location), { accept: 'text/html' })
    const isSignedIn = await principalIn(browser) !== null
    t.match(answer.headers.location, isSignedIn ? /^\/$/ : /^\/auth\/local\/second-factor/, answer.body)
    if (isSignedIn) t.match((await browser.get('/authentication')).json(), { secondFactor: true, methods: [{ method: 'provider' }] })
    return isSignedIn
  }

  t.equal(await signIn('company', { idToken: { amr: ['pwd', 'mfa'] } }), true)
  t.equal(await signIn('company', { idToken: { acr: 'urn:company:two' } }), true)
  t.equal(await signIn('company', { idToken: { amr: ['pwd'] } }), false)
  t.equal(await signIn('company', {}), false)
  t.equal(await signIn('company', { userinfo: { amr: ['mfa'], acr: 'urn:company:two' } }), false, 'userinfo is not signed')
  t.equal(await signIn('company', { idToken: { amr: 'mfa', acr: ['urn:company:two'] } }), false, 'members of other types')
  t.equal(await signIn('company', { idToken: { amr: ['mfa', 1] } }), false)
  t.equal(await signIn('stranger', { idToken: { amr: ['mfa'], acr: 'urn:company:two' } }), false, 'another provider')
  t.match(asked, [
    { provider: 'company', amr: ['pwd', 'mfa'], acr: null }, { amr: [], acr: 'urn:company:two' }, { amr: ['pwd'] },
    { amr: [], acr: null }, { amr: [], acr: null }, { amr: [], acr: null }, { amr: [] }, { provider: 'stranger', amr: ['mfa'] }
  ])
})

for (const [kind, create] of Object.entries({
  SQLite: async (t: Test): Promise<TestDatabase> => sqliteDatabase(t),
  Postgres: async (t: Test): Promise<TestDatabase> => postgresDatabase(await emptyDatabase(t))
})) {
  t.test(`attack 91, attack 93: what is in ${kind} has neither a secret nor a code in clear`, async t => {
    const { database, made } = await inDatabase(t, create)
    const { secret, recoveryCodes, userId } = await enrolAda(t, made)
    const pending = (await made.browser.post('/auth/local/totp/enroll')).json().secret
    await waitAt(t, new Browser(made.app))
    const tables = ['users', 'credentials', 'provider_links', 'sessions', 'pending', 'factors']
    const dump = JSON.stringify(await Promise.all(tables.map(async table => database.query(`select * from svc_auth_${table}`))))

    t.match(dump, userId)
    const secrets = [secret, pending, ...recoveryCodes, ...recoveryCodes.map(code => code.replaceAll('-', ''))]
    for (const text of secrets) t.notOk(dump.includes(text), text)
    t.notOk(dump.includes('otpauth'))
  })

  t.test(`attack 93, attack 116: rows in ${kind} that were exchanged, cut or removed fail closed`, async t => {
    const { database, made } = await inDatabase(t, create)
    const ada = await enrolAda(t, made)
    const grace = await enrolGrace(t, made)
    const [{ secret: sealed } = {}] = await database.query(`select secret from svc_auth_factors where user_id = '${ada.userId}' and kind = 'totp'`)
    const unreadable = eventsOf(t, 'secret-unreadable')
    const write = async (statement: string): Promise<void> => { await database.query(`${statement} where user_id = '${ada.userId}' and kind = 'totp'`) }
    const answer = async (secret: string): Promise<unknown> => {
      advanceClock(t, 15 * MINUTE_MS)
      const browser = new Browser(made.app)
      await waitAt(t, browser)
      const code = await finish(browser, totp(secret))
      t.equal(await principalIn(browser) !== null, code === 'signed in')
      return code
    }

    await write(`update svc_auth_factors set secret = (select secret from svc_auth_factors where user_id = '${grace.userId}' and kind = 'totp')`)
    t.equal(await answer(grace.secret), 'unavailable', 'the secret of another user')
    await write(`update svc_auth_factors set secret = '${String(sealed).slice(0, -6)}'`)
    t.equal(await answer(ada.secret), 'unavailable', 'cut')
    await write('update svc_auth_factors set secret = null')
    t.equal(await answer(ada.secret), 'unavailable', 'empty')
    t.strictSame(unreadable.map(({ userId }) => userId), [ada.userId, ada.userId, ada.userId])
    await write(`update svc_auth_factors set secret = '${sealed}'`)
    t.equal(await answer(ada.secret), 'signed in', 'as it was')
    await database.query('delete from svc_auth_factors')
    t.equal(await answer(ada.secret), 'unavailable', 'a table that was emptied')
  })
}

async function inDatabase (
  t: Test,
  create: (t: Test) => Promise<TestDatabase>
): Promise<{ database: TestDatabase, made: MailApp }> {
  const database = await create(t)
  const store = new SqlAuthStore(database.target)
  t.teardown(() => store.close())
  return { database, made: await startFactorApp(t, {}, { store }) }
}

/** Stops the clock of this process in the middle of a time step. */
function stopClock (t: Test): void {
  const { now } = Date
  const middle = (Math.floor(now() / STEP_MS) + 0.5) * STEP_MS
  Date.now = () => middle
  t.teardown(() => { Date.now = now })
}

/** Makes the app of a user show the codes of another one's. */
async function giveSecret (store: AuthStore, userId: string, secret: string): Promise<void> {
  const sealer = new Sealer([DATA_SECRET], 'second factor')
  const [app] = (await new Accounts(store).factors(userId)).filter(({ kind }) => kind === 'totp')
  if (app === undefined) throw new Error('the user has no app')
  const sealed = await sealer.seal(secret, app.id)
  const changed = (factor: Factor): Factor => factor.id === app.id ? { ...factor, secret: sealed, counter: 0 } : factor
  await new Accounts(store).changeFactors(userId, { endsSessions: false, change: factors => factors.map(changed) })
}
