/** Attack 99: a sign-out at the provider that is forced, lost, or led astray. */
import SqliteDatabase from 'better-sqlite3'
import type { FastifyInstance } from 'fastify'
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import {
  type AuthPluginOptions, type AuthStore, type EndSessionRequest, MemoryAuthStore, type OidcProvider, SqlAuthStore
} from '../../lib/index.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { json } from '../fakes/lies.js'
import { type FakeOpenIdProvider, startFakeOpenIdProvider } from '../fakes/openid-provider.js'
import { SESSION_SECRET, localProvider, principalIn, startApp, userIdIn } from '../helpers/app.js'
import { eventsOf } from '../helpers/audit-events.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock, hastenTime } from '../helpers/clock.js'
import { deferred } from '../helpers/deferred.js'
import { DATA_SECRET, enrolAt, nextCode } from '../helpers/factor-app.js'
import { OwnProvider, linkAt, signInAt } from '../helpers/own-provider.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'

const BASE_URL = 'https://app.example'
const ISSUER = 'https://id.example'
const END_SESSION = `${ISSUER}/end-session`
const SIGNED_OUT = `${BASE_URL}/auth/fake/signed-out`
const THERE = { provider: 'true', next: '/bye' }

/** Where users and sessions are kept, and all that is written there; null where that cannot be seen. */
interface Kept {
  store: AuthStore
  sessions?: SlowSessionStore
  written: (() => string) | null
}

const KEPT: ReadonlyArray<[name: string, keep: (t: Test) => Kept]> = [
  ['the sessions of the store', inMemory],
  ['a session store that serialises', () => {
    const sessions = new SlowSessionStore()
    return { store: new MemoryAuthStore(), sessions, written: () => JSON.stringify([...sessions.entries]) }
  }],
  ['sessions in SQLite', t => {
    const database = new SqliteDatabase(':memory:')
    t.teardown(() => database.close())
    const tables = (): unknown[] => database.prepare("select name from sqlite_master where type = 'table'").pluck().all()
    return {
      store: new SqlAuthStore(database),
      written: () => JSON.stringify(tables().map(table => database.prepare(`select * from "${table}"`).all()))
    }
  }]
]

interface Setup {
  fake: FakeOpenIdProvider
  kept: Kept
  /** Starts an application on the same store, as another process does. */
  start: (provider?: OidcProvider, options?: AuthPluginOptions) => Promise<FastifyInstance>
  /** What applications have logged. */
  lines: string[]
}

function inMemory (): Kept {
  return { store: new MemoryAuthStore(), written: null }
}

async function setUp (t: Test, keep: (t: Test) => Kept = inMemory): Promise<Setup> {
  const fake = await startFakeOpenIdProvider(t, ISSUER)
  fake.metadata.end_session_endpoint = END_SESSION
  const [kept, lines]: [Kept, string[]] = [keep(t), []]
  const stream = { write: (line: string) => { lines.push(line) } }
  const start: Setup['start'] = async (provider = providerOf(fake), options = {}) => startApp(t, {
    baseUrl: BASE_URL,
    providers: [provider, new OwnProvider('other')],
    local: localProvider(),
    store: kept.store,
    dataSecret: DATA_SECRET,
    rateLimit: false,
    session: { secret: SESSION_SECRET, store: kept.sessions },
    ...options
  }, { logger: { level: 'trace', stream } }, app => {
    app.get('/session', async ({ session }) => session)
    app.post('/sign-in-without-provider', async request => {
      const user = await app.auth.findUser({ email: 'ada@example.com' })
      return app.auth.signIn(request, user?.userId ?? '')
    })
  })
  return { fake, kept, start, lines }
}

function providerOf (fake: FakeOpenIdProvider, fetch = fake.fetch): OidcProvider {
  return fake.provider({ signOut: true, allowInsecureRequests: false, fetch })
}

