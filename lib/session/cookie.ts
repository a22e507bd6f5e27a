import type { FastifyRequest } from 'fastify'

/**
 * The name of the cookie by which a request found its session. The application may have named it itself, and given it a prefix, so it
 * is the one whose value ends with what the signer makes of the session's id.
 *
 * @returns undefined when the session is a new one
 */
export function sessionCookieName (request: FastifyRequest): string | undefined {
  const { encryptedSessionId } = request.session
  return Object.entries(request.cookies).find(([, value]) => value?.endsWith(encryptedSessionId))?.[0]
}
