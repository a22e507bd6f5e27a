import { randomUUID } from 'node:crypto'
import { mapAwaited } from '../base/concurrency.js'
import type { AuthorizationClaims } from '../claims.js'
import {
  type Credential, type Link, type User, assertCanonical, generationOf, userOf, withSearchKeys
} from './account.js'
import {
  type AccountQuery, type AuthStore, type CreateHook, type Rule, type UniqueKeys, wrapStoreErrors
} from './auth-store.js'
import { type NotedBrowser, type UserChange, type UserUpdate, userRules } from './changes.js'
import {
  type ConfirmedEmail, type FoundAddress, type MailTokenClaims, type NewPassword, credentialRules
} from './credentials.js'
import {
  type MailSignIn, type ProvenMailbox, type SignInChange, type UnprovenMethods, signInRule, signInByMail, unprovenOf,
  withoutGuest
} from './sign-in.js'
import {
  type FactorAttempt, type FactorChange, type FactorSpending, attemptFactor, changeFactorsRule
} from './factors.js'
import {
  type CanSignIn, type EnteredIdentity, type FoundUser, type LinkedIdentity, type NewUser, type NotedSignIn,
  identityRules, newAccount
} from './identities.js'

/**
 * Asked about each user who is created, in the transaction `tx` that creates them. Returns claims
 * for them, or null; something to await where the function of the application did.
 */
export type OnCreate = (user: User, tx: unknown) => AuthorizationClaims | null | PromiseLike<AuthorizationClaims | null>

/**
 * The operations on the accounts of a store: each asks one rule. `app.auth` is for applications;
 * this class also takes what they need to import users, such as password hashes.
 *
 * Each operation is atomic, also between processes, and its changes are durable when it resolves.
 * User ids are UUIDs in lower case, e-mails canonical and claims plain JSON data. Every method
 * rejects with AuthError `unavailable` when the store cannot be reached.
 *
 * What a session asked for must not outlive it: a parameter `generation` is the {@link
 * User.generation} that the user must still have; default any.
 *
 * @example
 * ```ts
 * const accounts = new Accounts(new SqlAuthStore())
 * const link = { provider: 'local', subject: email, claims: { sub: userId, email } }
 * await accounts.createUser({
 *   userId, email, emailVerified: true, name: null, claims: {}, link, passwordHash
 * })
 * ```
 */
export class Accounts {
  readonly #store: AuthStore

  /** Uses a store; the caller closes it. */
  constructor (store: AuthStore) {
    this.#store = store
  }

