import { readFile } from 'node:fs/promises'
import Fastify, { type FastifyInstance } from 'fastify'

const FILES = { '/app.js': 'text/javascript; charset=utf-8', '/style.css': 'text/css; charset=utf-8' }

/** A server of static files, such as a content delivery network is one: it knows where the API is, and nothing else. */
export function buildFront ({ api }: { api: string }): FastifyInstance {
  const server = Fastify({ logger: { level: 'warn' } })
  const headers = {
    'Content-Security-Policy': "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; " +
      `connect-src 'self' ${api}; ` +
      `base-uri 'none'; form-action 'self' ${api}; frame-ancestors 'none'`,
    // A token in a URL stays here; the API sees the origin, by which it accepts the form that adds an identity.
    'Referrer-Policy': 'strict-origin'
  }
  server.addHook('onRequest', async (_request, reply) => { reply.headers(headers) })

  const file = async (name: string): Promise<Buffer> => readFile(new URL(`public${name}`, import.meta.url))
  // A front end that is built has it in its bundle.
  server.get('/openapi-fetch.js', async (_request, reply) => {
    return reply.type('text/javascript; charset=utf-8').send(await readFile(new URL(import.meta.resolve('openapi-fetch'))))
  })
  for (const [path, type] of Object.entries(FILES)) {
    server.get(path, async (_request, reply) => reply.type(type).send(await file(path)))
  }
  server.get('/api.json', async () => ({ api }))
  server.get('/*', async (_request, reply) => {
    return reply.type('text/html; charset=utf-8').send(await file('/index.html'))
  })
  return server
}
