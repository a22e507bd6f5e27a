/** Attack 142: answers behind a guard, in a cache that several clients share. */
import fastifyCookie from '@fastify/cookie'
import fastifyCors from '@fastify/cors'
import fastifySession from '@fastify/session'
import fastifySwagger from '@fastify/swagger'
import fastifySwaggerUi from '@fastify/swagger-ui'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { AuthError, type AuthPluginOptions, type Guard, MemoryAuthStore } from '../../lib/index.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { SESSION_SECRET, localProvider, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { DATA_SECRET } from '../helpers/factor-app.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const HTML = { accept: 'text/html' }

type Auth = FastifyInstance['auth']
/** What an answer says to caches. */
type Caching = [status: number, cacheControl: unknown, vary: unknown]

interface Guarded {
  /** What the answers to a member say. */
  member: (path: string, headers?: Record<string, string>) => Promise<Caching>
  /** Those to a visitor. */
  visitor: (path: string, headers?: Record<string, string>) => Promise<Caching>
}

async function start (t: Test, extend: (app: FastifyInstance) => void, options: AuthPluginOptions = {}): Promise<Guarded> {
  const local = localProvider()
  const secondFactor = new SecondFactor({ issuer: 'Shop' })
  const app = await startApp(t, { local, secondFactor, dataSecret: DATA_SECRET, ...options }, {}, extend)
  const browser = new Browser(app)
  const { userId } = (await browser.post('/auth/local/register', ADA)).json()
  await app.auth.grant(userId, { role: 'member' })
  await browser.post('/auth/local/login', ADA)
  const authorization = `Bearer ${await local.issueIdToken(userId)}`
  const ask = (browser: Browser, own = {}): Guarded['member'] => async (path, headers = {}) => {
    const answer = await browser.get(path, { ...own, ...headers })
    return [answer.statusCode, answer.headers['cache-control'], answer.headers.vary]
  }
  return { member: ask(browser, { authorization }), visitor: ask(new Browser(app)) }
}

/** Guards, the request headers that they read, and what a visitor gets who asks for a page. */
const GUARDS: Array<[name: string, guardOf: (auth: Auth) => Guard, vary: string, page: 302 | 401]> = [
  ['requireUser', auth => auth.requireUser, 'Cookie', 302],
  ['requireClaims', auth => auth.requireClaims({ role: 'member' }), 'Cookie', 302],
  ['requireRecent', auth => auth.requireRecent({ within: 600 }), 'Cookie', 302],
  ['requireBearer', auth => auth.requireBearer, 'Authorization', 401],
  ['anyOf', auth => auth.anyOf(auth.requireBearer, auth.requireUser), 'Cookie, Authorization', 302],
  ['anyOf in another order', auth => auth.anyOf(auth.requireUser, auth.requireBearer), 'Cookie, Authorization', 401],
  ['anyOf in anyOf', auth => auth.anyOf(auth.requireClaims({ role: 'admin' }), auth.anyOf(auth.requireBearer)), 'Cookie, Authorization', 401]
]

for (const [name, guardOf, vary, page] of GUARDS) {
  t.test(`attack 142: an answer behind ${name} is private and depends on what the guard reads; its refusal is not stored`, async t => {
    const { member, visitor } = await start(t, app => {
      const preHandler = guardOf(app.auth)
      app.get('/', { preHandler }, async () => 'of the user')
      app.get('/early', { onRequest: guardOf(app.auth) }, async () => 'of the user')
      app.get('/shared', { preHandler }, async (_request, reply) => reply.header('cache-control', 'public, max-age=60').send('of all'))
      app.get('/failing', { preHandler }, async () => { throw new AuthError('forbidden') })
    }, { loginPage: '/sign-in' })

    for (const path of ['/', '/early']) t.strictSame(await member(path), [200, 'private', vary], path)
    t.strictSame(await member('/shared'), [200, 'public, max-age=60', vary], 'what the handler says goes first')
    t.strictSame(await member('/failing'), [403, 'private', vary])
    for (const path of ['/', '/early', '/shared']) t.strictSame(await visitor(path), [401, 'no-store', vary], path)
    t.strictSame(await visitor('/', HTML), [page, 'no-store', vary])
  })
}

t.test('attack 142: an answer that sets the session cookie, as each does with rolling, is private, and others stay as they are', async t => {
  const said = ['public, max-age=60, immutable', 'Public,s-maxage=60', 'max-age=60', 'no-store', 'private, max-age=60']
  const expected = ['private, max-age=60, immutable', 'private', 'private, max-age=60', 'no-store', 'private, max-age=60']
  const local = localProvider()
  const app = await startApp(t, { local, session: { secret: SESSION_SECRET, rolling: true } }, {}, app => {
    for (const [index, cacheControl] of said.entries()) {
      app.get(`/${index}`, async (_request, reply) => reply.header('cache-control', cacheControl).send('a file'))
    }
  })
  const [member, visitor] = [new Browser(app), new Browser(app)]
  await member.post('/auth/local/register', ADA)
  const ask = async (browser: Browser) => Promise.all(said.map(async (_, index) => (await browser.get(`/${index}`)).headers))

  const toMember = await ask(member)
  t.ok(toMember.every(headers => headers['set-cookie'] !== undefined))
  t.strictSame(toMember.map(headers => headers['cache-control']), expected)
  t.strictSame((await ask(visitor)).map(headers => headers['cache-control']), said)
})

