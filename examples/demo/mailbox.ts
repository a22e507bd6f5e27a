import type { FastifyInstance } from 'fastify'
import type { Mail, SendMail } from 'fastify-svc-auth'
import { html } from './html.js'
import { TEXTS } from './mails.js'
import { sendPage } from './site.js'

const MAX_MAILS = 100

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
    console.log(`Mail to ${mail.to}, to read at /mailbox: ${TEXTS[mail.kind][0]}`)
  }
}

/** Mounts the page that shows the mails of all users. */
export function mountMailbox (app: FastifyInstance, mailbox: DevMailbox): void {
  app.get('/mailbox', async (_request, reply) => sendPage(reply, 'Mailbox', html`
    <p>The mails of this demonstration come here, whatever their address. Reload the page for new ones.</p>
    ${mailbox.mails.length === 0 && html`<p>There are none yet.</p>`}
    ${mailbox.mails.map(({ at, mail: { kind, to, url, code, expiresIn } }) => {
      const [subject, text] = TEXTS[kind]
      return html`
    <article>
      <h2>${subject}</h2>
      <p>To ${to} <small>${ago(at)}</small></p>
      <p>${text}</p>
      ${url !== null && html`
        <p><a href="${url}" rel="noreferrer">${url}</a></p>
        <p><small>The link works once, for ${duration(expiresIn)}.</small></p>`}
      ${code !== null && html`
        <p><code>${code}</code></p>
        <p><small>The code works once, for ${duration(expiresIn)}.</small></p>`}
    </article>`
    })}`))
}

/** A time in words: `5 minutes ago`. */
function ago (at: number): string {
  const seconds = (Date.now() - at) / 1000
  const [unit, length] = UNITS.find(([, length]) => seconds >= length) ?? ['minute', 60]
  return seconds < 60 ? 'just now' : RELATIVE.format(-Math.floor(seconds / length), unit)
}

/** A number of seconds in words: `1 day`. */
function duration (seconds: number): string {
  const [unit, length] = UNITS.find(([, length]) => seconds >= length) ?? ['minute', 60]
  return new Intl.NumberFormat('en', { style: 'unit', unit, unitDisplay: 'long' }).format(Math.round(seconds / length))
}
