import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { type AuthPluginOptions, GitHubProvider, MemoryAuthStore, SignInRefused, SqlAuthStore, authPlugin } from '../../lib/index.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { signedIn } from '../../lib/testing.js'
import { SESSION_SECRET, localProvider, startApp } from '../helpers/app.js'
import { setEnv } from '../helpers/environment.js'

const github = new GitHubProvider({ clientId: 'an-id', clientSecret: 'a secret' })

/** An application of the kind that tests are for: it asks for a user, and for a claim. */
async function guardedApp (
  t: Test,
  options: AuthPluginOptions = {},
  before: (app: FastifyInstance) => Promise<void> = async () => {}
): Promise<FastifyInstance> {
  const app = Fastify()
  t.teardown(() => app.close())
  await before(app)
  await app.register(authPlugin, options)
  app.get('/me', { preHandler: app.auth.requireUser }, async request => request.principal)
  app.get('/admin', { preHandler: app.auth.requireClaims({ role: 'admin' }) }, async () => 'in')
  return app
}

const session = { secret: SESSION_SECRET }

t.test('a user is signed in with claims, in the application of a test that has not called ready()', async t => {
  const app = await guardedApp(t, { session })

  const member = await app.inject({ url: '/admin', headers: await signedIn(app) })
  const admin = await app.inject({ url: '/admin', headers: await signedIn(app, { claims: { role: 'admin' } }) })

  t.strictSame([member.statusCode, admin.statusCode], [403, 200])
})

t.test('several users are signed in at once, each in a session of their own', async t => {
  const app = await guardedApp(t, { session })
  const names = ['Ada', 'Grace', 'Emmy']

  const headers = await Promise.all(names.map(async name => signedIn(app, { name })))
  const users = await Promise.all(headers.map(async headers => (await app.inject({ url: '/me', headers })).json()))

  t.strictSame(users.map(({ claims }) => claims.name), names)
})

t.test('each call makes a user of its own, with the e-mail and the name that it names', async t => {
  const app = await guardedApp(t, { session })

  const ada = await app.inject({ url: '/me', headers: await signedIn(app, { email: 'Ada@Example.com', name: 'Ada' }) })
  const other = await app.inject({ url: '/me', headers: await signedIn(app) })

  t.match(ada.json(), { claims: { email: 'ada@example.com', name: 'Ada' } })
  t.match(await app.auth.findUser({ email: 'ada@example.com' }), { userId: ada.json().userId, name: 'Ada' })
  t.match(other.json(), { claims: { email: /@example\.com$/ } })
  t.not(other.json().userId, ada.json().userId)
})

t.test('a user of the store is signed in by id, with further claims', async t => {
  const app = await guardedApp(t, { session, store: new SqlAuthStore(':memory:') })
  const { userId } = (await app.inject({ url: '/me', headers: await signedIn(app) })).json()

  const headers = await signedIn(app, { userId, claims: { role: 'admin' } })

  t.match((await app.inject({ url: '/me', headers })).json(), { userId, claims: { role: 'admin' } })
})

t.test('the sign-in method is a password where the application has them, else its first provider, or the one that is named', async t => {
  const providerOf = async (options: AuthPluginOptions, provider?: string) => {
    const app = await guardedApp(t, { session, baseUrl: 'http://localhost:3000', ...options })
    const headers = await signedIn(app, provider === undefined ? {} : { provider })
    const { userId } = (await app.inject({ url: '/me', headers })).json()
    const user = await app.auth.findUser({ userId })
    return [(await app.auth.links(userId))[0]?.provider, user?.emailVerified]
  }

  t.strictSame(await providerOf({ local: localProvider(), providers: [github] }), ['local', false])
  t.strictSame(await providerOf({ providers: [github] }), ['github', true])
  t.strictSame(await providerOf({}), ['local', false])
  t.strictSame(await providerOf({ local: localProvider(), providers: [github] }, 'github'), ['github', true])
})

