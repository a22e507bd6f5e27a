import type { Mail, SendMail } from '../core/mail.js'

const DEFAULT_TIMEOUT_MS = 5000

/** A mail of one kind: only the kinds with a link have `url` and `token`. */
export type MailOf<Kind extends Mail['kind']> = MailWith<Kind, Mail> & OfKind<Kind>

type MailWith<Kind, SomeMail> = SomeMail extends Mail ? Kind extends SomeMail['kind'] ? SomeMail : never : never

/** Narrows a mail to one kind. */
export interface OfKind<Kind extends Mail['kind']> {
  /** The kind. */
  kind: Kind
}

/** How long {@link Mailbox.next} waits. */
export interface NextMailOptions {
  /** Milliseconds to wait for a mail that has not arrived; default 5000. */
  timeout?: number | undefined
}

/** The mails that an application under test has sent. */
export interface Mailbox {
  /** For the option `sendMail` of the `LocalIdentityProvider`. */
  readonly sendMail: SendMail
  /** All mails, those that were read too, the oldest first. */
  readonly all: readonly Mail[]
  /**
   * Reads a mail, and waits for it if it has not arrived: mails are sent after the answer.
   *
   * @param kind default: any
   * @returns the oldest mail of this kind that was not read yet
   * @throws Error when the time is over; it names the mails that have arrived
   */
  next<Kind extends Mail['kind']> (kind?: Kind, options?: NextMailOptions): Promise<MailOf<Kind>>
}

/**
 * Makes a mailbox that receives the mails of an application.
 *
 * @example
 * ```ts
 * const mails = mailbox()
 * const local = new LocalIdentityProvider({ sendMail: mails.sendMail })
 * // … the application asks for a new password
 * const { token } = await mails.next('reset-password')
 * ```
 */
export function mailbox (): Mailbox {
  const all: Mail[] = []
  const unread = new Set<Mail>()
  /** Calls of `next` that wait: each is asked whether it takes a mail. */
  const readers = new Set<(mail: Mail) => boolean>()

  return {
    all,
    sendMail (mail) {
      all.push(mail)
      const isTaken = Array.from(readers).some(takes => takes(mail))
      if (!isTaken) unread.add(mail)
    },
    next (kind, { timeout = DEFAULT_TIMEOUT_MS } = {}) {
      return new Promise((resolve, reject) => {
        const takes = (mail: Mail): boolean => {
          if (!isOf(mail, kind)) return false
          unread.delete(mail)
          readers.delete(takes)
          clearTimeout(timer)
          resolve(mail)
          return true
        }
        const timer = setTimeout(() => {
          readers.delete(takes)
          const arrived = all.map(mail => `${mail.kind} to ${mail.to}${unread.has(mail) ? '' : ' (read)'}`)
          reject(new Error(`no ${kind === undefined ? '' : `${kind} `}mail arrived within ${timeout} ms; ` +
            `in the mailbox: ${arrived.join(', ') || 'nothing'}`))
        }, timeout)
        if (!Array.from(unread).some(takes)) readers.add(takes)
      })
    }
  }
}

function isOf<Kind extends Mail['kind']> (mail: Mail, kind: Kind | undefined): mail is MailOf<Kind> {
  return kind === undefined || mail.kind === kind
}
