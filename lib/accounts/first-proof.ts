import { digestOf } from '../base/digest.js'
import { AuthError } from '../errors.js'
import {
  type Account, type AccountLink, type FactorKind, generationOf, withLink, withSessionsEnded
} from './account.js'
import { OWN_PROVIDERS, withConfirmedEmail } from './emails.js'
import { withFactors } from './factors.js'

/** What an account has from before an address of it was proven; no text of who made it. */
export interface UnprovenMethods {
  /** What it can sign in by, or ask for. */
  readonly methods: readonly UnprovenMethod[]
  /** Stands for this list, so that what is added later is not kept; empty for an empty one. */
  readonly keep: string
}

/** A sign-in method from before the proof. */
export interface UnprovenMethod {
  /** What it is; `provider` for the link of an external one. */
  readonly kind: 'password' | 'provider' | FactorKind
  /** The provider of a link; null for a factor. */
  readonly provider: string | null
  /** When a factor was added; null for a link, whose date is not kept. */
  readonly createdAt: Date | null
}

/** Returns what the first proof removes from an account; null where there was one before. */
export function unprovenOf (account: Account, hasNewPassword: boolean): UnprovenMethods | null {
  // Not whether it is verified now: a provider that no longer vouches for it proves nothing.
  if (account.extras.email_proven === true) return null
  const links = removableOf(account, hasNewPassword)
  const methods = [
    ...links.map(({ provider }) =>
      ({ kind: provider === 'local' ? 'password' : 'provider', provider, createdAt: null } as const)),
    ...account.factors.map(({ kind, createdAt }) => ({ kind, provider: null, createdAt: new Date(createdAt) }))
  ]
  const ids = [...links.map(({ provider, subject }) => [provider, subject]), ...account.factors.map(({ id }) => id)]
  return { methods, keep: ids.length === 0 ? '' : digestOf(JSON.stringify([generationOf(account), ids])) }
}

/**
 * Returns an account whose user has proven the address by mail. The first proof removes all that
 * another person may have made, unless the user keeps it, and ends all sessions.
 *
 * @param how `existing`: `remove`, or {@link UnprovenMethods.keep}; null keeps whatever there is.
 *   `hasNewPassword`: whether the password is replaced, and so not removed
 */
export function withProvenEmail (
  account: Account, how: { existing: string | null, hasNewPassword?: boolean, now: number }
): { account: Account, wasProven: boolean, removed: string[] } {
  const { existing, hasNewPassword = false, now } = how
  const unproven = unprovenOf(account, hasNewPassword)
  if (unproven === null) return { account: withConfirmedEmail(account), wasProven: true, removed: [] }
  const isKept = existing === null || existing === unproven.keep
  if (!isKept && existing !== 'remove') throw choiceRequired(unproven)
  const removed = isKept ? [] : removableOf(account, hasNewPassword)
  const links = account.links.filter(link => !removed.includes(link))
  const bare = { ...account, links, passwordHash: hasNewPassword ? account.passwordHash : null }
  const left = isKept ? account : withFactors(bare, [])
  const usable = left.links.length > 0 || hasNewPassword ? left : withLink(left, applicationLink(left))
  const confirmed = withSessionsEnded(withConfirmedEmail(usable), now)
  return { account: confirmed, wasProven: false, removed: removed.map(({ provider }) => provider) }
}

/** Asks for a choice: the refusal has what it is about. */
export function choiceRequired ({ methods, keep }: UnprovenMethods): AuthError {
  return new AuthError('choice_required', { details: { methods, keep } })
}

/** The links by which another person could sign in: by `application`, only the application does. */
function removableOf ({ links }: Account, hasNewPassword: boolean): AccountLink[] {
  const stay = hasNewPassword ? OWN_PROVIDERS : ['application']
  return links.filter(({ provider }) => !stay.includes(provider))
}

/** The sign-in method of a user who has no other: the application vouches for them. */
export function applicationLink ({ userId, email, name }: Pick<Account, 'userId' | 'email' | 'name'>): AccountLink {
  const claims = { sub: userId, ...(email !== null && { email }), email_verified: true, ...(name !== null && { name }) }
  return { provider: 'application', subject: userId, claims }
}
