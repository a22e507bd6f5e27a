import type { IdentityClaims } from '../claims.js'
import { AuthError } from '../errors.js'
import {
  type Account, type AccountLink, CONFIRMED, type Factor, GUEST, type Link, OWN_PROVIDERS, type Subject, type User,
  assertCanonical, generationOf, isConfirmed, linkAt, linksOf, userOf, withConnectionUse, withEmail, withFactors,
  withLink, withSessionsEnded, withVouching
} from './account.js'
import type { Rule } from './auth-store.js'

/** Whether a user with these links, of whom there is one at least, could sign in. */
export type CanSignIn = (user: User, links: ReadonlyArray<Pick<Link, 'provider'>>) => boolean

/** What a sign-in reports about a subject at a provider. */
export interface LinkedIdentity extends Subject {
  /** The identity claims, which replace the claims of the link. */
  claims: IdentityClaims
  /** The e-mail in its canonical form if the provider verified it; null otherwise. */
  verifiedEmail: string | null
  /** When a connection reported it, in milliseconds; absent for another provider. */
  connectionAt?: number | undefined
}

/** A user to create, with their first link. */
export interface NewUser extends Pick<User, 'userId' | 'email' | 'name' | 'claims'> {
  /**
   * Whether the provider of the link vouches for `email`; for a link at `local` or `application`,
   * whether the user has confirmed it.
   */
  emailVerified: boolean
  /** Set for a user who must be admitted: see {@link Accounts.admitUser}. */
  isNew?: true
  /** The user's first link. */
  link: AccountLink
  /** Argon2id PHC string, for a user with a password. */
  passwordHash?: string
  /** Which they have from the beginning, such as a passkey; default none. */
  initialFactors?: readonly Factor[]
  /** As in {@link LinkedIdentity}, of the link. */
  connectionAt?: number | undefined
}

export function newAccount (newUser: NewUser, now: number): Account {
  assertCanSignIn(newUser)
  const { userId, email, name, claims, link, passwordHash = null, initialFactors = [], connectionAt } = newUser
  const voucher = OWN_PROVIDERS.includes(link.provider) ? CONFIRMED : link.provider
  const extras = {
    created_at: now,
    ...(newUser.isNew && { is_new: true as const }),
    ...(link.provider === GUEST && { guest: true as const })
  }
  const blank = { userId, email, name, claims, extras, links: [], passwordHash, factors: [] }
  const account = withConnectionUse(withLink(blank, link), link.provider, connectionAt)
  return withFactors(withVouching(account, voucher, newUser.emailVerified), initialFactors)
}

function refreshIdentity (identity: LinkedIdentity): Rule<User | null> {
  return (account, { ofEmail }) => {
    if (account === null || linkAt(account, identity.provider) === undefined) return { result: null }
    const noted = withIdentity(account, identity, ofEmail)
    return { result: userOf(noted), account: noted }
  }
}

/** What a sign-in noted. */
export interface NotedSignIn {
  /** The user as they are now. */
  user: User
  /** The user as they were before the provider moved their e-mail; null where it did not. */
  movedFrom: User | null
  /** The user as they were before the provider disputed their e-mail; null where it did not. */
  disputedFor: User | null
}

/** What {@link Accounts.enterIdentity} found or did. */
export interface EnteredIdentity extends NotedSignIn {
  /**
   * Whether the user has the link, was created with it, or has the e-mail without the link. Of a
   * user who has it and is held nothing was written: `moves` where the account would get another
   * e-mail, or another state of it, else `refreshes`.
   */
  as: 'known' | 'refreshes' | 'moves' | 'new' | 'owner-of-email'
}

/**
 * Returns the account that a guest becomes: with what a new user has, and all that the guest had.
 * Sessions of the guest have yet to be ended.
 */
export function promotedGuest (guest: Account, newUser: NewUser): Account {
  const { guest: _, created_at: createdAt = 0, ...notes } = guest.extras
  const { isNew: __, ...made } = newUser
  const { name, claims, extras, ...account } = newAccount(made, createdAt)
  return {
    ...account,
    userId: guest.userId,
    name: name ?? guest.name,
    claims: { ...guest.claims, ...claims },
    extras: { ...notes, ...extras }
  }
}

function enterIdentity (
  identity: LinkedIdentity, newAccount: Account | null, holds: (user: User) => boolean
): Rule<EnteredIdentity | null> {
  return (account, { ofEmail }) => {
    if (account !== null) {
      const noted = withIdentity(account, identity, ofEmail)
      const user = userOf(account)
      if (!holds(user)) return { result: { ...notedSignIn(account, noted), as: 'known' }, account: noted }
      return { result: { ...notedSignIn(account), as: isAsFound(noted, user) ? 'refreshes' : 'moves' } }
    }
    if (ofEmail !== null) return { result: { ...notedSignIn(ofEmail), as: 'owner-of-email' } }
    if (newAccount === null) return { result: null }
    return { result: { ...notedSignIn(newAccount), as: 'new' }, account: newAccount }
  }
}

/** What a sign-in has found of a user. It must still be so when the sign-in is written. */
export type FoundUser = Pick<User, 'userId' | 'generation' | 'email' | 'emailVerified'>

/** Whether a user is as a sign-in has found them. */
export function isAsFound (account: Account, { generation, email, emailVerified }: Omit<FoundUser, 'userId'>): boolean {
  const user = userOf(account)
  return isAtGeneration(account, generation) && user.email === email && user.emailVerified === emailVerified
}

export function notedSignIn (before: Account, after = before): NotedSignIn {
  const [owner, user] = [userOf(before), userOf(after)]
  return {
    user,
    movedFrom: owner.email === null || owner.email === user.email ? null : owner,
    disputedFor: owner.emailVerified && user.emailDisputed ? owner : null
  }
}

