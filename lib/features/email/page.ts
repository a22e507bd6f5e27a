import { type Content, action, field, html, htmlForm, usernameField, verbatim } from '../../core/pages/elements.js'
import type { AccountView, Section } from '../../core/pages/page.js'
import { textIn } from '../pages/parts.js'
import { canonicalEmail } from '../../email.js'
import { currentPasswordField } from '../password/page.js'

export const emailSection: Section = { name: 'email', order: 40, show: emailRow }

function emailRow (view: AccountView): Content {
  const { auth, texts: { common, account }, user: { email, emailVerified, emailDisputed }, links, typed } = view
  const sent = view.targets({ done: 'sent' })
  const newEmail = { name: 'email', label: account.newEmail, type: 'email', autocomplete: 'email' } as const
  // Of a provider that does not vouch for it.
  const [proposal] = email === null ? links.flatMap(({ claims }) => canonicalEmail(claims.email ?? '') ?? []) : []
  const change = htmlForm({
    action: auth.formPaths.get('local/change-email'),
    hidden: sent,
    fields: [
      usernameField(null, email),
      field({ ...newEmail, value: textIn(typed.email) ?? proposal ?? null }),
      currentPasswordField(view)
    ],
    submit: email === null ? account.addEmail : account.emailSubmit
  })
  const again = email !== null && !emailVerified &&
    action(auth.formPaths.get('local/verify-email'), sent, account.sendAgain, { look: 'plain' })
  return (email !== null || change) && view.rowOf({
    title: common.email,
    state: email === null
      ? account.notSet
      : html`${verbatim(email)} <small>${emailVerified ? account.confirmed : account.unconfirmed}</small>`,
    content: change,
    more: again && [emailDisputed && html`<p>${account.disputed}</p>`, again]
  })
}
