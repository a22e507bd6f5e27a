import { isDeepStrictEqual } from 'node:util'
import type { Account, Subject } from '../accounts/account.js'
import type { AccountQuery, AuthStore, Rule, UniqueKeys } from '../accounts/auth-store.js'
import { AuthError } from '../errors.js'

export type StoredAccounts = Omit<AuthStore, 'close' | 'hookProblem'>

export interface AccountChange {
  /** Null for a new account. */
  before: Account | null
  /** Null for one that is deleted. */
  after: Account | null
}

/**
 * Asks a rule what becomes of an account: a change of null when there is nothing to write.
 *
 * @param accounts those that were loaded: the one that is asked about, and the holders of the keys
 */
export function applyRule<T> (
  rule: Rule<T>,
  { find, keys: { email = null, link = null } }: { find: AccountQuery, keys: UniqueKeys },
  accounts: readonly Account[]
): { result: T, change: AccountChange | null } {
  const first = (is: (account: Account) => boolean): Account | null => accounts.find(is) ?? null
  const found = first('userId' in find ? ({ userId }) => userId === find.userId : hasLink(find))
  const { result, account } = rule(found, {
    ofEmail: email === null ? null : first(account => account.email === email),
    ofLink: link === null ? null : first(hasLink(link))
  })
  if (account === undefined) return { result, change: null }
  const before = account === null ? found : first(({ userId }) => userId === account.userId)
  return { result, change: isDeepStrictEqual(before, account) ? null : { before, after: account } }
}

/** Whether a change makes a user, of nothing or of a guest: then the hook of a change is asked. */
export function makesUser ({ before, after }: AccountChange): boolean {
  return after !== null && after.extras.guest !== true && (before === null || before.extras.guest === true)
}

export function valuesOf (find: AccountQuery, { email = null, link }: UniqueKeys): Record<string, string | null> {
  const { provider: otherProvider = null, subject: otherSubject = null } = { ...link }
  const none = { userId: null, provider: null, subject: null }
  return { ...none, ...find, email, otherProvider, otherSubject }
}

/** The links that a change removes, by provider, and those that it writes; of factors, by id. */
export const linkChanges = (before: Account, after: Account) =>
  changesOf(before.links, after.links, ({ provider }) => provider)

export const factorChanges = (before: Account, after: Account) =>
  changesOf(before.factors, after.factors, ({ id }) => id)

function changesOf<T> (before: readonly T[], after: readonly T[], keyOf: (part: T) => string) {
  const kept = after.map(keyOf)
  return {
    removed: before.map(keyOf).filter(key => !kept.includes(key)),
    written: after.filter(part => !before.some(other => isDeepStrictEqual(other, part)))
  }
}

export function factorExists (): AuthError {
  return new AuthError('exists', { message: 'This factor belongs to an account already.' })
}

function hasLink ({ provider, subject }: Subject) {
  return ({ links }: Account): boolean =>
    links.some(link => link.provider === provider && link.subject === subject)
}
