/** Applications whose public URL has a path: behind a proxy that removes it, with `rewriteUrl`, and in Fastify itself. */
import { request as httpRequest, createServer } from 'node:http'
import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { type AuthPluginOptions } from '../lib/index.js'
import { Site } from '../lib/core/site.js'
import { SESSION_SECRET, localProvider, startApp } from './helpers/app.js'
import { Browser } from './helpers/browser.js'
import { listen } from './helpers/loopback.js'
import { startMailApp } from './helpers/mail-app.js'
import { OwnProvider } from './helpers/own-provider.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const BASE_URL = 'https://app.example/shop'
const HTML = { accept: 'text/html' }

async function shop (t: Test, options: AuthPluginOptions = {}, server: FastifyServerOptions = {}): Promise<FastifyInstance> {
  const defaults = { baseUrl: BASE_URL, providers: [new OwnProvider('a')], local: localProvider(), loginPage: '/sign-in' }
  return startApp(t, { ...defaults, ...options }, server, app => {
    app.get('/sign-in', { preHandler: app.auth.requireUser }, async () => 'a guard where there should be none')
    app.get('/cart', { preHandler: app.auth.requireUser }, async () => 'the cart')
  })
}

/** What an application does whose Fastify sees the public path. */
const rewriteUrl = ({ url = '/' }: { url?: string | undefined }): string => url.replace(/^\/shop(?=\/)/, '')

/** Browsers ask for a path as the application or `rewriteUrl` sees it. */
const WAYS: Array<[way: string, server: FastifyServerOptions, seen: (path: string) => string]> = [
  ['a proxy that removes the path', {}, path => path],
  ['rewriteUrl', { rewriteUrl }, path => `/shop${path}`]
]

for (const [way, server, seen] of WAYS) {
  t.test(`with ${way}, a guard sends to the login page under the path, and back under it`, async t => {
    const browser = new Browser(await shop(t, {}, server))

    const { headers: { location = '' } } = await browser.get(seen('/cart?item=1'), HTML)
    t.equal(location, `/shop/sign-in?${new URLSearchParams({ next: '/shop/cart?item=1' })}`)

    const next = new URL(location, BASE_URL).searchParams.get('next') ?? ''
    t.equal((await browser.submit(seen('/auth/local/register'), { ...ADA, next })).headers.location, '/shop/cart?item=1')
    t.equal((await browser.get(seen('/cart?item=1'), HTML)).body, 'the cart')
  })

  t.test(`with ${way}, a guarded login page never redirects to itself`, async t => {
    t.equal((await new Browser(await shop(t, {}, server)).get(seen('/sign-in'), HTML)).statusCode, 401)
  })

  t.test(`with ${way}, the default of next is the path with a slash`, async t => {
    const browser = new Browser(await shop(t, {}, server))

    t.equal((await browser.submit(seen('/auth/local/register'), ADA)).headers.location, '/shop/')
    t.equal((await browser.submit(seen('/auth/local/revoke'), {})).headers.location, '/shop/')
    t.equal((await browser.submit(seen('/auth/local/login'), { ...ADA, next: 'https://evil.example/' })).headers.location, '/shop/')

    const { headers: { location = '' } } = await browser.get(seen('/auth/a/login'))
    const state = new URL(location).searchParams.get('state') ?? ''
    const code = JSON.stringify({ subject: 'ada-1', claims: { sub: 'ada-1' }, emailVerified: false })
    const callback = await browser.get(seen(`/auth/a/callback?${new URLSearchParams({ state, code })}`))
    t.equal(callback.headers.location, '/shop/')
  })

  t.test(`with ${way}, errors go to pages under the path`, async t => {
    const browser = new Browser(await shop(t, {}, server))
    const fail = async (headers: Record<string, string>) => (await browser.submit(seen('/auth/local/login'), ADA, { ...HTML, ...headers })).headers.location

    t.equal(await fail({}), '/shop/sign-in?error=invalid')
    t.equal(await fail({ referer: `${BASE_URL}/cart` }), '/shop/cart?error=invalid')
  })
}

for (const [way, server, seen] of WAYS) {
  t.test(`attack 141: with ${way}, a navigation on another host goes to the path under that of baseUrl`, async t => {
    const visit = async (app: FastifyInstance, path: string, host: string) =>
      app.inject({ url: seen(path), headers: { ...HTML, host } })

    const app = await shop(t, {}, server)
    const { headers: { location } } = await visit(app, '/auth/a/login?next=%2Fshop%2Fcart', 'www.app.example')
    t.equal(location, `${BASE_URL}/auth/a/login?next=%2Fshop%2Fcart&redirected=true`)
    t.match((await visit(app, '/auth/a/login?next=%2Fshop%2Fcart&redirected=true', 'app.example')).headers.location, 'https://a.example/authorize')

    const moved = await shop(t, { prefix: '/account/door' }, server)
    const { headers } = await visit(moved, '/account/door/a/login', 'www.app.example')
    t.equal(headers.location, `${BASE_URL}/account/door/a/login?redirected=true`)
  })
}

t.test('a navigation on another host goes below the path of baseUrl, also when that begins like the prefix', async t => {
  const { app } = await startMailApp(t, { baseUrl: 'https://app.example/auth' })
  const { headers } = await app.inject({ url: '/auth/a/login?next=/', headers: { ...HTML, host: 'www.app.example' } })
  t.equal(headers.location, 'https://app.example/auth/auth/a/login?next=%2F&redirected=true')
})

