import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import { hash } from '@node-rs/argon2'
import SqliteDatabase from 'better-sqlite3'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { Accounts } from '../../lib/accounts/accounts.js'
import authPlugin, { type AuthPluginOptions, AuthError, type AuthStore, MemoryAuthStore, type SignIn, SignInRefused, SqlAuthStore } from '../../lib/index.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { startFakeOpenIdProvider } from '../fakes/openid-provider.js'
import { SESSION_SECRET, localProvider, startApp, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { deferred } from '../helpers/deferred.js'
import { DATA_SECRET, enrolAt, nextCode } from '../helpers/factor-app.js'
import { OwnProvider, leaveFor, linkAt, signInAt } from '../helpers/own-provider.js'
import { SHARED_SESSIONS } from '../helpers/session-stores.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const PAGE = { referer: 'https://app.example/sign-in' }

/** An application with this hook, and what the hook was told. */
async function withHook (t: Test, onSignIn: (signIn: SignIn) => void | Promise<void>, options: AuthPluginOptions = {}) {
  const told: SignIn[] = []
  const store = new MemoryAuthStore()
  const app = await startApp(t, {
    baseUrl: 'https://app.example',
    providers: [new OwnProvider('a'), new OwnProvider('b')],
    local: localProvider(),
    store,
    onSignIn: signIn => {
      told.push(signIn)
      return onSignIn(signIn)
    },
    ...options
  })
  return { app, store, told, browser: new Browser(app) }
}

const refuse = () => { throw new SignInRefused('not_invited') }

t.test('the hook is told of every sign-in: who, by which provider, whether the user is new, and the tokens', async t => {
  const { told, browser, app } = await withHook(t, () => {})

  await signInAt(browser, 'a', { subject: '1', email: 'grace@example.com' })
  await signInAt(browser, 'a', { subject: '1', email: 'grace@example.com' })
  await signInAt(browser, 'b', { subject: '2', email: 'grace@example.com' })
  await browser.post('/auth/local/register', ADA)
  await browser.post('/auth/local/login', ADA)

  const grace = await app.auth.findUser({ email: 'grace@example.com' })
  const ada = await app.auth.findUser({ email: 'ada@example.com' })
  const tokens = { accessToken: 'the-access-token', refreshToken: 'the-refresh-token', idToken: 'the.id.token', expiresIn: 60, scope: 'openid' }
  const atA = { provider: 'a', subject: '1', claims: { sub: '1', email: 'grace@example.com' }, emailVerified: true }
  const atLocal = { provider: 'local', subject: ADA.email, claims: { sub: ada?.userId, email: ADA.email }, emailVerified: false }
  t.strictSame(told.map(({ request: _, ...rest }) => rest), [
    { principal: { userId: grace?.userId, provider: 'a', claims: atA.claims }, identity: atA, tokens, created: true },
    { principal: { userId: grace?.userId, provider: 'a', claims: atA.claims }, identity: atA, tokens, created: false },
    {
      principal: { userId: grace?.userId, provider: 'b', claims: { ...atA.claims, sub: '2' } },
      identity: { ...atA, provider: 'b', subject: '2', claims: { ...atA.claims, sub: '2' } },
      tokens,
      created: false
    },
    { principal: { userId: ada?.userId, provider: 'local', claims: atLocal.claims }, identity: atLocal, tokens: null, created: true },
    { principal: { userId: ada?.userId, provider: 'local', claims: atLocal.claims }, identity: atLocal, tokens: null, created: false }
  ])
  t.match(told[0]?.request.url, /^\/auth\/a\/callback/)
})

t.test('what the hook grants is in the session at once', async t => {
  const { app, browser } = await withHook(t, async ({ principal, created }) => {
    if (created) await app.auth.grant(principal.userId, { role: 'member' })
  })

  await signInAt(browser, 'a', { subject: '1' })

  t.match((await browser.get('/me')).json().principal.claims, { sub: '1', role: 'member' })
})

t.test('a refusal ends with its code, on the page and as JSON, for every kind of sign-in', async t => {
  const { browser } = await withHook(t, refuse)

  t.equal((await signInAt(browser, 'a', { subject: '1' })).headers.location, '/account?error=not_invited')
  t.equal((await browser.submit('/auth/local/register', ADA, PAGE)).headers.location, '/sign-in?error=not_invited')
  const response = await browser.post('/auth/local/register', ADA)
  t.equal(response.statusCode, 403)
  t.strictSame(response.json(), { statusCode: 403, code: 'not_invited', error: 'Forbidden', message: 'This application refused the sign-in.' })
  t.equal((await browser.get('/me')).json().principal, null)
})

t.test('attack 33: a refused sign-in leaves the session that was there, and no user or password', async t => {
  let admits = true
  const { app, store, told, browser } = await withHook(t, () => { if (!admits) refuse() })
  await signInAt(browser, 'a', { subject: '1', email: 'grace@example.com' })
  const before = (await browser.get('/me')).json()
  admits = false

  await signInAt(browser, 'a', { subject: '2', email: 'eve@example.com' })
  await signInAt(browser, 'b', { subject: '3', email: 'grace@example.com' })
  await browser.post('/auth/local/register', ADA)

  t.strictSame((await browser.get('/me')).json(), before)
  t.equal(await store.findUser({ email: 'eve@example.com' }), null)
  t.equal(await store.findCredential(ADA.email), null)
  t.strictSame((await app.auth.links(before.principal.userId)).map(({ provider }) => provider), ['a', 'b'], 'an identity that joined a user stays his')

  admits = true
  await signInAt(browser, 'a', { subject: '2', email: 'eve@example.com' })
  t.equal(told.at(-1)?.created, true, 'when he comes again he is new again')
})

t.test('what the hook wrote into the session stays with the visitor when it refuses, and is dropped when it admits', async t => {
  let admits = false
  const onSignIn = ({ request }: SignIn): void => {
    Object.assign(request.session, { note: 'of the hook' })
    if (!admits) refuse()
  }
  const app = await startApp(t, { baseUrl: 'http://localhost', providers: [new OwnProvider('a')], local: localProvider(), onSignIn }, {},
    app => { app.get('/note', async ({ session }) => ({ note: Object(session).note ?? null })) })

  const signIns: Array<(browser: Browser) => Promise<unknown>> = [
    browser => browser.post('/auth/local/register', ADA), // a visitor without a session
    browser => signInAt(browser, 'a', { subject: '1' })
  ]
  for (const signIn of signIns) {
    const browser = new Browser(app)
    admits = false
    await signIn(browser)
    const afterRefusal = (await browser.get('/note')).json()
    admits = true
    await signIn(browser)

    t.strictSame(afterRefusal, { note: 'of the hook' })
    t.strictSame((await browser.get('/note')).json(), { note: null })
    t.ok((await browser.get('/me')).json().principal)
  }
})

for (const [kind, keep] of SHARED_SESSIONS) {
  t.test(`the hook sees what the application wrote for the visitor, also after a second factor, with ${kind}`, async t => {
    const { store, sessions } = await keep(t)
    const seen: unknown[] = []
    let isRequired = false
    const app = await startApp(t, {
      baseUrl: 'http://app.example',
      providers: [new OwnProvider('a')],
      local: localProvider(),
      dataSecret: DATA_SECRET,
      secondFactor: new SecondFactor({ issuer: 'Shop', required: () => isRequired }),
      store,
      rateLimit: false,
      session: { secret: SESSION_SECRET, store: sessions },
      onSignIn: ({ request }) => { seen.push(Object(request.session).note ?? null) }
    }, {}, app => {
      app.get('/note', async ({ session }) => ({ note: Object(session).note ?? null }))
      app.post('/note', async ({ session }) => Object.assign(session, { note: 'an invitation' }).note)
    })
    const visitor = async (): Promise<Browser> => {
      const browser = new Browser(app)
      await browser.post('/note')
      seen.length = 0
      return browser
    }
    const owner = await visitor()
    await owner.post('/auth/local/register', ADA)
    t.strictSame(seen, ['an invitation'])
    const { secret, userId } = await enrolAt(t, owner)
    await linkAt(owner, 'a', { subject: 'ada-a' })
    const ways: Record<string, (browser: Browser) => Promise<unknown>> = {
      'by password': async browser => browser.post('/auth/local/login', ADA),
      'by a provider': async browser => signInAt(browser, 'a', { subject: 'ada-a' }),
      'by password, asked for again': async browser => {
        await browser.post('/auth/local/login', ADA)
        await browser.post('/auth/local/login', ADA)
      }
    }

    for (const [how, signIn] of Object.entries(ways)) {
      const browser = await visitor()
      await signIn(browser)
      t.strictSame((await browser.get('/note')).json(), { note: 'an invitation' }, `${how}: while the sign-in waits`)
      await browser.post('/auth/local/second-factor', { code: nextCode(t, secret) })

      t.strictSame(seen, ['an invitation'], how)
      t.equal(await userIdIn(browser), userId)
      t.strictSame((await browser.get('/note')).json(), { note: null }, how)
    }

    isRequired = true
    const enrolling = await visitor()
    await enrolling.post('/auth/local/register', { email: 'grace@example.com', password: ADA.password })
    await enrolAt(t, enrolling)
    t.strictSame(seen, ['an invitation'])
    t.strictSame((await enrolling.get('/note')).json(), { note: null })

    const other = await visitor()
    await owner.post('/note')
    await owner.post('/auth/local/login', ADA)
    await owner.post('/auth/local/second-factor', { code: nextCode(t, secret) })
    t.strictSame(seen, [null], 'what was written for a user goes when their session ends')
    t.strictSame((await other.get('/note')).json(), { note: 'an invitation' })
  })
}

t.test('attack 33: while the hook thinks, no other request gets the new user in', async t => {
  const asked = deferred()
  const decided = deferred()
  const { app, told, browser } = await withHook(t, async ({ created }) => {
    if (!created) return
    asked.resolve()
    await decided.promise
    refuse()
  })
  const registering = browser.post('/auth/local/register', ADA)
  await asked.promise

  const other = new Browser(app)
  const loggingIn = other.post('/auth/local/login', ADA)
  while (told.length < 2) await new Promise(resolve => setImmediate(resolve))
  decided.resolve()

  t.strictSame([(await registering).statusCode, (await loggingIn).json().code], [403, 'not_invited'])
  t.strictSame(told.map(({ created }) => created), [true, true], 'he is new until he was let in')
  t.equal((await other.get('/me')).json().principal, null)
  t.equal(await app.auth.findUser({ email: ADA.email }), null)
})

t.test('a user who was admitted in one tab is not deleted because another one failed', async t => {
  const decided = deferred()
  let sessions = 0
  const { app, told, browser } = await withHook(t, async () => {
    if (++sessions > 1) return
    await decided.promise
    throw new Error('the CRM is down')
  })
  const first = signInAt(browser, 'a', { subject: '1' })
  while (told.length < 1) await new Promise(resolve => setImmediate(resolve))
  const other = new Browser(app)
  t.equal((await signInAt(other, 'a', { subject: '1' })).headers.location, '/')
  await app.auth.grant((await other.get('/me')).json().principal.userId, { role: 'admin' })
  decided.resolve()

  t.equal((await first).headers.location, '/account?error=internal_error')
  await signInAt(other, 'a', { subject: '1' })
  t.match((await other.get('/me')).json().principal.claims, { role: 'admin' })
  t.strictSame(told.map(({ created }) => created), [true, true, false])
})

t.test('a user whose first sign-in never ended, as in a crash, is new at the next one', async t => {
  let hangs = true
  const { app, told, browser } = await withHook(t, async () => { if (hangs) await new Promise(() => {}) })
  const callback = await leaveFor(browser, '/auth/a/login', { subject: '1' })
  browser.get(callback)
  while (told.length < 1) await new Promise(resolve => setImmediate(resolve))
  hangs = false

  await signInAt(browser, 'a', { subject: '1' })
  await signInAt(browser, 'a', { subject: '1' })

  t.strictSame(told.map(({ created }) => created), [true, true, false])
  t.notOk('isNew' in (await app.auth.findUser({ provider: 'a', subject: '1' }) ?? {}))
})

t.test('a refused sign-in leaves an existing user unchanged', async t => {
  let admits = true
  const { app, browser } = await withHook(t, () => { if (!admits) refuse() })
  await browser.post('/auth/local/register', ADA)
  admits = false

  t.equal((await browser.post('/auth/local/login', ADA)).statusCode, 403)

  t.ok(await app.auth.findUser({ email: ADA.email }))
})

t.test('a hook that throws something else is a failure of the application: no user is signed in, and the cause is logged', async t => {
  const lines: string[] = []
  const app = await startApp(t, {
    local: localProvider(),
    onSignIn: () => { throw new Error('the CRM is down') }
  }, { logger: { level: 'info', stream: { write: (line: string) => { lines.push(line) } } } })
  const browser = new Browser(app)

  const response = await browser.post('/auth/local/register', ADA)

  t.equal(response.statusCode, 500)
  t.equal(response.json().code, 'internal_error')
  t.notMatch(response.body, /CRM/)
  t.match(lines.filter(line => JSON.parse(line).level === 50).join(), /the CRM is down/)
  t.equal((await browser.get('/me')).json().principal, null)
})

t.test('what an error of the hook says of itself is not taken for the answer to the request', async t => {
  const { browser } = await withHook(t, () => { throw Object.assign(new Error('no such record'), { statusCode: 404, validation: [] }) })

  const response = await browser.post('/auth/local/register', ADA)

  t.equal(response.statusCode, 500)
  t.strictSame(response.json(), {
    statusCode: 500,
    code: 'internal_error',
    error: 'Internal Server Error',
    message: 'The request could not be completed; try again later.'
  })
})

t.test('an AuthError of the hook is its refusal and answers as itself, and no user is left behind', async t => {
  const { app, store, browser } = await withHook(t, async ({ identity, principal }) => {
    if (identity.provider === 'a') throw new AuthError('forbidden', { message: 'The account is closed.' })
    await app.auth.grant(principal.userId, JSON.parse('{"email":"x"}'))
  })

  t.equal((await signInAt(browser, 'a', { subject: '1', email: 'grace@example.com' })).headers.location, '/account?error=forbidden')
  const response = await browser.post('/auth/local/register', ADA)
  t.match(response.json(), { statusCode: 400, code: 'invalid_claims', message: /^"email" is an identity claim/ })
  t.equal((await browser.get('/me')).json().principal, null)
  t.equal(await store.findUser({ email: 'grace@example.com' }), null)
  t.equal(await store.findUser({ email: ADA.email }), null)
})

t.test('a user that no hook has admitted is admitted by an application without one, and no later hook deletes them', async t => {
  const store = new MemoryAuthStore()
  const userId = randomUUID()
  await new Accounts(store).createUser({
    userId,
    email: null,
    emailVerified: false,
    name: null,
    claims: {},
    isNew: true,
    link: { provider: 'a', subject: '1', claims: { sub: '1' } }
  })
  const app = await startApp(t, { baseUrl: 'https://app.example', providers: [new OwnProvider('a')], store })
  await signInAt(new Browser(app), 'a', { subject: '1' })

  const { browser } = await withHook(t, refuse, { store })
  await signInAt(browser, 'a', { subject: '1' })

  t.match(await store.findUser({ userId }), { userId })
})

t.test('a store that does not answer the hook is unavailable, with what it says', async t => {
  const { browser } = await withHook(t, () => { throw new AuthError('busy', { retryAfter: 7 }) })

  const response = await browser.post('/auth/local/register', ADA)

  t.equal(response.statusCode, 503)
  t.equal(response.headers['retry-after'], '7')
})

t.test('a hook that deletes the user signs no user in, whether it refuses or not', async t => {
  for (const refuses of [false, true]) {
    const { app, browser } = await withHook(t, async ({ principal }) => {
      await app.auth.deleteUser(principal.userId)
      if (refuses) refuse()
    })

    t.equal((await browser.post('/auth/local/register', ADA)).json().code, refuses ? 'not_invited' : 'unauthenticated')
    t.equal((await browser.get('/me')).json().principal, null)
  }
})

t.test('a refused user who cannot be deleted stays new, and the log says so', async t => {
  const database = new SqliteDatabase(':memory:')
  t.teardown(() => { database.close() })
  const lines: string[] = []
  const told: SignIn[] = []
  const app = await startApp(t, {
    local: localProvider(),
    store: new SqlAuthStore(database),
    onSignIn: async signIn => {
      told.push(signIn)
      database.pragma('foreign_keys = on')
      database.exec('create table if not exists profiles (user_id text references svc_auth_users (user_id))')
      database.prepare('insert into profiles values (?)').run(signIn.principal.userId)
      refuse()
    }
  }, { logger: { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } } })
  const browser = new Browser(app)

  t.equal((await browser.post('/auth/local/register', ADA)).json().code, 'not_invited')
  t.equal((await browser.post('/auth/local/login', ADA)).json().code, 'not_invited')

  t.strictSame(told.map(({ created }) => created), [true, true])
  t.match(lines.map(line => JSON.parse(line)), [{ level: 40, err: { code: 'user_in_use' }, userId: told[0]?.principal.userId }, { level: 40 }])
})