async function signIn (browser: Browser, fake: FakeOpenIdProvider): Promise<void> {
  const { headers: { location = '' } } = await browser.get('/auth/fake/login')
  const answer = await browser.get(fake.consent(location))
  if (answer.statusCode !== 302 || answer.headers.location !== '/') throw new Error(`${answer.statusCode}: ${answer.body}`)
}

/** Signs out here and there, as a script does; null without a URL. */
async function urlOf (browser: Browser, fields: object = THERE): Promise<URL | null> {
  const { statusCode, body } = await browser.post('/auth/logout', fields)
  return statusCode === 204 ? null : new URL(JSON.parse(body).url)
}

for (const [name, keep] of KEPT) {
  t.test(`attack 99: a provider that is down, slow or lies keeps nobody signed in here, with ${name}`, async t => {
    const { fake, start, lines } = await setUp(t, keep)
    const one = await start()
    const stolen: Browser[] = []
    let isDead: boolean | null = null
    /** A provider of another process, which asks for the metadata at the sign-out. */
    const asking = (answer: () => Promise<Response>): typeof globalThis.fetch => async () => {
      isDead = await principalIn(stolen.at(-1) ?? new Browser(one)) === null
      return answer()
    }
    const announcing = (endpoint: unknown): typeof globalThis.fetch =>
      asking(async () => Response.json({ ...fake.metadata, end_session_endpoint: endpoint }))
    const providers: Array<[what: string, fetch: typeof globalThis.fetch, reason: RegExp | null]> = [
      ['down', asking(async () => { throw new TypeError('fetch failed') }), /id\.example.*fetch failed/],
      ['failing', asking(async () => new Response('', { status: 503 })), /id\.example/],
      ['slow', asking(async () => new Promise(() => {})), /fake did not answer within 5 seconds/],
      ['announcing http:', announcing('http://id.example/end'), /end_session_endpoint that is not an https: URL/],
      ['announcing javascript:', announcing('javascript:alert(1)'), /end_session_endpoint that is not an https: URL/],
      ['announcing data:', announcing('data:text/html,hi'), /end_session_endpoint that is not an https: URL/],
      ['announcing a number', announcing(1), /end_session_endpoint that is not an https: URL/],
      ['without an endpoint', announcing(undefined), null]
    ]
    for (const [what, fetch, reason] of providers) {
      for (const sendsForm of keep === inMemory ? [true, false] : [false]) {
        await t.test(`${what}, asked by a ${sendsForm ? 'form' : 'script'}`, async t => {
          const app = await start(fake.provider({ signOut: true, allowInsecureRequests: false, fetch, timeout: 60_000 }))
          const revoked: string[] = []
          app.auth.channel.on('revoke', userId => { revoked.push(userId) })
          const browser = new Browser(one)
          await signIn(browser, fake)
          const userId = await userIdIn(browser)
          const leaving = new Browser(app, browser.cookies)
          stolen.push(new Browser(one, browser.cookies))
          lines.length = 0
          isDead = null
          const endHaste = what === 'slow' ? hastenTime(t, 40) : null

          const answer = sendsForm ? await leaving.submit('/auth/logout', THERE) : await leaving.post('/auth/logout', THERE)

          endHaste?.()
          t.strictSame([answer.statusCode, answer.headers.location], sendsForm ? [303, '/bye'] : [204, undefined])
          t.equal(isDead, true, 'the session ended before the provider was asked')
          t.equal(await principalIn(leaving), null)
          t.strictSame(revoked, [userId])
          const warnings = lines.filter(line => line.includes('cannot be led to the provider'))
          t.strictSame(warnings.map(line => reason?.test(JSON.parse(line).reason)), reason === null ? [] : [true])
        })
      }
    }
  })

  t.test(`attack 99: no log, event, table or answer but that of the sign-out has the ID token, with ${name}`, async t => {
    const { fake, kept, start, lines } = await setUp(t, keep)
    const events = (['registration', 'sign-in', 'reauthentication', 'revoke'] as const).map(event => eventsOf(t, event))
    const app = await start()
    const browser = new Browser(app)
    await signIn(browser, fake)
    const seen = [(await browser.get('/me')).body, (await browser.get('/session')).body]
    if (kept.written !== null) seen.push(kept.written())
    const userId = await userIdIn(browser) ?? ''
    if (kept.sessions === undefined) seen.push(JSON.stringify(await app.auth.sessions(userId)))

    const url = await urlOf(browser)

    const idToken = url?.searchParams.get('id_token_hint') ?? ''
    t.match(decodeJwt(idToken), { iss: ISSUER, sub: 'ada' })
    const [, payload = ''] = idToken.split('.')
    seen.push(JSON.stringify(events), lines.join(''))
    if (kept.written !== null) seen.push(kept.written())
    t.ok(seen.every(text => text.length > 0) && events.some(event => event.length > 0))
    t.strictSame(seen.filter(text => text.includes(payload) || text.includes(payload.slice(0, 40))), [])
    await browser.get(`${SIGNED_OUT}?state=${url?.searchParams.get('state')}`)
    t.notOk(lines.join('').includes(url?.searchParams.get('state') ?? ''), 'nor is the state logged')
  })

  t.test(`attack 99: an ID token of 8 KB is not kept, with ${name}`, async t => {
    const { fake, kept, start } = await setUp(t, keep)
    const browser = new Browser(await start())
    fake.idTokenClaims = { groups: 'g'.repeat(5500) }
    await signIn(browser, fake)
    t.ok((kept.written?.().length ?? 0) < 4000, 'nor in parts')

    const url = await urlOf(browser)

    t.equal(url?.searchParams.get('id_token_hint'), null)
    t.equal(url?.searchParams.get('logout_hint'), 'ada@example.com')
    t.ok((url?.href.length ?? Infinity) < 8000)
  })
}

