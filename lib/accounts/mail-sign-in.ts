import { AuthError } from '../errors.js'
import {
  type Account, type AccountLink, type Link, type User, isBlocked, linkAt, linksOf, userOf, withSessionsEnded
} from './account.js'
import type { Rule } from './auth-store.js'
import { withConfirmedEmail } from './emails.js'
import { withFactors } from './factors.js'
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
  readonly links: readonly Link[]
  /** `first-proof`: what another person may have made was removed; `held`: nothing was written. */
  readonly as: 'known' | 'new' | 'first-proof' | 'held'
  /** The providers of the links that were removed. */
  readonly removed: readonly string[]
}

export function signInByMail (
  { user: found, email }: ProvenMailbox,
  { newId, holds, now }: { newId: string | null, holds: (user: User) => boolean, now: number }
): Rule<MailSignIn | null> {
  return (account, { ofEmail }) => {
    const present = found === null ? ofEmail : account
    if (present === null) {
      if (found !== null || newId === null) return { result: null }
      const link = applicationLink({ userId: newId, email })
      const created = newAccount(
        { userId: newId, email, emailVerified: true, name: null, claims: {}, isNew: true, link }, now)
      return { result: { ...signedIn(created), as: 'new' }, account: created }
    }
    const user = userOf(present)
    const { generation, emailVerified = user.emailVerified } = found ?? user
    if (!isAsFound(present, { email, generation, emailVerified })) return { result: null }
    if (user.emailDisputed) throw new AuthError('account_exists')
    if (isBlocked(user, now)) throw new AuthError('blocked')
    if (present.extras.email_proven !== true) {
      const links = [linkAt(present, 'application') ?? applicationLink({ ...user, email })]
      const bare = withFactors({ ...present, links, passwordHash: null }, [])
      const claimed = withSessionsEnded(withConfirmedEmail(bare), now)
      const removed = present.links.map(({ provider }) => provider).filter(provider => provider !== 'application')
      return { result: { ...signedIn(claimed), as: 'first-proof', removed }, account: claimed }
    }
    if (holds(user)) return { result: { ...signedIn(present), as: 'held' } }
    const confirmed = withConfirmedEmail(present)
    return { result: { ...signedIn(confirmed), as: 'known' }, account: confirmed }
  }
}

/** The sign-in method of a user who has no other: the application vouches for them. */
function applicationLink (
  { userId, email, name = null }: { userId: string, email: string, name?: string | null }
): AccountLink {
  const claims = { sub: userId, email, email_verified: true, ...(name !== null && { name }) }
  return { provider: 'application', subject: userId, claims }
}

function signedIn (account: Account): Pick<MailSignIn, 'user' | 'links' | 'removed'> {
  return { user: userOf(account), links: linksOf(account), removed: [] }
}
