import type { Principal } from 'fastify-svc-auth'
import { type Html, html } from '../html.js'
import type { ReceivedMail } from '../mailbox.js'
import { lifetimeOf, textOf } from '../mails.js'
import { page, time } from './frame.js'

interface MailboxView {
  principal: Principal | null
  /** The newest first. */
  mails: readonly ReceivedMail[]
}

/** Says on another page where the mails are. */
export const MAILBOX_HINT = html`
  <p class="centred faint">The mails of this demonstration are in <a href="/mailbox">its mailbox</a>.</p>`

/** Shows the mails of all users as text. */
export function mailboxPage ({ principal, mails }: MailboxView): Html {
  return page('Mailbox', html`
    <p class="faint">The mails of this demonstration come here, whatever their address. Reload the page for new ones.</p>
    ${mails.length === 0 && html`<p class="empty">No mail has arrived yet.</p>`}
    ${mails.map(mailOf)}`, { principal, path: '/mailbox' })
}

function mailOf ({ mail, at }: ReceivedMail): Html {
  const { subject, text } = textOf(mail)
  return html`
    <article class="card mail">
      <h2>${subject}</h2>
      <p class="faint">To ${mail.to}, ${time(at)}</p>
      <p>${text}</p>
      ${mail.url !== null && html`
        <p><a href="${mail.url}" rel="noreferrer">${mail.url}</a></p>
        <p class="faint">The link works for ${lifetimeOf(mail.expiresIn)}, and once.</p>`}
    </article>`
}
