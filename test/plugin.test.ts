import fastifyCookie, { Signer } from '@fastify/cookie'
import formbody from '@fastify/formbody'
import fastifySession from '@fastify/session'
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import authPlugin, { type AuthPluginOptions, MemoryAuthStore, OidcProvider, SqlAuthStore } from '../lib/index.js'
import { PasskeyCeremonies } from '../lib/features/passkeys/ceremonies.js'
import { Passkeys } from '../lib/passkeys.js'
import { SESSION_SECRET, localProvider, startApp } from './helpers/app.js'
import { Browser } from './helpers/browser.js'
import { setEnv } from './helpers/environment.js'
import { SlowSessionStore } from './helpers/slow-session-store.js'

const USER = { email: 'ada@example.com', password: 'correct horse' }
const session = { secret: SESSION_SECRET }
const provider = (name: string) => new OidcProvider({
  name,
  discoveryUrl: 'https://id.example/.well-known/openid-configuration',
  clientId: 'a',
  clientSecret: 'b'
})

t.test('the decorators say what was registered', async t => {
  const local = localProvider()
  const store = new MemoryAuthStore()
  const app = await startApp(t, { local, store, baseUrl: 'https://app.example', providers: [provider('b'), provider('a')] })
  t.strictSame(app.authProviders, ['b', 'a'])
  t.ok(Object.isFrozen(app.authProviders))
  t.equal(app.localIdp, local)
  t.equal(app.auth.store, store)

  const bare = await startApp(t)
  t.strictSame(bare.authProviders, [])
  t.equal(bare.localIdp, null)
  t.equal((await bare.inject({ method: 'POST', url: '/auth/local/login' })).statusCode, 404)
  t.strictSame((await bare.inject('/me')).json(), { principal: null })
  t.equal(await bare.auth.findUser({ userId: 'nobody' }), null)
})

t.test('the secret of the session comes from SVC_SESSION_SECRET unless it is given', async t => {
  const app = Fastify()
  t.teardown(() => app.close())
  setEnv(t, { SVC_SESSION_SECRET: 'a-secret-from-the-settings-32-and-more' })
  await app.register(authPlugin, { local: localProvider() })
  t.equal((await new Browser(app).post('/auth/local/register', USER)).statusCode, 201)
})

t.test('a wrong option rejects register with its name', async t => {
  const secret = 'too short'
  const wrong: Array<[object, RegExp]> = [
    [{ session: {} }, /session\.secret must be at least 32 characters; set SVC_SESSION_SECRET/],
    [{ session: { secret } }, /session\.secret/],
    [{ session: { secret: [SESSION_SECRET, secret] } }, /session\.secret must be at least 32 characters, each of them/],
    [{ session, providers: [provider('a')] }, /baseUrl is required/],
    [{ session, baseUrl: 'https://app.example', providers: [provider('a'), provider('a')] }, /providers must have different names/],
    [{ session, prefx: '/id' }, /fastify-svc-auth has no option "prefx"/]
  ]
  for (const [options, message] of wrong) {
    const app = Fastify()
    const failure = await Promise.resolve(app.register(authPlugin, options)).then(() => null, (error: Error) => error)
    t.match(failure, { name: 'OptionsError', code: 'invalid_options', message })
    t.notOk(failure?.message.includes(secret))
  }
})

t.test('the plugin can be registered once', async t => {
  const app = Fastify()
  await app.register(authPlugin, { session })
  await t.rejects(Promise.resolve(app.register(authPlugin, {})), { code: 'invalid_options', message: /register fastify-svc-auth once/ })
})

