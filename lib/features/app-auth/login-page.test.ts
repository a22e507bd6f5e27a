import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import fastifyWebsocket from '@fastify/websocket'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import t, { type Test } from 'tap'
import type { AuthPluginOptions } from '../../index.js'
import { SESSION_SECRET, localProvider, startApp } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { OwnProvider } from '../../../test/helpers/own-provider.js'
import { SlowSessionStore } from '../../../test/helpers/slow-session-store.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const HTML = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }

/** An application with pages: guarded ones, and one for signing in. */
async function withPages (
  t: Test,
  options: AuthPluginOptions = { loginPage: '/sign-in' },
  extend: (app: FastifyInstance) => void = () => {}
): Promise<FastifyInstance> {
  return startApp(t, { baseUrl: 'https://app.example', providers: [new OwnProvider('a')], local: localProvider(), ...options }, {}, app => {
    app.get('/sign-in', { preHandler: app.auth.requireUser }, async () => 'a guard where there should be none')
    app.get('/account', { preHandler: app.auth.requireUser }, async () => 'account')
    app.post('/account', { preHandler: app.auth.requireUser }, async () => 'changed')
    app.get('/admin', { preHandler: app.auth.requireClaims({ role: 'admin' }) }, async () => 'admin')
    app.get('/api', { preHandler: app.auth.requireBearer }, async () => 'api')
    extend(app)
  })
}

t.test('a page request is sent to the login page, and back afterwards', async t => {
  const browser = new Browser(await withPages(t))

  for (const path of ['/account', '/account?tab=2&q=a%20b', '/admin']) {
    const response = await browser.get(path, HTML)
    t.equal(response.statusCode, 302)
    t.equal(response.headers.location, `/sign-in?${new URLSearchParams({ next: path })}`)
    t.equal(response.headers['cache-control'], 'no-store')
    t.equal(response.body, '')
  }
  const next = new URL((await browser.get('/account?tab=2', HTML)).headers.location ?? '', 'https://app.example').searchParams.get('next') ?? ''
  await browser.submit('/auth/local/register', ADA)
  t.equal((await browser.submit('/auth/local/login', { ...ADA, next })).headers.location, '/account?tab=2')
  t.equal((await browser.get('/account?tab=2', HTML)).statusCode, 200)
})

t.test('a form is sent to the login page too, and not back to where forms are sent', async t => {
  const response = await new Browser(await withPages(t)).post('/account', {}, HTML)

  t.equal(response.statusCode, 303)
  t.equal(response.headers.location, '/sign-in')
})

t.test('scripts, and clients that accept anything, get 401', async t => {
  const app = await withPages(t)

  for (const accept of ['application/json', '*/*', 'application/json, text/html;q=0.9', 'application/json, text/html', 'image/png', 'text/html;q=0']) {
    const response = await app.inject({ url: '/account', headers: { accept } })
    t.equal(response.statusCode, 401, accept)
    t.match(response.json(), { code: 'unauthenticated' })
  }
  t.equal((await app.inject('/account')).statusCode, 401, 'no Accept at all')
})

t.test('a guard of tokens redirects no request to a page', async t => {
  const response = await (await withPages(t)).inject({ url: '/api', headers: HTML })

  t.equal(response.statusCode, 401)
  t.equal(response.headers['www-authenticate'], 'Bearer')
})

t.test('a signed-in user who lacks a claim is forbidden, not sent to sign in again', async t => {
  const browser = new Browser(await withPages(t))
  await browser.submit('/auth/local/register', ADA)

  t.equal((await browser.get('/admin', HTML)).statusCode, 403)
})

t.test('without a login page every anonymous request gets 401', async t => {
  t.equal((await (await withPages(t, {})).inject({ url: '/account', headers: HTML })).statusCode, 401)
})

t.test('a login page behind a guard does not redirect endlessly', async t => {
  const app = await withPages(t)

  for (const url of ['/sign-in', '/sign-in?next=/']) t.equal((await app.inject({ url, headers: HTML })).statusCode, 401)
})

t.test('query and fragment of the login page are kept', async t => {
  const app = await withPages(t, { loginPage: '/sign-in?from=app#form' })

  t.equal((await app.inject({ url: '/account', headers: HTML })).headers.location, '/sign-in?from=app&next=%2Faccount#form')
})

t.test('attack 26: a path that a browser would read as another host, or that no `next` may be, is not brought along', async t => {
  const app = await withPages(t, { loginPage: '/sign-in' }, app => { app.get('/*', { preHandler: app.auth.requireUser }, async () => 'anything') })

  for (const url of ['//evil.example/', '//evil.example', '///evil.example/', '/..//evil.example/', `/${'a'.repeat(3000)}`]) {
    const { location = '' } = (await app.inject({ url, headers: HTML })).headers
    t.equal(location, '/sign-in', url)
  }
})

