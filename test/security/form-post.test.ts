import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import type { InjectOptions } from 'fastify'
import t, { type Test } from 'tap'
import { AuthError, type AuthPluginOptions, type ExternalProvider, MemoryAuthStore } from '../../lib/index.js'
import { startFakeOpenIdProvider } from '../fakes/openid-provider.js'
import { SESSION_SECRET, localProvider, principalIn, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'

const BASE_URL = 'https://app.example'
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
/** What a page of another site sends when it submits a form in the window of a victim. */
const NAVIGATION = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }

/** Counts what the plugin asks of the sessions in a store. */
class WatchedStore extends MemoryAuthStore {
  readonly asked: string[] = []

  constructor () {
    super()
    for (const part of ['sessions', 'entries'] as const) {
      const watched = new Proxy(this[part], {
        get: (target, name) => {
          const member = Reflect.get(target, name)
          if (typeof member !== 'function') return member
          return (...given: unknown[]) => {
            this.asked.push(`${part}.${String(name)}`)
            return Reflect.apply(member, target, given)
          }
        }
      })
      Object.defineProperty(this, part, { value: watched })
    }
  }
}

async function start (t: Test, options: AuthPluginOptions = {}) {
  const lines: string[] = []
  const stream = { write: (line: string) => { lines.push(line) } }
  const store = new WatchedStore()
  const [posts, gets] = [await startFakeOpenIdProvider(t), await startFakeOpenIdProvider(t)]
  posts.profile = { sub: 'ada', email: 'ada@example.com', email_verified: true }
  gets.profile = { sub: 'bob', email: 'bob@example.com', email_verified: true }
  const posting = (['posts', 'other'] as const).map(name => posts.provider({ name, responseMode: 'form_post' }))
  const given = { baseUrl: BASE_URL, providers: [...posting, gets.provider({ name: 'gets' })], store, local: localProvider(), loginPage: '/login' }
  const app = await startApp(t, { ...given, ...options }, { logger: { level: 'info', stream } }, app => {
    // A page that writes into each session, as one that counts visits does.
    app.addHook('onRequest', async request => { Object.assign(request.session, { seen: true }) })
  })
  const browser = new Browser(app)
  const begin = async (name = 'posts') => {
    const { headers: { location = '' } } = await browser.get(`/auth/${name}/login?next=/in`)
    const { pathname, searchParams } = new URL((name === 'gets' ? gets : posts).consent(location), BASE_URL)
    return { url: location, pathname, fields: searchParams }
  }
  const post = async (fields: URLSearchParams | string, more: InjectOptions = {}) => app.inject({
    method: 'POST',
    url: '/auth/posts/callback',
    ...more,
    payload: more.payload ?? String(fields),
    headers: { ...FORM, ...NAVIGATION, accept: 'application/json', ...more.headers }
  })
  return { app, store, lines, browser, posts, begin, post }
}

t.test('attack 108: a response that is posted is passed on by 303 to the GET callback, without tokens', async t => {
  const { browser, begin, post, store, lines, posts } = await start(t)
  const { url, fields } = await begin()
  t.equal(new URL(url).searchParams.get('response_mode'), 'form_post')
  const tokens = { id_token: 'x', access_token: 'z' }
  const more = { session_state: 'y', error_description: 'secret-text', next: '//evil', error_next: '/e', link: 'true', user: '{"name":1}' }
  for (const [name, value] of Object.entries({ ...tokens, ...more })) fields.set(name, value)
  store.asked.length = 0
  posts.requests.length = 0

  const posted = await post(fields, { url: '/auth/posts/callback?state=planted&code=planted&next=/planted#x' })

  t.equal(posted.statusCode, 303)
  const location = new URL(posted.headers.location ?? '', BASE_URL)
  t.equal(location.pathname, '/auth/posts/callback')
  t.strictSame(Object.fromEntries(location.searchParams), {
    code: fields.get('code'), state: fields.get('state'), iss: fields.get('iss'), ...more
  })
  t.match(posted.headers, { 'cache-control': 'no-store, no-transform', 'referrer-policy': 'no-referrer', 'set-cookie': undefined })
  t.strictSame([store.asked, posts.requests], [[], []], 'nothing is read, and the provider is not asked')
  t.notMatch(lines.join(''), new RegExp(`${fields.get('code')}|${fields.get('state')}|secret-text`))

  t.equal((await browser.get(location.pathname + location.search, { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'document' })).headers.location, '/in')
  t.match(await principalIn(browser), { provider: 'posts' })
  const denial = await post('error=access_denied&state=s')
  t.equal(denial.headers.location, '/auth/posts/callback?error=access_denied&state=s')
})