t.test('the plugin works on a session that the application has registered', async t => {
  t.test('the session of the application is used', async t => {
    const app: FastifyInstance = Fastify()
    t.teardown(() => app.close())
    await app.register(fastifyCookie)
    await app.register(fastifySession, { secret: SESSION_SECRET, cookieName: 'mine', cookie: { secure: false } })
    await app.register(authPlugin, { local: localProvider() })
    app.get('/me', async request => ({ principal: request.principal }))
    const browser = new Browser(app)

    t.equal((await browser.post('/auth/local/register', USER)).statusCode, 201)
    t.strictSame([...browser.cookies.keys()], ['mine'])
    t.ok((await browser.get('/me')).json().principal)
    await browser.post('/auth/local/revoke')
    t.equal((await browser.get('/me')).json().principal, null)
  })

  t.test('the option session must be absent beside a session of the application', async t => {
    const app = Fastify()
    await app.register(fastifyCookie)
    await app.register(fastifySession, { secret: SESSION_SECRET })
    await t.rejects(Promise.resolve(app.register(authPlugin, { session })), /session must be absent/)
  })

  t.test('an application that has only @fastify/cookie keeps it', async t => {
    const app: FastifyInstance = Fastify()
    t.teardown(() => app.close())
    await app.register(fastifyCookie, { secret: 'for the cookies of the application' })
    await app.register(authPlugin, { local: localProvider(), session })
    t.equal((await new Browser(app).post('/auth/local/register', USER)).statusCode, 201)
  })
})

t.test('the cookie of the session has safe attributes', async t => {
  const cookieOf = async (options: object, inject: object = {}, server: object = {}) => {
    const app = await startApp(t, { local: localProvider(), ...options }, server)
    const response = await app.inject({ method: 'POST', url: '/auth/local/register', payload: USER, ...inject })
    return response.cookies[0]
  }
  const safe = { name: 'svc_session', httpOnly: true, sameSite: 'Lax', path: '/' }

  t.test('the cookie is Secure on https, also behind a proxy that the application was not told of', async t => {
    t.match(await cookieOf({ baseUrl: 'https://app.example' }), { ...safe, secure: true })
    t.match(await cookieOf({}, { headers: { 'x-forwarded-proto': 'https' } }, { trustProxy: true }), { ...safe, secure: true })
  })

  t.test('the cookie is not Secure on http, and lives for seven days', async t => {
    for (const options of [{ baseUrl: 'http://localhost:3000' }, {}]) {
      const cookie = await cookieOf(options)
      t.match(cookie, safe)
      t.equal(cookie?.secure, undefined)
      t.equal(cookie?.domain, undefined)
      const days = (Number(cookie?.expires) - Date.now()) / 86_400_000
      t.ok(days > 6.99 && days <= 7)
    }
  })

  t.test('the cookie can be changed by the options of @fastify/session', async t => {
    t.match(
      await cookieOf({
        session: { ...session, cookieName: '__Host-id', cookie: { sameSite: 'strict' } },
        baseUrl: 'https://app.example'
      }),
      { name: '__Host-id', sameSite: 'Strict', secure: true, httpOnly: true }
    )
  })

  t.test('the cookie can be signed by the application', async t => {
    const signer = new Signer(SESSION_SECRET)
    const secret = { sign: (value: string) => signer.sign(value), unsign: (value: string) => signer.unsign(value) }
    const browser = new Browser(await startApp(t, { local: localProvider(), session: { secret } }))
    await browser.post('/auth/local/register', USER)
    t.ok((await browser.get('/me')).json().principal)
  })

  t.test('the cookie of a domain is cleared for that domain', async t => {
    const browser = new Browser(await startApp(t, { local: localProvider(), session: { ...session, cookie: { domain: 'app.example' } } }))
    const set = await browser.post('/auth/local/register', USER)
    const cleared = await browser.post('/auth/local/revoke')
    t.match([set.cookies[0], cleared.cookies[0]], [{ domain: 'app.example' }, { domain: 'app.example', value: '' }])
  })

  t.test('the cookie must cover the routes', async t => {
    await t.rejects(startApp(t, { session: { ...session, cookie: { path: '/app' } } }), /session\.cookie\.path must cover the routes under \/auth/)
    t.ok(await startApp(t, { session: { ...session, cookie: { path: '/app' } }, prefix: '/app/auth' }))
  })

  t.test('a cookie that is forged, cut or of another secret is anonymous', async t => {
    const app = await startApp(t, { local: localProvider() })
    const browser = new Browser(app)
    await browser.post('/auth/local/register', USER)
    const good = browser.cookies.get('svc_session') ?? ''
    const [id = ''] = good.split('.')
    for (const value of [id, `${id}.`, good.slice(0, -2), good.slice(2), 'x'.repeat(8000), '', '%', `${id}.AAAA`]) {
      const response = await app.inject({ url: '/me', headers: { cookie: `svc_session=${value}` } })
      t.equal(response.statusCode, 200)
      t.equal(response.json().principal, null)
    }
  })

  t.test('a cookie signed with an older secret is still good, a newer one signs', async t => {
    const sessions = new Map<string, never>()
    const store = {
      set: (id: string, entry: object, done: () => void) => { sessions.set(id, structuredClone(JSON.parse(JSON.stringify(entry))) as never); done() },
      get: (id: string, done: (error: unknown, entry?: never) => void) => { done(null, sessions.get(id)) },
      destroy: (id: string, done: () => void) => { sessions.delete(id); done() }
    }
    const old = 'the secret of last year, 32 and more'
    const before = new Browser(await startApp(t, { local: localProvider(), session: { secret: old, store } }))
    await before.post('/auth/local/register', USER)
    const after = new Browser(await startApp(t, { local: localProvider(), session: { secret: [SESSION_SECRET, old], store } }))
    after.cookies.set('svc_session', before.cookies.get('svc_session') ?? '')
    t.ok((await after.get('/me')).json().principal)
    t.ok((await after.get('/me')).json().principal, 'also at the second look')
    t.equal((await after.post('/auth/local/revoke')).cookies.find(({ name }) => name === 'svc_session')?.value, '')
    t.equal((await after.get('/me')).json().principal, null)
    await after.post('/auth/local/login', USER)
    t.notOk(new Signer([old]).unsign(after.cookies.get('svc_session') ?? '').valid, 'the next sign-in is signed with the new secret')
  })
})

