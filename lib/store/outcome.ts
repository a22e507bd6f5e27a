import { isDeepStrictEqual } from 'node:util'
import type { Account, AccountLink, Subject } from '../accounts/account.js'
import type { AccountQuery, AuthStore, Rule, Wanted } from '../accounts/auth-store.js'

/** What a database does for accounts. */
export type StoredAccounts = Omit<AuthStore, 'close'>

/** A change of an account. */
export interface AccountChange {
  /** Null for a new account. */
  before: Account | null
  /** Null for one that is deleted. */
  after: Account | null
}

/** What a rule decided. */
interface Outcome<T> {
  result: T
  /** Null when there is nothing to write. */
  change: AccountChange | null
}

/**
 * Asks a rule.
 *
 * @param accounts those that were loaded: the one that is asked about, and the owners of what is
 *   wanted
 */
export function outcomeOf<T> (
  rule: Rule<T>,
  { find, wanted: { email = null, link = null } }: { find: AccountQuery, wanted: Wanted },
  accounts: readonly Account[]
): Outcome<T> {
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

/** The values by which a statement loads the accounts that a rule is asked about. */
export function valuesOf (find: AccountQuery, { email = null, link }: Wanted): Record<string, string | null> {
  const { provider: otherProvider = null, subject: otherSubject = null } = { ...link }
  const none = { userId: null, provider: null, subject: null }
  return { ...none, ...find, email, otherProvider, otherSubject }
}

/** Returns the links that a change removes, by provider, and those that it writes. */
export function linkChanges (before: Account, after: Account): { removed: string[], written: AccountLink[] } {
  const isGone = ({ provider }: AccountLink): boolean => after.links.every(link => link.provider !== provider)
  const isNew = (link: AccountLink): boolean => !before.links.some(other => isDeepStrictEqual(other, link))
  return { removed: before.links.filter(isGone).map(({ provider }) => provider), written: after.links.filter(isNew) }
}

function hasLink ({ provider, subject }: Subject) {
  return ({ links }: Account): boolean =>
    links.some(link => link.provider === provider && link.subject === subject)
}