t.test('attack 160: what a provider says of a refusal reaches the log from a post too, also if it is long', async t => {
  for (const words of ['AADSTS50105: not for you', `AADSTS50105: ${'ü'.repeat(2500)}`]) {
    const { browser, begin, post, lines } = await start(t)
    const { fields } = await begin()
    const denial = new URLSearchParams({ error_description: words, error: 'access_denied', state: fields.get('state') ?? '', iss: fields.get('iss') ?? '' })
    const { headers: { location = '' } } = await post(denial)
    t.ok(location.length <= 8192)
    t.ok(words.startsWith(new URL(location, BASE_URL).searchParams.get('error_description')?.replace(/\uFFFD$/, '') || 'nothing'))
    t.equal((await browser.get(location, { accept: 'text/html' })).headers.location, '/login?next=%2Fin&error=not_allowed')
    t.match(lines.join(''), `"reason":"access_denied: ${words.slice(0, 100)}`)
    t.notMatch(lines.join(''), new RegExp(`${fields.get('state')}`))
  }
})

t.test('attack 160: a provider of the application reads each field of a posted response', async t => {
  const read: string[][] = []
  const own: ExternalProvider = {
    name: 'own',
    responseMode: 'form_post',
    authorizationUrl: async ({ state }) => new URL(`https://own.example/?state=${state}`),
    authenticate: async ({ parameters }) => {
      read.push([...parameters].flat())
      throw new AuthError('access_denied')
    }
  }
  const { app, browser, post } = await start(t, { providers: [own] })
  const state = new URL((await browser.get('/auth/own/login')).headers.location ?? '').searchParams.get('state') ?? ''
  const fields = new URLSearchParams({ state, code: 'c', openid_4: '', session_state: 'a b&c' })
  const { headers: { location = '' } } = await post(fields, { url: '/auth/own/callback' })
  await browser.get(location)
  t.strictSame(read, [['state', state, 'code', 'c', 'openid_4', '', 'session_state', 'a b&c']])
  t.equal(app.authProviders.length, 1)
})

t.test('attack 108: hostile posts read and change nothing', async t => {
  const { app, store, browser, posts, begin, post, lines } = await start(t)
  const { fields } = await begin()
  const victim = new Browser(app)
  await victim.get(posts.consent((await victim.get('/auth/posts/login')).headers.location ?? '').replace('/posts/', '/posts/'))
  await victim.post('/auth/local/register', { email: 'victim@example.com', password: 'correct horse battery' })
  const cookie = [...victim.cookies].map(pair => pair.join('=')).join('; ')
  const [code, state] = [fields.get('code') ?? '', fields.get('state') ?? '']
  const principal = await principalIn(victim)
  t.not(principal, null)
  store.asked.length = 0
  posts.requests.length = 0
  lines.length = 0
  const multipart = { 'content-type': 'multipart/form-data; boundary=x' }
  const part = `--x\r\nContent-Disposition: form-data; name="state"\r\n\r\n${state}\r\n--x--`

  const refused: Record<string, Parameters<typeof post>> = {
    'a megabyte': [`${fields}&user=${'x'.repeat(1024 * 1024)}`],
    '16 KB and a byte': [`${fields}&x=${'x'.repeat(16_385 - String(fields).length - 3)}`],
    'state twice': [`${fields}&state=${state}`],
    'code twice': [`${fields}&code=other`],
    'an unknown field twice': [`${fields}&x=1&x=2`],
    'no state': [`code=${code}`],
    'no body': [''],
    'fields that make a Location above 8 KB': [`${fields}&user=${'%22'.repeat(2700)}`],
    multipart: [part, { headers: multipart }],
    JSON: ['', { payload: JSON.stringify({ code, state }), headers: { 'content-type': 'application/json' } }],
    'JSON with a parameter of its type': ['', {
      payload: JSON.stringify({ code, state }), headers: { 'content-type': 'application/json; a=application/x-www-form-urlencoded' }
    }],
    'JSON under a similar type': ['', { payload: '{}', headers: { 'content-type': 'application/x-www-form-urlencoded+json' } }],
    text: [String(fields), { headers: { 'content-type': 'text/plain' } }],
    'no type': [String(fields), { headers: { 'content-type': '' } }],
    'bytes that are not UTF-8': [`${fields}&user=%ff`],
    'a resource of a page': [fields, { headers: { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'empty' } }],
    'a frame': [fields, { headers: { 'sec-fetch-dest': 'iframe' } }]
  }
  for (const [name, [body, options]] of Object.entries(refused)) {
    for (const headers of [{}, { cookie }]) {
      const response = await post(body, { ...options, headers: { ...headers, ...options?.headers } })
      const [status, code] = name === 'a frame' || name === 'a resource of a page' ? [/^403$/, 'cross_origin'] : [/^(?:400|413|415)$/, 'invalid_request']
      t.match([String(response.statusCode), response.json().code], [status, code], name)
      t.equal(response.headers['set-cookie'], undefined, name)
    }
  }
  t.equal((await post(fields, { headers: { cookie } })).statusCode, 303, 'cookies of a victim make no difference')
  t.equal((await post(fields, { headers: { cookie: `${cookie}; ${cookie}` } })).headers['set-cookie'], undefined)
  t.strictSame([store.asked, posts.requests], [[], []], 'nothing is read')
  t.notMatch(lines.join(''), new RegExp(`${code}|${state}`))

  t.strictSame(await principalIn(victim), principal, 'the victim stays who they are')
  t.match(await post(fields, { url: '/auth/gets/callback', headers: { cookie } }), { statusCode: 403 }, 'a provider that is met by GET alone')
  const posted = await app.inject({ method: 'POST', url: '/auth/gets/callback', payload: String(fields), headers: FORM })
  t.match([posted.statusCode, posted.headers], [405, { allow: 'GET' }])
  t.match((await app.inject({ method: 'PUT', url: '/auth/posts/callback' })).headers, { allow: 'GET, POST' })
  t.equal((await victim.get(`/auth/posts/callback?${fields}`, { accept: 'application/json' })).json().code, 'invalid_state', 'nor are they signed in by it')
  t.equal((await browser.get(`/auth/posts/callback?${fields}`)).headers.location, '/in', 'the sign-in is still pending')
})

