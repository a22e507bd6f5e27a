import type { FastifyInstance } from 'fastify'
import type { Mail, SendMail } from 'fastify-svc-auth'
import { type MailText, mailTexts } from 'fastify-svc-auth/mails'
import { type Html, html } from './html.js'
import { sendPage } from './site.js'

const MAX_MAILS = 100

const textOf = mailTexts({ name: 'Demo' })

/** Mails have their style in their elements, and at most a logo. */
const MAIL_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src https:; base-uri 'none'; frame-ancestors 'none'"

const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

/** The units of times, in seconds, the largest first. */
const UNITS = [['day', 86_400], ['hour', 3600], ['minute', 60]] as const

interface KeptMail extends MailText {
  readonly id: number
  readonly mail: Mail
  readonly at: number
}

/**
 * Keeps mails in memory, the newest ones, in place of sending them. Their links sign in and change
 * passwords, so this is for development.
 */
export class DevMailbox {
  readonly #mails: KeptMail[] = []

  constructor () {
    if (process.env.NODE_ENV === 'production') {
      throw new Error('the mailbox shows the mails of all users; it does not run with NODE_ENV=production')
    }
  }

  /** The mails and when they came, the newest first. */
  get mails (): readonly KeptMail[] {
    return this.#mails
  }

  /** For the option `sendMail`. */
  readonly sendMail: SendMail = mail => {
    const [newest] = this.#mails
    const written = textOf(mail)
    this.#mails.unshift({ id: (newest?.id ?? 0) + 1, mail, at: Date.now(), ...written })
    this.#mails.splice(MAX_MAILS)
    // Without the link, which is a credential.
    console.log(`Mail to ${mail.to}, to read at /mailbox: ${written.subject}`)
  }
}

/** Mounts the page that shows the mails of all users, and each of them as mail programs show it. */
export function mountMailbox (app: FastifyInstance, mailbox: DevMailbox): void {
  app.get('/mailbox', async (_request, reply) => sendPage(reply, 'Mailbox', html`
    <p>The mails of this demonstration come here, whatever their address. Reload the page for new ones.</p>
    ${mailbox.mails.length === 0 && html`<p>There are none yet.</p>`}
    ${mailbox.mails.map(({ id, at, mail, subject, text }) => html`
    <article>
      <h2>${subject}</h2>
      <p>To ${mail.to} <small>${ago(at)}</small></p>
      ${text.trim().split('\n\n').map(paragraph => html`<p>${shown(paragraph, mail)}</p>`)}
      <p><a href="/mailbox/${id}">As mail programs show it</a></p>
    </article>`)}`))

  app.get<{ Params: { id: string } }>('/mailbox/:id', async ({ params }, reply) => {
    const found = mailbox.mails.find(({ id }) => String(id) === params.id)
    if (found === undefined) return reply.callNotFound()
    const headers = { 'Content-Security-Policy': MAIL_POLICY, 'Referrer-Policy': 'no-referrer', 'Cache-Control': 'no-store' }
    return reply.headers(headers).type('text/html; charset=utf-8').send(found.html)
  })
}

/** A time in words: `5 minutes ago`. */
function ago (at: number): string {
  const seconds = (Date.now() - at) / 1000
  const [unit, length] = UNITS.find(([, length]) => seconds >= length) ?? ['minute', 60]
  return seconds < 60 ? 'just now' : RELATIVE.format(-Math.floor(seconds / length), unit)
}

/** A paragraph of a mail: its links can be followed, its code stands out. */
function shown (paragraph: string, { url, code, accountUrl }: Mail): Html[] {
  return paragraph.split('\n').map((line, index) => {
    const isLink = line === url || line === accountUrl
    return html`${index > 0 && html`<br>`}${isLink
      ? html`<a href="${line}" rel="noreferrer">${line}</a>`
      : line === code ? html`<code>${code}</code>` : line}`
  })
}
