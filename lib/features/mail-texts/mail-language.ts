import type { Mail } from '../../core/mail.js'

/** What a mail of a kind says. */
export interface MailWords {
  /** The subject, to which the name of the application is added. */
  readonly subject: string
  /** One paragraph; links, codes and times follow it. */
  readonly text: string
}

/**
 * What the mails say in one language: one without words for a kind does not compile. Names in
 * braces are replaced and must stay.
 */
export interface MailLanguage {
  /** The language tag (BCP 47). */
  readonly language: string
  /** The direction of the script. */
  readonly direction: 'ltr' | 'rtl'
  /** The first line, to a user whose name is not known. */
  readonly hello: string
  /** The first line, with `{name}`. */
  readonly helloName: string
  /** How long a link or a code works: `{time}` is a duration. */
  readonly lasts: string
  /** What readers do who did not ask for the link or the code. */
  readonly ignore: string
  /** The browser of a sign-in, `{device}`, such as Firefox · Windows. */
  readonly browser: string
  /** In place of `{device}`. */
  readonly unknownBrowser: string
  /** When the user signed in, `{time}`. */
  readonly time: string
  /** What is before the link to the page of the account. */
  readonly account: string
  /** What each kind says. */
  readonly kinds: Readonly<Record<Mail['kind'], MailWords>>
}
