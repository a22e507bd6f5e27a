import type { IdentityClaims } from '../claims.js'
import { canonicalEmail } from '../email.js'
import { AuthError } from '../errors.js'
import type { UserExtras } from '../schema/extras.js'
import type { EmailProof } from './email-proofs.js'
import type { Link, NewUser, User } from './store.js'

/**
 * Refuses a user or a link that could never be used to sign in. Every store calls it before it
 * writes.
 *
 * @throws AuthError `invalid_email` when an e-mail is not canonical, `invalid_request` for a link
 *   at `local` without a password
 */
export function assertCanSignIn (
  { email, link, passwordHash }: Pick<NewUser, 'email' | 'link' | 'passwordHash'>
): void {
  const isLocal = link.provider === 'local'
  if (isLocal && passwordHash === undefined) {
    throw new AuthError('invalid_request', {
      message: 'A link at "local" needs a password: make the user by createUser with a passwordHash.'
    })
  }
  for (const address of isLocal ? [email, link.subject] : [email]) {
    if (address !== null) assertCanonical(address)
  }
}

/**
 * Refuses an e-mail that no sign-in would find. Every store calls it before it writes.
 *
 * @throws AuthError `invalid_email`
 */
export function assertCanonical (email: string): void {
  if (canonicalEmail(email) === email) return
  throw new AuthError('invalid_email', {
    message: 'The store takes e-mails in the form that canonicalEmail returns; pass the e-mail through it.'
  })
}

/**
 * Returns a user's links without the one at a provider.
 *
 * @throws AuthError `unknown_user` for an empty list, `last_link` when no link would be left
 */
export function linksWithout (links: Link[], provider: string): Link[] {
  if (links.length === 0) throw new AuthError('unknown_user')
  const left = links.filter(link => link.provider !== provider)
  if (left.length === 0) throw new AuthError('last_link')
  return left
}

/** The providers whose links say what the application knows: a name that it sets is theirs too. */
export const OWN_PROVIDERS: readonly string[] = ['local', 'application']

/**
 * Stands among the providers that vouch for an e-mail when the user has confirmed it. A provider
 * cannot have this name.
 */
export const CONFIRMED = '@user'

/** Returns what vouches for the e-mail of a new user. */
export function firstVouchers ({ emailVerified, link }: Pick<NewUser, 'emailVerified' | 'link'>): string[] {
  if (!emailVerified) return []
  return [OWN_PROVIDERS.includes(link.provider) ? CONFIRMED : link.provider]
}

/** What the link at one provider says about the user's present e-mail. */
export interface Vouching {
  /** The provider of the link; {@link CONFIRMED} when the user confirms the e-mail. */
  provider: string
  /** Whether the provider vouches for this e-mail; false for a link that was removed. */
  vouches: boolean
  /** Whether the user had another e-mail before, for which other providers may have vouched. */
  isNewEmail: boolean
}

/** What a user says about their e-mail by confirming it. */
export const CONFIRMATION: Vouching = { provider: CONFIRMED, vouches: true, isNewEmail: false }

/** Whether the user has confirmed their e-mail, by what vouches for it. */
export function isConfirmed (vouchers: readonly string[] = []): boolean {
  return vouchers.includes(CONFIRMED)
}

/**
 * Returns the providers that vouch for a user's e-mail after one of the links was used, added or
 * removed. When none is left, the e-mail is no longer verified: the provider may have given the
 * address to another person.
 *
 * @param before undefined in rows of version 0.1.0, which noted that an e-mail is verified but not
 *   by which provider. Such an e-mail stays verified until a link is used, added or removed; then
 *   it is verified if that link vouches for it.
 */
export function vouchersAfter (
  before: readonly string[] = [],
  { provider, vouches, isNewEmail }: Vouching
): string[] {
  const present = isNewEmail ? [] : before
  if (!vouches) return present.filter(voucher => voucher !== provider)
  return present.includes(provider) ? [...present] : [...present, provider]
}

/** Returns the notes about a user after a {@link Vouching}. */
export function vouchedBy (extras: UserExtras, vouching: Vouching): UserExtras {
  const vouchers = vouchersAfter(extras.email_verified_by, vouching)
  return { ...extras, email_verified: vouchers.length > 0, email_verified_by: vouchers }
}

/** The present time in seconds since the epoch, as in the `iat` of tokens. */
export function secondsNow (): number {
  return Math.floor(Date.now() / 1000)
}

/**
 * Returns the notes about a user after all their sessions were ended. The time is never earlier
 * than before, so that a clock that was set back revives no token.
 */
export function endedSessions<E extends Pick<UserExtras, 'generation' | 'signed_out_at'>> (extras: E): E {
  const { generation = 0, signed_out_at: before = 0 } = extras
  return { ...extras, generation: generation + 1, signed_out_at: Math.max(before, secondsNow()) }
}

/** Whether a user has the generation that is expected of them; undefined for any. */
export function isAtGeneration (expected: number | undefined, { generation = 0 }: Pick<User, 'generation'>): boolean {
  return expected === undefined || expected === generation
}

/** Whether a proof still holds for a user: see {@link EmailProof}. */
export function holds ({ email, generation }: EmailProof, user: Pick<User, 'email' | 'generation'>): boolean {
  return user.email === email && isAtGeneration(generation, user)
}

/** What the identity claims of a link at `local` are made of. */
export interface LocalAccount {
  userId: string
  email: string
  name: string | null
  /** Whether the user has confirmed the e-mail. */
  isConfirmed: boolean
}

/** The identity claims of a link at `local` that is made with a user's first password. */
export function localClaims ({ userId, email, name, isConfirmed }: LocalAccount): IdentityClaims {
  return { sub: userId, email, ...(isConfirmed && { email_verified: true }), ...(name !== null && { name }) }
}

/** The identity claims of a link at `local` after the user has confirmed its address. */
export function confirmedClaims (claims: IdentityClaims, email: string): IdentityClaims {
  return { ...claims, email, email_verified: true }
}

/** A text that each text with a prefix is less than, compared by code points. */
export function endOfPrefix (prefix: string): string {
  return `${prefix}\u{10ffff}`
}
