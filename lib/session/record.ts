import type { FastifyRequest } from 'fastify'
import type { Claims } from '../claims.js'
import { isUserId } from '../base/uuid.js'

/** The signed-in user, as of the session. */
export interface Principal {
  /** The UUID of the user in the store. */
  userId: string
  /** The provider of the sign-in: `local` or the name of an external provider. */
  provider: string
  /**
   * Identity claims with the authorization claims over them, as of the sign-in or the last refresh.
   */
  claims: Claims
}

/** The plugin's part of a session. Everything else in the session is the application's. */
export interface SessionRecord {
  /** The signed-in user. */
  readonly principal: Principal
}

declare module 'fastify' {
  interface Session {
    /** The plugin's part of the session; the application reads `request.principal` instead. */
    svcAuth?: SessionRecord
  }
}

/** The principal in the session of a request; null without one. */
export function principalOf (request: FastifyRequest): Principal | null {
  // A destroyed session is null; outside the path of its cookie it is empty; a store may hold
  // anything.
  const principal = request.session?.svcAuth?.principal
  return isUserId(principal?.userId) ? principal : null
}
