import type { FastifyRequest } from 'fastify'

/**
 * The name of the cookie by which a request found its session. The application may have named it itself, so it is the one whose value
 * holds the session's id, signed with whichever secret, or ends with what an own signer makes of it.
 *
 * @returns undefined when the session is a new one
 */
export function sessionCookieName (request: FastifyRequest): string | undefined {
  const { sessionId, encryptedSessionId } = request.session
  return Object.entries(request.cookies).find(([, value = '']) => value.includes(sessionId) || value.endsWith(encryptedSessionId))?.[0]
}