t.test('attack 142: no refusal of a guard is stored, whatever a hook of the application says of all answers', async t => {
  const store = new MemoryAuthStore()
  const { member } = await start(t, app => {
    const { requireClaims, requireVerified, requireSecondFactor, requireRecent, requireBearerFor } = app.auth
    app.addHook('onRequest', async (_request, reply) => { reply.header('cache-control', 'public, max-age=60') })
    app.get('/claims', { preHandler: requireClaims({ role: 'admin' }) }, async () => 'passed')
    app.get('/verified', { preHandler: requireVerified }, async () => 'passed')
    app.get('/factor', { preHandler: requireSecondFactor }, async () => 'passed')
    app.get('/recent', { preHandler: requireRecent({ within: 1e-9 }) }, async () => 'passed')
    app.get('/use', { preHandler: requireBearerFor({ audience: 'reports' }) }, async () => 'passed')
    app.get('/user', { preHandler: app.auth.requireUser }, async () => 'passed')
  }, { store })
  for (const path of ['/claims', '/verified', '/factor', '/recent']) t.strictSame(await member(path), [403, 'no-store', 'Cookie'], path)
  t.strictSame(await member('/use'), [401, 'no-store', 'Authorization'])
  t.strictSame(await member('/user'), [200, 'public, max-age=60', 'Cookie'], 'which counts for what a guard lets pass')
  store.status = async () => { throw new Error('connect ECONNREFUSED') }
  store.findUser = async () => { throw new Error('connect ECONNREFUSED') }
  t.strictSame(await member('/user'), [503, 'no-store', 'Cookie'])
})

t.test('attack 142: what a handler writes into Vary is kept', async t => {
  const given: Array<[vary: string | string[], merged: string]> = [
    ['Accept', 'Accept, Cookie'], ['accept-encoding,  Origin', 'accept-encoding, Origin, Cookie'], ['cookie', 'Cookie'], ['', 'Cookie'],
    ['COOKIE, Accept', 'Cookie, Accept'], ['X-Cookie', 'X-Cookie, Cookie'], ['*', '*'], ['Accept, *', '*'],
    [['Accept', 'Origin'], 'Accept, Origin, Cookie']
  ]
  const { member } = await start(t, app => {
    for (const [index, [vary]] of given.entries()) {
      app.get(`/${index}`, { preHandler: app.auth.requireUser }, async (_request, reply) => reply.header('vary', vary).send('of the user'))
    }
  })
  for (const [index, [vary, merged]] of given.entries()) t.strictSame(await member(`/${index}`), [200, 'private', merged], String(vary))
})

t.test('attack 142: a guard for a whole context, one that a hook calls, and one behind another one count too', async t => {
  const { member, visitor } = await start(t, app => {
    app.register(async scope => {
      scope.addHook('preHandler', app.auth.requireUser)
      scope.get('/context', async () => 'of the user')
    })
    app.get('/called', { preHandler: async (request, reply) => app.auth.requireUser(request, reply) }, async () => 'of the user')
    app.get('/both', { preHandler: [app.auth.requireBearer, app.auth.requireUser] }, async () => 'of the user')
    app.get('/none', async () => 'of all')
  })
  for (const path of ['/context', '/called']) {
    t.strictSame(await member(path), [200, 'private', 'Cookie'], path)
    t.strictSame(await visitor(path), [401, 'no-store', 'Cookie'], path)
  }
  t.strictSame(await member('/both'), [200, 'private', 'Authorization, Cookie'])
  t.strictSame(await member('/none'), [200, undefined, undefined], 'other routes say what they said')
})

t.test('attack 142: beside @fastify/cors, @fastify/static and a session of the application', async t => {
  const origin = { origin: 'https://front.example' }
  for (const isOwn of [false, true]) {
    const app: FastifyInstance = Fastify()
    t.teardown(() => app.close())
    await app.register(fastifyCors, { origin: ['https://front.example'], credentials: true })
    if (isOwn) {
      await app.register(fastifyCookie)
      await app.register(fastifySession, { secret: SESSION_SECRET, cookie: { secure: false } })
    }
    await app.register(authPlugin, { local: localProvider(), ...(!isOwn && { session: { secret: SESSION_SECRET } }) })
    await app.register(fastifySwagger)
    await app.register(async scope => {
      scope.addHook('preHandler', app.auth.requireUser)
      await scope.register(fastifySwaggerUi)
      scope.get('/page', async () => 'of the user')
    })
    const browser = new Browser(app)
    await browser.post('/auth/local/register', ADA)

    t.match((await browser.get('/page', origin)).headers, { 'cache-control': 'private', vary: 'Origin, Cookie' })
    const file = '/documentation/static/swagger-ui.css'
    const { statusCode, headers } = await browser.get(file, origin)
    t.match([statusCode, headers['cache-control'], headers.vary], [200, /^public/, /^Origin.*, Cookie$/], 'the default of @fastify/static')
    t.match(await app.inject({ url: file, headers: origin }), { statusCode: 401, headers: { 'cache-control': 'no-store' } })
  }
})