t.test('mistakes of a deployment are warned of', async t => {
  /** What the log says at level warn. */
  const logOf = () => {
    const warnings: string[] = []
    const stream = { write: (line: string) => { warnings.push(JSON.parse(line).msg) } }
    return { warnings, server: { logger: { level: 'warn', stream } } }
  }

  t.test('in production the session store in memory is warned of, a store of the application is not', async t => {
    const { warnings, server } = logOf()
    setEnv(t, { NODE_ENV: 'production' })
    await startApp(t, { session: { ...session, store: new SlowSessionStore() } }, server)
    t.strictSame(warnings, [])

    await startApp(t, { session }, server)
    t.equal(warnings.length, 1)
    t.match(warnings[0], /^Sessions are kept in the memory of this process: .* Use SqlAuthStore, whose database keeps them, or set session\.store/)
  })

  t.test('outside production the session store in memory is not warned of', async t => {
    const { warnings, server } = logOf()
    await startApp(t, { session }, server)
    t.strictSame(warnings, [])
  })

  t.test('plain http under an https: baseUrl is warned of once, with the name trustProxy', async t => {
    const { warnings, server } = logOf()
    const app = await startApp(t, { session, baseUrl: 'https://app.example', local: localProvider() }, server)
    for (let request = 0; request < 2; request++) await app.inject({ method: 'POST', url: '/auth/local/revoke' })

    t.equal(warnings.length, 1)
    t.match(warnings[0], 'set the option trustProxy of Fastify')
  })

  t.test('plain http behind a trusted proxy or under an http: baseUrl is not warned of', async t => {
    const { warnings, server } = logOf()
    const behindProxy = await startApp(t, { session, baseUrl: 'https://app.example', local: localProvider() }, { ...server, trustProxy: '127.0.0.1' })
    await behindProxy.inject({ method: 'POST', url: '/auth/local/revoke', headers: { 'x-forwarded-proto': 'https' } })
    const plain = await startApp(t, { session, baseUrl: 'http://app.example', local: localProvider() }, server)
    await plain.inject({ method: 'POST', url: '/auth/local/revoke' })

    t.strictSame(warnings, [])
  })
})

