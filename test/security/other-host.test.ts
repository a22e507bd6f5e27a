/** Attack 141: pages and sign-ins on another host than that of `baseUrl`, and hostile values of `Host`. */
import { once } from 'node:events'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { type AuthPluginOptions } from '../../lib/index.js'
import { Pages } from '../../lib/pages.js'
import { Passkeys } from '../../lib/passkeys.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { type Mailbox, mailbox } from '../../lib/testing.js'
import { SESSION_SECRET, localProvider, principalIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { DATA_SECRET } from '../helpers/factor-app.js'
import { ADA, BASE_URL } from '../helpers/mail-app.js'
import { OwnProvider, identityOf } from '../helpers/own-provider.js'
import { ecKey } from '../helpers/signing-key.js'
import { pageOf } from '../pages/page.js'

/** What browsers send for a page over plain http. */
const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
/** What they send besides over https. */
const NAVIGATION = { ...HTML, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
const HERE = { host: 'app.example' }
const ELSEWHERE = { host: 'www.app.example' }
const SIGN_IN = '/auth/pages/sign-in'

interface Start {
  app: FastifyInstance
  mails: Mailbox
  /** The paths that GET has. */
  paths: string[]
  /** The log lines about hosts. */
  warnings: Array<{ host: string, baseUrl: string, msg: string }>
}

/** An application with all pages of the plugin. */
async function start (t: Test, options: AuthPluginOptions = {}, server: FastifyServerOptions = {}): Promise<Start> {
  const [mails, paths, warnings]: [Mailbox, string[], Start['warnings']] = [mailbox(), [], []]
  const stream = {
    write: (line: string) => { if ('baseUrl' in JSON.parse(line)) warnings.push(JSON.parse(line)) }
  }
  const app: FastifyInstance = Fastify({ logger: { level: 'warn', stream }, ...server })
  t.teardown(() => app.close())
  app.addHook('onRoute', ({ method, path }) => { if ([method].flat().includes('GET')) paths.push(path) })
  await app.register(authPlugin, {
    baseUrl: BASE_URL,
    providers: [new OwnProvider('a')],
    local: localProvider({ secret: undefined, signingKey: ecKey(), sendMail: mails.sendMail }),
    dataSecret: DATA_SECRET,
    secondFactor: new SecondFactor({ issuer: 'Shop' }),
    passkeys: new Passkeys({ name: 'Shop' }),
    pages: new Pages({ name: 'Shop' }),
    session: { secret: SESSION_SECRET },
    rateLimit: false,
    ...options
  })
  app.get('/me', async request => ({ principal: request.principal }))
  app.get('/cart', { preHandler: app.auth.requireUser }, async () => 'the cart')
  await app.ready()
  return { app, mails, paths, warnings }
}

/** Where a redirect leads, without its mark; null for another answer. */
function targetOf (location: string | undefined): string | null {
  return location?.startsWith(BASE_URL) === true ? location.slice(BASE_URL.length).replace(/[?&]redirected=true$/, '') : null
}

t.test('attack 141: a navigation to a page or a sign-in is redirected to baseUrl, with its query, and nothing else is', async t => {
  const relatedOrigins = ['https://shop.example']
  const passkeys = new Passkeys({ name: 'Shop', relatedOrigins })
  const { app, paths } = await start(t, { passkeys, trustedOrigins: relatedOrigins })
  const redirected: string[] = []
  const query = '?token=a.b.c&next=%2Fcart%3Fa%3Db%26c%3Dd&link=true&error=invalid'
  for (const path of paths.filter(path => /^\/(auth|\.well-known)\//.test(path))) {
    for (const headers of [HTML, NAVIGATION]) {
      const { headers: { location, ...others } } = await app.inject({ url: path + query, headers: { ...headers, ...ELSEWHERE } })
      const target = targetOf(location)
      if (target === null) continue
      if (headers === NAVIGATION) redirected.push(path)
      t.equal(target, path + query)
      t.match(others, { 'cache-control': 'no-store, no-transform', 'set-cookie': undefined })
    }
  }
  const others = [
    '/.well-known/change-password', '/.well-known/passkey-endpoints', '/.well-known/webauthn', '/auth/*', '/auth/a/callback',
    '/auth/local/jwks.json', '/auth/local/passkeys/script.js', '/auth/session'
  ]
  t.strictSame(redirected.sort(), paths.filter(path => /^\/(auth|\.well-known)\//.test(path) && !others.includes(path)).sort())
  t.ok(redirected.length > 12)
  const page = await app.inject({ url: '/cart', headers: { ...NAVIGATION, ...ELSEWHERE } })
  t.equal(page.headers.location, `${SIGN_IN}?next=%2Fcart`, 'a page of the application')
})

t.test('attack 141: a client that is not a browser, and a script, are answered on each host', async t => {
  const { app, warnings } = await start(t)
  const clients: Array<Record<string, string>> = [
    {}, { accept: '*/*' }, { accept: 'application/json' }, { accept: 'application/json, text/html;q=0.9' },
    { ...HTML, 'sec-fetch-mode': 'cors' }, { ...HTML, 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
    { ...NAVIGATION, accept: 'application/json' }
  ]
  for (const headers of clients) {
    const { statusCode } = await app.inject({ url: SIGN_IN, headers: { ...headers, ...ELSEWHERE } })
    t.equal(statusCode, 200, JSON.stringify(headers))
    const login = await app.inject({ url: '/auth/a/login', headers: { ...headers, ...ELSEWHERE } })
    t.match(login.headers.location, 'https://a.example/authorize', JSON.stringify(headers))
  }
  t.equal((await app.inject({ method: 'HEAD', url: SIGN_IN, headers: { ...NAVIGATION, ...ELSEWHERE } })).statusCode, 200)
  const form = { ...NAVIGATION, ...ELSEWHERE, 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' }
  const posted = await app.inject({ method: 'POST', url: '/auth/local/register', headers: form, payload: new URLSearchParams(ADA).toString() })
  t.equal(posted.headers.location, '/')
  t.strictSame(warnings, [])
})

t.test('attack 141: the host of baseUrl may have its default port and capital letters, and a proxy may forward it', async t => {
  const { app, warnings } = await start(t)
  const visit = async (app: FastifyInstance, headers: Record<string, string>) =>
    (await app.inject({ url: SIGN_IN, headers: { ...NAVIGATION, ...headers } })).statusCode
  for (const host of ['app.example', 'app.example:443', 'APP.Example']) t.equal(await visit(app, { host }), 200, host)
  t.equal(await visit(app, {}), 200, 'the default of app.inject')
  t.equal(await visit(app, { ...HERE, 'x-forwarded-host': 'www.app.example' }), 200, 'of no proxy that is trusted')
  t.strictSame(warnings, [])
  for (const host of ['app.example:80', 'app.example:8443', 'app.example.', '127.0.0.1', 'localhost', 'localhost:8080']) {
    t.equal(await visit(app, { host }), 302, host)
  }
  t.equal(await visit(app, { ...ELSEWHERE, 'x-forwarded-host': 'app.example' }), 302)

  const { app: behind } = await start(t, {}, { trustProxy: true })
  t.equal(await visit(behind, { host: '10.0.0.1:3000', 'x-forwarded-host': 'app.example' }), 200)
  t.equal(await visit(behind, { ...HERE, 'x-forwarded-host': 'www.app.example' }), 302)
  const { app: local } = await start(t, { baseUrl: 'http://localhost:3000' })
  t.equal(await visit(local, { host: 'localhost:3000' }), 200)
  for (const host of ['127.0.0.1:3000', '[::1]:3000', 'localhost']) t.equal(await visit(local, { host }), 302, host)
})

t.test('attack 141: without baseUrl each host is that of the application', async t => {
  const { app } = await start(t, { baseUrl: undefined, providers: [], local: localProvider(), passkeys: undefined })
  t.equal((await app.inject({ url: SIGN_IN, headers: { ...NAVIGATION, ...ELSEWHERE } })).statusCode, 200)
})

t.test('attack 141: a sign-in that begins on another host ends signed in, and next survives', async t => {
  for (const base of [BASE_URL, 'http://localhost:3000']) {
    const { app, warnings } = await start(t, { baseUrl: base })
    const host = base === BASE_URL ? 'www.app.example' : '127.0.0.1:3000'
    // A browser keeps the cookies of each host apart.
    const [away, home] = [new Browser(app), new Browser(app)]
    const visit = async (path: string) => away.get(path, { ...HTML, host })
    const follow = async (location = '') => home.get(location.replace(base, ''), { ...HTML, host: new URL(base).host })

    const page = pageOf(await follow((await visit(String((await visit('/cart?item=1')).headers.location))).headers.location))
    t.match(page, { status: 200, title: 'Sign in' })
    t.notMatch(JSON.stringify([page.links, page.forms]), 'redirected')
    const login = await follow(page.links.find(link => link.startsWith('/auth/a/login')))
    const { searchParams } = new URL(login.headers.location ?? '')
    t.strictSame([...searchParams.keys()], ['state'])

    const direct = await follow((await visit('/auth/a/login?next=%2Fcart')).headers.location)
    t.strictSame([...new URL(direct.headers.location ?? '').searchParams.keys()], ['state'], 'the mark does not reach the provider')
    for (const [state, next] of [[searchParams.get('state'), '/cart?item=1'], [new URL(direct.headers.location ?? '').searchParams.get('state'), '/cart']]) {
      const code = JSON.stringify(identityOf({ subject: 'ada-1' }))
      t.equal((await follow(`/auth/a/callback?${new URLSearchParams({ state: state ?? '', code })}`)).headers.location, next)
    }
    t.match(await principalIn(home), { provider: 'a' })
    t.equal(away.cookies.size, 0)
    t.match(warnings, [{ host, baseUrl: base, msg: /^A visit on another host/ }], 'one line for all')
    t.equal(warnings.length, 1)
  }
})

t.test('attack 141: a link in a mail keeps its token, and the page of the application gets it on the host of baseUrl', async t => {
  const pages = { verifyEmail: '/confirm-address' }
  for (const options of [{}, { pages }]) {
    const mails = mailbox()
    const { app } = await start(t, { local: localProvider({ sendMail: mails.sendMail, ...options }) })
    await new Browser(app).post('/auth/local/register', ADA)
    const { url, token } = await mails.next('verify-email')
    const path = url.slice(BASE_URL.length)
    const { headers: { location = '' } } = await app.inject({ url: path, headers: { ...NAVIGATION, ...ELSEWHERE } })
    t.equal(targetOf(location), path)
    const shown = await app.inject({ url: location.slice(BASE_URL.length), headers: { ...NAVIGATION, ...HERE } })
    if ('pages' in options) t.equal(shown.headers.location, `/confirm-address?token=${token}`)
    else t.strictSame(pageOf(shown).forms[0]?.hidden, { done: 'email_confirmed', token })
  }
})

t.test('attack 141: behind a proxy that changes Host a browser is redirected once, and the log names both hosts', async t => {
  const { app, warnings } = await start(t)
  const inner = { ...NAVIGATION, host: '10.0.0.1:3000' }
  for (const path of [SIGN_IN, '/auth/pages/register?next=%2Fcart', '/auth/a/login?next=%2Fcart', '/auth/pages/sign-in?error=invalid']) {
    const { headers: { location = '' } } = await app.inject({ url: path, headers: inner })
    t.equal(targetOf(location), path)
    const again = await app.inject({ url: location.slice(BASE_URL.length), headers: inner })
    if (path.includes('login')) t.match(again.headers.location, /^https:\/\/a\.example\/authorize\?state=[^&]*$/)
    else t.equal(again.statusCode, 200, path)
  }
  t.match(warnings, [
    { level: 40, host: '10.0.0.1:3000', baseUrl: BASE_URL, msg: /^A visit on another host/ },
    { level: 40, host: '10.0.0.1:3000', baseUrl: BASE_URL, msg: /^A proxy changes Host/ }
  ])
  t.equal(warnings.length, 2, 'each once')
  const { app: other, warnings: others } = await start(t)
  await other.inject({ url: `${SIGN_IN}?redirected=`, headers: { ...NAVIGATION, ...HERE } })
  t.strictSame(others, [], 'on the host of baseUrl the mark means nothing')
})

/** Sends a request as it is written. */
async function sendRaw (port: string, path: string, host: string): Promise<IncomingMessage> {
  const request = httpRequest({ host: '127.0.0.1', port, path, headers: { ...NAVIGATION, host }, agent: false }).end()
  const [response] = await once(request, 'response') as [IncomingMessage]
  return response.resume()
}

t.test('attack 141: a hostile Host, or a hostile path, leads to no other place than baseUrl', async t => {
  const { app } = await start(t)
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
  const hosts = [
    'evil.example', 'app.example.evil.example', 'app.example@evil.example', 'evil.example/app.example', 'evil.example?app.example',
    'evil.example#', 'app.example:443@evil.example', 'app.example:x', 'app.example:99999', '[', '%61pp.example', 'a b', ' ', '.',
    '\\\\evil.example', 'app.example\tevil.example', 'x'.repeat(4000)
  ]
  const paths = [
    SIGN_IN, '/auth/a/login', '/%61uth/pages/sign-in', '/auth/pages/sign-in?next=//evil.example', '/auth/pages/sign-in?https://evil.example',
    'http://evil.example/auth/pages/sign-in', 'https://evil.example/auth/a/login?next=/cart', '//evil.example/auth/a/login',
    '/auth/pages/sign-in#@evil.example', '/auth/pages/sign-in?%0d%0aLocation:%20https://evil.example', '/auth/pages/sign-in?%ff=%zz&%'
  ]
  let redirected = 0
  for (const host of hosts) {
    for (const path of paths) {
      const { headers: { location }, statusCode = 0 } = await sendRaw(port, path, host)
      t.ok(statusCode < 500, `${statusCode} ${host} ${path}`)
      const { origin, pathname } = new URL(location ?? '', BASE_URL)
      if (origin === 'https://a.example') continue
      t.equal(origin, BASE_URL, `${host} ${path}`)
      if (location?.startsWith(BASE_URL) !== true) continue
      redirected++
      t.match(pathname, /^\/auth\/(pages\/sign-in|a\/login)$/, `${host} ${path}`)
    }
  }
  t.ok(redirected > 100, String(redirected))
})
