import type { Claims } from './claims.js'

/** How a user authenticates. `application`: the application vouched for them. */
export type AuthenticationMethod = 'password' | 'provider' | 'application'

/** A proof of a user's identity. */
export interface Proof {
  /** How the user authenticated. */
  readonly method: AuthenticationMethod
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** A session that was replaced by a sign-in. */
export interface FormerSession {
  /** A digest of its id. */
  readonly digest: string
  /** Milliseconds since the epoch. */
  readonly endedAt: number
}

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
