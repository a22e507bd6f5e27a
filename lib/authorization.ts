import { type AuthorizationClaims, authorizationClaims, isStorable, isText } from './claims.js'
import { canonicalEmail } from './email.js'
import { AuthError } from './errors.js'
import { type AuthStore, type Link, type User, type UserQuery, isUserId } from './store/store.js'

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
  readonly store: AuthStore

  constructor (store: AuthStore) {
    this.store = store
  }

  /**
   * Gives a user authorization claims: merged over those he has, name by name, atomically.
   * Sessions that are open see them at the next sign-in.
   *
   * @param claims a plain JSON object without identity claims (`sub`, `email`, `email_verified`, `name`, `picture`)
   * @returns all the user's authorization claims
   * @throws AuthError `invalid_claims`, `unknown_user`, `unavailable`
   */
  async grant (userId: string, claims: AuthorizationClaims): Promise<AuthorizationClaims> {
    return this.store.grant(checkedUserId(userId), authorizationClaims(claims))
  }

  /**
   * Takes authorization claims away, by name; names that the user does not have are passed over.
   *
   * @returns the authorization claims that are left
   * @throws AuthError `invalid_claims`, `unknown_user`, `unavailable`
   */
  async withdraw (userId: string, names: readonly string[]): Promise<AuthorizationClaims> {
    if (!Array.isArray(names) || !names.every(name => typeof name === 'string')) {
      throw new AuthError('invalid_claims', { message: 'names must be a list of the names of claims.' })
    }
    return this.store.withdraw(checkedUserId(userId), names.filter(isStorable))
  }

  /**
   * Looks a user up by id, by e-mail (any spelling) or by a link.
   *
   * @returns null when there is none
   * @throws AuthError `unavailable`
   */
  async findUser (query: UserQuery): Promise<User | null> {
    if ('userId' in query) return isUserId(query.userId) ? this.store.findUser(query) : null
    if ('provider' in query) return isText(query.provider) && isText(query.subject) ? this.store.findUser(query) : null
    const email = canonicalEmail(query.email)
    return email === null ? null : this.store.findUser({ email })
  }

  /**
   * The ways in that a user has.
   *
   * @returns an empty list for an unknown user
   * @throws AuthError `unavailable`
   */
  async links (userId: string): Promise<Link[]> {
    return isUserId(userId) ? this.store.links(userId) : []
  }
}

function checkedUserId (userId: unknown): string {
  if (!isUserId(userId)) throw new AuthError('unknown_user')
  return userId
}
