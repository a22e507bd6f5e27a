/** Attacks 2, 4, 34, 36 and 157: the cookie by which a sign-in that was started without a session stays bound to its browser. */
import fastifyCookie, { Signer } from '@fastify/cookie'
import fastifySession from '@fastify/session'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { type AuthPluginOptions, SqlAuthStore } from '../../lib/index.js'
import { SESSION_SECRET, localProvider, startApp, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { startOpenIdProvider } from '../helpers/openid-provider.js'
import { OwnProvider, callbackOf } from '../helpers/own-provider.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { type Kept, SHARED_SESSIONS } from '../helpers/session-stores.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'

const BASE_URL = 'https://app.example'
const START = /^(?:__Host-)?svc_start_/

async function start (t: Test, options: AuthPluginOptions = {}): Promise<FastifyInstance> {
  const posting = Object.assign(new OwnProvider('posting'), { responseMode: 'form_post' as const })
  return startApp(t, { baseUrl: BASE_URL, providers: [new OwnProvider('a'), posting], local: localProvider(), rateLimit: false, ...options })
}

const startsIn = ({ cookies }: Browser): Array<[name: string, value: string]> => [...cookies].filter(([name]) => START.test(name))

/** Starts a sign-in at a provider: the URL there. */
async function leave (browser: Browser, next = '/in', provider = 'a'): Promise<string> {
  const { headers: { location = '' } } = await browser.get(`/auth/${provider}/login?next=${next}`)
  return location
}

/** Starts a sign-in without a cookie; its cookie, and the callback as that person. */
async function started (app: FastifyInstance, subject: string, next = '/in') {
  const browser = new Browser(app)
  const callback = callbackOf(await leave(browser, next), { subject })
  const [[name, value] = ['', '']] = startsIn(browser)
  return { browser, callback, name, value }
}

/** Starts two sign-ins at one instant, as a browser that restores its tabs; one of the cookies of the sessions is kept. */
async function startTabs (apps: readonly FastifyInstance[], providers = ['a', 'a']): Promise<{ browser: Browser, urls: string[] }> {
  const browser = new Browser(apps[0] ?? Fastify())
  const tabs = apps.map(app => new Browser(app))
  const urls = await Promise.all(tabs.map(async (tab, index) => leave(tab, `/tab-${index}`, providers[index])))
  for (const tab of tabs) for (const [name, value] of tab.cookies) browser.cookies.set(name, value)
  return { browser, urls }
}

/** Starts two processes of one application. */
async function startTwo (t: Test, stores: readonly [Kept, Kept]): Promise<FastifyInstance[]> {
  return Promise.all(stores.map(({ store, sessions }) => start(t, { store, session: { secret: SESSION_SECRET, store: sessions } })))
}

for (const [kind, keep] of SHARED_SESSIONS) {
  t.test(`attack 4: with ${kind}, tabs that start at one instant finish one after the other, and at one instant`, async t => {
    const kept = await keep(t)
    const apps = await startTwo(t, [kept, kept])
    for (const isAtOnce of [false, true]) {
      const { browser, urls } = await startTabs(apps)
      const callbacks = urls.map(url => callbackOf(url, { subject: 'ada' }))
      const jars = callbacks.map(() => isAtOnce ? new Browser(browser.app, browser.cookies) : browser)
      const landings: unknown[] = []
      const finish = async (index: number) => { landings[index] = (await jars[index]?.get(callbacks[index] ?? ''))?.headers.location }
      if (isAtOnce) await Promise.all([finish(0), finish(1)])
      else for (const index of [0, 1]) await finish(index)

      t.strictSame(landings, ['/tab-0', '/tab-1'], isAtOnce ? 'at one instant' : 'one after the other')
      const userId = (await apps[0]?.auth.findUser({ provider: 'a', subject: 'ada' }))?.userId
      t.equal(await userIdIn(browser === jars[0] ? browser : jars[1] ?? browser), userId)
      if (!isAtOnce) t.strictSame(startsIn(browser), [], 'their cookies are gone')
    }
  })
}

t.test('attack 4: tabs finish at another process, with Postgres', async t => {
  const url = await emptyDatabase(t)
  const stores = [new SqlAuthStore(url), new SqlAuthStore(url)]
  for (const store of stores) t.teardown(() => store.close())
  const [one, other] = await Promise.all(stores.map(async store => start(t, { store, session: { secret: SESSION_SECRET } })))
  if (one === undefined || other === undefined) throw new Error('two processes')
  const { browser, urls } = await startTabs([one, other])
  const elsewhere = new Browser(other, browser.cookies)
  const landings = []
  for (const url of urls) landings.push((await elsewhere.get(callbackOf(url, { subject: 'ada' }))).headers.location)
  t.strictSame(landings, ['/tab-0', '/tab-1'])
})

t.test('attack 4: tabs finish at a real provider, and where one response is posted', async t => {
  const idp = await startOpenIdProvider(t, { redirectUris: [`${BASE_URL}/auth/dev/callback`] })
  const posting = Object.assign(new OwnProvider('posting'), { responseMode: 'form_post' as const })
  const app = await start(t, { providers: [idp.provider(), posting] })
  const real = await startTabs([app, app], ['dev', 'dev'])
  for (const [index, url] of real.urls.entries()) {
    const { pathname, search } = await idp.authorize(url)
    t.equal((await real.browser.get(pathname + search)).headers.location, `/tab-${index}`)
  }

  const { browser, urls } = await startTabs([app, app], ['posting', 'posting'])
  for (const [index, url] of urls.entries()) {
    const [path = '', query = ''] = callbackOf(url, { subject: 'ada' }).split('?')
    // Browsers withhold cookies that are SameSite=Lax from the form of another site.
    const posted = await app.inject({ method: 'POST', url: path, payload: query, headers: { 'content-type': 'application/x-www-form-urlencoded' } })
    t.strictSame([posted.statusCode, posted.cookies], [303, []])
    t.equal((await browser.get(posted.headers.location ?? '')).headers.location, `/tab-${index}`)
  }
})

t.test('attack 4: tabs finish with a session that the application has registered', async t => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(fastifyCookie)
  await app.register(fastifySession, { secret: SESSION_SECRET, store: new SlowSessionStore(), cookie: { secure: false }, saveUninitialized: false })
  await app.register(authPlugin, { baseUrl: BASE_URL, providers: [new OwnProvider('a')] })
  const { browser, urls } = await startTabs([app, app])
  t.match(startsIn(browser).map(([name]) => name), [/^svc_start_/, /^svc_start_/])
  for (const [index, url] of urls.entries()) {
    t.equal((await browser.get(callbackOf(url, { subject: 'ada' }))).headers.location, `/tab-${index}`)
  }
})