t.test('linking an identity is not a sign-in', async t => {
  const { told, browser } = await withHook(t, () => {})
  await browser.post('/auth/local/register', ADA)

  await linkAt(browser, 'a', { subject: '1' })

  t.equal(told.length, 1)
})

t.test('attack 60: provider tokens reach the hook and are stored nowhere', async t => {
  const directory = t.testdir()
  const idp = await startFakeOpenIdProvider(t)
  const sessions = new SlowSessionStore()
  const written: string[] = []
  const set = sessions.set.bind(sessions)
  sessions.set = (id, session, callback) => {
    written.push(id + JSON.stringify(session))
    set(id, session, callback)
  }
  const lines: string[] = []
  const told: SignIn[] = []
  const store: AuthStore = new SqlAuthStore(`${directory}/users.db`)
  const app = await startApp(t, {
    baseUrl: 'https://app.example',
    providers: [idp.provider()],
    store,
    session: { secret: SESSION_SECRET, store: sessions },
    onSignIn: signIn => { told.push(signIn) }
  }, { logger: { level: 'trace', stream: { write: (line: string) => { lines.push(line) } } } })
  const browser = new Browser(app)

  const login = await browser.get('/auth/fake/login')
  const landing = await browser.get(idp.consent(login.headers.location ?? ''))
  t.equal(landing.headers.location, '/')
  await store.close()

  const { accessToken = '', refreshToken = '', idToken = '' } = told[0]?.tokens ?? {}
  const database = await Promise.all(['users.db', 'users.db-wal', 'users.db-shm'].map(async name => readFile(`${directory}/${name}`, 'latin1').catch(() => '')))
  const kept = [...database, ...written, ...sessions.entries.values(), ...lines, JSON.stringify(landing.headers), landing.body].join('\n')
  t.match(kept, /ada@example\.com/, 'this is where people are kept')
  for (const token of [accessToken, refreshToken, idToken, ...idToken.split('.').slice(1)]) {
    t.ok(token.length > 10)
    t.notOk(kept.includes(token))
  }
})

