import { randomUUID } from 'node:crypto'
import { type AuditLog, type AuditSource, audit, sourceOf } from '../audit.js'
import { withoutUndefined } from '../base/defaults.js'
import { isUserId } from '../base/uuid.js'
import { type GrantableClaims, authorizationClaims, displayName, isStorable, isText } from '../claims.js'
import { checkedEmail } from '../email.js'
import { assertText } from '../current-user/recent.js'
import { AuthError, OptionsError } from '../errors.js'
import { type UserFactor, listFactors } from '../factors/factor-list.js'
import { assertKnownOptions } from '../option-checks.js'
import type { Caller } from '../passwords/fair-queue.js'
import type { LocalIdentityProvider } from '../local-identity-provider.js'
import type { User } from '../accounts/account.js'
import { recordIn } from '../session/record.js'
import { Accounts } from '../accounts/accounts.js'
import type { AuthStore } from '../accounts/auth-store.js'
import type { AnyRequest } from './guards.js'

/** A user that {@link Users.createUser} creates. */
export interface UserToCreate {
  /** In any spelling; required with a password. */
  email?: string | undefined
  name?: string | undefined
  /** Whether they own the e-mail; default false. Then a provider that verified it signs them in. */
  emailVerified?: boolean | undefined
  /** 8 to 1024 bytes in NFKC. */
  password?: string | undefined
  /** The first authorization claims; default none. */
  claims?: GrantableClaims | undefined
}

/**
 * Who causes a change, for its audit events: the last argument of the methods that change users.
 *
 * @example
 * ```ts
 * await app.auth.unblock(userId, { request })                      // the user of the request
 * await authorization.grant(userId, { role: 'admin' }, { actor: 'import' })
 * ```
 */
export interface Cause {
  /** The request that asks for it: the events have its user, id, address and user agent. */
  request?: AnyRequest | undefined
  /** Who does it, in place of the user of the request: an id or a name. */
  actor?: string | undefined
}

/** How {@link Users.block} blocks a user. */
export interface BlockOptions extends Cause {
  /** When the block ends by itself, in the future; default never. */
  until?: Date | undefined
  /** A note of the application, kept in the store, and neither logged nor shown. */
  reason?: string | undefined
}

/** Which users {@link Users.users} lists. */
export interface UserList {
  /** The `next` of the page before; default the first page. */
  after?: string | null | undefined
  /** At most so many users, 1 to 500; default 50. */
  limit?: number | undefined
  /** How the e-mail begins, in its canonical form. */
  email?: string | undefined
  /** Whether the users are blocked now. */
  blocked?: boolean | undefined
}

/** A page of users. */
export interface UserPage {
  /** Ordered by id. */
  users: User[]
  /** The `after` of the next page; null on the last one. */
  next: string | null
}

/** The session that is kept when all others of its user end. */
export interface KeptSession extends Cause {
  /** A request of the user, whose session gets a new id; the default of `request`. */
  except?: AnyRequest | undefined
}

const MAX_LIMIT = 500
const NO_EMAIL = 'The user has no e-mail; a password needs one.'

/** Creates, lists, changes and blocks users; {@link Authorization} extends it. */
export class Users {
  /** The store of users, links and claims. */
  readonly store: AuthStore
  protected readonly accounts: Accounts
  readonly #log: AuditLog | undefined
  readonly #local: LocalIdentityProvider | null

  /**
   * Uses a store; the caller closes it.
   *
   * @param log logs audit events, which `node:diagnostics_channel` publishes in any case
   * @param local needed by the methods that take a password
   */
  constructor (store: AuthStore, log?: AuditLog, local: LocalIdentityProvider | null = null) {
    this.store = store
    this.accounts = new Accounts(store)
    this.#log = log
    this.#local = local
  }