t.test('attack 2: without the cookie of its start, or with another one, a callback signs in nobody', async t => {
  const app = await start(t, { session: { secret: SESSION_SECRET } })
  const { callback, name, value } = await started(app, 'mallory')
  const other = await started(app, 'mallory')
  const [id = '', , next] = value.split('.')
  const forged = `${new Signer('the secret of the attacker, 32 and more').sign(id)}.${next}`
  const cookies: Record<string, string> = {
    [other.name]: value, [name.replace('__Host-', '')]: value, svc_session: value
  }
  for (const [name, value] of Object.entries(cookies)) {
    const victim = new Browser(app, new Map([[name, value]]))
    t.equal((await victim.get(callback)).json().code, 'invalid_state', name)
    t.equal(await userIdIn(victim), null, name)
  }
  for (const odd of [other.value, forged, `${id}.${next}`, id, `.${next}`, '.', '', '%E0%A4%A', 'x'.repeat(5000)]) {
    const victim = new Browser(app, new Map([[name, odd]]))
    t.equal((await victim.get(callback)).json().code, 'invalid_state', odd.slice(0, 100))
  }
  t.equal((await new Browser(app, new Map([[name, value]])).get(callback)).headers.location, '/in', 'the sign-in is there still')
})

t.test('attack 34, attack 157: a planted cookie of a start makes a signed-in user nobody else, and leads nowhere', async t => {
  const app = await start(t)
  const victim = new Browser(app)
  await victim.get(callbackOf(await leave(victim), { subject: 'ada' }))
  const userId = await userIdIn(victim)
  for (const subject of ['mallory', 'ada']) {
    const { callback, name, value } = await started(app, subject, '/planted')
    victim.cookies.set(name, value)
    const answer = await victim.get(callback)
    t.match(answer, subject === 'ada' ? { statusCode: 302 } : { statusCode: 400, body: /invalid_state/ }, subject)
    t.equal(await userIdIn(victim), userId, subject)
  }
  const { callback, name, value } = await started(app, 'mallory')
  const evil = value.replace(/[^.]*$/, Buffer.from('https://evil.example/').toString('base64url'))
  await new Browser(app, new Map([[name, value]])).get(callback)
  const { body } = await new Browser(app, new Map([[name, evil]])).get(callback, { accept: 'text/html' })
  t.match(body, 'href="/auth/a/login"')
  t.notMatch(body, 'evil.example')
})

