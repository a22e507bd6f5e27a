import type { AuthorizationClaims, IdentityClaims } from '../claims.js'

/** A person's account. */
export interface User {
  /** A UUID. */
  userId: string
  /** Canonical; set from a verified e-mail or a local registration, null otherwise. At most one user has it. */
  email: string | null
  /** Whether a provider vouched for `email`. */
  emailVerified: boolean
  name: string | null
  /** The authorization claims. */
  claims: AuthorizationClaims
}

/** One way in to an account: a subject at a provider. */
export interface Link {
  /** `local` or the name of an external provider. */
  provider: string
  /** The e-mail for `local`, else the provider's `sub`. */
  subject: string
  userId: string
  /** The identity claims as of the last sign-in. */
  claims: IdentityClaims
}

/** What a sign-in tells about a subject at a provider. */
export interface LinkedIdentity {
  provider: string
  subject: string
  claims: IdentityClaims
  /** Canonical, and verified by the provider; null otherwise. */
  verifiedEmail: string | null
}

export interface NewUser {
  userId: string
  email: string | null
  emailVerified: boolean
  name: string | null
  claims: AuthorizationClaims
  link: Omit<Link, 'userId'>
  /** Argon2id PHC string, for a user with a password. */
  passwordHash?: string
}

/** How a user is looked up. */
export type UserQuery = { userId: string } | { email: string } | { provider: string, subject: string }

export interface Credential {
  user: User
  link: Link
  /** Argon2id PHC string. */
  passwordHash: string
}

/**
 * Where users, links and claims are kept. Each method is atomic, also between processes, and is done when it resolves.
 *
 * Every method rejects with AuthError `unavailable` when the store cannot be reached.
 */
export interface AuthStore {
  findUser (query: UserQuery): Promise<User | null>

  /** A user's links, ordered by provider: at most one at each. Empty for an unknown user. */
  links (userId: string): Promise<Link[]>

  /** The local account with this e-mail: user, link and password hash in one look. */
  findCredential (email: string): Promise<Credential | null>

  /**
   * Notes a sign-in: the identity claims of the link, the user's name, and his e-mail when it is verified and no other user has it.
   *
   * @returns the user, or null when nobody is linked to this subject
   */
  refreshIdentity (identity: LinkedIdentity): Promise<User | null>

  /**
   * Makes a user with his first link and, for a local account, his password.
   *
   * @returns the user, or null when another one has this e-mail or this link; then nothing was written
   */
  createUser (user: NewUser): Promise<User | null>

  /**
   * Adds a way in to a user who has none at this provider yet.
   *
   * @returns the user, or null when he is gone, has another subject at this provider, or the link is somebody's; then nothing was written
   */
  addLink (userId: string, identity: LinkedIdentity): Promise<User | null>

  /** Replaces a password hash if it is still `current`; a password changed meanwhile is left alone. */
  replacePasswordHash (userId: string, current: string, next: string): Promise<void>

  /**
   * Merges authorization claims in, shallowly.
   *
   * @returns all the user's authorization claims
   * @throws AuthError `unknown_user`
   */
  grant (userId: string, claims: AuthorizationClaims): Promise<AuthorizationClaims>

  /**
   * Removes authorization claims by name.
   *
   * @returns the authorization claims that are left
   * @throws AuthError `unknown_user`
   */
  withdraw (userId: string, names: readonly string[]): Promise<AuthorizationClaims>

  /** Releases what the store opened itself. */
  close (): Promise<void>
}
