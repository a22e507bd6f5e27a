import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Site } from './site.js'

/**
 * Makes a function that warns, once for each trusted origin, that its scripts cannot read an
 * answer: the headers for that are up to the application (Fetch, CORS protocol and credentials).
 */
export function corsWarning ({ trustedOrigins }: Site): (request: FastifyRequest, reply: FastifyReply) => void {
  const warned = new Set<string>()
  return (request, reply) => {
    const { origin, 'sec-fetch-mode': mode, 'sec-fetch-site': site } = request.headers
    if (origin === undefined || mode !== 'cors' || site === 'same-origin') return
    if (!trustedOrigins.has(origin) || warned.has(origin)) return
    const allowed = reply.getHeader('Access-Control-Allow-Origin')
    if (allowed === origin && reply.getHeader('Access-Control-Allow-Credentials') === 'true') return
    warned.add(origin)
    request.log.warn(`Scripts of ${origin} cannot read this answer: ` +
      `Access-Control-Allow-Origin is ${allowed === undefined ? 'absent' : `"${String(allowed)}"`}, and must be that ` +
      'origin, with Access-Control-Allow-Credentials: true. Register @fastify/cors before fastify-svc-auth, with ' +
      `{ origin: ['${origin}'], credentials: true }.`)
  }
}
