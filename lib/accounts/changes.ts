import { withoutUndefined } from '../base/values.js'
import { type AuthorizationClaims, isStorable } from '../claims.js'
import { AuthError } from '../errors.js'
import {
  type Account, type Block, OWN_PROVIDERS, type User, generationOf, userOf, withConfirmedEmail, withDisputedEmail,
  withEmail, withKeysEnded, withSessionsEnded, withUnconfirmedEmail
} from './account.js'
import type { Rule } from './auth-store.js'
import { isAtGeneration, requireAccount } from './identities.js'

/** What {@link Accounts.changeUser} changes; what is absent stays as it is. */
export interface UserChange {
  /** The name, also in the claims of the links at `local` and `application`; null removes it. */
  name?: string | null
  /** Blocks the user; null removes the block. */
  blocked?: Block | null
  /** Ends all sessions of the user: one more `generation`, and `signedOutAt` is now. */
  endSessions?: true
  /** Ends all API keys of the user. */
  endKeys?: boolean
}

/** What {@link Accounts.updateUser} changes; what is absent stays as it is. */
export interface UserUpdate {
  /** Later sign-ins do not change it any more; null removes it. */
  name?: string | null | undefined
  /** In any spelling for `app.auth`, which makes it canonical. */
  email?: string | undefined
  /** Whether they own the e-mail, as the caller says; default false for a new e-mail. */
  emailVerified?: boolean | undefined
}

/** What {@link Accounts.noteBrowser} found. */
export interface NotedBrowser {
  /** The user as they are now. */
  user: User
  /** Whether no browser of theirs was noted before. */
  isFirst: boolean
}

function grant (claims: AuthorizationClaims): Rule<AuthorizationClaims> {
  return found => {
    const account = requireAccount(found)
    const all = { ...account.claims, ...claims }
    return { result: all, account: { ...account, claims: all } }
  }
}

function withdraw (names: readonly string[]): Rule<AuthorizationClaims> {
  return found => {
    const account = requireAccount(found)
    if (!names.every(isStorable)) {
      throw new AuthError('invalid_request', {
        message: 'The name of a claim holds a NUL character or half a surrogate pair, which no claim has.'
      })
    }
    const left = Object.fromEntries(Object.entries(account.claims).filter(([name]) => !names.includes(name)))
    return { result: left, account: { ...account, claims: left } }
  }
}

function changeUser (
  { name, blocked, endSessions, endKeys = false }: UserChange, generation: number | undefined, now: number
): Rule<User> {
  return found => {
    let account = requireAccount(found)
    if (!isAtGeneration(account, generation)) throw new AuthError('unauthenticated')
    if (name !== undefined) account = withName(account, name)
    if (blocked !== undefined) account = withBlock(account, blocked)
    if (endSessions) account = withSessionsEnded(account, now)
    if (endKeys) account = withKeysEnded(account)
    return { result: userOf(account), account }
  }
}

function updateUser ({ name, email, emailVerified }: UserUpdate, now: number): Rule<{ before: User, user: User }> {
  return (found, { ofEmail }) => {
    const account = requireAccount(found)
    const before = userOf(account)
    if (email !== undefined && ofEmail !== null && ofEmail.userId !== before.userId) throw new AuthError('exists')
    let changed = name === undefined ? account : withName(account, name)
    if (email !== undefined) changed = withEmail(changed, email)
    if (emailVerified === true && changed.email === null) {
      throw new AuthError('invalid_request', { message: 'The user has no e-mail that could be verified.' })
    }
    if (emailVerified !== undefined) changed = (emailVerified ? withConfirmedEmail : withUnconfirmedEmail)(changed)
    const { emailVerified: isVerified } = userOf(changed)
    // As for a change by the user, and the links in mails to the former address end.
    const isOther = changed.email !== before.email || isVerified !== before.emailVerified
    if (isOther) changed = withSessionsEnded(changed, now)
    return { result: { before, user: userOf(changed) }, account: changed }
  }
}

function disputeEmail (domain: string): Rule<void> {
  return account => {
    const isOfDomain = account?.email?.endsWith(`@${domain}`) === true
    return { result: undefined, ...(isOfDomain && { account: withDisputedEmail(account) }) }
  }
}

const admitUser: Rule<boolean> = account => {
  if (account?.extras.is_new === undefined) return { result: false }
  const { is_new: _, ...extras } = account.extras
  return { result: true, account: { ...account, extras } }
}

const noteBrowser: Rule<NotedBrowser | null> = account => {
  if (account === null) return { result: null }
  const isFirst = account.extras.browser_noted === undefined
  const result = { user: userOf(account), isFirst }
  return isFirst ? { result, account: { ...account, extras: { ...account.extras, browser_noted: true } } } : { result }
}

function deleteUser (generation: number | undefined): Rule<boolean> {
  return account => {
    const isDue = generation === undefined || (account !== null && isAtGeneration(account, generation))
    if (isDue) requireAccount(account)
    return { result: isDue, ...(isDue && { account: null }) }
  }
}

function closeGuest (now: number): Rule<boolean> {
  return account => {
    if (account?.extras.guest !== true) return { result: false }
    // No sign-in leads to a guest: one whose sessions have ended gets no other session.
    return { result: true, ...(generationOf(account) === 0 && { account: withSessionsEnded(account, now) }) }
  }
}

const deleteGuest: Rule<boolean> = account => {
  const isGuest = account?.extras.guest === true
  return { result: isGuest, ...(isGuest && { account: null }) }
}

const deleteNewUser: Rule<void> = account =>
  ({ result: undefined, ...(account?.extras.is_new && { account: null }) })

/** The rules of {@link Accounts} about a user. */
export const userRules = {
  grant,
  withdraw,
  changeUser,
  updateUser,
  disputeEmail,
  admitUser,
  noteBrowser,
  closeGuest,
  deleteGuest,
  deleteUser,
  deleteNewUser
}

function withName (account: Account, name: string | null): Account {
  const links = account.links.map(link => {
    if (!OWN_PROVIDERS.includes(link.provider)) return link
    const { name: _, ...claims } = link.claims
    return { ...link, claims: { ...claims, ...(name !== null && { name }) } }
  })
  return { ...account, name, links, extras: { ...account.extras, name_set: true } }
}

function withBlock (account: Account, block: Block | null): Account {
  const { blocked: _, ...extras } = account.extras
  if (block === null) return { ...account, extras }
  const { at, until, reason } = block
  const blocked = withoutUndefined({ at: at.getTime(), until: until?.getTime(), reason })
  return { ...account, extras: { ...extras, blocked } }
}
