import type { FastifyRequest } from 'fastify'
import Negotiator from 'negotiator'

/** Whether a client prefers JSON: by Accept (RFC 9110 section 12.5.1), else by a JSON body. */
export function wantsJson (request: FastifyRequest): boolean {
  const prefersJson = new Negotiator(request).mediaType(['text/html', 'application/json']) === 'application/json'
  const sendsJson = /^application\/json *(?:;|$)/i.test(request.headers['content-type'] ?? '')
  return prefersJson || (!wantsHtml(request) && sendsJson)
}

/** Whether a request asks for a page: scripts and sockets accept anything, without preference. */
export function wantsHtml (request: FastifyRequest): boolean {
  return new Negotiator(request).mediaType(['application/json', 'text/html']) === 'text/html'
}
