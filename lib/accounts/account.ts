import type { AuthorizationClaims, IdentityClaims } from '../claims.js'
import { canonicalEmail } from '../email.js'
import { AuthError } from '../errors.js'
import type { FactorKind, UserExtras } from '../schema/extras.js'

export type { FactorKind, UserExtras } from '../schema/extras.js'

/** Keeps a user from signing in: see {@link User.blocked}. */
export interface Block {
  /** When the user was blocked. */
  at: Date
  /** When the block ends by itself; without it, it lasts until it is removed. */
  until?: Date
  /** A note of the application. */
  reason?: string
}

/** A user account, as applications see it. */
export interface User {
  /** A UUID in lower case. */
  userId: string
  /** Canonical and unique: verified, or from a registration or the application; else null. */
  email: string | null
  /**
   * Whether the user has confirmed `email`, the application has said that it is theirs, or a
   * provider vouched for it at its last sign-in.
   */
  emailVerified: boolean
  /**
   * Present where `email` is unverified since a provider that vouched for it no longer does: until
   * the user confirms it, or a provider vouches, mail to it opens no account.
   */
  emailDisputed?: true
  /** As the application or the user set it, else as of the registration or the last sign-in. */
  name: string | null
  /** The authorization claims. */
  claims: AuthorizationClaims
  /** Present until `onSignIn` has admitted the user, and their first session is written. */
  isNew?: true
  /** Present for a guest: a visitor who has signed in by nothing yet. */
  guest?: true
  /** Counts the events that ended all sessions of the user. */
  generation: number
  /** Present while the application has blocked the user; it stays after `until` is over. */
  blocked?: Block
  /** When the user was created. */
  createdAt: Date
  /** The kinds of {@link Account.factors}, sorted by name; absent for a user without factors. */
  factors?: readonly FactorKind[]
  /** The last sign-in by a connection, to an hour; absent for a user without one. */
  connection?: ConnectionUse
}

/** The last sign-in of a user by a connection. */
export interface ConnectionUse {
  /** The connection: {@link Subject.provider}. */
  provider: string
  /** When the user signed in by it, to an hour. */
  at: Date
}

/** A subject at a provider. */
export interface Subject {
  /** `local`, `application` or the name of an external provider. */
  provider: string
  /** The e-mail for `local`, the user id for `application`, else the id at the provider. */
  subject: string
}

/** A sign-in method of an account. */
export interface Link extends Subject {
  /** The user who signs in by this link: a UUID in lower case. */
  userId: string
  /** The identity claims as of the last sign-in. */
  claims: IdentityClaims
}

/** A link of a known account. */
export type AccountLink = Omit<Link, 'userId'>

/** A local account, with the password hash that a login is checked against. */
export interface Credential {
  /** The user of the account. */
  user: User
  /** The user's link at `local`. */
  link: Link
  /** Argon2id PHC string. */
  passwordHash: string
}

/** What a guard asks about a user. */
export interface AccountStatus {
  /** {@link User.generation}. */
  generation: number
  /** Seconds since the epoch, 0 when never: tokens that were issued until then are refused. */
  signedOutAt: number
  /** {@link User.email} if {@link User.emailVerified}; null otherwise. */
  verifiedEmail: string | null
}

/** What a user proves their identity with besides the links: a passkey, or a second factor. */
export interface Factor {
  /** A UUID; for a passkey the credential id in base64url. No other user has it. */
  readonly id: string
  /** What it is. */
  readonly kind: FactorKind
  /** The user's name for a passkey; null for other kinds. */
  readonly name: string | null
  /** A sealed secret; null for a kind without one. */
  readonly secret: string | null
  /** What else belongs to the kind, such as the public key of a passkey: plain JSON data. */
  readonly data: Readonly<Record<string, unknown>>
  /** The last time step used, or the signature counter of a passkey; 0 for recovery codes. */
  readonly counter: number
  /** When it was added, in milliseconds since the epoch. */
  readonly createdAt: number
  /** When it was last used, in milliseconds since the epoch; null for never. */
  readonly usedAt: number | null
}

/** All that a store keeps of a user: what the rules of an account read and change. */
export interface Account extends Readonly<Pick<User, 'userId' | 'email' | 'name' | 'claims'>> {
  /** The library's own notes about the user: plain JSON data, which a store keeps as it is. */
  readonly extras: UserExtras
  /** At most one at each provider, ordered by provider. A subject at a provider is of one user. */
  readonly links: readonly AccountLink[]
  /** Argon2id PHC string; null for a user without a password. */
  readonly passwordHash: string | null
  /** Ordered by `createdAt`, then by id. Without `extras.factors`, their kinds, there are none. */
  readonly factors: readonly Factor[]
}

