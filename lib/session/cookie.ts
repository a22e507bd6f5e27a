import type { FastifyRequest } from 'fastify'

/**
 * The name of the cookie by which a request found its session; the application may have named it itself, so it is the one whose value
 * holds the session id.
 *
 * @returns undefined when the session is a new one
 */
export function sessionCookieName (request: FastifyRequest): string | undefined {
  const { sessionId } = request.session
  return Object.entries(request.cookies).find(([, value]) => value?.includes(sessionId))?.[0]
}