t.test('attack 108: the response of one provider at the callback of another is refused, and used up', async t => {
  const { browser, begin, post } = await start(t)
  const { fields } = await begin()
  const { statusCode, headers: { location = '' } } = await post(fields, { url: '/auth/other/callback' })
  t.equal(statusCode, 303)
  t.equal((await browser.get(location, { accept: 'application/json' })).json().code, 'invalid_state')
  t.equal((await browser.get(`/auth/posts/callback?${fields}`, { accept: 'application/json' })).json().code, 'invalid_state')
  t.equal(await principalIn(browser), null)
})

t.test('attack 108: posts count under the limit callback, but not those without the form of a response', async t => {
  const { post } = await start(t, { rateLimit: { callback: 2 } })
  const codes = []
  for (const fields of ['code=x', 'state=a&state=b', 'state=a', 'state=a', 'state=a']) codes.push((await post(fields)).statusCode)
  t.strictSame(codes, [400, 400, 303, 303, 429])
})

t.test('attack 108: a refusal of a posted response shows the login page to a browser', async t => {
  const { post } = await start(t)
  const { statusCode, headers } = await post('code=x', { headers: { accept: 'text/html' } })
  t.match({ statusCode, headers }, { statusCode: 303, headers: { location: '/login?error=invalid_request' } })
})

t.test('attack 108: with a session of the application neither a new cookie nor a changed session comes of a post', async t => {
  const fake = await startFakeOpenIdProvider(t)
  const { default: Fastify } = await import('fastify')
  const { default: authPlugin } = await import('../../lib/index.js')
  const app = Fastify()
  t.teardown(() => app.close())
  const sessions = new Map<string, string>()
  const saved: string[] = []
  await app.register(fastifyCookie)
  await app.register(fastifySession, {
    secret: SESSION_SECRET,
    cookie: { secure: false },
    store: {
      get: (id, done) => { const text = sessions.get(id); done(null, text === undefined ? null : JSON.parse(text)) },
      set: (id, session, done) => { saved.push(id); sessions.set(id, JSON.stringify(session)); done() },
      destroy: (id, done) => { sessions.delete(id); done() }
    }
  })
  app.addHook('onRequest', async request => { Object.assign(request.session, { seen: Math.random() }) })
  await app.register(authPlugin, { baseUrl: 'http://app.example', providers: [fake.provider({ name: 'posts', responseMode: 'form_post' })] })
  app.get('/me', async request => ({ principal: request.principal }))
  const browser = new Browser(app)
  const { headers: { location = '' } } = await browser.get('/auth/posts/login?next=/in')
  const { searchParams } = new URL(fake.consent(location), 'http://app.example')
  saved.length = 0

  for (const cookie of ['', [...browser.cookies].map(pair => pair.join('=')).join('; ')]) {
    const posted = await app.inject({ method: 'POST', url: '/auth/posts/callback', payload: String(searchParams), headers: { ...FORM, ...NAVIGATION, cookie } })
    t.match({ statusCode: posted.statusCode, cookie: posted.headers['set-cookie'] }, { statusCode: 303, cookie: undefined })
    t.strictSame(saved, [])
  }

  t.equal((await browser.get(`/auth/posts/callback?${searchParams}`)).headers.location, '/in')
  t.match(await principalIn(browser), { provider: 'posts' })
})
