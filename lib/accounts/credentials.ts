import { AuthError } from '../errors.js'
import {
  type Account, type User, isBlocked, isConfirmed, linkAt, userOf, withEmail, withFactors, withKeysEnded,
  withLink, withSessionsEnded, withoutEmail
} from './account.js'
import type { Rule } from './auth-store.js'
import { withProvenEmail } from './sign-in.js'
import { isAtGeneration, requireAccount } from './identities.js'

/** A password that {@link Accounts.setPassword} sets. */
export interface NewPassword {
  /** Argon2id PHC string. */
  passwordHash: string
  /** The hash that it replaces, null for a user who must have none yet; default any. */
  current?: string | null
  /** As for {@link Accounts}. */
  generation?: number
  /** Whether it ends all API keys of the user; default false. */
  endsKeys?: boolean
}

/**
 * What the token of a mail says: its bearer reads the mailbox. It is good as long as the user has
 * this address and no event has ended all their sessions since.
 */
export interface MailTokenClaims {
  /** A UUID in lower case. */
  userId: string
  /** The address in its canonical form, as it was when the mail was sent. */
  email: string
  /** {@link User.generation} when the mail was sent. */
  generation: number
}

/** {@link MailTokenClaims} of a link to a new address: the user may have had none. */
export type FoundAddress = Pick<User, 'userId' | 'email' | 'generation'>

/** What {@link Accounts.resetPassword}, `verifyEmail` or `changeEmail` did. */
export interface ConfirmedEmail {
  /** The user as they are now. */
  user: User
  /** Whether the user had owned an address of the account before. */
  wasProven: boolean
  /** The providers of the links that were removed, in order. */
  removed: readonly string[]
}

function setPassword (
  { passwordHash, current, generation, endsKeys = false }: NewPassword, now: number
): Rule<User | null> {
  return found => {
    if (found === null && generation !== undefined) return { result: null }
    const account = requireAccount(found)
    const isCurrent = current === undefined || current === account.passwordHash
    if (account.email === null || !isCurrent || !isAtGeneration(account, generation)) return { result: null }
    const left = endsKeys ? withKeysEnded(account) : account
    const changed = withSessionsEnded(withPassword(left, account.email, passwordHash), now)
    return { result: userOf(changed), account: changed }
  }
}

function replacePasswordHash (current: string, next: string): Rule<void> {
  return account => {
    if (account?.passwordHash !== current) return { result: undefined }
    return { result: undefined, account: { ...account, passwordHash: next } }
  }
}

function verifyEmail (
  token: MailTokenClaims, existing: string | null, now: number
): Rule<ConfirmedEmail | 'unchanged' | null> {
  return account => {
    if (account === null || !isGood(token, account)) return { result: null }
    if (isConfirmed(account)) return { result: 'unchanged' }
    const { account: changed, ...proof } = withProvenEmail(account, { existing, now })
    return { result: { user: userOf(changed), ...proof }, account: changed }
  }
}

function resetPassword (
  token: MailTokenClaims, passwordHash: string, { existing, now }: { existing: string, now: number }
): Rule<ConfirmedEmail | null> {
  return account => {
    if (account === null || !isGood(token, account)) return { result: null }
    const user = userOf(account)
    if (user.emailDisputed || isBlocked(user, now)) return { result: null }
    const { account: proven, ...proof } = withProvenEmail(account, { existing, hasNewPassword: true, now })
    const ended = proof.wasProven ? withSessionsEnded(proven, now) : proven
    // Those that the user has kept, too: who resets a password may have lost more than that.
    const changed = withPassword(withKeysEnded(ended), token.email, passwordHash)
    return { result: { user: userOf(changed), ...proof }, account: changed }
  }
}

function changeEmail (
  found: FoundAddress, to: string, { existing, now }: { existing: string | null, now: number }
): Rule<ConfirmedEmail | null> {
  return (account, { ofEmail }) => {
    if (account === null || !isGood(found, account)) return { result: null }
    if (ofEmail !== null && ofEmail.userId !== account.userId) throw new AuthError('exists')
    const { account: proven, ...proof } = withProvenEmail(withEmail(account, to), { existing, now })
    const changed = proof.wasProven ? withSessionsEnded(proven, now) : proven
    return { result: { user: userOf(changed), ...proof }, account: changed }
  }
}

function releaseEmail (token: MailTokenClaims, now: number): Rule<'deleted' | 'freed' | null> {
  return account => {
    if (account === null || !isGood(token, account) || account.extras.email_proven) return { result: null }
    const freed = withFactors(withoutEmail(account), [])
    if (freed.links.length === 0) return { result: 'deleted', account: null }
    return { result: 'freed', account: withKeysEnded(withSessionsEnded(freed, now)) }
  }
}

/** The rules of {@link Accounts} about a password, and about the e-mail that it needs. */
export const credentialRules = {
  setPassword, replacePasswordHash, verifyEmail, resetPassword, changeEmail, releaseEmail
}

function isGood ({ email, generation }: FoundAddress, account: Pick<Account, 'email' | 'extras'>): boolean {
  return account.email === email && isAtGeneration(account, generation)
}

function withPassword (account: Account, email: string, passwordHash: string): Account {
  if (linkAt(account, 'local') !== undefined) return { ...account, passwordHash }
  const { userId, name } = account
  const isVerified = isConfirmed(account)
  const claims = { sub: userId, email, ...(isVerified && { email_verified: true }), ...(name !== null && { name }) }
  return withLink({ ...account, passwordHash }, { provider: 'local', subject: email, claims })
}