  /** See {@link AuthStore.findUser}. */
  readonly findUser: AuthStore['findUser'] = query => wrapStoreErrors(() => this.#store.findUser(query))

  /** See {@link AuthStore.links}. */
  readonly links: AuthStore['links'] = userId => wrapStoreErrors(() => this.#store.links(userId))

  /** See {@link AuthStore.factors}. */
  readonly factors: AuthStore['factors'] = userId => wrapStoreErrors(() => this.#store.factors(userId))

  /** See {@link AuthStore.findCredential}. */
  readonly findCredential: AuthStore['findCredential'] =
    email => wrapStoreErrors(() => this.#store.findCredential(email))

  /**
   * Returns the password of a user; null for a user without one, and for one who is gone.
   *
   * @param links the links of the user, where they were read already
   */
  async credentialOf (userId: string, links?: readonly Link[]): Promise<Credential | null> {
    const link = (links ?? await this.links(userId)).find(({ provider }) => provider === 'local')
    const credential = link === undefined ? null : await this.findCredential(link.subject)
    return credential?.user.userId === userId ? credential : null
  }

  /** See {@link AuthStore.status}. */
  readonly status: AuthStore['status'] = userId => wrapStoreErrors(() => this.#store.status(userId))

  /** See {@link AuthStore.abandonedGuests}. */
  async abandonedGuests (createdBefore: number, now: number, limit: number, after: string): Promise<string[]> {
    return wrapStoreErrors(async () => await this.#store.abandonedGuests?.(createdBefore, now, limit, after) ?? [])
  }

  /** See {@link AuthStore.users}. */
  readonly users: AuthStore['users'] = query => wrapStoreErrors(() => this.#store.users(query))

  /** See {@link AuthStore.countUsers}. */
  readonly countUsers: AuthStore['countUsers'] = filter => wrapStoreErrors(() => this.#store.countUsers(filter))

  /**
   * Creates a user with a first link and, for a local account, a password.
   *
   * @param user with an id that no other user has
   * @param onCreate is asked about the user; default nothing is
   * @returns null, and nothing was written, when another user has this e-mail, link or factor
   * @throws AuthError `invalid_email` when the e-mail is not canonical, `invalid_request` for a
   *   local account without a password, or whose subject is not the e-mail, what `onCreate` throws
   */
  async createUser (user: NewUser, onCreate?: OnCreate): Promise<User | null> {
    const account = withSearchKeys(newAccount(user, Date.now()))
    const { hook, created } = creation(onCreate)
    return await wrapStoreErrors(() => this.#store.insert(account, hook)) ? created(userOf(account)) : null
  }

  /**
   * Notes a sign-in: the identity claims of the link, the user's name, and their verified e-mail
   * unless another user has it. A verified e-mail that differs from the user's is taken only when
   * the link vouched for the user's, or its claim `email` has changed, and the present e-mail is
   * verified and was not confirmed by the user: of two links with different e-mails, the one that
   * was used last does not decide. The link at `local` moves with the e-mail.
   *
   * The link vouches for the user's e-mail as long as it is the verified one that the provider
   * reports. When no link vouches for it any more and the user has not confirmed it,
   * `emailVerified` becomes false: the address may have another owner by now, who must not join the
   * user.
   *
   * @returns null when no user has this link
   */
  async refreshIdentity (identity: LinkedIdentity): Promise<User | null> {
    const { provider, subject, verifiedEmail } = identity
    return this.#change({ provider, subject }, identityRules.refreshIdentity(identity), { email: verifiedEmail })
  }

  /**
   * Notes a sign-in as {@link refreshIdentity} does, or creates the user of an identity that no
   * user has, in one step.
   *
   * @param email the canonical e-mail that the provider reports, verified or not
   * @param newUser the user to create, with this identity as their first link; null for none
   * @param holds whether nothing is written of a user who has the link, because a second factor may
   *   be due: {@link signIn} writes it then; default never. Like a {@link Rule} it has no effects.
   * @param onCreate as for {@link createUser}
   * @returns the user with the link; or the one who has the e-mail, then nothing was written; null
   *   where there is none and none is to be created
   */
  async enterIdentity (
    identity: LinkedIdentity, email: string | null, newUser: NewUser, holds?: (user: User) => boolean,
    onCreate?: OnCreate
  ): Promise<EnteredIdentity>
  async enterIdentity (
    identity: LinkedIdentity, email: string | null, newUser: NewUser | null, holds?: (user: User) => boolean,
    onCreate?: OnCreate
  ): Promise<EnteredIdentity | null>
  async enterIdentity (
    identity: LinkedIdentity,
    email: string | null,
    newUser: NewUser | null,
    holds: (user: User) => boolean = () => false,
    onCreate?: OnCreate
  ): Promise<EnteredIdentity | null> {
    const { provider, subject } = identity
    const rule = identityRules.enterIdentity(identity, newUser && newAccount(newUser, Date.now()), holds)
    const { hook, created } = creation(onCreate)
    const entered = await this.#change({ provider, subject }, rule, { email }, hook)
    return entered?.as === 'new' ? { ...entered, user: created(entered.user) } : entered
  }

  /**
   * Notes a sign-in once no second factor is due: as {@link refreshIdentity} and {@link
   * changeFactors} do, in one step.
   *
   * @param found the user as the first proof has found them
   * @param isTrial whether it only says if that can be written; default false
   * @returns null, and nothing was written, when what was found has changed, or another user has
   *   the link
   * @throws AuthError `blocked`, `exists`, and what `change` of the factor throws; then nothing was
   *   written
   */
  async signIn (
    found: FoundUser, change: SignInChange,
    { isTrial = false, onCreate }: { isTrial?: boolean, onCreate?: OnCreate | undefined } = {}
  ): Promise<NotedSignIn | null> {
    const { newUser, identity: { provider, subject, verifiedEmail } } = change
    const rule = signInRule(found, change, { isTrial, now: Date.now() })
    const keys = newUser ?? { email: verifiedEmail, link: { provider, subject } }
    const { hook, created } = creation(onCreate)
    const noted = await this.#change({ userId: found.userId }, rule, keys, hook)
    return noted && change.held === 'promotes' && !isTrial ? { ...noted, user: created(noted.user) } : noted
  }

  /**
   * Returns what the first proof of an address removes from an account unless the user keeps it;
   * null where an address was proven before, or the user has another generation.
   *
   * @param hasNewPassword whether the proof replaces the password
   */
  async unprovenMethods (
    { userId, generation }: Pick<User, 'userId' | 'generation'>, hasNewPassword: boolean = false
  ): Promise<UnprovenMethods | null> {
    return this.#change({ userId }, account => {
      const isFound = account !== null && generationOf(account) === generation
      return { result: isFound ? unprovenOf(account, hasNewPassword) : null }
    })
  }

  /**
   * Notes that the owner of a mailbox has confirmed the address, or creates a user with it. Where
   * no address of the account was ever proven, another person may have made it: its links except
   * `application`, its password and its factors are removed, and all sessions and API keys end.
   *
   * @param how `newId`: the id of the user to create; null where none may be. `holds`: as for
   *   {@link enterIdentity}, where an address was proven before. `existing`: default `remove`, or
   *   the `keep` of {@link unprovenMethods}, which keeps what it stands for. `onCreate`: as for
   *   {@link createUser}
   * @returns null, and nothing was written, when what was found has changed, or no user has the
   *   address and none may be created
   * @throws AuthError `blocked`; `choice_required` when `existing` stands for another list
   */
  async signInByMail (
    proven: ProvenMailbox,
    how: {
      newId: string | null, holds: (user: User) => boolean, existing?: string, onCreate?: OnCreate | undefined
    }
  ): Promise<MailSignIn | null> {
    const { user, email } = proven
    const userId = user?.userId ?? how.newId ?? randomUUID()
    const rule = signInByMail(proven, { existing: 'remove', ...how, now: Date.now() })
    const { hook, created } = creation(how.onCreate)
    const signedIn = await this.#change({ userId }, rule, { email }, hook)
    return signedIn?.as === 'new' ? { ...signedIn, user: created(signedIn.user) } : signedIn
  }

  /**
   * Adds a link to a user who has none at this provider yet, and notes the user's name, and their
   * verified e-mail unless they have a different e-mail, or another user has it.
   *
   * @returns null, and nothing was written, when the user is gone, has another generation or
   *   another subject at this provider, or when a user has the link already
   * @throws AuthError `invalid_email` when the verified e-mail is not canonical, `invalid_request`
   *   for a link at `local`
   */
  async addLink (userId: string, identity: LinkedIdentity, generation?: number): Promise<User | null> {
    const { provider, subject, verifiedEmail } = identity
    const keys = { email: verifiedEmail, link: { provider, subject } }
    return this.#change({ userId }, identityRules.addLink(identity, generation), keys)
  }

  /**
   * Replaces the claims of a link, and nothing else of the account.
   *
   * @returns false, and nothing was written, when the user is gone, has another generation or no
   *   such link
   */
  async updateLink (userId: string, identity: LinkedIdentity, generation: number): Promise<boolean> {
    return this.#change({ userId }, identityRules.updateLink(identity, generation))
  }

  /**
   * Removes a link, which vouches for the e-mail no longer: see {@link Authorization.unlink}.
   *
   * @param canSignIn whether the user could still sign in with what is left
   * @throws AuthError `unknown_user`, `last_link`; `unauthenticated` when the user has another
   *   generation
   */
  async removeLink (
    userId: string, provider: string, generation?: number, canSignIn: CanSignIn = () => true
  ): Promise<Link[]> {
    return this.#change({ userId }, identityRules.removeLink(provider, generation, canSignIn, Date.now()))
  }

  /**
   * Removes the link at a provider that is gone for good, and ends all sessions of the user. The
   * address stays as it is. A user without another link has the link `application` then.
   *
   * @returns null, and nothing was written, for a user without such a link
   */
  async leaveProvider (userId: string, provider: string): Promise<User | null> {
    return this.#change({ userId }, identityRules.leaveProvider(provider, Date.now()))
  }

  /**
   * Deletes a user: see {@link Authorization.deleteUser}.
   *
   * @returns false, and nothing was written, when a generation is given and the user has another
   *   one, or is gone
   * @throws AuthError `user_in_use`; `unknown_user` without a generation
   */
  async deleteUser (userId: string, generation?: number): Promise<boolean> {
    return this.#change({ userId }, userRules.deleteUser(generation))
  }

  /**
   * Ends the sessions of a guest for good: from now on nobody becomes the user, not by a sign-in
   * that is under way either.
   *
   * @returns false, and nothing was written, for a user who is not a guest any more, or is gone
   */
  async closeGuest (userId: string): Promise<boolean> {
    return this.#change({ userId }, userRules.closeGuest(Date.now()))
  }

  /**
   * Deletes a guest.
   *
   * @returns false, and nothing was written, for a user who is not a guest any more, or is gone
   * @throws AuthError `user_in_use`
   */
  async deleteGuest (userId: string): Promise<boolean> {
    return this.#change({ userId }, userRules.deleteGuest)
  }

  /**
   * Admits a new user: from now on they are an ordinary user.
   *
   * @returns whether this call did; false for a user who was not new, or is gone
   */
  async admitUser (userId: string): Promise<boolean> {
    return this.#change({ userId }, userRules.admitUser)
  }

  /**
   * Notes that a browser of a user is known from now on, whichever it is: writes for the first one.
   *
   * @returns null when the user is gone
   */
  async noteBrowser (userId: string): Promise<NotedBrowser | null> {
    return this.#change({ userId }, userRules.noteBrowser)
  }

  /**
   * Deletes a user if they are still new; leaves an admitted user alone.
   *
   * @throws AuthError `user_in_use`
   */
  async deleteNewUser (userId: string): Promise<void> {
    await this.#change({ userId }, userRules.deleteNewUser)
  }

  /** See {@link Authorization.grant}. */
  async grant (userId: string, claims: AuthorizationClaims): Promise<AuthorizationClaims> {
    return this.#change({ userId }, userRules.grant(claims))
  }

  /** See {@link Authorization.withdraw}. */
  async withdraw (userId: string, names: readonly string[]): Promise<AuthorizationClaims> {
    return this.#change({ userId }, userRules.withdraw(names))
  }

  /**
   * Changes a user. A name that was set here stays: no sign-in changes it any more.
   *
   * @throws AuthError `unknown_user`; `unauthenticated` when the user has another generation
   */
  async changeUser (userId: string, change: UserChange, generation?: number): Promise<User> {
    return this.#change({ userId }, userRules.changeUser(change, generation, Date.now()))
  }

  /**
   * Changes a user as the operator says. Another e-mail or state of it ends all sessions of the
   * user; factors stay, and so does `email_proven`. The link at `local` moves with the e-mail.
   *
   * @returns the user as they were, and as they are
   * @throws AuthError `unknown_user`; `exists` when another user has the e-mail, `invalid_email`
   *   when it is not canonical, `invalid_request` when there is none to verify; then nothing was
   *   written
   */
  async updateUser (userId: string, change: UserUpdate): Promise<{ before: User, user: User }> {
    const { email = null } = change
    if (email !== null) assertCanonical(email)
    return this.#change({ userId }, userRules.updateUser(change, Date.now()), { email })
  }

  /**
   * Notes that the address of a user may have another owner by now, if it is of this domain: it is
   * unverified and {@link User.emailDisputed} until they confirm it. A user who is gone is passed
   * over.
   */
  async disputeEmail (userId: string, domain: string): Promise<void> {
    await this.#change({ userId }, userRules.disputeEmail(domain))
  }

  /**
   * Replaces the password of a user, or sets the first one and adds the link at `local`, whose
   * subject is the user's e-mail. Ends all sessions of the user.
   *
   * @returns null, and nothing was written, when the user has no e-mail, or when `current` or
   *   `generation` is given and is not what they have now
   * @throws AuthError `unknown_user` without `generation`
   */
  async setPassword (userId: string, password: NewPassword): Promise<User | null> {
    return this.#change({ userId }, credentialRules.setPassword(password, Date.now()))
  }

  /** Replaces a password hash if it is still `current`. */
  async replacePasswordHash (userId: string, current: string, next: string): Promise<void> {
    await this.#change({ userId }, credentialRules.replacePasswordHash(current, next))
  }

  /**
   * Notes that the user has confirmed their e-mail, also as `email_verified: true` in the claims of
   * the links at `local` and `application`. The first proof of an address of the account ends all
   * sessions. An e-mail that the user has confirmed stays verified whatever links are used, added
   * and removed, and no sign-in changes it.
   *
   * @param existing as for {@link signInByMail}; default null, which keeps all
   * @returns `unchanged` when they had confirmed it before; null when the token is not good any
   *   more
   * @throws AuthError `choice_required` as {@link signInByMail}
   */
  async verifyEmail (
    token: MailTokenClaims, existing: string | null = null
  ): Promise<ConfirmedEmail | 'unchanged' | null> {
    return this.#change({ userId: token.userId }, credentialRules.verifyEmail(token, existing, Date.now()))
  }

  /**
   * Replaces the password of a user, or sets the first one. Notes that the user has confirmed the
   * address, as {@link verifyEmail} does, and ends all their sessions and API keys. When they
   * had never owned an address of the account, all other links and all factors are removed:
   * another person may have made them.
   *
   * @param passwordHash Argon2id PHC string
   * @param existing as for {@link signInByMail}
   * @returns null, and nothing was written, when the token is not good any more, or the user is
   *   blocked
   * @throws AuthError `choice_required` as {@link signInByMail}
   */
  async resetPassword (
    token: MailTokenClaims, passwordHash: string, existing: string = 'remove'
  ): Promise<ConfirmedEmail | null> {
    const rule = credentialRules.resetPassword(token, passwordHash, { existing, now: Date.now() })
    return this.#change({ userId: token.userId }, rule)
  }

  /**
   * Changes the e-mail of a user to one that they have confirmed, with the subject of the link at
   * `local` and the claims of the links at `local` and `application`. Ends all their sessions.
   *
   * @param found with the present address, null where the user has none
   * @param to the new address in its canonical form
   * @param existing as for {@link signInByMail}; default null, which keeps all
   * @returns null when the user has changed
   * @throws AuthError `exists` when another user has the new address, `invalid_email` when it is
   *   not canonical, `choice_required` as {@link signInByMail}; then nothing was written
   */
  async changeEmail (found: FoundAddress, to: string, existing: string | null = null): Promise<ConfirmedEmail | null> {
    assertCanonical(to)
    const rule = credentialRules.changeEmail(found, to, { existing, now: Date.now() })
    return this.#change({ userId: found.userId }, rule, { email: to })
  }

  /**
   * Takes an address from a user who has never owned one of the account: the link at `local` is
   * removed, with the password and all factors, and the user has no e-mail; all their sessions
   * and API keys end. A user with no other link is deleted.
   *
   * @returns null when the token is not good any more, or the user has owned an address
   * @throws AuthError `user_in_use`
   */
  async releaseEmail (token: MailTokenClaims): Promise<'deleted' | 'freed' | null> {
    return this.#change({ userId: token.userId }, credentialRules.releaseEmail(token, Date.now()))
  }

  /**
   * Counts an attempt at a code of a factor, and spends the code if it is right, in one step. Ten
   * attempts of a user and generation are allowed in fifteen minutes, by all processes together;
   * refused ones do not count.
   *
   * @param spend default none: the attempt only counts
   * @returns null, and nothing was written, when the user has another generation, or is gone
   */
  async attemptFactor (
    userId: string, generation: number, spend: FactorSpending = () => null
  ): Promise<FactorAttempt | null> {
    return this.#change({ userId }, attemptFactor(generation, spend, Date.now()))
  }

  /**
   * Changes the factors of a user.
   *
   * @returns null, and nothing was written, when `change` returned null, or the user has another
   *   generation or other `kinds`, or is gone
   * @throws AuthError `exists` when another user has the id of a new factor, and what `change`
   *   throws; then nothing was written
   */
  async changeFactors (userId: string, change: FactorChange): Promise<User | null> {
    return this.#change({ userId }, changeFactorsRule(change, Date.now()))
  }

  #change<T> (find: AccountQuery, rule: Rule<T>, keys: UniqueKeys = {}, hook?: CreateHook): Promise<T> {
    return wrapStoreErrors(() => this.#store.change(find, keys, (...given) => {
      const decision = rule(...given)
      const { account } = decision
      return account == null ? decision : { ...decision, account: withSearchKeys(withoutGuest(account)) }
    }, hook))
  }
}

/** The hook for a store, and the created user with the claims that it was asked for last. */
function creation (onCreate: OnCreate | undefined): { hook?: CreateHook, created: (user: User) => User } {
  if (onCreate === undefined) return { created: user => user }
  let claims: AuthorizationClaims = {}
  return {
    hook (account, tx) {
      return mapAwaited(onCreate(userOf(account), tx), granted => {
        claims = { ...account.claims, ...granted }
        return { ...account, claims }
      })
    },
    created: user => ({ ...user, claims })
  }
}
