import { audit } from '../../audit.js'
import {
  type AuthorizationClaimName, type AuthorizationClaims, type GrantableClaims, authorizationClaims, isPlainObject,
  isStorable, isText
} from '../../claims.js'
import { typedEmail } from '../../email.js'
import { AuthError, invalidRequest } from '../../errors.js'
import type { Link, User } from '../../accounts/account.js'
import type { UserQuery } from '../../accounts/auth-store.js'
import { isUserId } from '../../base/values.js'
import { type Cause, type KeptSession, Users, checkedUserId, generationIn } from './users.js'

/**
 * Users, links and authorization claims of a store, without a server; for scripts. `app.auth`
 * extends it.
 *
 * All methods throw AuthError `unknown_user` for an id without a user (`findUser` returns null),
 * `invalid_request` for a wrong argument, `unavailable` when the store does not answer;
 * OptionsError for an unknown name in an argument, and for a password without a local identity
 * provider.
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
   * @param claims a plain JSON object of at most 32 levels, without identity claims
   * @returns all authorization claims of the user
   * @throws AuthError `invalid_claims`
   */
  async grant (userId: string, claims: GrantableClaims, cause: Cause = {}): Promise<AuthorizationClaims> {
    const source = this.sourceOf('grant', cause)
    const granted = authorizationClaims(claims)
    const all = await this.accounts.grant(checkedUserId(userId), granted)
    audit('grant', { userId, claims: granted }, source)
    return all
  }

  /**
   * Withdraws authorization claims from a user by name, such as `['role']`. Others are ignored.
   *
   * @returns the remaining authorization claims
   * @throws AuthError `invalid_claims`
   */
  async withdraw (
    userId: string, names: readonly AuthorizationClaimName[], cause: Cause = {}
  ): Promise<AuthorizationClaims> {
    const source = this.sourceOf('withdraw', cause)
    if (!Array.isArray(names) || !names.every(name => typeof name === 'string')) {
      throw new AuthError('invalid_claims', { message: 'names must be a list of the names of claims.' })
    }
    const left = await this.accounts.withdraw(checkedUserId(userId), names.filter(isStorable))
    audit('withdraw', { userId, names }, source)
    return left
  }

  /**
   * Finds a user by id, by e-mail (in any spelling) or by a link; null without one. Check
   * `emailVerified` before you grant claims to the user of an address: a client can register an
   * address that it does not own.
   */
  async findUser (query: UserQuery): Promise<User | null> {
    if (isQuery(query, 'userId')) return isUserId(query.userId) ? this.accounts.findUser(query) : null
    if (isQuery(query, 'email')) {
      const email = typedEmail(query.email)
      return email === null ? null : this.accounts.findUser({ email })
    }
    if (isQuery(query, 'provider', 'subject')) {
      return isText(query.provider) && isText(query.subject) ? this.accounts.findUser(query) : null
    }
    throw invalidRequest('A user is found by { userId }, { email } or { provider, subject }, all of them strings.')
  }

  /** Returns the links of a user, at most one for each provider, ordered by provider. */
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
   * @returns the remaining links
   * @throws AuthError `last_link` for the only link and, of `app.auth`, where no sign-in method is
   *   left that the application offers; `unauthenticated` when the session of `kept` has ended
   */
  async unlink (userId: string, provider: string, kept: KeptSession = {}): Promise<Link[]> {
    const source = this.sourceOf('unlink', kept, 'except')
    if (!isText(provider)) throw invalidRequest('provider must be the name of a provider, or "local".')
    const before = await this.links(userId)
    if (!before.some(link => link.provider === provider)) return before
    const left = await this.accounts.removeLink(userId, provider, generationIn(userId, kept), this.canSignIn)
    audit('unlink', { userId, provider }, source)
    await this.sessionsEnded(userId, source, kept.except)
    return left
  }

  /**
   * Deletes a user with their links, claims, password and factors; `app.auth` emits `revoke`.
   * Guards refuse the user's sessions and tokens from then on; a token for one purpose or audience
   * stays valid until it expires.
   *
   * @throws AuthError `user_in_use` when a foreign key of the application prevents it
   */
  async deleteUser (userId: string, cause: Cause = {}): Promise<void> {
    const source = this.sourceOf('deleteUser', cause)
    await this.accounts.deleteUser(checkedUserId(userId))
    audit('deletion', { userId }, source)
    await this.sessionsEnded(userId, source)
  }
}

/** Whether an object has exactly these names, with strings as values. */
function isQuery<N extends string> (query: object, ...names: N[]): query is Record<N, string> {
  return isPlainObject(query) &&
    Object.keys(query).length === names.length &&
    names.every(name => typeof query[name] === 'string')
}
