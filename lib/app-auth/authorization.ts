import { type AuditSource, audit } from '../audit.js'
import { type AuthorizationClaimName, type AuthorizationClaims, type GrantableClaims, authorizationClaims, isPlainObject, isStorable, isText } from '../claims.js'
import { canonicalEmail } from '../email.js'
import { AuthError } from '../errors.js'
import { type AuthStore, type Link, type User, type UserQuery } from '../store/store.js'
import { isUserId } from '../base/uuid.js'

/**
 * Who the users are and what they may do. It needs no server, so scripts use it on a store of their own.
 *
 * @example
 * ```ts
 * const authorization = new Authorization(new SqlAuthStore())
 * const user = await authorization.findUser({ email: 'ada@example.com' })
 * if (user) await authorization.grant(user.userId, { role: 'admin' })
 * ```
 */
export class Authorization {
  /** Where users, links and claims are kept. */
  readonly store: AuthStore
  readonly #source: AuditSource | null

  /**
   * Takes a store as it is; the caller closes it.
   *
   * @param log where changes are noted, such as `console` or `app.log`; they are published on `node:diagnostics_channel` in any case
   */
  constructor (store: AuthStore, log?: AuditSource['log']) {
    this.store = store
    this.#source = log === undefined ? null : { log }
  }

  /**
   * Gives a user authorization claims: merged over those he has, name by name, atomically.
   * Sessions that are open see them at the next refresh or sign-in.
   *
   * @param userId a UUID in lower case
   * @param claims a plain JSON object without identity claims (`sub`, `email`, `email_verified`, `name`, `picture`), at most 32 levels deep
   * @returns all the user's authorization claims
   * @throws AuthError `invalid_claims`, `unknown_user`, `unavailable`
   */
  async grant (userId: string, claims: GrantableClaims): Promise<AuthorizationClaims> {
    const granted = authorizationClaims(claims)
    const all = await this.store.grant(checkedUserId(userId), granted)
    audit('grant', { userId, claims: granted }, this.#source)
    return all
  }

  /**
   * Takes authorization claims away, by name; names that the user does not have are passed over.
   *
   * @param names such as `['role']`
   * @returns the authorization claims that are left
   * @throws AuthError `invalid_claims`, `unknown_user`, `unavailable`
   */
  async withdraw (userId: string, names: readonly AuthorizationClaimName[]): Promise<AuthorizationClaims> {
    if (!Array.isArray(names) || !names.every(name => typeof name === 'string')) {
      throw new AuthError('invalid_claims', { message: 'names must be a list of the names of claims.' })
    }
    const left = await this.store.withdraw(checkedUserId(userId), names.filter(isStorable))
    audit('withdraw', { userId, names }, this.#source)
    return left
  }

  /**
   * Looks a user up by id, by e-mail (any spelling) or by a link.
   *
   * Whoever registered with an e-mail need not be its owner: look at `emailVerified` before you grant anything to the user of an address.
   *
   * @returns null when there is none
   * @throws AuthError `invalid_request` for anything but one of these queries, `unavailable`
   */
  async findUser (query: UserQuery): Promise<User | null> {
    if (isQuery(query, 'userId')) return isUserId(query.userId) ? this.store.findUser(query) : null
    if (isQuery(query, 'email')) {
      const email = canonicalEmail(query.email)
      return email === null ? null : this.store.findUser({ email })
    }
    if (isQuery(query, 'provider', 'subject')) return isText(query.provider) && isText(query.subject) ? this.store.findUser(query) : null
    throw new AuthError('invalid_request', { message: 'A user is looked up by { userId }, { email } or { provider, subject }, all of them strings.' })
  }

  /**
   * The ways in that a user has, ordered by provider: at most one at each.
   *
   * @throws AuthError `unknown_user`, `unavailable`
   */
  async links (userId: string): Promise<Link[]> {
    const links = await this.store.links(checkedUserId(userId))
    if (links.length === 0) throw new AuthError('unknown_user')
    return links
  }

  /**
   * Takes a way in away from a user; with `local` his password goes too. One that he does not have is passed over.
   * Sessions that came in by it end at the next refresh.
   *
   * @param provider `local` or the name of an external provider
   * @returns the links that are left
   * @throws AuthError `invalid_request` for a provider that is no text, `unknown_user`, `last_link` when he would be left without a way in, `unavailable`
   */
  async unlink (userId: string, provider: string): Promise<Link[]> {
    if (!isText(provider)) throw new AuthError('invalid_request', { message: 'provider must be the name of a provider, or "local".' })
    const before = await this.links(userId)
    if (!before.some(link => link.provider === provider)) return before
    const left = await this.store.removeLink(userId, provider)
    audit('unlink', { userId, provider }, this.#source)
    return left
  }

  /**
   * Deletes a user with his links, his claims and his password. From then on no guard lets his sessions and his tokens pass; a token
   * that was made for one purpose or audience is good until it expires.
   *
   * @throws AuthError `unknown_user`, `user_in_use` when a table of the application refers to him and does not let him go, `unavailable`
   */
  async deleteUser (userId: string): Promise<void> {
    await this.store.deleteUser(checkedUserId(userId))
    audit('deletion', { userId }, this.#source)
  }
}

/** @throws AuthError `unknown_user` for what cannot be the id of a user */
export function checkedUserId (userId: unknown): string {
  if (!isUserId(userId)) throw new AuthError('unknown_user')
  return userId
}

/** Whether an object has these names and no others, with strings for values. */
function isQuery<N extends string> (query: object, ...names: N[]): query is Record<N, string> {
  return isPlainObject(query) && Object.keys(query).length === names.length && names.every(name => typeof query[name] === 'string')
}
