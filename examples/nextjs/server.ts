/** The origin that browsers see; Next.js is behind it. */
import httpProxy, { type FastifyHttpProxyOptions } from '@fastify/http-proxy'
import Fastify from 'fastify'
import authPlugin, { LocalIdentityProvider, SqlAuthStore } from 'fastify-svc-auth'
import { Pages } from 'fastify-svc-auth/pages'

const next: FastifyHttpProxyOptions = {
  upstream: process.env.NEXT_URL ?? 'http://localhost:3001',
  replyOptions: {
    rewriteRequestHeaders: ({ host, protocol, ip }, headers) => ({
      ...headers, host, 'x-forwarded-host': host, 'x-forwarded-proto': protocol, 'x-forwarded-for': ip
    })
  }
}

const app = Fastify({ logger: true, trustProxy: 'loopback' })

// Scripts and styles need no session.
await app.register(httpProxy, { ...next, prefix: '/_next', rewritePrefix: '/_next', websocket: true })

await app.register(async site => {
  await site.register(authPlugin, {
    baseUrl: process.env.BASE_URL ?? 'http://localhost:3000',
    local: new LocalIdentityProvider(),
    store: new SqlAuthStore(),
    pages: new Pages({ name: 'Shop' })
  })
  site.get('/api/order', { preHandler: site.auth.requireUser }, async request => {
    return { order: `The order of ${site.auth.user(request).claims.email}` }
  })
  await site.register(httpProxy, next)
})

await app.listen({ host: 'localhost', port: Number(process.env.PORT ?? 3000) })
