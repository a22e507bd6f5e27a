import type { FastifyRequest } from 'fastify'
import Negotiator from 'negotiator'

/** A JSON client is one whose Accept prefers application/json to text/html (RFC 9110 section 12.5.1). */
export function wantsJson (request: FastifyRequest): boolean {
  return new Negotiator(request).mediaType(['text/html', 'application/json']) === 'application/json'
}

/** Whether somebody is looking at a page: only browsers prefer text/html, and scripts and sockets, which take anything, do not. */
export function wantsHtml (request: FastifyRequest): boolean {
  return new Negotiator(request).mediaType(['application/json', 'text/html']) === 'text/html'
}
