/** What browsers and scripts get where a request below the prefix fails. */
import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { AuthError, type AuthPluginOptions, SignInRefused, SqlAuthStore } from '../../lib/index.js'
import { Pages, de, en, es, fr } from '../../lib/pages.js'
import { mailbox } from '../../lib/testing.js'
import { SESSION_SECRET, localProvider } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { OwnProvider, leaveFor } from '../helpers/own-provider.js'
import { connect, proveAll, startConnectionApp, startTenants } from '../helpers/tenants.js'
import { actsOfLastApp, wholeApp } from '../helpers/whole-app.js'
import { pageOf, readerOf } from './page.js'

const NOWHERE = '/auth/nowhere'
const SECRET = 'connect ECONNREFUSED 192.0.2.7:5432 as svc_admin'
const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
/** A sign-in starts there: no page shows an error. */
const WITHOUT_LOGIN_PAGE = { providers: [new OwnProvider('a')], loginPage: '/auth/a/login' }

interface Failure { error: unknown, status: number, title: string, sentence: string, isForSupport: boolean }

const withStatus = (statusCode: number, more = {}) => Object.assign(new Error(SECRET), { statusCode, ...more })

/** What a hook of the application throws, by the status and the heading of the page. */
const FAILURES: Record<string, Failure> = {
  'a limiter': { error: withStatus(429), status: 429, title: 'Please wait', sentence: en.errors.rate_limited, isForSupport: false },
  'a full queue': { error: new AuthError('busy', { retryAfter: 5 }), status: 503, title: 'Please wait', sentence: en.errors.busy, isForSupport: true },
  'a ban': { error: withStatus(403), status: 403, title: 'Not allowed', sentence: en.errors.forbidden, isForSupport: true },
  'an old session': { error: withStatus(401), status: 401, title: 'That didn’t work', sentence: en.errors.unauthenticated, isForSupport: false },
  'an unknown thing': { error: withStatus(404), status: 404, title: 'Page not found', sentence: en.errors.not_found, isForSupport: false },
  'a fault': { error: new TypeError(SECRET), status: 500, title: 'Something went wrong', sentence: en.errors.internal_error, isForSupport: true },
  'a fault with a code': {
    error: withStatus(502, { code: 'ECONN' }), status: 502, title: 'Something went wrong', sentence: en.errors.internal_error, isForSupport: true
  },
  'a value': { error: SECRET, status: 500, title: 'Something went wrong', sentence: en.errors.internal_error, isForSupport: true }
}

/** Starts an application whose requests fail from a moment on. */
async function start (
  t: Test, options: AuthPluginOptions, server: FastifyServerOptions = {}
): Promise<{ app: FastifyInstance, fail: (error: unknown) => void }> {
  let failure: { error: unknown } | null = null
  const app: FastifyInstance = Fastify(server)
  t.teardown(() => app.close())
  app.addHook('onRequest', async () => { if (failure !== null) throw failure.error })
  await app.register(authPlugin, { session: { secret: SESSION_SECRET }, baseUrl: 'https://app.example', local: localProvider(), rateLimit: false, ...options })
  app.get('/', async () => 'the application')
  await app.ready()
  return { app, fail (error) { failure = { error } } }
}

const pages = new Pages({ name: 'Shop' })

/** What programs and scripts alone ask. */
const FOR_SCRIPTS = [
  'GET /auth/session', 'POST /auth/local/token', 'POST /auth/local/verify-token', 'POST /auth/oauth/token', 'POST /auth/oauth/device',
  'POST /auth/oauth/revoke', 'POST /auth/connections/:id/backchannel-logout'
]
const UNKNOWN = ['GET /auth', 'GET /auth/nowhere', 'POST /auth/nowhere', 'PUT /auth/local/login', 'PROPFIND /auth/x']

const whole = (options: AuthPluginOptions = {}): AuthPluginOptions => ({
  ...wholeApp(mailbox().sendMail), ...WITHOUT_LOGIN_PAGE, rateLimit: {}, store: new SqlAuthStore(':memory:'), ...options
})

const ask = async (app: FastifyInstance, act: string, headers: Record<string, string>) => {
  const [method, url = ''] = act.split(' ')
  return app.inject({ method: method as 'GET', url: url.replace(/:\w+/, 'x'), headers })
}

