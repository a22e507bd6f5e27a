import type { FastifyInstance } from 'fastify'
import type { Mail, SendMail } from 'fastify-svc-auth'
import { html } from './html.js'
import { TEXTS } from './mails.js'
import { sendPage } from './site.js'

const MAX_MAILS = 100

/**
 * Keeps mails in memory, the newest ones, in place of sending them. Their links sign in and change
 * passwords, so this is for development.
 */
export class DevMailbox {
  readonly #mails: Mail[] = []

  constructor () {
    if (process.env.NODE_ENV === 'production') {
      throw new Error('the mailbox shows the mails of all users; it does not run with NODE_ENV=production')
    }
  }

  /** The mails, the newest first. */
  get mails (): readonly Mail[] {
    return this.#mails
  }

  /** For the option `sendMail`. */
  readonly sendMail: SendMail = mail => {
    this.#mails.unshift(mail)
    this.#mails.splice(MAX_MAILS)
    // Without the link, which is a credential.
    console.log(`Mail to ${mail.to}, to read at /mailbox: ${TEXTS[mail.kind][0]}`)
  }
}

/** Mounts the page that shows the mails of all users. */
export function mountMailbox (app: FastifyInstance, mailbox: DevMailbox): void {
  app.get('/mailbox', async (_request, reply) => sendPage(reply, 'Mailbox', html`
    <p>The mails of this demonstration come here, whatever their address. Reload the page for new ones.</p>
    ${mailbox.mails.map(({ kind, to, url, code, expiresIn }) => {
      const [subject, text] = TEXTS[kind]
      return html`
    <article>
      <h2>${subject}</h2>
      <p>To ${to}</p>
      <p>${text}</p>
      ${url !== null && html`
        <p><a href="${url}" rel="noreferrer">${url}</a></p>
        <p>The link works for ${expiresIn / 60} minutes, and once.</p>`}
      ${code !== null && html`
        <p><code>${code}</code></p>
        <p>The code works for ${expiresIn / 60} minutes, and once.</p>`}
    </article>`
    })}`))
}
