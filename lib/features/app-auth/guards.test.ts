import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { Accounts, type AuthPluginOptions, type AuthStore } from '../../index.js'
import type { Claims } from '../../claims.js'
import { AuthError } from '../../errors.js'
import { verifyToken } from '../tokens/user-tokens.js'
import type { RequiredClaims } from './guards.js'
import { MemoryAuthStore } from '../../engines/memory/memory.js'
import { SESSION_SECRET, localProvider, startApp } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import type { Guard } from '../../core/guard.js'

const USER_ID = '6b1e1c9e-0c51-4c3a-9f44-2f0e8a2f5d11'
const store = new MemoryAuthStore()
const requireUser = ({ auth }: FastifyInstance): Guard => auth.requireUser
const requireClaims = (required: RequiredClaims) => ({ auth }: FastifyInstance): Guard => auth.requireClaims(required)

await new Accounts(store).createUser({
  userId: USER_ID,
  email: null,
  emailVerified: false,
  name: null,
  claims: {},
  link: { provider: 'dev', subject: '1', claims: { sub: '1' } }
})

/** What a guarded route answers to somebody with these claims; null is anonymous. */
async function statusFor (t: Test, guard: (app: FastifyInstance) => Guard, claims: Partial<Claims> | null, users: AuthStore = store): Promise<number> {
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  await app.register(authPlugin, { store: users, session: { secret: SESSION_SECRET, store: 'memory' } })
  app.addHook('onRequest', async request => {
    const principal = { userId: USER_ID, provider: 'dev', claims: { sub: '1', ...claims } }
    if (claims !== null) request.session.svcAuth = { principal, generation: 0, at: Date.now(), methods: [] }
  })
  app.get('/', { preHandler: guard(app) }, async () => 'passed')
  return (await app.inject('/')).statusCode
}

t.test('requireUser lets signed-in users pass', async t => {
  t.equal(await statusFor(t, requireUser, {}), 200)
  t.equal(await statusFor(t, requireUser, null), 401)
})

t.test('requireClaims lets users pass whose claims equal the required ones', async t => {
  const pairs: Array<[required: Claims[string], claim: Claims[string]]> = [
    ['admin', 'admin'], [1, 1], [true, true], [false, false], [null, null], ['', ''],
    [{ a: { b: [1] } }, { a: { b: [1] } }], [[1, 2], [1, 2]], [[], []]
  ]

  for (const [required, claim] of pairs) t.equal(await statusFor(t, requireClaims({ claim: required }), { claim }), 200, JSON.stringify(required))
})

t.test('requireClaims lets users pass whose list includes the required value', async t => {
  const pairs: Array<[required: Claims[string], claim: Claims[string]]> = [
    ['admin', ['member', 'admin']], [1, [1]], [null, [null]], [{ a: 1 }, [{ a: 1 }]], [['a'], [['a']]]
  ]

  for (const [required, claim] of pairs) t.equal(await statusFor(t, requireClaims({ claim: required }), { claim }), 200, JSON.stringify(required))
})

t.test('requireClaims forbids users whose claims are merely alike', async t => {
  const pairs: Array<[required: Claims[string], claim: Claims[string]]> = [
    ['admin', 'Admin'], ['admin', 'administrator'], ['admin', 'member,admin'], ['admin', { admin: true }],
    ['admin', [['admin']]], ['admin', []], ['0', ['admin']],
    [1, '1'], [1, true], [true, 'true'], [true, 1], [false, 0], [false, null], [null, false], [null, ''], ['', null],
    [{ a: 1 }, { a: 1, b: 2 }], [{ a: 1, b: 2 }, { a: 1 }], [{}, []], [[], {}], [['a', 'b'], ['b', 'a']], [['a'], ['a', 'b']], [['a'], 'a']
  ]

  for (const [required, claim] of pairs) {
    t.equal(
      await statusFor(t, requireClaims({ claim: required }), { claim }),
      403,
    `${JSON.stringify(required)} against ${JSON.stringify(claim)}`
    )
  }
})

t.test('requireClaims forbids users without one of several claims, and all users when a required value is undefined', async t => {
  t.equal(await statusFor(t, requireClaims({ role: 'admin', tier: 1 }), { role: 'admin', tier: 1 }), 200)
  t.equal(await statusFor(t, requireClaims({ role: 'admin', tier: 1 }), { role: 'admin' }), 403)
  t.equal(await statusFor(t, requireClaims({ role: 'admin', tier: 1 }), { tier: 1 }), 403)
  t.equal(await statusFor(t, requireClaims({ role: undefined }), {}), 403, 'a value that is missing by mistake lets nobody pass')
  t.equal(await statusFor(t, requireClaims({ role: undefined }), { role: 'admin' }), 403)
})

t.test('attack 54: inherited members of objects are not claims', async t => {
  t.equal(await statusFor(t, requireClaims({ constructor: Object.prototype.constructor as never }), {}), 403)
  t.equal(await statusFor(t, requireClaims(JSON.parse('{"__proto__":{}}')), {}), 403)
})

