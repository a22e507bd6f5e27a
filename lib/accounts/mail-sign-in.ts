import { AuthError } from '../errors.js'
import { type Account, type Link, type User, isBlocked, linksOf, userOf } from './account.js'
import type { Rule } from './auth-store.js'
import { applicationLink, withProvenEmail } from './first-proof.js'
import { isAsFound, newAccount } from './identities.js'

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
      const link = applicationLink({ userId: newId, email, name: null })
      const created = newAccount(
        { userId: newId, email, emailVerified: true, name: null, claims: {}, isNew: true, link }, now)
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