t.test('errors of a sign-in that have no other page go to the login page, for page requests', async t => {
  const app = await withPages(t, { loginPage: '/sign-in?from=app' })
  const browser = new Browser(app)

  t.equal(
    (await browser.get('/auth/a/callback?state=guess', { ...HTML, referer: 'https://a.example/' })).headers.location,
    '/sign-in?from=app&error=invalid_state'
  )
  t.equal((await browser.submit('/auth/local/login', ADA, HTML)).headers.location, '/sign-in?from=app&error=invalid')
  t.equal(
    (await browser.submit('/auth/local/login', ADA, {
      ...HTML,
      referer: 'https://app.example/other'
    })).headers.location,
    '/other?error=invalid',
    'the page that the form is on comes first'
  )
  t.equal((await browser.post('/auth/local/login', ADA)).statusCode, 401)
  t.equal((await browser.get('/auth/a/callback?state=guess', { accept: '*/*' })).statusCode, 400)

  const { location = '' } = (await browser.get('/auth/a/login', HTML)).headers
  const state = new URL(location).searchParams.get('state') ?? ''
  t.equal((await browser.get(`/auth/a/callback?state=${state}&code=nonsense`, HTML)).headers.location, '/sign-in?from=app&error=provider_error')
})

t.test('a login page that starts a sign-in at once is for guards, and not for errors, which it could not show', async t => {
  const app = await withPages(t, { loginPage: '/auth/a/login' })

  t.equal((await app.inject({ url: '/account', headers: HTML })).headers.location, '/auth/a/login?next=%2Faccount')
  t.equal((await app.inject({ url: '/auth/a/callback?state=guess', headers: HTML })).statusCode, 400)
})

t.test('guards work in encapsulated plugins, as hooks of every kind, and in their order', async t => {
  const order: string[] = []
  const admin: FastifyPluginAsync = async scope => {
    scope.addHook('onRequest', async request => { order.push(`before the guard ${request.principal === null ? 'nobody' : 'somebody'}`) })
    scope.addHook('preHandler', scope.auth.requireClaims({ role: 'admin' }))
    scope.addHook('preHandler', async () => { order.push('after the guard') })
    scope.get('/', async () => 'administration')
    await scope.register(async inner => { inner.get('/inner', async () => 'inner administration') })
  }
  const app = await withPages(t, {}, app => {
    app.register(admin, { prefix: '/plugin' })
    for (const hook of ['onRequest', 'preParsing', 'preValidation', 'preHandler'] as const) {
      const guard = hook === 'preParsing'
        ? {
            preParsing: async (...[request, reply]: Parameters<typeof app.auth.requireUser>) => app.auth.requireUser(request, reply)
          }
        : { [hook]: app.auth.requireUser }
      app.get(`/${hook}`, guard, async () => hook)
    }
  })
  const browser = new Browser(app)

  t.equal((await browser.get('/plugin')).statusCode, 401)
  t.strictSame(order.splice(0), ['before the guard nobody'])
  for (const hook of ['onRequest', 'preParsing', 'preValidation', 'preHandler']) t.equal((await browser.get(`/${hook}`)).statusCode, 401, hook)

  await browser.post('/auth/local/register', ADA)
  for (const hook of ['onRequest', 'preParsing', 'preValidation', 'preHandler']) t.equal((await browser.get(`/${hook}`)).body, hook)
  t.equal((await browser.get('/plugin')).statusCode, 403)

  await app.auth.grant((await browser.get('/me')).json().principal.userId, { role: 'admin' })
  await browser.post('/auth/local/login', ADA)
  order.splice(0)
  t.equal((await browser.get('/plugin')).body, 'administration')
  t.strictSame(order, ['before the guard somebody', 'after the guard'])
  t.equal((await browser.get('/plugin/inner')).body, 'inner administration')
})

t.test('nothing behind a guard runs, however long its redirect takes to be sent', async t => {
  const ran: string[] = []
  const app = await startApp(t, {
    local: localProvider(),
    loginPage: '/sign-in',
    session: { secret: SESSION_SECRET, store: new SlowSessionStore() }
  }, {}, app => {
    app.addHook('onRequest', async request => { request.session.set('visits' as never, Math.random() as never) })
    app.addHook('onSend', async (_request, _reply, payload) => {
      await wait(20)
      return payload
    })
    for (const [name, guard] of Object.entries({ user: app.auth.requireUser, claims: app.auth.requireClaims({ role: 'admin' }) })) {
      for (const hook of ['onRequest', 'preValidation', 'preHandler'] as const) {
        const url = `/${name}/${hook}`
        app.get(url, { [hook]: [guard, async () => { ran.push(`hook after ${url}`) }] }, async () => {
          ran.push(`handler of ${url}`)
          return 'secret'
        })
      }
    }
  })
  const address = await app.listen({ host: '127.0.0.1', port: 0 })

  for (const name of ['user', 'claims']) {
    for (const hook of ['onRequest', 'preValidation', 'preHandler']) {
      const responses = await Promise.all(Array.from({ length: 5 }, () => fetch(`${address}/${name}/${hook}`, { headers: HTML, redirect: 'manual' })))
      for (const response of responses) t.strictSame([response.status, await response.text()], [302, ''], `${name} ${hook}`)
    }
  }
  t.strictSame(ran, [])
})

