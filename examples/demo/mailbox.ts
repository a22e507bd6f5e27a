import type { FastifyInstance } from 'fastify'
import type { Mail, SendMail } from 'fastify-svc-auth'
import { mailTexts } from 'fastify-svc-auth/mails'
import { type Html, html } from './html.js'
import { sendPage } from './site.js'

const MAX_MAILS = 100

const textOf = mailTexts({ name: 'Demo' })

const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

/** The units of times, in seconds, the largest first. */
const UNITS = [['day', 86_400], ['hour', 3600], ['minute', 60]] as const

/**
 * Keeps mails in memory, the newest ones, in place of sending them. Their links sign in and change
 * passwords, so this is for development.
 */
export class DevMailbox {
  readonly #mails: Array<{ mail: Mail, at: number }> = []

  constructor () {
    if (process.env.NODE_ENV === 'production') {
      throw new Error('the mailbox shows the mails of all users; it does not run with NODE_ENV=production')
    }
  }

  /** The mails and when they came, the newest first. */
  get mails (): ReadonlyArray<{ mail: Mail, at: number }> {
    return this.#mails
  }

  /** For the option `sendMail`. */
  readonly sendMail: SendMail = mail => {
    this.#mails.unshift({ mail, at: Date.now() })
    this.#mails.splice(MAX_MAILS)
    // Without the link, which is a credential.
    console.log(`Mail to ${mail.to}, to read at /mailbox: ${textOf(mail).subject}`)
  }
}

/** Mounts the page that shows the mails of all users. */
export function mountMailbox (app: FastifyInstance, mailbox: DevMailbox): void {
  app.get('/mailbox', async (_request, reply) => sendPage(reply, 'Mailbox', html`
    <p>The mails of this demonstration come here, whatever their address. Reload the page for new ones.</p>
    ${mailbox.mails.length === 0 && html`<p>There are none yet.</p>`}
    ${mailbox.mails.map(({ at, mail }) => {
      const { subject, text } = textOf(mail)
      return html`
    <article>
      <h2>${subject}</h2>
      <p>To ${mail.to} <small>${ago(at)}</small></p>
      ${text.trim().split('\n\n').map(line => html`<p>${shown(line, mail)}</p>`)}
    </article>`
    })}`))
}

/** A time in words: `5 minutes ago`. */
function ago (at: number): string {
  const seconds = (Date.now() - at) / 1000
  const [unit, length] = UNITS.find(([, length]) => seconds >= length) ?? ['minute', 60]
  return seconds < 60 ? 'just now' : RELATIVE.format(-Math.floor(seconds / length), unit)
}

/** A paragraph of a mail: its links can be followed, its code stands out. */
function shown (line: string, { url, code, accountUrl }: Mail): Html | string {
  if (line === url || line === accountUrl) return html`<a href="${line}" rel="noreferrer">${line}</a>`
  return line === code ? html`<code>${code}</code>` : line
}
