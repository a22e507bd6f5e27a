import type { AuthorizationClaims, IdentityClaims } from '../claims.js'
import { AuthError } from '../errors.js'
import { UUID } from '../uuid.js'

/** A person's account. */
export interface User {
  /** A UUID in lower case. */
  userId: string
  /** Canonical; set from a verified e-mail or a local registration, null otherwise. At most one user has it. */
  email: string | null
  /** Whether a provider vouched for `email`. */
  emailVerified: boolean
  /** As the provider said at the last sign-in, or the registration form. */
  name: string | null
  /** The authorization claims. */
  claims: AuthorizationClaims
  /** Only there as long as the application's hook `onSignIn` has not let him in. */
  isNew?: true
}

/** One way in to an account: a subject at a provider. */
export interface Link {
  /** `local` or the name of an external provider. */
  provider: string
  /** The e-mail for `local`, else the provider's `sub`. */
  subject: string
  /** Whose way in it is: a UUID in lower case. */
  userId: string
  /** The identity claims as of the last sign-in. */
  claims: IdentityClaims
}

/** What a sign-in tells about a subject at a provider. */
export interface LinkedIdentity {
  /** The name of an external provider. */
  provider: string
  /** The provider's identifier of the person, 1 to 255 characters. */
  subject: string
  /** They replace those of the link. */
  claims: IdentityClaims
  /** Canonical, and verified by the provider; null otherwise. */
  verifiedEmail: string | null
}

/** A user who is to be made, with his first way in. */
export interface NewUser {
  /** A UUID in lower case, made by the caller. */
  userId: string
  /** Canonical; null for an identity without a verified one. */
  email: string | null
  /** Whether a provider vouched for `email`. */
  emailVerified: boolean
  /** What the person is called, if that is known. */
  name: string | null
  /** Authorization claims to begin with. */
  claims: AuthorizationClaims
  /** Whether he has to be admitted: see {@link AuthStore.admitUser}. */
  isNew?: true
  /** His first way in. */
  link: Omit<Link, 'userId'>
  /** Argon2id PHC string, for a user with a password. */
  passwordHash?: string
}

/** How a user is looked up: by his id, by his e-mail, or by a way in. */
export type UserQuery = {
  /** A UUID in lower case. */
  userId: string
} | {
  /** The one that is his, not what a provider says beside it. */
  email: string
} | {
  /** `local` or the name of an external provider. */
  provider: string
  /** The e-mail for `local`, else the provider's `sub`. */
  subject: string
}

/** A local account, with what a login is checked against. */
export interface Credential {
  /** Whose account it is. */
  user: User
  /** His way in at `local`. */
  link: Link
  /** Argon2id PHC string. */
  passwordHash: string
}

/**
 * Where users, links and claims are kept. Each method is atomic, also between processes, and is done when it resolves.
 *
 * User ids are UUIDs in lower case, e-mails canonical and claims plain JSON data: whoever calls has checked them.
 * Every method rejects with AuthError `unavailable` when the store cannot be reached.
 */
export interface AuthStore {
  /**
   * Looks a user up; an e-mail comes in its canonical form.
   *
   * @returns null when there is none
   */
  findUser (query: UserQuery): Promise<User | null>

  /** A user's links, ordered by provider: at most one at each. Empty for an unknown user. */
  links (userId: string): Promise<Link[]>

  /**
   * The local account with this e-mail, in its canonical form: user, link and password hash in one look.
   *
   * @returns null when there is none
   */
  findCredential (email: string): Promise<Credential | null>

  /**
   * Notes a sign-in: the identity claims of the link, the user's name, and his verified e-mail unless another user has it.
   * One that differs from the e-mail that he has is taken only when the claim `email` of this link has changed: with two
   * ways in that have e-mails of their own, his does not depend on which he used last.
   *
   * @returns the user, or null when nobody is linked to this subject
   */
  refreshIdentity (identity: LinkedIdentity): Promise<User | null>

  /**
   * Makes a user with his first link and, for a local account, his password.
   *
   * @param user with an id that nobody has
   * @returns the user, or null when another one has this e-mail or this link; then nothing was written
   */
  createUser (user: NewUser): Promise<User | null>

  /**
   * Adds a way in to a user who has none at this provider yet, and notes the user's name, and his verified e-mail unless
   * another user has it; one that differs from the e-mail that he has is not taken.
   *
   * @returns the user, or null when he is gone, has another subject at this provider, or the link is somebody's; then nothing was written
   */
  addLink (userId: string, identity: LinkedIdentity): Promise<User | null>

  /**
   * Takes a way in away from a user; with the one at `local` his password goes too. A way in that he does not have is passed over.
   *
   * @returns the links that are left, ordered by provider
   * @throws AuthError `unknown_user`, `last_link` when he would be left without a way in
   */
  removeLink (userId: string, provider: string): Promise<Link[]>

  /**
   * Deletes a user with his links and his password.
   *
   * @throws AuthError `unknown_user`, `user_in_use` when a table of the application refers to him and does not let him go
   */
  deleteUser (userId: string): Promise<void>

  /**
   * Ends the time in which a user is new.
   *
   * @returns whether this call did; false when he was not new, or is gone
   */
  admitUser (userId: string): Promise<boolean>

  /**
   * Deletes a user with his links and his password if he is still new; another one is left alone.
   *
   * @throws AuthError `user_in_use`
   */
  deleteNewUser (userId: string): Promise<void>

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

  /** Releases what the store opened itself. Called when the application closes. */
  close (): Promise<void>
}

/**
 * What a store answers. A store of the application's own may throw whatever its driver does, which is for the log and no answer.
 *
 * @throws AuthError `unavailable`
 */
export async function answerOfStore<T> (ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw error instanceof AuthError ? error : new AuthError('unavailable', { cause: error })
  }
}

/** Whether a user can have this id: the ids are UUIDs in lower case, and are compared as they are. */
export function isUserId (value: unknown): value is string {
  return typeof value === 'string' && UUID.test(value)
}

/**
 * A user's links without the one at this provider.
 *
 * @throws AuthError `unknown_user` when there are none, `last_link` when none would be left
 */
export function linksWithout (links: Link[], provider: string): Link[] {
  if (links.length === 0) throw new AuthError('unknown_user')
  const left = links.filter(link => link.provider !== provider)
  if (left.length === 0) throw new AuthError('last_link')
  return left
}
