/** What happens when a part of the whole breaks. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import type { FastifyInstance, LightMyRequestResponse, Session } from 'fastify'
import t, { type Test } from 'tap'
import { TIMEOUT_MS } from '../../lib/base/concurrency.js'
import { AuthError, type AuthPluginOptions, type AuthStore, MemoryAuthStore, OidcProvider, SqlAuthStore } from '../../lib/index.js'
import { html } from '../fakes/lies.js'
import { type FakeOpenIdProvider, startFakeOpenIdProvider } from '../fakes/openid-provider.js'
import { signed, signingKey } from '../fakes/signing-keys.js'
import { SESSION_SECRET, localProvider, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock, hastenTime } from '../helpers/clock.js'
import { deferred } from '../helpers/deferred.js'
import { OwnProvider, leaveFor, postLogin, signInAt } from '../helpers/own-provider.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'
import { startProxy } from '../helpers/tcp-proxy.js'
import { isThorough } from '../helpers/thorough.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const BASE_URL = 'https://app.example'
const AS_SCRIPT = { accept: 'application/json' }

/** What a database says, and nobody else should read. */
const WORDS = 'connect ECONNREFUSED 192.0.2.7:5432 as svc_admin'

/** A store that can be made to fail, or to hang, whatever it is asked. */
function breakable (store: AuthStore): { store: AuthStore, breaks: (answer: () => Promise<unknown>) => void, works: () => void } {
  let answer: (() => Promise<unknown>) | null = null
  const proxy = new Proxy(store, {
    get (target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return async (...parameters: unknown[]) => {
        return answer === null || name === 'close' ? Reflect.apply(member, target, parameters) : answer()
      }
    }
  })
  return { store: proxy, breaks (broken) { answer = broken }, works () { answer = null } }
}

interface Target {
  app: FastifyInstance
  /** Signed in, with a password. */
  ada: Browser
  userId: string
  token: string
  /** Routes whose handlers ran. */
  reached: string[]
}

/** An application with routes behind every guard, and Ada, who is an admin there. */
async function start (t: Test, options: AuthPluginOptions = {}): Promise<Target> {
  const reached: string[] = []
  const app = await startApp(t, {
    baseUrl: BASE_URL,
    providers: [new OwnProvider('mine')],
    local: localProvider(),
    rateLimit: false,
    session: { secret: SESSION_SECRET, store: 'memory' },
    ...options
  }, {}, app => {
    const { auth } = app
    const guards = {
      users: auth.requireUser,
      admins: auth.requireClaims({ role: 'admin' }),
      machines: auth.requireBearer,
      fresh: [auth.refresh, auth.requireUser]
    }
    for (const [name, preHandler] of Object.entries(guards)) {
      app.get(`/${name}`, { preHandler }, async () => { reached.push(name) })
    }
  })
  const ada = new Browser(app)
  const { userId }: { userId: string } = (await ada.post('/auth/local/register', ADA)).json()
  await app.auth.grant(userId, { role: 'admin' })
  await ada.post('/auth/local/login', ADA)
  const { token }: { token: string } = (await ada.post('/auth/local/token')).json()
  return { app, ada, userId, token, reached }
}

/** Goes to a provider and comes back, by a script. */
async function comeBack (browser: Browser): Promise<LightMyRequestResponse> {
  return browser.get(await leaveFor(browser, '/auth/mine/login', { subject: 'grace', email: 'grace@example.com' }), AS_SCRIPT)
}

/** The status and the code of a failure: of ours, or of a guard that the application's error handler answers. */
function failureOf ({ statusCode, body }: LightMyRequestResponse): [statusCode: number, code: string | undefined] {
  return [statusCode, /"(?:code|error)":"([a-z_]+)"/.exec(body)?.[1]]
}

/** What is said where something broke, and is for the log alone. */
const INNER_WORDS = /ECONN|192\.0\.2|svc_admin|sqlite|postgres|database|svc_auth_|stack|\n\s+at /i

