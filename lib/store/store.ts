import type { AuthorizationClaims, IdentityClaims } from '../claims.js'
import { AuthError } from '../errors.js'

/** Keeps a user from signing in: see {@link User.blocked}. */
export interface Block {
  /** When the user was blocked. */
  at: Date
  /** When the block ends by itself; without it, it lasts until it is removed. */
  until?: Date
  /** A note of the application. */
  reason?: string
}

/** A user account. */
export interface User {
  /** A UUID in lower case. */
  userId: string
  /**
   * Canonical; set from a verified e-mail or a local registration, null otherwise. At most one user
   * has it.
   */
  email: string | null
  /**
   * Whether the user has confirmed `email`, or a provider vouches for it: that of a link, as of the
   * last sign-in with this link.
   */
  emailVerified: boolean
  /**
   * The name that the application set, else the one from the registration form or from the provider
   * at the last sign-in.
   */
  name: string | null
  /** The authorization claims. */
  claims: AuthorizationClaims
  /**
   * Present until the user's first sign-in is complete: `onSignIn` admitted them, and the session
   * is written.
   */
  isNew?: true
  /** Counts the events that ended all sessions of the user. Absent counts as 0. */
  generation?: number
  /** Present while the application has blocked the user; it stays after `until` is over. */
  blocked?: Block
  /** When the user was created. Absent for users from before 0.2.0. */
  createdAt?: Date
}

/**
 * Whether a user is blocked at a time: a block whose `until` is over does not count any more.
 *
 * @param now in milliseconds since the epoch
 */
export function isBlocked ({ blocked }: Pick<User, 'blocked'>, now: number = Date.now()): boolean {
  return blocked !== undefined && (blocked.until === undefined || blocked.until.getTime() > now)
}

/** A sign-in method of an account: a subject at a provider. */
export interface Link {
  /** `local` or the name of an external provider. */
  provider: string
  /** The e-mail for `local`, else the provider's `sub`. */
  subject: string
  /** The user who signs in by this link: a UUID in lower case. */
  userId: string
  /** The identity claims as of the last sign-in. */
  claims: IdentityClaims
}

/** What a sign-in reports about a subject at a provider. */
export interface LinkedIdentity {
  /** The name of an external provider. */
  provider: string
  /** The provider's identifier of the user, 1 to 255 characters. */
  subject: string
  /** The identity claims; they replace those of the link. */
  claims: IdentityClaims
  /** The e-mail in its canonical form if the provider verified it; null otherwise. */
  verifiedEmail: string | null
}

/** A user to create, with their first link. */
export interface NewUser {
  /** A UUID in lower case, made by the caller. */
  userId: string
  /** Canonical; null for an identity without a verified one. */
  email: string | null
  /**
   * Whether the provider of the link vouches for `email`; for a link at `local` or `application`,
   * whether the user has confirmed it.
   */
  emailVerified: boolean
  /** The user's name if it is known. */
  name: string | null
  /** The first authorization claims. */
  claims: AuthorizationClaims
  /** Set for a user who must be admitted: see {@link AuthStore.admitUser}. */
  isNew?: true
  /** The user's first link. */
  link: Omit<Link, 'userId'>
  /** Argon2id PHC string, for a user with a password. */
  passwordHash?: string
}

/** How a user is looked up: by id, by e-mail, or by a link. */
export type UserQuery = {
  /** A UUID in lower case. */
  userId: string
} | {
  /** The e-mail of the user, not the one in the claims of a link. */
  email: string
} | {
  /** `local` or the name of an external provider. */
  provider: string
  /** The e-mail for `local`, else the provider's `sub`. */
  subject: string
}

/** A local account, with the password hash that a login is checked against. */
export interface Credential {
  /** The user of the account. */
  user: User
  /** The user's link at `local`. */
  link: Link
  /** Argon2id PHC string. */
  passwordHash: string
}

/**
 * Keeps users, links and claims. Each method is atomic, also between processes, and its changes are
 * durable when it resolves.
 *
 * User ids are UUIDs in lower case, e-mails canonical and claims plain JSON data: the caller has
 * checked them. Every method rejects with AuthError `unavailable` when the store cannot be reached.
 */
export interface AuthStore {
  /**
   * Looks up a user; an e-mail is given in its canonical form.
   *
   * @returns null for an unknown user
   */
  findUser (query: UserQuery): Promise<User | null>