t.test('attack 99: only pages of this application sign users out, by POST', async t => {
  const { fake, start } = await setUp(t)
  const browser = new Browser(await start())
  await signIn(browser, fake)
  const foreign: Array<Record<string, string>> = [{ 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }, { origin: 'https://evil.example' }]
  for (const path of ['/auth/logout', '/auth/local/revoke']) {
    for (const headers of foreign) t.equal((await browser.post(path, THERE, headers)).json().code, 'cross_origin')
    for (const method of ['GET', 'HEAD'] as const) {
      t.equal((await browser.send({ method, url: `${path}?provider=true` })).statusCode, 404)
    }
  }
  t.equal((await browser.send({ method: 'HEAD', url: '/auth/fake/signed-out' })).statusCode, 404)
  t.not(await principalIn(browser), null)
  t.equal((await urlOf(browser))?.origin, ISSUER)
})

t.test('attack 99: a page after the sign-out is one of this application', async t => {
  const { fake, start } = await setUp(t)
  const app = await start(providerOf(fake), { trustedOrigins: ['https://front.example'] })
  const pages: Array<[next: string | undefined, page: string]> = [
    ['/bye?to=1', '/bye?to=1'], ['https://front.example/bye', 'https://front.example/bye'], ['//evil.example', '/'],
    ['https://evil.example/', '/'], ['/\\evil.example', '/'], ['javascript:alert(1)', '/'], ['/auth/fake/login?link=true', '/auth/fake/login?link=true'],
    [undefined, '/']
  ]
  for (const [next, page] of pages) {
    const browser = new Browser(app)
    await signIn(browser, fake)
    const state = (await urlOf(browser, { provider: true, ...(next !== undefined && { next }) }))?.searchParams.get('state')
    const answer = await browser.get(`/auth/fake/signed-out?state=${state}`)
    t.strictSame([answer.statusCode, answer.headers.location], [302, page], next ?? 'without next')
  }
})

