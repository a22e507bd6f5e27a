import SqliteDatabase from 'better-sqlite3'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { Accounts, type AuthPluginOptions, type AuthStore, MemoryAuthStore, SqlAuthStore } from '../../lib/index.js'
import { hashing } from '../../lib/features/password/hashing.js'
import { SESSION_SECRET, localProvider, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { deferred } from '../helpers/deferred.js'
import { CAPACITY } from '../helpers/hashing.js'
import { OwnProvider, leaveFor, signInAt } from '../helpers/own-provider.js'
import { SOME_SESSION_STORES, type SessionStores } from '../helpers/session-stores.js'
import { SOME_STORES } from '../helpers/stores.js'
import { isThorough, some } from '../helpers/thorough.js'

const { hash, verify } = hashing
/** What happens just before a password is compared or hashed. */
let before: () => Promise<void> | void = () => {}
const verifications = t.capture(hashing, 'verify', async (...args: Parameters<typeof verify>) => {
  await before()
  return verify(...args)
})
const hashings = t.capture(hashing, 'hash', async (...args: Parameters<typeof hash>) => {
  await before()
  return hash(...args)
})

/** A hash takes milliseconds: those of a crowd take some time, and not long. */
const COST = { memoryCost: 8192, timeCost: 1, parallelism: 1 }

// Over https: alone a session that was begun by mistake would set no cookie here, for requests are injected as http:.
const BASE_URL = 'http://app.example'
const PAGE = `${BASE_URL}/sign-in?lang=en&error=old#form`
const ADA = { email: 'ada@example.com', password: 'correct horse' }
const INVALID = { statusCode: 401, code: 'invalid', error: 'Unauthorized', message: 'The e-mail or the password is wrong.' }

async function start (t: Test, options: AuthPluginOptions = {}, sessions?: SessionStores): Promise<FastifyInstance> {
  return startApp(t, {
    baseUrl: BASE_URL,
    local: localProvider(),
    providers: [new OwnProvider('mine'), new OwnProvider('other')],
    session: { secret: SESSION_SECRET, store: sessions },
    rateLimit: false,
    ...options
  })
}

async function register (app: FastifyInstance, user: Record<string, unknown> = ADA): Promise<string> {
  const response = await new Browser(app).post('/auth/local/register', user)
  if (response.statusCode !== 201) throw new Error(`registering answered ${response.body}`)
  return response.json().userId
}

/** The status and the code of an answer to a script. */
function outcome ({ statusCode, body }: LightMyRequestResponse): [status: number, code: unknown] {
  return [statusCode, JSON.parse(body).code]
}

/** Puts another hash where somebody's is. */
async function storeHash (store: AuthStore, email: string, hash: string): Promise<void> {
  const credential = await store.findCredential(email)
  if (credential === null) throw new Error(`${email} has no password`)
  await new Accounts(store).replacePasswordHash(credential.user.userId, credential.passwordHash, hash)
}

/** How forms and scripts send a login, and what they are answered when it fails. */
const WAYS: Record<string, [send: (browser: Browser, login: Record<string, string>) => Promise<LightMyRequestResponse>, answer: object]> = {
  'a script': [async (browser, login) => browser.post('/auth/local/login', login), { statusCode: 401, body: JSON.stringify(INVALID) }],
  'a script that sends a form': [
    async (browser, login) => browser.submit('/auth/local/login', login, { accept: 'application/json' }),
    { statusCode: 401, body: JSON.stringify(INVALID) }
  ],
  'a form': [
    async (browser, login) => browser.submit('/auth/local/login', login, { referer: PAGE }),
    { statusCode: 303, headers: { location: '/sign-in?lang=en&error=invalid#form' } }
  ],
  'a form that names a page for errors': [
    async (browser, login) => browser.submit('/auth/local/login', { ...login, error_next: '/oops', next: '/welcome' }),
    { statusCode: 303, headers: { location: '/oops?error=invalid' } }
  ],
  'a form of nowhere': [async (browser, login) => browser.submit('/auth/local/login', login), { statusCode: 401, body: JSON.stringify(INVALID) }]
}

const PASSWORDS_OF_NOBODY = ['wrong horse', '', 'short', 'a'.repeat(1025), 'a'.repeat(100_000), 'correct horse\0', 'correct\0horse']

/** An application, and the e-mails of people with an account and without, by what they are. */
async function startTown (
  t: Test,
  options: AuthPluginOptions = {},
  sessions?: SessionStores
): Promise<{ app: FastifyInstance, emails: Record<string, string> }> {
  const store = new MemoryAuthStore()
  const app = await start(t, { store, ...options }, sessions)
  await register(app)
  await signInAt(new Browser(app), 'mine', { subject: 'grace-1', email: 'grace@example.com' })
  await app.auth.deleteUser(await register(app, { ...ADA, email: 'gone@example.com' }))
  await register(app, { ...ADA, email: 'damaged@example.com' })
  await storeHash(store, 'damaged@example.com', '$2b$10$N9qo8uLOickgx2ZMRZoMye')
  return {
    app,
    emails: {
      unknown: 'nobody@example.com',
      known: ADA.email,
      'known, spelled otherwise': ' ADA@Example.com',
      'known to a provider only': 'grace@example.com',
      deleted: 'gone@example.com',
      'with a hash that cannot be read': 'damaged@example.com'
    }
  }
}

/** All that is told, but for the time of day. */
function told ({ statusCode, headers, rawPayload }: LightMyRequestResponse): unknown {
  return { statusCode, headers: Object.entries(headers).filter(([name]) => name !== 'date'), payload: rawPayload.toString('latin1') }
}

for (const [name, createSessions] of SOME_SESSION_STORES) {
  t.test(`the rules hold with ${name}`, async t => {
    t.test('attack 39: a failed login is answered alike, to the byte, whether or not the e-mail has an account', async t => {
      const { app, emails } = await startTown(t, {}, createSessions())

      for (const [way, [send, answer]] of Object.entries(WAYS)) {
        const browser = new Browser(app)
        const unknown = await send(browser, { email: 'nobody@example.com', password: 'wrong horse' })
        t.match(unknown, answer, way)
        for (const [index, [who, email]] of Object.entries(emails).entries()) {
          for (const password of some(PASSWORDS_OF_NOBODY, 3, index)) {
            t.strictSame(
              told(await send(browser, { email, password })),
              told(unknown),
            `${way}, ${who}, ${JSON.stringify(password.slice(0, 20))}`
            )
          }
        }
        t.equal(browser.cookies.size, 0)
      }
    })

    t.test('attack 39: a signed-in user stays signed in, and learns no more', async t => {
      const { app, emails } = await startTown(t, {}, createSessions())
      const member = new Browser(app)
      await member.post('/auth/local/login', ADA)
      const before = [(await member.get('/me')).json(), [...member.cookies]]
      const stranger = told(await new Browser(app).post('/auth/local/login', { email: 'nobody@example.com', password: 'wrong horse' }))

      for (const [who, email] of Object.entries(emails)) {
        t.strictSame(
          told(await member.post('/auth/local/login', { email, password: 'wrong horse' })),
          stranger,
          who
        )
      }
      t.strictSame([(await member.get('/me')).json(), [...member.cookies]], before)
    })

    t.test('attack 45: what a form asks for beside its fields is refused or ignored, and never becomes a claim', async t => {
      const database = new SqliteDatabase(':memory:')
      t.teardown(() => database.close())
      const writes = () => database.prepare('SELECT total_changes()').pluck().get()
      const store = new SqlAuthStore(database)
      const sessions = createSessions()
      const apps: Array<[app: FastifyInstance, wishes: Wishes]> = [
        [await start(t, { store }, sessions), DEFAULT_WISHES],
        [await start(t, { store, local: localProvider({ registration: { roles: ['member'] } }) }, sessions), { ...DEFAULT_WISHES, ...WISHES_OF_MEMBERS }]
      ]

      for (const [index, [app, wishes]] of apps.entries()) {
        for (const [number, [wish, expected]] of Object.entries(wishes).entries()) {
          const user = { email: `somebody-${index}-${number}@example.com`, password: ADA.password }
          const browser = new Browser(app)
          const before = writes()
          const response = await (wish.startsWith('{')
            ? browser.post('/auth/local/register', { ...user, ...JSON.parse(wish) })
            : browser.send({
              method: 'POST',
              url: '/auth/local/register',
              headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
              payload: `${new URLSearchParams(user)}&${wish}`
            }))

          const { principal } = (await browser.get('/me')).json()
          if (typeof expected === 'string') {
            t.strictSame(outcome(response), [expected === 'invalid_request' ? 400 : 403, expected], wish)
            t.strictSame(
              [principal, response.headers['set-cookie'], writes(), await app.auth.findUser({ email: user.email })],
              [null, undefined, before, null],
              `${wish}: nobody was made`
            )
          } else {
            t.equal(response.statusCode, 201, wish)
            t.strictSame(principal, { userId: principal.userId, provider: 'local', claims: { sub: principal.userId, email: user.email, ...expected } }, wish)
            const { createdAt, ...stored } = await app.auth.findUser({ email: user.email }) ?? {}
            t.type(createdAt, Date)
            t.strictSame(
              stored,
              { userId: principal.userId, email: user.email, emailVerified: false, name: null, generation: 0, claims: expected },
              `${wish}: the user`
            )
          }
        }
      }
    })

    t.test('attack 45: a login, a token and a callback give nothing that the request asks for', async t => {
      const app = await start(t, { local: localProvider({ registration: { roles: ['admin'], emailVerified: true } }) }, createSessions())
      const userId = await register(app)
      const wishes = {
        role: 'admin',
        email_verified: true,
        'claims.role': 'admin',
        user_id: 'x',
        sub: 'x',
        provider: 'mine',
        tier: 1,
        is_admin: true,
        name: 'Eve'
      }
      const asText = {
        role: 'admin',
        email_verified: 'on',
        'claims[role]': 'admin',
        'claims.role': 'admin',
        user_id: 'x',
        sub: 'x',
        provider: 'mine',
        tier: '1',
        is_admin: 'true',
        name: 'Eve'
      }
      const principal = { userId, provider: 'local', claims: { sub: userId, email: ADA.email } }
      const browser = new Browser(app)

      t.strictSame((await browser.post('/auth/local/login', { ...wishes, ...ADA })).json(), principal)
      t.equal((await browser.submit('/auth/local/login', { ...asText, ...ADA })).statusCode, 303)
      t.strictSame((await browser.get('/me')).json(), { principal })
      for (const response of [await browser.post('/auth/local/token', wishes), await browser.submit('/auth/local/token', asText)]) {
        const names = ['amr', 'auth_time', 'email', 'exp', 'iat', 'iss', 'jti', 'sub', 'svc_generation']
        t.strictSame(Object.keys(decodeJwt(response.json().token)).sort(), names)
      }
      const grace = new Browser(app)
      await grace.get(`${await leaveFor(grace, `/auth/mine/login?${new URLSearchParams(asText)}`, { subject: 'grace-1' })}&${new URLSearchParams(asText)}`)
      t.match((await grace.get('/me')).json(), { principal: { provider: 'mine' } })
      t.strictSame((await grace.get('/me')).json().principal.claims, { sub: 'grace-1' })
      t.match(await app.auth.findUser({ userId }), { claims: {}, name: null, emailVerified: false })
    })
  })
}

t.test('attack 39: a client that tries too often is told so alike, whether or not the e-mail has an account', async t => {
  const { app, emails } = await startTown(t, { rateLimit: { account: 2 } })
  const triesWith = async (email: string) => {
    const answers = []
    for (let index = 0; index < 4; index++) answers.push(await new Browser(app).post('/auth/local/login', { email, password: 'wrong horse' }))
    // The seconds of Retry-After pass meanwhile.
    return answers.map(({ statusCode, headers, body }) => ({ statusCode, headers: Object.keys(headers), body }))
  }

  const unknown = await triesWith('somebody@example.com')
  t.strictSame(unknown.map(({ statusCode }) => statusCode), [401, 401, 429, 429])
  for (const who of [
    'known', 'known to a provider only', 'deleted', 'with a hash that cannot be read'
  ]) t.strictSame(await triesWith(emails[who] ?? ''), unknown, who)
})

t.test('attack 40: a failed login computes one hash at the usual cost for every user, and none with a password that is far too long', async t => {
  const { app, emails } = await startTown(t)
  await new Browser(app).post('/auth/local/login', { email: 'first@example.com', password: 'wrong horse' })

  for (const [who, email] of Object.entries(emails)) {
    for (const password of PASSWORDS_OF_NOBODY) {
      verifications()
      hashings()
      await new Browser(app).post('/auth/local/login', { email, password })
      const expected = password.length > 4096 ? [] : [/^\$argon2id\$v=19\$m=8,t=1,p=1\$/]
      t.match(verifications().map(({ args: [{ hash }] }) => hash), expected, `${who}, ${JSON.stringify(password.slice(0, 20))}`)
      t.strictSame(hashings(), [])
    }
  }
})

const UNREADABLE_HASHES = [
  '', ' ', 'garbage', ADA.password, '$', 'null', '$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy',
  '$2b$..', '$scrypt$ln=4,r=8,p=1$c2FsdA$aGFzaA', '$argon2id$', '$argon2id$v=19$m=8,t=1,p=1',
  ...[
    'm=4294967295,t=1,p=1', 'm=99999999999999999999,t=1,p=1', 'm=8,t=4294967295,p=1', 'm=1048584,t=1,p=1',
    'm=4294967295,t=1,p=16777215', 'm=0,t=0,p=0', 'm=-8,t=1,p=1'
  ].map(cost => `$argon2id$v=19$${cost}$c29tZSBzYWx0IG9mIDE2Yg$K5mS0pLqjFHdLB4wXH2zqmG6Gg6o7pRrPDd2IG5rHHQ`)
]

t.test('attack 42: with a stored hash that cannot be read, or is too costly to, no user signs in and nothing fails', async t => {
  for (const [kind, create] of Object.entries(SOME_STORES)) {
    const store = await create(t)
    const app = await start(t, { store })
    await register(app)
    await new Browser(app).post('/auth/local/login', { email: 'first@example.com', password: 'wrong horse' })

    for (const hash of UNREADABLE_HASHES) {
      await storeHash(store, ADA.email, hash)
      verifications()
      const browser = new Browser(app)
      const response = await browser.post('/auth/local/login', ADA)
      t.strictSame([response.statusCode, response.json(), browser.cookies.size], [401, INVALID, 0], `${kind}: ${hash}`)
      t.match(verifications().map(({ args: [{ hash }] }) => hash), [/^\$argon2id\$v=19\$m=8,t=1,p=1\$/], 'what it asks for is not computed')
    }
  }
})

t.test('attack 42: passwords of 8 to 1024 bytes are taken, shorter and longer ones are weak, a megabyte too', async t => {
  const store = new MemoryAuthStore()
  const app = await start(t, { store, local: localProvider({ password: { check: false } }) })
  const taken = ['a'.repeat(8), 'é'.repeat(4), '😀😀', 'a'.repeat(1024), '😀'.repeat(256), '        ', '\0'.repeat(8)]
  const weak = [
    '', 'a'.repeat(7), 'é'.repeat(3), 'ａ'.repeat(7), 'a'.repeat(1025), '😀'.repeat(257), '\ufdfa'.repeat(100),
    'a'.repeat(1_000_000), 'half \ud800 a pair', '\udc00'.repeat(8)
  ]

  for (const [index, password] of taken.entries()) {
    const user = { email: `taken-${index}@example.com`, password }
    await register(app, user)
    const browser = new Browser(app)
    t.equal((await browser.post('/auth/local/login', user)).statusCode, 200, JSON.stringify(password.slice(0, 20)))
    t.equal((await browser.submit('/auth/local/login', user)).headers.location, '/', 'by form')
  }
  for (const password of weak) {
    const browser = new Browser(app)
    t.strictSame(
      outcome(await browser.post('/auth/local/register', { email: 'weak@example.com', password })),
      [400, 'weak_password'],
      JSON.stringify(password.slice(0, 20))
    )
    t.strictSame(outcome(await browser.post('/auth/local/login', { email: 'taken-0@example.com', password })), [401, 'invalid'])
    if (password.isWellFormed()) {
      t.equal(
        (await browser.submit(
          '/auth/local/register',
          { email: 'weak@example.com', password },
          { referer: PAGE }
        )).headers.location,
        '/sign-in?lang=en&error=weak_password#form',
        'by form'
      )
    }
    t.equal(browser.cookies.size, 0)
  }
  t.equal(await store.findUser({ email: 'weak@example.com' }), null)
})

t.test('attack 42: passwords that another keyboard composed sign in as one', async t => {
  const app = await start(t, { local: localProvider({ password: { check: false } }) })
  const twins = [
    ['\u00c5ngström', '\u212bngström', 'A\u030angstro\u0308m'],
    ['password', 'ｐａｓｓｗｏｒｄ'],
    ['final office', '\ufb01nal o\ufb03ce'],
    ['\uac01\uac01\uac01', '\u1100\u1161\u11a8\u1100\u1161\u11a8\u1100\u1161\u11a8'],
    ['ten chars 1²', 'ten chars 12']
  ]

  for (const [number, spellings] of twins.entries()) {
    for (const [index, chosen] of spellings.entries()) {
      const email = `twin-${number}-${index}@example.com`
      await register(app, { email, password: chosen })
      for (const typed of spellings) {
        t.equal((await new Browser(app).post('/auth/local/login', { email, password: typed })).statusCode, 200)
        t.equal((await new Browser(app).submit('/auth/local/login', { email, password: typed })).statusCode, 303, 'by form')
      }
    }
  }
})

t.test('attack 42: nothing of a password is cut off, trimmed or folded', async t => {
  const app = await start(t, { local: localProvider({ password: { check: false } }) })
  const different = [
    'password', 'password\0', 'password\0tail', 'password\0tale', '\0password', ' password', 'password ', 'password\n',
    'Password', 'passwörd', 'a'.repeat(72), 'a'.repeat(73), 'a'.repeat(1023), 'a'.repeat(1024)
  ]

  for (const [index, chosen] of different.entries()) {
    const email = `somebody-${index}@example.com`
    await register(app, { email, password: chosen })
    for (const typed of [...different, 'password\ud800']) {
      t.equal(
        (await new Browser(app).post('/auth/local/login', { email, password: typed })).statusCode,
        typed === chosen ? 200 : 401,
        JSON.stringify([chosen, typed].map(text => text.slice(0, 20)))
      )
    }
  }
})

t.test('attack 42: logins at once are all answered correctly, and other requests before the last of them', async t => {
  // Passwords take their usual time here.
  const app = await start(t, { local: localProvider({ argon2: {} }) })
  await register(app)
  const order: string[] = []
  const size = isThorough ? 64 : 16
  const logins = Array.from({ length: size }, async (_, index) => {
    const { statusCode } = await new Browser(app).post('/auth/local/login', { ...ADA, ...(index % 2 === 0 && { password: 'wrong horse' }) })
    order.push('a login')
    return statusCode
  })
  const other = app.inject('/me').then(({ statusCode }) => {
    order.push('/me')
    return statusCode
  })

  t.equal(await other, 200)
  t.strictSame(await Promise.all(logins), Array.from({ length: size }, (_, index) => index % 2 === 0 ? 401 : 200))
  t.not(order.at(-1), '/me')
})

t.test('attack 42: when too many logins arrive at once, those above the bound are busy, and every waiting one is answered', async t => {
  const app = await startWarm(t)
  const tooMany = CAPACITY + 60
  const allAreThere = deferred()
  let there = 0
  before = async () => {
    if (++there === tooMany) allAreThere.resolve()
    await allAreThere.promise
  }

  const answers = await Promise.all(Array.from(
    { length: tooMany },
    async (_, index) => new Browser(app).post(
      '/auth/local/login',
      index % 2 === 0 ? ADA : { ...ADA, email: `nobody-${index}@example.com` }
    )
  ))

  t.ok(answers.every(({ statusCode }, index) => [503, index % 2 === 0 ? 200 : 401].includes(statusCode)))
  const turnedAway = answers.filter(({ statusCode }) => statusCode === 503)
  t.equal(turnedAway.length, 60)
  for (const response of turnedAway) {
    t.strictSame([outcome(response), response.headers['set-cookie']], [[503, 'busy'], undefined])
    t.equal(response.headers['retry-after'], '3')
  }
  t.equal((await new Browser(app).post('/auth/local/login', ADA)).statusCode, 200, 'and then there is room again')
})

t.test('attack 42: while too many wait, registrations and forms are turned away as busy, and other routes answer', async t => {
  const app = await startWarm(t)
  const crowd: Array<Promise<unknown>> = []
  let isGone = false
  before = () => {
    // Some have got their turn since the last time.
    for (let index = 0; index < CAPACITY; index++) {
      crowd.push(hash(
        { password: 'of somebody else', cost: COST },
        { address: '127.0.0.1' }
      ).catch(() => {}))
    }
  }

  t.strictSame(outcome(await new Browser(app).post('/auth/local/register', { ...ADA, email: 'bob@example.com' })), [503, 'busy'])
  const page = await new Browser(app).submit('/auth/local/login', ADA, { referer: PAGE })
  t.strictSame([page.statusCode, page.headers.location], [303, '/sign-in?lang=en&error=busy#form'])
  // A refused form waits a second, in which the crowd gets shorter.
  await before()
  const everybodyElse = Promise.all(crowd).then(() => { isGone = true })
  t.equal((await app.inject('/me')).statusCode, 200)
  t.equal((await new Browser(app).get('/auth/mine/login')).statusCode, 302)
  t.equal(await app.auth.findUser({ email: 'bob@example.com' }), null)
  t.notOk(isGone, 'and they wait all the time')
  await everybodyElse
})

/** An application where Ada has an account, and the hash is made with which those who have none are compared. */
async function startWarm (t: Test): Promise<FastifyInstance> {
  const app = await start(t)
  t.teardown(() => { before = () => {} })
  await register(app)
  await new Browser(app).post('/auth/local/login', { email: 'first@example.com', password: 'wrong horse' })
  return app
}

const NO_ADDRESSES = [
  '', 'ada', 'ada.example.com', '@', 'ada@', '@example.com', 'ada@@example.com', 'ada@example.com@evil.test', 'a@x,b@y',
  'a@x;b@y', 'ada@example.com,eve@evil.test', 'a＠x', 'a\ufe6bx', 'ada＠example.com', 'ada＠evil.test@example.com',
  '"a@evil x"@y', '"ada"@example.com', '<b>@x', '<script>@example.com', 'Ada <ada@example.com>',
  'ada@example.com (Ada)', 'mailto:ada@example.com', 'a@x\r\nBcc:b', 'a@x\nBcc: b@y', 'ada@example.com\r\nx: y',
  'a b@example.com', 'a\u00a0b@example.com',
  'ada@example.com.', 'ada@.example.com', 'ada@example..com', 'ada@example.com/evil', 'ada@example.com#evil',
  'ada@example.com?evil', 'ada@example.com:25', 'ada@[127.0.0.1]',
  'ada\u200b@example.com', 'ada@example\u200b.com', 'a\u200dda@example.com',
  'a\u00adda@example.com', 'ada\u0000@example.com', '\u0000ada@example.com', 'ada@example.com\u0000',
  'ada\ud800@example.com',
  'ﬁ@example.com', '\u212aay@example.com', 'a%@example.com', '%@example.com', 'ａda@example.com', 'ada@ｅxample.com',
  'ada@example.com'.padStart(255, 'a'), 'a'.repeat(60_000), `${'a'.repeat(60_000)}@example.com`
]

t.test('attack 44: an invalid address is refused at registration and at login, and nothing is written', async t => {
  const database = new SqliteDatabase(':memory:')
  t.teardown(() => database.close())
  const writes = () => database.prepare('SELECT total_changes()').pluck().get()
  const app = await start(t, { store: new SqlAuthStore(database) })
  await register(app)
  const before = writes()

  for (const email of NO_ADDRESSES) {
    const what = JSON.stringify(email.slice(0, 40))
    const browser = new Browser(app)
    t.strictSame(outcome(await browser.post('/auth/local/register', { ...ADA, email })), [400, 'invalid_email'], what)
    if (email.isWellFormed()) {
      t.equal(
        (await browser.submit('/auth/local/register', { ...ADA, email }, { referer: PAGE })).headers.location,
        '/sign-in?lang=en&error=invalid_email#form',
      `${what} by form`
      )
    }
    t.strictSame(outcome(await browser.post('/auth/local/login', { ...ADA, email })), [400, 'invalid_email'], `${what} at login`)
    t.equal(browser.cookies.size, 0)
  }
  t.equal(writes(), before)
})

const SPELLINGS = [
  ['ada@example.com', 'Ada@Example.COM', ' ada@example.com ', '\tada@example.com\r\n', '\u00a0ada@example.com'],
  ['jos\u00e9@example.com', 'jose\u0301@example.com', 'JOSE\u0301@EXAMPLE.COM'],
  ['ada@bücher.example', 'ada@xn--bcher-kva.example', 'ADA@BÜCHER.EXAMPLE', 'ada@bu\u0308cher.example']
]

/** Addresses that look or sound alike, and are different mailboxes. */
const DIFFERENT = [
  'i@example.com', 'İ@example.com', 'ı@example.com', 'ß@example.com', 'ss@example.com', 'straße@example.com',
  'strasse@example.com', 'а@example.com', 'a@example.com', 'a@straße.example', 'a@strasse.example', 'a@bucher.example',
  'a@bücher.example',
  'e@example.com', 'é@example.com', 'a.b@example.com', 'ab@example.com', 'a+b@example.com', 'a_@example.com',
  'ax@example.com', '_@example.com', "'@example.com", 'x'.repeat(242) + '@example.com', 'x'.repeat(241) + '@example.com'
]

for (const [kind, create] of Object.entries(SOME_STORES)) {
  t.test(`attack 44: with ${kind}, one address in two spellings is one user`, async t => {
    const app = await start(t, { store: await create(t) })

    for (const [number, spellings] of SPELLINGS.entries()) {
      const userId = await register(app, { ...ADA, email: spellings[0] })
      for (const email of spellings) {
        t.strictSame(outcome(await new Browser(app).post('/auth/local/register', { password: 'another horse', email })), [409, 'exists'], JSON.stringify(email))
        t.match((await new Browser(app).post('/auth/local/login', { ...ADA, email })).json(), { userId })
        t.match(await app.auth.findUser({ email }), { userId })
      }
      // And at providers that vouch for another address, spelled in these ways.
      const ids = new Set<string>()
      for (const [index, email] of spellings.map(email => email.trim().replace(/^./u, '$&x')).entries()) {
        const browser = new Browser(app)
        t.equal((await signInAt(browser, index === 0 ? 'mine' : 'other', { subject: `subject-${number}`, email })).headers.location, '/', JSON.stringify(email))
        ids.add((await browser.get('/me')).json().principal.userId)
      }
      t.equal(ids.size, 1, `${spellings[0]} at two providers`)
    }
  })

  t.test(`attack 44: with ${kind}, what copying adds around an address makes no other user`, async t => {
    const app = await start(t, { store: await create(t) })
    const userId = await register(app)
    for (const email of ['ada@example.com\u200b', '\u202eada@example.com', '\u2066 Ada@example.com\ufeff']) {
      t.strictSame(outcome(await new Browser(app).post('/auth/local/register', { email, password: 'another one' })), [409, 'exists'], JSON.stringify(email))
      t.match((await new Browser(app).post('/auth/local/login', { ...ADA, email })).json(), { userId })
    }
  })

  t.test(`attack 44: with ${kind}, two addresses that look alike are two users`, async t => {
    const app = await start(t, { store: await create(t) })
    const ids = []
    for (const [index, email] of DIFFERENT.entries()) ids.push(await register(app, { email, password: `the password of ${index}` }))
    t.equal(new Set(ids).size, DIFFERENT.length)

    for (const [index, email] of DIFFERENT.entries()) {
      t.match((await new Browser(app).post('/auth/local/login', { email, password: `the password of ${index}` })).json(), { userId: ids[index] }, email)
      t.match(await app.auth.findUser({ email }), { userId: ids[index] })
    }
    for (const [index, email] of DIFFERENT.map(email => `v${email}`).entries()) {
      const browser = new Browser(app)
      t.equal((await signInAt(browser, index % 2 === 0 ? 'mine' : 'other', { subject: `subject-${index}`, email })).headers.location, '/', email)
      t.strictSame((await app.auth.links((await browser.get('/me')).json().principal.userId)).length, 1, `${email} at a provider joined nobody`)
    }
  })

  t.test(`attack 44: with ${kind}, an odd address that a provider vouches for is the e-mail of no user`, async t => {
    const app = await start(t, { store: await create(t) })
    await register(app)
    // Longer ones make a claim, and a callback, that is not looked at.
    for (const [index, email] of NO_ADDRESSES.filter(({ length }) => length < 1000).entries()) {
      const what = JSON.stringify(email.slice(0, 40))
      const browser = new Browser(app)
      t.equal((await signInAt(browser, 'mine', { subject: `subject-${index}`, email })).headers.location, '/', what)
      const { userId = '' } = (await browser.get('/me')).json().principal ?? {}
      t.match(await app.auth.findUser({ userId }), { email: null, emailVerified: false }, what)
      t.equal((await app.auth.links(userId)).length, 1)
    }
  })
}

/** What is sent beside e-mail and password, as a form or as JSON, and what comes of it: a refusal, or the authorization claims. */
type Wishes = Record<string, string | Record<string, string>>

const DEFAULT_WISHES: Wishes = {
  'role=admin': 'claim_not_allowed',
  'role=member': 'claim_not_allowed',
  'role=member&role=admin': 'invalid_request',
  '{"role":"admin"}': 'claim_not_allowed',
  '{"role":["admin"]}': 'invalid_request',
  '{"role":["member"]}': 'invalid_request',
  '{"role":{"0":"admin"}}': 'invalid_request',
  'email_verified=on': 'claim_not_allowed',
  'email_verified=true': 'claim_not_allowed',
  'email_verified=1': 'claim_not_allowed',
  'email_verified=on&email_verified=off': 'invalid_request',
  '{"email_verified":true}': 'claim_not_allowed',
  '{"email_verified":"true"}': 'claim_not_allowed',
  '{"email_verified":1}': 'invalid_request',
  '{"email_verified":[true]}': 'invalid_request',
  'role[]=admin': {},
  'role[0]=admin': {},
  'Role=admin&ROLE=admin': {},
  'roles=admin&roles[]=admin': {},
  'claims[role]=admin': {},
  'claims.role=admin': {},
  'emailVerified=true&verified=true': {},
  'extras={"role":"admin"}': {},
  'user_id=x&userId=x&sub=x&id=x': {},
  'provider=mine&subject=x&link=true': {},
  'tier=gold&is_admin=true&admin=1&isNew=true&passwordHash=x': {},
  '__proto__[role]=admin&constructor[prototype][role]=admin': {},
  '{"claims":{"role":"admin"},"roles":["admin"],"extras":{"role":"admin"}}': 'invalid_request',
  '{"user_id":"x","userId":"x","sub":"x","provider":"mine","emailVerified":true,"tier":1,"is_admin":true,"isNew":true,"passwordHash":"x"}': {},
  '{"link":{"provider":"mine","subject":"x"}}': 'invalid_request'
}

const WISHES_OF_MEMBERS: Wishes = {
  'role=member': { role: 'member' },
  '{"role":"member"}': { role: 'member' },
  'role=member&claims[role]=admin&roles=admin&tier=gold': { role: 'member' },
  '{"role":"member","claims.role":"admin","tier":"gold","sub":"x"}': { role: 'member' },
  'role=member&email_verified=on': 'claim_not_allowed',
  'role=Member': 'claim_not_allowed',
  'role=+member': 'claim_not_allowed',
  'role=member%00': 'claim_not_allowed',
  'role=member,admin': 'claim_not_allowed',
  'role=constructor': 'claim_not_allowed',
  'role=__proto__': 'claim_not_allowed',
  'role=length': 'claim_not_allowed',
  'role=0': 'claim_not_allowed'
}
