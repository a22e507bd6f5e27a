import { AuthError } from '../errors.js'
import type { Account, AccountStatus, Credential, Factor, Link, Subject, User } from './account.js'

/** How a user is looked up: by id, by e-mail, or by a link. */
export type UserQuery = AccountQuery | {
  /** The e-mail of the user, not the one in the claims of a link. */
  email: string
}

/** Which users {@link AuthStore.users} returns, and {@link AuthStore.countUsers} counts. */
export interface UsersFilter {
  /**
   * How the canonical e-mail begins, or `name_key` or `email_domain` in the notes of the account;
   * null for any user.
   */
  search: string | null
  /** Whether the users are blocked now: see {@link isBlocked}; null for any. */
  blocked: boolean | null
}

/** A page of the users that {@link AuthStore.users} returns. */
export interface UsersQuery extends UsersFilter {
  /** The last user before; null for the first users. */
  after: Pick<User, 'userId' | 'createdAt'> | null
  /** At most so many users. */
  limit: number
  /** By id; or by the time of creation, the last one first, and then by id, the highest first. */
  order: 'id' | 'newest'
}

/** Which account a rule is asked about: by user, or by link for a sign-in. */
export type AccountQuery = {
  /** A UUID in lower case. */
  userId: string
} | Subject

/** What a rule may give to an account, so that it must know who has it. */
export interface UniqueKeys {
  /** A canonical e-mail; null for none. */
  email?: string | null
  /** A link; null for none. */
  link?: Subject | null
}

/** Who has the unique keys that a rule may give; null where no user has them. */
export interface Holders {
  /** The account with the e-mail. */
  ofEmail: Account | null
  /** The account with the link. */
  ofLink: Account | null
}

/** What a rule decides. */
export interface Decision<T> {
  /** What the caller is told. */
  result: T
  /**
   * The account as it is from now on: the one that was found, one of the holders, or a new one.
   * Null deletes the one that was found; absent, nothing is written.
   */
  account?: Account | null
}

/**
 * A rule of an account: decides by what it is given alone, has no effects, and may be asked several
 * times. What it throws reaches the caller, and nothing is written. The account is null where there
 * is none.
 */
export type Rule<T> = (account: Account | null, holders: Holders) => Decision<T>

/**
 * What the application does for a user who is created: asked when the account is written and before
 * it is committed. Returns the account with the claims that it adds, and something to await only
 * where the function of the application did. What it throws, or rejects with, refuses the user.
 *
 * @param tx the transaction, for statements of the application; null where the store has none
 */
export type CreateHook<Tx = unknown> = {
  /** As a method, so that an engine, whose transactions have one type, serves a store of any. */
  ask (account: Account, tx: Tx): Account | PromiseLike<Account>
}['ask']

/**
 * Keeps accounts. It has no rules: {@link Accounts} has them, and {@link AuthStore.change} asks
 * them. What {@link Accounts} says of all of its methods holds here too; the caller has checked
 * ids, e-mails and claims.
 */
export interface AuthStore<Tx = unknown> {
  /** Looks up a user; null for an unknown one. */
  findUser (query: UserQuery): Promise<User | null>

  /** Returns a user's links, ordered by provider; empty for an unknown user. */
  links (userId: string): Promise<Link[]>

  /**
   * Returns the factors of a user in the order of {@link Account.factors}, without waiting for
   * changes under way; empty for an unknown user.
   */
  factors (userId: string): Promise<Factor[]>

  /** Looks up the local account with an e-mail, in one query; null for an unknown one. */
  findCredential (email: string): Promise<Credential | null>

  /** Returns what each guarded request asks about a user; null for an unknown one. */
  status (userId: string): Promise<AccountStatus | null>

  /** Returns users in an order. */
  users (query: UsersQuery): Promise<User[]>

  /** Returns how many users there are. */
  countUsers (filter: UsersFilter): Promise<number>

  /**
   * Returns the ids of at most so many guests who were created before a time and have no open
   * session of their generation beside the users, in an order of the ids. Without this member
   * guests are not deleted when they are over.
   *
   * @param createdBefore milliseconds since the epoch, like `now`
   * @param after the id that comes before the first one; empty for all
   */
  abandonedGuests? (createdBefore: number, now: number, limit: number, after: string): Promise<string[]>

  /**
   * Adds an account.
   *
   * @returns false, and nothing was written, when its id, its e-mail, one of its links or the id of
   *   one of its factors is taken; then the hook was not asked
   * @throws what the hook throws: an AuthError as it is, `internal_error` for others, never taken
   *   for an answer to a statement of the store; then nothing was written
   */
  insert (account: Account, hook?: CreateHook<Tx>): Promise<boolean>

  /**
   * Asks a rule about an account and writes what it decides, all or nothing: what the rule was
   * given is still so when its decision is written, otherwise it is asked again. A store that
   * shares revocations records one in the same step when the account is deleted or its `generation`
   * is raised.
   *
   * @param keys what the rule may give to an account
   * @param hook as for {@link insert}, where the rule makes an account, or removes
   *   `extras.guest`: a guest becomes a user. What it throws leaves the guest as they were.
   * @returns the `result` of the rule
   * @throws AuthError `user_in_use` when a table of the application refers to the user and forbids
   *   the deletion, `exists` when another user has the id of a factor that is to be written
   */
  change<T> (find: AccountQuery, keys: UniqueKeys, rule: Rule<T>, hook?: CreateHook<Tx>): Promise<T>

  /**
   * Why the store cannot ask hooks, as what follows the name of the option; null where it can. A
   * store without this member asks none.
   *
   * @param isAsync whether the function of the application is an async function
   */
  hookProblem?: (isAsync: boolean) => Promise<string | null>

  /** Releases what the store opened itself. Called when the application closes. */
  close (): Promise<void>
}

/** The error for the caller of a store: what a hook threw, or its statements have led to. */
export function refusalBy (error: unknown): AuthError {
  return error instanceof AuthError ? error : new AuthError('internal_error', { cause: error })
}

/** Asks a store of the application, which may reject with whatever its driver throws. */
export async function wrapStoreErrors<T> (ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw error instanceof AuthError ? error : new AuthError('unavailable', { cause: error })
  }
}
