import type { EventEmitter } from 'node:events'
import type { FastifyRequest } from 'fastify'
import { type AuditSource, audit } from './audit.js'

/** The events of `app.auth.channel`. A listener that throws or rejects is logged, nothing else. */
export interface AuthEvents {
  /** A user signed out, or sessions of a user ended; on Postgres, in any process that uses it. */
  revoke: [userId: string]
}

/** The type of `app.auth.channel`. */
export type AuthChannel = EventEmitter<AuthEvents>

/** The request that signed a user out, or the logger of the application. */
export type RevokeSource = AuditSource & Pick<FastifyRequest, 'log'>

/** Audits that a user signed out, and calls the listeners. */
export function announceRevoke (channel: AuthChannel, userId: string, source: RevokeSource): void {
  audit('revoke', { userId }, source)
  callListeners(channel, userId, source.log)
}

export function callListeners (channel: AuthChannel, userId: string, log: RevokeSource['log']): void {
  // `emit` would stop at the first that throws, and an unhandled rejection ends the process.
  for (const listener of channel.rawListeners('revoke')) {
    const call = async (): Promise<void> => { await listener.call(channel, userId) }
    call().catch((error: unknown) => {
      log.error({ err: error, event: 'revoke' }, 'a listener of app.auth.channel failed')
    })
  }
}
