import type { FastifyInstance } from 'fastify'
import type { AuthContext } from '../../core/context.js'
import { endSession } from '../../session/lifecycle.js'
import { ownRecordIn } from '../../session/record.js'
import { sessionsOf } from '../../session/request-sessions.js'

/**
 * Refuses, with a session store of the application, the sessions that have ended at their provider:
 * that store does not find them when the provider says so. Of other sessions nothing is asked.
 */
export function refuseEndedSessions (app: FastifyInstance, { listedSessions }: AuthContext): void {
  if (listedSessions !== null) return
  app.addHook('onRequest', (request, _reply, done) => {
    const { atProvider } = ownRecordIn(request.session) ?? {}
    if (atProvider === undefined) return done()
    sessionsOf(request).backend.hasEndedAtProvider(atProvider)
      .then(async hasEnded => { if (hasEnded) await endSession(request) })
      .then(() => { done() }, done)
  })
}