t.test('requireClaims is 401 for anonymous requests, whatever is required', async t => {
  t.equal(await statusFor(t, requireClaims({ role: 'admin' }), null), 401)
  t.equal(await statusFor(t, requireClaims({}), null), 401)
  t.equal(await statusFor(t, requireClaims({}), {}), 200)
})

t.test('requireClaims refuses anything but an object', async t => {
  const app = await startApp(t)
  for (const required of [undefined, null, 'admin', ['role'], 1, new Map()]) {
    t.throws(
      () => app.auth.requireClaims(required as never),
      { name: 'OptionsError', message: /^requireClaims takes an object of claims/ }
    )
  }
})

t.test('attack 51: a token passes the guard of its use, and no other one', async t => {
  const local = localProvider()
  const app = await startApp(t, { local }, {}, app => {
    app.get('/any', { preHandler: app.auth.requireBearer }, async request => request.token?.sub)
    app.get('/audience', { preHandler: app.auth.requireBearerFor({ audience: 'reports' }) }, async request => request.token?.sub)
    app.get('/purpose', { preHandler: app.auth.requireBearerFor({ purpose: 'export' }) }, async request => request.token?.sub)
    app.get('/both', { preHandler: app.auth.requireBearerFor({ purpose: 'export', audience: 'reports' }) }, async request => request.token?.sub)
  })
  const uses = {
    '/any': {},
    '/audience': { audience: 'reports' },
    '/purpose': { purpose: 'export' },
    '/both': { purpose: 'export', audience: 'reports' },
    nowhere: { purpose: 'reports', audience: 'export' }
  }

  for (const [right, use] of Object.entries(uses)) {
    const authorization = `Bearer ${await local.issueIdToken('service', {}, 60, use)}`
    for (const url of Object.keys(uses).filter(url => url !== 'nowhere')) {
      const response = await app.inject({ url, headers: { authorization } })
      t.strictSame(
        [response.statusCode, response.headers['www-authenticate']],
        url === right ? [200, undefined] : [401, 'Bearer error="invalid_token"'],
        `${JSON.stringify(use)} at ${url}`
      )
    }
  }
  for (const use of [
    undefined,
    null,
    {},
    'reports',
    { audience: undefined },
    { audience: '' },
    { purpose: 5 },
    { purpose: 'export', audience: undefined },
    { audiance: 'reports' }
  ]) {
    t.throws(() => app.auth.requireBearerFor(use as never), { name: 'OptionsError' })
  }
})

t.test('attack 59: what a store says of its failure is what the application hears', async t => {
  const failure = new AuthError('unavailable', { message: 'Accounts are being moved.' })
  const store = Object.assign(new MemoryAuthStore(), { async status () { throw failure } })
  const auth = { local: localProvider(), accounts: new Accounts(store), connectionRule: null }
  await t.rejects(verifyToken(auth, await localProvider().issueIdToken(USER_ID)), failure)
})

t.test('attack 59: a store that throws before it answers is unavailable, and no request passes', async t => {
  const broken = Object.assign(new MemoryAuthStore(), { status () { throw new Error('connect ECONNREFUSED') } })
  t.equal(await statusFor(t, requireUser, {}, broken), 503)

  const app = await startApp(
    t,
    { local: localProvider(), store: broken },
    {},
    app => { app.get('/machine', { preHandler: app.auth.requireBearer }, async () => 'passed') }
  )
  const response = await app.inject({ url: '/machine', headers: { authorization: `Bearer ${await localProvider().issueIdToken(USER_ID)}` } })
  t.strictSame([response.statusCode, response.headers['www-authenticate']], [503, undefined], 'which is no fault of the token')
})

const HTML = { accept: 'text/html' }

/** An application whose route `/` has this guard, a user of it who is a member, and a token of theirs. */
async function startGuarded (t: Test, guardOf: (app: FastifyInstance) => Guard, options: AuthPluginOptions = {}) {
  const local = localProvider()
  const app = await startApp(t, { local, loginPage: '/login', ...options }, {}, app => {
    app.addHook('onRequest', async (_request, reply) => { reply.header('x-kept', 'as it was').header('set-cookie', 'a=1') })
    app.get('/', { preHandler: guardOf(app) }, async request => ({ user: request.principal?.userId ?? null, token: request.token?.sub ?? null }))
  })
  const member = new Browser(app)
  const { userId } = (await member.post('/auth/local/register', { email: 'ada@example.com', password: 'correct horse' })).json()
  await app.auth.grant(userId, { role: 'member' })
  await member.post('/auth/local/login', { email: 'ada@example.com', password: 'correct horse' })
  return { app, userId, member, visitor: new Browser(app), bearer: { authorization: `Bearer ${await local.issueIdToken(userId)}` } }
}

