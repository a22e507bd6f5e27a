import { domainToASCII, domainToUnicode } from 'node:url'
import { AuthError } from './errors.js'

const MAX_LENGTH = 254

/** Normalisation leaves it as it is. */
const ASCII = /^[\0-\x7f]*$/

const INVISIBLE = /[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/u

/** What copying adds. */
const ADDED = /[\s\p{Cf}\p{Default_Ignorable_Code_Point}]/u

/** They separate or quote addresses in a header (RFC 5322 section 3.4); U+FFFD: invalid bytes. */
const STRUCTURAL = /[,;:<>()[\]"\\\ufffd]/

/**
 * What mail software interprets: an option of a command line, an encoded word (RFC 2047 section 2),
 * a route to another host, a command.
 */
const DANGEROUS_LOCAL_PART = /^-|=\?|[%|]/

/** They end a host name in a URL, or are decoded there: the conversion makes another domain. */
const NOT_IN_DOMAIN = /[/?#%]/

/** Latin letters with marks, after NFD. */
const LATIN = /^[a-z0-9\p{Mn}ßæœøþð-]+$/u

/** Letters of scripts that have none like Latin ones, unlike Cyrillic and Greek. */
const UNLIKE_LATIN =
  /^[\p{scx=Arab}\p{scx=Hebr}\p{scx=Deva}\p{scx=Thai}\p{scx=Hang}\p{scx=Han}\p{scx=Hira}\p{scx=Kana}]+$/u

/** A last label that a URL parser reads as part of an IPv4 address. */
const NUMERIC_DOMAIN = /(^|\.)\d+$/

/**
 * Returns the canonical form of an e-mail address, so that one mailbox has one spelling: trimmed,
 * NFC, lower case, and the domain in its ASCII form. Null for anything but one plain address of at
 * most 254 characters, and where NFKC makes another one: the Kelvin sign is not a spelling of `k`.
 *
 * @example
 * ```ts
 * canonicalEmail(' Ada@Bücher.example ') // 'ada@xn--bcher-kva.example'
 * ```
 */
export function canonicalEmail (input: string): string | null {
  if (input.length > MAX_LENGTH * 4) return null
  const trimmed = input.trim()
  if (!ASCII.test(trimmed) && !Array.from(trimmed).every(isStable)) return null
  const email = trimmed.normalize('NFC').toLowerCase().normalize('NFC')
  if (email.length > MAX_LENGTH || INVISIBLE.test(email) || STRUCTURAL.test(email)) return null

  const [local, domain, ...more] = email.split('@')
  if (local === undefined || local === '' || domain === undefined || more.length > 0) return null
  if (DANGEROUS_LOCAL_PART.test(local)) return null
  const asciiDomain = asciiOf(domain)
  if (asciiDomain === null) return null

  const canonical = `${local}@${asciiDomain}`
  return canonical.length > MAX_LENGTH ? null : canonical
}

/**
 * Returns the canonical form of an address that a user typed or copied, without the invisible and
 * directional characters around it. Not for the address of a provider: it would be another mailbox.
 */
export function typedEmail (input: string): string | null {
  const characters = Array.from(input)
  const isTyped = (character: string): boolean => !ADDED.test(character)
  return canonicalEmail(characters.slice(characters.findIndex(isTyped), characters.findLastIndex(isTyped) + 1).join(''))
}

/** Like {@link typedEmail}; refuses another text as `invalid_email`. */
export function checkedEmail (input: string): string {
  const email = typedEmail(input)
  if (email === null) throw new AuthError('invalid_email')
  return email
}

/**
 * Writes the domain of an address as people do, `bücher.example` for `xn--bcher-kva.example`, but
 * not where its letters could be taken for others. Other texts stay as they are.
 *
 * @see UTS #39 section 4
 */
export function shownEmail (email: string): string {
  const start = email.lastIndexOf('@') + 1
  const labels = email.slice(start).split('.').map(label => {
    const unicode = domainToUnicode(label)
    // A mark that no letter is composed with may be unseen, such as a second dot of an `i`.
    const isLatin = LATIN.test(unicode.normalize('NFD')) && !/\p{M}/u.test(unicode)
    return isLatin || UNLIKE_LATIN.test(unicode) ? unicode : label
  })
  return start === 0 ? email : email.slice(0, start) + labels.join('.')
}

/** Whether normalisation leaves a code point as it is, apart from composing it with others. */
function isStable (codePoint: string): boolean {
  return codePoint.normalize('NFKC') === codePoint
}

/** The ASCII form of a domain (UTS #46); null when it is not a host name. */
function asciiOf (domain: string): string | null {
  if (NOT_IN_DOMAIN.test(domain)) return null
  const ascii = domainToASCII(domain)
  if (ascii === '' || NUMERIC_DOMAIN.test(ascii)) return null
  return ascii.split('.').every(isLabel) ? ascii : null
}

/** Node.js before 24 refuses `xn--` labels that encode nothing, later versions do not. */
function isLabel (label: string): boolean {
  if (!label.startsWith('xn--')) return label !== ''
  const unicode = domainToUnicode(label)
  return unicode !== label && domainToASCII(unicode) === label
}

/** What is said of a valid address that a link was not sent to. */
export const NOT_THIS_ADDRESS = 'This is not the address that the link was sent to.'