  /**
   * Returns a user's links, ordered by provider: at most one at each. Empty for an unknown user.
   */
  links (userId: string): Promise<Link[]>

  /**
   * Looks up the local account with an e-mail in its canonical form: user, link and password hash
   * in one query.
   *
   * @returns null for an unknown account
   */
  findCredential (email: string): Promise<Credential | null>

  /**
   * Notes a sign-in: the identity claims of the link, the user's name, and their verified e-mail
   * unless another user has it. A verified e-mail that differs from the user's is taken only when
   * the claim `email` of this link has changed, and the user has not confirmed the present e-mail:
   * with two links that have different e-mails, the user's does not depend on which link was used
   * last.
   *
   * The link vouches for the user's e-mail as long as it is the verified one that the provider
   * reports. When no link vouches for it any more and the user has not confirmed it,
   * `emailVerified` becomes false: the address may have another owner by now, who must not join the
   * user.
   *
   * @returns the user, or null when no user has this link
   */
  refreshIdentity (identity: LinkedIdentity): Promise<User | null>

  /**
   * Creates a user with a first link and, for a local account, a password.
   *
   * @param user with an id that no other user has
   * @returns the user, or null when another one has this e-mail or this link; then nothing was
   *   written
   * @throws AuthError `invalid_email` when the e-mail is not canonical, `invalid_request` for a
   *   local account without a password
   */
  createUser (user: NewUser): Promise<User | null>

  /**
   * Adds a link to a user who has none at this provider yet, and notes the user's name, and their
   * verified e-mail unless another user has it; one that differs from the user's e-mail is not
   * taken.
   *
   * @param generation the {@link User.generation} that the user must still have, 0 where it was
   *   absent; default any. A store that manages accounts compares it in the same step, so that a
   *   link cannot outlive the session that asked for it.
   * @returns the user, or null when the user is gone, has another generation or another subject at
   *   this provider, or when a user has the link already; then nothing was written
   * @throws AuthError `invalid_email` when the verified e-mail is not canonical, `invalid_request`
   *   for a link at `local`
   */
  addLink (userId: string, identity: LinkedIdentity, generation?: number): Promise<User | null>

  /**
   * Removes a link from a user; the one at `local` with the password. A link that the user does not
   * have is passed over. The link no longer vouches for the user's e-mail. A store that manages
   * accounts ends all sessions of the user in the same step.
   *
   * @returns the links that are left, ordered by provider
   * @throws AuthError `unknown_user`, `last_link` when no link would be left
   */
  removeLink (userId: string, provider: string): Promise<Link[]>

  /**
   * Deletes a user with their links and their password.
   *
   * @throws AuthError `unknown_user`, `user_in_use` when a table of the application refers to the
   *   user and forbids the deletion
   */
  deleteUser (userId: string): Promise<void>

  /**
   * Admits a new user: from now on they are an ordinary user.
   *
   * @returns whether this call did; false for a user who was not new, or is gone
   */
  admitUser (userId: string): Promise<boolean>

  /**
   * Deletes a user with their links and their password if they are still new; leaves an admitted
   * user alone.
   *
   * @throws AuthError `user_in_use`
   */
  deleteNewUser (userId: string): Promise<void>

  /**
   * Replaces a password hash if it is still `current`; a password changed meanwhile is left alone.
   */
  replacePasswordHash (userId: string, current: string, next: string): Promise<void>

  /**
   * Merges authorization claims into the user's, shallowly.
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

/** What a guard asks about a user. */
export interface Standing {
  /** {@link User.generation}, 0 where that is absent. */
  generation: number
  /** Seconds since the epoch, 0 when never: tokens that were issued until then are refused. */
  signedOutAt: number
  /** {@link User.emailVerified}. */
  emailVerified: boolean
}

/** What {@link ManagedAccounts.changeUser} changes; what is absent stays as it is. */
export interface UserChange {
  /** The name, also in the claims of the links at `local` and `application`; null removes it. */
  name?: string | null
  /** Blocks the user; null removes the block. */
  blocked?: Block | null
  /** Ends all sessions of the user: one more `generation`, and `signedOutAt` is now. */
  endSessions?: true
}

/** A password that {@link ManagedAccounts.setPassword} sets. */
export interface NewPassword {
  /** Argon2id PHC string. */
  passwordHash: string
  /**
   * The hash that the new one replaces; null for a user who must have no password yet. When it is
   * absent, the password of the user is replaced or the first one is set.
   */
  current?: string | null
}

/** Which users {@link ManagedAccounts.users} returns. */
export interface UsersQuery {
  /** The id of the last user before; null for the first users. */
  after: string | null
  /** At most so many users. */
  limit: number
  /** How the canonical e-mail begins; null for any user, with an e-mail or without one. */
  email: string | null
  /** Whether the users are blocked now: see {@link isBlocked}; null for any. */
  blocked: boolean | null
}

/**
 * The optional group of {@link AuthStore} for managing accounts: a store without it works, but not
 * the methods of `app.auth` that need it. What is said of {@link AuthStore} holds here too.
 */
export interface ManagedAccounts {
  /**
   * Returns what each guarded request asks about a user.
   *
   * @returns null for an unknown user
   */
  standing (userId: string): Promise<Standing | null>