t.test('anyOf lets a request pass that one of its guards lets pass, whichever comes first', async t => {
  const orders: Array<(app: FastifyInstance) => Guard> = [
    ({ auth }) => auth.anyOf(auth.requireUser, auth.requireBearer),
    ({ auth }) => auth.anyOf(auth.requireBearer, auth.requireUser),
    ({ auth }) => auth.anyOf(auth.requireClaims({ role: 'admin' }), auth.requireClaims({ role: 'member' }), auth.requireBearer),
    ({ auth }) => auth.anyOf(auth.anyOf(auth.requireClaims({ role: 'admin' }), auth.requireBearer), auth.requireClaims({ role: 'member' })),
    ({ auth }) => auth.anyOf(auth.requireBearerFor({ purpose: 'export' }), auth.anyOf(auth.requireBearer, auth.requireUser))
  ]
  for (const [index, guardOf] of orders.entries()) {
    const { member, visitor, userId, bearer } = await startGuarded(t, guardOf)

    const byCookie = await member.get('/', HTML)
    t.strictSame([byCookie.statusCode, byCookie.body], [200, JSON.stringify({ user: userId, token: null })], `cookie, ${index}`)
    t.equal(byCookie.headers['www-authenticate'], undefined, 'a refused guard leaves no header')
    const byToken = await visitor.get('/', { ...HTML, ...bearer })
    t.strictSame(
      [byToken.statusCode, byToken.body, byToken.headers.location],
      [200, JSON.stringify({ user: null, token: userId }), undefined],
      `token, ${index}`
    )
    t.ok((await visitor.get('/', HTML)).statusCode >= 302, `nothing, ${index}`)
  }
})

t.test('the last guard of anyOf answers, alone', async t => {
  const first = await startGuarded(t, ({ auth }) => auth.anyOf(auth.requireUser, auth.requireBearer))
  const refused = await first.visitor.get('/', HTML)
  t.strictSame(
    [refused.statusCode, refused.json().code, refused.headers['www-authenticate'], refused.headers.location],
    [401, 'invalid_token', 'Bearer', undefined]
  )

  const second = await startGuarded(t, ({ auth }) => auth.anyOf(auth.requireBearer, auth.anyOf(auth.requireClaims({ role: 'admin' }), auth.requireUser)))
  const redirected = await second.visitor.get('/', HTML)
  t.strictSame([redirected.statusCode, redirected.headers.location, redirected.headers['www-authenticate']], [302, '/login?next=%2F', undefined])

  const third = await startGuarded(t, ({ auth }) => auth.anyOf(auth.requireBearer, auth.requireClaims({ role: 'admin' })))
  t.equal((await third.member.get('/', HTML)).json().code, 'forbidden')
})

t.test('a guard of the application that refuses in anyOf leaves no trace, also of the guards that it asks itself', async t => {
  const { visitor, member, userId, bearer } = await startGuarded(t, app => app.auth.anyOf(
    async (request, reply) => {
      reply.headers({ 'x-kept': 'changed', 'x-trace': 'yes' }).header('set-cookie', 'b=2')
      await app.auth.requireBearer(request, reply)
      throw Object.assign(new Error('not this client'), { statusCode: 403 })
    },
    async (request, reply) => {
      await app.auth.requireUser(request, reply)
      throw Object.assign(new Error('not this user'), { statusCode: 403 })
    },
    async (request, reply) => {
      t.strictSame([request.token, reply.getHeaders()], [null, { 'x-kept': 'as it was', 'set-cookie': 'a=1' }])
    }
  ))
  t.strictSame((await visitor.get('/', { ...HTML, ...bearer })).json(), { user: null, token: null })
  t.strictSame((await member.get('/', HTML)).json(), { user: userId, token: null })
})

t.test('a failure that is not a refusal ends anyOf', async t => {
  const store = new MemoryAuthStore()
  const { member } = await startGuarded(t, ({ auth }) => auth.anyOf(auth.requireUser, auth.requireBearer), { store })
  store.status = async () => { throw new Error('connect ECONNREFUSED') }
  t.equal((await member.get('/')).json().code, 'unavailable')
})

t.test('anyOf refuses anything but guards', async t => {
  const { auth } = await startApp(t)
  for (const guards of [[], [undefined], [auth.requireUser, 'requireBearer'], [[auth.requireUser]]]) {
    t.throws(() => auth.anyOf(...guards as [Guard]), { name: 'OptionsError', message: /^anyOf takes guards/ })
  }
})

t.test('user is the principal of a request, and unauthenticated where there is none', async t => {
  const app = await startApp(t, { local: localProvider() }, {}, app => {
    app.get('/user', async request => app.auth.user(request))
  })
  const browser = new Browser(app)
  const anonymous = await browser.get('/user')
  t.strictSame([anonymous.statusCode, anonymous.json().code], [401, 'unauthenticated'])

  const principal = (await browser.post('/auth/local/register', { email: 'ada@example.com', password: 'correct horse' })).json()
  t.strictSame((await browser.get('/user')).json(), principal)
})