t.test('attack 99: a state that is missing, foreign or old leads to the default page', async t => {
  const { fake, kept, start } = await setUp(t, KEPT[1]?.[1])
  class LeavingProvider extends OwnProvider {
    readonly signOut = true
    async endSessionUrl ({ redirectUri, state }: EndSessionRequest): Promise<URL> {
      return new URL(`https://own.example/end?to=${redirectUri}&state=${state}`)
    }
  }
  const app = await start(providerOf(fake), { baseUrl: `${BASE_URL}/shop`, providers: [providerOf(fake), new LeavingProvider('own')] })
  const stateOf = async (browser: Browser): Promise<string> => (await urlOf(browser))?.searchParams.get('state') ?? ''
  const [browser, other] = [new Browser(app), new Browser(app)]
  await signInAt(other, 'own', { subject: 'grace' })
  const foreign = await stateOf(other)
  const { headers: { location = '' } } = await browser.get('/auth/fake/login')
  await browser.get(fake.consent(location).replace('/shop', ''))
  const [session = ''] = kept.sessions?.sessions ?? []
  const { signOutHint } = JSON.parse(session).svcAuth
  t.type(signOutHint, 'string')
  const state = await stateOf(browser)
  const pages: Array<[query: string, page: string]> = [
    [`?state=${state}`, '/bye'], [`?state=${state}`, '/bye'], [`?state=${state}&iss=x`, '/bye'],
    ['', '/shop/'], ['?state=', '/shop/'], ['?state=a.b.c', '/shop/'], [`?state=${foreign}`, '/shop/'],
    [`?state=${signOutHint}`, '/shop/'], [`?state=${state}x`, '/shop/'], [`?state=${state}&state=${state}`, '/shop/'],
    ['?next=//evil.example', '/shop/']
  ]
  for (const [query, page] of pages) {
    const answer = await browser.get(`/auth/fake/signed-out${query}`)
    t.strictSame([answer.statusCode, answer.headers.location], [302, page], query.slice(0, 30))
    t.strictSame([answer.body, answer.headers['set-cookie'], answer.headers['cache-control']], ['', undefined, 'no-store, no-transform'])
  }
  advanceClock(t, 10 * 60 * 1000 + 1)
  t.equal((await browser.get(`/auth/fake/signed-out?state=${state}`)).headers.location, '/shop/')
})

t.test('a process that lacks the provider of a session signs its user out here alone', async t => {
  const { fake, start, lines } = await setUp(t)
  const browser = new Browser(await start())
  await signIn(browser, fake)
  const other = new Browser(await start(fake.provider({ name: 'another', signOut: true, allowInsecureRequests: false })), browser.cookies)

  t.equal(await urlOf(other), null)
  t.equal(await principalIn(browser), null)
  t.notOk(lines.some(line => line.includes('cannot be led to the provider')), 'which is no failure')
})

t.test('attack 99: the page of the sign-out runs nothing, whatever the endpoint is', async t => {
  const { fake, start } = await setUp(t)
  fake.metadata.end_session_endpoint = `${END_SESSION}/'"><script>alert(1)</script>?a=1&b=;url=//evil.example`
  const browser = new Browser(await start())
  await signIn(browser, fake)

  const { statusCode, headers, body } = await browser.submit('/auth/logout', THERE)

  t.equal(statusCode, 200)
  t.match(headers, { 'cache-control': 'no-store, no-transform', 'referrer-policy': 'no-referrer', 'content-type': 'text/html; charset=utf-8' })
  t.match(headers['content-security-policy'], /^default-src 'none'; style-src 'sha256-\S+'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'$/)
  t.equal(headers.location, undefined)
  t.equal(headers.refresh, undefined)
  t.notMatch(body, /<script/)
  const [, refresh = ''] = /<meta http-equiv="refresh" content="0; url=([^"]*)">/.exec(body) ?? []
  const [, link = ''] = /<a class="button [a-z]+" data-part="link" href="([^"]*)">/.exec(body) ?? []
  t.equal(refresh, link)
  const url = new URL(link.replaceAll('&#38;', '&').replaceAll('&#39;', "'"))
  t.equal(url.origin, ISSUER)
  t.strictSame([...url.searchParams.keys()], ['a', 'b', 'id_token_hint', 'client_id', 'post_logout_redirect_uri', 'state'])
})