t.test('nothing behind a guard runs when the client goes away during the redirect, and the process lives on', async t => {
  const ran: string[] = []
  const app = await startApp(t, {
    local: localProvider(),
    loginPage: '/sign-in',
    session: { secret: SESSION_SECRET, store: new SlowSessionStore() }
  }, {}, app => {
    app.addHook('onRequest', async request => { request.session.set('visits' as never, Math.random() as never) })
    for (const [name, guard] of Object.entries({ user: app.auth.requireUser, claims: app.auth.requireClaims({ role: 'admin' }) })) {
      for (const hook of ['onRequest', 'preHandler'] as const) app.post(`/${name}/${hook}`, { [hook]: guard }, async () => { ran.push(`${name} ${hook}`) })
    }
    app.post('/in-handler', async (request, reply) => {
      await app.auth.requireUser(request, reply)
      ran.push('in-handler')
    })
  })
  const { port, origin } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))

  for (let round = 0; round < 30; round++) {
    await Promise.all(['/user/onRequest', '/user/preHandler', '/claims/onRequest', '/claims/preHandler', '/in-handler'].map(async path => {
      const socket = connect(Number(port), '127.0.0.1')
      socket.on('error', () => {})
      socket.end(`POST ${path} HTTP/1.1\r\nhost: localhost\r\naccept: text/html\r\ncontent-length: 0\r\n\r\n`)
      await once(socket, 'connect')
      await wait(round)
      socket.destroy()
    }))
  }
  await wait(50)

  t.strictSame(ran, [])
  t.equal((await fetch(`${origin}/me`)).status, 200)
})

t.test('a guard that is asked after the answer was taken over refuses', async t => {
  const app = await withPages(t, { loginPage: '/sign-in' }, app => {
    app.get('/stream', async (request, reply) => {
      reply.hijack()
      const refusal = await app.auth.requireUser(request, reply).then(() => 'passed', (error: { code: string }) => error.code)
      reply.raw.end(refusal)
    })
  })

  t.equal((await app.inject({ url: '/stream', headers: HTML })).body, 'unauthenticated')
})

t.test('guards stand in front of websocket routes', async t => {
  const app = await startApp(t, { local: localProvider(), loginPage: '/sign-in' }, {}, app => {
    app.register(fastifyWebsocket)
    app.register(async scope => {
      scope.get(
        '/socket',
        { websocket: true, preHandler: scope.auth.requireUser },
        (socket, request) => { socket.send(`hello ${request.principal?.claims.email}`) }
      )
      scope.get('/admin-socket', { websocket: true, preHandler: scope.auth.requireClaims({ role: 'admin' }) }, socket => { socket.send('hello') })
      scope.get('/token-socket', { websocket: true, preHandler: scope.auth.requireBearer }, (socket, request) => { socket.send(`hello ${request.token?.sub}`) })
      scope.get('/refreshed-socket', { websocket: true, preHandler: [scope.auth.refresh, scope.auth.requireUser] }, socket => { socket.send('hello') })
    })
  })
  const browser = new Browser(app)
  const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const greeting = async (path: string, headers: Record<string, string>) => new Promise<string>((resolve, reject) => {
    app.injectWS(path, { headers }, { onInit: socket => { socket.on('message', (data: Buffer) => { resolve(String(data)) }) } })
      .then(socket => { t.teardown(() => { socket.terminate() }) }, reject)
  })
  const token = await localProvider().issueIdToken('service')

  t.equal(await greeting('/socket', { cookie }), `hello ${ADA.email}`)
  t.equal(await greeting('/token-socket', { authorization: `Bearer ${token}` }), 'hello service')
  t.equal(await greeting('/refreshed-socket', { cookie }), 'hello')
  await t.rejects(greeting('/socket', HTML), /Unexpected server response: 302/)
  await t.rejects(greeting('/socket', {}), /Unexpected server response: 401/)
  await t.rejects(greeting('/admin-socket', { cookie }), /Unexpected server response: 403/)
  await t.rejects(greeting('/token-socket', { cookie }), /Unexpected server response: 401/)
  await app.auth.deleteUser(userId)
  await t.rejects(greeting('/refreshed-socket', { cookie }), /Unexpected server response: 401/)
})