t.test('attack 36: the cookie has the flags of that of the session, and where browsers accept it the prefix that no other host can set', async t => {
  const cookieOf = async (session: NonNullable<AuthPluginOptions['session']>, baseUrl = BASE_URL) => {
    const app = await start(t, { baseUrl, session: { secret: SESSION_SECRET, ...session } })
    const answer = await app.inject('/auth/a/login')
    const own = answer.cookies.find(({ name }) => START.test(name))
    const ofSession = answer.cookies.find(({ name }) => !START.test(name))
    const [flags, expected] = [own, ofSession].map(cookie => ({ ...cookie, name: '', value: '', maxAge: 0, expires: 0 }))
    t.strictSame(flags, expected)
    t.equal(own?.maxAge, 1800)
    return own
  }
  t.match(await cookieOf({}), { name: /^__Host-svc_start_[\w-]{12}$/, httpOnly: true, secure: true, sameSite: 'Lax', path: '/' })
  t.match(await cookieOf({ cookie: { sameSite: 'none', partitioned: true } }), { name: /^__Host-/, sameSite: 'None', partitioned: true })
  t.match(await cookieOf({ cookie: { domain: 'app.example' } }), { name: /^svc_start_/, domain: 'app.example' })
  t.match(await cookieOf({ cookie: { path: '/auth' } }), { name: /^svc_start_/, path: '/auth' })
  t.match(await cookieOf({}, 'http://app.example'), { name: /^svc_start_/, path: '/' })
})

t.test('attack 36: a browser keeps a few of them, and none once it has a session or signs out', async t => {
  const app = await start(t)
  const browser = new Browser(app)
  await leave(browser)
  await leave(browser)
  t.equal(startsIn(browser).length, 1, 'a session is enough')

  for (let count = 2; count <= 9; count++) {
    browser.cookies.delete('svc_session')
    await leave(browser, `/${'x'.repeat(2000)}`)
    t.equal(startsIn(browser).length, count === 9 ? 1 : count)
  }
  t.ok(startsIn(browser).every(([name, value]) => name.length + value.length < 500))

  const { callback, browser: leaving } = await started(app, 'ada')
  const copied = new Browser(app, leaving.cookies)
  await leaving.post('/auth/local/register', { email: 'ada@example.com', password: 'engines and numbers, 1843' })
  await leaving.post('/auth/logout')
  t.strictSame([...leaving.cookies], [], 'a sign-in that was started does not outlive the sign-out')
  for (const jar of [leaving, copied]) t.equal((await jar.get(callback)).json().code, 'invalid_state')
})