t.test('attack 99: what a session keeps is of no use to others', async t => {
  const { fake, kept: { sessions }, start } = await setUp(t, KEPT[1]?.[1])
  const app = await start()
  const hintOf = async (browser: Browser): Promise<string | null | undefined> => (await urlOf(browser))?.searchParams.get('id_token_hint')
  const entryOf = (userId: string | null): [id: string, session: { svcAuth: { signOutHint: unknown } }] => {
    const [id = '', text = ''] = [...sessions?.entries ?? []].find(([, text]) => text.includes(`"userId":"${userId}"`)) ?? []
    return [id, JSON.parse(text)]
  }

  await t.test('who writes sessions gives a user no ID token of another one', async t => {
    const [ada, grace] = [new Browser(app), new Browser(app)]
    await signIn(ada, fake)
    const [, { svcAuth: ofAda }] = entryOf(await userIdIn(ada))
    fake.profile = { sub: 'grace' }
    for (const signOutHint of [ofAda.signOutHint, 'x', 1, null, { a: 1 }]) {
      await signIn(grace, fake)
      const [id, session] = entryOf(await userIdIn(grace))
      sessions?.entries.set(id, JSON.stringify({ ...session, svcAuth: { ...session.svcAuth, signOutHint } }))
      t.equal(await hintOf(grace), null)
    }
  })

  await t.test('the cookie of a session that has ended brings none', async t => {
    const [ada, stolen] = [new Browser(app), new Browser(app)]
    await signIn(ada, fake)
    for (const [name, value] of ada.cookies) stolen.cookies.set(name, value)
    await app.auth.signOutEverywhere(await userIdIn(ada) ?? '')
    t.equal((await stolen.post('/auth/logout', THERE)).statusCode, 204)
  })

  await t.test('one that another secret has encrypted is left out', async t => {
    const ada = new Browser(app)
    await signIn(ada, fake)
    const later = await start(providerOf(fake), { dataSecret: ['a newer data secret of the tests, 32 and more', DATA_SECRET] })
    const idToken = await hintOf(new Browser(later, ada.cookies)) ?? ''
    t.match(decodeJwt(idToken), { sub: 'grace' }, 'an older secret still opens it')
    await signIn(ada, fake)
    const without = await start(providerOf(fake), { dataSecret: 'a newer data secret of the tests, 32 and more' })
    const url = await urlOf(new Browser(without, ada.cookies))
    t.strictSame([url?.searchParams.get('id_token_hint'), url?.searchParams.get('client_id')], [null, fake.clientId])
  })
})

t.test('attack 99: a session of another sign-in is signed out as ever', async t => {
  const { fake, start } = await setUp(t)
  const app = await start()
  const signIns: Record<string, (browser: Browser) => Promise<unknown>> = {
    'no session': async () => {},
    'another provider': async browser => signInAt(browser, 'other', { subject: 'ada', email: 'o@example.com' }),
    'a password': async browser => browser.post('/auth/local/register', { email: 'p@example.com', password: 'correct horse' }),
    'the application, for a user of the provider': async browser => {
      await signIn(new Browser(app), fake)
      await browser.post('/sign-in-without-provider')
      t.equal((await principalIn(browser))?.provider, 'fake')
    }
  }
  for (const [what, signInBy] of Object.entries(signIns)) {
    const browser = new Browser(app)
    await signInBy(browser)
    const answer = await browser.submit('/auth/logout', THERE)
    t.strictSame([answer.statusCode, answer.headers.location], [303, '/bye'], what)
    t.equal(await principalIn(browser), null, what)
  }
  const browser = new Browser(app)
  await signIn(browser, fake)
  for (const provider of ['', 'false', 'off', false]) {
    t.equal((await new Browser(app, browser.cookies).post('/auth/logout', { provider })).statusCode, 204, String(provider))
    await signIn(browser, fake)
  }
  t.equal((await browser.post('/auth/logout', { provider: ['true'] })).json().code, 'invalid_request')
})

