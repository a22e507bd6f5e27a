import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import type { Claims } from '../lib/claims.js'
import { AuthError } from '../lib/errors.js'
import { verifyToken } from '../lib/flows/local.js'
import { type Guard, type RequiredClaims, requireClaims as requireClaimsOf, requireUser as requireUserOf } from '../lib/guards.js'
import authPlugin from '../lib/index.js'
import { MemoryAuthStore } from '../lib/store/memory.js'
import { SESSION_SECRET, localProvider, startApp } from './helpers/app.js'
import { Browser } from './helpers/browser.js'

const USER_ID = '6b1e1c9e-0c51-4c3a-9f44-2f0e8a2f5d11'
const store = new MemoryAuthStore()
const settings = { store, local: null, loginPage: null, baseUrl: null }
const requireUser = requireUserOf(settings)
const requireClaims = (required: RequiredClaims) => requireClaimsOf(required, settings)

t.before(async () => {
  await store.createUser({ userId: USER_ID, email: null, emailVerified: false, name: null, claims: {}, link: { provider: 'dev', subject: '1', claims: { sub: '1' } } })
})

/** What a guarded route answers to somebody with these claims; null is anonymous. */
async function statusFor (t: Test, guard: Guard, claims: Partial<Claims> | null): Promise<number> {
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  await app.register(fastifyCookie)
  await app.register(fastifySession, { secret: SESSION_SECRET, cookie: { secure: false } })
  app.addHook('onRequest', async request => {
    if (claims !== null) request.session.user = { userId: USER_ID, provider: 'dev', claims: { sub: '1', ...claims } }
  })
  app.get('/', { preHandler: guard }, async () => 'passed')
  return (await app.inject('/')).statusCode
}

t.test('requireUser lets whoever is signed in pass', async t => {
  t.equal(await statusFor(t, requireUser, {}), 200)
  t.equal(await statusFor(t, requireUser, null), 401)
})

t.test('requireClaims lets pass whose claims equal the required ones', async t => {
  const pairs: Array<[required: Claims[string], claim: Claims[string]]> = [
    ['admin', 'admin'], [1, 1], [true, true], [false, false], [null, null], ['', ''],
    [{ a: { b: [1] } }, { a: { b: [1] } }], [[1, 2], [1, 2]], [[], []]
  ]

  for (const [required, claim] of pairs) t.equal(await statusFor(t, requireClaims({ claim: required }), { claim }), 200, JSON.stringify(required))
})

t.test('requireClaims lets pass whose list includes the required value', async t => {
  const pairs: Array<[required: Claims[string], claim: Claims[string]]> = [
    ['admin', ['member', 'admin']], [1, [1]], [null, [null]], [{ a: 1 }, [{ a: 1 }]], [['a'], [['a']]]
  ]

  for (const [required, claim] of pairs) t.equal(await statusFor(t, requireClaims({ claim: required }), { claim }), 200, JSON.stringify(required))
})

t.test('requireClaims forbids whose claims are merely alike', async t => {
  const pairs: Array<[required: Claims[string], claim: Claims[string]]> = [
    ['admin', 'Admin'], ['admin', 'administrator'], ['admin', 'member,admin'], ['admin', { admin: true }], ['admin', [['admin']]], ['admin', []], ['0', ['admin']],
    [1, '1'], [1, true], [true, 'true'], [true, 1], [false, 0], [false, null], [null, false], [null, ''], ['', null],
    [{ a: 1 }, { a: 1, b: 2 }], [{ a: 1, b: 2 }, { a: 1 }], [{}, []], [[], {}], [['a', 'b'], ['b', 'a']], [['a'], ['a', 'b']], [['a'], 'a']
  ]

  for (const [required, claim] of pairs) t.equal(await statusFor(t, requireClaims({ claim: required }), { claim }), 403, `${JSON.stringify(required)} against ${JSON.stringify(claim)}`)
})

t.test('requireClaims forbids who lacks one of several claims, and everybody when a required value is undefined', async t => {
  t.equal(await statusFor(t, requireClaims({ role: 'admin', tier: 1 }), { role: 'admin', tier: 1 }), 200)
  t.equal(await statusFor(t, requireClaims({ role: 'admin', tier: 1 }), { role: 'admin' }), 403)
  t.equal(await statusFor(t, requireClaims({ role: 'admin', tier: 1 }), { tier: 1 }), 403)
  t.equal(await statusFor(t, requireClaims({ role: undefined }), {}), 403, 'a value that is missing by mistake lets nobody pass')
  t.equal(await statusFor(t, requireClaims({ role: undefined }), { role: 'admin' }), 403)
})

