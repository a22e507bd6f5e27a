import fastifyRateLimit from '@fastify/rate-limit'
import fastifyPlugin from 'fastify-plugin'
import Fastify, { type FastifyInstance, type LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { type AuthPluginOptions } from '../../lib/index.js'
import { SESSION_SECRET, localProvider, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock, hastenTime } from '../helpers/clock.js'
import { OwnProvider, leaveFor } from '../helpers/own-provider.js'
import { isThorough } from '../helpers/thorough.js'

const ADA = { email: 'ada@example.com', password: 'the right password' }
const ATTACKER = '203.0.113.7'
const ADAS_HOME = '198.51.100.1'
const QUARTER_OF_AN_HOUR_MS = 15 * 60_000

interface Attempt {
  email?: string
  password?: string
  from?: string
  form?: boolean
  url?: string
  headers?: Record<string, string>
}

async function start (t: Test, options: AuthPluginOptions = {}, server: Parameters<typeof startApp>[2] = {}): Promise<FastifyInstance> {
  const app = await startApp(t, { local: localProvider(), baseUrl: 'https://app.example', providers: [new OwnProvider('mine')], ...options }, server)
  await app.inject({ method: 'POST', url: '/auth/local/register', payload: ADA, remoteAddress: '192.0.2.1' })
  return app
}

async function tryToLogIn (
  app: FastifyInstance,
  {
    email = ADA.email,
    password = 'a guess at it',
    from = ATTACKER,
    form = false,
    url = '/auth/local/login',
    headers = {}
  }: Attempt = {}
): Promise<LightMyRequestResponse> {
  return app.inject({
    method: 'POST',
    url,
    remoteAddress: from,
    headers: { accept: 'application/json', 'content-type': form ? 'application/x-www-form-urlencoded' : 'application/json', ...headers },
    payload: form ? new URLSearchParams({ email, password }).toString() : JSON.stringify({ email, password })
  })
}

/** How many of some attempts, one after the other, are not turned away. */
async function countAdmitted (attempts: number, attempt: (index: number) => Promise<LightMyRequestResponse>): Promise<number> {
  let admitted = 0
  for (let index = 0; index < attempts; index++) {
    const { statusCode } = await attempt(index)
    if (statusCode !== 429) admitted++
  }
  return admitted
}

t.test('attack 41: twenty of many attempts at one account get through', async t => {
  const app = await start(t)
  const statuses: number[] = []
  for (let index = 0; index < (isThorough ? 1000 : 100); index++) statuses.push((await tryToLogIn(app, { password: `guess number ${index}` })).statusCode)

  t.strictSame(statuses.slice(0, 21), [...Array(20).fill(401), 429])
  t.ok(statuses.slice(20).every(status => status === 429))
})

t.test('attack 41: a client that is turned away is told for how long', async t => {
  const app = await start(t, { rateLimit: { account: 1 } })
  await tryToLogIn(app)

  const script = await tryToLogIn(app)
  t.equal(script.statusCode, 429)
  t.strictSame(script.json(), {
    statusCode: 429,
    code: 'rate_limited',
    error: 'Too Many Requests',
    message: 'Too many attempts; try again in 15 minutes.'
  })
  const seconds = Number(script.headers['retry-after'])
  t.ok(seconds > 890 && seconds <= 900, String(seconds))

  const page = await tryToLogIn(app, { form: true, headers: { accept: 'text/html', referer: 'https://app.example/login' } })
  t.strictSame([page.statusCode, page.headers.location], [303, '/login?error=rate_limited'])
  t.ok(page.headers['retry-after'])
})

t.test('attack 41: three hundred of many attempts at as many accounts get through', async t => {
  const app = await start(t)
  t.equal(await countAdmitted(isThorough ? 1000 : 350, index => tryToLogIn(app, { email: `somebody-${index}@example.com` })), 300)
})

const WAYS_AROUND: Record<string, (index: number) => Attempt> = {
  'spellings of the e-mail': index => ({ email: ['ada@example.com', 'ADA@Example.com', '  ada@example.com ', 'ada@EXAMPLE.COM'][index % 4] ?? '' }),
  'forms and JSON': index => ({ form: index % 2 === 0 }),
  'addresses that it says it comes from': index => ({
    headers: {
      'x-forwarded-for': `198.51.100.${index}`,
      forwarded: `for=198.51.100.${index}`,
      'x-real-ip': `198.51.100.${index}`
    }
  }),
  'addresses of one IPv6 network': index => ({ from: `2001:db8:1:2:${index.toString(16)}::1` }),
  'ports that a proxy adds to the address': index => ({ from: `${ATTACKER}:${50_000 + index}` }),
  'ports beside an IPv6 address': index => ({ from: `[2001:db8:1:2::${index.toString(16)}]:${50_000 + index}` }),
  'what is no address at all': index => ({ from: `unknown-${index}` }),
  'spellings of an IPv4 address': index => ({ from: index % 2 === 0 ? ATTACKER : `::ffff:${ATTACKER}` }),
  'spellings of the path': index => ({
    url: [
      '/auth/local/login', '//auth/local/login', '/auth//local/login', '/auth/local/login/', '/AUTH/local/login',
      '/auth/local/%6cogin', '/auth/local/login;a=b', '/auth/local/login?a=b'
    ][index % 8] ?? ''
  }),
  'right passwords in between': index => (index % 2 === 0 ? ADA : {})
}

for (const [what, attempt] of Object.entries(WAYS_AROUND)) {
  t.test(`attack 41: ${what} give no more attempts`, async t => {
    const app = await start(t, {}, { ignoreDuplicateSlashes: true, ignoreTrailingSlash: true, caseSensitive: false, useSemicolonDelimiter: true })
    t.equal(await countAdmitted(50, index => tryToLogIn(app, attempt(index))), 20)
  })
}

t.test('attack 41: fifty tries at once are not more than twenty', async t => {
  const app = await start(t)
  const responses = await Promise.all(Array.from({ length: 50 }, () => tryToLogIn(app)))

  t.ok(responses.filter(({ statusCode }) => statusCode !== 429).length <= 20)
})

t.test('attack 41: what is not an e-mail address is not an attempt, so that it guesses nothing and keeps nobody out', async t => {
  const app = await start(t)
  for (let index = 0; index < 350; index++) {
    const { statusCode, body } = await tryToLogIn(app, { email: `nobody ${index}`, password: ADA.password })
    t.strictSame([statusCode, JSON.parse(body).code], [400, 'invalid_email'])
  }
  t.equal(await countAdmitted(50, () => tryToLogIn(app)), 20)
})

t.test('attack 41: what a proxy says of the address counts where the application trusts the proxy', async t => {
  const app = await start(t, {}, { trustProxy: '127.0.0.1' })
  const triesFrom = async (address: string) => countAdmitted(
    30,
    () => tryToLogIn(app, { from: '127.0.0.1', headers: { 'x-forwarded-for': `10.9.8.7, ${address}` } })
  )

  t.equal(await triesFrom(ATTACKER), 20)
  t.equal(await triesFrom(`${ATTACKER}:50000`), 0)
  t.equal(await triesFrom('203.0.113.8:50000'), 20)
  t.equal(await triesFrom('[2001:db8::1]:50000'), 20)
  t.equal(await triesFrom(ADAS_HOME), 20)
})

t.test('attack 41: an attacker who is locked out does not lock out the owner, who has another address', async t => {
  const app = await start(t)
  await countAdmitted(400, () => tryToLogIn(app))

  t.equal((await tryToLogIn(app, ADA)).statusCode, 429, 'not even the right password helps him')
  t.equal((await tryToLogIn(app, { ...ADA, from: ADAS_HOME })).statusCode, 200)
  t.equal((await tryToLogIn(app, { ...ADA, from: '2001:db8:1:3::1' })).statusCode, 200)
})

t.test('attack 41: no client is locked out for ever, and a try while locked out adds nothing', async t => {
  const app = await start(t)
  await countAdmitted(30, () => tryToLogIn(app))

  advanceClock(t, QUARTER_OF_AN_HOUR_MS - 1000)
  t.equal((await tryToLogIn(app, ADA)).statusCode, 429)
  advanceClock(t, QUARTER_OF_AN_HOUR_MS)
  t.equal((await tryToLogIn(app, ADA)).statusCode, 200)
})

t.test('attack 41: a page of another origin does not use up the attempts of its visitor', async t => {
  const app = await start(t)
  for (let index = 0; index < 400; index++) await tryToLogIn(app, { headers: { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' } })

  t.equal((await tryToLogIn(app, ADA)).statusCode, 200)
})

t.test('attack 32: a page that loads the routes as images, frames or ahead of time uses up no tries', async t => {
  const app = await start(t, { rateLimit: { login: 1, start: 1, callback: 1 } })
  for (const site of ['cross-site', 'same-site']) {
    for (const more of [
      { 'sec-fetch-dest': 'image' },
      { 'sec-fetch-dest': 'empty', 'sec-fetch-mode': 'cors' },
      ...(site === 'cross-site' ? [{ 'sec-fetch-dest': 'iframe' }] : []),
      { 'sec-fetch-dest': 'document', 'sec-purpose': 'prefetch' }
    ]) {
      for (const url of ['/auth/mine/login', '/auth/mine/callback?code=a&state=b']) {
        const response = await app.inject({ url, remoteAddress: ATTACKER, headers: { 'sec-fetch-site': site, ...more } })
        t.strictSame([response.statusCode, response.json().code], [403, 'cross_origin'], JSON.stringify([site, more, url]))
      }
    }
  }

  t.equal((await tryToLogIn(app, ADA)).statusCode, 200)
  t.equal(
    (await app.inject({
      url: '/auth/mine/callback',
      headers: { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'document' }
    })).statusCode,
    400,
    'people come back from a provider'
  )
  const welcome = [
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'document' },
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'empty', 'sec-fetch-mode': 'navigate' },
    { 'sec-fetch-site': 'same-site', 'sec-fetch-dest': 'iframe' }
  ]
  for (const [index, headers] of welcome.entries()) {
    t.equal(
      (await app.inject({ url: '/auth/mine/login', remoteAddress: `198.51.100.${index}`, headers })).statusCode,
      302,
      JSON.stringify(headers)
    )
  }
})

t.test('attack 39: a client that asks which addresses are registered is stopped after sixty', async t => {
  const app = await start(t)
  const register = async (email: string) => app.inject({
    method: 'POST',
    url: '/auth/local/register',
    payload: { email, password: 'whatever it is' },
    remoteAddress: ATTACKER
  })

  t.equal(await countAdmitted(100, index => register(`somebody-${index}@example.com`)), 60)
  t.match((await register(ADA.email)).json(), { code: 'rate_limited' }, 'not even whether Ada is')
})

t.test('attack 32: starts at a provider, which pages of other sites can cause, use up no tries of a password', async t => {
  const app = await start(t, { rateLimit: { start: 2 } })
  const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate' }
  const navigate = async () => app.inject({ url: '/auth/mine/login', remoteAddress: ATTACKER, headers })

  t.equal(await countAdmitted(400, navigate), 2)
  t.equal((await tryToLogIn(app, ADA)).statusCode, 200)
})

t.test('attack 41: the /64 networks of an IPv6 /48 share a limit, `network` times that of one of them', async t => {
  const app = await start(t, { rateLimit: { account: 2, login: 5, network: 3 } })
  const from = (network: number, email = ADA.email) => tryToLogIn(app, { from: `2001:db8:1:${network.toString(16)}::1`, email })

  t.equal(await countAdmitted(8, index => from(index)), 6, 'of one account')
  t.equal(await countAdmitted(20, index => from(100 + index, `somebody-${index}@example.com`)), 7, 'of all accounts, with the eight before')
  t.equal((await tryToLogIn(app, { ...ADA, from: '2001:db8:2::1' })).statusCode, 200, 'another /48 has tries of its own')
  t.equal((await tryToLogIn(app, { ...ADA, from: ADAS_HOME })).statusCode, 200, 'and so has IPv4')
})

t.test('attack 41: failed tries of one /64 leave tries to the others of its /48', async t => {
  const app = await start(t, { rateLimit: { account: 2, network: 2 } })
  await countAdmitted(50, () => tryToLogIn(app, { from: '2001:db8:1:1::1' }))

  t.equal((await tryToLogIn(app, { ...ADA, from: '2001:db8:1:2::1' })).statusCode, 200)
})

t.test('attack 32: starts and callbacks of one address are limited, also without a cookie', async t => {
  const app = await start(t)
  const get = async (url: string) => app.inject({ url, remoteAddress: ATTACKER })

  t.equal(await countAdmitted(400, () => get('/auth/mine/login')), 300)
  t.equal(await countAdmitted(400, () => get('/auth/mine/callback?code=a&state=b')), 300)
})

t.test('a callback that is turned away is not used up', async t => {
  const app = await start(t, { rateLimit: { callback: 1 } })
  const browser = new Browser(app)
  const callback = await leaveFor(browser, '/auth/mine/login', { subject: 'ada-1' })
  await browser.get('/auth/mine/callback')
  t.equal((await browser.get(callback)).statusCode, 429)

  advanceClock(t, QUARTER_OF_AN_HOUR_MS)
  const late = await leaveFor(browser, '/auth/mine/login', { subject: 'ada-1' })
  t.equal((await browser.get(late)).headers.location, '/')
})

t.test('rateLimit: false switches all limits off', async t => {
  const app = await start(t, { rateLimit: false })
  t.equal(await countAdmitted(100, () => tryToLogIn(app)), 100)
})

t.test('other routes of the application are not limited, and get no decorators', async t => {
  const app = await start(t, { rateLimit: { login: 1, callback: 1 } })
  t.equal(await countAdmitted(100, () => app.inject('/me')), 100)
  t.equal(app.hasDecorator('createRateLimit'), false)
})

/** Counts for several machines, as an application may keep them. */
class SharedStore {
  static readonly counts = new Map<string, number>()
  static readonly options: object[] = []
  static failure: Error | null = null

  incr (key: string, callback: (error: Error | null, result?: { current: number, ttl: number }) => void, timeWindow: number): void {
    const current = (SharedStore.counts.get(key) ?? 0) + 1
    SharedStore.counts.set(key, current)
    setImmediate(callback, SharedStore.failure, { current, ttl: timeWindow })
  }

  child (options: object): SharedStore {
    SharedStore.options.push(options)
    return this
  }
}

t.test('a store of the application counts for several machines', async t => {
  SharedStore.counts.clear()
  const one = await start(t, { rateLimit: { store: SharedStore } })
  const other = await start(t, { rateLimit: { store: SharedStore } })

  t.equal(await countAdmitted(100, index => tryToLogIn(index % 2 === 0 ? one : other)), 20)
})

t.test('attack 59: a store of counts that fails lets no client try', async t => {
  const app = await start(t, { rateLimit: { store: SharedStore } })
  SharedStore.failure = new Error('ECONNREFUSED 10.0.0.5:6379')
  t.teardown(() => { SharedStore.failure = null })

  const response = await tryToLogIn(app, ADA)

  t.equal(response.statusCode, 503)
  t.match(response.json(), { code: 'unavailable' })
  t.notMatch(response.body, 'ECONNREFUSED')
})

t.test('attack 59: a store of counts that does not answer lets no client try', async t => {
  hastenTime(t, 20)
  const app = await start(t, { rateLimit: { store: class extends SharedStore { override incr (): void {} override child () { return this } } } })
  // A signed-in visitor needs no count, and is not kept waiting with the others.
  const waiting = tryToLogIn(app, ADA)
  t.equal((await app.inject('/me')).statusCode, 200)
  t.match((await waiting).json(), { code: 'unavailable' })
})

t.test('a plugin of an old version, which cannot count for others, is left alone', async t => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(fastifyPlugin(async app => { app.decorate('rateLimit', () => async () => {}) }, { name: '@fastify/rate-limit' }))
  await app.register(authPlugin, { local: localProvider(), session: { secret: SESSION_SECRET }, rateLimit: { account: 1 } })

  t.equal(await countAdmitted(3, () => tryToLogIn(app)), 1)
})

t.test('where the application has registered @fastify/rate-limit, its store is used, and its own limits hold too', async t => {
  SharedStore.counts.clear()
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(fastifyRateLimit, {
    store: SharedStore,
    max: 100,
    allowList: (_request: unknown, key: string) => key.startsWith('svc-auth'),
    continueExceeding: true,
    exponentialBackoff: true,
    skipOnError: true
  })
  await app.register(authPlugin, { local: localProvider(), session: { secret: SESSION_SECRET } })
  await app.inject({ method: 'POST', url: '/auth/local/register', payload: ADA, remoteAddress: ADAS_HOME })

  t.equal(await countAdmitted(50, () => tryToLogIn(app)), 20)
  t.match(SharedStore.options.slice(-4), Array(4).fill({ continueExceeding: false, exponentialBackoff: false }), 'nothing of it makes the limits others')
  t.ok([...SharedStore.counts.keys()].includes(`svc-auth-account:${ATTACKER} ${ADA.email}`))

  await countAdmitted(60, index => tryToLogIn(app, { email: `somebody-${index}@example.com` }))
  const response = await tryToLogIn(app, { email: 'somebody@example.com' })
  t.match([response.statusCode, response.json().code], [429, 'rate_limited'])
  t.match(response.headers['retry-after'], /^\d+$/)
})
