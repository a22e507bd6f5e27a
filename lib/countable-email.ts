import { canonicalEmail } from './email.js'

/** How the mailboxes of a provider are spelt. */
interface Spelling {
  readonly domains: readonly string[]
  /** What begins a tag, which the provider ignores with all that follows. */
  readonly tag: '+' | '-'
  /** Characters of the local part that it ignores. */
  readonly ignored?: RegExp
  /** Whether one mailbox has the address at each of the domains, whose first one counts. */
  readonly isOneMailbox?: boolean
}

const SPELLINGS: readonly Spelling[] = [
  { domains: ['gmail.com', 'googlemail.com'], tag: '+', ignored: /\./g, isOneMailbox: true },
  { domains: ['outlook.com', 'hotmail.com', 'live.com', 'msn.com'], tag: '+' },
  { domains: ['icloud.com', 'me.com', 'mac.com'], tag: '+', isOneMailbox: true },
  {
    domains: ['proton.me', 'protonmail.com', 'pm.me', 'protonmail.ch'], tag: '+', ignored: /[._-]/g, isOneMailbox: true
  },
  { domains: ['fastmail.com', 'fastmail.fm'], tag: '+' },
  { domains: ['yahoo.com', 'ymail.com', 'rocketmail.com'], tag: '-' }
]

/** Providers that deliver `any@ada.fastmail.com` to `ada@fastmail.com`. */
const OF_SUBDOMAIN = /^(?<owner>[^.]+)\.(?<domain>fastmail\.(?:com|fm))$/

/**
 * Returns the form of an e-mail address by which an application counts, such as sign-ups or trials:
 * without tags, and without the dots and the like that the provider of the mailbox ignores. Null
 * where {@link canonicalEmail} is null. **Never an identity**: do not store it as the address of a
 * user, look users up by it, or send mail to it. The table of providers changes with versions, and
 * at a company's mail server two spellings may be two people.
 *
 * @example
 * ```ts
 * countableEmail('A.da+trial2@googlemail.com') // 'ada@gmail.com'
 * ```
 */
export function countableEmail (email: string): string | null {
  const canonical = canonicalEmail(email)
  if (canonical === null) return null
  const [typedLocal = '', typedDomain = ''] = canonical.split('@')
  const { owner: local = typedLocal, domain = typedDomain } = OF_SUBDOMAIN.exec(typedDomain)?.groups ?? {}
  const spelling = SPELLINGS.find(({ domains }) => domains.includes(domain))
  if (spelling === undefined) return canonical
  const { tag, ignored = /(?!)/, isOneMailbox = false, domains: [first = domain] } = spelling
  const untagged = local.split(tag, 1).join().replace(ignored, '')
  // Nothing is left of an address that the provider does not have.
  return untagged === '' ? canonical : `${untagged}@${isOneMailbox ? first : domain}`
}
