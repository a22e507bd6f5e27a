import { audit } from '../audit.js'
import {
  type AuthorizationClaimName, type AuthorizationClaims, type GrantableClaims,
  authorizationClaims, isPlainObject, isStorable, isText
} from '../claims.js'
import { canonicalEmail } from '../email.js'
import { AuthError } from '../errors.js'
import type { Link, User } from '../accounts/account.js'
import type { UserQuery } from '../accounts/auth-store.js'
import { isUserId } from '../base/uuid.js'
import { type KeptSession, Users, checkedUserId, generationIn, invalid } from './users.js'

/**
 * Users, links and authorization claims of a store, without a server; for scripts. `app.auth`
 * extends it.
 *
 * @example
 * ```ts
 * const authorization = new Authorization(new SqlAuthStore())
 * const user = await authorization.findUser({ email: 'ada@example.com' })
 * if (user) await authorization.grant(user.userId, { role: 'admin' })
 * ```
 */
export class Authorization extends Users {
  /**
   * Grants authorization claims to a user: merges them by name into the claims that the user has,
   * atomically. Open sessions see them at the next refresh or sign-in.
   *
   * @param userId a UUID in lower case
   * @param claims a plain JSON object without identity claims (`sub`, `email`, `email_verified`,
   * `name`, `picture`), at most 32 levels deep
   * @returns all authorization claims of the user
   * @throws AuthError `invalid_claims`, `unknown_user`, `unavailable`
   */
  async grant (userId: string, claims: GrantableClaims): Promise<AuthorizationClaims> {
    const granted = authorizationClaims(claims)
    const all = await this.accounts.grant(checkedUserId(userId), granted)
    audit('grant', { userId, claims: granted }, this.source)
    return all
  }

  /**
   * Withdraws authorization claims from a user by name. Names that the user does not have are
   * ignored.
   *
   * @param names such as `['role']`
   * @returns the remaining authorization claims
   * @throws AuthError `invalid_claims`, `unknown_user`, `unavailable`
   */
  async withdraw (userId: string, names: readonly AuthorizationClaimName[]): Promise<AuthorizationClaims> {
    if (!Array.isArray(names) || !names.every(name => typeof name === 'string')) {
      throw new AuthError('invalid_claims', { message: 'names must be a list of the names of claims.' })
    }
    const left = await this.accounts.withdraw(checkedUserId(userId), names.filter(isStorable))
    audit('withdraw', { userId, names }, this.source)
    return left
  }

  /**
   * Finds a user by id, by e-mail (in any spelling) or by a link. Check `emailVerified` before you
   * grant claims to the user of an address: a client can register an address that it does not own.
   *
   * @returns null without such a user
   * @throws AuthError `invalid_request` for any other query, `unavailable`
   */
  async findUser (query: UserQuery): Promise<User | null> {
    if (isQuery(query, 'userId')) return isUserId(query.userId) ? this.accounts.findUser(query) : null
    if (isQuery(query, 'email')) {
      const email = canonicalEmail(query.email)
      return email === null ? null : this.accounts.findUser({ email })
    }
    if (isQuery(query, 'provider', 'subject')) {
      return isText(query.provider) && isText(query.subject) ? this.accounts.findUser(query) : null
    }
    throw invalid('A user is found by { userId }, { email } or { provider, subject }, all of them strings.')
  }

  /**
   * Returns the links of a user, ordered by provider. A user has at most one link for each
   * provider.
   *
   * @throws AuthError `unknown_user`, `unavailable`
   */
  async links (userId: string): Promise<Link[]> {
    const links = await this.accounts.links(checkedUserId(userId))
    if (links.length === 0) throw new AuthError('unknown_user')
    return links
  }

  /**
   * Removes a link from a user; with `local`, also the password. A link that the user does not have
   * is ignored. Ends all sessions of the user.
   *
   * @param provider `local` or the name of an external provider
   * @param kept `except`: a request whose session is kept, with a new id
   * @returns the remaining links
   * @throws AuthError `invalid_request` when `provider` is not a string, `unknown_user`,
   * `last_link` for the only link of the user, `unauthenticated` when the session of `except` has
   * ended, `unavailable`
   */
  async unlink (userId: string, provider: string, kept: KeptSession = {}): Promise<Link[]> {
    if (!isText(provider)) throw invalid('provider must be the name of a provider, or "local".')
    const before = await this.links(userId)
    if (!before.some(link => link.provider === provider)) return before
    const left = await this.accounts.removeLink(userId, provider, generationIn(userId, kept))
    audit('unlink', { userId, provider }, this.source)
    await this.sessionsEnded(userId, kept)
    return left
  }

  /**
   * Deletes a user with their links, claims and password, and emits `revoke`. Guards refuse the
   * user's sessions and tokens from then on. A token for one purpose or audience stays valid until
   * it expires.
   *
   * @throws AuthError `unknown_user`, `user_in_use` when a foreign key of the application prevents
   * it, `unavailable`
   */
  async deleteUser (userId: string): Promise<void> {
    await this.accounts.deleteUser(checkedUserId(userId))
    audit('deletion', { userId }, this.source)
    await this.sessionsEnded(userId)
  }
}

/** Whether an object has exactly these names, with strings as values. */
function isQuery<N extends string> (query: object, ...names: N[]): query is Record<N, string> {
  return isPlainObject(query) &&
    Object.keys(query).length === names.length &&
    names.every(name => typeof query[name] === 'string')
}
