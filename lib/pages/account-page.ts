import { deviceOf } from './device.js'
import { action, button, currentPassword, field, form, nameField, newPassword, section, username } from './form.js'
import { type Content, type Html, html } from './html.js'
import type { Page } from './page-layout.js'
import { type PasskeyUser, passkeySignal } from './passkey-form.js'
import type { OfferedProvider, Targets } from './sign-in-pages.js'
import { type Texts, dateIn, filled } from './texts.js'

/** A sign-in method of the user. */
export interface ShownMethod {
  /** The name of the provider, or `local`. */
  readonly provider: string
  /** How the user calls the provider; null for the password. */
  readonly label: string | null
  /** The e-mail of the identity. */
  readonly email: string | null
}

/** An open session of the user. */
export interface ShownSession {
  readonly id: string
  readonly current: boolean
  readonly lastSeenAt: Date
  readonly userAgent: string | null
}

/** What the page `account` shows. Paths are null for what is not mounted. */
export interface AccountView {
  readonly user: { readonly name: string | null, readonly email: string | null, readonly isVerified: boolean }
  readonly hasPassword: boolean
  readonly minLength: number
  readonly methods: readonly ShownMethod[]
  /** Providers that the user can add. */
  readonly others: readonly OfferedProvider[]
  /** Null where the sessions are not listed. */
  readonly sessions: readonly ShownSession[] | null
  /** The page `factors`; null where it is not mounted. */
  readonly factors: string | null
  /** What the script tells password managers; null for a user without passkeys. */
  readonly passkeys: { readonly user: PasskeyUser, readonly script: string } | null
  /** Where forms go after a change. */
  readonly saved: Targets
  /** Where forms go after a mail was sent. */
  readonly sent: Targets
  /** Where the form goes that signs the user out. */
  readonly left: Targets
  readonly paths: Readonly<Record<AccountAction, string | null>>
}

/** The forms of the page. */
export type AccountAction =
  'rename' | 'removeMethod' | 'changeEmail' | 'verifyEmail' | 'changePassword' | 'setPassword' | 'endSession' |
  'deleteAccount' | 'logout'

/** The page on which a user sees and changes their account. */
export function accountPage (texts: Texts, view: AccountView): Page {
  const { common, account, factors } = texts
  const { passkeys, left, paths: { logout } } = view
  return {
    title: account.title,
    script: passkeys && passkeys.script,
    content: [
      passkeys && passkeySignal('current-user-details', { ...passkeys.user }),
      nameSection(texts, view),
      emailSection(texts, view),
      passwordSection(texts, view),
      methodsSection(texts, view),
      view.factors && html`<section>${button(view.factors, factors.title)}</section>`,
      devicesSection(texts, view),
      deleteSection(texts, view),
      logout && html`<section>${action(logout, left, common.signOut)}${
        action(logout, { ...left, everywhere: 'on' }, account.signOutEverywhere, { isDanger: true })}</section>`
    ]
  }
}

function nameSection ({ common, account }: Texts, { user, saved, paths: { rename } }: AccountView): Content {
  const fields = nameField(common.name, user.name)
  return rename && section(common.name, form({ action: rename, hidden: saved, fields, submit: account.nameSubmit }))
}

function emailSection ({ common, account }: Texts, { user, hasPassword, sent, paths }: AccountView): Content {
  const { email, isVerified } = user
  const state = isVerified ? account.confirmed : account.unconfirmed
  return email !== null && section(common.email, html`<p>${email} <small>${state}</small></p>
${!isVerified && paths.verifyEmail && action(paths.verifyEmail, sent, account.sendAgain)}
${paths.changeEmail && form({
  action: paths.changeEmail,
  hidden: sent,
  fields: [
    field({ name: 'email', label: account.newEmail, type: 'email', autocomplete: 'email' }),
    hasPassword && currentPassword(common.currentPassword)
  ],
  submit: account.emailSubmit
})}`)
}

function passwordSection ({ common, account }: Texts, view: AccountView): Content {
  const { user, hasPassword, minLength, saved, paths } = view
  const path = hasPassword ? paths.changePassword : user.isVerified && paths.setPassword
  return path && section(common.password, form({
    action: path,
    hidden: saved,
    fields: [
      username(common.email, user.email),
      hasPassword && currentPassword(common.currentPassword),
      newPassword(common, common.newPassword, minLength)
    ],
    submit: hasPassword ? account.passwordSubmit : account.setPassword
  }))
}

function methodsSection ({ common, account }: Texts, view: AccountView): Html {
  const { methods, others, saved, paths: { removeMethod } } = view
  return section(account.methodsTitle, html`<ul>
${methods.map(({ provider, label, email }) => {
  const shown = label ?? common.password
  const removal = { label: filled(account.removeMethod, { provider: shown }) }
  return html`<li><span>${shown} <small>${email}</small></span>${methods.length < 2 || removeMethod === null
    ? html`<small>${account.onlyMethod}</small>`
    : action(removeMethod, { ...saved, provider }, account.remove, removal)}</li>`
})}
</ul>
${others.map(({ label, href }) => button(href, filled(account.add, { provider: label })))}`)
}

function devicesSection ({ language, common, account }: Texts, view: AccountView): Content {
  const { sessions, saved, paths: { endSession } } = view
  return sessions && section(account.devicesTitle, html`<ul>
${sessions.map(({ id, current, lastSeenAt, userAgent }) => {
  const device = deviceOf(userAgent) ?? account.unknownDevice
  const used = current ? account.thisDevice : filled(account.lastUsed, { date: dateIn(language, lastSeenAt) })
  const label = filled(account.endSession, { device })
  return html`<li><span>${device} <small>${used}</small></span>${
    !current && endSession && action(endSession, { ...saved, id }, common.signOut, { label })}</li>`
})}
</ul>`)
}

function deleteSection ({ common, account }: Texts, view: AccountView): Content {
  const { hasPassword, left, paths: { deleteAccount } } = view
  return deleteAccount && section(account.deleteSubmit, [html`<p>${account.deleteText}</p>`, form({
    action: deleteAccount,
    hidden: left,
    fields: hasPassword && currentPassword(common.currentPassword),
    submit: account.deleteSubmit,
    isDanger: true
  })])
}
