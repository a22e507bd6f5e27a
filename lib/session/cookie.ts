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

const warned = new WeakSet<object>()

/**
 * Warns, once, when the cookie of the session is for https: and requests seem to come over http:. @fastify/session then saves nothing of
 * what the application puts into a session.
 */
export function warnOfPlainHttp (request: FastifyRequest): void {
  const { session, sessionStore, protocol } = request
  if (session?.cookie.secure !== true || protocol === 'https' || warned.has(sessionStore)) return
  warned.add(sessionStore)
  request.log.warn('The session cookie is for https:, but this request came over http:; if a proxy in front ends TLS, set the option trustProxy of Fastify to its addresses, else what the application writes into sessions is lost, and all visitors count as one address.')
}