function addLink (identity: LinkedIdentity, generation: number | undefined): Rule<User | null> {
  return (account, { ofEmail, ofLink }) => {
    assertCanSignIn({ email: identity.verifiedEmail, link: identity })
    const isTaken = ofLink !== null || account === null || linkAt(account, identity.provider) !== undefined
    if (isTaken || !isAtGeneration(account, generation)) return { result: null }
    const noted = withIdentity(account, identity, ofEmail)
    return { result: userOf(noted), account: noted }
  }
}

/**
 * Replaces the claims of a link that the user has, and nothing else of the account: a consent takes
 * neither a recent authentication nor a factor.
 */
function updateLink ({ provider, subject, claims }: LinkedIdentity, generation: number): Rule<boolean> {
  return account => {
    const isTheirs = account !== null && linkAt(account, provider)?.subject === subject
    if (!isTheirs || !isAtGeneration(account, generation)) return { result: false }
    return { result: true, account: withLink(account, { provider, subject, claims }) }
  }
}

function removeLink (
  provider: string, generation: number | undefined, canSignIn: CanSignIn, now: number
): Rule<Link[]> {
  return found => {
    const account = requireAccount(found)
    if (!isAtGeneration(account, generation)) throw new AuthError('unauthenticated')
    const links = account.links.filter(link => link.provider !== provider)
    if (links.length === 0) throw new AuthError('last_link')
    if (links.length === account.links.length) return { result: linksOf(account) }
    const passwordHash = provider === 'local' ? null : account.passwordHash
    const left = withSessionsEnded(withVouching({ ...account, links, passwordHash }, provider, false, false), now)
    if (!canSignIn(userOf(left), links)) throw new AuthError('last_link')
    return { result: linksOf(left), account: left }
  }
}

/**
 * Removes the link at a provider that is gone. The address stays as it is: what the provider has
 * vouched for was so then.
 */
function leaveProvider (provider: string, now: number): Rule<User | null> {
  return account => {
    if (account === null || linkAt(account, provider) === undefined) return { result: null }
    const left = { ...account, links: account.links.filter(link => link.provider !== provider) }
    const isVerified = account.extras.email_verified === true
    const usable = left.links.length > 0 ? left : withLink(left, applicationLink(left, isVerified))
    return { result: userOf(usable), account: withSessionsEnded(usable, now) }
  }
}

/** The sign-in method of a user who has no other: the application vouches for them. */
export function applicationLink (
  { userId, email, name }: Pick<Account, 'userId' | 'email' | 'name'>, isVerified = true
): AccountLink {
  const claims = {
    sub: userId,
    ...(email !== null && { email }),
    ...(isVerified && { email_verified: true }),
    ...(name !== null && { name })
  }
  return { provider: 'application', subject: userId, claims }
}

/** The rules of {@link Accounts} about the identities of a user. */
export const identityRules = { refreshIdentity, enterIdentity, addLink, updateLink, removeLink, leaveProvider }

/** Returns the account that a rule was asked about, or throws `unknown_user`. */
export function requireAccount (account: Account | null): Account {
  if (account === null) throw new AuthError('unknown_user')
  return account
}

/** Whether a user has the generation that is expected of them; undefined for any. */
export function isAtGeneration (account: Pick<Account, 'extras'>, expected: number | undefined): boolean {
  return expected === undefined || expected === generationOf(account)
}

/**
 * Returns an account with what a provider reports of its user. An e-mail that has changed at the
 * provider replaces, once it is verified, only an address that is verified or disputed, and that
 * the user did not confirm. Otherwise an attacker who registered the address of another person
 * could leave it, and keep the password.
 *
 * @param owner the account with the verified e-mail; null when no user has it
 */
export function withIdentity (
  account: Account,
  { provider, subject, claims, verifiedEmail, connectionAt }: LinkedIdentity,
  owner: Account | null
): Account {
  const { email, name, extras } = account
  const present = linkAt(account, provider)
  const { email_awaited_from: awaited = [], ...others } = extras
  const hasChanged = present !== undefined && (present.claims.email !== claims.email || awaited.includes(provider))
  // A consent may have noted the new address in the claims alone.
  const hasVouched = extras.email_verified_by?.includes(provider) === true
  const named = { ...account, name: extras.name_set ? name : claims.name ?? name }
  const settled = awaited.filter(name => name !== provider)
  const left = hasChanged && verifiedEmail === null ? [...settled, provider] : settled
  const notes = { ...others, ...(left.length > 0 && { email_awaited_from: left }) }
  const linked = withLink({ ...named, extras: notes }, { provider, subject, claims })
  const noted = withConnectionUse(linked, provider, connectionAt)
  const wasVerified = extras.email_verified === true || extras.email_disputed === true
  const mayReplace = (hasChanged || hasVouched) && wasVerified && !isConfirmed(account)
  const isDue = email === null || email === verifiedEmail || mayReplace
  const vouches = verifiedEmail !== null && isDue && (owner === null || owner.userId === account.userId)
  return withVouching(vouches ? withEmail(noted, verifiedEmail) : noted, provider, vouches)
}

/** Refuses a user or a link that could never be used to sign in. */
function assertCanSignIn ({ email, link, passwordHash }: Pick<NewUser, 'email' | 'link' | 'passwordHash'>): void {
  if (email !== null) assertCanonical(email)
  if (link.provider !== 'local') return
  if (passwordHash === undefined) {
    throw new AuthError('invalid_request', {
      message: 'A link at "local" needs a password: make the user by createUser with a passwordHash.'
    })
  }
  assertCanonical(link.subject)
  if (link.subject === email) return
  throw new AuthError('invalid_request', {
    message: 'The subject of a link at "local" must be the e-mail of the user.'
  })
}