/** Everything that asks the store who somebody is, by the status that it answers when all is well. */
const STORE_REQUESTS: Record<string, { status: number, send: (target: Target) => Promise<LightMyRequestResponse> }> = {
  'a registration': { status: 201, send: ({ app }) => new Browser(app).post('/auth/local/register', { email: 'new@example.com', password: 'battery staple' }) },
  'a sign-in': { status: 200, send: ({ app }) => new Browser(app).post('/auth/local/login', ADA) },
  'a sign-in with a wrong password': { status: 401, send: ({ app }) => new Browser(app).post('/auth/local/login', { ...ADA, password: 'wrong horse' }) },
  'a sign-in at a provider': { status: 302, send: ({ app }) => comeBack(new Browser(app)) },
  'a start of linking': { status: 200, send: ({ ada }) => postLogin(ada, '/auth/mine/login?link=true') },
  'a token to be issued': { status: 200, send: ({ ada }) => ada.post('/auth/local/token') },
  'a token to be verified': { status: 200, send: ({ app, token }) => new Browser(app).post('/auth/local/verify-token', { token }) },
  'the guard of users': { status: 200, send: ({ ada }) => ada.get('/users', AS_SCRIPT) },
  'the guard of admins': { status: 200, send: ({ ada }) => ada.get('/admins', AS_SCRIPT) },
  'the guard of machines': { status: 200, send: ({ app, token }) => new Browser(app).get('/machines', { authorization: `Bearer ${token}` }) },
  'a refresh': { status: 200, send: ({ ada }) => ada.get('/fresh', AS_SCRIPT) }
}

/** Asserts that everything that needs the store is unavailable, and nothing else is; then, when it is mended, that all is as before. */
async function assertUnavailable (t: Test, target: Target, mend: () => void): Promise<void> {
  const { app, ada, reached } = target
  reached.splice(0)
  const cookies = [...ada.cookies]

  for (const [name, { send }] of Object.entries(STORE_REQUESTS)) {
    const answer = await send(target)
    t.strictSame(failureOf(answer), [503, 'unavailable'], `${name}: ${answer.body}`)
    t.notMatch(answer.body, INNER_WORDS, `${name}: nothing of what broke`)
    t.equal(answer.headers['set-cookie'], undefined, `${name}: no cookie`)
  }
  const page = await new Browser(app).submit('/auth/local/login', ADA, { referer: `${BASE_URL}/sign-in` })
  t.strictSame([page.statusCode, page.headers.location], [303, '/sign-in?error=unavailable'], 'a browser is told on its page')
  t.strictSame(reached, [], 'no handler ran')
  t.strictSame([...ada.cookies], cookies, 'nobody is signed out')
  t.equal((await ada.get('/me')).json().principal.claims.email, ADA.email, 'what needs no store answers')
  t.equal((await new Browser(app).get('/auth/mine/login')).statusCode, 302)

  mend()
  await assertAllWorks(t, target)
}

async function assertAllWorks (t: Test, target: Target): Promise<void> {
  for (const [name, { status, send }] of Object.entries(STORE_REQUESTS)) t.equal((await send(target)).statusCode, status, `${name} works again by itself`)
}

t.test('attack 59: a store that fails is unavailable, guards deny, and all is well when it works again', async t => {
  const failures: Array<[how: string, fail: () => Promise<never>]> = [
    ['as the interface says', async () => { throw new AuthError('unavailable', { cause: new Error(WORDS) }) }],
    ['with an error of its driver', async () => { throw Object.assign(new Error(WORDS), { code: 'ECONNREFUSED' }) }],
    ['with a value that is not an error', async () => Promise.reject(WORDS)]
  ]
  for (const [how, fail] of failures) {
    t.test(`a store that fails ${how} is unavailable`, async t => {
      const { store, breaks, works } = breakable(new MemoryAuthStore())
      const target = await start(t, { store })
      breaks(fail)
      await assertUnavailable(t, target, works)
    })
  }
})

