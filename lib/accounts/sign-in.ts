import { digestOf } from '../base/values.js'
import { AuthError } from '../errors.js'
import {
  type Account, type AccountLink, type FactorKind, GUEST, type Link, OWN_PROVIDERS, type User, generationOf, isBlocked,
  linkAt, linksOf, userOf, withConfirmedEmail, withFactors, withKeysEnded, withLink, withSessionsEnded
} from './account.js'
import type { Holders, Rule } from './auth-store.js'
import { type FactorChange, changeFactorsRule } from './factors.js'
import {
  type FoundUser, type LinkedIdentity, type NewUser, type NotedSignIn, applicationLink, isAsFound, newAccount,
  notedSignIn,
  promotedGuest, withIdentity
} from './identities.js'

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
 * another person may have made, API keys too, unless the user keeps it, and ends all sessions.
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
  const left = isKept ? account : withKeysEnded(withFactors(bare, []))
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

/** Returns an account as it is kept: with an address, or another link, a guest is one no longer. */
export function withoutGuest (account: Account): Account {
  const { userId, email, extras: { guest = false, ...extras } } = account
  const links = account.links.filter(({ provider }) => provider !== GUEST)
  if (!guest || (email === null && links.length === 0)) return account
  const left = { ...account, extras, links }
  return links.length > 0 ? left : withLink(left, { provider: 'application', subject: userId, claims: { sub: userId } })
}

/** Returns the user to create whose mailbox was proven. */
export function userOfMailbox (userId: string, email: string): NewUser {
  const link = applicationLink({ userId, email, name: null })
  return { userId, email, emailVerified: true, name: null, claims: {}, isNew: true, link }
}

/** Whose mailbox a sign-in by mail has proven. */
export interface ProvenMailbox {
  /** The user who had the address when the mail was asked for; null for the user who has it now. */
  readonly user: Pick<User, 'userId' | 'generation'> & Partial<Pick<User, 'emailVerified'>> | null
  /** In its canonical form. */
  readonly email: string
}

/** What {@link Accounts.signInByMail} found or did. */
export interface MailSignIn {
  /** The user as they are now. */
  readonly user: User
  /** Their links as they are now. */
  readonly links: readonly Link[]
  /** `first-proof`: of any address of the account; `held`: nothing was written. */
  readonly as: 'known' | 'new' | 'first-proof' | 'held'
  /** The providers of the links that were removed. */
  readonly removed: readonly string[]
}

export function signInByMail (
  { user: found, email }: ProvenMailbox,
  { newId, holds, existing, now }:
  { newId: string | null, holds: (user: User) => boolean, existing: string, now: number }
): Rule<MailSignIn | null> {
  return (account, { ofEmail }) => {
    const present = found === null ? ofEmail : account
    if (present === null) {
      if (found !== null || newId === null) return { result: null }
      const created = newAccount(userOfMailbox(newId, email), now)
      return { result: { ...signedIn(created), as: 'new' }, account: created }
    }
    const user = userOf(present)
    const { generation, emailVerified = user.emailVerified } = found ?? user
    if (!isAsFound(present, { email, generation, emailVerified })) return { result: null }
    if (user.emailDisputed) throw new AuthError('account_exists')
    if (isBlocked(user, now)) throw new AuthError('blocked')
    const { account: proven, wasProven, removed } = withProvenEmail(present, { existing, now })
    if (wasProven && holds(user)) return { result: { ...signedIn(present), as: 'held' } }
    return { result: { ...signedIn(proven), as: wasProven ? 'known' : 'first-proof', removed }, account: proven }
  }
}

function signedIn (account: Account): Pick<MailSignIn, 'user' | 'links' | 'removed'> {
  return { user: userOf(account), links: linksOf(account), removed: [] }
}

/** What a sign-in writes when it is complete. */
export interface SignInChange {
  /** The identity that signs in. */
  identity: LinkedIdentity
  /**
   * What a first factor has found: a sign-in by a link of the user, which `moves` the e-mail of the
   * account, or its state, or only `refreshes` the link; `link`: an identity that joins the user by
   * their e-mail; `confirms`: they have confirmed their address; `promotes`: a guest becomes the
   * user `newUser`. Null for nothing.
   */
  held: 'refreshes' | 'moves' | 'link' | 'confirms' | 'promotes' | null
  /** The user whom the sign-in would create if there were no guest, with another id. */
  newUser?: NewUser | undefined
  /** The factor that the sign-in sets up. */
  factors?: FactorChange | undefined
}

/** Writes what was found and the factor together, or nothing. */
export function signInRule (
  found: FoundUser, { factors, ...change }: SignInChange, { isTrial, now }: { isTrial: boolean, now: number }
): Rule<NotedSignIn | null> {
  return (account, holders) => {
    if (account === null || !isAsFound(account, found)) return { result: null }
    if (isBlocked(userOf(account), now)) throw new AuthError('blocked')
    let left = withHeld(account, holders, change)
    if (left !== null && factors !== undefined) left = changeFactorsRule(factors, now)(left, holders).account ?? null
    if (left === null) return { result: null }
    // Last, because a factor is added at the generation that was found.
    if (change.held === 'promotes') left = withSessionsEnded(left, now)
    return { result: notedSignIn(account, left), ...(!isTrial && { account: left }) }
  }
}

function withHeld (
  account: Account, { ofEmail, ofLink }: Holders, { identity, held, newUser }: SignInChange
): Account | null {
  if (held === null) return account
  if (held === 'promotes') {
    const isFree = account.extras.guest === true && ofEmail === null && ofLink === null
    return isFree && newUser !== undefined ? promotedGuest(account, newUser) : null
  }
  // It may be disputed since: then the mail opens no account any more.
  if (held === 'confirms') return userOf(account).emailDisputed ? null : withConfirmedEmail(account)
  const present = linkAt(account, identity.provider)
  const isDue = held === 'link' ? present === undefined && ofLink === null : present?.subject === identity.subject
  if (!isDue) return null
  const noted = withIdentity(account, identity, ofEmail)
  // The address may be free since: a sign-in that was spared a factor moves nothing.
  return held === 'refreshes' && !isAsFound(noted, userOf(account)) ? null : noted
}
