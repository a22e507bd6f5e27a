import fastifySession from '@fastify/session'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { OptionsError } from '../errors.js'
import { sessionCookieName } from './cookie.js'
import { registerCookies } from './cookie-plugin.js'
import { EntryStore, RowStore, hasSessions, sessionsOf } from './request-sessions.js'
import { RotatingSigner } from './rotating-signer.js'
import type { OwnSession } from './session-options.js'

/** Registers @fastify/session, and @fastify/cookie unless the application has it. */
export async function registerSession (app: FastifyInstance, { options, rows }: OwnSession): Promise<void> {
  await registerCookies(app)

  const { secret, algorithm, cookieName, cookie, rolling } = options
  assertOwnCookie(app, cookieName, cookie)
  // Registered first, so that it runs before @fastify/session answers with a cookie.
  app.addHook('onSend', (request, _reply, payload, done) => {
    const isSaved = prepareCookie(request, cookieName)
    if (isSaved === null) done(null, payload)
    else isSaved.then(() => { done(null, payload) }, done)
  })
  await app.register(fastifySession, {
    ...options,
    secret: Array.isArray(secret) ? new RotatingSigner([...secret], algorithm) : secret,
    store: options.store === undefined
      ? new RowStore({ rows, cookie }, rolling)
      : new EntryStore(options.store, rolling)
  })
}

/** The session cookies of each server, by name, domain and path. */
const cookiesOf = new WeakMap<object, Set<string>>()

/**
 * Refuses a second session with the same cookie on one server: each would sign out the users of the
 * other.
 *
 * @throws OptionsError
 */
function assertOwnCookie (
  { server }: FastifyInstance,
  name: string,
  { domain = '', path = '/' }: { domain?: string | undefined, path?: string | undefined }
): void {
  const cookies = cookiesOf.get(server) ?? new Set()
  const key = [name, domain, path].join(';')
  if (cookies.has(key)) {
    throw new OptionsError(`this server has a session cookie ${name} for the path ${path} already, of another ` +
      'registration of fastify-svc-auth; set session.cookieName or session.cookie.path, or register the plugin once')
  }
  cookiesOf.set(server, cookies.add(key))
}

/**
 * Prepares what @fastify/session does next: saves a session of which only the cookie has changed,
 * and hides the cookie of another session, which @fastify/session would clear besides.
 *
 * @returns null when there is nothing to save
 */
function prepareCookie (request: FastifyRequest, cookieName: string): Promise<void> | null {
  const { session } = request
  // Without a session the cookies need not be parsed either: a hook of the application answered.
  if (session?.sessionId === undefined) return null
  if (request.cookies[cookieName] === undefined && !hasSessions(request)) return null
  const sessions = sessionsOf(request)
  // A new session takes the place of that cookie. Without one, the session of the cookie may have
  // been replaced by a sign-in that was under way: then the browser has the new cookie already.
  const isHidden = sessions.isStored(session) ? sessionCookieName(request) === undefined : !sessions.hasLeft
  if (isHidden) request.cookies[cookieName] = undefined
  return sessions.hasNewCookie(session.sessionId, session) ? session.save() : null
}
