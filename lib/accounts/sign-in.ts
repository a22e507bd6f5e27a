import { AuthError } from '../errors.js'
import { type Account, isBlocked, linkAt, userOf } from './account.js'
import type { Holders, Rule } from './auth-store.js'
import { withConfirmedEmail } from './emails.js'
import { type FactorChange, changeFactors } from './factors.js'
import {
  type FoundUser, type LinkedIdentity, type NotedSignIn, isAsFound, notedSignIn, withIdentity
} from './identities.js'

/** What a sign-in writes when it is complete. */
export interface SignInChange {
  /** The identity that signs in. */
  identity: LinkedIdentity
  /**
   * What a first factor has found: a sign-in by a link of the user, which `moves` the e-mail of the
   * account, or its state, or only `refreshes` the link; `link`: an identity that joins the user by
   * their e-mail; `mail`: they have confirmed their address. Null for nothing.
   */
  held: 'refreshes' | 'moves' | 'link' | 'mail' | null
  /** The factor that the sign-in sets up. */
  factors?: FactorChange | undefined
}

/** Writes what was found and the factor together, or nothing. */
export function signIn (
  found: FoundUser, { factors, ...change }: SignInChange, { isTrial, now }: { isTrial: boolean, now: number }
): Rule<NotedSignIn | null> {
  return (account, holders) => {
    if (account === null || !isAsFound(account, found)) return { result: null }
    if (isBlocked(userOf(account), now)) throw new AuthError('blocked')
    let left = withHeld(account, holders, change)
    if (left !== null && factors !== undefined) left = changeFactors(factors, now)(left, holders).account ?? null
    if (left === null) return { result: null }
    return { result: notedSignIn(account, left), ...(!isTrial && { account: left }) }
  }
}

function withHeld (
  account: Account, { ofEmail, ofLink }: Holders, { identity, held }: SignInChange
): Account | null {
  if (held === null) return account
  // It may be disputed since: then the mail opens no account any more.
  if (held === 'mail') return userOf(account).emailDisputed ? null : withConfirmedEmail(account)
  const present = linkAt(account, identity.provider)
  const isDue = held === 'link' ? present === undefined && ofLink === null : present?.subject === identity.subject
  if (!isDue) return null
  const noted = withIdentity(account, identity, ofEmail)
  // The address may be free since: a sign-in that was spared a factor moves nothing.
  return held === 'refreshes' && !isAsFound(noted, userOf(account)) ? null : noted
}
