/** The origin that browsers see: Fastify signs users in and answers /api, Next.js renders all other pages. */
import httpProxy, { type FastifyHttpProxyOptions } from '@fastify/http-proxy'
import Fastify from 'fastify'
import authPlugin, { LocalIdentityProvider, SqlAuthStore } from 'fastify-svc-auth'
import { Pages } from 'fastify-svc-auth/pages'

const next: FastifyHttpProxyOptions = {
  upstream: process.env.NEXT_URL ?? 'http://localhost:3001',
  replyOptions: {
    // Next.js trusts these headers, so none of them is the client's.
    rewriteRequestHeaders: ({ host, protocol, ip }, headers) => ({
      ...headers, host, 'x-forwarded-host': host, 'x-forwarded-proto': protocol, 'x-forwarded-for': ip
    })
  }
}

const app = Fastify({ logger: true, trustProxy: 'loopback' })

// Outside of the scope below: scripts and styles need no session, and caches share them.
await app.register(httpProxy, { ...next, prefix: '/_next', rewritePrefix: '/_next', websocket: true })

await app.register(async site => {
  await site.register(authPlugin, {
    baseUrl: process.env.BASE_URL ?? 'http://localhost:3000',
    local: new LocalIdentityProvider(),
    store: new SqlAuthStore(),
    pages: new Pages({ name: 'Shop' })
  })
  site.get('/api/orders', { preHandler: site.auth.requireUser }, async request => {
    return [`The first order of ${site.auth.user(request).claims.email}`]
  })
  await site.register(httpProxy, next)
})

await app.listen({ host: 'localhost', port: Number(process.env.PORT ?? 3000) })