t.test('app.auth.signIn signs a user in by other means', async t => {
  const inApp = async (t: Test, onSignIn?: (signIn: SignIn) => void) => {
    const app = await startApp(t, {
      baseUrl: 'https://app.example',
      providers: [new OwnProvider('a')],
      local: localProvider(),
      ...(onSignIn && { onSignIn })
    }, {},
    app => { app.get<{ Params: { userId: string } }>('/as/:userId', async request => app.auth.signIn(request, request.params.userId)) })
    const ada = new Browser(app)
    const { userId }: { userId: string } = (await ada.post('/auth/local/register', ADA)).json()
    return { app, ada, userId, browser: new Browser(app) }
  }

  t.test('a sign-in by other means makes a new session with the claims of the user', async t => {
    const { app, userId, browser } = await inApp(t)
    await app.auth.grant(userId, { role: 'admin' })
    await browser.get('/auth/a/login')
    const before = [...browser.cookies.values()]

    const principal = (await browser.get(`/as/${userId}`)).json()

    t.match(principal, { userId, provider: 'local', claims: { email: ADA.email, role: 'admin' } })
    t.strictSame((await browser.get('/me')).json().principal, principal)
    t.notSame([...browser.cookies.values()], before, 'attack 33: the id of the session is a new one')
  })

  t.test('a sign-in by other means is one by the password if there is one, else by the first link', async t => {
    const { app, ada, userId, browser } = await inApp(t)
    await linkAt(ada, 'a', { subject: '1' })
    t.equal((await browser.get(`/as/${userId}`)).json().provider, 'local')
    await app.auth.unlink(userId, 'local')
    t.equal((await browser.get(`/as/${userId}`)).json().provider, 'a')
  })

  t.test('a sign-in by other means reports an e-mail as verified if it is, and only then', async t => {
    const told: SignIn[] = []
    const { app, ada, userId, browser } = await inApp(t, signIn => { told.push(signIn) })
    await linkAt(ada, 'a', { subject: '1', email: 'ada@elsewhere.example' })
    const verified = async () => {
      await browser.get(`/as/${userId}`)
      return told.at(-1)?.identity.emailVerified
    }

    t.equal(await verified(), false, 'nobody vouched for the one that was registered')
    await app.auth.unlink(userId, 'a')
    await ada.post('/auth/local/login', ADA)
    await linkAt(ada, 'a', { subject: '1', email: 'ADA@example.com' })
    t.equal(await verified(), true, 'a provider did')
    await app.auth.unlink(userId, 'local')
    t.equal(await verified(), true, 'in whatever spelling')
    await signInAt(ada, 'a', { subject: '1', email: 'another@example.com', emailVerified: false })
    t.equal(await verified(), false, 'not for another one')
  })

  t.test('a sign-in by other means fails for an unknown user', async t => {
    const { app, userId, browser } = await inApp(t)
    await app.auth.deleteUser(userId)
    for (const id of [userId, 'ada', '\'']) t.match((await browser.get(`/as/${id}`)).json(), { code: 'unknown_user', statusCode: 404 })
    const store = new SqlAuthStore(':memory:', { createTables: false })
    const other = await startApp(t, { store }, {}, app => { app.get('/as', async request => app.auth.signIn(request, {} as string)) })
    t.match((await other.inject('/as')).json(), { code: 'unknown_user' }, 'what can be nobody\'s id is not looked up')
  })

  t.test('a sign-in by other means can be refused by the hook', async t => {
    let admits = true
    const { userId, browser } = await inApp(t, () => { if (!admits) refuse() })
    admits = false

    t.match((await browser.get(`/as/${userId}`)).json(), { code: 'not_invited', statusCode: 403 })
    t.equal((await browser.get('/me')).json().principal, null)
  })

  t.test('attack 35: a sign-in by other means ends the session that was there, also when another request saves it', async t => {
    const sessions = new SlowSessionStore()
    const app: FastifyInstance = Fastify()
    t.teardown(() => app.close())
    await app.register(fastifyCookie)
    await app.register(fastifySession, { secret: SESSION_SECRET, store: sessions, cookie: { secure: false }, saveUninitialized: false })
    const store = new MemoryAuthStore()
    await app.register(authPlugin, { store })
    const userId = randomUUID()
    const link = { provider: 'a', subject: '1', claims: { sub: '1' } }
    await new Accounts(store).createUser({ userId, email: null, emailVerified: false, name: null, claims: {}, link })
    const [saved, signedIn] = [deferred(), deferred()]
    app.get('/visit', async request => { request.session.set('visits' as never, 1 as never) })
    app.get('/slow', async request => {
      saved.resolve()
      await signedIn.promise
      request.session.set('visits' as never, 2 as never)
    })
    app.get('/as', async request => app.auth.signIn(request, userId))
    const browser = new Browser(app)
    await browser.get('/visit')
    const other = new Browser(app, browser.cookies)

    const slow = other.get('/slow')
    await saved.promise
    await browser.get('/as')
    signedIn.resolve()
    await slow

    t.equal(sessions.sessions.length, 1)
    t.match(sessions.sessions[0], userId)
  })
})

