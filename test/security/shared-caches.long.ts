/** Attack 142: nginx, which keeps the answers of an application for ten minutes and gives them to all clients. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import t from 'tap'
import { localProvider, startApp } from '../helpers/app.js'
import { hasNginx, startNginx } from '../helpers/nginx.js'

const skip = hasNginx() ? {} : { skip: 'nginx is not installed: apt-get install nginx' }

/** It keeps each status, and tells whether an answer came out of the cache. */
const CACHE = `
      proxy_cache shared;
      proxy_cache_valid any 10m;
      add_header X-Cache $upstream_cache_status always;`

/** What a careless handler says of an answer. */
const SHARED = { 'cache-control': 'public, max-age=600' }

/** Who asks, by the headers of their requests. */
type Client = [name: string, headers: Record<string, string>]

t.test('attack 142: nginx gives no page of a user to another one, or to a visitor', skip, async t => {
  const local = localProvider()
  const app: FastifyInstance = await startApp(t, { local, loginPage: '/sign-in' }, {}, app => {
    const page = (headers: Record<string, string>) => async (request: FastifyRequest, reply: FastifyReply) => {
      return reply.headers(headers).send(`the page of ${request.principal?.claims.email ?? request.token?.sub}`)
    }
    const { requireUser, requireBearer, anyOf } = app.auth
    for (const [name, preHandler] of Object.entries({ requireUser, requireBearer, anyOf: anyOf(requireBearer, requireUser) })) {
      app.get(`/${name}`, { preHandler }, page({}))
      app.get(`/${name}/shared`, { preHandler }, page(SHARED))
      app.get(`/${name}/varied`, { preHandler }, page({ ...SHARED, vary: 'Accept' }))
    }
    app.get('/all', page(SHARED))
  })
  const origin = await startNginx(t, await app.listen({ host: '127.0.0.1', port: 0 }), CACHE)

  const clients: Client[] = [['a visitor', {}], ['a visitor with another cookie', { cookie: 'theme=dark' }]]
  for (const name of ['ada', 'grace']) {
    const body = JSON.stringify({ email: `${name}@example.com`, password: 'correct horse' })
    const headers = { 'content-type': 'application/json', accept: 'application/json' }
    const registered = await fetch(`${origin}/auth/local/register`, { method: 'POST', headers, body })
    const cookie = registered.headers.getSetCookie().map(cookie => cookie.split(';', 1)[0]).join('; ')
    const { userId } = await registered.json() as { userId: string }
    clients.push([`${name}@example.com`, { cookie }], [userId, { authorization: `Bearer ${await local.issueIdToken(userId)}` }])
  }

  for (const path of ['requireUser', 'requireBearer', 'anyOf'].flatMap(name => [`/${name}`, `/${name}/shared`, `/${name}/varied`])) {
    // Each twice, in both orders: whoever comes first fills the cache.
    for (const [name, headers] of [...clients, ...clients.toReversed()]) {
      for (const accept of ['text/html', 'application/json']) {
        const answer = await fetch(origin + path, { headers: { ...headers, accept }, redirect: 'manual' })
        const body = await answer.text()
        t.ok(!body.startsWith('the page of') || body === `the page of ${name}`, `${path} for ${name}: ${body}`)
        t.not([302, 401].includes(answer.status) && answer.headers.get('x-cache') === 'HIT', true, `${path} for ${name}: a refusal`)
        const isAdmitted = path.startsWith('/requireBearer')
          ? headers.authorization !== undefined
          : headers.cookie?.startsWith('svc_session') === true || (path.startsWith('/anyOf') && headers.authorization !== undefined)
        t.equal(body === `the page of ${name}`, isAdmitted, `${path} for ${name}`)
      }
    }
  }

  const cached = await Promise.all([1, 2].map(async () => (await fetch(`${origin}/all`)).headers.get('x-cache')))
  t.ok((await fetch(`${origin}/all`)).headers.get('x-cache') === 'HIT' || cached.includes('HIT'), 'the cache is at work')
})