t.test('attack 59: while a store of the application\'s own hangs no request passes a guard, and what needs no store answers', async t => {
  // To end such a request is for the application: its store has to have a timeout, as the stores of this library have.
  const { store, breaks, works } = breakable(new MemoryAuthStore())
  const target = await start(t, { store })
  const goesOn = deferred()
  let settled = 0
  breaks(async () => {
    await goesOn.promise
    throw new AuthError('unavailable')
  })
  const hung = Object.values(STORE_REQUESTS).map(async ({ send }) => send(target).finally(() => { settled++ }))

  t.equal((await target.ada.get('/me')).statusCode, 200)
  t.equal((await new Browser(target.app).get('/auth/mine/login')).statusCode, 302)
  t.equal((await new Browser(target.app).get('/users', AS_SCRIPT)).statusCode, 401, 'strangers are turned away at once')
  t.equal((await new Browser(target.app).post('/auth/local/revoke')).statusCode, 204)
  t.strictSame([settled, target.reached], [0, []])

  goesOn.resolve()
  t.strictSame([...new Set((await Promise.all(hung)).map(({ statusCode }) => statusCode))], [503])
  works()
  t.equal((await target.ada.get('/users')).statusCode, 200)
})

t.test('attack 59: a read-only database signs known users in and reports a failure to others', async t => {
  const database = new SqliteDatabase(':memory:')
  const target = await start(t, { store: new SqlAuthStore(database) })
  t.teardown(() => database.close())

  database.pragma('query_only = true')
  const changing = ['a registration', 'a sign-in at a provider']
  for (const [name, { status, send }] of Object.entries(STORE_REQUESTS)) {
    const answer = await send(target)
    t.equal(answer.statusCode, changing.includes(name) ? 503 : status, `${name}: ${answer.body}`)
  }
  await t.rejects(target.app.auth.grant(target.userId, { role: 'owner' }), { code: 'unavailable' })

  database.pragma('query_only = false')
  await assertAllWorks(t, target)
})

t.test('attack 59: an SQLite database without its tables is unavailable until it has them again', async t => {
  const database = new SqliteDatabase(':memory:')
  const target = await start(t, { store: new SqlAuthStore(database) })
  t.teardown(() => database.close())
  const names = ['svc_auth_users', 'svc_auth_provider_links', 'svc_auth_credentials']

  for (const name of names) database.exec(`alter table ${name} rename to hidden_${name}`)
  await assertUnavailable(t, target, () => {
    for (const name of names) database.exec(`alter table hidden_${name} rename to ${name}`)
  })
})

t.test('attack 59: an SQLite file that another process has locked delays writers only, and not for ever', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-auth-failures-'))
  const file = join(folder, 'users.db')
  const target = await start(t, { store: new SqlAuthStore(file) })
  const other = new SqliteDatabase(file)
  t.teardown(() => {
    other.close()
    rmSync(folder, { recursive: true })
  })

  other.exec('begin immediate')
  const order: string[] = []
  const writing = new Browser(target.app).post('/auth/local/register', {
    email: 'new@example.com',
    password: 'battery staple'
  }).finally(() => { order.push('writes') })
  for (const name of ['a sign-in', 'the guard of admins', 'a token to be verified', 'a refresh']) {
    t.equal((await STORE_REQUESTS[name]?.send(target))?.statusCode, 200, name)
    order.push('reads')
  }
  advanceClock(t, TIMEOUT_MS)
  const answer = await writing
  t.strictSame([answer.statusCode, answer.json().code], [503, 'unavailable'])
  t.strictSame(order, [...Array(4).fill('reads'), 'writes'])

  other.exec('rollback')
  t.equal((await STORE_REQUESTS['a registration']?.send(target))?.statusCode, 201, 'and then it works by itself')
})

t.test('attack 59: a Postgres server that falls silent is unavailable, guards deny, and all is well when it speaks again', async t => {
  const proxy = await startProxy(t, await emptyDatabase(t))
  const store = new SqlAuthStore(proxy.url)
  const target = await start(t, { store })
  let settled = 0

  proxy.fate = 'is silent'
  proxy.silence()
  const asUsual = hastenTime(t, 10)
  const answers = Object.entries(STORE_REQUESTS).map(async ([name, { send }]) => {
    const answer = await send(target).finally(() => { settled++ })
    return [name, ...failureOf(answer)]
  })
  t.equal((await target.ada.get('/me')).statusCode, 200)
  t.equal((await new Browser(target.app).get('/auth/mine/login')).statusCode, 302)
  t.equal(settled, 0, 'others are answered while the store is waited for')

  t.strictSame(await Promise.all(answers), Object.keys(STORE_REQUESTS).map(name => [name, 503, 'unavailable']))
  t.strictSame(target.reached, [])
  asUsual()
  proxy.fate = 'works'
  await assertAllWorks(t, target)
})