t.test('a local account is verified by its address for every kind of sign-in, also where its claims lack it', async t => {
  const seen: unknown[] = []
  const store = new MemoryAuthStore()
  const app = await startApp(t, {
    local: localProvider(), store, onSignIn: ({ identity: { provider, emailVerified } }) => { seen.push([provider, emailVerified]) }
  }, {}, app => {
    app.post<{ Params: { userId: string } }>('/sign-in/:userId', async ({ params: { userId } }, reply) => {
      await app.auth.signIn(reply.request, userId)
      return 'signed in'
    })
  })
  const userId = randomUUID()
  await new Accounts(store).createUser({
    userId,
    email: ADA.email,
    emailVerified: true,
    name: null,
    claims: {},
    link: { provider: 'local', subject: ADA.email, claims: { sub: userId } },
    passwordHash: await hash(ADA.password, { memoryCost: 8, timeCost: 1 })
  })

  await new Browser(app).post('/auth/local/login', ADA)
  await new Browser(app).post(`/sign-in/${userId}`)

  t.strictSame(seen, [['local', true], ['local', true]])
})

t.test('further fields of a form reach the hook, as far as they are single and short', async t => {
  const seen: unknown[] = []
  const app = await startApp(t, { local: localProvider(), onSignIn: ({ request }) => { seen.push(request.body) } })
  const form = { email: 'ada@example.com', password: 'correct horse', invitation: 'a'.repeat(4096) }
  const browser = new Browser(app)
  await browser.submit('/auth/local/register', form)
  await browser.post('/auth/local/login', { ...form, visits: 3 })
  t.match(seen, [form, { ...form, visits: 3 }])

  const refused: object[] = [
    { invitation: 'a'.repeat(4097) },
    { invitation: ['a', 'b'] },
    { invitation: { code: 'a' } },
    { ['a'.repeat(257)]: 'a' },
    Object.fromEntries(Array.from({ length: 31 }, (_, index) => [`field-${index}`, 'a']))
  ]
  for (const fields of refused) {
    for (const route of ['register', 'login']) {
      const response = await browser.post(`/auth/local/${route}`, { ...form, invitation: undefined, ...fields })
      t.strictSame([response.statusCode, response.json().code], [400, 'invalid_request'], `${route} ${JSON.stringify(fields).slice(0, 50)}`)
    }
  }
})
