import fastifySession from '@fastify/session'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { registerCookies } from './cookie-plugin.js'
import { claimCookie } from './cookie-scopes.js'
import { EntryStore, RowStore, hasSessions, sessionsOf } from './request-sessions.js'
import { RotatingSigner } from './rotating-signer.js'
import type { OwnSession } from './session-options.js'
import { chooseCookie, expireOthers } from './several-cookies.js'

/** Registers @fastify/session, and @fastify/cookie unless the application has it. */
export async function registerSession (app: FastifyInstance, { options, rows }: OwnSession): Promise<void> {
  await registerCookies(app)

  const { secret, algorithm, cookieName, cookie, rolling } = options
  claimCookie(app, cookieName, cookie)
  const signer = Array.isArray(secret) ? new RotatingSigner([...secret], algorithm) : secret
  const store = options.store === undefined
    ? new RowStore({ rows, cookie }, rolling)
    : new EntryStore(options.store, rolling)
  // Registered first, so that they run before @fastify/session reads a cookie and answers with one.
  app.addHook('onRequest', chooseCookie(options, signer, store))
  app.addHook('onSend', (request, reply, payload, done) => {
    expireOthers(reply, options)
    const isSaved = prepareCookie(request, cookieName)
    if (isSaved === null) done(null, payload)
    else isSaved.then(() => { done(null, payload) }, done)
  })
  await app.register(fastifySession, { ...options, secret: signer, store })
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
  const isOfCookie = request.cookies[cookieName]?.endsWith(session.encryptedSessionId) === true
  const isHidden = sessions.isStored(session) ? !isOfCookie : !sessions.hasLeft
  if (isHidden) request.cookies[cookieName] = undefined
  return sessions.hasNewCookie(session.sessionId, session) ? session.save() : null
}