/** The sessions in the database of the store, which is the default. */
const BESIDE_USERS = { secret: SESSION_SECRET }

t.test('attack 59: a read-only database that keeps the sessions lets signed-in users go on, and signs no user in', async t => {
  const database = new SqliteDatabase(':memory:')
  const target = await start(t, { store: new SqlAuthStore(database), session: BESIDE_USERS })
  t.teardown(() => database.close())
  const changing = ['a registration', 'a sign-in', 'a sign-in at a provider', 'a start of linking']

  database.pragma('query_only = true')
  for (const [name, { status, send }] of Object.entries(STORE_REQUESTS)) {
    if (name === 'a sign-in at a provider') continue
    const answer = await send(target)
    t.equal(answer.statusCode, changing.includes(name) ? 503 : status, `${name}: ${answer.body}`)
    if (changing.includes(name)) t.equal(answer.headers['set-cookie'], undefined, `${name}: no cookie`)
  }
  t.strictSame(failureOf(await new Browser(target.app).get('/auth/mine/login', AS_SCRIPT)), [503, 'unavailable'])
  t.strictSame(failureOf(await target.ada.post('/auth/local/revoke')), [503, 'unavailable'])
  t.equal((await target.ada.get('/users')).statusCode, 200, 'a sign-out that failed signs out nobody')

  database.pragma('query_only = false')
  await assertAllWorks(t, target)
})

t.test('attack 59: sessions in a Postgres server that falls silent are unavailable, guards deny, and all is well when it speaks again', async t => {
  const proxy = await startProxy(t, await emptyDatabase(t))
  const target = await start(t, { store: new SqlAuthStore(proxy.url), session: BESIDE_USERS })
  target.reached.splice(0)

  proxy.fate = 'is silent'
  proxy.silence()
  const asUsual = hastenTime(t, 10)
  const answers = Object.entries(STORE_REQUESTS).filter(([name]) => name !== 'a sign-in at a provider')
    .map(async ([name, { send }]) => [name, ...failureOf(await send(target))])
  t.equal((await new Browser(target.app).get('/me')).statusCode, 200, 'a visitor without a session asks no database')

  const expected = Object.keys(STORE_REQUESTS).filter(name => name !== 'a sign-in at a provider').map(name => [name, 503, 'unavailable'])
  t.strictSame(await Promise.all(answers), expected)
  t.strictSame(target.reached, [])
  asUsual()
  proxy.fate = 'works'
  await assertAllWorks(t, target)
})

type Operation = 'get' | 'set' | 'destroy' | 'set of somebody'

/** Sessions in another process, of whose operations some fail. */
class FailingSessionStore extends SlowSessionStore {
  failing: readonly Operation[] = []

  override get (id: string, callback: (error: unknown, session?: Session | null) => void): void {
    this.failing.includes('get') ? callback(new Error(WORDS)) : super.get(id, callback)
  }

  override set (id: string, session: Session, callback: (error?: unknown) => void): void {
    const fails = this.failing.includes('set') || (session.svcAuth?.principal !== undefined && this.failing.includes('set of somebody'))
    fails ? callback(new Error(WORDS)) : super.set(id, session, callback)
  }

  override destroy (id: string, callback: (error?: unknown) => void): void {
    this.failing.includes('destroy') ? callback(new Error(WORDS)) : super.destroy(id, callback)
  }
}