t.test('a user who signed in a while ago is signed in, and asked to reauthenticate', async t => {
  const signedInAt = new Date('2026-01-02T03:04:05.678Z')
  const app = await guardedApp(t, { session, local: localProvider() })
  app.get('/recent', { preHandler: app.auth.requireRecent({ within: 600 }) }, async request => request.authentication)
  app.get('/authentication', async request => request.authentication)

  const now = await app.inject({ url: '/recent', headers: await signedIn(app) })
  const headers = await signedIn(app, { signedInAt })
  const then = await app.inject({ url: '/recent', headers })
  const authentication = await app.inject({ url: '/authentication', headers })

  t.strictSame([now.statusCode, then.statusCode, then.json().code], [200, 403, 'reauthenticate'])
  t.strictSame(authentication.json(), {
    at: signedInAt.toISOString(),
    methods: [{ method: 'application', at: signedInAt.toISOString() }],
    secondFactor: false
  })
  t.equal((await app.inject({ url: '/me', headers })).statusCode, 200)
})

t.test('a user has authenticated by the methods that the test names, and needs no second factor for it', async t => {
  const app = await guardedApp(t, {
    session, dataSecret: 'a data secret of a test, 32 characters', secondFactor: new SecondFactor({ issuer: 'Shop', required: () => true })
  })
  app.get('/vault', { preHandler: app.auth.requireSecondFactor }, async request => request.authentication?.methods.map(({ method }) => method))

  const without = await app.inject({ url: '/vault', headers: await signedIn(app) })
  const withFactor = await app.inject({ url: '/vault', headers: await signedIn(app, { methods: ['password', 'totp'] }) })

  t.strictSame([without.statusCode, without.json().code], [403, 'second_factor_missing'])
  t.strictSame(withFactor.json(), ['password', 'totp'])
})

t.test('the user has no password that signs in', async t => {
  const app = await guardedApp(t, { session, local: localProvider() })
  await signedIn(app, { email: 'ada@example.com' })

  const { statusCode, body } = await app.inject({ method: 'POST', url: '/auth/local/login', payload: { email: 'ada@example.com', password: 'correct horse' } })

  t.equal(statusCode, 401, body)
})

const SESSIONS: Record<string, [options: AuthPluginOptions, before?: (app: FastifyInstance) => Promise<void>]> = {
  'cookies for https: alone': [{ session, baseUrl: 'https://app.example', providers: [github] }],
  'a cookie with a prefix that each answer renews': [
    { session: { ...session, rolling: true, saveUninitialized: true, cookieName: 'sid', cookiePrefix: 's:' } }
  ],
  'several secrets': [{ session: { secret: [SESSION_SECRET, 'the session secret of another year'] } }],
  'another prefix': [{ session, prefix: '/id' }],
  'a @fastify/session of its own': [{}, async app => {
    await app.register(fastifyCookie)
    await app.register(fastifySession, { secret: SESSION_SECRET, cookieName: 'own', cookie: { secure: true } })
  }],
  'a global hook that sends a cookie too': [{ session }, async app => {
    await app.register(fastifyCookie)
    app.addHook('onRequest', async (_request, reply) => { reply.setCookie('theme', 'dark').clearCookie('gone') })
  }]
}

for (const [name, [options, before]] of Object.entries(SESSIONS)) {
  t.test(`an application with ${name} knows the user, request after request, until the sign-out`, async t => {
    const app = await guardedApp(t, options, before)
    const headers = await signedIn(app)

    const answers = [await app.inject({ url: '/me', headers }), await app.inject({ url: '/me', headers })]
    await app.inject({ method: 'POST', url: `${options.prefix ?? '/auth'}/logout`, headers })
    const after = await app.inject({ url: '/me', headers })

    t.strictSame([...answers, after].map(({ statusCode }) => statusCode), [200, 200, 401])
  })
}

