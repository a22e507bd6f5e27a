import { randomUUID } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { type AuditLog, type AuditSource, audit, sourceOf } from '../../audit.js'
import { isUserId, withoutUndefined } from '../../base/values.js'
import { type GrantableClaims, authorizationClaims, displayName, isStorable, isText } from '../../claims.js'
import { checkedEmail } from '../../email.js'
import { AuthError, OptionsError, invalidRequest } from '../../errors.js'
import { type CreateUserHook, creating } from '../../hooks.js'
import { assertKnownOptions } from '../../option-checks.js'
import { refuseImpersonation } from '../../core/acting.js'
import type { Caller } from '../../core/fair-queue.js'
import { type FactorKind, type User, searchKey } from '../../accounts/account.js'
import { LocalIdentityProvider } from '../local/local-identity-provider.js'
import type { UserUpdate } from '../../accounts/changes.js'
import { hashesIn } from '../../accounts/factors.js'
import type { CanSignIn } from '../../accounts/identities.js'
import { recordIn } from '../../session/record.js'
import { Accounts } from '../../accounts/accounts.js'
import type { AuthStore, UsersFilter } from '../../accounts/auth-store.js'
import { assertText } from '../password/hashing.js'
import type { AnyRequest } from '../../core/guard.js'

/** A user that `app.auth.createUser` creates. */
export interface UserToCreate {
  /** In any spelling; required with a password. */
  email?: string | undefined
  /** For display; default none. */
  name?: string | undefined
  /**
   * Whether they own the e-mail; default false. If they do, a provider that verified it signs them
   * in.
   */
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

/**
 * Checks the last argument of a method, and returns what its events are published with. A request
 * of an impersonation changes nothing: AuthError `impersonating`.
 *
 * @param log where there is no request
 * @param others further options of the method
 */
export function sourceOfCause (
  method: string, cause: Cause, log: AuditLog | undefined, others: readonly string[] = []
): AuditSource {
  assertKnownOptions(method, cause, ['request', 'actor', ...others])
  const { request, actor } = cause
  if (request !== undefined) refuseImpersonation(request)
  if (actor !== undefined && !isText(actor)) throw invalidRequest('actor must be text.')
  return sourceOf<AuditSource>(request ?? { log }, actor)
}

/** How {@link Users.block} blocks a user. */
export interface BlockOptions extends Cause {
  /** When the block ends by itself, in the future; default never. */
  until?: Date | undefined
  /** A note of the application, kept in the store, and neither logged nor shown. */
  reason?: string | undefined
}

/** Which users {@link Users.countUsers} counts. */
export interface UserFilter {
  /** How the e-mail, its domain or the name begins, in any case; an empty one finds all. */
  search?: string | undefined
  /** Whether the users are blocked now. */
  blocked?: boolean | undefined
}

/** Which users {@link Users.users} lists. */
export interface UserList extends UserFilter {
  /** By id, or the newest first; default `id`. */
  order?: 'id' | 'newest' | undefined
  /** The `next` of the page before; default the first page. */
  after?: string | null | undefined
  /** At most so many users, 1 to 500; default 50. */
  limit?: number | undefined
}

/** A page of users. */
export interface UserPage {
  /** In the order that was asked for. */
  users: User[]
  /** The `after` of the next page; null on the last one. */
  next: string | null
}

/** What {@link Users.signOutEverywhere} ends besides, and which session it keeps. */
export interface SignOutOptions extends KeptSession {
  /** Whether all API keys of the user end, too; default false. */
  keys?: boolean | undefined
}

/** The session that is kept when all others of its user end. */
export interface KeptSession extends Cause {
  /** A request of the user, whose session gets a new id; the default of `request`. */
  except?: AnyRequest | undefined
}

/** A second factor or a passkey of a user, without its secret. */
export interface UserFactor {
  /** Names the factor; for a passkey its credential id. */
  id: string
  /** `totp`: an authenticator app; `recovery`: all recovery codes. */
  kind: FactorKind
  /** The name that the user has given; null for one without a name. */
  name: string | null
  /** When it was added. */
  createdAt: Date
  /** Null for one that was not used. */
  lastUsedAt: Date | null
  /** How many recovery codes are left; null for another kind. */
  codesLeft: number | null
}

/** Lists the factors of a user, the oldest first. */
export async function listFactors (accounts: Accounts, userId: string): Promise<UserFactor[]> {
  return (await accounts.factors(userId)).map(({ id, kind, name, createdAt, usedAt, data }) => ({
    id,
    kind,
    name,
    createdAt: new Date(createdAt),
    lastUsedAt: usedAt === null ? null : new Date(usedAt),
    codesLeft: kind === 'recovery' ? hashesIn(data).length : null
  }))
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
  /** @hidden for `fastify-svc-auth/testing` */
  readonly onCreateUser: CreateUserHook | null

  /**
   * Uses a store; the caller closes it.
   *
   * @param log logs audit events, which `node:diagnostics_channel` publishes in any case
   * @param local needed by the methods that take a password
   * @param onCreateUser as the option of the plugin; default none
   */
  constructor (
    store: AuthStore,
    log?: AuditLog,
    local: LocalIdentityProvider | null = null,
    onCreateUser: CreateUserHook | null = null
  ) {
    this.store = store
    this.accounts = new Accounts(store)
    this.#log = log
    this.#local = local
    this.onCreateUser = onCreateUser
  }

  /**
   * Creates a user. With a password, they sign in by e-mail and password. Without one, they have
   * the link `application`: `app.auth.signIn` signs them in, and so does a provider that verified
   * their e-mail if `emailVerified` is true.
   *
   * @throws AuthError `exists` when another user has the e-mail, `invalid_email`, `invalid_claims`,
   *   `weak_password`, what `password.check` and `onCreateUser` throw, `busy`
   */
  createUser (user: UserToCreate, cause?: Cause): Promise<User>
  async createUser (user: UserToCreate, cause: Cause & { request?: FastifyRequest } = {}): Promise<User> {
    const source = this.sourceOf('createUser', cause)
    assertKnownOptions('createUser', user, ['email', 'name', 'emailVerified', 'password', 'claims'])
    const { emailVerified = false, password } = user
    const claims = authorizationClaims(user.claims ?? {})
    const name = user.name === undefined ? undefined : nameOf(user.name)
    const email = user.email === undefined ? null : emailOf(user.email)
    if (typeof emailVerified !== 'boolean' || (emailVerified && email === null)) {
      throw invalidRequest('emailVerified must be true or false, and true only with an email.')
    }
    if (password !== undefined && email === null) throw invalidRequest('A user with a password needs an email.')

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
    }, creating(this, { method: 'application', ...withoutUndefined({ request: cause.request }) }))
    if (created === null) throw new AuthError('exists')
    audit('creation', { userId, provider }, source)
    return created
  }

  /**
   * Changes the name and the e-mail of a user. Another e-mail, or another answer to whether it is
   * verified, ends all their sessions and the links in mails; links and factors stay. The caller
   * must have made sure that a verified address is the user's: its owner can reset the password.
   *
   * @throws AuthError `exists` when another user has the e-mail, `invalid_email`
   */
  async updateUser (userId: string, change: UserUpdate, cause: Cause = {}): Promise<User> {
    const source = this.sourceOf('updateUser', cause)
    assertKnownOptions('updateUser', change, ['name', 'email', 'emailVerified'])
    const { name, email, emailVerified } = change
    if (emailVerified !== undefined && typeof emailVerified !== 'boolean') {
      throw invalidRequest('emailVerified must be true or false.')
    }
    const { before, user } = await this.accounts.updateUser(checkedUserId(userId), {
      name: name == null ? name : nameOf(name), email: email === undefined ? email : emailOf(email), emailVerified
    })
    if (user.name !== before.name) audit('name', { userId }, source)
    if (user.generation === before.generation) return user
    const isMoved = user.email !== before.email
    audit(isMoved ? 'email' : 'verification', { userId, verified: user.emailVerified }, source)
    await this.sessionsEnded(userId, source)
    if (isMoved) this.emailChanged([before, user])
    return user
  }

  /**
   * Sets the password of a user, also the first one: then they sign in by their e-mail. Ends all
   * sessions of the user.
   *
   * @param password 8 to 1024 bytes in NFKC
   * @throws AuthError `weak_password`, what `password.check` throws, `invalid_request` for a user
   *   without an e-mail, `unauthenticated` when the session of `kept` has ended, `busy`
   */
  async setPassword (userId: string, password: string, kept: KeptSession = {}): Promise<User> {
    const source = this.sourceOf('setPassword', kept, 'except')
    const { email } = await this.existingUser(userId)
    if (email === null) throw invalidRequest(NO_EMAIL)
    const passwordHash = await this.#hash('setPassword', password, email)
    const generation = generationIn(userId, kept)
    const changed = await this.accounts.setPassword(userId, withoutUndefined({ passwordHash, generation }))
    if (changed === null) throw generation === undefined ? invalidRequest(NO_EMAIL) : new AuthError('unauthenticated')
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
   * Lists users, a page at a time.
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
    assertKnownOptions('users', list, ['order', 'after', 'limit', 'search', 'blocked'])
    const { order = 'id', after = null, limit = 50, search, blocked } = list
    const [, time, userId] = /^(\d{1,15})\.(.+)$/.exec(after ?? '') ?? []
    const last = isUserId(userId) ? { userId, createdAt: new Date(Number(time)) } : null
    if (after !== null && last === null) throw invalidRequest('after must be the "next" of the page before.')
    if (order !== 'id' && order !== 'newest') throw invalidRequest('order must be "id" or "newest".')
    if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) {
      throw invalidRequest(`limit must be a whole number from 1 to ${MAX_LIMIT}.`)
    }
    const filter = filterOf({ search, blocked })
    const found = await this.accounts.users({ ...filter, order, after: last, limit: limit + 1 })
    const end = found.length > limit ? found[limit - 1] : undefined
    const next = end === undefined ? null : `${end.createdAt.getTime()}.${end.userId}`
    return { users: found.slice(0, limit), next }
  }

  /** Counts users, for a heading above the first page of {@link users}: it reads all that match. */
  async countUsers (filter: UserFilter = {}): Promise<number> {
    assertKnownOptions('countUsers', filter, ['search', 'blocked'])
    return this.accounts.countUsers(filterOf(filter))
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
      throw invalidRequest('until must be a Date in the future.')
    }
    if (reason !== undefined && reason !== '' && !isText(reason)) throw invalidRequest('reason must be text.')
    // A form sends an empty field as the empty text.
    const blocked = withoutUndefined({ at, until, reason: reason || undefined })
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
   * Tokens that were issued to the user until now are refused, except those for one purpose or
   * audience. API keys stay, unless `keys` is true.
   */
  async signOutEverywhere (userId: string, options: SignOutOptions = {}): Promise<void> {
    const source = this.sourceOf('signOutEverywhere', options, 'except', 'keys')
    const { keys = false, except } = options
    if (typeof keys !== 'boolean') throw invalidRequest('keys must be true or false.')
    await this.accounts.changeUser(checkedUserId(userId), { endSessions: true, endKeys: keys })
    audit('sign-out-everywhere', { userId }, source)
    await this.sessionsEnded(userId, source, except)
  }

  /** Lists the second factors and passkeys of a user, without their secrets. */
  async factors (userId: string): Promise<UserFactor[]> {
    await this.existingUser(userId)
    return listFactors(this.accounts, userId)
  }

  /**
   * Removes all second factors and passkeys of a user who has lost them, ends their sessions and
   * API keys and, by `app.auth` with `sendMail`, tells them by a mail. The caller must have
   * verified the user's identity, by more than a mail.
   */
  async resetFactors (userId: string, cause: Cause = {}): Promise<User> {
    const source = this.sourceOf('resetFactors', cause)
    const change = { endsSessions: true, endsKeys: true, change: () => [] } as const
    const user = await this.accounts.changeFactors(checkedUserId(userId), change)
    if (user === null) throw new AuthError('unknown_user')
    audit('factor-removed', { userId, method: 'all', by: 'application' }, source)
    await this.sessionsEnded(userId, source)
    return user
  }

  /** Checks the last argument of a method, and returns what its events are published with. */
  protected sourceOf (method: string, options: KeptSession, ...others: string[]): AuditSource {
    return sourceOfCause(method, { ...options, request: options.request ?? options.except }, this.#log, others)
  }

  /** Whether users can still sign in who have these links. A script knows no options. */
  protected readonly canSignIn: CanSignIn = () => true

  /** Called when all sessions of a user were ended, but for the one of a request. */
  protected async sessionsEnded (_userId: string, _source: AuditSource, _except?: AnyRequest): Promise<void> {
    // A script has no sessions; `app.auth` announces the end.
  }

  /** Called when the e-mail of a user was changed. */
  protected emailChanged (_beforeAndNow: readonly User[]): void {
    // A script sends no mails; `app.auth` does.
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

function filterOf ({ search = '', blocked }: UserFilter): UsersFilter {
  if (typeof search !== 'string' || !isStorable(search)) throw invalidRequest('search must be text.')
  if (blocked !== undefined && typeof blocked !== 'boolean') throw invalidRequest('blocked must be true or false.')
  return { search: searchKey(search) || null, blocked: blocked ?? null }
}

function emailOf (email: unknown): string {
  return checkedEmail(typeof email === 'string' ? email : '')
}

function nameOf (name: unknown): string {
  const shown = isText(name) ? displayName(name) : ''
  if (shown === '') throw invalidRequest('name must be text.')
  return shown
}

function assertPassword (password: unknown): void {
  if (typeof password !== 'string') throw invalidRequest('password must be text.')
  assertText(password)
}