/** What needs a session, and what with one it cannot do when sessions cannot be written or ended. */
const SESSION_REQUESTS: Record<string, { needs: Operation[], status: number, send: (target: Target) => Promise<LightMyRequestResponse> }> = {
  'a sign-in': { needs: ['get', 'set', 'set of somebody', 'destroy'], status: 200, send: ({ ada }) => ada.post('/auth/local/login', ADA) },
  'the sign-in of a stranger': {
    needs: ['set', 'set of somebody'],
    status: 200,
    send: ({ app }) => new Browser(app).post('/auth/local/login', ADA)
  },
  'a start at a provider': { needs: ['get', 'set'], status: 302, send: ({ ada }) => ada.get('/auth/mine/login', AS_SCRIPT) },
  'the start of a stranger at a provider': { needs: ['set'], status: 302, send: ({ app }) => new Browser(app).get('/auth/mine/login', AS_SCRIPT) },
  'a token to be issued': { needs: ['get'], status: 200, send: ({ ada }) => ada.post('/auth/local/token') },
  'the guard of users': { needs: ['get'], status: 200, send: ({ ada }) => ada.get('/users', AS_SCRIPT) },
  'the guard of admins': { needs: ['get'], status: 200, send: ({ ada }) => ada.get('/admins', AS_SCRIPT) },
  'a refresh': { needs: ['get'], status: 200, send: ({ ada }) => ada.get('/fresh', AS_SCRIPT) },
  'a sign-out': { needs: ['get', 'set', 'destroy'], status: 204, send: ({ ada }) => ada.post('/auth/local/revoke') }
}

const FAILING: Operation[][] = [['get', 'set', 'destroy'], ['get'], ['set'], ['set of somebody'], ['destroy']]

/** What was said to a browser whose sign-in or session failed: at most that it has none any more. */
function assertNoSession (t: Test, { cookies }: LightMyRequestResponse, message: string): void {
  t.ok(cookies.every(({ value }) => value === ''), `${message}: no session`)
}

t.test('attack 59: sessions that cannot be reached are unavailable, and no user is signed in or passes a guard meanwhile', async t => {
  for (const failing of FAILING) {
    t.test(`sessions are unavailable where ${failing.join(', ')} fails`, async t => {
      const sessions = new FailingSessionStore()
      const target = await start(t, { session: { secret: SESSION_SECRET, store: sessions } })

      for (const [name, { needs, status, send }] of Object.entries(SESSION_REQUESTS)) {
        const ada = new Browser(target.app)
        await ada.post('/auth/local/login', ADA)
        target.reached.splice(0)
        sessions.failing = failing
        const answer = await send({ ...target, ada })
        sessions.failing = []

        if (needs.some(operation => failing.includes(operation))) {
          t.strictSame(failureOf(answer), [503, 'unavailable'], `${name}: ${answer.body}`)
          t.notMatch(answer.body, INNER_WORDS, `${name}: nothing of what broke`)
          assertNoSession(t, answer, name)
          t.strictSame(target.reached, [], `${name}: no handler ran`)
        } else t.equal(answer.statusCode, status, `${name} needs nothing that fails`)

        t.equal((await send({ ...target, ada })).statusCode, status, `${name} works again by itself`)
      }
    })
  }
})

t.test('attack 59: a sign-in at a provider whose session is lost on the way back does not sign in', async t => {
  for (const failing of FAILING) {
    const sessions = new FailingSessionStore()
    const { app } = await start(t, { session: { secret: SESSION_SECRET, store: sessions } })
    const browser = new Browser(app)
    const callback = await leaveFor(browser, '/auth/mine/login', { subject: 'grace' })
    sessions.failing = failing
    const answer = await browser.get(callback, AS_SCRIPT)
    sessions.failing = []
    t.strictSame(failureOf(answer), [503, 'unavailable'], failing.join())
    assertNoSession(t, answer, failing.join())
    t.equal((await browser.get('/me')).json().principal, null)
    const again = await signInAt(browser, 'mine', { subject: 'grace' })
    // Where removals alone fail, the session before has ended and is there: its end is noticed once.
    const isNoticed = failing.join() === 'destroy' && again.json().code === 'invalid_state'
    const last = isNoticed ? await signInAt(browser, 'mine', { subject: 'grace' }) : again
    t.equal(last.headers.location, '/', failing.join())
  }
})

/** Goes to the fake provider and comes back. */
async function signInAtFake (app: FastifyInstance, fake: FakeOpenIdProvider): Promise<LightMyRequestResponse> {
  const browser = new Browser(app)
  const { headers: { location = '' } } = await browser.get('/auth/fake/login')
  return browser.get(fake.consent(location), AS_SCRIPT)
}

