import type { AuthorizationClaims, IdentityClaims } from '../claims.js'
import { canonicalEmail } from '../email.js'
import { AuthError } from '../errors.js'

/** A person's account. */
export interface User {
  /** A UUID in lower case. */
  userId: string
  /** Canonical; set from a verified e-mail or a local registration, null otherwise. At most one user has it. */
  email: string | null
  /** Whether a provider vouches for `email`: the one of a link, as of its last sign-in. */
  emailVerified: boolean
  /** As the provider said at the last sign-in, or the registration form. */
  name: string | null
  /** The authorization claims. */
  claims: AuthorizationClaims
  /** Only there until the user's first sign-in is complete: `onSignIn` let them in, and the session is written. */
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
  /** Whether the provider of the link vouches for `email`. */
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
   * Notes a sign-in: the identity claims of the link, the user's name, and their verified e-mail unless another user has it.
   * One that differs from the user's e-mail is taken only when the claim `email` of this link has changed: with two
   * links that have e-mails of their own, the user's does not depend on which was used last.
   *
   * The link vouches for the user's e-mail as long as it is the verified one that the provider reports. When no link vouches
   * for it any more, `emailVerified` becomes false: the address may have another owner by now, who must not join the user.
   *
   * @returns the user, or null when nobody is linked to this subject
   */
  refreshIdentity (identity: LinkedIdentity): Promise<User | null>

  /**
   * Makes a user with a first link and, for a local account, a password.
   *
   * @param user with an id that no other user has
   * @returns the user, or null when another one has this e-mail or this link; then nothing was written
   * @throws AuthError `invalid_email` when the e-mail is not canonical, `invalid_request` for a local account without a password
   */
  createUser (user: NewUser): Promise<User | null>

  /**
   * Adds a link to a user who has none at this provider yet, and notes the user's name, and their verified e-mail unless
   * another user has it; one that differs from the user's e-mail is not taken.
   *
   * @returns the user, or null when the user is gone or has another subject at this provider, or when the link belongs to a user
   *   already; then nothing was written
   * @throws AuthError `invalid_email` when the verified e-mail is not canonical, `invalid_request` for a link at `local`
   */
  addLink (userId: string, identity: LinkedIdentity): Promise<User | null>

  /**
   * Removes a link from a user; the one at `local` with the password. A link that the user does not have is passed over.
   * The link does not vouch for the user's e-mail any more.
   *
   * @returns the links that are left, ordered by provider
   * @throws AuthError `unknown_user`, `last_link` when no link would be left
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

/**
 * Refuses what would make a user who cannot sign in. Every store calls it first.
 *
 * @throws AuthError `invalid_email` when an e-mail is not canonical, `invalid_request` for a link at `local` without a password
 */
export function assertCanSignIn ({ email, link, passwordHash }: Pick<NewUser, 'email' | 'link' | 'passwordHash'>): void {
  const isLocal = link.provider === 'local'
  if (isLocal && passwordHash === undefined) {
    throw new AuthError('invalid_request', { message: 'A link at "local" needs a password: make the user by createUser with a passwordHash.' })
  }
  const emails = isLocal ? [email, link.subject] : [email]
  if (emails.some(email => email !== null && canonicalEmail(email) !== email)) {
    throw new AuthError('invalid_email', { message: 'The store takes e-mails in the form that canonicalEmail returns; pass the e-mail through it.' })
  }
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