  /**
   * Changes a user. A name that was set here stays: no sign-in changes it any more.
   *
   * @returns the user as they are now
   * @throws AuthError `unknown_user`
   */
  changeUser (userId: string, change: UserChange): Promise<User>

  /**
   * Replaces the password of a user, or sets the first one and adds the link at `local`, whose
   * subject is the user's e-mail. Ends all sessions of the user.
   *
   * @returns the user as they are now; null when the user has no e-mail, when another user has the
   *   link, or when `current` is given and is not what they have now: then nothing was written
   * @throws AuthError `unknown_user`
   */
  setPassword (userId: string, password: NewPassword): Promise<User | null>

  /** Returns users, ordered by id. */
  users (query: UsersQuery): Promise<User[]>
}

/** What a store does for accounts. */
export type Accounts = Omit<AuthStore, 'close'>

/** Each method of {@link Accounts} by its name: one that is missing here does not compile. */
const ACCOUNTS: { readonly [Name in keyof Accounts]: Name } = {
  findUser: 'findUser',
  links: 'links',
  findCredential: 'findCredential',
  refreshIdentity: 'refreshIdentity',
  createUser: 'createUser',
  addLink: 'addLink',
  removeLink: 'removeLink',
  deleteUser: 'deleteUser',
  admitUser: 'admitUser',
  deleteNewUser: 'deleteNewUser',
  replacePasswordHash: 'replacePasswordHash',
  grant: 'grant',
  withdraw: 'withdraw'
}

/** The names of the methods of {@link Accounts}. */
export const ACCOUNT_METHODS: ReadonlyArray<keyof Accounts> = Object.values(ACCOUNTS)

/** The names of the methods of {@link AuthStore}. */
export const STORE_METHODS: ReadonlyArray<keyof AuthStore> = [...ACCOUNT_METHODS, 'close']

/** Each method of {@link ManagedAccounts} by its name. */
const MANAGED_ACCOUNTS: { readonly [Name in keyof ManagedAccounts]: Name } = {
  standing: 'standing',
  changeUser: 'changeUser',
  setPassword: 'setPassword',
  users: 'users'
}

/** The names of the methods of {@link ManagedAccounts}. */
export const MANAGED_ACCOUNT_METHODS: ReadonlyArray<keyof ManagedAccounts> = Object.values(MANAGED_ACCOUNTS)

/** Whether a store can manage accounts. */
export function managesAccounts (store: AuthStore): store is AuthStore & ManagedAccounts {
  return missingMethods(store, MANAGED_ACCOUNT_METHODS).length === 0
}

/**
 * Returns a store that can manage accounts.
 *
 * @param method the method that needs it, for the message
 * @throws AuthError `unsupported` naming the methods that the store lacks
 */
export function managedAccounts (store: AuthStore, method: string): ManagedAccounts {
  if (managesAccounts(store)) return store
  throw unsupported(method, missingMethods(store, MANAGED_ACCOUNT_METHODS))
}

/** Returns the methods that a store lacks. */
export function missingMethods (store: AuthStore, names: readonly string[]): string[] {
  return names.filter(name => typeof Reflect.get(store, name) !== 'function')
}

/** The error of a method that needs methods which the store lacks. */
export function unsupported (method: string, missing: readonly string[]): AuthError {
  return new AuthError('unsupported', { message: `${method} needs a store with the methods ${missing.join(', ')}.` })
}

/**
 * Asks a store. A store of the application may reject with whatever its driver throws: that is the
 * cause of the error, for the log.
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
