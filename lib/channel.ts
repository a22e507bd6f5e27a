import type { EventEmitter } from 'node:events'
import type { FastifyRequest } from 'fastify'
import { audit } from './audit.js'

/** The events that the application can listen to. A listener that throws, or rejects, is logged and breaks nothing. */
export interface AuthEvents {
  /** A user signed out. */
  revoke: [userId: string]
}

/** What `app.auth.channel` is: an emitter that knows the events and what listeners get. */
export type AuthChannel = EventEmitter<AuthEvents>

/** Notes that a user signed out, and tells the listeners; one that throws or rejects stops neither the others nor the request. */
export function announceRevoke (channel: AuthChannel, userId: string, request: FastifyRequest): void {
  audit('revoke', { userId }, request)
  // An emitter stops at the first listener that throws, and a promise that rejects unheard ends the process.
  for (const listener of channel.rawListeners('revoke')) {
    const told = async (): Promise<void> => { await listener.call(channel, userId) }
    told().catch((error: unknown) => { request.log.error({ err: error, event: 'revoke' }, 'a listener of app.auth.channel failed') })
  }
}
