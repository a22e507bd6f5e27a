import type { EventEmitter } from 'node:events'
import type { FastifyRequest } from 'fastify'
import { audit } from './audit.js'
import type { Principal } from './session/principal.js'

/** What happens, for the application to listen to. A listener that throws is logged and breaks nothing. */
export interface AuthEvents {
  /** Somebody signed out. */
  revoke: [userId: string]
}

/** What `app.auth.channel` is: an emitter that knows the events and what listeners get. */
export type AuthChannel = EventEmitter<AuthEvents>

/** Notes that somebody signed out, and tells the listeners; what one of them throws stops neither the others nor the request. */
export function announceRevoke (channel: AuthChannel, { userId }: Principal, request: FastifyRequest): void {
  audit('revoke', { userId }, request)
  for (const listener of channel.rawListeners('revoke')) {
    try {
      listener(userId)
    } catch (error) {
      request.log.error({ err: error, event: 'revoke' }, 'a listener of app.auth.channel threw')
    }
  }
}
