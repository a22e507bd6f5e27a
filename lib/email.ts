import { domainToASCII } from 'node:url'

const MAX_LENGTH = 254

/** Controls, separators, halves of surrogate pairs, private and unassigned code points, and all that is drawn as nothing (zero width, variation selectors, fillers). */
const INVISIBLE = /[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/u

/** Characters that separate or quote addresses in a header (RFC 5322 section 3.4): one field holds one plain address. U+FFFD stands for what could not be decoded. */
const STRUCTURAL = /[,;:<>()[\]"\\\ufffd]/

/** What would end a host name in a URL, or be decoded there: the conversion to ASCII would silently make another domain of it. */
const NOT_IN_DOMAIN = /[/?#%]/

/** What a URL takes for an IPv4 address; the conversion has turned its other spellings into this one. */
const NUMERIC_DOMAIN = /(^|\.)\d+$/

/**
 * The canonical form of an e-mail address: trimmed, NFC, lower case, the domain in its ASCII form, so that one mailbox has one spelling.
 *
 * @returns null when it is not one plain address of at most 254 characters
 */
export function canonicalEmail (input: string): string | null {
  if (input.length > MAX_LENGTH * 4) return null
  const email = input.trim().normalize('NFC').toLowerCase().normalize('NFC')
  if (email.length > MAX_LENGTH || INVISIBLE.test(email) || STRUCTURAL.test(email)) return null
  // Characters with a compatibility form (U+FF20 for @, ligatures) look like other addresses; they are refused, not folded.
  if (email.normalize('NFKC') !== email) return null

  const [local, domain, ...more] = email.split('@')
  if (local === undefined || local === '' || domain === undefined || more.length > 0) return null
  if (NOT_IN_DOMAIN.test(domain)) return null
  const asciiDomain = domainToASCII(domain)
  if (asciiDomain === '' || NUMERIC_DOMAIN.test(asciiDomain) || asciiDomain.split('.').includes('')) return null

  const canonical = `${local}@${asciiDomain}`
  return canonical.length > MAX_LENGTH ? null : canonical
}
