import fastifyCors from '@fastify/cors'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { type AuthPluginOptions } from '../../lib/index.js'
import { Pages } from '../../lib/pages.js'
import { SESSION_SECRET, localProvider } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { ADA, BASE_URL, type MailApp, registerAt, resetTokenOf, startMailApp } from '../helpers/mail-app.js'
import { OwnProvider, leaveFor, postLogin } from '../helpers/own-provider.js'

const FRONT = 'https://front.app.example'
const OTHER_SITE = 'https://front.other.example'
const HTML = { accept: 'text/html' }
const WRONG = { ...ADA, password: 'wrong horse' }
/** A navigation from a page of the front end, whose referrer policy is that of browsers. */
const FROM_FRONT = { 'sec-fetch-site': 'same-site', 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate', referer: `${FRONT}/` }

async function start (t: Test, options: AuthPluginOptions = {}): Promise<MailApp> {
  return startMailApp(t, { trustedOrigins: [FRONT], ...options })
}

t.test('attack 26: the page after a form or a provider, and that of an error, may be one of a trusted origin', async t => {
  const { browser, app } = await start(t)
  await browser.post('/auth/local/register', ADA)
  const headers = { origin: FRONT, ...FROM_FRONT }
  const submit = async (fields: Record<string, string>, referer = `${FRONT}/`): Promise<unknown> => {
    return (await new Browser(app).submit('/auth/local/login', fields, { ...headers, referer })).headers.location
  }

  t.equal(await submit({ ...ADA, next: `${FRONT}/cart?a=b#c` }), `${FRONT}/cart?a=b#c`)
  t.equal(await submit({ ...WRONG, error_next: `${FRONT}/login?x=1#form` }), `${FRONT}/login?x=1&error=invalid#form`)
  t.equal(await submit(WRONG), `${FRONT}/?error=invalid`, 'the Referer')
  t.equal(await submit(WRONG, 'https://front.app.example.evil.test/'), undefined)
  t.equal(await submit({ ...ADA, next: 'https://evil.test/' }), '/')
  t.equal((await browser.submit('/auth/logout', { next: `${FRONT}/bye` }, headers)).headers.location, `${FRONT}/bye`)

  const query = new URLSearchParams({ next: `${FRONT}/cart`, error_next: `${FRONT}/login` })
  const visitor = new Browser(app)
  const callback = await leaveFor(visitor, `/auth/a/login?${query}`, { subject: 'ada-1' }, FROM_FRONT)
  t.equal((await visitor.get(callback)).headers.location, `${FRONT}/cart`)
  const failed = await leaveFor(new Browser(app, visitor.cookies), `/auth/a/login?${query}`, { subject: 'ada-1' }, FROM_FRONT)
  const state = new URL(failed, BASE_URL).searchParams.get('state')
  t.equal((await visitor.get(`/auth/a/callback?error=access_denied&state=${state}`)).headers.location, `${FRONT}/login?error=provider_error`)
  t.equal(app.auth.signInUrl('a', { next: `${FRONT}/cart` }), `/auth/a/login?${new URLSearchParams({ next: `${FRONT}/cart` })}`)
})

t.test('guards send browsers to pages of a trusted origin, with the whole URL to come back to', async t => {
  const same = await start(t, { loginPage: `${FRONT}/private` })
  const { headers } = await same.browser.get('/private', HTML)
  t.equal(headers.location, `${FRONT}/private?${new URLSearchParams({ next: `${BASE_URL}/private` })}`, 'of the same path, too')
  const changePasswordPage = `${FRONT}/account`
  const { browser } = await start(t, { loginPage: `${FRONT}/login?from=api`, reauthenticatePage: `${FRONT}/confirm`, changePasswordPage })
  t.equal((await browser.get('/.well-known/change-password')).headers.location, changePasswordPage)
  await browser.post('/auth/local/register', ADA)
  const { headers: { location = '' } } = await new Browser(browser.app).get('/private?a=b', HTML)

  const page = new URL(String(location))
  t.equal(page.href.split('&')[0], `${FRONT}/login?from=api`)
  const next = page.searchParams.get('next') ?? ''
  t.equal(next, `${BASE_URL}/private?a=b`)
  t.equal((await browser.submit('/auth/local/login', { ...ADA, next })).headers.location, '/private?a=b', 'which the routes take')
  t.equal((await new Browser(browser.app).get('/auth/a/callback?state=guess', HTML)).headers.location, `${FRONT}/login?from=api&error=invalid_state`)
})

t.test('a session that is too old for a change is confirmed on the page of a trusted origin', async t => {
  const { browser } = await start(t, { reauthenticatePage: `${FRONT}/confirm` })
  await browser.post('/auth/local/register', ADA)
  advanceClock(t, 11 * 60_000)

  const link = await browser.submit('/auth/a/login', { link: 'true' }, { ...HTML, ...FROM_FRONT, origin: FRONT })
  t.equal(link.headers.location, `${FRONT}/confirm?${new URLSearchParams({ next: `${FRONT}/` })}`)
})

t.test('attack 175: a form of a page of a trusted origin links an identity, and none of another origin does', async t => {
  const { browser, app } = await start(t, { trustedOrigins: [FRONT, OTHER_SITE] })
  await browser.post('/auth/local/register', ADA)
  const userId = (await browser.get('/private')).statusCode === 200 ? String((await app.auth.findUser({ email: ADA.email }))?.userId) : ''
  const refused = {
    'another site': { origin: 'https://evil.test', 'sec-fetch-site': 'cross-site' },
    'a sibling that is not listed': { origin: 'https://www.app.example', 'sec-fetch-site': 'same-site' },
    'a page that does not say who it is': { origin: 'null', 'sec-fetch-site': 'cross-site' },
    'a longer name': { origin: `${FRONT}.evil.test`, 'sec-fetch-site': 'cross-site' },
    'the http twin': { origin: 'http://front.app.example' },
    'another port': { origin: `${FRONT}:444` }
  }

  for (const [way, headers] of Object.entries(refused)) {
    t.equal((await postLogin(browser, '/auth/a/login?link=true', headers)).json().code, 'cross_origin', way)
  }
  for (const headers of [FROM_FRONT, { referer: `${FRONT}/`, ...HTML }]) {
    await browser.get(await leaveFor(browser, '/auth/a/login?link=true', { subject: 'ada-1' }, { ...headers, origin: FRONT }))
  }
  t.match(await app.auth.links(userId), [{ provider: 'a', subject: 'ada-1' }, { provider: 'local' }])
})

t.test('links in mails lead to pages of a trusted origin, with their token', async t => {
  const pages = { resetPassword: `${FRONT}/reset?a=b#c`, verifyEmail: `${FRONT}/verify` }
  const app = await startMailApp(t, { trustedOrigins: [FRONT] }, { pages })
  const verification = await registerAt(app)
  const reset = await resetTokenOf(app)

  const visitor = new Browser(app.app)
  const shown = await visitor.get(`/auth/local/reset-password?token=${reset}`)
  t.equal(shown.headers.location, `${FRONT}/reset?a=b&token=${reset}#c`)
  t.equal(shown.headers['referrer-policy'], 'no-referrer')
  t.equal((await visitor.get(`/auth/local/verify-email?token=${verification}`)).headers.location, `${FRONT}/verify?token=${verification}`)
  const short = { token: reset, password: 'short', error_next: `${FRONT}/reset` }
  t.equal((await visitor.submit('/auth/local/reset-password', short, { origin: FRONT })).headers.location, `${FRONT}/reset?error=weak_password`)
})

t.test('the pages of the plugin let forms lead to trusted origins, and are those of this origin alone', async t => {
  const { app, browser } = await start(t, { pages: new Pages({ name: 'Shop' }) })
  await browser.post('/auth/local/register', ADA)
  const policy = (await browser.get('/auth/pages/sign-in')).headers['content-security-policy']
  t.match(policy, `form-action 'self' ${FRONT}; frame-ancestors 'none'`)
  const plain = await startMailApp(t, { trustedOrigins: [FRONT] })
  t.match((await plain.browser.get('/auth/local/reset-password?token=a')).headers['content-security-policy'], `form-action 'self' ${FRONT};`)
  t.match((await (await startMailApp(t)).browser.get('/auth/local/reset-password?token=a')).headers['content-security-policy'], "form-action 'self'; ")

  const answer = await new Browser(app).submit('/auth/local/login', { ...WRONG, error_next: `${FRONT}/auth/pages/sign-in` })
  t.equal(answer.headers.location, `${FRONT}/auth/pages/sign-in?error=invalid`)
})

t.test('pages of an origin that is not listed are refused at the start', async t => {
  for (const page of ['https://front.app.example.evil.test/', 'https://app.example/login', 'http://front.app.example/', '//front.app.example/']) {
    const app = Fastify()
    t.teardown(() => app.close())
    const options = { session: { secret: SESSION_SECRET }, baseUrl: BASE_URL, trustedOrigins: [FRONT], loginPage: page }
    await t.rejects(async () => app.register(authPlugin, options), {
      message: 'loginPage must be a path of this application, such as /login, or a URL of an origin in trustedOrigins'
    })
  }
})

t.test('a script of a trusted origin that cannot read the answers is named in the log, once, with what to register', async t => {
  const cors = async (options?: object): Promise<{ app: FastifyInstance, lines: Array<Record<string, unknown>> }> => {
    const lines: Array<Record<string, unknown>> = []
    const app = Fastify({ logger: { level: 'warn', stream: { write: (line: string) => { if (line.includes('Scripts of')) lines.push(JSON.parse(line)) } } } })
    t.teardown(() => app.close())
    if (options !== undefined) await app.register(fastifyCors, options)
    await app.register(authPlugin, {
      session: { secret: SESSION_SECRET }, baseUrl: BASE_URL, trustedOrigins: [FRONT], local: localProvider(), rateLimit: false
    })
    return { app, lines }
  }
  const headers = { origin: FRONT, 'sec-fetch-mode': 'cors', 'sec-fetch-site': 'same-site' }
  const expected = `{ origin: ['${FRONT}'], credentials: true }`

  for (const [options, said] of [[undefined, 'absent'], [{}, '"*"'], [{ credentials: true }, '"*"'], [{ origin: [FRONT] }, `"${FRONT}"`]] as const) {
    const { app, lines } = await cors(options)
    for (const method of ['POST', 'OPTIONS', 'POST'] as const) await app.inject({ method, url: '/auth/local/login', headers, payload: ADA })
    t.equal(lines.length, 1, said)
    t.match(lines[0]?.msg, said)
    t.match(lines[0]?.msg, expected)
  }
  const { app, lines } = await cors({ origin: [FRONT], credentials: true })
  const answer = await app.inject({ method: 'POST', url: '/auth/local/login', headers, payload: ADA })
  t.match(answer, { statusCode: 401, headers: { 'access-control-allow-origin': FRONT, 'access-control-allow-credentials': 'true' } })
  const silent = [{ ...headers, 'sec-fetch-mode': 'navigate' }, { ...headers, 'sec-fetch-site': 'same-origin' }, { ...headers, origin: 'https://evil.test' }]
  const plain = await cors()
  for (const others of silent) await plain.app.inject({ method: 'POST', url: '/auth/local/login', headers: others, payload: ADA })
  t.strictSame([...lines, ...plain.lines], [])
})

t.test('a sign-out clears a partitioned cookie, as browsers tell it from one that is not', async t => {
  const { app } = await startMailApp(t, {
    trustedOrigins: [FRONT], session: { secret: SESSION_SECRET, cookie: { sameSite: 'none', partitioned: true } }
  }, {}, { trustProxy: true })
  const browser = new Browser(app)
  const headers = { 'x-forwarded-proto': 'https', origin: FRONT, 'sec-fetch-site': 'cross-site' }
  const registered = await browser.post('/auth/local/register', ADA, headers)
  t.match(registered.headers['set-cookie'], /; SameSite=None; Partitioned|; Partitioned; SameSite=None/)

  const left = await browser.post('/auth/logout', {}, headers)
  t.match(String(left.headers['set-cookie']), /^svc_session=; .*Expires=Thu, 01 Jan 1970.*Partitioned/)
})

t.test('where a page or a cookie is of another origin, the log names the origins of the page and of the request', async t => {
  const lines: Array<Record<string, unknown>> = []
  const app = Fastify({ logger: { stream: { write: (line: string) => { lines.push(JSON.parse(line)) } } } })
  t.teardown(() => app.close())
  await app.register(authPlugin, {
    session: { secret: SESSION_SECRET }, baseUrl: BASE_URL, providers: [new OwnProvider('a')], local: localProvider(), rateLimit: false
  })
  const headers = { host: 'internal:3000' }
  await app.inject({ method: 'POST', url: '/auth/local/login', headers: { ...headers, origin: 'https://evil.test' }, payload: ADA })
  await app.inject({ url: '/auth/a/callback?code=c&state=s', headers: { ...headers, referer: 'https://id.example/consent?of=ada' } })
  await app.inject({ url: '/auth/a/callback?code=c&state=s', headers: { ...headers, referer: 'no URL' } })
  await app.inject({ method: 'POST', url: '/auth/local/login', headers, payload: ADA })

  const named = lines.flatMap(({ code, origins }) => typeof code === 'string' ? [[code, origins]] : [])
  t.strictSame(named, [
    ['cross_origin', { page: 'https://evil.test', request: 'http://internal:3000' }],
    ['invalid_state', { page: 'https://id.example', request: 'http://internal:3000' }],
    ['invalid_state', { page: null, request: 'http://internal:3000' }],
    ['invalid', undefined]
  ])
})