t.test('the plugin changes nothing of the application besides the decorators', async t => {
  /** An application with routes around the place where the plugin would be registered. */
  async function build (plugin: boolean): Promise<FastifyInstance> {
    const app: FastifyInstance = Fastify()
    t.teardown(() => app.close())
    await app.register(fastifyCookie)
    await app.register(fastifySession, { secret: SESSION_SECRET, saveUninitialized: false, cookie: { secure: false } })
    const body = { type: 'object', properties: { n: { type: 'number' } } }
    app.post('/before', { schema: { body } }, async request => ({ body: request.body }))
    app.get('/throws-before', async () => { throw new Error('of the application') })
    if (plugin) await app.register(authPlugin, { local: localProvider() })
    app.post('/after', { schema: { body } }, async request => ({ body: request.body }))
    app.get('/throws-after', async () => { throw new Error('of the application') })
    app.register(async child => { child.post('/child', { schema: { body } }, async request => ({ body: request.body })) })
    return app
  }
  const [bare, withPlugin] = [await build(false), await build(true)]
  const requests = ['/before', '/after', '/child', '/nowhere', '/throws-before', '/throws-after'].flatMap(url => [
    { method: url.startsWith('/throws') ? 'GET' as const : 'POST' as const, url, headers: { origin: 'https://evil.example' }, payload: { n: '7' } },
    { method: 'POST' as const, url, headers: { 'content-type': 'application/x-www-form-urlencoded' }, payload: 'n=7' },
    { method: 'POST' as const, url, headers: { 'content-type': 'text/plain' }, payload: '7' },
    { method: 'POST' as const, url, headers: { 'content-type': 'application/json' }, payload: '' },
    { method: 'POST' as const, url, payload: { n: 'x' } }
  ])

  for (const request of requests) {
    const [expected, actual] = [await bare.inject(request), await withPlugin.inject(request)]
    const name = `${request.method} ${request.url} ${JSON.stringify(request.payload)}`
    t.equal(actual.statusCode, expected.statusCode, name)
    t.equal(actual.body, expected.body, name)
    t.strictSame({ ...actual.headers, date: '' }, { ...expected.headers, date: '' }, name)
  }
})

t.test('nothing of the application changes its routes', async t => {
  const app: FastifyInstance = Fastify({ ajv: { customOptions: { coerceTypes: 'array' } } })
  t.teardown(() => app.close())
  await app.register(formbody, { parser: () => ({ email: 'eve@example.com', password: 'the parser of the application' }) })
  app.removeContentTypeParser('application/json')
  app.addContentTypeParser('application/json', (_request, _payload, done) => {
    done(null, { email: 'eve@example.com', password: 'the parser of the application' })
  })
  app.setValidatorCompiler(() => () => { throw new Error('the validator of the application') })
  app.setSerializerCompiler(() => () => '"the serializer of the application"')
  app.setErrorHandler((_error, _request, reply) => reply.code(418).send('the error handler of the application'))
  await app.register(authPlugin, { local: localProvider(), session })
  const browser = new Browser(app)

  t.match((await browser.post('/auth/local/register', USER)).json(), { claims: { email: USER.email } })
  t.equal((await browser.submit('/auth/local/login', USER)).statusCode, 303)
  t.equal((await browser.post('/auth/local/login', { email: ['ada@example.com'], password: USER.password })).json().code, 'invalid_request')
})