t.test('attack 54: what every object inherits is no claim', async t => {
  t.equal(await statusFor(t, requireClaims({ constructor: Object.prototype.constructor as never }), {}), 403)
  t.equal(await statusFor(t, requireClaims(JSON.parse('{"__proto__":{}}')), {}), 403)
})

t.test('requireClaims is 401 for anonymous requests, whatever is required', async t => {
  t.equal(await statusFor(t, requireClaims({ role: 'admin' }), null), 401)
  t.equal(await statusFor(t, requireClaims({}), null), 401)
  t.equal(await statusFor(t, requireClaims({}), {}), 200)
})

t.test('requireClaims wants an object', async t => {
  for (const required of [undefined, null, 'admin', ['role'], 1, new Map()]) t.throws(() => requireClaims(required as never), { name: 'OptionsError', message: /^requireClaims takes an object of claims/ })
})

t.test('attack 51: a token passes the guard of its use, and no other one', async t => {
  const local = localProvider()
  const app = await startApp(t, { local }, {}, app => {
    app.get('/any', { preHandler: app.auth.requireBearer }, async request => request.token?.sub)
    app.get('/audience', { preHandler: app.auth.requireBearerFor({ audience: 'reports' }) }, async request => request.token?.sub)
    app.get('/purpose', { preHandler: app.auth.requireBearerFor({ purpose: 'export' }) }, async request => request.token?.sub)
    app.get('/both', { preHandler: app.auth.requireBearerFor({ purpose: 'export', audience: 'reports' }) }, async request => request.token?.sub)
  })
  const uses = { '/any': {}, '/audience': { audience: 'reports' }, '/purpose': { purpose: 'export' }, '/both': { purpose: 'export', audience: 'reports' }, nowhere: { purpose: 'reports', audience: 'export' } }

  for (const [right, use] of Object.entries(uses)) {
    const authorization = `Bearer ${await local.issueIdToken('service', {}, 60, use)}`
    for (const url of Object.keys(uses).filter(url => url !== 'nowhere')) {
      const response = await app.inject({ url, headers: { authorization } })
      t.strictSame([response.statusCode, response.headers['www-authenticate']], url === right ? [200, undefined] : [401, 'Bearer error="invalid_token"'], `${JSON.stringify(use)} at ${url}`)
    }
  }
  for (const use of [undefined, null, {}, 'reports', { audience: undefined }, { audience: '' }, { purpose: 5 }, { purpose: 'export', audience: undefined }, { audiance: 'reports' }]) {
    t.throws(() => app.auth.requireBearerFor(use as never), { name: 'OptionsError' })
  }
})

t.test('attack 59: what a store says of its failure is what the application hears', async t => {
  const failure = new AuthError('unavailable', { message: 'Accounts are being moved.' })
  const store = Object.assign(new MemoryAuthStore(), { async findUser () { throw failure } })
  await t.rejects(verifyToken(localProvider(), store, await localProvider().issueIdToken(USER_ID)), failure)
})

t.test('attack 59: a store that throws before it answers is unavailable, and lets nobody pass', async t => {
  const broken = Object.assign(new MemoryAuthStore(), { findUser () { throw new Error('connect ECONNREFUSED') } })
  t.equal(await statusFor(t, requireUserOf({ ...settings, store: broken }), {}), 503)

  const app = await startApp(t, { local: localProvider(), store: broken }, {}, app => { app.get('/machine', { preHandler: app.auth.requireBearer }, async () => 'passed') })
  const response = await app.inject({ url: '/machine', headers: { authorization: `Bearer ${await localProvider().issueIdToken(USER_ID)}` } })
  t.strictSame([response.statusCode, response.headers['www-authenticate']], [503, undefined], 'which is no fault of the token')
})

t.test('what an application of its own keeps as the user of its session signs nobody in, and stays', async t => {
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  await app.register(fastifyCookie)
  await app.register(fastifySession, { secret: SESSION_SECRET, cookie: { secure: false } })
  await app.register(authPlugin, {})
  app.get('/visit', async request => {
    request.session.user = { id: 7 } as never
    return {}
  })
  app.get('/guarded', { preHandler: app.auth.requireUser }, async () => 'passed')
  app.get('/session', async request => request.session.user)
  const browser = new Browser(app)
  await browser.get('/visit')

  t.equal((await browser.get('/guarded')).statusCode, 401)
  t.strictSame((await browser.get('/session')).json(), { id: 7 })
})
