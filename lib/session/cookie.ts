import type { Signer } from '@fastify/cookie'
import type { FastifyRequest } from 'fastify'

/**
 * Returns the name of the session cookie of a request. The application may have configured the name
 * and a prefix of the value, so the cookie is the one whose value ends with the signed session id.
 *
 * @returns undefined for a new session
 */
export function sessionCookieName (request: FastifyRequest): string | undefined {
  const { encryptedSessionId } = request.session
  return Object.entries(request.cookies).find(([, value]) => value?.endsWith(encryptedSessionId))?.[0]
}

/**
 * Puts the id of the present session into the cookie of a request, as if the browser had sent it.
 * Otherwise @fastify/session would clear the cookie of the replaced session first and answer with
 * two `Set-Cookie` of one name.
 */
export function nameInCookie (request: FastifyRequest, name: string, before: FastifyRequest['session']): void {
  const prefix = String(request.cookies[name]).slice(0, -before.encryptedSessionId.length)
  request.cookies[name] = prefix + request.session.encryptedSessionId
}

/**
 * Returns the session ids that cookies of a request have signed, whether or not their sessions are
 * in the store. The name of the session cookie may be the application's, so each cookie is looked
 * at, also without the prefix `s:` of express-session.
 */
export function signedIdsIn ({ session, cookies }: FastifyRequest): string[] {
  const signer = Object.getOwnPropertySymbols(session).map(symbol => Reflect.get(session, symbol)).find(isCookieSigner)
  const unsigned = (cookie: string): string[] => {
    try {
      const { valid, value = null } = Object(signer?.unsign(cookie))
      return valid === true && value !== null ? [value] : []
    } catch {
      // An own signer may fail at a cookie that it has not made.
      return []
    }
  }
  return Object.values(cookies).flatMap((cookie = '') => unsigned(cookie.replace(/^s:/, '')))
}

function isCookieSigner (value: unknown): value is Signer {
  return typeof Object(value).unsign === 'function'
}

const warned = new WeakSet<object>()

/**
 * Warns once when the session cookie is for https: but requests appear to come over http:. Then
 * @fastify/session does not save what the application writes into a session.
 */
export function warnOfPlainHttp (request: FastifyRequest): void {
  const { session, sessionStore, protocol } = request
  if (session?.cookie.secure !== true || protocol === 'https' || warned.has(sessionStore)) return
  warned.add(sessionStore)
  request.log.warn('The session cookie is for https:, but this request came over http:. ' +
    'If a proxy terminates TLS, set the option trustProxy of Fastify to its addresses; ' +
    'otherwise what the application writes into sessions is lost, and all clients count as one address.')
}
