import type { FastifyInstance } from 'fastify'
import type { Mail, SendMail } from 'fastify-svc-auth'
import { textOf } from './mails.js'
import { mailboxPage } from './pages/mailbox.js'
import { sendPage } from './site.js'

/** A mail in the mailbox. */
export interface ReceivedMail {
  mail: Mail
  at: Date
}

const MAX_MAILS = 100

/**
 * Keeps mails in memory, the newest ones, in place of sending them. Their links sign in and change
 * passwords, so this is for development.
 */
export class DevMailbox {
  readonly #mails: ReceivedMail[] = []

  constructor () {
    if (process.env.NODE_ENV === 'production') {
      throw new Error('the mailbox shows the mails of all users; it does not run with NODE_ENV=production')
    }
  }

  /** The mails, the newest first. */
  get mails (): readonly ReceivedMail[] {
    return this.#mails
  }

  /** For the option `sendMail`. */
  readonly sendMail: SendMail = mail => {
    this.#mails.unshift({ mail, at: new Date() })
    this.#mails.splice(MAX_MAILS)
    // Without the link, which is a credential.
    console.log(`Mail to ${mail.to}, to read at /mailbox: ${textOf(mail).subject}`)
  }
}

/** Mounts the page that shows the mailbox. */
export function mountMailbox (app: FastifyInstance, mailbox: DevMailbox): void {
  app.get('/mailbox', async ({ principal }, reply) => sendPage(reply, mailboxPage({ principal, mails: mailbox.mails })))
}
