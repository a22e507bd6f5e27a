import type { FastifyReply } from 'fastify'

/** Lets caches keep an answer, but no error and no response that sets the cookie of a session. */
export function allowCaching (reply: FastifyReply, cacheControl: string): void {
  if (reply.statusCode === 200 && !reply.hasHeader('Set-Cookie')) reply.header('Cache-Control', cacheControl)
}
