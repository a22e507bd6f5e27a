import { displayName, isText } from '../../claims.js'
import { contactUrl, isContact, isHttpsUrl } from '../../core/contact.js'
import { deviceOf } from '../../core/device.js'
import { preferredTexts } from '../../core/languages.js'
import type { Mail } from '../../core/mail.js'
import { filled, timeIn } from '../../core/pages/elements.js'
import { shownEmail } from '../../email.js'
import {
  type ChecksOf, callable, checkedOptions, hasTextsOf, matching, mustBe, optional, table, wholeNumber
} from '../../option-checks.js'
import { ar } from './languages/ar.js'
import { de } from './languages/de.js'
import { en } from './languages/en.js'
import { es } from './languages/es.js'
import { fr } from './languages/fr.js'
import { ja } from './languages/ja.js'
import { type MailLook, type Part, type Words, mailDocument } from './mail-document.js'
import type { MailLanguage } from './mail-language.js'

/** The picture of the application. */
export interface MailLogo {
  /** An `https:` URL. Some clients show it only when the reader asks for it. */
  url: string
  /** How wide it is shown, in pixels, at most 320. */
  width: number
  /** How high it is shown, in pixels, at most 120. */
  height: number
  /** What stands in its place where it is not shown; default the name of the application. */
  alt?: string | undefined
}

/** Options of {@link mailTexts}. */
export interface MailTextsOptions {
  /** The name of the application, in each subject. */
  name: string
  /**
   * The languages of the mails; default all that are shipped. Of several, the `Accept-Language` of
   * the request chooses, and the first one is for all others, and for mails without a request.
   */
  languages?: readonly MailLanguage[] | undefined
  /** The color of the button, as `#4f46e5`, the default. Its text is black or white by itself. */
  brand?: string | undefined
  /** In place of the name above the mail. It has to be seen on white and on black. */
  logo?: MailLogo | undefined
  /** Who sends the mails, in one line: the company and its postal address. */
  address?: string | undefined
  /** Where the reader asks questions: an e-mail address, or an `https:` URL. */
  support?: string | undefined
  /** Returns the place of an IP address in words, such as `Berlin`; null where it is not known. */
  place?: ((ip: string) => string | null) | undefined
}

/** What a mail says, as nodemailer and others name it. */
export interface MailText {
  /** One line, without the code. */
  readonly subject: string
  /** The mail in plain text. */
  readonly text: string
  /** The same as an HTML document, light and dark, without a picture but the logo. */
  readonly html: string
}

const DAY_S = 24 * 60 * 60
/** What the lists of clients have room for. */
const MAX_PREHEADER = 90

const isLine = (value: unknown): value is string => isText(value) && displayName(value) === value