  /**
   * Creates a user. With a password, they sign in by e-mail and password. Without one, they have
   * the link `application`: `app.auth.signIn` signs them in, and so does a provider that verified
   * their e-mail if `emailVerified` is true.
   *
   * @throws AuthError `exists` when another user has the e-mail, `invalid_email`, `weak_password`,
   *   `invalid_claims`, `busy`
   */
  async createUser (user: UserToCreate, cause: Cause = {}): Promise<User> {
    const source = this.sourceOf('createUser', cause)
    assertKnownOptions('createUser', user, ['email', 'name', 'emailVerified', 'password', 'claims'])
    const { emailVerified = false, password } = user
    const claims = authorizationClaims(user.claims ?? {})
    const name = user.name === undefined ? undefined : nameOf(user.name)
    const email = user.email === undefined ? null : emailOf(user.email)
    if (typeof emailVerified !== 'boolean' || (emailVerified && email === null)) {
      throw invalid('emailVerified must be true or false, and true only with an email.')
    }
    if (password !== undefined && email === null) throw invalid('A user with a password needs an email.')

    const userId = randomUUID()
    const identity = withoutUndefined({
      sub: userId, email: email ?? undefined, email_verified: emailVerified || undefined, name
    })
    const isLocal = password !== undefined && email !== null
    const provider = isLocal ? 'local' : 'application'
    const created = await this.accounts.createUser({
      userId,
      email,
      emailVerified,
      name: name ?? null,
      claims,
      link: { provider, subject: isLocal ? email : userId, claims: identity },
      ...(isLocal && { passwordHash: await this.#hash('createUser', password, email) })
    })
    if (created === null) throw new AuthError('exists')
    audit('creation', { userId, provider }, source)
    return created
  }

  /**
   * Changes the name of a user; null removes it. Later sign-ins at a provider do not change it any
   * more.
   */
  async updateUser (userId: string, change: { name: string | null }): Promise<User> {
    assertKnownOptions('updateUser', change, ['name'])
    const { name } = change
    return this.accounts.changeUser(checkedUserId(userId), { name: name === null ? null : nameOf(name) })
  }

  /**
   * Sets the password of a user, also the first one: then they sign in by their e-mail. Ends all
   * sessions of the user.
   *
   * @param password 8 to 1024 bytes in NFKC
   * @throws AuthError `weak_password`, `invalid_request` for a user without an e-mail,
   *   `unauthenticated` when the session of `kept` has ended, `busy`
   */
  async setPassword (userId: string, password: string, kept: KeptSession = {}): Promise<User> {
    const source = this.sourceOf('setPassword', kept, 'except')
    const { email } = await this.existingUser(userId)
    if (email === null) throw invalid(NO_EMAIL)
    const passwordHash = await this.#hash('setPassword', password, email)
    const generation = generationIn(userId, kept)
    const changed = await this.accounts.setPassword(userId, withoutUndefined({ passwordHash, generation }))
    if (changed === null) throw generation === undefined ? invalid(NO_EMAIL) : new AuthError('unauthenticated')
    audit('password', { userId }, source)
    await this.sessionsEnded(userId, source, kept.except)
    return changed
  }

  /**
   * Compares a password with a user's, as a login does and in the same time.
   *
   * @param caller the client behind the call: passwords of different addresses take turns
   * @returns false for a wrong password and for a user without one
   * @throws AuthError `busy`
   */
  async checkPassword (userId: string, password: string, caller?: Caller): Promise<boolean> {
    const local = this.#provider('checkPassword')
    assertPassword(password)
    await this.existingUser(userId)
    const credential = await this.accounts.credentialOf(userId)
    const { matches } = await local.verifyPassword(credential?.passwordHash ?? null, password, caller)
    return matches
  }

  /**
   * Lists users by id, a page at a time.
   *
   * @example
   * ```ts
   * let after: string | null = null
   * do {
   *   const { users, next } = await app.auth.users({ after, limit: 500 })
   *   for (const { userId, createdAt } of users) console.log(userId, createdAt)
   *   after = next
   * } while (after !== null)
   * ```
   */
  async users (list: UserList = {}): Promise<UserPage> {
    assertKnownOptions('users', list, ['after', 'limit', 'email', 'blocked'])
    const { after = null, limit = 50, email = null, blocked = null } = list
    if (after !== null && !isUserId(after)) throw invalid('after must be the "next" of the page before.')
    if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) {
      throw invalid(`limit must be a whole number from 1 to ${MAX_LIMIT}.`)
    }
    if (email !== null && !(typeof email === 'string' && isStorable(email))) {
      throw invalid('email must be how the e-mail begins.')
    }
    if (blocked !== null && typeof blocked !== 'boolean') throw invalid('blocked must be true or false.')

    const prefix = email === null ? null : email.trim().normalize('NFC').toLowerCase()
    const found = await this.accounts.users({ after, limit: limit + 1, email: prefix, blocked })
    const last = found.length > limit ? found[limit - 1] : undefined
    return { users: found.slice(0, limit), next: last?.userId ?? null }
  }

  /**
   * Blocks a user: ends all their sessions, and refuses each sign-in with `blocked` until the block
   * is removed or over.
   */
  async block (userId: string, options: BlockOptions = {}): Promise<User> {
    const source = this.sourceOf('block', options, 'until', 'reason')
    const { until, reason } = options
    const at = new Date()
    if (until !== undefined && !(until instanceof Date && until > at)) {
      throw invalid('until must be a Date in the future.')
    }
    if (reason !== undefined && !isText(reason)) throw invalid('reason must be text.')
    const blocked = withoutUndefined({ at, until, reason })
    const user = await this.accounts.changeUser(checkedUserId(userId), { blocked, endSessions: true })
    audit('block', { userId, until: until ?? null }, source)
    await this.sessionsEnded(userId, source)
    return user
  }

  /** Removes the block of a user. Sessions that the block ended stay ended. */
  async unblock (userId: string, cause: Cause = {}): Promise<User> {
    const source = this.sourceOf('unblock', cause)
    const user = await this.accounts.changeUser(checkedUserId(userId), { blocked: null })
    audit('unblock', { userId }, source)
    return user
  }

  /**
   * Ends all sessions of a user, at the next guard in each process and whatever the session store.
   * Tokens that were issued to the user until now are refused.
   */
  async signOutEverywhere (userId: string, kept: KeptSession = {}): Promise<void> {
    const source = this.sourceOf('signOutEverywhere', kept, 'except')
    await this.accounts.changeUser(checkedUserId(userId), { endSessions: true })
    audit('sign-out-everywhere', { userId }, source)
    await this.sessionsEnded(userId, source, kept.except)
  }

  /** Lists the second factors and passkeys of a user, without their secrets. */
  async factors (userId: string): Promise<UserFactor[]> {
    await this.existingUser(userId)
    return listFactors(this.accounts, userId)
  }

  /**
   * Removes all second factors and passkeys of a user who has lost them, ends their sessions and,
   * by `app.auth`, tells them by a mail. The caller must have verified the user's identity, by more
   * than a mail.
   */
  async resetFactors (userId: string, cause: Cause = {}): Promise<User> {
    const source = this.sourceOf('resetFactors', cause)
    const change = { endsSessions: true, change: () => [] }
    const user = await this.accounts.changeFactors(checkedUserId(userId), change)
    if (user === null) throw new AuthError('unknown_user')
    audit('factor-removed', { userId, method: 'all', by: 'application' }, source)
    await this.sessionsEnded(userId, source)
    return user
  }

  /** Checks the last argument of a method, and returns what its events are published with. */
  protected sourceOf (method: string, options: KeptSession, ...others: string[]): AuditSource {
    assertKnownOptions(method, options, ['request', 'actor', ...others])
    const { request = options.except, actor } = options
    if (actor !== undefined && !isText(actor)) throw invalid('actor must be text.')
    return sourceOf<AuditSource>(request ?? { log: this.#log }, actor)
  }

  /** Called when all sessions of a user were ended, but for the one of a request. */
  protected async sessionsEnded (_userId: string, _source: AuditSource, _except?: AnyRequest): Promise<void> {
    // A script has no sessions; `app.auth` announces the end.
  }

  /** Returns a user, who must exist. */
  protected async existingUser (userId: string): Promise<User> {
    const user = await this.accounts.findUser({ userId: checkedUserId(userId) })
    if (user === null) throw new AuthError('unknown_user')
    return user
  }

  #provider (method: string): LocalIdentityProvider {
    if (this.#local !== null) return this.#local
    throw new OptionsError(`${method} needs a LocalIdentityProvider; set the option local of the plugin, ` +
      'or pass it to new Authorization(store, log, local)')
  }

  #hash (method: string, password: string, email: string): Promise<string> {
    const local = this.#provider(method)
    assertPassword(password)
    return local.hashPassword(password, { email })
  }
}

/** Returns the generation of a session of the user: one that has ended must change nothing. */
export function generationIn (userId: string, { except }: KeptSession): number | undefined {
  const record = recordIn(except?.session)
  return record?.principal.userId === userId ? record.generation : undefined
}

/** Refuses a value without the form of a user id as `unknown_user`. */
export function checkedUserId (userId: unknown): string {
  if (!isUserId(userId)) throw new AuthError('unknown_user')
  return userId
}

function emailOf (email: unknown): string {
  return checkedEmail(typeof email === 'string' ? email : '')
}

function nameOf (name: unknown): string {
  const shown = isText(name) ? displayName(name) : ''
  if (shown === '') throw invalid('name must be text.')
  return shown
}

function assertPassword (password: unknown): void {
  if (typeof password !== 'string') throw invalid('password must be text.')
  assertText(password)
}

export function invalid (message: string): AuthError {
  return new AuthError('invalid_request', { message })
}