t.test('guards answer 401 and 403', async t => {
  const app = await startApp(t, { local: localProvider() }, {}, app => {
    app.get('/user', { preHandler: app.auth.requireUser }, async request => ({ userId: request.principal?.userId }))
    app.get('/admin', { preHandler: app.auth.requireClaims({ role: 'admin' }) }, async () => 'admin')
    app.get('/team', { preHandler: app.auth.requireClaims({ teams: 'blue', limits: { seats: 3 } }) }, async () => 'team')
    app.get('/machine', { preHandler: app.auth.requireBearer }, async request => ({ sub: request.token?.sub }))
  })
  const browser = new Browser(app)

  t.test('requireUser is 401 for anonymous requests', async t => {
    const response = await browser.get('/user')
    t.equal(response.statusCode, 401)
    t.match(response.json(), { code: 'unauthenticated', message: 'Sign in first.' })
  })

  t.test('requireClaims is 401 for anonymous requests, 403 without the claims; a list must include the value', async t => {
    t.equal((await browser.get('/admin')).statusCode, 401)
    const { userId } = (await browser.post('/auth/local/register', USER)).json()
    t.equal((await browser.get('/user')).json().userId, userId)
    t.equal((await browser.get('/admin')).statusCode, 403)

    await app.auth.grant(userId, { role: 'admin', teams: ['red', 'blue'], limits: { seats: 3 } })
    t.equal((await browser.get('/admin')).statusCode, 403, 'not before the next sign-in')
    await browser.post('/auth/local/login', USER)
    t.equal((await browser.get('/admin')).statusCode, 200)
    t.equal((await browser.get('/team')).statusCode, 200)

    await app.auth.withdraw(userId, ['role'])
    await app.auth.grant(userId, { teams: ['red'] })
    await browser.post('/auth/local/login', USER)
    t.equal((await browser.get('/admin')).statusCode, 403)
    t.equal((await browser.get('/team')).statusCode, 403)
  })

  t.test('requireBearer takes a token of the local provider, and nothing else', async t => {
    const token = await app.localIdp?.issueIdToken('someone') ?? ''
    for (const authorization of [`Bearer ${token}`, `bearer  ${token}`]) {
      t.strictSame((await app.inject({ url: '/machine', headers: { authorization } })).json(), { sub: 'someone' })
    }
    const invitation = await app.localIdp?.issueIdToken('someone', {}, 60, { purpose: 'invitation' })
    for (const authorization of [
      undefined, 'Bearer', 'Bearer %', `Bearer ${token}=x`, `Bearer ${token} ${token}`, `Basic ${token}`,
      `Bearer ${invitation}`, token
    ]) {
      const response = await app.inject({ url: `/machine?access_token=${token}`, headers: authorization === undefined ? {} : { authorization } })
      t.equal(response.statusCode, 401, String(authorization))
      // Without a bearer token there is no error to name.
      const isBearer = authorization?.startsWith('Bearer')
      t.equal(response.headers['www-authenticate'], isBearer === true ? 'Bearer error="invalid_token"' : 'Bearer')
      t.equal(response.json().code, 'invalid_token')
    }
  })

  t.test('requireBearer lets no request pass without a local provider', async t => {
    const bare = await startApp(t, {}, {}, app => {
      app.get('/machine', { preHandler: app.auth.requireBearer }, async () => 'in')
    })
    t.equal((await bare.inject({ url: '/machine', headers: { authorization: 'Bearer a.b.c' } })).statusCode, 401)
  })
})

t.test('closing the application closes the store', async t => {
  let closed = 0
  class Store extends MemoryAuthStore {
    override async close (): Promise<void> { closed++ }
  }
  const app = await startApp(t, { store: new Store() })
  await app.close()
  t.equal(closed, 1)
})

t.test('the library of passkeys is loaded in the background, with or without passwords, and only with the option', async t => {
  const preloads = t.capture(PasskeyCeremonies.prototype, 'preload', async () => {})
  const scheduled = t.capture(SqlAuthStore.prototype, 'report', async () => {})
  const options = { baseUrl: 'https://app.example' }
  const begin = async (more: AuthPluginOptions): Promise<number> => {
    await startApp(t, { ...options, store: new SqlAuthStore(':memory:'), ...more })
    // The step before that of the passkeys.
    while (scheduled().length === 0) await new Promise(resolve => setImmediate(resolve))
    await new Promise(resolve => setImmediate(() => setImmediate(resolve)))
    return preloads().length
  }
  t.equal(await begin({ passkeys: new Passkeys({ name: 'Shop' }) }), 1)
  t.equal(await begin({ passkeys: new Passkeys({ name: 'Shop' }), local: localProvider() }), 1)
  t.equal(await begin({ local: localProvider() }), 0)
})

t.test('what one application has compiled of the forms, another one in the process does not compile again', async t => {
  const register = async (): Promise<void> => {
    const app = await startApp(t, { local: localProvider() })
    t.equal((await new Browser(app).post('/auth/local/register', USER)).statusCode, 201)
  }
  await register()
  const made = t.capture(globalThis, 'Function', Function)
  await register()
  // Those of other routes are compiled in the background meanwhile.
  const ofRegistration = made().filter(({ args: [name, , code] }) => name === 'self' && String(code).includes('email_verified'))
  t.strictSame(ofRegistration, [], 'ajv makes functions of self, scope and the code')
})
