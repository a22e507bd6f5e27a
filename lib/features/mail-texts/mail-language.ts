import type { LinkMailKind, Mail } from '../../core/mail.js'

/** What a mail of a kind says. */
export interface MailWords {
  /** The subject, to which the name of the application is added, and the title of the HTML. */
  readonly subject: string
  /** One paragraph, which clients list beside the subject; links, codes and times follow it. */
  readonly text: string
}

/** What a mail says whose link its reader follows. */
export interface LinkMailWords extends MailWords {
  /** The button that leads to the link, in HTML. */
  readonly button: string
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
  /** What is before the link, below the button. */
  readonly copyLink: string
  /** How long a link or a code works: `{time}` is a duration. */
  readonly lasts: string
  /** What readers do who did not ask for the link or the code. */
  readonly ignore: string
  /** What is before the browser, the time and the place of the request. */
  readonly origin: string
  /** The browser of the request, `{device}`, such as Firefox · Windows. */
  readonly browser: string
  /** In place of `{device}`. */
  readonly unknownBrowser: string
  /** When the request came, `{time}`. */
  readonly time: string
  /** Where it came from, `{place}`, as the option `place` names it. */
  readonly place: string
  /** What is before the link to the page of the account. */
  readonly account: string
  /** Why the mail came: its recipient `{to}`, and `{name}`, the application. */
  readonly reason: string
  /** What is before the option `support`. */
  readonly support: string
  /** What each kind says. */
  readonly kinds: Readonly<Record<LinkMailKind, LinkMailWords> & Record<Exclude<Mail['kind'], LinkMailKind>, MailWords>>
}
