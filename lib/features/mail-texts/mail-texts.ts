import { displayName, isText } from '../../claims.js'
import { deviceOf } from '../../core/device.js'
import { preferredTexts } from '../../core/languages.js'
import type { Mail } from '../../core/mail.js'
import { type Content, type Html, filled, html, sentence, timeIn } from '../../core/pages/elements.js'
import { type ChecksOf, checkedOptions, hasTextsOf, mustBe, optional } from '../../option-checks.js'
import { de } from './languages/de.js'
import { en } from './languages/en.js'
import { es } from './languages/es.js'
import { fr } from './languages/fr.js'
import type { MailLanguage } from './mail-language.js'

/** Options of {@link mailTexts}. */
export interface MailTextsOptions {
  /** The name of the application, in each subject. */
  name: string
  /**
   * The languages of the mails; default all that are shipped. Of several, the `Accept-Language` of
   * the request chooses, and the first one is for all others, and for mails without a request.
   */
  languages?: readonly MailLanguage[] | undefined
}

/** What a mail says, as nodemailer and others name it. */
export interface MailText {
  /** One line, without the code. */
  readonly subject: string
  /** The mail in plain text. */
  readonly text: string
  /** The same as an HTML document, without colours and pictures. */
  readonly html: string
}

const DAY_S = 24 * 60 * 60

const OPTIONS = {
  name: mustBe("the name of the application, such as 'Shop', in one line",
    (value): value is string => isText(value) && displayName(value) === value),
  languages: optional(
    mustBe('a list of languages, such as [en, de] of fastify-svc-auth/mails, or of your own texts', areLanguages),
    [en, de, fr, es]
  )
} satisfies ChecksOf<MailTextsOptions>

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
  const { name, languages } = checkedOptions('mailTexts', options, OPTIONS, "{ name: 'Shop' }")
  const chosen: typeof languages = [...languages]
  return mail => {
    const texts = preferredTexts(chosen, mail.about.language ?? undefined)
    const subject = `${texts.kinds[mail.kind].subject} - ${name}`
    const parts = partsOf(mail, texts)
    return { subject, text: plainText(parts, name), html: document(parts, { texts, subject, name }) }
  }
}

/** A part of a mail, in order: however a mail looks, it says this. */
type Part =
  { readonly words: string, readonly values?: Readonly<Record<string, string>> } |
  { readonly link: string } |
  { readonly code: string }

function partsOf (mail: Mail, texts: MailLanguage): Part[] {
  const { kind, name, url, code, expiresIn, accountUrl, about } = mail
  const { language, kinds } = texts
  const parts: Part[] = [
    name === null ? { words: texts.hello } : { words: texts.helloName, values: { name } },
    { words: kinds[kind].text, ...(mail.kind === 'domain-lapsed' && { values: { domain: mail.domain } }) }
  ]
  if (url !== null) parts.push({ link: url })
  if (code !== null) parts.push({ code })
  if (expiresIn !== null) {
    const isShort = expiresIn < DAY_S
    const time = timeIn(language, expiresIn / (isShort ? 60 : DAY_S), isShort ? 'minute' : 'day')
    parts.push({ words: texts.lasts, values: { time } })
    // The kind with a code alone says itself what to do.
    if (url !== null) parts.push({ words: texts.ignore })
  }
  if (kind === 'new-browser') {
    // The header is text of the client; the device is one of a few words.
    parts.push({ words: texts.browser, values: { device: deviceOf(about.userAgent) ?? texts.unknownBrowser } })
    parts.push({ words: texts.time, values: { time: now(language) } })
  }
  if (accountUrl !== null) parts.push({ words: texts.account }, { link: accountUrl })
  return parts
}

function now (language: string): string {
  const format = new Intl.DateTimeFormat(language, { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' })
  return `${format.format(new Date())} (UTC)`
}

function plainText (parts: readonly Part[], name: string): string {
  const lines = parts.map(part => {
    if ('link' in part) return part.link
    return 'code' in part ? part.code : filled(part.words, part.values ?? {})
  })
  // Two hyphens and a blank begin the signature (RFC 3676 section 4.3).
  return [...lines, `-- \n${name}\n`].join('\n\n')
}

/** HTML without tables: mail clients keep paragraphs and links, and their own colours. */
function document (
  parts: readonly Part[], { texts, subject, name }: { texts: MailLanguage, subject: string, name: string }
): string {
  const { language, direction } = texts
  const made: Html = html`<!doctype html>
<html lang="${language}" dir="${direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>${subject}</title>
</head>
<body>
<div lang="${language}" dir="${direction}" style="max-width: 35em; font: 16px/1.5 sans-serif">
${parts.map(part => html`<p>${shown(part)}</p>\n`)}<p>${name}</p>
</div>
</body>
</html>
`
  return made.source
}

function shown (part: Part): Content {
  if ('link' in part) return html`<a href="${part.link}">${part.link}</a>`
  if ('code' in part) return html`<strong style="font: bold 28px monospace" dir="ltr">${part.code}</strong>`
  return sentence(part.words, part.values ?? {})
}

/** Whether each language has its texts: a caller without types may have forgotten some. */
function areLanguages (value: unknown): value is readonly [MailLanguage, ...MailLanguage[]] {
  return Array.isArray(value) && value.length > 0 && value.every(texts => hasTextsOf(texts, en))
}
