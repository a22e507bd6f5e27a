import { canonicalEmail } from '../email.js'
import { AuthError } from '../errors.js'
import type { Link, NewUser } from './store.js'

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
  const emails = isLocal ? [email, link.subject] : [email]
  if (emails.some(email => email !== null && canonicalEmail(email) !== email)) {
    throw new AuthError('invalid_email', {
      message: 'The store takes e-mails in the form that canonicalEmail returns; pass the e-mail through it.'
    })
  }
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

/** What the link at one provider says about the user's present e-mail. */
export interface Vouching {
  /** The provider of the link. */
  provider: string
  /** Whether the provider vouches for this e-mail; false for a link that was removed. */
  vouches: boolean
  /** Whether the user had another e-mail before, for which other providers may have vouched. */
  isNewEmail: boolean
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
  const others = isNewEmail ? [] : before.filter(voucher => voucher !== provider)
  return vouches ? [...others, provider] : others
}