t.test('attack 231: at each act a browser whose request fails gets a page with the status, and no word of the error', async t => {
  const { app, fail } = await start(t, whole())
  const acts = [...actsOfLastApp(), ...UNKNOWN].filter(act => !FOR_SCRIPTS.includes(act))
  t.ok(acts.length > 50, `${acts.length} acts`)
  for (const [name, { error, status, sentence }] of Object.entries(FAILURES)) {
    fail(error)
    for (const act of acts) {
      const answer = await ask(app, act, HTML)
      const page = pageOf(answer)
      t.equal(page.status, status, `${name}, ${act}`)
      t.match(answer.headers, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store, no-transform' }, act)
      t.match(answer.headers['content-security-policy'], 'default-src \'none\'', act)
      t.match(page.text, sentence, act)
      t.ok(page.links.includes('/'), `${act} has a way on`)
      t.notMatch(page.html, /ECONN|192\.0\.2|svc_admin|TypeError|\n\s+at |"code"/, act)
    }
  }
})

t.test('with a sign-in page a browser is led there or gets a page, and never JSON', async t => {
  const { app, fail } = await start(t, whole({ loginPage: undefined }))
  const acts = [...actsOfLastApp(), ...UNKNOWN].filter(act => !FOR_SCRIPTS.includes(act))
  for (const { error, status } of Object.values(FAILURES)) {
    fail(error)
    for (const act of acts) {
      const { statusCode, headers } = await ask(app, act, HTML)
      if (headers.location === undefined) t.match([statusCode, headers['content-type']], [status, /^text\/html/], act)
      else t.match(headers.location, /^\/auth\/pages\/sign-in\?(?:.*&)?error=/, act)
    }
  }
})

t.test('scripts, and what only scripts ask, get what they get without the option pages', async t => {
  const [shown, plain] = [await start(t, whole()), await start(t, whole({ pages: undefined }))]
  const acts = [...actsOfLastApp(), ...UNKNOWN]
  let compared = 0
  for (const { error } of Object.values(FAILURES)) {
    for (const { fail } of [shown, plain]) fail(error)
    for (const act of acts) {
      for (const accept of ['application/json', '*/*', ...FOR_SCRIPTS.includes(act) ? [HTML.accept] : []]) {
        const [answer, before] = [await ask(shown.app, act, { accept }), await ask(plain.app, act, { accept })]
        // The page of a link is one for every client.
        if (before.headers['content-type']?.startsWith('text/html') === true) continue
        compared++
        for (const one of [answer, before]) delete one.headers.date
        t.strictSame([answer.statusCode, answer.headers, answer.body], [before.statusCode, before.headers, before.body], `${act} as ${accept}`)
      }
    }
  }
  t.ok(compared > 500, `${compared} answers`)
})

for (const [name, { error, status, title, sentence, isForSupport }] of Object.entries(FAILURES)) {
  t.test(`${name} is a page with a heading, a sentence, ways on and, where it helps, the id for support`, async t => {
    const { app, fail } = await start(t, { pages, ...WITHOUT_LOGIN_PAGE }, { genReqId: () => 'the-<id>' })
    fail(error)
    const page = await readerOf(t, new Browser(app)).open('/auth/session/x')
    t.match(page, { status, title, links: ['/'], forms: [], alert: null })
    t.match(page.text, sentence)
    t.equal(page.html.includes('<p class="faint">Tell support: <code translate="no">the-&#60;id&#62;</code></p>'), isForSupport)
  })
}

t.test('a wrong path leads to the sign-in and to the application, a signed-in user to the application', async t => {
  const { app } = await start(t, { pages })
  const browser = new Browser(app)
  const { open } = readerOf(t, browser)
  t.match(await open(NOWHERE), { status: 404, title: 'Page not found', links: ['/auth/pages/sign-in', '/'] })
  await browser.post('/auth/local/register', { email: 'ada@example.com', password: 'correct horse' })
  t.match(await open(NOWHERE), { status: 404, title: 'Page not found', links: ['/'] })
  t.match(await open('/auth/local/login'), { status: 404 }, 'a route of another method')
  t.match(pageOf(await browser.submit(NOWHERE, {})), { status: 404, title: 'Page not found' })
  t.equal((await browser.send({ method: 'HEAD', url: NOWHERE, headers: HTML })).headers['content-type'], 'text/html; charset=utf-8')
})

t.test('the page says when to try again, in the header too', async t => {
  const { app } = await start(t, { pages, ...WITHOUT_LOGIN_PAGE, rateLimit: { start: 1 } })
  const { open } = readerOf(t, new Browser(app))
  await app.inject('/auth/a/login')
  const page = await open('/auth/a/login')
  t.match(page, { status: 429, title: 'Please wait' })
  t.match(page.text, 'Too many attempts. Try again in 15 minutes.')
  t.match((await app.inject({ url: '/auth/a/login', headers: HTML })).headers, { 'retry-after': '900' })
})

t.test('a sign-in that fails has a page where no other page shows it, with the sentence of the application as text', async t => {
  const onSignIn = () => { throw new SignInRefused('not_invited', 'You are not <b>invited</b>.') }
  const { app } = await start(t, { pages, onSignIn, ...WITHOUT_LOGIN_PAGE })
  const browser = new Browser(app)
  const refused = pageOf(await browser.get(await leaveFor(browser, '/auth/a/login', { subject: 'ada' }, {}), HTML))
  t.match(refused, { status: 403, title: 'Not allowed' })
  t.match(refused.html, '<p>You are not &#60;b&#62;invited&#60;/b&#62;.</p>')
  const callback = await leaveFor(browser, '/auth/a/login', { subject: 'ada' }, {})
  const broken = pageOf(await browser.get(callback.replace(/code=[^&]*/, `code=${SECRET}`), HTML))
  t.match(broken, { status: 502, title: 'Something went wrong' })
  t.match(broken.text, en.errors.provider_error)
  t.notMatch(broken.html, 'ECONN')
})

t.test('attack 231: the page of a failure repeats nothing of the query', async t => {
  const { app } = await start(t, { pages, ...WITHOUT_LOGIN_PAGE })
  const { open } = readerOf(t, new Browser(app))
  for (const path of [NOWHERE, '/auth/a/callback', '/auth/a/login']) {
    const page = await open(`${path}?state=planted&code=planted&error=planted&error_description=planted&signed=planted&lang=de`)
    t.ok(page.status >= 400, path)
    t.notMatch(page.html, 'planted', path)
    t.equal(page.lang, 'de', 'but for the language')
  }
})

for (const texts of [en, de, fr, es]) {
  t.test(`the pages of failures speak ${texts.language}`, async t => {
    const { app, fail } = await start(t, { pages, ...WITHOUT_LOGIN_PAGE })
    const { open } = readerOf(t, new Browser(app))
    const headers = { 'accept-language': texts.language }
    t.match(await open(NOWHERE, headers), { lang: texts.language, title: texts.failures.notFound })
    for (const [statusCode, heading] of [[400, 'refused'], [403, 'forbidden'], [429, 'wait'], [500, 'fault']] as const) {
      fail(withStatus(statusCode))
      const page = await open(NOWHERE, headers)
      t.match(page, { status: statusCode, title: texts.failures[heading] })
      t.equal(page.text.includes(texts.failures.support), heading === 'fault' || heading === 'forbidden')
    }
  })
}

t.test('the users of a connection are led to it', async t => {
  const world = await startTenants(t)
  const { tenants: [acme] } = world
  const { app } = await startConnectionApp(t, { pages, loginPage: '/auth/a/login' })
  const connection = await connect(app, acme, { domains: ['example.com'], name: 'Acme' })
  await proveAll(app, world, connection)
  await app.auth.connections.update(connection.id, { enforce: true })
  const answer = await new Browser(app).submit('/auth/local/forgot-password', { email: 'ada@example.com' })
  const page = pageOf(answer)
  t.match(page, { status: 403, title: 'Not allowed' })
  t.match(page.text, `${en.errors.sso_required} Continue with Acme`)
  t.match(page.links[0], connection.loginPath)
})

t.test('support is an e-mail address, a URL or a path, and the link of the words before the id', async t => {
  for (const [support, href] of [
    ['help@shop.example', 'mailto:help@shop.example'], ['https://shop.example/help#contact', 'https://shop.example/help#contact'], ['/help', '/help']
  ]) {
    const { app, fail } = await start(t, { ...WITHOUT_LOGIN_PAGE, pages: new Pages({ name: 'Shop', support }) })
    fail(new Error(SECRET))
    const page = await readerOf(t, new Browser(app)).open(NOWHERE)
    t.strictSame(page.links, ['/', href])
    t.match(page.html, `href="${href}">Tell support:</a> <code translate="no">req-`)
  }
  for (const support of ['javascript:alert(1)', 'http://shop.example', '//shop.example', 'nobody', '', 1]) {
    t.throws(() => new Pages({ name: 'Shop', support: support as string }), {
      message: 'Pages: support must be an e-mail address, an https: URL or a path of this application'
    })
  }
})

t.test('without the option pages a browser gets JSON, mails or not', async t => {
  for (const sendMail of [undefined, mailbox().sendMail]) {
    const { app, fail } = await start(t, { local: localProvider({ sendMail }) })
    t.match((await app.inject({ url: NOWHERE, headers: HTML })).json(), { statusCode: 404, code: 'not_found' })
    fail(new Error(SECRET))
    t.match((await app.inject({ url: '/auth/local/login', method: 'POST', headers: HTML })).json(), { statusCode: 500, code: 'internal_error' })
  }
})
