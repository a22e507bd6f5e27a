import { canonicalEmail } from '../email.js'
import { AuthError } from '../errors.js'
import { type Account, type UserExtras, linkAt, withLink } from './account.js'

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
