import { EventEmitter } from 'node:events'
import type { FastifyBaseLogger } from 'fastify'
import type { AuthorizationClaims } from './claims.js'
import { Authorization } from './authorization.js'
import { type Guard, requireBearer, requireClaims, requireUser } from './guards.js'
import type { LocalIdentityProvider } from './local/identity-provider.js'
import type { AuthStore } from './store/store.js'

/** What happens, for the application to listen to. A listener that throws is logged and breaks nothing. */
export interface AuthEvents {
  /** Somebody signed out. */
  revoke: [userId: string]
}

/** What `app.auth` is: users and their claims, guards, events. */
export class Auth extends Authorization {
  /** `auth.channel.on('revoke', userId => { ... })` */
  readonly channel = new EventEmitter<AuthEvents>()

  /** A `preHandler`: 401 unless signed in. */
  readonly requireUser: Guard = requireUser

  /** A `preHandler`: 401 without a valid local JWT in `Authorization: Bearer`; with one, `request.token` holds its claims. */
  readonly requireBearer: Guard

  constructor (store: AuthStore, local: LocalIdentityProvider | null) {
    super(store)
    this.requireBearer = requireBearer(local)
  }

  /** Makes a `preHandler`: 401 unless signed in, 403 unless every claim equals the given value or is an array that includes it. */
  requireClaims (required: AuthorizationClaims): Guard {
    return requireClaims(required)
  }

  /** Tells the listeners of the channel; what one of them throws is logged and stops neither the others nor the request. */
  announce<E extends keyof AuthEvents> (event: E, payload: AuthEvents[E][0], log: FastifyBaseLogger): void {
    for (const listener of this.channel.rawListeners(event)) {
      try {
        listener(payload)
      } catch (error) {
        log.error({ err: error, event }, 'a listener of app.auth.channel threw')
      }
    }
  }
}
