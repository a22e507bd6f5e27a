import {
  type Content, checkboxField, htmlForm, newPasswordField, passwordField, usernameField
} from '../../core/pages/elements.js'
import type { AccountView, Section } from '../../core/pages/page.js'
import { hasPasswords } from '../local/offers.js'

export const passwordSection: Section = { name: 'password', order: 50, show: passwordRow }

function passwordRow (view: AccountView): Content {
  const { auth: { local, formPaths, parts }, texts: { common, account, keys }, user, rowOf, targets } = view
  const current = currentPasswordField(view)
  const content = local && (current || user.emailVerified) && htmlForm({
    action: formPaths.get(current ? 'local/change-password' : 'local/set-password'),
    hidden: targets(),
    fields: [
      usernameField(null, user.email), current,
      newPasswordField(common, common.newPassword, local.minPasswordLength),
      current && parts.apiKeys !== null && checkboxField('keys', keys.endAll, false)
    ],
    submit: current ? account.passwordSubmit : account.setPassword
  })
  return (current || content) &&
    rowOf({ title: common.password, state: current ? account.set : account.notSet, content })
}

/** Makes the field by which a user with a password authenticates for a change. */
export function currentPasswordField ({ auth, texts: { common }, links }: AccountView): Content {
  const hasPassword = hasPasswords(auth) && links.some(({ provider }) => provider === 'local')
  return hasPassword && passwordField(common.currentPassword, 'current')
}