t.test('onSignIn is asked as at a first sign-in, and its refusal is what the call rejects with', async t => {
  const seen: unknown[] = []
  const app = await guardedApp(t, {
    session,
    onSignIn: ({ created, principal, request }) => {
      seen.push([created, request.headers['x-tenant']])
      if (principal.claims.role !== 'member') throw new SignInRefused('not_invited')
    }
  })

  await signedIn(app, { claims: { role: 'member' }, headers: { 'x-tenant': 'acme' } })
  await t.rejects(signedIn(app, { email: 'ada@example.com' }), { code: 'not_invited' })

  t.strictSame(seen, [[true, 'acme'], [true, undefined]])
  t.equal(await app.auth.findUser({ email: 'ada@example.com' }), null)
})

t.test('headers that are passed come back with the cookie', async t => {
  const app = await guardedApp(t, { session })

  const headers = await signedIn(app, { headers: { 'x-tenant': 'acme' } })

  t.strictSame(Object.keys(headers), ['x-tenant', 'cookie'])
})

t.test('a session that the application has written into is that of the sign-in', async t => {
  const seen: unknown[] = []
  const onSignIn: NonNullable<AuthPluginOptions['onSignIn']> = async ({ request }) => { seen.push(Reflect.get(request.session, 'invitation')) }
  for (const store of [new MemoryAuthStore(), new SqlAuthStore(':memory:')]) {
    const app = await startApp(t, { onSignIn, store, local: localProvider() }, {}, app => {
      app.get('/invitation', async request => {
        Reflect.set(request.session, 'invitation', 'from Ada')
        return 'welcome'
      })
    })
    const [cookie] = (await app.inject('/invitation')).cookies.map(({ name, value }) => `${name}=${value}`)

    const headers = await signedIn(app, { headers: { cookie: String(cookie) } })

    t.match((await app.inject({ url: '/auth/session', headers })).json(), { principal: { provider: 'local' } })
  }
  t.strictSame(seen, ['from Ada', 'from Ada'])
})

t.test('what cannot be signed in is refused', async t => {
  const app = await guardedApp(t, { session })
  await signedIn(app, { email: 'ada@example.com' })

  await t.rejects(signedIn(app, { email: 'ada@example.com' }), { code: 'exists' })
  await t.rejects(signedIn(app, { email: 'not an address' }), { code: 'invalid_email' })
  await t.rejects(signedIn(app, { userId: '00000000-0000-4000-8000-000000000000' }), { code: 'unknown_user' })
})

t.test('a hook of the application that answers first is named with its answer', async t => {
  const app = await guardedApp(t, { session }, async app => {
    app.addHook('onRequest', async (request, reply) => request.headers['x-tenant'] ?? reply.code(400).send('no tenant'))
  })

  await t.rejects(signedIn(app), { code: 'invalid_options', message: /answered 400 no tenant; pass what it asks for/ })
})

t.test('an application without the plugin is refused', async t => {
  const app = Fastify()
  t.teardown(() => app.close())

  await t.rejects(signedIn(app), { code: 'invalid_options', message: /^signedIn takes an application that has registered fastify-svc-auth/ })
})

t.test('the request that signed in does not sign in again', async t => {
  const requests: Array<{ url: string, headers: Record<string, string | string[] | undefined> }> = []
  const app = await startApp(t, {}, {}, app => { app.addHook('onRequest', async ({ url, headers }) => { requests.push({ url, headers }) }) })
  await signedIn(app)
  const [request] = requests
  t.ok(request)

  const response = await app.inject({ url: request?.url ?? '', headers: { ...request?.headers, cookie: '' } })

  t.strictSame([response.statusCode, response.json().principal], [200, null])
  t.equal(response.headers['set-cookie'], undefined)
})

t.test('it cannot be imported in production', async t => {
  setEnv(t, { NODE_ENV: 'production' })

  await t.rejects(import(new URL('../../lib/testing.ts?production', import.meta.url).href), {
    code: 'invalid_options',
    message: 'fastify-svc-auth/testing signs users in without a password or a provider, so it is refused with NODE_ENV=production; import it in tests only'
  })
})