/** Returns the user of an account. */
export function userOf (
  { userId, email, name, claims, extras }: Omit<Account, 'links' | 'passwordHash' | 'factors'>
): User {
  const { blocked, created_at: createdAt = 0, factors, connection } = extras
  return {
    userId,
    email,
    emailVerified: extras.email_verified === true,
    name,
    claims,
    generation: generationOf({ extras }),
    createdAt: new Date(createdAt),
    ...(extras.email_disputed && extras.email_verified !== true && { emailDisputed: true }),
    ...(extras.is_new && { isNew: true }),
    ...(extras.guest && { guest: true }),
    ...(blocked !== undefined && { blocked: blockOf(blocked) }),
    ...(factors !== undefined && { factors }),
    ...(connection !== undefined && { connection: { ...connection, at: new Date(connection.at) } })
  }
}

/** Returns what a guard asks about the user of an account. */
export function statusOf ({ email, extras }: Pick<Account, 'email' | 'extras'>): AccountStatus {
  const { signed_out_at: signedOutAt = 0, email_verified: isVerified } = extras
  return { generation: generationOf({ extras }), signedOutAt, verifiedEmail: isVerified === true ? email : null }
}

export function generationOf ({ extras }: Pick<Account, 'extras'>): number {
  return extras.generation ?? 0
}

/** Returns the links of an account, each with the id of the user. */
export function linksOf ({ userId, links }: Pick<Account, 'userId' | 'links'>): Link[] {
  return links.map(({ provider, subject, claims }) => ({ provider, subject, userId, claims }))
}

export function linkAt ({ links }: Pick<Account, 'links'>, provider: string): AccountLink | undefined {
  return links.find(link => link.provider === provider)
}

/** Returns an account with other factors, in their order, and with their kinds in its notes. */
export function withFactors (account: Account, factors: readonly Factor[]): Account {
  const { factors: _, ...extras } = account.extras
  const kinds: FactorKind[] = [...new Set(factors.map(({ kind }) => kind))].sort()
  return {
    ...account,
    extras: { ...extras, ...(kinds.length > 0 && { factors: kinds }) },
    factors: [...factors].sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
  }
}

/** Returns an account with a link, in place of the one that it has at this provider. */
export function withLink (account: Account, { provider, subject, claims }: AccountLink): Account {
  const links = [...account.links.filter(link => link.provider !== provider), { provider, subject, claims }]
  return { ...account, links: links.sort((a, b) => a.provider < b.provider ? -1 : 1) }
}

/** A sign-in by a connection is noted to an hour: most sign-ins then change nothing. */
const NOTED_MS = 60 * 60_000

/**
 * Returns an account that notes a sign-in by a connection.
 *
 * @param at in milliseconds; undefined for another provider, of which nothing is noted
 */
export function withConnectionUse (account: Account, provider: string, at: number | undefined): Account {
  const { connection: noted } = account.extras
  const isNoted = noted?.provider === provider && Math.abs(Number(at) - noted.at) < NOTED_MS
  if (at === undefined || isNoted) return account
  return { ...account, extras: { ...account.extras, connection: { provider, at } } }
}

/** Returns an account after all sessions of its user were ended. */
export function withSessionsEnded (account: Account, now: number): Account {
  const { extras } = account
  // Never earlier than before, so that a clock that was set back revives no token.
  const signedOutAt = Math.max(extras.signed_out_at ?? 0, Math.floor(now / 1000))
  return { ...account, extras: { ...extras, generation: generationOf(account) + 1, signed_out_at: signedOutAt } }
}

/** Counts the events that ended all API keys of a user: a key that is older is refused. */
export function keyGenerationOf ({ extras }: Pick<Account, 'extras'>): number {
  return extras.key_generation ?? 0
}

/** Returns an account after all API keys of its user were ended. */
export function withKeysEnded (account: Account): Account {
  return { ...account, extras: { ...account.extras, key_generation: keyGenerationOf(account) + 1 } }
}

/** Whether a user is blocked at a time, in milliseconds: a block whose `until` is over is none. */
export function isBlocked ({ blocked }: Pick<User, 'blocked'>, now: number = Date.now()): boolean {
  return blocked !== undefined && (blocked.until === undefined || blocked.until.getTime() > now)
}

function blockOf ({ at, until, ...others }: NonNullable<UserExtras['blocked']>): Block {
  return { ...others, at: new Date(at), ...(until !== undefined && { until: new Date(until) }) }
}