t.test('attack 59: keys of a provider that cannot be had are provider_unavailable, and are asked for again', async t => {
  const fake = await startFakeOpenIdProvider(t)
  const { app } = await start(t, { providers: [fake.provider(), new OwnProvider('mine')] })
  fake.profile = { sub: 'grace' }
  fake.lies.set('/jwks', () => html(500, 'Oops'))

  for (let attempt = 0; attempt < 3; attempt++) {
    const answer = await signInAtFake(app, fake)
    t.strictSame([answer.statusCode, answer.json().code, answer.headers['set-cookie']], [503, 'provider_unavailable', undefined])
  }
  t.equal((await signInAt(new Browser(app), 'mine', { subject: 'x' })).headers.location, '/', 'other providers are as ever')

  fake.lies.clear()
  t.equal((await signInAtFake(app, fake)).headers.location, '/', 'the next sign-in works by itself')
})

t.test('attack 59, attack 170: of many tokens with unknown keys one a minute has the keys fetched again', async t => {
  const issuer = 'https://id.example'
  const keys = [await signingKey('key-1')]
  let [idToken, fetched, kid, isDown] = ['', 0, 0, false]
  const answers: Record<string, () => unknown> = {
    '/.well-known/openid-configuration': () => ({
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/jwks`
    }),
    '/jwks': () => {
      fetched++
      if (isDown) throw new TypeError('fetch failed')
      return { keys: keys.map(({ jwk }) => ({ ...jwk, alg: 'RS256' })) }
    },
    '/token': () => ({ access_token: 'the-access-token', token_type: 'Bearer', id_token: idToken })
  }
  const provider = new OidcProvider({
    name: 'dev',
    clientId: 'the-app',
    clientSecret: 'the client secret of the tests',
    discoveryUrl: `${issuer}/.well-known/openid-configuration`,
    fetch: async input => Response.json(answers[new URL(input instanceof Request ? input.url : input).pathname]?.())
  })
  const expected = { redirectUri: `${BASE_URL}/auth/dev/callback`, state: 's', nonce: 'n', codeVerifier: 'v'.repeat(43) }
  const payload = () => ({ iss: issuer, aud: 'the-app', sub: 'grace', nonce: 'n', iat: Math.floor(Date.now() / 1000), exp: Math.floor(Date.now() / 1000) + 60 })
  const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  /** The subject, or the code of the failure. */
  const authenticate = async (token: string): Promise<string> => {
    idToken = token
    const parameters = new URLSearchParams({ code: 'c', state: 's' })
    return provider.authenticate({ ...expected, parameters }).then(
      ({ identity }) => identity.subject,
      (error: unknown) => error instanceof AuthError ? error.code : String(error)
    )
  }
  const attack = async (attempts: number): Promise<string[]> => {
    const forged = Array.from({ length: attempts }, () => `${encoded({ alg: 'RS256', kid: `unknown-${kid++}` })}.${encoded(payload())}.${'A'.repeat(342)}`)
    return [...new Set(await Promise.all(forged.map(authenticate)))]
  }
  const [key] = keys
  t.ok(key !== undefined && await authenticate(await signed(payload(), key)) === 'grace')

  const size = isThorough ? 500 : 50
  t.strictSame(await attack(size), ['provider_error'])
  t.strictSame(await attack(size), ['provider_error'])
  t.equal(fetched, 2, 'one of them had the keys fetched again at once, and no other does within a minute')

  advanceClock(t, 61_000)
  t.strictSame(await attack(size / 2), ['provider_error'])
  t.strictSame(await attack(size / 2), ['provider_error'])
  t.equal(fetched, 3, 'a minute later another one did')

  t.ok(key !== undefined && await authenticate(await signed(payload(), key)) === 'grace', 'tokens with the known key are as good as before')
  const newKey = await signingKey('key-2')
  keys.push(newKey)
  t.equal(await authenticate(await signed(payload(), newKey)), 'provider_error', 'a new key has to wait for the cool-down')
  advanceClock(t, 61_000)
  t.equal(await authenticate(await signed(payload(), newKey)), 'grace', 'and is found after it')

  isDown = true
  advanceClock(t, 61_000)
  t.strictSame(await attack(size), ['provider_unavailable'])
  t.strictSame(await attack(size), ['provider_error'])
  t.equal(fetched, 5, 'keys that cannot be had are not asked for more often')
  t.equal(await authenticate(await signed(payload(), newKey)), 'grace', 'and those that are known stay good')
})
