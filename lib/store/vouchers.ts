/** What the link at one provider says about the e-mail that the user has now. */
export interface Vouching {
  /** The provider of the link. */
  provider: string
  /** Whether the provider vouches for this e-mail; false for a link that was removed. */
  vouches: boolean
  /** Whether the user had another e-mail before, for which others may have vouched. */
  isNewEmail: boolean
}

/**
 * The providers that vouch for a user's e-mail once one of the links was used, added or removed. When none is left, the e-mail is
 * not verified any more: the provider may have given the address to another person.
 *
 * @param before undefined in rows of version 0.1.0, which noted that an e-mail is verified but not by which provider. Such an
 *   e-mail stays verified until a link is used, added or removed; from then on it is verified if that link vouches for it.
 */
export function vouchersAfter (before: readonly string[] = [], { provider, vouches, isNewEmail }: Vouching): string[] {
  const others = isNewEmail ? [] : before.filter(voucher => voucher !== provider)
  return vouches ? [...others, provider] : others
}