/** The provider of the only link of a guest, whose subject is the id of the user. */
export const GUEST = 'guest'

/** The providers whose links say what the application knows: a name that it sets is theirs too. */
export const OWN_PROVIDERS: readonly string[] = ['local', 'application']

/** Stands for the user among those that vouch for an e-mail: no provider can have this name. */
export const CONFIRMED = '@user'

/** Refuses an e-mail that no sign-in would find: `invalid_email`. */
export function assertCanonical (email: string): void {
  if (canonicalEmail(email) === email) return
  throw new AuthError('invalid_email', {
    message: 'The store takes e-mails in the form that canonicalEmail returns; pass the e-mail through it.'
  })
}

export function isConfirmed ({ extras }: Pick<Account, 'extras'>): boolean {
  return extras.email_verified_by?.includes(CONFIRMED) === true
}

/**
 * Returns an account for whose present e-mail a provider, or the user ({@link CONFIRMED}), vouches
 * or no longer does. When none is left, the e-mail is not verified any more: the provider may have
 * given the address to another person. It is disputed too where that is what the provider reports.
 */
export function withVouching (account: Account, provider: string, vouches: boolean, isReport = true): Account {
  const before = account.extras.email_verified_by ?? []
  if (vouches) return withVouchers(account, before.includes(provider) ? before : [...before, provider], false)
  const disputes = isReport && before.includes(provider) && !isConfirmed(account)
  return withVouchers(account, before.filter(voucher => voucher !== provider), disputes || undefined)
}

/**
 * Returns an account with another e-mail, for which nothing vouches yet. The link at `local` moves
 * with it: its subject is the e-mail of the user, always.
 */
export function withEmail (account: Account, email: string): Account {
  if (email === account.email) return account
  const local = linkAt(account, 'local')
  const moved = local === undefined ? account : withLink(account, { ...local, subject: email })
  return withOwnClaims(withVouchers({ ...moved, email }, [], false), email, false)
}

/** Returns an account for whose e-mail nothing vouches any more. */
export function withUnconfirmedEmail (account: Account): Account {
  return withOwnClaims(withVouchers(account, []), account.email, false)
}

/** Returns an account whose e-mail may have another owner by now, until its user confirms it. */
export function withDisputedEmail (account: Account): Account {
  return withOwnClaims(withVouchers(account, [], true), account.email, false)
}

/** Returns an account without an e-mail, and so without a password. */
export function withoutEmail (account: Account): Account {
  const links = account.links.filter(({ provider }) => provider !== 'local')
  return withVouchers({ ...account, email: null, links, passwordHash: null }, [])
}

/** Returns an account whose e-mail the user has confirmed, as its own links say too. */
export function withConfirmedEmail (account: Account): Account {
  return withOwnClaims(withVouching(account, CONFIRMED, true), account.email, true)
}

/** Returns an account whose {@link OWN_PROVIDERS} say what is known of its e-mail. */
function withOwnClaims (account: Account, email: string | null, isVerified: boolean): Account {
  if (email === null) return account
  const links = account.links.map(link => {
    const { email_verified: _, ...claims } = link.claims
    const known = { ...claims, email, ...(isVerified && { email_verified: true }) }
    return OWN_PROVIDERS.includes(link.provider) ? { ...link, claims: known } : link
  })
  return { ...account, links }
}

function withVouchers (
  account: Account, vouchers: string[], isDisputed: boolean = account.extras.email_disputed === true
): Account {
  const { email_disputed: _, ...others } = account.extras
  const isVerified = vouchers.length > 0
  const extras: UserExtras = { ...others, email_verified: isVerified, email_verified_by: vouchers }
  if (isVerified) extras.email_proven = true
  if (isDisputed) extras.email_disputed = true
  return { ...account, extras }
}

/** As many code points as a key has at most: an index of Postgres takes no more than 2704 bytes. */
const MAX_KEY = 256

/** Returns a text as users are searched by it: without case, in one spelling on every database. */
export function searchKey (text: string): string {
  return Array.from(text.trim().normalize('NFKC').toLowerCase()).slice(0, MAX_KEY).join('')
}

/** Returns an account with what it is searched by besides its e-mail. */
export function withSearchKeys (account: Account): Account {
  const { email, name, extras: { name_key: _, email_domain: __, ...extras } } = account
  return {
    ...account,
    extras: {
      ...extras,
      ...(name !== null && { name_key: searchKey(name) }),
      ...(email !== null && { email_domain: email.slice(email.indexOf('@') + 1) })
    }
  }
}
