/** How a user proves who they are. `application`: the application vouched for them. */
export type AuthenticationMethod =
  'password' | 'provider' | 'passkey' | 'totp' | 'recovery' | 'mail' | 'application'

/** A proof of a user's identity. */
export interface Proof {
  /** How the user proved who they are. */
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
