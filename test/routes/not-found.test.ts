/** Paths under the prefix that no route has, and what the log says of paths under it. */
import { connect } from 'node:net'
import { once } from 'node:events'
import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin from '../../lib/index.js'
import { SESSION_SECRET, localProvider } from '../helpers/app.js'
import { OwnProvider } from '../helpers/own-provider.js'

const NOT_FOUND = {
  statusCode: 404,
  code: 'not_found',
  error: 'Not Found',
  message: 'Nothing was found at this path or with this id; check its spelling and the method of the request.'
}

async function start (t: Test, server: FastifyServerOptions = {}, before: (app: FastifyInstance) => void = () => {}, after = before): Promise<FastifyInstance> {
  const app: FastifyInstance = Fastify(server)
  t.teardown(() => app.close())
  if (before !== after) before(app)
  await app.register(authPlugin, {
    session: { secret: SESSION_SECRET },
    baseUrl: 'https://app.example',
    providers: [new OwnProvider('a')],
    local: localProvider(),
    loginPage: '/sign-in'
  })
  after(app)
  return app
}

t.test('unknown paths and methods under the prefix are 404 from the plugin, for browsers too', async t => {
  const app = await start(t)
  const requests = [
    ['GET', '/auth'], ['GET', '/auth/'], ['GET', '/auth/nowhere'], ['POST', '/auth/nowhere'],
    ['GET', '/auth/local/login'], ['HEAD', '/auth/a/login'], ['GET', '/auth/a/callback/'],
    ['GET', '/auth//a/login'], ['PURGE', '/auth/nowhere']
  ] as const
  for (const [method, url] of requests) {
    for (const accept of ['text/html', '*/*']) {
      const { statusCode, headers, body } = await app.inject({
        method: method as 'GET',
        url,
        headers: { accept, 'content-type': 'text/plain', origin: 'https://evil.example' },
        ...(method === 'POST' && { payload: 'x' })
      })
      t.equal(statusCode, 404, `${method} ${url}`)
      if (method !== 'HEAD') t.strictSame(JSON.parse(body), NOT_FOUND, `${method} ${url}`)
      t.match(headers, {
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'no-store, no-transform',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer'
      })
    }
  }
})

t.test('routes of the application under the prefix, and its own 404, stay what they are', async t => {
  const app = await start(t, {}, app => { app.get('/auth/own/*', async () => 'own wildcard') }, app => {
    app.setNotFoundHandler(async (_request, reply) => reply.code(404).send('the 404 of the application'))
    app.get('/auth', async () => 'own page')
    app.get('/auth/help', async () => 'own help')
    app.get('/auth/:page/edit', async () => 'own parameter')
    app.get('/*', async () => 'own catch-all')
  })
  const answers = {
    '/auth': 'own page',
    '/auth/help': 'own help',
    '/auth/x/edit': 'own parameter',
    '/auth/own/x': 'own wildcard',
    '/elsewhere': 'own catch-all',
    '/authors': 'own catch-all'
  }

  for (const [url, body] of Object.entries(answers)) t.equal((await app.inject(url)).body, body, url)
  t.equal((await app.inject({ method: 'POST', url: '/elsewhere' })).body, 'the 404 of the application')
  t.strictSame((await app.inject('/auth/nowhere')).json(), NOT_FOUND, 'and not the catch-all')
})

t.test('a wildcard of the application under the prefix that was there before answers as before', async t => {
  const app = await start(t, {}, app => { app.get('/auth/*', async () => 'own wildcard') }, () => {})

  t.equal((await app.inject('/auth/nowhere')).body, 'own wildcard')
  t.equal((await app.inject({ method: 'POST', url: '/auth/nowhere' })).json().code, 'not_found')
})

t.test('a wildcard of every method answers as before too', async t => {
  const app = await start(t, {}, app => { app.all('/auth/*', async () => 'own wildcard') }, () => {})

  t.equal((await app.inject({ method: 'POST', url: '/auth/nowhere' })).body, 'own wildcard')
})

const ROUTERS: Record<string, FastifyServerOptions> = {
  'the defaults': {},
  'a lenient router': { routerOptions: { ignoreDuplicateSlashes: true, ignoreTrailingSlash: true, caseSensitive: false }, useSemicolonDelimiter: true }
}

for (const [what, server] of Object.entries(ROUTERS)) {
  t.test(`attack 60: with ${what} no query under the prefix reaches the log, however it is spelt`, async t => {
    const lines: string[] = []
    const app = await start(t, { ...server, logger: { level: 'trace', stream: { write: (line: string) => { lines.push(line) } } } })
    const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
    const paths = [
      '/auth?', '/auth/?', '/auth/nowhere?', '/auth/a/login?', '/auth/a/login?next=/&', '/auth/a/callback?',
      '/auth/a/callback/?', '/auth//a/callback?', '/auth/a//callback?', '/auth/a/callback;', '/auth/a/callback;x?',
      '/auth/a/callback#', '/auth/a/%63allback?', '/%61uth/a/callback?', '/auth/a/callback%3F', '/auth/a/callback%3B',
      '/auth/a/callback%23', '/auth/a/callback%253F', '/auth/a/callback&', '/auth/a/callback%2F?', '/auth/local/login?',
      '/auth/local/revoke?', '/auth/./a/callback?', '/auth/%F0%9F%94%91?', 'http://app.example/auth/a/callback?',
      ...(what === 'the defaults' ? [] : ['//auth/a/callback?', '/AUTH/a/callback?', '///auth//nowhere?'])
    ]
    for (const path of paths) {
      // A method that the router does not know is looked up without its leniency.
      const unknown = /^\/(?:\/|AUTH)/.test(path) ? [] : ['PROPFIND']
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'OPTIONS', ...unknown]) {
        const socket = connect(Number(port), '127.0.0.1')
        socket.end(`${method} ${path}code=the-code&state=the-state HTTP/1.1\r\nHost: app.example\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
        socket.resume()
        await once(socket, 'close')
        t.notMatch(lines.splice(0).join(''), /the-code|the-state/, `${method} ${path}`)
      }
    }
    await app.inject('/auth/a/callback?code=the-code')
    t.match(lines.join(''), '"url":"/auth/a/callback"')
  })
}

t.test('a factory for loggers of the application is asked for the routes too', async t => {
  const lines: string[] = []
  const app = await start(t, { logger: { stream: { write: (line: string) => { lines.push(line) } } } }, app => {
    app.setChildLoggerFactory((logger, bindings, options) => logger.child({ ...bindings, of: 'the application' }, options))
  }, () => {})
  await app.inject('/auth/a/callback?code=the-code')

  t.match(JSON.parse(lines[0] ?? ''), { of: 'the application', req: { url: '/auth/a/callback' } })
})