t.test('attack 99: a callback that finishes after the sign-out signs nobody in', async t => {
  const { fake, start } = await setUp(t)
  const [arrived, goOn] = [deferred(), deferred()]
  let isHeld = false
  const app = await start(providerOf(fake, async (input, init) => {
    if (isHeld && String(input).endsWith('/token')) {
      arrived.resolve()
      await goOn.promise
    }
    return fake.fetch(input, init)
  }))
  const browser = new Browser(app)
  await signIn(browser, fake)
  const { headers: { location = '' } } = await browser.get('/auth/fake/login')
  isHeld = true
  const late = new Browser(app, browser.cookies)
  const callback = late.get(fake.consent(location), { accept: 'application/json' })
  await arrived.promise
  t.not(await urlOf(browser), null)
  goOn.resolve()
  t.equal((await callback).json().code, 'invalid_state')
  t.equal(await principalIn(late), null)
})

t.test('attack 99: the ID token waits for the second factor, and stays with the session', async t => {
  const { fake, start } = await setUp(t)
  const app = await start(providerOf(fake), { secondFactor: new SecondFactor({ issuer: 'Shop' }) })
  const browser = new Browser(app)
  await signIn(browser, fake)
  t.equal((await linkAt(browser, 'other', { subject: 'another' })).statusCode, 302, 'a linking')
  const { secret } = await enrolAt(t, browser)
  t.not((await urlOf(new Browser(app, browser.cookies)))?.searchParams.get('id_token_hint'), null, 'the session has another id since')
  const { headers: { location = '' } } = await browser.get('/auth/fake/login')
  t.equal((await browser.get(fake.consent(location), { accept: 'application/json' })).json().code, 'second_factor_required')
  t.equal((await browser.post('/auth/local/second-factor', { code: nextCode(t, secret) })).statusCode, 200)

  const url = await urlOf(browser, { ...THERE, everywhere: true })

  t.match(decodeJwt(url?.searchParams.get('id_token_hint') ?? ''), { sub: 'ada' })
  t.equal(await principalIn(browser), null)
})

t.test('attack 99: a provider of the application that fails leaks no ID token', async t => {
  const { fake, start, lines } = await setUp(t)
  const urls: Array<(request: EndSessionRequest) => unknown> = [
    ({ idToken }) => { throw new TypeError(`Invalid URL: ${idToken}`) },
    async ({ idToken }) => new URL(`no URL ${idToken}`),
    async () => new URL('javascript:alert(1)'),
    async () => 'https://own.example/end',
    async () => undefined,
    async () => null
  ]
  for (const endSessionUrl of urls) {
    class FailingProvider extends OwnProvider {
      readonly signOut = true
      endSessionUrl = endSessionUrl as (request: EndSessionRequest) => Promise<URL | null>
    }
    const browser = new Browser(await start(providerOf(fake), { providers: [new FailingProvider('own')] }))
    await signInAt(browser, 'own', { subject: 'ada' })
    t.equal((await browser.post('/auth/logout', THERE)).statusCode, 204, String(endSessionUrl))
    t.equal(await principalIn(browser), null)
  }
  t.equal(lines.filter(line => line.includes('cannot be led to the provider')).length, 5)
  t.notOk(lines.join('').includes('the.id.token'))
})

t.test('attack 99: a sign-in without signOut encrypts and keeps nothing', async t => {
  const { fake, kept, start } = await setUp(t, KEPT[2]?.[1])
  fake.lies.set('/other', () => json(200, {}))
  const browser = new Browser(await start(fake.provider({ fetch: fake.fetch }), { dataSecret: undefined }))
  await signIn(browser, fake)
  t.match(kept.written?.(), 'replacedSessions')
  t.notMatch(kept.written?.(), 'signOutHint')
  t.equal((await browser.post('/auth/logout', THERE)).statusCode, 204)
  t.equal((await browser.get('/auth/fake/signed-out')).statusCode, 404)
})