const OPTIONS = {
  name: mustBe("the name of the application, such as 'Shop', in one line", isLine),
  languages: optional(
    mustBe('a list of languages, such as [en, de] of fastify-svc-auth/mails, or of your own texts', areLanguages),
    [en, de, fr, es, ar, ja]
  ),
  brand: optional(matching("a color of six digits, such as '#4f46e5'", /^#[\da-f]{6}$/i), '#4f46e5'),
  logo: optional(table({
    url: mustBe('an https: URL', isHttpsUrl),
    width: wholeNumber(1, 320, 'pixels'),
    height: wholeNumber(1, 120, 'pixels'),
    alt: optional(mustBe('a text in one line', isLine))
  })),
  address: optional(mustBe("the sender and the postal address, such as 'Shop GmbH, Berlin', in one line", isLine)),
  support: optional(mustBe('an e-mail address or an https: URL', isContact)),
  place: optional(callable<(ip: string) => string | null>('(ip) => place'))
} satisfies ChecksOf<MailTextsOptions>

/** The kinds whose request is not one that the reader knows: of the support, of a client. */
const OF_OTHERS: ReadonlySet<Mail['kind']> = new Set(['impersonated', 'token-replayed'])

/**
 * Makes the function that writes the mails, for the option `sendMail` of the local identity
 * provider: what it returns is the text alone, and the application delivers it.
 *
 * @throws OptionsError naming the option
 *
 * @example
 * ```ts
 * import { mailTexts } from 'fastify-svc-auth/mails'
 *
 * const textOf = mailTexts({ name: 'Shop' })
 * const local = new LocalIdentityProvider({
 *   sendMail: async mail => { await transport.sendMail({ to: mail.to, ...textOf(mail) }) }
 * })
 * ```
 */
export function mailTexts (options: MailTextsOptions): (mail: Mail) => MailText {
  const checked = checkedOptions('mailTexts', options, OPTIONS, "{ name: 'Shop' }")
  const { name, languages, brand, logo, address } = checked
  const chosen: typeof languages = [...languages]
  const look: MailLook = { name, brand, address, logo: logo && { alt: name, ...logo } }
  return mail => {
    const texts = preferredTexts(chosen, mail.about.language ?? undefined)
    const { language, direction, kinds } = texts
    const { subject: title, text } = kinds[mail.kind]
    const subject = `${title} - ${name}`
    const [parts, footer] = [partsOf(mail, texts, checked), footerOf(mail, texts, checked)]
    const preheader = preheaderOf(filled(text, valuesOf(mail)))
    return {
      subject,
      text: plainText([...parts, ...footer], look),
      html: mailDocument({ language, direction, subject: title, preheader, parts, footer }, look)
    }
  }
}

function partsOf (mail: Mail, texts: MailLanguage, { place }: Pick<MailTextsOptions, 'place'>): Part[] {
  const { kind, name, code, expiresIn, accountUrl, about } = mail
  const { language, kinds } = texts
  const parts: Part[] = [
    name === null ? { words: texts.hello } : { words: texts.helloName, values: { name } },
    { words: kinds[kind].text, values: valuesOf(mail) }
  ]
  if (mail.url !== null) parts.push({ link: mail.url, before: texts.copyLink, button: kinds[mail.kind].button })
  if (code !== null) parts.push({ code })
  if (expiresIn !== null) {
    const isShort = expiresIn < DAY_S
    const time = timeIn(language, expiresIn / (isShort ? 60 : DAY_S), isShort ? 'minute' : 'day')
    parts.push({ words: texts.lasts, values: { time } })
    // The kind with a code alone says itself what to do.
    if (mail.url !== null) parts.push({ words: texts.ignore })
  }
  if (about.requestId !== null && !OF_OTHERS.has(kind)) {
    // The header is text of the client; the device is one of a few words.
    const lines: Words[] = [
      { words: texts.origin },
      { words: texts.browser, values: { device: deviceOf(about.userAgent) ?? texts.unknownBrowser } },
      { words: texts.time, values: { time: now(language) } }
    ]
    const from = displayName((about.ip !== null && place?.(about.ip)) || '')
    if (from !== '') lines.push({ words: texts.place, values: { place: from } })
    parts.push({ lines })
  }
  if (accountUrl !== null) parts.push({ link: accountUrl, before: texts.account })
  return parts
}

function footerOf (
  { to }: Mail, texts: MailLanguage, { name, support }: Pick<MailTextsOptions, 'name' | 'support'>
): Part[] {
  const reason = { words: texts.reason, values: { to: shownEmail(to), name } }
  if (support === undefined) return [reason]
  return [reason, { link: contactUrl(support), before: texts.support, shown: support }]
}

/** What the paragraph of a kind names. */
function valuesOf (mail: Mail): Readonly<Record<string, string>> {
  return mail.kind === 'domain-lapsed' ? { domain: mail.domain } : {}
}

/** The sentences that fit into the list of a client, else as many words. */
function preheaderOf (text: string): string {
  if (text.length <= MAX_PREHEADER) return text
  const start = text.slice(0, MAX_PREHEADER - 1)
  const sentence = Math.max(start.lastIndexOf('. '), start.lastIndexOf('。'))
  if (sentence > 0) return start.slice(0, sentence + 1)
  const word = start.lastIndexOf(' ')
  return `${(word > 0 ? start.slice(0, word) : start).toWellFormed()}…`
}

function now (language: string): string {
  const format = new Intl.DateTimeFormat(language, { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' })
  return `${format.format(new Date())} (UTC)`
}

function plainText (parts: readonly Part[], { name, address }: MailLook): string {
  // Two hyphens and a blank begin the signature (RFC 3676 section 4.3).
  const signature = ['-- ', name, ...(address === undefined ? [] : [address]), ''].join('\n')
  return [...parts.map(inText), signature].join('\n\n')
}

function inText (part: Part): string {
  if ('link' in part) {
    const { link, before, shown = link, button } = part
    return button === undefined ? `${before}\n${shown}` : link
  }
  if ('code' in part) return part.code
  return 'words' in part ? filled(part.words, part.values ?? {}) : part.lines.map(inText).join('\n')
}

/** Whether each language has its texts: a caller without types may have forgotten some. */
function areLanguages (value: unknown): value is readonly [MailLanguage, ...MailLanguage[]] {
  return Array.isArray(value) && value.length > 0 && value.every(texts => hasTextsOf(texts, en))
}