t.test('a navigation on another host keeps the prefix of the context', async t => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(async context => {
    await context.register(authPlugin, { baseUrl: BASE_URL, providers: [new OwnProvider('a')], session: { secret: SESSION_SECRET } })
  }, { prefix: '/v1' })
  const { headers } = await app.inject({ url: '/v1/auth/a/login', headers: { ...HTML, host: 'www.app.example' } })
  t.equal(headers.location, `${BASE_URL}/v1/auth/a/login?redirected=true`)
})

t.test('a login page that starts a sign-in is known as one under the path', async t => {
  const app = await shop(t, { loginPage: '/auth/a/login' })

  t.equal((await app.inject({ url: '/cart', headers: HTML })).headers.location, '/shop/auth/a/login?next=%2Fshop%2Fcart')
  t.equal((await app.inject({ url: '/auth/a/callback?state=guess', headers: HTML })).statusCode, 400)
})

t.test('a login page that has the path already keeps it', async t => {
  const app = await shop(t, { loginPage: '/shop/sign-in' })

  t.equal((await app.inject({ url: '/cart', headers: HTML })).headers.location, '/shop/sign-in?next=%2Fshop%2Fcart')
})

t.test('without a baseUrl a guard sends back to the URL before rewriteUrl', async t => {
  const app = await shop(t, { baseUrl: undefined, providers: [] }, { rewriteUrl })

  t.equal((await app.inject({ url: '/shop/cart', headers: HTML })).headers.location, '/sign-in?next=%2Fshop%2Fcart')
})

t.test('a path of the cookie that browsers or the application never see is refused', async t => {
  for (const [path, uncovered] of [['/auth', '/shop/auth'], ['/shop', '/auth']] as const) {
    const options = { baseUrl: BASE_URL, session: { secret: SESSION_SECRET, cookie: { path } } }
    await t.rejects(startApp(t, options), { name: 'OptionsError', message: `session.cookie.path must cover the routes under ${uncovered};` }, path)
  }
})

t.test('a path is made public once, and not taken for that of a longer name', t => {
  const paths = ['/', '/cart', '/shop', '/shop/', '/shop?a=b', '/shop#a', '/shopping']
  const publicPath = (baseUrl: string | null, path: string): string => new Site(baseUrl, new Set()).publicPath(path)
  t.strictSame(paths.map(path => publicPath(BASE_URL, path)), ['/shop/', '/shop/cart', '/shop', '/shop/', '/shop?a=b', '/shop#a', '/shop/shopping'])
  t.strictSame(paths.map(path => publicPath('https://app.example', path)), paths)
  t.strictSame(paths.map(path => publicPath(null, path)), paths)
  t.end()
})

/** A server on loopback that hands requests to an application, without the path in front. */
async function startProxy (t: Test, path: string, upstream: URL): Promise<string> {
  const proxy = createServer((incoming, answer) => {
    const { method, url = '', headers } = incoming
    const { hostname, port } = upstream
    const outgoing = httpRequest({ hostname, port, method, headers, path: url.slice(path.length) }, response => {
      answer.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(answer)
    })
    incoming.pipe(outgoing)
  })
  return `http://127.0.0.1:${await listen(t, proxy)}${path}`
}

t.test('behind a real proxy a visitor is sent to the login page, signs in and comes back', async t => {
  const upstream = new URL('http://127.0.0.1')
  const baseUrl = await startProxy(t, '/shop', upstream)
  const app = await shop(t, { baseUrl })
  upstream.href = await app.listen({ host: '127.0.0.1', port: 0 })
  const get = async (path: string, headers: Record<string, string>) => fetch(new URL(path, baseUrl), { headers, redirect: 'manual' })

  const sentAway = await get('/shop/cart', HTML)
  t.equal(sentAway.headers.get('location'), '/shop/sign-in?next=%2Fshop%2Fcart')

  const signedIn = await fetch(`${baseUrl}/auth/local/register`, {
    method: 'POST',
    headers: { ...HTML, origin: new URL(baseUrl).origin },
    body: new URLSearchParams({ ...ADA, next: '/shop/cart' }),
    redirect: 'manual'
  })
  t.equal(signedIn.headers.get('location'), '/shop/cart')

  const [cookie = ''] = signedIn.headers.getSetCookie().map(cookie => cookie.split(';', 1)[0])
  t.equal(await (await get('/shop/cart', { ...HTML, cookie })).text(), 'the cart')
})

t.test('routes are below the path of baseUrl, also when that begins like the prefix', async t => {
  const start = await startMailApp(t, { baseUrl: 'https://app.example/auth', providers: [] })
  const { browser, mails } = start
  await browser.post('/auth/local/register', ADA)

  const { url } = await mails.next('verify-email')
  t.match(url, 'https://app.example/auth/auth/local/verify-email?token=')
  const page = await browser.get(url.replace('https://app.example/auth', ''), { accept: 'text/html' })

  t.match(page.body, '<form method="post" action="/auth/auth/local/verify-email">')
})

t.test('pages over plain http let the browser say where a form comes from', async t => {
  for (const [baseUrl, policy] of [['http://app.example', 'same-origin'], ['https://app.example', 'no-referrer']] as const) {
    const { browser, mails } = await startMailApp(t, { baseUrl, providers: [] })
    await browser.post('/auth/local/register', ADA)
    const { token } = await mails.next('verify-email')

    const page = await browser.get(`/auth/local/verify-email?token=${token}`, { accept: 'text/html' })

    t.strictSame([page.statusCode, page.headers['referrer-policy']], [200, policy])
  }
})
