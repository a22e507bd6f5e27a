import { once } from 'node:events'
import { type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import { createServer, request as requestSecurely } from 'node:https'
import { text } from 'node:stream/consumers'
import fastifyCookie, { Signer } from '@fastify/cookie'
import fastifySession from '@fastify/session'
import Fastify, { type FastifyInstance, type FastifyServerOptions, type LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { type AuthPluginOptions, type AuthStore, MemoryAuthStore, SignInRefused, SqlAuthStore } from '../../lib/index.js'
import type { AuthChannel } from '../../lib/audit.js'
import { SESSION_SECRET, localProvider, startApp, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { selfSigned } from '../helpers/certificate.js'
import { advanceClock } from '../helpers/clock.js'
import { deferred } from '../helpers/deferred.js'
import { listen } from '../helpers/loopback.js'
import { OwnProvider, identityOf, leaveFor, linkAt, postLogin, signInAt } from '../helpers/own-provider.js'
import { type Kept, SHARED_SESSIONS } from '../helpers/session-stores.js'
import { sessionIdOf, stored } from '../helpers/shared-apps.js'

declare module 'fastify' {
  interface Session {
    cart?: string
    _csrf?: string
  }
}

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const GRACE = { email: 'grace@example.com', password: 'a nanosecond of wire' }
const DAY_MS = 86_400_000

/** Ways to sign in as Grace. */
const WAYS: ReadonlyArray<readonly [name: string, signIn: (browser: Browser) => Promise<LightMyRequestResponse>]> = [
  ['register', browser => browser.post('/auth/local/register', GRACE)],
  ['login', browser => browser.post('/auth/local/login', GRACE)],
  ['callback', browser => signInAt(browser, 'a', { subject: 'grace-at-a' })]
]

/** An application of which the tests see the sessions. */
interface Setup {
  app: FastifyInstance
  store: AuthStore
  kept: Kept
}

function addRoutes (app: FastifyInstance): void {
  app.get('/cart', async ({ session }) => ({ cart: session.cart ?? null, csrf: session._csrf ?? null }))
  app.get('/plant', async ({ session }) => Object.assign(session, { cart: 'planted', _csrf: 'known to the attacker' }).cart)
  app.get('/private', { preHandler: app.auth.requireUser }, async () => 'private')
  app.get('/admin', { preHandler: app.auth.requireClaims({ role: 'admin' }) }, async () => 'administration')
  app.get('/refreshed', { preHandler: [app.auth.refresh, app.auth.requireUser] }, async () => 'private')
  app.get('/api', { preHandler: app.auth.requireBearer }, async request => request.token)
  app.get('/reports', { preHandler: app.auth.requireBearerFor({ audience: 'reports' }) }, async request => request.token)
}

async function start (
  t: Test,
  kept: Kept = { store: new MemoryAuthStore(), sessions: undefined },
  { session, ...options }: AuthPluginOptions = {},
  server: FastifyServerOptions = {},
  extend: (app: FastifyInstance) => void = () => {}
): Promise<Setup> {
  const { store, sessions } = kept
  const app = await startApp(t, {
    baseUrl: 'http://app.example',
    providers: [new OwnProvider('a'), new OwnProvider('b')],
    local: localProvider(),
    store,
    rateLimit: false,
    session: { secret: SESSION_SECRET, store: sessions, ...session },
    ...options
  }, server, app => {
    addRoutes(app)
    extend(app)
  })
  return { app, store, kept }
}

/** The cookies that a browser has now, kept by somebody else: an answer that clears them changes nothing for him. */
function stolenFrom ({ app, cookies }: Browser): () => Browser {
  const copy = new Map(cookies)
  return () => new Browser(app, copy)
}

/** The users of whom the channel says that they signed out, from now on. */
function eventsOf (channel: AuthChannel): string[] {
  const revoked: string[] = []
  channel.on('revoke', userId => { revoked.push(userId) })
  return revoked
}

async function isPresent (store: AuthStore, email: string): Promise<boolean> {
  return await store.findUser({ email }) !== null
}

for (const [kind, keep] of SHARED_SESSIONS) {
  t.test(`the rules hold with ${kind}`, async t => {
    for (const [way, signIn] of WAYS) {
      t.test(`attack 33: ${way} leaves an attacker who knew the session before with nothing`, async t => {
        const { app, kept } = await start(t, await keep(t))
        if (way === 'login') await new Browser(app).post('/auth/local/register', GRACE)
        const victim = new Browser(app)
        await victim.get('/plant')
        const attacker = stolenFrom(victim)
        const before = sessionIdOf(victim)
        t.ok(await stored(kept, before), 'there was a session')

        await signIn(victim)

        t.ok(await userIdIn(victim))
        t.not(sessionIdOf(victim), before)
        t.equal(await stored(kept, before), null, 'the old id is gone from the store')
        t.equal(await userIdIn(attacker()), null)
        t.strictSame((await attacker().get('/cart')).json(), { cart: null, csrf: null })
        t.equal((await attacker().get('/private')).statusCode, 401)
      })

      t.test(`attack 33: ${way} as another user ends the session of the first`, async t => {
        const { app, kept } = await start(t, await keep(t))
        if (way === 'login') await new Browser(app).post('/auth/local/register', GRACE)
        const browser = new Browser(app)
        await browser.post('/auth/local/register', ADA)
        await browser.get('/plant')
        const [ada, before, old] = [await userIdIn(browser), sessionIdOf(browser), stolenFrom(browser)]

        await signIn(browser)

        const grace = await userIdIn(browser)
        t.ok(grace !== null && grace !== ada, 'Grace is signed in')
        t.equal(await userIdIn(old()), null)
        t.equal(await stored(kept, before), null)
        const present = JSON.stringify(await stored(kept, sessionIdOf(browser)))
        t.notOk([ada, ADA.email, 'planted'].some(trace => present.includes(String(trace))), 'nothing of Ada in the session of Grace')
      })

      for (const [what, status, failure] of [['refuses', 403, new SignInRefused('not_invited')], ['throws', 500, new Error('a mistake')]] as const) {
        t.test(`attack 33: ${way} signs no user in when the hook ${what}`, async t => {
          let hook = () => {}
          const { app, store } = await start(t, await keep(t), { onSignIn: () => hook() })
          if (way === 'login') await new Browser(app).post('/auth/local/register', GRACE)
          const member = new Browser(app)
          await member.post('/auth/local/register', ADA)
          const ada = await userIdIn(member)
          hook = () => { throw failure }

          for (const [browser, who] of [[new Browser(app), null], [member, ada]] as const) {
            const response = await signIn(browser)
            t.equal(response.statusCode, status)
            t.equal(response.headers['set-cookie'], undefined)
            t.equal(await userIdIn(browser), who, 'who was signed in is, and nobody else')
          }
          t.equal(await isPresent(store, GRACE.email), way === 'login', 'a new user is gone')
          t.equal(await store.findUser({ provider: 'a', subject: 'grace-at-a' }), null)
        })
      }

      t.test(`attack 34: ${way} takes over nothing that was planted in the session`, async t => {
        const { app, kept } = await start(t, await keep(t))
        if (way === 'login') await new Browser(app).post('/auth/local/register', GRACE)
        const victim = new Browser(app)
        await victim.get('/plant')
        t.strictSame((await victim.get('/cart')).json(), { cart: 'planted', csrf: 'known to the attacker' })

        await signIn(victim)

        t.strictSame((await victim.get('/cart')).json(), { cart: null, csrf: null })
        const { data, ...members } = Object(await stored(kept, sessionIdOf(victim)))
        if (kept.sessions === undefined) t.equal(data, null)
        else t.strictSame(Object.keys(members).sort(), ['cookie', 'svcAuth'])
      })
    }

    t.test('attack 34: a sign-in that was started before the user signed in neither links anything nor signs in another user', async t => {
      const { app, store } = await start(t, await keep(t))
      const victim = new Browser(app)
      const planted = await leaveFor(victim, '/auth/a/login', { subject: 'mallory-at-a' })
      const attacker = stolenFrom(victim)
      const { userId }: { userId: string } = (await victim.post('/auth/local/register', ADA)).json()

      t.equal((await attacker().get(planted)).json().code, 'invalid_state', 'it is of the new session only')
      t.equal(await userIdIn(attacker()), null)
      t.equal((await victim.get(planted)).json().code, 'invalid_state')

      t.equal(await userIdIn(victim), userId)
      t.strictSame((await store.links(userId)).map(({ provider }) => provider), ['local'])
      t.equal(await store.findUser({ provider: 'a', subject: 'mallory-at-a' }), null)
    })

    t.test('attack 36: a forged cookie is anonymous and breaks nothing', async t => {
      const { app } = await start(t, await keep(t), {}, {}, app => {
        app.get('/theme', async (_request, reply) => reply.setCookie('theme', new Signer('the secret of other cookies, 32 or more').sign('dark')).send('dark'))
      })
      const browser = new Browser(app)
      const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()
      await leaveFor(browser, '/auth/a/login', { subject: '1' })
      await browser.get('/theme')
      const good = browser.cookies.get('svc_session') ?? ''
      const [id = '', signature = ''] = good.split('.')
      const signer = new Signer(SESSION_SECRET)
      const FORGED: ReadonlyArray<readonly [what: string, value: string]> = [
        ['empty', ''],
        ['unsigned', id],
        ['with an empty signature', `${id}.`],
        ['re-signed with another secret', new Signer('the secret of the attacker, 32 and more').sign(id)],
        ['re-signed with an empty secret', new Signer([' ']).sign(id)],
        ['re-signed with another algorithm', new Signer(SESSION_SECRET, 'sha512').sign(id)],
        ['cut at the end', good.slice(0, -1)],
        ['cut in front', good.slice(1)],
        ['with more at the end', `${good}A`],
        ['padded', `${good}=`],
        ['signed twice', `${good}.${signature}`],
        ['with another first character of the signature', `${id}.${signature.startsWith('a') ? 'b' : 'a'}${signature.slice(1)}`],
        ['with the id in capitals', `${id.toUpperCase()}.${signature}`],
        ['a signature alone', `.${signature}`],
        ['8 kB', 'x'.repeat(8192)],
        ['8 kB behind the id', `${id}.${'x'.repeat(8192)}`],
        ['a name of Object.prototype', '__proto__'],
        ['a broken escape', '%E0%A4%A'],
        ['a NUL', '%00'],
        ['a session in JSON', encodeURIComponent(JSON.stringify({ user: { userId, provider: 'local', claims: {} } }))],
        ['the value of another cookie', browser.cookies.get('theme') ?? ''],
        ['the user id', userId],
        // Needs the secret, such as of an application that signs with it what visitors say.
        ['a session that is not there', signer.sign('no-such-session')],
        ['the pending sign-ins of a session', signer.sign(`svc-auth-pending:${id}`)]
      ]

      for (const [what, value] of FORGED) {
        const headers = { cookie: `svc_session=${value}`, accept: 'application/json' }
        const me = await app.inject({ url: '/me', headers })
        t.strictSame([me.statusCode, me.json().principal], [200, null], what)
        for (const [method, url, status] of [
          ['GET', '/private', 401],
          ['GET', '/refreshed', 401],
          ['POST', '/auth/local/token', 401],
          ['POST', '/auth/local/revoke', 204],
          ['GET', '/auth/b/callback?state=x', 400]
        ] as const) {
          t.equal((await app.inject({ method, url, headers })).statusCode, status, `${what}: ${url}`)
        }
        const attacker = new Browser(app, new Map([['svc_session', value]]))
        t.equal((await attacker.post('/auth/local/login', ADA)).statusCode, 200, `${what}: signs in`)
        t.not(attacker.cookies.get('svc_session'), value, `${what}: is no id to sign in with`)
      }
      t.equal(await userIdIn(browser), userId, 'the real one is still good')
    })

    t.test('attack 36: of two cookies of one name a forged one does not count, in both orders', async t => {
      const { app } = await start(t, await keep(t))
      const [ada, grace] = [new Browser(app), new Browser(app)]
      const [{ userId: adasId }, { userId: gracesId }] = [
        (await ada.post('/auth/local/register', ADA)).json(),
        (await grace.post('/auth/local/register', GRACE)).json()
      ]
      const [adas, graces] = [ada, grace].map(({ cookies }) => cookies.get('svc_session'))
      const forged = new Signer('the secret of the attacker, 32 and more').sign(sessionIdOf(ada))

      for (const [cookies, who] of [
        [[adas, forged], adasId], [[forged, adas], adasId], [['', adas], adasId], [[adas, ''], adasId],
        [[adas, graces], adasId], [[graces, adas], gracesId], [[forged, forged], null]
      ] as const) {
        const response = await app.inject({ url: '/me', headers: { cookie: cookies.map(value => `svc_session=${value}`).join('; ') } })
        t.equal(response.statusCode, 200)
        t.equal(response.json().principal?.userId ?? null, who, cookies.join(' and '))
      }
    })

    t.test('attack 36: the cookie of a session that has expired in the store is anonymous', async t => {
      const { app } = await start(t, await keep(t))
      const browser = new Browser(app)
      await browser.post('/auth/local/register', ADA)
      const old = stolenFrom(browser)
      advanceClock(t, 7 * DAY_MS - 60_000)
      t.ok(await userIdIn(browser), 'it is good for seven days')

      advanceClock(t, 2 * 60_000)

      for (const url of ['/private', '/refreshed']) t.equal((await old().get(url)).statusCode, 401)
      t.equal((await old().post('/auth/local/token')).statusCode, 401)
      t.equal(await userIdIn(old()), null)
    })

    t.test('attack 37: a deleted user passes no guard, with session or token', async t => {
      for (const [method, url] of [['GET', '/private'], ['GET', '/admin'], ['GET', '/refreshed'], ['POST', '/auth/local/token']] as const) {
        const { app, browser, userId } = await startWithAdmin(t, await keep(t))
        const other = new Browser(app, browser.cookies)
        t.equal((await browser.send({ method, url })).statusCode, 200)

        await app.auth.deleteUser(userId)

        t.equal((await browser.send({ method, url })).statusCode, 401, url)
        t.equal((await other.send({ method, url })).statusCode, 401, `${url}, with the same cookie`)
      }
      const { app, store, browser, userId, token } = await startWithAdmin(t, await keep(t))
      const linking = await leaveFor(browser, '/auth/b/login?link=true', { subject: 'ada-at-b' })
      await app.auth.deleteUser(userId)

      t.match(await withToken(app, '/api', token), { statusCode: 401, headers: { 'www-authenticate': 'Bearer error="invalid_token"' } })
      t.match(await verify(app, token), { statusCode: 401, body: /invalid_token/ })
      // A database removes the sessions with the user.
      const code = store instanceof SqlAuthStore ? 'invalid_state' : 'unauthenticated'
      t.match((await browser.get(linking)).json(), { code })
      t.match((await postLogin(browser, '/auth/b/login?link=true')).json(), { code: 'unauthenticated' })
      t.equal((await browser.post('/auth/local/login', ADA)).json().code, 'invalid')
      t.equal(await app.auth.findUser({ provider: 'b', subject: 'ada-at-b' }), null)
    })

    t.test('attack 37: a claim that was withdrawn is gone at the refresh, at the next sign-in and from new tokens', async t => {
      const { app, browser, userId, token } = await startWithAdmin(t, await keep(t))
      const other = new Browser(app, browser.cookies)
      await app.auth.withdraw(userId, ['role'])

      t.equal((await other.get('/admin')).statusCode, 200, 'what a guard sees is what the session knows, as documented')
      t.notOk('role' in (await withToken(app, '/api', (await other.post('/auth/local/token')).json().token)).json(), 'a new token does not have it')
      t.equal((await other.get('/refreshed')).statusCode, 200)
      t.equal((await other.get('/admin')).statusCode, 403, 'after the refresh')
      t.equal((await browser.get('/admin')).statusCode, 403, 'which is of the session, not of the browser')
      const claims = (await withToken(app, '/api', token)).json()
      t.strictSame([claims.role, claims.exp - claims.iat], ['admin', 900], 'a token says what it said, for a quarter of an hour')

      await app.auth.grant(userId, { role: 'admin' })
      await browser.post('/auth/local/login', ADA)
      await app.auth.withdraw(userId, ['role'])
      await browser.post('/auth/local/login', ADA)
      t.equal((await browser.get('/admin')).statusCode, 403, 'after the next sign-in')
    })

    t.test('attack 37: unlinking ends all sessions of the user at the next guard', async t => {
      for (const [method, url] of [['GET', '/private'], ['GET', '/refreshed'], ['POST', '/auth/local/token']] as const) {
        const { app, browser, userId } = await startWithAdmin(t, await keep(t))
        await linkAt(browser, 'b', { subject: 'ada-at-b' })
        const byLink = new Browser(app)
        await signInAt(byLink, 'b', { subject: 'ada-at-b' })
        await app.auth.unlink(userId, 'b')

        for (const session of [byLink, browser]) t.equal((await session.send({ method, url })).statusCode, 401)
        await signInAt(byLink, 'b', { subject: 'ada-at-b' })
        t.not(await userIdIn(byLink), userId, 'the identity is a new user')
      }
    })

    t.test('attack 37: a removed password signs no user in, and its sessions end at the refresh', async t => {
      const { app, browser, userId } = await startWithAdmin(t, await keep(t))
      await linkAt(browser, 'b', { subject: 'ada-at-b' })
      await app.auth.unlink(userId, 'local')

      t.equal((await new Browser(app).post('/auth/local/login', ADA)).json().code, 'invalid')
      t.equal((await browser.post('/auth/local/token')).statusCode, 401)
      t.equal((await browser.get('/refreshed')).statusCode, 401)
      t.equal(await userIdIn(browser), null)
    })

    t.test('attack 37: signing out ends the session; a token is good until it expires, as documented', async t => {
      const { app, browser, userId, token } = await startWithAdmin(t, await keep(t))
      const old = stolenFrom(browser)
      await browser.post('/auth/local/revoke')

      t.equal(await userIdIn(old()), null)
      t.equal((await old().get('/private')).statusCode, 401)
      t.equal((await old().post('/auth/local/token')).statusCode, 401)
      const claims = (await withToken(app, '/api', token)).json()
      t.strictSame([claims.sub, claims.exp - claims.iat], [userId, 900], 'for a quarter of an hour')
    })
  })
}

/** Sessions in which a request that answers late is a danger: saved at each request, as live objects, by the application itself. */
const SLOW_APPS: ReadonlyArray<readonly [name: string, create: (t: Test, extend: (app: FastifyInstance) => void) => Promise<FastifyInstance>]> = [
  ...SHARED_SESSIONS.flatMap(([kind, keep]) => [false, true].map(rolling => [
    `${kind}${rolling ? ', rolling' : ''}`,
    async (t: Test, extend: (app: FastifyInstance) => void) => (await start(
      t,
      await keep(t),
      { session: { rolling, cookie: { domain: 'app.example' } } },
      {},
      extend
    )).app
  ] as const)),
  ["the application's own session on the store of @fastify/session", async (t, extend) => {
    const app: FastifyInstance = Fastify()
    t.teardown(() => app.close())
    await app.register(fastifyCookie)
    await app.register(fastifySession, { secret: SESSION_SECRET, cookieName: 'svc_session', cookie: { secure: false, path: '/', sameSite: 'strict' } })
    await app.register(authPlugin, { baseUrl: 'http://app.example', providers: [new OwnProvider('a')], local: localProvider() })
    app.get('/me', async request => ({ principal: request.principal }))
    addRoutes(app)
    extend(app)
    return app
  }]
]

for (const [kind, create] of SLOW_APPS) {
  t.test(`the rules hold with ${kind}`, async t => {
    t.test('attack 35: a user who signs out stays signed out, whatever requests of the session are under way', async t => {
      const SLOW = ['/slow', '/slow?write', '/slow?save', '/slow?refresh', '/slow?write']
      const [allArrived, goOn] = [deferred(), deferred()]
      let arrived = 0
      const app = await create(t, app => {
        app.get('/slow', async request => {
          if (++arrived === SLOW.length) allArrived.resolve()
          await goOn.promise
          if (/write|save/.test(request.url)) request.session.cart = 'apples'
          if (request.url.endsWith('save')) await request.session.save()
          if (request.url.endsWith('refresh')) await app.auth.refresh(request)
          return { principal: request.principal }
        })
      })
      const revoked = eventsOf(app.auth.channel)
      const browser = new Browser(app)
      const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()
      const callback = await leaveFor(browser, '/auth/a/login', { subject: 'ada-at-a' })
      const old = stolenFrom(browser)
      const slow = SLOW.map(async url => new Browser(app, browser.cookies).get(url))
      await allArrived.promise

      t.equal((await browser.post('/auth/local/revoke')).statusCode, 204)
      t.equal(await userIdIn(old()), null, 'while they are under way')
      goOn.resolve()
      const answers = await Promise.all(slow)
      t.notOk(answers.some(({ statusCode }) => statusCode >= 500))

      for (const jar of [() => browser, old]) {
        t.equal(await userIdIn(jar()), null)
        t.equal((await jar().get('/private')).statusCode, 401)
        t.equal((await jar().post('/auth/local/token')).statusCode, 401)
        t.equal((await jar().get(callback)).json().code, 'invalid_state', 'pending sign-ins are dropped')
        t.equal((await jar().post('/auth/local/revoke')).statusCode, 204)
      }
      t.strictSame(revoked, [userId], 'one event')
    })

    t.test('attack 35: the cookie is cleared with the attributes that it was set with', async t => {
      const browser = new Browser(await create(t, () => {}))
      const attributes = ({ headers }: LightMyRequestResponse) => [headers['set-cookie']].flat().map(cookie => String(cookie).split('; ').filter(
        part => !/^(svc_session|Expires|Max-Age)=/.test(part)
      ))
      const set = attributes(await browser.post('/auth/local/register', ADA))

      const response = await browser.post('/auth/local/revoke')

      t.match(response.cookies, [{ name: 'svc_session', value: '', maxAge: 0 }])
      t.strictSame(attributes(response), set)
    })

    t.test('attack 35: one of many sign-outs at once is announced', async t => {
      const app = await create(t, () => {})
      const revoked = eventsOf(app.auth.channel)
      const browser = new Browser(app)
      const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()

      const answers = await Promise.all(Array.from({ length: 5 }, async () => new Browser(app, browser.cookies).post('/auth/local/revoke')))

      t.strictSame(answers.map(({ statusCode }) => statusCode), Array(5).fill(204))
      t.equal(await userIdIn(browser), null)
      t.strictSame(revoked, [userId])
    })
  })
}

t.test('attack 37: a token for one purpose or audience outlives its user until it expires, as documented, and is good for nothing else', async t => {
  const { app, userId } = await startWithAdmin(t)
  const token = await localProvider().issueIdToken(userId, {}, 60, { audience: 'reports' })
  await app.auth.deleteUser(userId)

  t.equal((await withToken(app, '/reports', token)).statusCode, 200)
  t.equal((await withToken(app, '/api', token)).statusCode, 401)
  t.equal((await verify(app, token)).statusCode, 401)
})

for (const [kind, keep] of SHARED_SESSIONS) {
  t.test(`with ${kind}, people stay signed in while secrets are rotated, for as long as the old ones are there`, async t => {
    const OLD = ['the session secret of last year, 32+', 'the token secret of last year, 32 and more'] as const
    const NEW = ['the session secret of this year, 32+', 'the token secret of this year, 32 and more'] as const
    const { sessions, store } = await keep(t)
    const restart = async (...secrets: Array<typeof OLD | typeof NEW>) => startApp(t, {
      store,
      session: { secret: secrets.map(([secret]) => secret), store: sessions },
      local: localProvider({ secret: secrets.map(([, secret]) => secret) })
    }, {}, addRoutes)
    const tokenOf = async (browser: Browser): Promise<string> => (await browser.post('/auth/local/token')).json().token

    const before = new Browser(await restart(OLD))
    const { userId }: { userId: string } = (await before.post('/auth/local/register', ADA)).json()
    const oldToken = await tokenOf(before)

    const during = await restart(NEW, OLD)
    const [stays, signsInAgain] = [new Browser(during, before.cookies), new Browser(during)]
    for (let visit = 0; visit < 2; visit++) t.equal(await userIdIn(stays), userId, 'the old cookie is good')
    t.equal((await stays.get('/private')).statusCode, 200)
    t.equal((await withToken(during, '/api', oldToken)).statusCode, 200, 'the old token is good')
    t.equal((await verify(during, oldToken)).statusCode, 200)
    const newToken = await tokenOf(stays)
    await signsInAgain.post('/auth/local/login', ADA)

    const after = await restart(NEW)
    for (const url of ['/private', '/refreshed']) t.equal((await new Browser(after, stays.cookies).get(url)).statusCode, 401, url)
    t.equal((await new Browser(after, stays.cookies).post('/auth/local/token')).statusCode, 401)
    t.equal(await userIdIn(new Browser(after, stays.cookies)), null, 'the old cookie is nobody\'s')
    t.equal((await withToken(after, '/api', oldToken)).statusCode, 401, 'the old token is good for nothing')
    t.equal((await verify(after, oldToken)).statusCode, 401)
    t.equal((await withToken(after, '/api', newToken)).statusCode, 200, 'what was made meanwhile was signed with the first secret')
    t.equal((await verify(after, newToken)).statusCode, 200)
    t.equal(await userIdIn(new Browser(after, signsInAgain.cookies)), userId)

    const forged = new Signer(OLD[0]).sign(sessionIdOf(signsInAgain))
    t.equal(await userIdIn(new Browser(after, new Map([['svc_session', forged]]))), null, 'whoever has the old secret makes no cookie')
    t.equal((await verify(after, await localProvider({ secret: OLD[1] }).issueIdToken(userId))).statusCode, 401, 'nor a token')
  })
}

/** A proxy that ends TLS, as it stands in front of applications. */
interface TlsProxy {
  origin: string
  /** Where the application listens, with plain http. */
  backend: number
  send: (method: string, path: string, headers?: OutgoingHttpHeaders, body?: string) => Promise<{
    status: number | undefined
    headers: IncomingHttpHeaders
    body: string
  }>
}

async function startTlsProxy (t: Test): Promise<TlsProxy> {
  const tls = await selfSigned('localhost')
  const server = createServer(tls, (incoming, outgoing) => {
    const { method, url: path, headers } = incoming
    const about = { host: 'backend.internal', 'x-forwarded-for': '203.0.113.7', 'x-forwarded-proto': 'https', 'x-forwarded-host': headers.host }
    const forwarded = request({ host: '127.0.0.1', port: proxy.backend, method, path, headers: { ...headers, ...about }, agent: false }, answer => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    incoming.pipe(forwarded)
  })
  const port = await listen(t, server)
  const proxy: TlsProxy = {
    origin: `https://localhost:${port}`,
    backend: 0,
    async send (method, path, headers = {}, body = '') {
      const sent = requestSecurely({ host: 'localhost', port, method, path, headers, ca: tls.cert, agent: false }).end(body)
      const [answer] = await once(sent, 'response') as [IncomingMessage]
      return { status: answer.statusCode, headers: answer.headers, body: await text(answer) }
    }
  }
  return proxy
}

const TLS_CASES: ReadonlyArray<readonly [what: string, options: (origin: string) => AuthPluginOptions, server: FastifyServerOptions]> = [
  ['baseUrl and trustProxy', baseUrl => ({ baseUrl }), { trustProxy: '127.0.0.1' }],
  ['trustProxy alone', () => ({ baseUrl: undefined, providers: [] }), { trustProxy: '127.0.0.1' }],
  ['baseUrl alone', baseUrl => ({ baseUrl }), {}]
]

for (const [what, options, server] of TLS_CASES) {
  t.test(`behind a proxy that ends TLS cookies are Secure and sign-ins work, over the wire, with ${what}`, async t => {
    const proxy = await startTlsProxy(t)
    const { app } = await start(t, undefined, options(proxy.origin), server)
    proxy.backend = Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port)
    const form = { accept: 'text/html', 'content-type': 'application/x-www-form-urlencoded', origin: proxy.origin }
    const cookieOf = ({ headers }: { headers: IncomingHttpHeaders }) => {
      // When a session takes the place of another, @fastify/session clears the cookie first.
      const set = headers['set-cookie']?.at(-1) ?? ''
      t.match(set, /^svc_session=[^;]*; (Max-Age=0; )?Path=\/; Expires=[^;]+; HttpOnly; Secure; SameSite=Lax$/)
      return set.split(';', 1)[0]
    }
    const whoHas = async (cookie: string | undefined) => JSON.parse((await proxy.send('GET', '/me', { cookie })).body).principal?.userId ?? null

    const registered = await proxy.send(
      'POST',
      '/auth/local/register',
      { ...form, referer: `${proxy.origin}/sign-up` },
      new URLSearchParams({ ...ADA, next: `${proxy.origin}/welcome` }).toString()
    )
    t.strictSame([registered.status, registered.headers.location], [303, '/welcome'], 'the origin is that of the proxy')
    const cookie = cookieOf(registered)
    const userId = await whoHas(cookie)
    t.ok(userId)

    for (const origin of [proxy.origin.replace('https:', 'http:'), 'https://localhost', 'http://backend.internal', 'https://backend.internal']) {
      const refused = await proxy.send('POST', '/auth/local/revoke', { ...form, cookie, origin })
      t.strictSame([refused.status, refused.headers['set-cookie']], [403, undefined], origin)
    }
    t.equal(await whoHas(cookie), userId)

    // What a client says of itself, the proxy says anew.
    const again = await proxy.send(
      'POST',
      '/auth/local/login',
      { ...form, cookie, 'x-forwarded-proto': 'http', 'x-forwarded-host': 'evil.example' },
      new URLSearchParams(ADA).toString()
    )
    const next = cookieOf(again)
    t.equal(await whoHas(next), userId)
    t.equal(await whoHas(cookie), null)

    if ('trustProxy' in server) {
      await proxy.send('GET', '/plant', { cookie: next })
      t.equal(JSON.parse((await proxy.send('GET', '/cart', { cookie: next })).body).cart, 'planted', 'the application can write into the session')
    }
    if (app.authProviders.length > 0) {
      const left = await proxy.send('GET', '/auth/a/login')
      const state = new URL(left.headers.location ?? '').searchParams.get('state') ?? ''
      const code = JSON.stringify(identityOf({ subject: 'grace-at-a' }))
      const landed = await proxy.send('GET', `/auth/a/callback?${new URLSearchParams({ state, code })}`, { cookie: cookieOf(left) })
      t.equal(landed.headers.location, '/#')
      t.ok(await whoHas(cookieOf(landed)))
    }

    const revoked = await proxy.send('POST', '/auth/local/revoke', { ...form, cookie: next })
    t.equal(cookieOf(revoked), 'svc_session=', 'cleared with the same attributes')
    t.equal(await whoHas(next), null)
  })
}

t.test('headers of a client that is not a trusted proxy set neither scheme nor host', async t => {
  for (const [trustProxy, remoteAddress] of [[false, '127.0.0.1'], ['127.0.0.1', '203.0.113.7']] as const) {
    const { app } = await start(t, undefined, { baseUrl: undefined, providers: [] }, { trustProxy })
    const said = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'evil.example', forwarded: 'proto=https;host=evil.example' }
    const send = async (headers: object) => app.inject({
      method: 'POST',
      url: '/auth/local/register',
      remoteAddress,
      headers: { accept: 'application/json', ...said, ...headers },
      payload: ADA
    })

    t.match((await send({ origin: 'https://evil.example' })).json(), { code: 'cross_origin' })
    const response = await send({ origin: 'http://localhost' })
    t.equal(response.statusCode, 201)
    t.notMatch(response.headers['set-cookie'], /Secure/, 'a cookie that this client would not send back')
  }
})

/** Ada with the role of an administrator, in her session and in a token. */
async function startWithAdmin (t: Test, kept?: Kept) {
  const setup = await start(t, kept)
  const { app } = setup
  const browser = new Browser(app)
  const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()
  await app.auth.grant(userId, { role: 'admin' })
  await browser.post('/auth/local/login', ADA)
  const { token }: { token: string } = (await browser.post('/auth/local/token')).json()
  return { ...setup, browser, userId, token }
}

async function withToken (app: FastifyInstance, url: string, token: string): Promise<LightMyRequestResponse> {
  return app.inject({ url, headers: { authorization: `Bearer ${token}` } })
}

async function verify (app: FastifyInstance, token: string): Promise<LightMyRequestResponse> {
  return app.inject({ method: 'POST', url: '/auth/local/verify-token', payload: { token } })
}
