/** Attack 138: browsers that have an older session cookie of another domain, path or application. */
import fastifyCookie, { Signer } from '@fastify/cookie'
import fastifySession from '@fastify/session'
import Fastify, { type FastifyInstance, type InjectOptions, type LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { type AuthPluginOptions, MemoryAuthStore } from '../../lib/index.js'
import { Passkeys } from '../../lib/passkeys.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { mailbox } from '../../lib/testing.js'
import type { MailOf } from '../../lib/testing/mailbox.js'
import { SESSION_SECRET, localProvider, startApp, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { JarBrowser } from '../helpers/cookie-jar.js'
import { DATA_SECRET, enrolAt, nextCode, waitAt } from '../helpers/factor-app.js'
import { addAt, newDevice, optionsAt } from '../helpers/passkey-app.js'
import { OwnProvider, leaveFor } from '../helpers/own-provider.js'
import { SHARED_SESSIONS, type Kept } from '../helpers/session-stores.js'
import { ADA, GRACE, sessionIdOf, stored } from '../helpers/shared-apps.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'
import { isThorough } from '../helpers/thorough.js'

const HOST = 'www.app.example'

/** Scopes of an older cookie: browsers send that of a longer path first, otherwise the older one. */
const SCOPES = ['Domain=www.app.example; Path=/', 'Domain=app.example; Path=/', 'Path=/auth', 'Domain=app.example; Path=/auth/local'] as const

interface Setup {
  app: FastifyInstance
  kept: Kept
  /** The users that the channel said were signed out. */
  revoked: string[]
  adasId: string
  gracesId: string
  lines: Array<{ level: number, msg: string }>
}

async function start (t: Test, kept: Kept, { session, ...options }: AuthPluginOptions = {}): Promise<Setup> {
  const lines: Setup['lines'] = []
  const app = await startApp(t, {
    baseUrl: `http://${HOST}`,
    providers: [new OwnProvider('a')],
    local: localProvider({ sendMail: async () => {} }),
    store: kept.store,
    rateLimit: false,
    session: { secret: SESSION_SECRET, store: kept.sessions, ...session },
    ...options
  }, { logger: { level: 'warn', stream: { write: (line: string) => { lines.push(JSON.parse(line)) } } } }, app => {
    app.get('/private', { preHandler: app.auth.requireUser }, async ({ principal }) => principal)
    app.get('/refreshed', { preHandler: app.auth.refresh }, async ({ principal }) => principal)
    app.get('/cart', async ({ session }) => Object.assign(session, { cart: 'apples' }).cart)
    app.post('/shop/leave', async (request, reply) => {
      await app.auth.signOut(request, reply)
      return {}
    })
  })
  const [adasId, gracesId] = await Promise.all([ADA, GRACE].map(async user => (await app.auth.createUser(user)).userId))
  const revoked: string[] = []
  app.auth.channel.on('revoke', userId => { revoked.push(userId) })
  return { app, kept, revoked, adasId: String(adasId), gracesId: String(gracesId), lines }
}

/** A browser that is signed in, whose cookie others get too. */
async function signedIn (app: FastifyInstance, user = ADA): Promise<Browser> {
  const browser = new Browser(app)
  const answer = await browser.post('/auth/local/login', user)
  if (answer.statusCode !== 200) throw new Error(answer.body)
  return browser
}

/** A visitor whose session holds something of the application. */
async function visiting (app: FastifyInstance): Promise<Browser> {
  const browser = new Browser(app)
  await browser.get('/cart')
  return browser
}

const cookieOf = ({ cookies }: Browser): string => cookies.get('svc_session') ?? ''

/** The header of a browser with several cookies. */
const several = (...browsers: Array<Browser | string>): { cookie: string, accept: string } => ({
  cookie: browsers.map(one => `svc_session=${typeof one === 'string' ? one : cookieOf(one)}`).join('; '), accept: 'application/json'
})

/** The cookies that an answer expires, as name, domain and path. */
function expiredBy ({ cookies }: { cookies: ReadonlyArray<{ name: string, value: string, domain?: string, path?: string, maxAge?: number }> }): string[] {
  return cookies.filter(({ maxAge }) => maxAge === 0).map(({ name, domain = '', path = '' }) => `${name} ${domain} ${path}`)
}

const EVE = { email: 'eve@example.com', password: 'apples and serpents' }

/** What one request begins, and another one of the same session finishes. */
interface Step {
  begin: (browser: Browser) => Promise<InjectOptions>
  /** The user who is signed in by it. */
  user: () => Promise<string | undefined>
}

/** Ada, who is signed in, and the ways in which Eve signs in by two requests. */
async function startSteps (t: Test, kept: Kept): Promise<Setup & { ada: Browser, steps: Record<string, Step> }> {
  const mails = mailbox()
  const setup = await start(t, kept, {
    dataSecret: DATA_SECRET,
    secondFactor: new SecondFactor({ issuer: 'Shop' }),
    passkeys: new Passkeys({ name: 'Shop' }),
    baseUrl: `https://${HOST}`,
    rateLimit: {},
    local: localProvider({ sendMail: mails.sendMail, signInByMail: true, mails: { limits: false } })
  })
  const { app } = setup
  const { userId } = await app.auth.createUser(EVE)
  const { secret } = await enrolAt(t, await signedIn(app, EVE))
  const [grace, device] = [await signedIn(app, GRACE), newDevice({ origin: `https://${HOST}` })]
  const added = await addAt(grace, device)
  if (added.statusCode !== 201) throw new Error(added.body)
  const post = (url: string, payload: object): InjectOptions => ({ method: 'POST', url, payload })
  const asked = async (browser: Browser): Promise<MailOf<'sign-in'>> => {
    await browser.post('/auth/local/mail-login', { email: 'new@example.com' })
    return mails.next('sign-in')
  }
  const ofMail = async (): Promise<string | undefined> => (await app.auth.findUser({ email: 'new@example.com' }))?.userId
  const ofProvider = async (): Promise<string | undefined> => (await app.auth.findUser({ provider: 'a', subject: 'eve-at-a' }))?.userId
  return {
    ...setup,
    ada: await signedIn(app),
    steps: {
      'a callback': {
        begin: async browser => ({ url: await leaveFor(browser, '/auth/a/login', { subject: 'eve-at-a' }) }), user: ofProvider
      },
      'a code of an app': {
        begin: async browser => {
          await waitAt(t, browser, EVE)
          return post('/auth/local/second-factor', { code: nextCode(t, secret) })
        },
        user: async () => userId
      },
      'a link in a mail': {
        begin: async browser => post('/auth/local/mail-login/confirm', { token: (await asked(browser)).token }), user: ofMail
      },
      'a code in a mail': {
        begin: async browser => post('/auth/local/mail-login/confirm', { code: (await asked(browser)).code }), user: ofMail
      },
      'a passkey': {
        begin: async browser => post('/auth/local/passkeys/login', { response: device.get(await optionsAt(browser, 'login')) }),
        user: async () => setup.gracesId
      }
    }
  }
}

async function sendBy (browsers: readonly Browser[], step: InjectOptions, app: FastifyInstance): Promise<LightMyRequestResponse> {
  return app.inject({ ...step, headers: several(...browsers) })
}

for (const [kind, keep] of SHARED_SESSIONS) {
  t.test(`the rules hold with ${kind}`, async t => {
    t.test('attack 138: of several cookies the first one of a user counts, otherwise the first one of an open session', async t => {
      const { app, adasId, gracesId } = await start(t, await keep(t))
      const [ada, grace, visitor, left] = [await signedIn(app), await signedIn(app, GRACE), await visiting(app), await signedIn(app)]
      const ended = cookieOf(left)
      await left.post('/auth/logout')
      const forged = new Signer('the secret of the attacker, 32 and more').sign(sessionIdOf(ada))
      const unknown = new Signer(SESSION_SECRET).sign('no-such-session')

      for (const [cookies, who] of [
        [[ada, grace], adasId], [[grace, ada], gracesId],
        [[ended, ada], adasId], [[ada, ended], adasId],
        [[visitor, ada], adasId], [[ada, visitor], adasId],
        [[forged, ada], adasId], [[ada, forged], adasId], [['', ada], adasId], [[unknown, ada], adasId], [['%E0%A4%A', ada], adasId],
        [[ended, unknown, visitor, ada], adasId], [[forged, forged, forged, forged, ada], adasId], [[ada, ada], adasId],
        [[ended, unknown], null], [[ended, ended, unknown, unknown, ada], null, 'at most four are looked up']
      ] as const) {
        const response = await app.inject({ url: '/me', headers: several(...cookies) })
        t.strictSame([response.statusCode, response.json().principal?.userId ?? null], [200, who])
        t.strictSame(expiredBy(response), [], 'only a sign-in and a sign-out expire cookies')
      }
      const cart = await app.inject({ url: '/cart', headers: several(ended, visitor) })
      t.equal(cart.cookies[0]?.value ?? cookieOf(visitor), cookieOf(visitor), 'the session of the visitor goes on')
    })

    for (const scope of isThorough ? SCOPES : SCOPES.slice(1, 3)) {
      for (const [what, older] of [['that has ended', 'ended'], ['of a visitor', 'visitor'], ['of another user', 'grace']] as const) {
        t.test(`attack 138: the password signs in beside a cookie ${what} with ${scope}`, async t => {
          const setup = await start(t, await keep(t))
          const { app, kept, adasId } = setup
          for (const isOlder of [true, false]) {
            const other = older === 'visitor' ? await visiting(app) : await signedIn(app, GRACE)
            const value = cookieOf(other)
            if (older === 'ended') await other.post('/auth/logout')
            const browser = new JarBrowser(app, HOST)
            const cookies = [`svc_session=${value}; ${scope}`, `svc_session=${cookieOf(await visiting(app))}; Path=/`]
            for (const cookie of isOlder ? cookies : cookies.reverse()) browser.set(cookie)
            t.equal(browser.valuesOf('svc_session', '/auth/local/login').length, 2)

            const answer = await browser.post('/auth/local/login', ADA)

            t.equal(answer.statusCode, 200)
            t.equal(browser.valuesOf('svc_session', '/auth/local/login').length, 1, 'the other cookie is gone')
            t.equal(await userIdIn(browser), adasId)
            t.equal(await stored(kept, value.split('.')[0] ?? ''), null, 'its session has ended')
            t.equal(answer.cookies.filter(({ maxAge }) => maxAge !== 0).length, 1)
            t.not(answer.cookies.at(-1)?.maxAge, 0, 'the browser gets the new one last')
            t.notOk(expiredBy(answer).includes('svc_session  /'))

            t.equal((await browser.submit('/auth/logout', {})).statusCode, 303)
            t.equal(await userIdIn(browser), null)
            t.strictSame(browser.kept, [])
          }
        })
      }
    }

    t.test('attack 138: a sign-out ends the sessions of all cookies, expires these and announces each user', async t => {
      for (const isFirst of [true, false]) {
        const { app, revoked, adasId, gracesId } = await start(t, await keep(t))
        const [ada, again, grace, visitor] = [await signedIn(app), await signedIn(app), await signedIn(app, GRACE), await visiting(app)]
        const cookies = isFirst ? [ada, again, grace, visitor] : [visitor, grace, again, ada]

        const answer = await app.inject({ method: 'POST', url: '/auth/logout', headers: several(...cookies) })

        t.equal(answer.statusCode, 204)
        t.strictSame(revoked.toSorted(), [adasId, gracesId].toSorted())
        for (const browser of cookies) t.equal(await userIdIn(browser), null)
        t.ok(expiredBy(answer).length > 1)
      }
    })

    t.test('attack 138: a sign-out everywhere, and a deletion, end the sessions of other users in the browser too', async t => {
      const { app, revoked, adasId, gracesId } = await start(t, await keep(t))
      for (const [url, body] of [['/auth/logout', { everywhere: true }], ['/auth/local/delete-account', { current: ADA.password }]] as const) {
        const [ada, elsewhere, grace] = [await signedIn(app), await signedIn(app), await signedIn(app, GRACE)]
        revoked.length = 0

        const answer = await app.inject({ method: 'POST', url, headers: several(ada, grace), payload: body })

        t.equal(answer.statusCode, 204, answer.body)
        t.strictSame(revoked, [adasId, gracesId])
        for (const browser of [ada, elsewhere, grace]) t.equal((await browser.get('/private')).statusCode, 401)
      }
    })

    t.test('attack 138: a session that its user ended everywhere does not hide another one', async t => {
      const { app, adasId, gracesId } = await start(t, await keep(t))
      for (const url of ['/private', '/refreshed']) {
        const [ada, grace] = [await signedIn(app), await signedIn(app, GRACE)]
        await app.auth.signOutEverywhere(adasId)

        const answer = await app.inject({ url, headers: several(ada, grace) })
        t.strictSame([answer.statusCode, answer.json().userId], [200, gracesId], url)
        t.equal((await app.inject({ url: '/private', headers: several(ada, ada) })).statusCode, 401)
      }
    })

    t.test('what a session has begun is finished in it', async t => {
      const setup = await startSteps(t, await keep(t))
      const { app, kept, ada, adasId, steps } = setup
      for (const [what, { begin, user }] of Object.entries(steps)) {
        for (const isFirst of [true, false]) {
          const [beginning, visitor] = [new Browser(app), await visiting(app)]
          const finish = await begin(beginning)
          const [first, second] = isFirst ? [beginning, visitor] : [visitor, beginning]

          t.equal((await sendBy([visitor], finish, app)).json().code, 'invalid_state', `${what}: not in another session`)
          for (const cookies of [[ada, first, second], [first, second, ada]]) {
            const answer = await sendBy(cookies, finish, app)
            t.equal(answer.json().code, 'invalid_state', `attack 157: ${what}, beside the session of a user`)
            t.equal(await userIdIn(ada), adasId, 'that session stays')
          }
          const answer = await sendBy([first, second], finish, app)
          t.ok(answer.statusCode < 400, `attack 138: ${what}, beside the session of a visitor: ${answer.body}`)
          const set = answer.cookies.find(({ name, maxAge }) => name === 'svc_session' && maxAge !== 0)?.value ?? ''
          t.equal((await app.inject({ url: '/me', headers: several(set) })).json().principal.userId, await user())
          t.equal(await stored(kept, sessionIdOf(visitor)), null, 'the session of the visitor has ended')
        }
      }
    })

    t.test('attack 157: of two sessions without a user that have begun a sign-in by mail, the first one counts', async t => {
      const { app, steps: { 'a code in a mail': mail } } = await startSteps(t, await keep(t))
      const [own, planted] = [new Browser(app), new Browser(app)]
      const [finish, finishPlanted] = [await mail?.begin(own) ?? {}, await mail?.begin(planted) ?? {}]
      t.equal((await sendBy([own, planted], finishPlanted, app)).json().code, 'invalid_code')
      t.equal((await sendBy([own, planted], finish, app)).statusCode, 200)
    })

    t.test('attack 157: of two sessions with a user, the first does not become that of the second by what that has begun', async t => {
      const { app, adasId, ada, steps: { 'a code of an app': _, ...steps } } = await startSteps(t, await keep(t))
      for (const [what, { begin }] of Object.entries(steps)) {
        const grace = await signedIn(app, GRACE)
        const finish = await begin(grace)
        t.equal((await sendBy([ada, grace], finish, app)).json().code, 'invalid_state', what)
        t.equal(await userIdIn(ada), adasId)
      }
    })

    t.test('attack 138: the first factor ends the sessions of all cookies', async t => {
      const { app } = await start(t, await keep(t), { dataSecret: DATA_SECRET, secondFactor: new SecondFactor({ issuer: 'Shop' }) })
      const enrolling = await signedIn(app)
      await enrolAt(t, enrolling)
      const [visitor, grace] = [await visiting(app), await signedIn(app, GRACE)]

      const answer = await app.inject({ method: 'POST', url: '/auth/local/login', headers: several(visitor, grace), payload: ADA })

      t.equal(answer.json().code, 'second_factor_required')
      t.ok(expiredBy(answer).length > 0)
      t.equal(await userIdIn(grace), null)
    })
  })
}

/** Gives a user an authenticator app; then a browser signs in by a code and is trusted. */
async function enrolledFor (t: Test, app: FastifyInstance, user: typeof ADA): Promise<(browser: Browser) => Promise<LightMyRequestResponse>> {
  const { secret } = await enrolAt(t, await signedIn(app, user))
  return async browser => {
    await waitAt(t, browser, user)
    return browser.post('/auth/local/second-factor', { code: nextCode(t, secret), trust: true })
  }
}

/** The cookie of a browser that is trusted. */
async function trustedBy (app: FastifyInstance, trust: (browser: Browser) => Promise<unknown>): Promise<string> {
  const browser = new Browser(app)
  await trust(browser)
  return browser.cookies.get('svc_trusted') ?? ''
}

t.test('attack 138: each of several cookies of a trusted browser counts, and one takes their place', async t => {
  const secondFactor = new SecondFactor({ issuer: 'Shop', trustedBrowser: { days: 30 } })
  const { app } = await start(t, { store: new MemoryAuthStore(), sessions: undefined }, { dataSecret: DATA_SECRET, secondFactor })
  await app.auth.createUser(EVE)
  const trustAda = await enrolledFor(t, app, ADA)
  const [graces, eves] = [await trustedBy(app, await enrolledFor(t, app, GRACE)), await trustedBy(app, await enrolledFor(t, app, EVE))]
  const assertTrusted = async (browser: Browser, ...users: Array<typeof ADA>): Promise<void> => {
    for (const user of users) {
      t.equal((await browser.post('/auth/local/login', user)).statusCode, 200, user.email)
      await browser.post('/auth/logout')
    }
  }

  for (const scope of SCOPES) {
    for (const [older, newer] of [[eves, graces], [graces, eves]]) {
      const browser = new JarBrowser(app, HOST)
      browser.set(`svc_trusted=${older}; ${scope}`)
      browser.set(`svc_trusted=${newer}; Path=/`)
      await assertTrusted(browser, GRACE, EVE)
      t.equal(browser.valuesOf('svc_trusted', '/auth/local').length, 2, 'a sign-in and a sign-out leave them alone')

      await trustAda(browser)

      t.equal(browser.valuesOf('svc_trusted', '/auth/local').length, 1, scope)
      await browser.post('/auth/logout')
      await assertTrusted(browser, GRACE, EVE, ADA)
    }
  }
  const browser = new JarBrowser(app, HOST)
  browser.set(`svc_trusted=${graces}x; Domain=app.example; Path=/auth`)
  browser.set(`svc_trusted=${graces}; Path=/`)
  await trustAda(browser)
  t.equal(browser.valuesOf('svc_trusted', '/auth').length, 2, 'one that another application has signed stays')
})

t.test('attack 138: with a session of the application too, the cookie of a trusted browser does not expire', async t => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(fastifyCookie)
  await app.register(fastifySession, { secret: SESSION_SECRET, cookie: { secure: false }, saveUninitialized: false })
  const secondFactor = new SecondFactor({ issuer: 'Shop', trustedBrowser: { days: 30 } })
  await app.register(authPlugin, {
    baseUrl: 'http://app.example', store: new MemoryAuthStore(), local: localProvider(), dataSecret: DATA_SECRET, secondFactor
  })
  app.get('/me', async ({ principal }) => ({ principal }))
  for (const user of [ADA, GRACE]) await app.auth.createUser(user)
  const [trustAda, trustGrace] = [await enrolledFor(t, app, ADA), await enrolledFor(t, app, GRACE)]
  const graces = await trustedBy(app, trustGrace)
  const browser = new JarBrowser(app)
  for (const path of ['/', '/auth']) browser.set(`svc_trusted=${graces}; Path=${path}`)

  const answer = await trustAda(browser)

  t.notOk(expiredBy(answer).includes('svc_trusted  /'))
  t.ok(expiredBy(answer).includes('svc_trusted  /auth'))
  t.equal(browser.valuesOf('svc_trusted', '/auth').length, 1)
})

t.test('attack 138: cookies expire in the scopes that reach the request, other than those of sessions of the server', async t => {
  const local = { local: localProvider(), rateLimit: false } as const
  const ROWS: ReadonlyArray<readonly [what: string, host: string, url: string, cookie: object, expired: string[]]> = [
    ['a host-only cookie', 'app.example', '/auth/logout', {}, [
      ' /', 'app.example /', ' /auth', 'app.example /auth', ' /auth/logout', 'app.example /auth/logout'
    ].slice(1)],
    ['a cookie with a domain', 'www.app.example:3000', '/auth/logout', { domain: '.APP.example' }, [
      ' /', 'www.app.example /', ' /auth', 'www.app.example /auth', 'app.example /auth',
      ' /auth/logout', 'www.app.example /auth/logout', 'app.example /auth/logout'
    ]],
    ['a cookie with a path', 'localhost:3000', '/auth/logout', { path: '/auth' }, [' /', ' /auth/logout']],
    ['an IPv4 address', '192.0.2.1', '/auth/logout', {}, [' /auth', ' /auth/logout']],
    ['an IPv6 address', '[2001:db8::1]:3000', '/auth/logout', {}, [' /auth', ' /auth/logout']],
    ['no host', '', '/auth/logout', {}, [' /auth', ' /auth/logout']],
    ['a host that no cookie can name', 'my_app.example', '/auth/logout', {}, [' /auth', ' /auth/logout']],
    ['a label that is too long', `${'a'.repeat(64)}.example`, '/auth/logout', {}, [' /auth', ' /auth/logout']],
    ['a route of the application with a query', 'localhost', '/shop/leave?next=/x/y', {}, [' /shop', ' /shop/leave']],
    ['a URL with what a path of a cookie cannot have', 'localhost', '/shop/leave;x=1', {}, []],
    ['partitioned cookies', 'localhost', '/auth/logout', { partitioned: true }, [' /auth', ' /auth', ' /auth/logout', ' /auth/logout']]
  ]
  for (const [what, host, url, cookie, expected] of ROWS) {
    const { app } = await start(t, { store: new MemoryAuthStore(), sessions: undefined }, { ...local, session: { cookie } })
    const [ada, grace] = [await signedIn(app), await signedIn(app, GRACE)]

    const answer = await app.inject({ method: 'POST', url, headers: { ...several(ada, grace), host } })

    const [{ path = '/', domain = '' } = {}] = answer.cookies.filter(({ expires }) => expires?.getTime() === 0)
    const expired = answer.cookies.filter(({ expires }) => expires === undefined)
    t.strictSame(expired.map(({ domain = '', path }) => `${domain} ${path}`), expected, what)
    t.notOk(expired.some(other => other.path === path && (other.domain ?? '') === domain), what)
    t.ok(expired.every(({ httpOnly, sameSite }) => httpOnly === true && sameSite === 'Lax'), what)
  }
})

t.test('attack 138: an answer expires at most sixteen cookies', async t => {
  const { app } = await start(t, { store: new MemoryAuthStore(), sessions: undefined })
  const [ada, grace] = [await signedIn(app), await signedIn(app, GRACE)]
  const headers = { ...several(ada, grace), host: 'a.b.c.d.app.example' }
  const answer = await app.inject({ method: 'POST', url: '/auth/local/login', headers, payload: ADA })
  t.equal(expiredBy(answer).length, 16)
  t.equal(answer.cookies.length, 17)
})

t.test('attack 138: a cookie of another secret is passed over, and stays', async t => {
  const { app, adasId, lines } = await start(t, { store: new MemoryAuthStore(), sessions: undefined })
  const foreign = new Signer('the secret of another application, 32+').sign('the-session-there')
  const browser = new JarBrowser(app, HOST)
  browser.set(`svc_session=${foreign}; Domain=app.example; Path=/auth`)

  for (let round = 0; round < 2; round++) {
    await browser.post('/auth/local/login', ADA)
    t.strictSame(browser.valuesOf('svc_session', '/auth').length, 2)
    t.equal(await userIdIn(browser), adasId)
    t.equal((await browser.post('/auth/local/token')).statusCode, 200, 'where it is sent first')
    await browser.post('/auth/logout')
    t.strictSame(browser.valuesOf('svc_session', '/auth'), [foreign])
  }
  const warnings = lines.filter(({ msg }) => msg.startsWith('A browser sent several cookies named svc_session: '))
  t.equal(warnings.length, 1, 'the log says so once')
  t.notOk(lines.some(({ msg }) => msg.includes('the-session-there')))
})

t.test('attack 138: the cookie of another registration on the server stays', async t => {
  const app = Fastify()
  t.teardown(() => app.close())
  for (const [prefix, path] of [['/staff/auth', '/staff'], ['/auth', '/']] as const) {
    await app.register(async scope => {
      await scope.register(authPlugin, {
        prefix,
        baseUrl: 'http://app.example',
        store: new MemoryAuthStore(),
        local: localProvider(),
        rateLimit: false,
        session: { secret: SESSION_SECRET, cookie: { path } }
      })
      await scope.auth.createUser(ADA)
    })
  }
  const browser = new JarBrowser(app)
  await browser.post('/staff/auth/local/login', ADA)
  await browser.post('/auth/local/login', ADA)
  t.equal(browser.valuesOf('svc_session', '/staff/auth').length, 2)
  const [staff, customer] = browser.valuesOf('svc_session', '/staff/auth')

  await browser.post('/staff/auth/logout')

  t.strictSame(browser.valuesOf('svc_session', '/staff/auth'), [customer])
  t.not(staff, customer)
  t.equal((await browser.post('/auth/local/token')).statusCode, 200)
})

t.test('attack 138: the prefix of cookies and an own signer are respected', async t => {
  const own = new Signer(SESSION_SECRET)
  const unsign = (text: string) => {
    if (text.includes('broken')) throw new Error('not one of ours')
    return own.unsign(text)
  }
  const secret = { sign: (text: string) => own.sign(text), unsign }
  const { app, adasId } = await start(t, { store: new MemoryAuthStore(), sessions: undefined }, { session: { secret, cookiePrefix: 's:' } })
  const [ada, grace, visitor] = [await signedIn(app), await signedIn(app, GRACE), await visiting(app)]
  t.match(cookieOf(ada), /^s(?::|%3A)/)

  const withoutPrefix = cookieOf(ada).replace(/^s(?::|%3A)/, '')
  for (const other of [visitor, cookieOf(grace).replace(/^s/, 'x'), withoutPrefix, 's:broken', 'broken']) {
    t.equal((await app.inject({ url: '/me', headers: several(other, ada) })).json().principal?.userId, adasId)
  }
})

/** Fails the read with this number, counted from when it is set. */
class FailingReads extends SlowSessionStore {
  failsAt = Infinity

  override get (...[id, callback]: Parameters<SlowSessionStore['get']>): void {
    if (--this.failsAt === 0) callback(new Error('the network is down'))
    else super.get(id, callback)
  }
}

t.test('attack 138: a session store that fails while one of several sessions is chosen is unavailable', async t => {
  const sessions = new FailingReads()
  const { app } = await start(t, { store: new MemoryAuthStore(), sessions })
  const [visitor, waiting] = [await visiting(app), new Browser(app)]
  const callback = await leaveFor(waiting, '/auth/a/login', { subject: 'grace-at-a' })
  // The two sessions, the chosen one, the entry in it and in the other one, and that one.
  for (const read of [1, 2, 3, 4, 5, 6]) {
    sessions.failsAt = read
    const answer = await app.inject({ url: callback, headers: several(visitor, waiting) })
    t.strictSame([answer.statusCode, answer.json().code, answer.cookies], [503, 'unavailable', []], `read ${read}`)
  }
  t.equal((await app.inject({ url: callback, headers: several(visitor, waiting) })).statusCode, 302, 'it can be finished')
})

t.test('a session cookie of the application that comes twice is logged once', async t => {
  const lines: string[] = []
  const app = Fastify({ logger: { level: 'warn', stream: { write: (line: string) => { lines.push(JSON.parse(line).msg) } } } })
  t.teardown(() => app.close())
  await app.register(fastifyCookie)
  await app.register(fastifySession, { secret: SESSION_SECRET, cookie: { secure: false }, saveUninitialized: false })
  await app.register(authPlugin, { baseUrl: 'http://app.example', store: new MemoryAuthStore(), local: localProvider(), rateLimit: false })
  const browser = new Browser(app)
  await browser.post('/auth/local/register', ADA)
  const cookie = `sessionId=${browser.cookies.get('sessionId')}`

  await app.inject({ method: 'POST', url: '/auth/local/login', headers: { cookie: `${cookie}; theme=dark; theme=light` }, payload: ADA })
  t.strictSame(lines, [])
  for (let round = 0; round < 2; round++) {
    await app.inject({ method: 'POST', url: '/auth/local/login', headers: { cookie: `${cookie}; theme=dark; ${cookie}` }, payload: ADA })
  }
  t.equal(lines.length, 1)
  t.match(lines[0], /^A browser sent several cookies named sessionId: only the first one counts/)
})

t.test('looking for a session cookie of the application that comes twice reads each cookie of a header once', async t => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(fastifyCookie)
  await app.register(fastifySession, { secret: SESSION_SECRET, cookie: { secure: false }, saveUninitialized: false })
  let read = 0
  const { parseCookie } = app
  app.parseCookie = header => {
    read++
    return parseCookie(header)
  }
  await app.register(authPlugin, { baseUrl: 'http://app.example', store: new MemoryAuthStore(), local: localProvider(), rateLimit: false })
  const cookie = Array.from({ length: 1000 }, (_, index) => `c${index}=${index}`).join('; ')
  t.equal((await app.inject({ method: 'POST', url: '/auth/local/login', headers: { cookie }, payload: ADA })).statusCode, 401)
  t.ok(read >= 1000 && read < 2000, `${read} cookies were read`)
})
